//! The path of every request, in order: who, may they, what, body, verb, answer (api-machinery 1.3).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT};
use http::{HeaderMap, Method, Response, StatusCode};
use hyper::body::Incoming;
use machinery::status::{Details, Reason};
use machinery::{Status, Text};

use super::body::Body;
use super::health::Health;
use super::inflight::{InFlight, InFlightMax, Permit, Running};
use super::listener::Client;
use super::measure::{self, Measured};
use super::negotiate::{self, Media};
use super::open::Open;
use super::respond::{self, Reply, set};
use super::route::NotServed;
use super::warnings::{add_warnings, append_warnings, prepend_warnings};
use super::websocket;
use crate::audit::{self, Audit, AuditContext, Layer};
use crate::authentication::{self, Credentials, Remarks};
use crate::authorization::{Authorized, Impersonation, Refusal, authorize, escape};
use crate::discovery::Discovery;
use crate::flow::Seat;
use crate::metrics::{AttemptResult, METRICS};
use crate::openapi::OpenApi;
use crate::request::{FeatureGates, RequestInfo, User, Verb};
use crate::trace::{self, Kind};
use crate::verbs::{Context, Request};
use crate::{clock, deadline, limits, wording};

/// The server as its connections see it.
pub struct Edge {
    pub context: Arc<Context>,
    pub discovery: Discovery,
    pub openapi: OpenApi,
    pub health: Arc<Health>,
    pub stop: tokio::sync::watch::Receiver<bool>,
    pub request_timeout: std::time::Duration,
    /// The media types of requests and answers.
    pub served: &'static [Media],
    pub inflight: InFlight,
    /// What has to end before the server has stopped.
    pub open: Arc<Open>,
    pub panics: AtomicU64,
    pub audit: Arc<Audit>,
    pub impersonation: Impersonation,
}

pub type Answer = Response<Body>;

impl Edge {
    pub fn new(
        context: Arc<Context>,
        (health, open): (Arc<Health>, Arc<Open>),
        stop: tokio::sync::watch::Receiver<bool>,
        request_timeout: std::time::Duration,
        inflight_max: InFlightMax,
        gates: FeatureGates,
        audit: Arc<Audit>,
    ) -> Edge {
        let registry = context.registry.clone();
        Edge {
            discovery: Discovery::new(registry.clone(), context.aggregation.clone()),
            openapi: OpenApi::new(registry),
            health,
            context,
            stop,
            request_timeout,
            served: served(gates),
            inflight: InFlight::new(inflight_max),
            open,
            panics: AtomicU64::new(0),
            audit,
            impersonation: impersonation(gates),
        }
    }

    /// Answers a request, whatever happens.
    pub async fn serve(self: Arc<Self>, client: Arc<Client>, request: http::Request<Incoming>) -> Answer {
        let audit_id = request.headers().get("audit-id").and_then(|v| v.to_str().ok()).map(str::to_owned);
        let audit_id = audit_id.filter(|id| !id.is_empty()).unwrap_or_else(clock::uuid);
        let head = *request.method() == Method::HEAD;
        let (edge, id) = (self.clone(), audit_id.clone());
        let mut response =
            survive(&self.panics, &audit_id, async move { edge.answer(&client, &id, request).await }).await;
        let headers = response.headers_mut();
        set(headers, "audit-id", &audit_id);
        if !headers.contains_key("cache-control") {
            set(headers, "cache-control", "no-cache, private");
        }
        if head {
            *response.body_mut() = Body::Empty;
        }
        response
    }

