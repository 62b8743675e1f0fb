//! What the server writes in its own name, in the storage version and past admission: small changes, and namespaces
//! emptied.

use std::sync::Arc;

use machinery::{Status, Text, Value};

use super::{Context, Request, Subresource, delete, write};
use crate::authorization::Authorized;
use crate::limits;
use crate::objects::Stored;
use crate::resource::{Resource, Version};

/// The field manager and user of the server.
pub const SERVER: &str = "kube-apiserver";

/// The field manager of controllers, whatever their user: the program that they are part of upstream.
pub const CONTROLLERS: &str = "kube-controller-manager";

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
        default_manager: CONTROLLERS.into(),
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

/// Deletes what a namespace has of a resource; answers what is left.
pub async fn empty_namespace(
    context: &Context,
    resource: &Arc<Resource>,
    namespace: &str,
) -> Result<Vec<Value>, Status> {
    let prefix = format!("{namespace}/");
    let inside = || -> Vec<_> {
        let (root, _) = resource.collection.latest();
        let from = Text::from(prefix.as_str());
        root.range(from..).take_while(|(path, _)| path.starts_with(&prefix)).map(|(_, s)| s.clone()).collect()
    };
    let held = |stored: &Stored| stored.meta.deleting && stored.meta.finalizers;
    delete::delete_as_server(context, resource, inside().into_iter().filter(|stored| !held(stored)).collect()).await?;
    Ok(inside().iter().map(|stored| stored.body.to_value(stored.revision)).collect())
}

/// Changes an object past admission, whatever happens to it meanwhile; an object that is being deleted and held by
/// nothing any more goes. `manager` is [`SERVER`] or [`CONTROLLERS`]. An object that changed under every attempt is a
/// conflict.
pub async fn change_as(
    manager: &str,
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
        request.track_update(Some(&old), &mut next, manager).await;
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
    Err(resource.modified(name))
}
