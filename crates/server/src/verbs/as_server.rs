//! Requests that the server itself and its controllers make, in the storage version, and edits that bypass admission.

use std::sync::Arc;

use base::request::WriteOptions;
use futures_util::future::BoxFuture;
use machinery::status::Reason;
use machinery::{Result, Value};
use resource::{Resource, Subresource, Version};

use super::change::{Change, Write};
use super::context::Context;
use super::request::Request;

/// The field manager and user of the server.
pub const SERVER: &str = "kube-apiserver";

/// The field manager of all controllers: in Kubernetes, they are part of kube-controller-manager.
pub const CONTROLLERS: &str = "kube-controller-manager";

/// An object that the server itself or a controller writes, in the storage version; without a name, the collection.
///
/// `own` has the writes that pass the verbs. Edits, which are made inside of the pipeline too, are here.
#[derive(Clone)]
pub struct OwnObject<'a> {
    pub context: &'a Context,
    user: &'a str,
    resource: &'a Arc<Resource>,
    version: &'a Arc<Version>,
    namespace: &'a str,
    name: &'a str,
    subresource: Subresource,
    query: String,
    /// The field manager of writes whose query names none.
    manager: &'a str,
    admitted: bool,
}

impl Context {
    /// An object that the server itself writes. Its writes are neither authorized nor admitted.
    pub fn as_server<'a>(&'a self, resource: &'a Arc<Resource>, namespace: &'a str, name: &'a str) -> OwnObject<'a> {
        OwnObject { manager: SERVER, admitted: false, ..self.as_user(SERVER, resource, namespace, name) }
    }

    /// An object that a controller writes as the user `user`.
    pub fn as_user<'a>(
        &'a self,
        user: &'a str,
        resource: &'a Arc<Resource>,
        namespace: &'a str,
        name: &'a str,
    ) -> OwnObject<'a> {
        let (version, subresource, query) = (resource.storage_version(), Subresource::None, String::new());
        let (manager, admitted) = (CONTROLLERS, true);
        OwnObject { context: self, user, resource, version, namespace, name, subresource, query, manager, admitted }
    }

    /// A request of the server itself for a path in the storage version. It is neither authorized nor admitted.
    pub fn server_request(&self, resource: &Arc<Resource>, method: &http::Method, path: &str) -> Request {
        let request = self.controller_request(SERVER, resource, method, path);
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
        let version = resource.storage_version().clone();
        Request::new(authorized, resource.clone(), version, Subresource::None, CONTROLLERS.into())
    }
}

impl<'a> OwnObject<'a> {
    pub fn through(self, subresource: Subresource) -> OwnObject<'a> {
        OwnObject { subresource, ..self }
    }

    pub fn in_version(self, version: &'a Arc<Version>) -> OwnObject<'a> {
        OwnObject { version, ..self }
    }

    pub fn managed_by(self, manager: &'a str) -> OwnObject<'a> {
        OwnObject { manager, ..self }
    }

    pub fn with_query(self, query: String) -> OwnObject<'a> {
        OwnObject { query, ..self }
    }

    /// The collection of the object.
    pub fn collection(self) -> OwnObject<'a> {
        OwnObject { name: "", ..self }
    }

    /// The request of a write.
    pub fn request(&self, method: &http::Method) -> Request {
        let mut path = path_in(self.resource, self.version, self.namespace, self.name);
        for (mark, part) in [('/', self.subresource.as_str()), ('?', &self.query)] {
            if !part.is_empty() {
                path.push(mark);
                path.push_str(part);
            }
        }
        let authorized = self.context.loopback.request(self.user, method, &path);
        let (resource, version) = (self.resource.clone(), self.version.clone());
        let request = Request::new(authorized, resource, version, self.subresource, self.manager.into());
        Request { admitted: self.admitted, ..request }
    }

    /// Changes the object, see [`edit`]. An error of `change` is returned.
    pub async fn edit(&self, change: impl Fn(&mut Value) -> Result<()> + Send + Sync) -> Result<()> {
        edit(self.context, self.request(&http::Method::PUT), Change::Edit(&change)).await
    }

    /// Changes the object as [`OwnObject::edit`] does, by a function that does not fail.
    pub async fn change(&self, change: impl Fn(&mut Value) + Send + Sync) -> Result<()> {
        let change = |object: &mut Value| {
            change(object);
            Ok(())
        };
        self.edit(change).await
    }
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
pub fn edit<'a>(context: &'a Context, request: Request, change: Change<'a>) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        match Write::new(context, &request, change, &WriteOptions::default()).run().await {
            Err(status) if status.reason == Reason::NotFound => Ok(()),
            result => result.map(drop),
        }
    })
}