    async fn answer(self: Arc<Self>, client: &Client, audit_id: &str, request: http::Request<Incoming>) -> Answer {
        let (mut parts, body) = request.into_parts();
        let info = RequestInfo::parse(&parts.method, parts.uri.path(), parts.uri.query().unwrap_or_default());
        let measured = Measured::begin(&self.context.registry, &info, &parts.headers);
        let mut reply = reply(self.served, &info, &parts.headers);
        let received = clock::now_micros();
        let watching = info.verb == Verb::Watch;
        let mut answer = match self.let_in(client, info, &parts, (audit_id, received), &mut reply).await {
            Err(refusal) => refusal,
            Ok(entry) => {
                let until = (!watching).then_some(entry.until);
                match self.context.aggregation.find(&entry.authorized.info.path) {
                    // what it sends goes out as it comes
                    Some(remote) => {
                        let origin = (client.address, audit_id);
                        let relayed = Box::pin(self.relay(&remote, &entry.authorized, &parts, origin, body));
                        in_time(until, relayed, &reply).await
                    }
                    None => {
                        let handled = Box::pin(self.clone().handle(entry.authorized, &parts.headers, body, &reply));
                        let answer = in_time(until, handled, &reply).await;
                        if watching { self.upgraded(answer, &mut parts) } else { answer }
                    }
                }
            }
        };
        prepend_warnings(&reply.warnings, answer.headers_mut());
        if reply.closes {
            set(answer.headers_mut(), "connection", "close");
        }
        if let Some(audit_context) = &reply.audit_context {
            audit_context.code(answer.status().as_u16());
        }
        if let Some(span) = &mut reply.span {
            span.answered(answer.status().as_u16());
        }
        measured.end(&mut answer);
        if let Some(sorted) = reply.sorted {
            answer.headers_mut().insert("x-kubernetes-pf-flowschema-uid", sorted.schema);
            answer.headers_mut().insert("x-kubernetes-pf-prioritylevel-uid", sorted.level);
        }
        answer
    }

    /// A watch over a WebSocket, if it was asked for so.
    fn upgraded(&self, answer: Answer, parts: &mut http::request::Parts) -> Answer {
        match answer.status() == StatusCode::OK && websocket::is_asked(&parts.headers) {
            true => websocket::upgrade(answer, &parts.headers, parts.extensions.remove(), self.open.enter()),
            false => answer,
        }
    }

