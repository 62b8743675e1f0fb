//! The handler chain of every request: authentication, authorization, routing, body, verb, response.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use access::audit::Audit;
use access::authorization::{Authorized, Impersonation};
use base::clock::WorkspaceClock;
use base::metrics::METRICS;
use base::request::{Feature, FeatureGates, RequestInfo, Verb};
use base::task::Trace;
use base::{clock, deadline, trace};
use http::header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT};
use http::{HeaderMap, Method, Response, StatusCode};
use machinery::{Release, Text, Value};
use objects::Stored;

use super::arrival::Arrival;
use super::body::Body;
use super::captured_log::CapturedLogs;
use super::client::Client;
use super::health::Health;
use super::inflight::{InFlight, InFlightMax};
use super::interceptor::{Interceptor, ending_of};
use super::measure::Measured;
use super::negotiate::{self, Media};
use super::open::OpenCount;
use super::request_body::RequestBody;
use super::request_log::RequestLog;
use super::respond::{self, InternalCause, Reply, header, set};
use super::tapping::{copied, copied_response};
use super::warnings::prepend_warnings;
use super::websocket;
use super::zpages::ZPages;
use crate::discovery::Discovery;
use crate::limits;
use crate::openapi::OpenApi;
use crate::verbs::{Capacity, Context};

/// The state that all connections share.
pub struct Edge {
    parts: EdgeParts,
    pub discovery: Discovery,
    pub openapi: OpenApi,
    /// The document of `/version`.
    pub version: Value,
    pub pages: ZPages,
    /// Media types of requests and responses.
    pub served: &'static [Media],
    /// Whether large responses are compressed.
    pub compresses: bool,
    /// Whether HTTP/2 connections end after a response to a client without credentials.
    pub closes_anonymous: bool,
    pub inflight: InFlight,
    pub panics: AtomicU64,
    pub impersonation: Impersonation,
}

impl std::ops::Deref for Edge {
    type Target = EdgeParts;

    fn deref(&self) -> &EdgeParts {
        &self.parts
    }
}

/// How the APIs of a server serve requests.
#[derive(Clone)]
pub struct RequestConfig {
    pub timeout: std::time::Duration,
    pub inflight_max: InFlightMax,
    /// The minor version of the oldest release to be compatible with.
    pub compatible_minor: u32,
    /// The audit policy and backends.
    pub audit: Arc<Audit>,
}

impl Default for RequestConfig {
    fn default() -> RequestConfig {
        RequestConfig {
            timeout: limits::REQUEST_TIMEOUT,
            inflight_max: InFlightMax::default(),
            compatible_minor: Release::default().minor() - 1,
            audit: Arc::default(),
        }
    }
}

/// The parts of an [`Edge`] that other components share with it, and its configuration.
pub struct EdgeParts {
    pub context: Arc<Context>,
    pub health: Arc<Health>,
    /// Open connections and WebSockets, which a shutdown waits for.
    pub open: Arc<OpenCount>,
    pub stop: tokio::sync::watch::Receiver<bool>,
    pub config: RequestConfig,
    pub flags: BTreeMap<String, String>,
    /// Intercepts authorized requests, if present.
    pub interceptor: Option<Arc<dyn Interceptor>>,
    /// The clock of the API, unless it is that of the machine.
    pub clock: Option<Arc<WorkspaceClock>>,
    /// The limit of what the API holds, if it has one.
    pub capacity: Option<Arc<dyn Capacity>>,
    /// The captured logs of containers, if the objects are those of a capture.
    pub logs: Option<Arc<dyn CapturedLogs>>,
    /// The prefix of the paths of the API, such as `/clusters/NAME`.
    pub prefix: Text,
}

pub type HttpResponse = Response<Body>;

/// Marks a write by this process that needs only the status and the warnings of the response: the object is not
/// encoded.
#[derive(Clone, Copy)]
pub struct VerdictOnly;

