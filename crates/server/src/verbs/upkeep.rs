//! Creates and repairs default objects.

use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use machinery::status::Reason;
use machinery::{Result, Status, Value, yaml};
use objects::Encoded;
use resource::Resource;
use resource::builtin::{DEFINITION_GROUP, DEFINITIONS};

use super::as_server::SERVER;
use super::context::Context;
use super::delete::delete_as_server;
use super::patch::PatchKind;
use super::reconcile::{self, Repair};
use super::stored;
use crate::limits;

/// The field manager of the default objects of API priority and fairness.
const FLOW_PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";

/// How default objects are created and repaired.
#[derive(Clone, Copy)]
pub struct Upkeep {
    /// The field manager.
    manager: &'static str,
    /// Whether missing rules and subjects are added to existing objects.
    reconciled: bool,
}

impl Upkeep {
    pub fn manager(self) -> &'static str {
        self.manager
    }
}

pub const PLAIN: Upkeep = Upkeep { manager: SERVER, reconciled: false };
pub const FLOW: Upkeep = Upkeep { manager: FLOW_PRODUCER, reconciled: false };
pub const ROLES: Upkeep = Upkeep { manager: SERVER, reconciled: true };

pub async fn create_of(
    context: &Context,
    kept: Upkeep,
    group: &str,
    plural: &str,
    objects: impl IntoIterator<Item = Value>,
) -> Result<()> {
    let Some(resource) = context.registry.get(group, plural) else { return Ok(()) };
    keep_all(context, kept, &resource, objects).await
}

/// Creates the objects that do not exist yet.
pub async fn create_missing(
    context: &Context,
    resource: &Arc<Resource>,
    objects: impl IntoIterator<Item = Value>,
) -> Result<()> {
    keep_all(context, PLAIN, resource, objects).await
}

/// Creates or repairs objects, up to [`limits::BOOTSTRAP_PARALLEL`] at a time.
async fn keep_all(
    context: &Context,
    kept: Upkeep,
    resource: &Arc<Resource>,
    objects: impl IntoIterator<Item = Value>,
) -> Result<()> {
    let keep = |wanted| async move { in_turn(context, || keep(context, kept, resource, &wanted)).await };
    stream::iter(objects).map(Ok).try_for_each_concurrent(limits::BOOTSTRAP_PARALLEL, keep).await
}

/// Reads a list of CustomResourceDefinitions of the server itself.
pub fn definitions_in(text: &[u8]) -> Result<Vec<Value>> {
    let list = yaml::decode(text).map_err(|error| Status::internal(error.to_string()))?.value;
    Ok(list.items_at(&["items"]).to_vec())
}

/// Deletes CustomResourceDefinitions that an earlier run of the server has created, and their objects.
pub async fn remove_definitions(context: &Context, all: &[Value]) -> Result<()> {
    let Some(resource) = context.registry.get(DEFINITION_GROUP, DEFINITIONS) else { return Ok(()) };
    let found = all.iter().filter_map(|one| resource.collection.get(one.str_at(&["metadata", "name"]))).collect();
    delete_as_server(context, &resource, found).await
}

/// Creates CustomResourceDefinitions of the server itself, or brings them up to date.
pub async fn keep_definitions(context: &Context, wanted: Vec<Value>) -> Result<()> {
    let Some(resource) = context.registry.get(DEFINITION_GROUP, DEFINITIONS) else { return Ok(()) };
    let exists = |definition: &Value| resource.collection.get(definition.str_at(&["metadata", "name"])).is_some();
    let (existing, missing): (Vec<Value>, Vec<Value>) = wanted.into_iter().partition(exists);
    create_missing(context, &resource, missing).await?;
    for definition in existing {
        let spec = definition.get("spec").cloned().unwrap_or_default();
        let update = |object: &mut Value| object.set_at(&["spec"], spec.clone());
        let name = definition.str_at(&["metadata", "name"]);
        context.as_server(&resource, "", name).change(update).await?;
    }
    Ok(())
}

/// Sets the uid of the namespace kube-system, which clients take for the id of the cluster.
pub async fn identify(context: &Context, uid: &str) -> Result<()> {
    const NAME: &str = "kube-system";
    let Some(resource) = context.registry.get("", "namespaces") else { return Ok(()) };
    let Some(found) = resource.collection.get(NAME).filter(|found| found.meta.uid != uid) else { return Ok(()) };
    let mut object = found.body.to_managed_value(0);
    object.set_at(&["metadata", "uid"], Value::from(uid));
    // no error on a conflict: another server has done it
    stored::put(context, &resource.key("", NAME), Encoded::of(&object), Some(found.revision)).await.map(drop)
}

/// Repeats a write until it no longer conflicts with writes of other servers.
pub async fn in_turn<F: Future<Output = Result<()>>>(context: &Context, attempt: impl Fn() -> F) -> Result<()> {
    let mut result = Ok(());
    for _ in 0..limits::WRITE_RETRIES {
        result = attempt().await;
        match &result {
            Err(status) if matches!(status.reason, Reason::AlreadyExists | Reason::Conflict | Reason::NotFound) => {
                super::catch_up(context).await?;
            }
            _ => break,
        }
    }
    result
}

/// Creates an object, or repairs the existing one.
async fn keep(context: &Context, kept: Upkeep, resource: &Arc<Resource>, wanted: &Value) -> Result<()> {
    let (namespace, manager) = (wanted.str_at(&["metadata", "namespace"]), kept.manager);
    let name = wanted.str_at(&["metadata", "name"]);
    // an unknown field is a mistake, in a default object as in a file of the user
    let query = format!("fieldManager={manager}&fieldValidation=Strict");
    let own = context.as_server(resource, namespace, name).with_query(query);
    if let Some(existing) = resource.collection.get(&resource.key(namespace, name).path) {
        if !kept.reconciled {
            return Ok(());
        }
        match reconcile::change(&existing.body.to_value(0), wanted) {
            Repair::Nothing => return Ok(()),
            Repair::Patch(change) => return own.patch(PatchKind::Merge, &change).await,
            Repair::Replace => own.delete(&Value::object()).await?,
        }
    }
    own.create(wanted).await
}
