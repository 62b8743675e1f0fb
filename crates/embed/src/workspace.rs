//! A workspace: an API of its own.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use machinery::{Status, Value, json, value};
use server::{Caller, User};

use crate::error::Error;
use crate::manifests;
use crate::service::{Api, Running};

/// The name of the workspace at `/`.
pub const DEFAULT: &str = "default";

/// The objects that stand for workspaces.
const WORKSPACES: &str = "/apis/workspaces.pintle.dev/v1alpha1/workspaces";

/// The API of the objects with which tests disturb and observe a workspace.
pub(crate) const TESTING: &str = "testing.pintle.dev/v1alpha1";

/// The user agent of requests, and the field manager of objects that are applied.
pub(crate) const MANAGER: &str = "pintle";

const JSON: &str = "application/json";
/// Media type of discovery in one document.
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
pub(crate) const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// An API of its own: objects, CRDs, RBAC, controllers and revisions, apart from those of other workspaces.
///
/// It lives as long as the server, or until [`Workspace::delete`].
#[derive(Clone)]
pub struct Workspace {
    running: Arc<Running>,
    name: String,
}

impl Workspace {
    pub(crate) fn named(running: Arc<Running>, name: &str) -> Workspace {
        Workspace { running, name: name.to_owned() }
    }

    /// Creates a workspace with a specification.
    pub(crate) async fn create(running: &Arc<Running>, spec: Value) -> Result<Workspace, Error> {
        let name = format!("w{}", running.next_number());
        let home = Workspace::named(running.clone(), DEFAULT);
        home.post(&format!("/clusters/{name}"), &spec).await?;
        Ok(Workspace::named(running.clone(), &name))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The API, for a user who may do everything: a `tower::Service`, as `kube::Client::new` takes it.
    pub fn api(&self) -> Api {
        self.api_of(Caller::admin())
    }

    /// The API for another user, who may do what RBAC allows.
    pub fn api_as(&self, user: &str, groups: &[&str]) -> Api {
        let groups = groups.iter().map(|group| (*group).into()).collect();
        self.api_of(Caller::new(User { name: user.into(), groups, ..User::default() }))
    }

    fn api_of(&self, caller: Caller) -> Api {
        Api::new(self.running.clone(), caller, &self.prefix())
    }

    /// The prefix of the paths of the API.
    fn prefix(&self) -> String {
        if self.name == DEFAULT { String::new() } else { format!("/clusters/{}", self.name) }
    }

    /// A kubeconfig for programs outside of this process, as JSON.
    ///
    /// # Errors
    ///
    /// The server has no port.
    pub fn kubeconfig(&self) -> Result<String, Error> {
        self.running.kubeconfig(&self.name, &self.prefix())
    }

    /// A new workspace that begins with everything in this one.
    ///
    /// # Errors
    ///
    /// The server refuses it.
    pub async fn fork(&self) -> Result<Workspace, Error> {
        Workspace::create(&self.running, json!({"from": {"workspace": (self.name.as_str())}})).await
    }

    /// Resets the workspace to what it began as. Its watches end.
    ///
    /// # Errors
    ///
    /// The workspace does not exist any more.
    pub async fn reset(&self) -> Result<(), Error> {
        let mark = base::clock::uuid();
        // the reset is complete when the response arrives
        self.change(json!({"reset": mark})).await
    }

    /// Makes a template of the workspace: from now on it can only be read and forked.
    pub(crate) async fn seal(&self) -> Result<(), Error> {
        self.change(json!({"template": true})).await
    }

    async fn change(&self, spec: Value) -> Result<(), Error> {
        self.on_object(Method::PATCH, MERGE, Some(&json!({"spec": spec}))).await
    }

    /// A request for the object that stands for the workspace.
    async fn on_object(&self, method: Method, content_type: &str, body: Option<&Value>) -> Result<(), Error> {
        let home = Workspace::named(self.running.clone(), DEFAULT);
        let path = format!("{WORKSPACES}/{}", self.name);
        home.send(method, &path, content_type, body).await.map(drop)
    }

    /// Deletes the workspace, with all that is in it.
    ///
    /// # Errors
    ///
    /// It does not exist any more.
    pub async fn delete(self) -> Result<(), Error> {
        self.on_object(Method::DELETE, "", None).await
    }
}

/// Objects.
impl Workspace {
    /// Reads an object, or a list of objects.
    ///
    /// # Errors
    ///
    /// The API refuses it.
    pub async fn get(&self, path: &str) -> Result<Value, Error> {
        self.send(Method::GET, path, "", None).await
    }

