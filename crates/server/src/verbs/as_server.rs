//! Requests that the server itself and its controllers make, in the storage version, and edits that bypass admission.

use std::sync::Arc;

use base::request::WriteOptions;
use futures_util::future::BoxFuture;
use machinery::status::Reason;
use machinery::{Status, Value};
use resource::{Resource, Subresource, Version};

use super::change::{Change, Write};
use super::context::Context;
use super::request::Request;

/// The field manager and user of the server.
pub const SERVER: &str = "kube-apiserver";

/// The field manager of all controllers: in Kubernetes, they are part of kube-controller-manager.
pub const CONTROLLERS: &str = "kube-controller-manager";

impl Context {
    /// A request of the server itself, in the storage version. It is neither authorized nor admitted.
    pub fn server_request(
        &self,
        resource: &Arc<Resource>,
        method: &http::Method,
        path: &str,
        subresource: Subresource,
    ) -> Request {
        let request = self.controller_request(SERVER, resource, method, path).through(subresource);
        Request { default_manager: SERVER.into(), admitted: false, ..request }
    }

    /// A request that a controller makes as the user `user`, in the storage version.
    pub fn controller_request(
        &self,
        user: &str,
        resource: &Arc<Resource>,
        method: &http::Method,
        path: &str,
    ) -> Request {
        let authorized = self.loopback.request(user, method, path);
        Request::new(
            authorized,
            resource.clone(),
            resource.storage_version().clone(),
            Subresource::None,
            CONTROLLERS.into(),
        )
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

/// Edits the object of a request without admission, and retries if the object has changed. An object that is being deleted
/// and has no finalizers left is removed. If the object does not exist, nothing happens.
pub fn edit<'a>(context: &'a Context, request: Request, change: Change<'a>) -> BoxFuture<'a, Result<(), Status>> {
    Box::pin(async move {
        match Write::new(context, &request, change, &WriteOptions::default()).run().await {
            Err(status) if status.reason == Reason::NotFound => Ok(()),
            result => result.map(drop),
        }
    })
}

/// [`edit`] of a cluster-scoped object through a subresource. `manager` is [`SERVER`] or [`CONTROLLERS`].
pub async fn change_as(
    manager: &'static str,
    context: &Context,
    resource: &Arc<Resource>,
    name: &str,
    subresource: Subresource,
    change: impl Fn(&mut Value) + Send + Sync,
) -> Result<(), Status> {
    let path = format!("{}/{}", path_of(resource, "", name), subresource.as_str());
    let request = context.server_request(resource, &http::Method::PUT, &path, subresource);
    let change = |object: &mut Value| {
        change(object);
        Ok(())
    };
    edit(context, Request { default_manager: manager.into(), ..request }, Change::Edit(&change)).await
}