    /// Finds out who asks, as whom, and whether there is a place for him and he may; the error is the answer.
    async fn let_in<'a>(
        &'a self,
        client: &Client,
        info: RequestInfo,
        parts: &http::request::Parts,
        (audit_id, received): (&str, i64),
        reply: &mut Reply,
    ) -> Result<Entry<'a>, Answer> {
        if *self.stop.borrow() && info.verb != Verb::Watch {
            let message = "apiserver is shutting down";
            let details = Details { retry_after_seconds: 1, ..Details::default() };
            return Err(reply.status(&Status::new(Reason::ServiceUnavailable, message).with_details(details)));
        }
        let timeout = self.timeout(&info).map_err(|status| reply.status(&status))?;
        // webhooks may have to be asked, so that this takes its share of the time
        let began = clock::instant();
        let until = began + timeout;
        let mut remarks = Remarks::default();
        let known = tokio::time::timeout_at(until, self.identify(client, &parts.headers, &info, &mut remarks)).await;
        let known = known.map_err(|_| out_of_time(reply))?;
        let authenticated = began.elapsed();
        if self.audit.is_on() {
            reply.audit_context = self.record(client, &info, parts, known.as_ref().ok(), (audit_id, received));
        }
        reply.warnings = remarks.warnings;
        if let Some(audit_context) = &reply.audit_context {
            remarks.annotations.into_iter().for_each(|(key, text)| audit_context.annotate(key, text));
            audit_context.took(Layer::Authentication, authenticated);
        }
        reply.closes = parts.version == http::Version::HTTP_2 && known.as_ref().map_or(true, User::is_anonymous);
        let user = match known {
            Ok(user) => user,
            Err(status) => {
                let answer = reply.status(&status);
                if let Some(audit_context) = &reply.audit_context {
                    audit_context.message(&authentication::attempted(&client.certificate, &parts.headers));
                }
                return Err(answer);
            }
        };
        let of_span = || span_of(client, &info, parts, audit_id);
        (reply.span, reply.place) = trace::of_request(&parts.headers, is_believed(&user), received, of_span);
        let place = reply.place;
        let acting = self.impersonation.act(&self.context.authorizer, &user, &info, &parts.headers);
        let acting = tokio::time::timeout_at(until, trace::at(place, acting)).await.map_err(|_| out_of_time(reply))?;
        let acting = acting.map_err(|status| reply.status(&status))?;
        if let (Some(audit_context), Some(acting)) = (&reply.audit_context, &acting) {
            audit_context.impersonated(&acting.user, acting.constraint);
        }
        let acting = acting.map_or(user, |acting| acting.user);
        let waits = clock::instant();
        let seat = self.admit(&acting, &info, timeout, reply).await?;
        let asks = clock::instant();
        let judged = tokio::time::timeout_at(until, trace::at(place, self.authorize(acting, info))).await;
        let judged = judged.map_err(|_| out_of_time(reply))?;
        if let Some(audit_context) = &reply.audit_context {
            audit_context.took(Layer::Queue, asks - waits);
            audit_context.took(Layer::Authorization, asks.elapsed());
            let (decision, reason) = match &judged {
                Ok(authorized) => ("allow", authorized.decision.reason()),
                Err(Refusal::Forbidden { reason, .. }) => ("forbid", reason.clone()),
                Err(Refusal::Failed(_)) => ("", "internal error".to_owned()),
            };
            if !decision.is_empty() {
                audit_context.annotate("authorization.k8s.io/decision", decision);
            }
            audit_context.annotate("authorization.k8s.io/reason", reason);
        }
        let authorized = judged.map_err(|refusal| match refusal {
            Refusal::Forbidden { status, .. } => reply.status(&status),
            Refusal::Failed(why) => {
                let uri = parts.uri.path_and_query().map_or("/", |uri| uri.as_str());
                respond::text(500, &format!("Internal Server Error: {}: {}\n", quoted(uri), escape(&why)))
            }
        })?;
        Ok(Entry { authorized, until, _place: seat })
    }

    /// Begins to record a request, if the policy asks for it.
    fn record(
        &self,
        client: &Client,
        info: &RequestInfo,
        parts: &http::request::Parts,
        user: Option<&User>,
        (id, received): (&str, i64),
    ) -> Option<Arc<AuditContext>> {
        let nobody = User::default();
        let subject = audit::Subject {
            id,
            uri: parts.uri.path_and_query().map_or("/", |uri| uri.as_str()),
            info,
            user: user.unwrap_or(&nobody),
            agent: parts.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default(),
            sources: &audit::source_addresses(&parts.headers, client.address),
        };
        self.audit.begin(subject, received)
    }

    /// A place among the requests that run: by priority and fairness, or by two numbers.
    async fn admit<'a>(
        &'a self,
        user: &User,
        info: &RequestInfo,
        timeout: std::time::Duration,
        reply: &mut Reply,
    ) -> Result<Place<'a>, Answer> {
        let Some(flow) = &self.context.flow else {
            return self.inflight.admit(info, user).map(Place::Counted).ok_or_else(too_many);
        };
        let running = Running::begin(info);
        let (sorted, seat) = flow.admit(user, info, limits::FLOW_WAIT_MAX.min(timeout / 4)).await;
        reply.sorted = sorted;
        seat.map(|seat| Place::Seated(seat, running)).map_err(|_| too_many())
    }

    /// `?timeout=`, bounded by the server's own.
    fn timeout(&self, info: &RequestInfo) -> Result<std::time::Duration, Status> {
        let Some(text) = info.query.get("timeout").filter(|_| info.verb != Verb::Watch) else {
            return Ok(self.request_timeout);
        };
        if text.is_empty() {
            return Ok(self.request_timeout);
        }
        let given = machinery::time::parse_duration(text).map_err(|error| {
            let why = wording::duration_error(&error, text);
            Status::bad_request(format!("invalid timeout specified in the request URL - {why}"))
        })?;
        Ok(if given.is_zero() { self.request_timeout } else { given.min(self.request_timeout) })
    }

    async fn identify(
        &self,
        client: &Client,
        headers: &HeaderMap,
        info: &RequestInfo,
        remarks: &mut Remarks,
    ) -> Result<User, Status> {
        let certificate = &client.certificate;
        let protocols = websocket::is_asked(headers).then(|| websocket::protocols(headers));
        let credentials = Credentials { certificate, headers, protocols: protocols.as_deref(), path: &info.path };
        let found = self.context.authentication.authenticate(&self.context.objects, &credentials, remarks).await;
        found.iter().for_each(measure::authenticated);
        let result = if found.is_ok() { "success" } else { "failure" };
        METRICS.authentication_attempts.get_or_create(&AttemptResult { result }).inc();
        found
    }

    async fn authorize(&self, user: User, info: RequestInfo) -> Result<Authorized, Refusal> {
        let judged = authorize(&self.context.authorizer, user, info).await;
        let result = match &judged {
            Ok(_) => "allowed",
            Err(Refusal::Forbidden { is_final: true, .. }) => "denied",
            Err(Refusal::Forbidden { .. }) => "no-opinion",
            Err(Refusal::Failed(_)) => "error",
        };
        METRICS.authorization_attempts.get_or_create(&AttemptResult { result }).inc();
        judged
    }

    async fn handle(
        self: Arc<Self>,
        authorized: Authorized,
        headers: &HeaderMap,
        body: Incoming,
        reply: &Reply,
    ) -> Answer {
        if !authorized.info.is_resource {
            if let Some(answer) = self.issuer_document(&authorized.info, headers, reply).await {
                return answer;
            }
            self.catch_up_for(&authorized.info.path).await;
            return self.document(&authorized.info, headers, reply);
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
        let request = Request::new(authorized, route.resource, route.version, route.subresource, manager);
        let request = Arc::new(request.audited(reply.audit_context.clone()));
        if let Some(text) = deprecation {
            measure::deprecated(&request);
            if let Some(audit_context) = &reply.audit_context {
                audit_context.annotate("k8s.io/deprecated", "true");
            }
            request.warn(text);
        }
        let fields = || handler_fields(&request, headers);
        let performed = self.perform(request.clone(), headers, body, reply);
        let result = trace::span(handler_name(&request), Kind::Internal, fields, performed).await;
        let mut response = result.unwrap_or_else(|status| reply.status(&status));
        add_warnings(&request, response.headers_mut());
        response
    }
}