    /// The discovery documents below `/api` or `/apis` in one, an APIGroupDiscoveryList.
    ///
    /// # Errors
    ///
    /// The API refuses it.
    pub async fn discovery(&self, root: &str) -> Result<Value, Error> {
        send(&self.api(), Method::GET, root, DISCOVERY, "", None).await
    }

    /// Creates an object in the collection at a path.
    ///
    /// # Errors
    ///
    /// The API refuses it.
    pub async fn post(&self, path: &str, object: &Value) -> Result<Value, Error> {
        self.send(Method::POST, path, JSON, Some(object)).await
    }

    /// Changes the object at a path by a merge patch.
    ///
    /// # Errors
    ///
    /// The API refuses it.
    pub async fn patch(&self, path: &str, patch: &Value) -> Result<Value, Error> {
        self.send(Method::PATCH, path, MERGE, Some(patch)).await
    }

    /// Deletes the object at a path. Its dependents are deleted after it.
    ///
    /// # Errors
    ///
    /// The API refuses it.
    pub async fn delete_object(&self, path: &str) -> Result<Value, Error> {
        self.send(Method::DELETE, path, JSON, Some(&json!({"propagationPolicy": "Background"}))).await
    }

    /// Applies manifests, server-side: files, and directories with everything below them. Namespaces and CRDs come first, in whichever
    /// order they are found. Returns the objects.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or the API refuses an object.
    pub async fn apply<P: AsRef<Path>>(&self, paths: impl IntoIterator<Item = P>) -> Result<Vec<Value>, Error> {
        let mut known = Kinds::default();
        let mut applied = vec![];
        for object in manifests::read(paths)? {
            applied.push(self.apply_as(&object, &mut known).await?);
        }
        Ok(applied)
    }

    /// Takes the fields of manifests over, of which the workspace has the objects already.
    pub(crate) async fn own(&self, manifests: &[Value]) {
        let mut known = Kinds::default();
        for manifest in manifests {
            // ignored: what today's rules refuse is served, and has no manager
            let _ = self.apply_as(manifest, &mut known).await;
        }
    }

