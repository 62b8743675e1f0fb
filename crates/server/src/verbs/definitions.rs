//! What writing and deleting CustomResourceDefinitions sets in motion (crd.md 3, 6).
//!
//! Names are decided and the definition is established before its write is answered, so that its resource is served when
//! the POST returns. Deleting instances goes on behind it, see [`finalize`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use machinery::{Status, Text, Value};
use schema::definition::{self, CLEANUP_FINALIZER, ThirdPartyNames};
use tokio::time::Instant;

use super::as_server::{self, SERVER};
use super::change::Change;
use super::{Context, Request, Subresource, third_party};
use crate::clock;
use crate::limits;
use crate::resource::builtin::{DEFINITION_GROUP, DEFINITIONS, set_terminating};
use crate::resource::{Outline, Resource};

/// Rounds that settling one definition may take; each makes one write.
const ROUNDS_MAX: usize = 16;

/// The resource of definitions themselves.
fn definitions(context: &Context) -> Option<Arc<Resource>> {
    context.registry.get(DEFINITION_GROUP, DEFINITIONS)
}

/// The group that is in the name of a definition, or of a ThirdPartyResource.
fn group_of(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, group)| group)
}

/// A request of the server itself to the status of a definition.
fn status_request(resource: &Arc<Resource>, name: &str) -> Request {
    let path = format!("{}/status", as_server::path_of(resource, "", name));
    as_server::server_request(resource, &http::Method::PUT, &path, Subresource::Status)
}

/// What follows the write of a CRD.
pub async fn after_write(context: &Context, name: &str) {
    leave_to_controller(settle(context, name).await);
    // other definitions may take the names that it has left, and find those taken that it has
    leave_to_controller(settle_peers(context, group_of(name), name).await);
}

/// What a write sets in motion is tried again by `controllers/establishing`: the write itself has succeeded.
fn leave_to_controller(settled: Result<(), Status>) {
    if let Err(status) = settled {
        tracing::warn!(error = %status, "the status of a CustomResourceDefinition cannot be written yet");
    }
}

/// What follows the removal of a CRD or a ThirdPartyResource.
pub async fn after_delete(context: &Context, name: &str) {
    leave_to_controller(settle_peers(context, group_of(name), "").await);
}

/// Settles, at a start, what the last server left unsettled. A definition that is served by the names of its spec has been
/// settled.
pub async fn settle_all(context: &Context) {
    let Some(resource) = definitions(context) else { return };
    let (root, _) = resource.collection.latest();
    for (name, _) in root {
        let (plural, group) = name.split_once('.').unwrap_or((&name, ""));
        if context.registry.get(group, plural).is_none_or(|served| !served.settled) {
            leave_to_controller(settle(context, &name).await);
        }
    }
}

/// Other definitions of a group may take names that have become free, or find more of theirs taken.
pub async fn settle_peers(context: &Context, group: &str, except: &str) -> Result<(), Status> {
    for plural in context.registry.names().wanting(group) {
        let name = format!("{plural}.{group}");
        if name != except {
            settle(context, &name).await?;
        }
    }
    Ok(())
}

/// Makes a definition's status follow from its spec, one write at a time as the reference server's controllers do.
pub async fn settle(context: &Context, name: &str) -> Result<(), Status> {
    let Some(resource) = definitions(context) else { return Ok(()) };
    // of two that ask for the same name, one is decided upon before the other
    let _turn = context.naming_turn.lock().await;
    for _ in 0..ROUNDS_MAX {
        let edited = AtomicBool::new(false);
        let next = |outline: &Outline| {
            let next = next_status(context, outline);
            edited.store(next.is_some(), Ordering::Relaxed);
            next
        };
        as_server::edit(context, status_request(&resource, name), Change::EditOutline(&next)).await?;
        if !edited.into_inner() {
            return Ok(());
        }
    }
    Err(resource.modified(name))
}

/// The definition with the next change of its status; `None` when it is settled.
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

fn naming(context: &Context, old: &Value) -> Option<definition::Naming> {
    let (group, name) = (old.str_at(&["spec", "group"]), old.str_at(&["metadata", "name"]));
    context.registry.names().decide(old, &third_party::names(context, group, name))
}

/// What is in the way of the names of a ThirdPartyResource.
pub fn name_conflict(context: &Context, registration: &Value, names: &ThirdPartyNames) -> Option<String> {
    let mut wanted = definition::from_third_party(registration)?;
    wanted.remove_at(&["status"]);
    // its definition is none that may share them: instances would be of two kinds of rules
    let twin = definitions(context)?.collection.get(&names.definition()).is_some();
    let older = third_party::peers(context, &names.group, "");
    let same = older.iter().any(|peer| peer.str_at(&["metadata", "name"]) == names.definition());
    if twin || same {
        return Some(format!("{:?} is already in use", names.plural));
    }
    let naming = naming(context, &wanted)?;
    (naming.names_accepted.status == "False").then_some(naming.names_accepted.message)
}

