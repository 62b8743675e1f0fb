//! Maintains the accepted names of CRDs, and the conditions that depend on them.
//!
//! A CRD is established before the POST that creates it returns, so that its resource is served by then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::clock;
use kinds::{THIRD_PARTY_GROUP, THIRD_PARTY_RESOURCES, registrations};
use machinery::{Result, Value};
use resource::builtin::{DEFINITION_GROUP, DEFINITIONS};
use resource::{Outline, Resource, Subresource};
use schema::definition::{self, Taken, ThirdPartyNames, from_third_party};

use super::as_server;
use super::change::Change;
use super::context::Context;
use crate::limits;

/// The resource `customresourcedefinitions`.
pub fn definitions(context: &Context) -> Option<Arc<Resource>> {
    context.registry.get(DEFINITION_GROUP, DEFINITIONS)
}

/// The group in the name of a CRD or a ThirdPartyResource.
pub fn group_of(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, group)| group)
}

/// Establishes a CRD after a write, and its peers if names have become free or taken.
pub async fn after_write(context: &Context, name: &str) {
    log_error(establish(context, name).await);
    // the CRD may have given up names, which its peers can now have, or accepted names, which they cannot
    log_error(establish_peers(context, group_of(name), name).await);
}

/// Logs an error instead of returning it, because the write itself has succeeded. `controllers/establishing` retries
/// what is left undone.
fn log_error(established: Result<()>) {
    if let Err(status) = established {
        tracing::warn!(error = %status, "the status of a CustomResourceDefinition cannot be written; will retry");
    }
}

/// Gives the names of a removed CRD or ThirdPartyResource to its peers.
pub async fn after_delete(context: &Context, name: &str) {
    log_error(establish_peers(context, group_of(name), "").await);
}

/// At the start: establishes all CRDs that the previous server has left unestablished.
pub async fn establish_all(context: &Context) {
    let Some(resource) = definitions(context) else { return };
    let (root, _) = resource.collection.latest();
    for (name, _) in root {
        let (plural, group) = name.split_once('.').unwrap_or((&name, ""));
        if context.registry.get(group, plural).is_none_or(|served| !served.names_accepted) {
            log_error(establish(context, &name).await);
        }
    }
}

/// Updates the status of those CRDs of a group whose names are not all accepted, except the CRD named `except`.
pub async fn establish_peers(context: &Context, group: &str, except: &str) -> Result<()> {
    for plural in context.registry.names().wanting(group) {
        let name = format!("{plural}.{group}");
        if name != except {
            establish(context, &name).await?;
        }
    }
    Ok(())
}

/// Updates the status of a CRD from its spec: each condition in a separate write, as kube-apiserver's controllers do.
pub async fn establish(context: &Context, name: &str) -> Result<()> {
    let Some(resource) = definitions(context) else { return Ok(()) };
    // one CRD at a time, so that two CRDs cannot accept the same name
    let _turn = context.naming_turn.lock().await;
    for _ in 0..limits::NAMING_ROUNDS_MAX {
        let edited = AtomicBool::new(false);
        let next = |outline: &Outline| {
            let next = next_status(context, outline);
            edited.store(next.is_some(), Ordering::Relaxed);
            next
        };
        let request = context.as_server(&resource, "", name).through(Subresource::Status).request(&http::Method::PUT);
        as_server::edit(context, request, Change::EditOutline(&next)).await?;
        if !edited.into_inner() {
            return Ok(());
        }
    }
    Err(resource.modified(name))
}

/// The CRD with the next change to its status; `None` if nothing has to change.
fn next_status(context: &Context, outline: &Outline) -> Option<Value> {
    let now = clock::now_rfc3339();
    let old = &outline.definition;
    let mut next = old.clone();
    if let Some(naming) = naming(context, old) {
        next.set_at(&["status", "acceptedNames"], naming.accepted_names);
        definition::set_condition(&mut next, &naming.names_accepted, &now);
        if let Some(established) = &naming.established {
            definition::set_condition(&mut next, established, &now);
        }
        return (next != *old).then_some(next);
    }
    let preserving = definition::preserves_unknown_fields(old);
    let non_structural = if preserving { definition::non_structural(&outline.to_value()) } else { None };
    for (kind, condition) in [
        ("NonStructuralSchema", non_structural),
        ("KubernetesAPIApprovalPolicyConformant", definition::api_approval(old)),
    ] {
        let found = definition::find_condition(old, kind);
        match (condition, found) {
            (Some(condition), found) if found.is_none_or(|f| !condition.equals(f)) => {
                definition::set_condition(&mut next, &condition, &now);
            }
            (None, Some(_)) => definition::remove_condition(&mut next, kind),
            _ => continue,
        }
        return Some(next);
    }
    let condition = definition::establish(old)?;
    definition::set_condition(&mut next, &condition, &now);
    Some(next)
}

/// Sets the status of a CRD that is not stored, as if its names had been accepted.
pub fn set_established(context: &Context, object: &mut Value) {
    let now = clock::now_rfc3339();
    if let Some(naming) = naming(context, object) {
        object.set_at(&["status", "acceptedNames"], naming.accepted_names);
        definition::set_condition(object, &naming.names_accepted, &now);
    }
    if let Some(established) = definition::establish(object) {
        definition::set_condition(object, &established, &now);
    }
}

fn naming(context: &Context, old: &Value) -> Option<definition::Naming> {
    let (group, name) = (old.str_at(&["spec", "group"]), old.str_at(&["metadata", "name"]));
    context.registry.names().decide(old, &third_party_names(context, group, name))
}

/// The conflicts between the names of a ThirdPartyResource and names that are taken.
pub fn name_conflict(context: &Context, registration: &Value, names: &ThirdPartyNames) -> Option<String> {
    let mut wanted = definition::from_third_party(registration)?;
    wanted.remove_at(&["status"]);
    // a CRD with the same names must not exist, because both would then own the instances
    let twin = definitions(context)?.collection.get(&names.definition()).is_some();
    let older = peers(context, &names.group, "");
    let same = older.iter().any(|peer| peer.str_at(&["metadata", "name"]) == names.definition());
    if twin || same {
        return Some(format!("{:?} is already in use", names.plural));
    }
    let naming = naming(context, &wanted)?;
    (naming.names_accepted.status == "False").then_some(naming.names_accepted.message)
}

pub fn third_party_resources(context: &Context) -> Option<Arc<Resource>> {
    context.registry.get(THIRD_PARTY_GROUP, THIRD_PARTY_RESOURCES)
}

/// The ThirdPartyResources of a group, converted to CRDs. If the CRD named `except` replaces one of them, that one is
/// left out.
fn peers(context: &Context, group: &str, except: &str) -> Vec<Value> {
    if third_party_resources(context).is_none() {
        return vec![];
    }
    let others = registrations(&context.objects, group).into_iter().filter(|(names, _)| names.definition() != except);
    others.filter_map(|(_, stored)| from_third_party(&stored.body.to_value(0))).collect()
}

/// The names that the ThirdPartyResources of a group take, apart from the one that the CRD `except` replaces.
fn third_party_names(context: &Context, group: &str, except: &str) -> Taken {
    let mut taken = Taken::default();
    let peers = peers(context, group, except);
    peers.iter().for_each(|peer| taken.add(peer.at(&["status", "acceptedNames"]).unwrap_or(&Value::Null)));
    taken
}
