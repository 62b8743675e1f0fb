//! What the server does in its own name: the first namespaces, emptying namespaces, small changes.

use std::sync::{Arc, LazyLock};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use machinery::status::Reason;
use machinery::{Status, Value};

use super::body::{Document, Format};
use super::reconcile::{self, Change};
use super::{Context, PatchKind, Request, Subresource, create, delete, patch, write};
use crate::authorization::{Authorized, GROUP, defaults};
use crate::flow;
use crate::objects::Stored;
use crate::resource::builtin::{
    self, API_SERVICES, FLOW_GROUP, MANAGED, MANAGED_ALWAYS, MANAGED_AT_START, REGISTRATION_GROUP,
};
use crate::resource::{Resource, Version};
use crate::{clock, limits};

/// The field manager and user of the server.
pub const SERVER: &str = "kube-apiserver";
/// The field manager of flow control's first objects.
const FLOW_PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
/// The name of the ConfigMap that tells since when uses of tokens are tracked.
const TOKEN_TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";
/// Namespaces that are there from the start.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// A request of the server itself, in the storage version, which nobody is asked about.
pub fn server_request(
    resource: &Arc<Resource>,
    method: &http::Method,
    path: &str,
    subresource: Subresource,
) -> Request {
    let request = controller_request(SERVER, resource, method, path);
    Request { subresource, default_manager: SERVER.into(), admitted: false, ..request }
}

/// A request of a controller under a user name of its own, in the storage version.
pub fn controller_request(user: &str, resource: &Arc<Resource>, method: &http::Method, path: &str) -> Request {
    Request {
        authorized: Authorized::internal(user, method, path),
        resource: resource.clone(),
        version: resource.storage_version().clone(),
        subresource: Subresource::None,
        default_manager: user.rsplit(':').next().unwrap_or_default().into(),
        admitted: true,
        warnings: Default::default(),
        trail: None,
    }
}

/// The path of an object in the storage version.
pub fn path_of(resource: &Resource, namespace: &str, name: &str) -> String {
    path_in(resource, resource.storage_version(), namespace, name)
}

/// The path of an object in a version.
pub fn path_in(resource: &Resource, version: &Version, namespace: &str, name: &str) -> String {
    let version = &version.name;
    let prefix = match resource.group.as_str() {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    };
    let place = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
    format!("{prefix}{place}/{}/{name}", resource.plural)
}

/// Creates what a server has from the start, and adds what its roles and bindings have lost: all at once, so that one
/// commit may carry many.
pub async fn bootstrap(context: &Context) -> Result<(), Status> {
    let named = |name| machinery::json!({"metadata": {"name": name}});
    let namespaces = NAMESPACES.into_iter().map(named);
    let of_flow = |objects: fn() -> Vec<Value>| if context.flow.is_some() { objects() } else { vec![] };
    let inside_namespaces = async {
        create_of(context, "", "namespaces", namespaces).await?;
        tokio::try_join!(
            create_of(context, GROUP, "roles", defaults::roles(true)),
            create_of(context, GROUP, "rolebindings", defaults::bindings(true)),
            create_of(context, "", "configmaps", [token_tracking()]),
        )
    };
    tokio::try_join!(
        create_of(context, FLOW_GROUP, "prioritylevelconfigurations", of_flow(flow::defaults::levels)),
        create_of(context, FLOW_GROUP, "flowschemas", of_flow(flow::defaults::schemas)),
        register(context),
        create_of(context, GROUP, "clusterroles", defaults::roles(false)),
        create_of(context, GROUP, "clusterrolebindings", defaults::bindings(false)),
        inside_namespaces,
    )?;
    Ok(())
}

/// The ConfigMap that tells servers beside us whom to believe (api-machinery 27.6).
const TRUST: (&str, &str) = ("kube-system", "extension-apiserver-authentication");