/// Replaces the stored object in a dry run of this process.
#[derive(Clone)]
pub struct InPlaceOfStored(pub Arc<Stored>);

/// Marks a response that kube-apiserver sends before the step that adds `Cache-Control`.
#[derive(Clone, Copy)]
pub(super) struct Early;

impl EdgeParts {
    /// The parts of an API without limits and observers.
    pub fn new(
        context: Arc<Context>,
        health: Arc<Health>,
        open: Arc<OpenCount>,
        stop: tokio::sync::watch::Receiver<bool>,
    ) -> EdgeParts {
        EdgeParts {
            config: RequestConfig {
                compatible_minor: context.registry.release().minor() - 1,
                ..RequestConfig::default()
            },
            context,
            health,
            open,
            stop,
            flags: BTreeMap::new(),
            interceptor: None,
            clock: None,
            capacity: None,
            logs: None,
            prefix: Text::default(),
        }
    }
}

impl Edge {
    pub fn new(mut parts: EdgeParts) -> Edge {
        let (registry, aggregation) = (parts.context.registry.clone(), parts.context.aggregation.clone());
        let gates = registry.gates().clone();
        publish(&gates);
        let version = super::health::version(registry.release(), parts.config.compatible_minor);
        super::measure::version(&version);
        Edge {
            version,
            pages: ZPages::new(&gates, registry.release(), std::mem::take(&mut parts.flags)),
            discovery: Discovery::new(registry.clone(), aggregation.clone()),
            openapi: OpenApi::new(registry, aggregation),
            served: Media::served(gates.has(Feature::Cbor)),
            compresses: gates.has(Feature::Compression),
            closes_anonymous: gates.has(Feature::ClosingAnonymous),
            inflight: InFlight::new(parts.config.inflight_max),
            panics: AtomicU64::new(0),
            impersonation: Impersonation::new(gates.has(Feature::ConstrainedImpersonation)),
            parts,
        }
    }

    /// Whether this is the API of a workspace, not that of the server itself.
    pub(super) fn is_workspace(&self) -> bool {
        !self.prefix.is_empty()
    }

    /// Handles a request in the task of the caller. If the future is dropped, a task of its own completes the
    /// request. A response is always returned, even if a handler panics.
    pub async fn serve(self: Arc<Self>, client: Arc<Client>, request: http::Request<RequestBody>) -> HttpResponse {
        let (audit_id, head) = (audit_id_of(&request), *request.method() == Method::HEAD);
        let (edge, id) = (self.clone(), audit_id.clone());
        let responded = Box::pin(async move { edge.respond(&client, &id, request).await });
        let responded = base::task::finish_caught("request", self.clock.clone(), responded).await;
        let response = responded.unwrap_or_else(|error| panicked(&self.panics, &audit_id, &error));
        finished(response, &audit_id, head)
    }

