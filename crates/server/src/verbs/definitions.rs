//! Deletes CRDs: first their instances, then the CRD.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use base::clock;
use kinds::set_terminating;
use machinery::{Result, Text, Value};
use resource::{Resource, Subresource};
use schema::definition::{self, CLEANUP_FINALIZER};
use tokio::time::Instant;

use super::context::Context;
use super::delete::{Pass, delete_instances};
use super::naming::{definitions, establish_peers, group_of};
use super::third_party;
use crate::limits;

/// CRDs whose last instance with a finalizer is gone, by uid, with the earliest time of their removal. As in
/// kube-apiserver, the removal is delayed a little. Otherwise a client that waits for the last instance would get a
/// 404 for its kind instead of a 404 for the object.
#[derive(Default)]
pub struct PendingCrdDeletions {
    from: BTreeMap<Text, Instant>,
    /// When the last pass began.
    passed: Option<Instant>,
}

impl PendingCrdDeletions {
    /// The earliest time of the next removal.
    pub fn next(&self) -> Option<Instant> {
        self.from.values().copied().filter(|from| Some(*from) > self.passed).min()
    }

    /// Whether a CRD without instances may be removed by now.
    fn may_go(&mut self, uid: &str, now: Instant) -> bool {
        *self.from.entry(uid.into()).or_insert(now + limits::DEFINITION_GRACE) <= now
    }
}

/// Makes one pass over all CRDs that are being deleted: deletes their instances, and removes the finalizer from CRDs
/// without instances.
pub async fn finalize(context: &Context, outlived: &mut PendingCrdDeletions) -> Pass {
    let mut pass = third_party::finalize(context).await;
    let Some(resource) = definitions(context) else { return pass };
    let (root, _) = resource.collection.latest();
    outlived.passed = Some(clock::moment());
    if !outlived.from.is_empty() {
        let uids: HashSet<&Text> = root.values().map(|stored| &stored.meta.uid).collect();
        outlived.from.retain(|uid, _| uids.contains(uid));
    }
    for (name, stored) in root.iter().filter(|(_, stored)| stored.meta.deleting && stored.meta.finalizers) {
        pass.pending = true;
        let object = stored.body.to_value(stored.revision);
        let finalizers = object.items_at(&["metadata", "finalizers"]);
        if finalizers.iter().any(|f| f.as_str() == Some(CLEANUP_FINALIZER))
            && let Err(status) = finalize_one(context, &resource, name, &object, outlived).await
        {
            tracing::warn!(definition = %name, error = %status, "the instances of a CustomResourceDefinition cannot be deleted; will retry");
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
    outlived: &mut PendingCrdDeletions,
) -> Result<()> {
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
    delete_instances(context, group, plural).await?;
    let uid = object.str_at(&["metadata", "uid"]);
    // if other finalizers keep the CRD, wait as well, so that clients see for a moment that it is terminating
    let stays = object.at(&["metadata", "finalizers"]).and_then(Value::as_array).is_some_and(|all| all.len() > 1);
    let at_once = !has_waited && !stays;
    if instances.is_empty() && (at_once || outlived.may_go(uid, clock::moment())) {
        return release(context, resource, name, "InstanceDeletionCompleted", "removed all instances").await;
    }
    Ok(())
}

/// Removes the cleanup finalizer of a CRD, which is thereby deleted unless it has other finalizers.
async fn release(context: &Context, resource: &Arc<Resource>, name: &Text, reason: &str, message: &str) -> Result<()> {
    change_status(context, resource, name, |next| {
        set_terminating(next, "False", reason, message, &clock::now_rfc3339());
        definition::remove_cleanup_finalizer(next);
    })
    .await
}

async fn change_status(
    context: &Context,
    resource: &Arc<Resource>,
    name: &Text,
    change: impl Fn(&mut Value) + Send + Sync,
) -> Result<()> {
    context.as_server(resource, "", name).through(Subresource::Status).change(change).await?;
    if resource.collection.get(name).is_none() {
        establish_peers(context, group_of(name), name).await?;
    }
    Ok(())
}