/// The media types that a server with these gates speaks.
fn served(gates: FeatureGates) -> &'static [Media] {
    METRICS.set_feature("CBORServingAndStorage", "ALPHA", gates.cbor);
    Media::served(gates)
}

/// By what a server with these gates lets some act as others.
fn impersonation(gates: FeatureGates) -> Impersonation {
    METRICS.set_feature("ConstrainedImpersonation", "ALPHA", gates.constrained_impersonation);
    Impersonation::new(gates.constrained_impersonation)
}

/// A request that has been let in: it has its place until this is dropped.
struct Entry<'a> {
    authorized: Authorized,
    until: tokio::time::Instant,
    _place: Place<'a>,
}

/// What is given back when a request has run.
#[expect(dead_code, reason = "it is kept for its end")]
enum Place<'a> {
    Counted(Permit<'a>),
    Seated(Seat, Running),
}

/// Whether the trace that somebody says a request belongs to is gone on with: else anybody could have all of it recorded.
fn is_believed(user: &User) -> bool {
    user.in_group(User::MASTERS) || user.in_group("system:monitoring")
}

/// The name of a request's span, and what is said of it.
fn span_of(
    client: &Client,
    info: &RequestInfo,
    parts: &http::request::Parts,
    audit_id: &str,
) -> (String, trace::Attributes) {
    let target = parts.uri.path_and_query().map_or("/", |uri| uri.as_str());
    let address = client.address.to_string();
    let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let protocol = format!("{:?}", parts.version);
    let attributes = trace::attributes([
        ("http.request.method", parts.method.as_str()),
        ("url.scheme", "https"),
        ("url.path", parts.uri.path()),
        ("http.target", target),
        ("server.address", header(http::header::HOST)),
        ("network.peer.address", &address),
        ("network.protocol.version", protocol.trim_start_matches("HTTP/")),
        ("user_agent.original", header(USER_AGENT)),
        ("audit-id", audit_id),
    ]);
    (info.pattern(), attributes)
}