    /// Applies an object, server-side.
    ///
    /// # Errors
    ///
    /// The API refuses it.
    pub async fn apply_object(&self, object: &Value) -> Result<Value, Error> {
        self.apply_as(object, &mut Kinds::default()).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Value, Error> {
        send(&self.api(), method, path, JSON, content_type, body).await
    }

    async fn apply_as(&self, object: &Value, known: &mut Kinds) -> Result<Value, Error> {
        let (version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
        let base = base_of(version);
        let key = (version.to_owned(), kind.to_owned());
        if !known.0.contains_key(&key) {
            known.learn(version, &self.get(&base).await.unwrap_or_default());
        }
        let missing =
            || Error::new(format!("no matches for kind {kind:?} in version {version:?}: apply its CRD first"));
        let (plural, is_namespaced) = known.0.get(&key).ok_or_else(missing)?;
        let namespace = match object.str_at(&["metadata", "namespace"]) {
            "" => "default",
            namespace => namespace,
        };
        let place = if *is_namespaced { format!("/namespaces/{namespace}") } else { String::new() };
        let name = object.str_at(&["metadata", "name"]);
        let path = format!("{base}{place}/{plural}/{name}?fieldManager={MANAGER}&force=true");
        self.send(Method::PATCH, &path, APPLY, Some(object)).await
    }
}

/// The plurals of kinds, and whether they are namespaced, by version and kind.
#[derive(Default)]
struct Kinds(HashMap<(String, String), (String, bool)>);

impl Kinds {
    /// Takes the kinds of a discovery document.
    fn learn(&mut self, version: &str, document: &Value) {
        for resource in document.items_at(&["resources"]) {
            let plural = resource.str_at(&["name"]);
            if !plural.contains('/') {
                let key = (version.to_owned(), resource.str_at(&["kind"]).to_owned());
                self.0.insert(key, (plural.to_owned(), resource.is_true_at(&["namespaced"])));
            }
        }
    }
}

/// The path of a version.
fn base_of(version: &str) -> String {
    if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") }
}

/// Faults and waits: the server needs [`crate::Builder::testing`].
impl Workspace {
    /// Makes requests or events of this workspace fail, with the `spec` of a `Fault`, such as `{"recipe": "lost-response"}`.
    ///
    /// # Errors
    ///
    /// The fault is invalid, or the server is not one for tests.
    pub async fn fault(&self, spec: Value) -> Result<Fault, Error> {
        let name = format!("fault-{}", self.running.next_number());
        self.testing("Fault", "faults", &name, spec).await?;
        Ok(Fault { workspace: self.clone(), name })
    }

    /// Returns when every watch has received everything and nothing has been written for the time `quiet`.
    ///
    /// # Errors
    ///
    /// The workspace has not settled within `timeout`: the error names the watches that are behind.
    pub async fn settle(&self, quiet: Duration, timeout: Duration) -> Result<(), Error> {
        let text = |duration: Duration| format!("{}ms", duration.as_millis());
        let spec = json!({"quiet": (text(quiet)), "timeout": (text(timeout))});
        let settled = self.testing("Settle", "settles", "settle", spec).await?;
        match settled.at(&["status", "settled"]) {
            Some(Value::Bool(true)) => Ok(()),
            _ => Err(Error::new(format!("not settled: {}", settled.str_at(&["status", "message"])))),
        }
    }

    /// What each client has done, and what of it looks suspicious: the `status` of a `Report`.
    ///
    /// # Errors
    ///
    /// The server is not one for tests.
    pub async fn report(&self) -> Result<Value, Error> {
        let report = self.testing("Report", "reports", "report", Value::object()).await?;
        Ok(report.get("status").cloned().unwrap_or_default())
    }

    /// Creates an object of the API of tests, such as a `Gate` among the `gates`. Returns it, with its status.
    ///
    /// # Errors
    ///
    /// The object is invalid, or the server is not one for tests.
    pub async fn testing(&self, kind: &str, plural: &str, name: &str, spec: Value) -> Result<Value, Error> {
        let object = json!({"apiVersion": TESTING, "kind": kind, "metadata": {"name": name}, "spec": spec});
        self.post(&format!("/apis/{TESTING}/{plural}"), &object).await
    }
}

/// A fault that is in effect.
#[derive(Clone)]
pub struct Fault {
    workspace: Workspace,
    name: String,
}

impl Fault {
    /// The number of requests and events that it has hit.
    ///
    /// # Errors
    ///
    /// The fault has been deleted.
    pub async fn hits(&self) -> Result<u64, Error> {
        let fault = self.workspace.get(&self.path()).await?;
        let hits = fault.int_at(&["status", "hits"]);
        Ok(u64::try_from(hits).unwrap_or_default())
    }

    /// Ends its effect.
    ///
    /// # Errors
    ///
    /// The fault has been deleted.
    pub async fn delete(self) -> Result<(), Error> {
        self.workspace.send(Method::DELETE, &self.path(), "", None).await.map(drop)
    }

    fn path(&self) -> String {
        format!("/apis/{TESTING}/faults/{}", self.name)
    }
}

/// Sends a request, and returns the object of its response.
async fn send(
    api: &Api,
    method: Method,
    path: &str,
    accept: &str,
    content_type: &str,
    body: Option<&Value>,
) -> Result<Value, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::new(error.to_string());
    let mut request = Request::builder().method(method).uri(path).header(ACCEPT, accept).header(USER_AGENT, MANAGER);
    if !content_type.is_empty() {
        request = request.header(CONTENT_TYPE, content_type);
    }
    let body = body.map_or_else(Bytes::new, |body| body.to_json().into());
    let request = request.body(body).map_err(|error| failed(&error))?;
    let response = api.send(request).await.map_err(|error| failed(&error))?;
    let code = response.status();
    let bytes = response.into_body().collect().await.map_err(|error| failed(&error))?.to_bytes();
    let object = value::decode(&bytes);
    if code.is_success() {
        return object.map_err(|_| Error::new(format!("the response to {path} is not JSON")));
    }
    let status = object.ok().filter(|object| object.str_at(&["kind"]) == "Status");
    let plain = || Status::untyped(code.as_u16(), String::from_utf8_lossy(&bytes).trim_end());
    Err(Error::of_status(&status.as_ref().map_or_else(plain, Status::from_value)))
}
