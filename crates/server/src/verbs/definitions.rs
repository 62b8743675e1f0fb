//! What writing and deleting CustomResourceDefinitions sets in motion (crd.md 3, 6).
//!
//! Names are decided and the definition is established before its write is answered, so that its resource is served when
//! the POST returns. Deleting instances goes on behind it, see [`finalize`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use machinery::value::skim;
use machinery::{Status, Text, Value};
use schema::definition::{self, CLEANUP_FINALIZER, Condition, ThirdPartyNames};

use store::Revision;

use super::{Context, Outcome, Request, Shown, Subresource, third_party, write};
use crate::clock;
use crate::objects::Stored;
use crate::request::DeleteOptions;
use crate::resource::Resource;
use crate::resource::builtin::{DEFINITION_GROUP, DEFINITIONS};

/// The field manager of the server's own controllers.
const SERVER: &str = "kube-apiserver";
/// Rounds that settling one definition may take; each makes one write.
const ROUNDS_MAX: usize = 16;

pub fn is_definition(resource: &Resource) -> bool {
    resource.group == DEFINITION_GROUP && resource.plural == DEFINITIONS
}

/// The resource of definitions themselves.
fn definitions(context: &Context) -> Option<Arc<Resource>> {
    context.registry.get(DEFINITION_GROUP, DEFINITIONS)
}

/// A request of the server itself to the status of a definition.
fn status_request(resource: &Arc<Resource>, name: &str) -> Request {
    let path = format!("{}/status", super::bootstrap::path_of(resource, "", name));
    super::bootstrap::server_request(resource, &http::Method::PUT, &path, Subresource::Status)
}

/// The names of definitions by the definition's name, each read once per revision: deciding on the names of one asks for
/// those of all others in its group.
#[derive(Default)]
pub struct Names(Mutex<HashMap<Text, (Revision, Arc<Value>)>>);

impl Names {
    /// The definition's group, names and accepted names, and nothing else of it.
    fn of(&self, name: &Text, stored: &Stored) -> Arc<Value> {
        let lock = || self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((_, names)) = lock().get(name).filter(|(revision, _)| *revision == stored.revision) {
            return names.clone();
        }
        let outline =
            skim::outline(&stored.body.bytes, skim::Omitted { placed: "openAPIV3Schema", dropped: "managedFields" });
        let whole = outline.map_or_else(|| stored.body.to_value(0), |(whole, _)| whole);
        let mut names = Value::object();
        for path in [["spec", "group"], ["spec", "names"], ["status", "acceptedNames"]] {
            if let Some(part) = whole.at(&path) {
                names.set_at(&path, part.clone());
            }
        }
        let names = Arc::new(names);
        lock().insert(name.clone(), (stored.revision, names.clone()));
        names
    }

    fn forget(&self, name: &str) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(name);
    }
}

/// What follows the write of any object, which has `created` it or changed it.
pub async fn after_write(context: &Context, request: &Request, stored: &Stored, created: bool) {
    if !is_definition(&request.resource) {
        return;
    }
    let group = context.names.of(&stored.meta.name, stored).str_at(&["spec", "group"]).to_owned();
    settle(context, &stored.meta.name).await;
    if !created {
        // a new definition takes names, it leaves none
        settle_peers(context, &group, &stored.meta.name).await;
    }
    if stored.meta.deleting {
        context.wake_deletions();
    }
}

/// What follows the deletion of any object.
pub async fn after_delete(context: &Context, request: &Request) {
    if is_definition(&request.resource) {
        context.names.forget(request.name());
        let group = request.name().split_once('.').map_or("", |(_, group)| group).to_owned();
        settle_peers(context, &group, request.name()).await;
    } else if third_party::is_registration(&request.resource) {
        let group = request.name().split_once('.').map_or("", |(_, group)| group).to_owned();
        settle_peers(context, &group, "").await;
    } else if request.resource.terminating
        || request.resource.shipped().is_none()
        || leaves_with_its_place(context, request)
    {
        context.wake_deletions();
    }
}