/// The name of the span of a verb.
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

fn handler_fields(request: &Request, headers: &HeaderMap) -> trace::Attributes {
    let info = &request.authorized.info;
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
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

/// A text of a request in quotes, harmless where it is shown.
fn quoted(text: &str) -> String {
    escape(&machinery::value::quote(text))
}

/// A response, at the place of its request among the spans, or that of a timeout where it is not there at `until`.
async fn in_time(until: Option<tokio::time::Instant>, answer: impl Future<Output = Answer>, reply: &Reply) -> Answer {
    let answer = trace::at(reply.place, answer);
    match until {
        Some(until) => deadline::within(until, answer).await.unwrap_or_else(|_| out_of_time(reply)),
        None => answer.await,
    }
}

fn out_of_time(reply: &Reply) -> Answer {
    let message = "Timeout: request did not complete within the allotted timeout";
    reply.status(&Status::new(Reason::Timeout, message))
}

fn too_many() -> Answer {
    let mut response = respond::text(429, "Too many requests, please try again later.\n");
    set(response.headers_mut(), "retry-after", "1");
    response
}

/// Runs a request in a task of its own: if it panics, that is counted and answered, and nobody else notices
/// (api-machinery 1.3).
async fn survive(panics: &AtomicU64, audit_id: &str, request: impl Future<Output = Answer> + Send + 'static) -> Answer {
    match crate::task::spawn("request", request).await {
        Ok(response) => response,
        Err(error) => {
            panics.fetch_add(1, Ordering::Relaxed);
            METRICS.request_panics.inc();
            tracing::error!(%error, audit_id, "a request panicked");
            respond::text(500, "This request caused apiserver to panic. Look in the logs for details.\n")
        }
    }
}

fn reply(served: &'static [Media], info: &RequestInfo, headers: &HeaderMap) -> Reply {
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let accept: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
    let accept = accept.join(",");
    let accepted = negotiate::negotiate(served, &accept, true);
    let agent = text(USER_AGENT);
    let by_agent = ["curl/", "Wget/", "Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix));
    let pretty = match info.query.get("pretty") {
        Some("true" | "1") => true,
        Some("false" | "0") => false,
        _ => by_agent,
    };
    Reply {
        served,
        named: negotiate::lists(&accept, &served.iter().map(|media| media.as_str()).collect::<Vec<_>>()),
        accepted,
        plain: negotiate::negotiate(served, &accept, false),
        aggregated: negotiate::aggregated(&accept),
        pretty,
        warnings: vec![],
        audit_context: None,
        place: None,
        span: None,
        sorted: None,
        closes: false,
        gzip: text(ACCEPT_ENCODING).split(',').any(|e| e.trim() == "gzip"),
    }
}

/// The User-Agent up to the first slash, printable, at most 128 bytes.
fn default_manager(headers: &HeaderMap) -> Text {
    let agent = headers.get(USER_AGENT).map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned()).unwrap_or_default();
    let name: String = agent.split('/').next().unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
    let mut cut = name.len().min(limits::FIELD_MANAGER_BYTES_MAX);
    while !name.is_char_boundary(cut) {
        cut -= 1;
    }
    if cut == 0 { Text::new_static("unknown") } else { Text::from(&name[..cut]) }
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_TYPE;
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_answered_and_counted() {
        let panics = AtomicU64::new(0);
        let calm = survive(&panics, "a", async { respond::text(200, "ok") }).await;
        assert_eq!((calm.status(), panics.load(Ordering::Relaxed)), (StatusCode::OK, 0));
        let answer = survive(&panics, "b", async { panic!("a test panics") }).await;
        assert_eq!((answer.status(), panics.load(Ordering::Relaxed)), (StatusCode::INTERNAL_SERVER_ERROR, 1));
        assert_eq!(answer.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "This request caused apiserver to panic. Look in the logs for details.\n");
    }
}