    /// The path of a request below the prefix of this API.
    fn path_below<'p>(&self, path: &'p str) -> &'p str {
        match path.strip_prefix(self.prefix.as_str()).unwrap_or(path) {
            "" => "/",
            path => path,
        }
    }

    async fn respond(
        self: Arc<Self>,
        client: &Client,
        audit_id: &str,
        request: http::Request<RequestBody>,
    ) -> HttpResponse {
        let (mut parts, body) = request.into_parts();
        let path = self.path_below(parts.uri.path());
        let info = RequestInfo::parse(&parts.method, path, parts.uri.query().unwrap_or_default());
        let measured = Measured::begin(&self.context, &info, &parts.headers);
        let mut reply = reply(self.served, &info, &parts.headers);
        reply.gzip &= self.compresses;
        reply.without_object = parts.extensions.get::<VerdictOnly>().is_some();
        reply.stand_in = parts.extensions.remove::<InPlaceOfStored>().map(|InPlaceOfStored(stored)| stored);
        reply.observation = self.observe(&info, &parts.headers);
        let tap = self.tap(&info, path, &parts);
        let body = copied(body, tap.as_ref());
        // a tap must be able to read its copy
        reply.gzip &= tap.is_none();
        let received = clock::machine_micros();
        let watching = info.verb == Verb::Watch;
        let mut log = RequestLog::begin(&parts, client.address, watching);
        let arrival = Arrival { client, parts: &parts, audit_id, received };
        let mut response = match self.authorize_request(&arrival, info, &mut reply).await {
            Err(refusal) => refusal,
            Ok(entry) => {
                log.user = entry.authorized.user.name.clone();
                let until = (!watching).then_some(entry.until);
                match self.context.aggregation.find(&entry.authorized.info.path) {
                    // the response of an aggregated API server is streamed unchanged
                    Some(remote) => {
                        let (address, authorized) = (client.address, &entry.authorized);
                        let relayed = Box::pin(self.relay(&remote, authorized, &mut parts, address, audit_id, body));
                        let relayed = in_time(until, relayed, reply.trace_context).await;
                        relayed.unwrap_or_else(|_| out_of_time())
                    }
                    None => {
                        let response =
                            self.clone().handle_in_time(entry.authorized, until, &parts.headers, body, &mut reply);
                        let response = response.await;
                        if watching {
                            self.upgraded(response, &mut parts)
                        } else {
                            entry.slot.kept(self.context.flow.as_deref(), response)
                        }
                    }
                }
            }
        };
        record_end(reply, &mut response);
        measured.end(&mut response);
        if let Some(InternalCause(cause)) = response.extensions().get() {
            tracing::info!(cause, audit_id, "request failed");
        }
        log.end(response.status(), audit_id);
        copied_response(response, tap)
    }

    /// Handles an authorized request for this API, until its deadline.
    async fn handle_in_time(
        self: Arc<Self>,
        authorized: Authorized,
        until: Option<tokio::time::Instant>,
        headers: &HeaderMap,
        body: RequestBody,
        reply: &mut Reply,
    ) -> HttpResponse {
        let trace_context = reply.trace_context;
        let handled = match &self.interceptor {
            Some(interceptor) if authorized.info.is_resource => {
                let interceptor = interceptor.clone();
                let handled = Box::pin(self.clone().handle_intercepted(interceptor, authorized, headers, body, reply));
                in_time(until, handled, trace_context).await
            }
            _ => in_time(until, Box::pin(self.clone().handle(authorized, headers, body, reply)), trace_context).await,
        };
        handled.unwrap_or_else(|_| out_of_time())
    }

    /// Upgrades a successful watch to a WebSocket if the client requests it.
    fn upgraded(&self, response: HttpResponse, parts: &mut http::request::Parts) -> HttpResponse {
        if response.status() != StatusCode::OK || !websocket::is_upgrade_request(&parts.headers) {
            return response;
        }
        websocket::upgrade(response, &parts.headers, parts.extensions.remove(), self.open.enter())
    }
}

fn publish(gates: &FeatureGates) {
    gates.states().for_each(|(name, stage, enabled)| METRICS.set_feature(name, stage.as_str(), enabled));
}

/// Awaits a response within the trace of its request, or fails once `until` has passed.
async fn in_time(
    until: Option<tokio::time::Instant>,
    response: impl Future<Output = HttpResponse>,
    trace_context: Option<Trace>,
) -> Result<HttpResponse, tokio::time::error::Elapsed> {
    let response = trace::at(trace_context, response);
    match until {
        Some(until) => deadline::within(until, response).await,
        None => Ok(response.await),
    }
}

/// The response at the deadline. As in kube-apiserver it has one form, whatever the client accepts.
pub(super) fn out_of_time() -> HttpResponse {
    let message = "Timeout: request did not complete within the allotted timeout";
    let status = format!(
        r#"{{"metadata":{{}},"status":"Failure","message":"{message}","reason":"Timeout","details":{{}},"code":504}}"#
    );
    let mut response = respond::response(StatusCode::GATEWAY_TIMEOUT, Body::Full(format!("{status}\n").into()));
    set(response.headers_mut(), "content-type", "text/plain; charset=utf-8");
    response
}