/// Whether the namespace of a request is being deleted, and may have waited for what is gone now.
fn leaves_with_its_place(context: &Context, request: &Request) -> bool {
    let namespaces = context.registry.get("", "namespaces").filter(|_| request.resource.namespaced);
    let place = namespaces.and_then(|namespaces| namespaces.collection.get(request.namespace()));
    place.is_some_and(|place| place.meta.deleting)
}

/// Settles what the last server left unsettled: after a start. What is served has been settled.
pub async fn settle_all(context: &Context) {
    let Some(resource) = definitions(context) else { return };
    let (root, _) = resource.collection.latest();
    for (name, _) in root {
        let (plural, group) = name.split_once('.').unwrap_or((&name, ""));
        if context.registry.get(group, plural).is_none_or(|served| !served.settled) {
            settle(context, &name).await;
        }
    }
}

/// Other definitions of a group may take names that have become free.
async fn settle_peers(context: &Context, group: &str, except: &str) {
    let Some(resource) = definitions(context) else { return };
    let suffix = format!(".{group}");
    let (root, _) = resource.collection.latest();
    for (name, stored) in root {
        if name != except && name.ends_with(&suffix) && needs_names(&context.names.of(&name, &stored)) {
            settle(context, &name).await;
        }
    }
}

fn needs_names(value: &Value) -> bool {
    value.at(&["spec", "names"]) != value.at(&["status", "acceptedNames"])
}

/// Makes a definition's status follow from its spec, one write at a time as the reference server's controllers do.
pub async fn settle(context: &Context, name: &str) {
    let Some(resource) = definitions(context) else { return };
    for _ in 0..ROUNDS_MAX {
        let Some(stored) = resource.collection.get(name) else { return };
        let old = stored.body.to_value(stored.revision);
        let Some(next) = next_status(context, &resource, &old) else { return };
        if let Err(status) = write_status(context, &resource, name, &old, next, &stored).await {
            tracing::error!(definition = name, error = %status, "the status of a definition cannot be written");
            return;
        }
    }
}