/// Definitions that have waited for instances with finalizers, by uid, with the time from which they may go. They stay a
/// moment, as upstream: who sees the last instance go is told that it is gone, and not that nothing of its kind is served.
#[derive(Default)]
pub struct Outlived {
    from: BTreeMap<Text, Instant>,
    /// When the last pass began.
    passed: Option<Instant>,
}

impl Outlived {
    /// When the next one may go.
    pub fn next(&self) -> Option<Instant> {
        self.from.values().copied().filter(|from| Some(*from) > self.passed).min()
    }

    /// Whether a definition without instances may go by now.
    fn may_go(&mut self, uid: &str, now: Instant) -> bool {
        *self.from.entry(uid.into()).or_insert(now + limits::DEFINITION_GRACE) <= now
    }
}

/// The outcome of one pass over what is being deleted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pass {
    /// Something is being deleted and may still be there.
    pub pending: bool,
    /// Something could not be deleted now.
    pub failed: bool,
}

impl Pass {
    pub fn and(self, other: Pass) -> Pass {
        Pass { pending: self.pending || other.pending, failed: self.failed || other.failed }
    }
}

/// One pass over all definitions that are being deleted: instances are deleted, and when none are left the definition
/// is released (crd.md 6.4).
pub async fn finalize(context: &Context, outlived: &mut Outlived) -> Pass {
    let mut pass = third_party::finalize(context).await;
    let Some(resource) = definitions(context) else { return pass };
    let (root, _) = resource.collection.latest();
    outlived.passed = Some(clock::instant());
    outlived.from.retain(|uid, _| root.values().any(|stored| stored.meta.uid == *uid));
    for (name, stored) in root.iter().filter(|(_, stored)| stored.meta.deleting && stored.meta.finalizers) {
        pass.pending = true;
        let object = stored.body.to_value(stored.revision);
        let finalizers = object.at(&["metadata", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
        if finalizers.iter().any(|f| f.as_str() == Some(CLEANUP_FINALIZER))
            && let Err(status) = finalize_one(context, &resource, name, &object, outlived).await
        {
            tracing::warn!(definition = %name, error = %status, "instances cannot be deleted yet");
            pass.failed = true;
        }
    }
    pass
}

async fn finalize_one(
    context: &Context,
    resource: &Arc<Resource>,
    name: &Text,
    object: &Value,
    outlived: &mut Outlived,
) -> Result<(), Status> {
    if !definition::is_condition_true(object, "Established") {
        let message = "resource was never established";
        return release(context, resource, name, "NeverEstablished", message).await;
    }
    let (group, plural) = (object.str_at(&["spec", "group"]), object.str_at(&["spec", "names", "plural"]));
    if context.registry.overlaps_definition(group, plural) {
        let message = "instances overlap with built-in resources in storage";
        return release(context, resource, name, "OverlappingBuiltInResource", message).await;
    }
    let instances = context.objects.collection(&group.into(), &plural.into());
    let reason = definition::find_condition(object, "Terminating").map_or("", |c| c.str_at(&["reason"]));
    let has_waited = reason == "InstanceDeletionInProgress";
    if !has_waited {
        change_status(context, resource, name, |next| {
            let (reason, message) = ("InstanceDeletionInProgress", "CustomResource deletion is in progress");
            set_terminating(next, "True", reason, message, &clock::now_rfc3339());
        })
        .await?;
    }
    super::delete::delete_instances(context, group, plural).await?;
    let uid = object.str_at(&["metadata", "uid"]);
    if instances.is_empty() && (!has_waited || outlived.may_go(uid, clock::instant())) {
        return release(context, resource, name, "InstanceDeletionCompleted", "removed all instances").await;
    }
    Ok(())
}

/// Takes the cleanup finalizer away; the definition goes unless others hold it.
async fn release(
    context: &Context,
    resource: &Arc<Resource>,
    name: &Text,
    reason: &str,
    message: &str,
) -> Result<(), Status> {
    change_status(context, resource, name, |next| {
        set_terminating(next, "False", reason, message, &clock::now_rfc3339());
        definition::remove_cleanup_finalizer(next);
    })
    .await
}

/// Changes a definition as the server's controllers do.
async fn change_status(
    context: &Context,
    resource: &Arc<Resource>,
    name: &Text,
    change: impl Fn(&mut Value) + Send + Sync,
) -> Result<(), Status> {
    as_server::change_as(SERVER, context, resource, name, Subresource::Status, change).await?;
    if resource.collection.get(name).is_none() {
        settle_peers(context, group_of(name), name).await?;
    }
    Ok(())
}