/// Publishes whom servers beside us are to believe. Authorities are added to those that other servers have published.
pub async fn publish_trust(context: &Context, data: &[(&'static str, String)]) -> Result<(), Status> {
    let resource = context.registry.get("", "configmaps").filter(|_| !data.is_empty());
    let Some(resource) = resource else { return Ok(()) };
    let (namespace, name) = TRUST;
    let mut result = Ok(());
    for _ in 0..limits::WRITE_RETRIES {
        let existing = resource.collection.get(&resource.key(namespace, name).path);
        let before = existing.as_ref().map(|stored| stored.body.to_value(stored.revision)).unwrap_or_default();
        let mut wanted = Value::object();
        for (key, text) in data {
            let known = before.str_at(&["data", key]);
            let text = match key.ends_with("-ca-file") {
                true if known.contains(text.as_str()) => known.to_owned(),
                true => format!("{known}{text}"),
                false => text.clone(),
            };
            wanted.set_at(&[key], Value::from(text));
        }
        let mut object = machinery::json!({"metadata": {"name": name, "namespace": namespace}, "data": wanted});
        let version = before.str_at(&["metadata", "resourceVersion"]);
        let (method, path) = match &existing {
            Some(_) if before.get("data") == object.get("data") => return Ok(()),
            Some(_) => {
                object.set_at(&["metadata", "resourceVersion"], Value::from(version));
                (http::Method::PATCH, path_of(&resource, namespace, name))
            }
            None => (http::Method::POST, path_of(&resource, namespace, "")),
        };
        let request = server_request(&resource, &method, &path, Subresource::None);
        let document = Document { bytes: object.to_json().into(), format: Format::Json };
        result = match existing {
            Some(_) => patch(context, &request, PatchKind::Merge, &document).await.map(drop),
            None => create(context, &request, &document).await.map(drop),
        };
        match &result {
            Err(status) if matches!(status.reason, Reason::AlreadyExists | Reason::Conflict | Reason::NotFound) => {
                super::catch_up(context).await?;
            }
            _ => break,
        }
    }
    result
}

/// Creates again what flow control cannot do without (api-machinery 20.1).
pub async fn create_mandatory_flows(context: &Context) -> Result<(), Status> {
    let mandatory = |objects: Vec<Value>| -> Vec<Value> {
        let is = |object: &Value| matches!(object.str_at(&["metadata", "name"]), "exempt" | "catch-all");
        objects.into_iter().filter(is).collect()
    };
    let levels = mandatory(flow::defaults::levels());
    create_of(context, FLOW_GROUP, "prioritylevelconfigurations", levels).await?;
    create_of(context, FLOW_GROUP, "flowschemas", mandatory(flow::defaults::schemas())).await
}

/// The ConfigMap that tells since when uses of tokens in Secrets are told (KEP-2799).
pub fn token_tracking() -> Value {
    machinery::json!({
        "metadata": {"name": TOKEN_TRACKING, "namespace": "kube-system"},
        "data": {"since": (machinery::time::date(clock::now_seconds()))}
    })
}

/// Makes the APIServices of shipped kinds that are missing, and puts those in order that are to be looked after when a
/// server starts; nobody does so later. What is not served here goes, unless another server may serve it.
async fn register(context: &Context) -> Result<(), Status> {
    let Some(resource) = context.registry.get(REGISTRATION_GROUP, API_SERVICES) else { return Ok(()) };
    let served = context.registry.snapshot();
    let mut missing = builtin::api_services(&served, false);
    let defined = LazyLock::new(|| builtin::api_services(&served, true));
    let (mut gone, alone) = (vec![], !context.objects.store().is_shared());
    for stored in resource.collection.latest().0.values() {
        let (name, shipped) = (&stored.meta.name, missing.remove(&stored.meta.name));
        let at_start = match stored.meta.label(MANAGED) {
            Some(MANAGED_AT_START) => true,
            Some(MANAGED_ALWAYS) if shipped.is_some() => false,
            // somebody else's, or one that the controller looks after
            _ => continue,
        };
        let object = stored.body.to_value(stored.revision);
        match shipped.as_ref().or_else(|| defined.get(name)) {
            Some(wanted) => restore_registration(context, &resource, &object, wanted).await?,
            None if at_start && (alone || builtin::is_shipped_group(object.str_at(&["spec", "group"]))) => {
                gone.push(stored.clone());
            }
            None => {}
        }
    }
    delete::delete_as_server(context, &resource, gone).await?;
    create_missing(context, &resource, missing.into_values()).await
}

/// Gives an APIService the spec that it should have.
pub async fn restore_registration(
    context: &Context,
    resource: &Arc<Resource>,
    object: &Value,
    wanted: &Value,
) -> Result<(), Status> {
    if object.get("spec") == wanted.get("spec") {
        return Ok(());
    }
    let path = path_of(resource, "", object.str_at(&["metadata", "name"]));
    let request = server_request(resource, &http::Method::PATCH, &path, Subresource::None);
    let spec = wanted.get("spec").cloned().unwrap_or_default();
    let replace = machinery::json!([{"op": "replace", "path": "/spec", "value": spec}]);
    let document = Document { bytes: replace.to_json().into(), format: Format::Json };
    match patch(context, &request, PatchKind::Json, &document).await {
        // it has gone
        Err(status) if status.reason == Reason::NotFound => Ok(()),
        result => result.map(drop),
    }
}

async fn create_of(
    context: &Context,
    group: &str,
    plural: &str,
    objects: impl IntoIterator<Item = Value>,
) -> Result<(), Status> {
    let Some(resource) = context.registry.get(group, plural) else { return Ok(()) };
    create_missing(context, &resource, objects).await
}

/// Creates those of some objects that are not there, some at once.
pub async fn create_missing(
    context: &Context,
    resource: &Arc<Resource>,
    objects: impl IntoIterator<Item = Value>,
) -> Result<(), Status> {
    let settle = |object| settle_in_turn(context, resource, object);
    stream::iter(objects).map(Ok).try_for_each_concurrent(limits::BOOTSTRAP_PARALLEL, settle).await
}

/// The same object may be settled by other servers at the same time.
async fn settle_in_turn(context: &Context, resource: &Arc<Resource>, wanted: Value) -> Result<(), Status> {
    let mut result = Ok(());
    for _ in 0..limits::WRITE_RETRIES {
        let place = |key: &str| wanted.str_at(&["metadata", key]);
        let existing = resource.collection.get(&resource.key(place("namespace"), place("name")).path);
        result = settle_one(context, resource, &wanted, existing).await;
        match &result {
            Err(status) if matches!(status.reason, Reason::AlreadyExists | Reason::Conflict | Reason::NotFound) => {
                super::catch_up(context).await?;
            }
            _ => break,
        }
    }
    result
}

/// Creates an object, or adds what the existing one has lost.
async fn settle_one(
    context: &Context,
    resource: &Arc<Resource>,
    wanted: &Value,
    existing: Option<Arc<Stored>>,
) -> Result<(), Status> {
    let namespace = wanted.str_at(&["metadata", "namespace"]);
    // upstream's flow control has a name of its own
    let manager = if resource.group == FLOW_GROUP { FLOW_PRODUCER } else { SERVER };
    let request = |method: http::Method, name: &str| {
        let path = format!("{}?fieldManager={manager}", path_of(resource, namespace, name));
        server_request(resource, &method, &path, Subresource::None)
    };
    let document = |value: &Value| Document { bytes: value.to_json().into(), format: Format::Json };
    let name = wanted.str_at(&["metadata", "name"]);
    if let Some(existing) = existing {
        if resource.group != GROUP {
            return Ok(());
        }
        match reconcile::change(&existing.body.to_value(0), wanted) {
            Change::Nothing => return Ok(()),
            Change::Patch(change) => {
                let request = request(http::Method::PATCH, name);
                return patch(context, &request, PatchKind::Merge, &document(&change)).await.map(drop);
            }
            Change::Replace => drop(delete::delete(context, &request(http::Method::DELETE, name), None).await?),
        }
    }
    create(context, &request(http::Method::POST, ""), &document(wanted)).await.map(drop)
}

/// Deletes what a namespace has of a resource; answers what is left.
pub async fn empty_namespace(
    context: &Context,
    resource: &Arc<Resource>,
    namespace: &str,
) -> Result<Vec<Value>, Status> {
    let prefix = format!("{namespace}/");
    let inside = || -> Vec<_> {
        let (root, _) = resource.collection.latest();
        let from = machinery::Text::from(prefix.as_str());
        root.range(from..).take_while(|(path, _)| path.starts_with(&prefix)).map(|(_, s)| s.clone()).collect()
    };
    let held = |stored: &Stored| stored.meta.deleting && stored.meta.finalizers;
    delete::delete_as_server(context, resource, inside().into_iter().filter(|stored| !held(stored)).collect()).await?;
    Ok(inside().iter().map(|stored| stored.body.to_value(stored.revision)).collect())
}

/// Changes an object as the server, whatever happens to it meanwhile; an object that is being deleted and held by
/// nothing any more goes.
pub async fn change_as_server(
    context: &Context,
    resource: &Arc<Resource>,
    name: &str,
    subresource: &str,
    change: impl Fn(&mut Value),
) -> Result<(), Status> {
    let endpoint = if subresource == "finalize" { Subresource::Finalize } else { Subresource::Status };
    let path = format!("{}/{subresource}", path_of(resource, "", name));
    let request = server_request(resource, &http::Method::PUT, &path, endpoint);
    for _ in 0..limits::WRITE_RETRIES {
        let Some(current) = resource.collection.get(name) else { return Ok(()) };
        let old = current.body.to_value(current.revision);
        let mut next = old.clone();
        change(&mut next);
        request.track_update(Some(&old), &mut next, SERVER);
        let held = next.at(&["metadata", "finalizers"]).and_then(Value::as_array).is_some_and(|f| !f.is_empty());
        let releasable = resource.shipped().is_none_or(|s| s.allows_removal(&next));
        if current.meta.deleting && !held && releasable {
            let key = resource.key("", name);
            match context.objects.delete(&key, current.revision).await {
                Ok(_) => return Ok(()),
                Err(store::Refused::Conflict(_)) => continue,
                Err(store::Refused::Failed(error)) => return Err(Status::internal(error.to_string())),
            }
        }
        if write::store(context, &request, &next, Some(&current)).await?.is_ok() {
            return Ok(());
        }
    }
    Ok(())
}