/// The definition with the next change of its status; `None` when it is settled.
fn next_status(context: &Context, resource: &Resource, old: &Value) -> Option<Value> {
    let now = clock::now_rfc3339();
    let mut next = old.clone();
    if let Some(naming) = naming(context, resource, old) {
        next.set_at(&["status", "acceptedNames"], naming.accepted_names);
        definition::set_condition(&mut next, &naming.names_accepted, &now);
        if let Some(established) = &naming.established {
            definition::set_condition(&mut next, established, &now);
        }
        return (next != *old).then_some(next);
    }
    for (kind, condition) in [
        ("NonStructuralSchema", definition::non_structural(old)),
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

fn naming(context: &Context, resource: &Resource, old: &Value) -> Option<definition::Naming> {
    if old.at(&["spec", "names"]) == old.at(&["status", "acceptedNames"]) {
        return None;
    }
    let group = old.str_at(&["spec", "group"]);
    let suffix = format!(".{group}");
    let (root, _) = resource.collection.latest();
    let same =
        root.iter().filter(|(name, _)| name.ends_with(&suffix)).map(|(name, stored)| context.names.of(name, stored));
    let peers: Vec<Arc<Value>> = same.filter(|d| d.str_at(&["spec", "group"]) == group).collect();
    let older = third_party::peers(context, group, old.str_at(&["metadata", "name"]));
    definition::naming(old, peers.iter().map(|peer| &**peer).chain(&older))
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
    let naming = naming(context, &*definitions(context)?, &wanted)?;
    (naming.names_accepted.status == "False").then_some(naming.names_accepted.message)
}

/// Definitions of a group may take names that have become free.
pub async fn settle_group(context: &Context, group: &str) {
    settle_peers(context, group, "").await;
}

async fn write_status(
    context: &Context,
    resource: &Arc<Resource>,
    name: &str,
    old: &Value,
    mut next: Value,
    current: &Arc<Stored>,
) -> Result<(), Status> {
    let request = status_request(resource, name);
    request.track_update(Some(old), &mut next, SERVER);
    // if somebody else was faster, the next round sees what they wrote
    write::store(context, &request, &next, Some(current)).await.map(|_| ())
}

/// The first deletion: marked, held by the cleanup finalizer, Terminating (crd.md 3).
pub async fn begin_deletion(
    context: &Context,
    request: &Request,
    options: &DeleteOptions,
    current: Arc<Stored>,
) -> Result<Option<Outcome>, Status> {
    let mut object = request.resource.read(&current, &request.version)?;
    object.set_at(&["metadata", "deletionTimestamp"], Value::from(clock::now_rfc3339()));
    let mut finalizers: Vec<Value> =
        object.at(&["metadata", "finalizers"]).and_then(Value::as_array).unwrap_or_default().to_vec();
    if !finalizers.iter().any(|f| f.as_str() == Some(CLEANUP_FINALIZER)) {
        finalizers.push(Value::from(CLEANUP_FINALIZER));
    }
    object.set_at(&["metadata", "finalizers"], Value::Array(finalizers));
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_terminating(&mut object, "True", "InstanceDeletionPending", message);
    if options.dry_run {
        return Ok(Some(Outcome::Object(200, Shown::Tree(object))));
    }
    match write::store(context, request, &object, Some(&current)).await? {
        Ok(stored) => {
            context.wake_deletions();
            Ok(Some(Outcome::Object(200, Shown::stored(&request.resource, &request.version, stored)?)))
        }
        Err(()) => Ok(None),
    }
}

fn set_terminating(object: &mut Value, status: &'static str, reason: &str, message: &str) {
    let condition = Condition { kind: "Terminating", status, reason: reason.to_owned(), message: message.to_owned() };
    definition::set_condition(object, &condition, &clock::now_rfc3339());
}

/// One pass over all definitions that are being deleted: instances are deleted, and when none are left the definition
/// is released (crd.md 6.4).
pub async fn finalize(context: &Context) {
    third_party::finalize(context).await;
    let Some(resource) = definitions(context) else { return };
    let (root, _) = resource.collection.latest();
    for (name, stored) in root.iter().filter(|(_, stored)| stored.meta.deleting && stored.meta.finalizers) {
        let object = stored.body.to_value(stored.revision);
        let finalizers = object.at(&["metadata", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
        if finalizers.iter().any(|f| f.as_str() == Some(CLEANUP_FINALIZER))
            && let Err(status) = finalize_one(context, &resource, name, &object).await
        {
            tracing::warn!(definition = %name, error = %status, "instances cannot be deleted yet");
        }
    }
}

async fn finalize_one(context: &Context, resource: &Arc<Resource>, name: &Text, object: &Value) -> Result<(), Status> {
    if !definition::is_condition_true(object, "Established") {
        let message = "resource was never established";
        return release(context, resource, name, "NeverEstablished", message).await;
    }
    let (group, plural) = (object.str_at(&["spec", "group"]), object.str_at(&["spec", "names", "plural"]));
    let served = context.registry.get(group, plural);
    if served.is_some_and(|served| served.third_party || !served.is_custom()) {
        let message = "instances overlap with built-in resources in storage";
        return release(context, resource, name, "OverlappingBuiltInResource", message).await;
    }
    let instances = context.objects.collection(&group.into(), &plural.into());
    let reason = definition::find_condition(object, "Terminating").map_or("", |c| c.str_at(&["reason"]));
    if reason != "InstanceDeletionInProgress" {
        change_status(context, resource, name, |next| {
            set_terminating(next, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress");
        })
        .await?;
    }
    super::delete::delete_instances(context, group, plural).await?;
    if instances.is_empty() {
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
        set_terminating(next, "False", reason, message);
        definition::remove_cleanup_finalizer(next);
    })
    .await
}

/// Changes a definition as the server's controllers do.
async fn change_status(
    context: &Context,
    resource: &Arc<Resource>,
    name: &Text,
    change: impl Fn(&mut Value),
) -> Result<(), Status> {
    super::bootstrap::change_as_server(context, resource, name, "status", change).await?;
    if resource.collection.get(name).is_none() {
        let group = name.split_once('.').map_or("", |(_, group)| group);
        Box::pin(settle_peers(context, group, name)).await;
    }
    Ok(())
}