/// The id of a request in audit events and in the log, which the client may choose.
fn audit_id_of(request: &http::Request<RequestBody>) -> String {
    let given = header(request.headers(), "audit-id");
    if given.is_empty() { clock::uuid() } else { given.to_owned() }
}

/// The response to a request whose handler has panicked. It is counted and logged; other requests are not affected.
fn panicked(panics: &AtomicU64, audit_id: &str, error: &str) -> HttpResponse {
    panics.fetch_add(1, Ordering::Relaxed);
    METRICS.request_panics.inc();
    tracing::error!(error, audit_id, "request handler panicked");
    respond::text(500, "This request caused apiserver to panic. Look in the logs for details.\n")
}

/// Records the response for the audit log, the trace and the interceptor, and adds the headers that were collected meanwhile.
fn record_end(reply: Reply, response: &mut HttpResponse) {
    prepend_warnings(&reply.warnings, response.headers_mut());
    if reply.closes {
        set(response.headers_mut(), "connection", "close");
    }
    reply.audit(|audit| audit.responded(response.status().as_u16()));
    if let Some(mut span) = reply.span {
        span.set_status(response.status().as_u16());
    }
    if let Some(observation) = reply.observation {
        observation.ended(&ending_of(response));
    }
    if let Some(classification) = reply.classification {
        response.headers_mut().insert("x-kubernetes-pf-flowschema-uid", classification.schema);
        response.headers_mut().insert("x-kubernetes-pf-prioritylevel-uid", classification.level);
    }
}

/// Adds the headers that every response has.
fn finished(mut response: HttpResponse, audit_id: &str, head: bool) -> HttpResponse {
    let is_early = response.extensions().get::<Early>().is_some();
    let headers = response.headers_mut();
    set(headers, "audit-id", audit_id);
    if !headers.contains_key("cache-control") && !is_early {
        set(headers, "cache-control", "no-cache, private");
    }
    if head {
        *response.body_mut() = Body::Empty;
    }
    response
}

fn reply(served: &'static [Media], info: &RequestInfo, headers: &HeaderMap) -> Reply {
    let accept = header(headers, ACCEPT);
    let accepted = negotiate::negotiate(served, accept);
    let agent = header(headers, USER_AGENT);
    let is_for_people = ["curl/", "Wget/", "Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix));
    let pretty = match info.query.get("pretty") {
        Some("true" | "1") => true,
        Some("false" | "0") => false,
        _ => is_for_people,
    };
    Reply {
        served,
        named: negotiate::lists(accept, &served.iter().map(|media| media.as_str()).collect::<Vec<_>>()),
        accepted,
        plain: negotiate::negotiate_whole(served, accept),
        aggregated: negotiate::aggregated(served, accept),
        pretty,
        warnings: vec![],
        audit_context: None,
        trace_context: None,
        span: None,
        classification: None,
        closes: false,
        lag: None,
        observation: None,
        without_object: false,
        stand_in: None,
        gzip: header(headers, ACCEPT_ENCODING).split(',').any(|e| e.trim() == "gzip"),
    }
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_TYPE;
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn panic_is_logged_and_counted() {
        let panics = AtomicU64::new(0);
        let failing = Box::pin(async { panic!("a test panics") });
        let completed = base::task::finish_caught("request", None, failing).await;
        let response = completed.unwrap_or_else(|error| panicked(&panics, "b", &error));
        assert_eq!((response.status(), panics.load(Ordering::Relaxed)), (StatusCode::INTERNAL_SERVER_ERROR, 1));
        assert_eq!(response.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "This request caused apiserver to panic. Look in the logs for details.\n");
    }
}
