//! Authorized requests: a document at a non-resource path, or the verb of a resource.

use std::pin::pin;
use std::sync::Arc;

use access::authorization::Authorized;
use base::request::Verb;
use base::trace::{self, Kind};
use http::header::{ACCEPT, USER_AGENT};
use http::{HeaderMap, Method};
use machinery::Text;

use super::chain::{Edge, HttpResponse};
use super::documents::pretty;
use super::measure;
use super::perform::{is_served, read};
use super::request_body::RequestBody;
use super::respond::{self, Reply, header};
use super::route::NotServed;
use super::warnings::{add_warnings, append_warnings};
use crate::verbs::{self, Format, Request, Warnings};

/// Only workspaces have it: what is loaded is as powerful as an administrator of the API, and an owner is that in a workspace alone.
const LOAD_PATH: &str = "/storage/objects";

impl Edge {
    /// Handles an authorized request and returns its response, errors included.
    pub(super) async fn handle(
        self: Arc<Self>,
        authorized: Authorized,
        headers: &HeaderMap,
        body: RequestBody,
        reply: &Reply,
    ) -> HttpResponse {
        if !authorized.info.is_resource {
            if let Some(response) = self.issuer_document(&authorized.info, headers, reply).await {
                return response;
            }
            if authorized.info.path == LOAD_PATH && authorized.info.method == Method::POST && self.is_workspace() {
                let document = read(headers, body, Format::Json).await;
                let loaded = match document {
                    Ok(document) => verbs::load(&self.context, self.capacity.as_deref(), &document).await,
                    Err(refused) => Err(refused),
                };
                return loaded.map_or_else(|status| reply.status(&status), |done| pretty(&done, reply));
            }
            self.catch_up_for(&authorized.info.path).await;
            return self.document(&authorized.info, headers, reply).await;
        }
        let route = match self.route_now(&authorized.info).await {
            Ok(route) => route,
            Err(NotServed::Plain) => return respond::text(404, "404 page not found\n"),
            Err(NotServed::Status(status, warning)) => {
                let mut response = reply.status(&status);
                append_warnings(warning.as_slice(), response.headers_mut());
                return response;
            }
        };
        let deprecation = route.version.deprecation.clone();
        let manager = default_manager(headers);
        let completion = self.interceptor.as_ref().and_then(|interceptor| interceptor.completion(&authorized.info));
        let mut request = Request::new(authorized, route.resource, route.version, route.subresource, manager);
        request.wants_object = !reply.without_object;
        if reply.without_object {
            request.warnings = Warnings::whole();
        }
        request.stand_in.clone_from(&reply.stand_in);
        let request = request.posted_to(route.posted_to).audited(reply.audit_context.clone()).lagging(reply.lag);
        let request = Arc::new(request.completed_by(completion).limited_by(self.capacity.clone()));
        let is_routed = !request.resource.serving.routes || reply.named && is_served(self.served, &request, headers);
        if let Some(text) = deprecation.filter(|_| is_routed) {
            measure::deprecated(&self.context, &request);
            reply.audit(|audit| audit.annotate("k8s.io/deprecated", "true"));
            request.warn(text);
        }
        let fields = || handler_fields(&request, headers);
        // a future is as large as all futures that it may await; pinned, it is not moved into those that await it
        let performed = pin!(self.perform(request.clone(), headers, body, reply));
        let result = trace::span(handler_name(&request), Kind::Internal, fields, performed).await;
        let mut response = result.unwrap_or_else(|status| reply.status(&status));
        add_warnings(&request, response.headers_mut());
        response
    }
}

/// The span name of a verb, as kube-apiserver's handlers name it.
fn handler_name(request: &Request) -> &'static str {
    match request.authorized.info.verb {
        Verb::Get => "Get",
        Verb::List | Verb::Watch => "List",
        Verb::Create => "Create",
        Verb::Update => "Update",
        Verb::Patch => "Patch",
        Verb::Delete | Verb::DeleteCollection => "Delete",
        Verb::Proxy | Verb::None => "Connect",
    }
}

/// The attributes of a handler's span.
fn handler_fields(request: &Request, headers: &HeaderMap) -> trace::Attributes {
    let info = &request.authorized.info;
    let header = |name| header(headers, name);
    trace::attributes([
        ("accept", header(ACCEPT)),
        ("api-group", &info.group),
        ("api-version", &info.version),
        ("name", &info.name),
        ("subresource", &info.subresource),
        ("namespace", &info.namespace),
        ("resource", &info.resource),
        ("url", &info.path),
        ("user-agent", header(USER_AGENT)),
        ("verb", info.verb.as_str()),
    ])
}

/// The fieldManager of requests that do not name one: the User-Agent up to the first slash, without control characters,
/// at most 128 bytes.
fn default_manager(headers: &HeaderMap) -> Text {
    let agent = headers.get(USER_AGENT).map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned()).unwrap_or_default();
    let name: String = agent.split('/').next().unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
    match &name[..name.floor_char_boundary(base::limits::FIELD_MANAGER_BYTES_MAX)] {
        "" => Text::new_static("unknown"),
        name => Text::from(name),
    }
}
