//! One request that creates a workspace and returns a kubeconfig: `POST /clusters/NAME`, with the specification as its body.
//!
//! The same client's request to `default` creates the workspace, so it is authorized, admitted and audited like any
//! other. The body is read only after that authorization, too.

use std::sync::Arc;

use base64::Engine as _;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use machinery::status::Reason;
use machinery::{Result, Status, Value, json};

use super::definition::{GROUP, PLURAL};
use super::manager::Workspaces;
use crate::http::{Body, Client, HttpResponse, RequestBody, header, response};
use crate::limits;

impl Workspaces {
    /// Creates a workspace, and returns its kubeconfig once it can be used, or the response of the refused creation.
    pub(super) async fn create_quickly(
        &self,
        client: Arc<Client>,
        request: Request<RequestBody>,
        name: &str,
    ) -> Result<HttpResponse> {
        let home = self.home().ok_or_else(super::gate::stopping)?;
        let (mut parts, body) = request.into_parts();
        let named = name.to_owned();
        let body = body.made(limits::WORKSPACE_SPEC_BYTES, move |sent| {
            let workspace = json!({"apiVersion": (format!("{GROUP}/v1alpha1")), "kind": "Workspace",
                "metadata": {"name": named}, "spec": (specification(sent)?)});
            Ok(workspace.to_json().into())
        });
        let user = credentials(&parts.headers);
        // strict, because programs do not read warnings, and a misspelt limit would go unnoticed
        let path = format!("/apis/{GROUP}/v1alpha1/{PLURAL}?fieldValidation=Strict");
        parts.uri = path.parse().map_err(|_| Status::internal("no URI"))?;
        parts.headers.remove(CONTENT_LENGTH);
        parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let created = home.serve(client, Request::from_parts(parts, body)).await;
        if created.status() != StatusCode::CREATED {
            return Ok(created);
        }
        // unless the store is shared, the workspace exists before the creation returns
        let workspace = self.workspace(name);
        if let Some(workspace) = &workspace {
            // wait for the copy, for a limited time; later requests wait for it, too
            workspace.settled(limits::WORKSPACE_COPY_WAIT).await;
            // the content may still be written: wait for that, too, before responding
            let _ = tokio::time::timeout(limits::WORKSPACE_COPY_WAIT, workspace.begun()).await;
        }
        if let Some(why) = workspace.as_ref().and_then(|workspace| workspace.failure()) {
            return Err(Status::new(Reason::Invalid, format!("workspace {name:?} has failed: {why}")));
        }
        // when a workspace expires, its name may be taken again; the uid keeps this client out of the next one
        let ends = workspace.filter(|workspace| workspace.spec().end.is_some());
        let uid = ends.map(|workspace| format!(".{}", workspace.uid)).unwrap_or_default();
        let url = self.url_of(name) + &uid;
        let kubeconfig = self.kubeconfig(name, url, user).to_json();
        let mut response = response(StatusCode::CREATED, Body::Full(kubeconfig.into()));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(response)
    }

    fn kubeconfig(&self, name: &str, url: String, user: Value) -> Value {
        let mut cluster = json!({"server": url});
        let host = self.host_of(name);
        cluster.put_text(&["tls-server-name"], &host);
        let authority = &self.parts.api.controllers.root_authority;
        if !authority.is_empty() {
            let encoded = base64::engine::general_purpose::STANDARD.encode(authority);
            cluster.set_at(&["certificate-authority-data"], Value::from(encoded));
        }
        kubeconfig(name, cluster, user)
    }
}

/// A kubeconfig with one cluster, one user and one context, all called `name`.
pub fn kubeconfig(name: &str, cluster: Value, user: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}], "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}]
    })
}

/// The specification in the body of a request, which may be empty.
fn specification(sent: &[u8]) -> Result<Value> {
    if sent.is_empty() {
        return Ok(Value::object());
    }
    let spec = machinery::value::decode(sent).ok().filter(|spec| spec.as_object().is_some());
    spec.ok_or_else(|| Status::bad_request("the body is not a JSON object: it is the spec of the workspace, or empty"))
}

/// The user of a kubeconfig: has the token of the request, if there is one. A client certificate would need its key,
/// which the server does not know.
fn credentials(headers: &HeaderMap) -> Value {
    header(headers, AUTHORIZATION).strip_prefix("Bearer ").map_or_else(Value::object, |token| json!({"token": token}))
}
