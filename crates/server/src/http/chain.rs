//! The path of every request, in order: who, may they, what, body, verb, answer (api-machinery 1.3).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use machinery::status::{Details, Reason};
use machinery::{Status, Text};
use prometheus_client::metrics::gauge::Gauge;

use super::body::Body;
use super::health::Health;
use super::measure::{self, Measured, Running, request_kind};
use super::negotiate::{self, Accepted, Media};
use super::respond::{self, Reply, set};
use super::watch::Stream;
use super::websocket;
use crate::authentication::{ClientCertificate, Credentials};
use crate::authorization::{Authorized, authorize, impersonate};
use crate::discovery::{Discovery, Render as _};
use crate::metrics::{AttemptResult, METRICS};
use crate::openapi::OpenApi;
use crate::request::{FeatureGates, RequestInfo, User, Verb};
use crate::resource::{Resource, Version};
use crate::verbs::{self, Context, Document, Format, PatchKind, Request, Subresource};
use crate::{clock, limits};

/// The server as its connections see it.
pub struct Edge {
    pub context: Arc<Context>,
    pub discovery: Discovery,
    pub openapi: OpenApi,
    pub health: Health,
    pub stop: tokio::sync::watch::Receiver<bool>,
    pub request_timeout: std::time::Duration,
    /// The media types of requests and answers.
    pub served: &'static [Media],
    /// Requests that are not watches and may run at once; 0 for any number.
    pub inflight_max: usize,
    pub inflight: AtomicU64,
    pub panics: AtomicU64,
}

type Answer = Response<Body>;

impl Edge {
    pub fn new(
        context: Arc<Context>,
        stop: tokio::sync::watch::Receiver<bool>,
        request_timeout: std::time::Duration,
        inflight_max: usize,
        gates: FeatureGates,
    ) -> Edge {
        let registry = context.registry.clone();
        Edge {
            discovery: Discovery::new(registry.clone()),
            openapi: OpenApi::new(registry),
            health: Health::new(context.objects.store().clone()),
            context,
            stop,
            request_timeout,
            served: Media::served(gates),
            inflight_max,
            inflight: AtomicU64::new(0),
            panics: AtomicU64::new(0),
        }
    }

    /// Answers a request, whatever happens.
    pub async fn serve(
        self: Arc<Self>,
        certificate: Arc<ClientCertificate>,
        request: http::Request<Incoming>,
    ) -> Answer {
        let audit_id = request.headers().get("audit-id").and_then(|v| v.to_str().ok()).map(str::to_owned);
        let audit_id = audit_id.filter(|id| !id.is_empty()).unwrap_or_else(clock::uuid);
        let head = *request.method() == Method::HEAD;
        let edge = self.clone();
        let mut response =
            survive(&self.panics, &audit_id, async move { edge.answer(&certificate, request).await }).await;
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

    async fn answer(self: Arc<Self>, certificate: &ClientCertificate, request: http::Request<Incoming>) -> Answer {
        let (parts, body) = request.into_parts();
        let info = RequestInfo::parse(&parts.method, parts.uri.path(), parts.uri.query().unwrap_or_default());
        let measured = Measured::begin(&self.context.registry, &info, &parts.headers);
        let answer = self.answer_to(certificate, info, parts, body).await;
        measured.end(&answer);
        answer
    }

    async fn answer_to(
        self: Arc<Self>,
        certificate: &ClientCertificate,
        info: RequestInfo,
        mut parts: http::request::Parts,
        body: Incoming,
    ) -> Answer {
        let reply = reply(self.served, &info, &parts.headers);
        let watching = info.verb == Verb::Watch;
        if *self.stop.borrow() && !watching {
            let message = "apiserver is shutting down";
            return reply.status(
                &Status::new(Reason::ServiceUnavailable, message)
                    .with_details(Details { retry_after_seconds: 1, ..Details::default() }),
            );
        }
        let timeout = match self.timeout(&info) {
            Ok(timeout) => timeout,
            Err(status) => return reply.status(&status),
        };
        let user = match self.identify(certificate, &parts.headers) {
            Ok(user) => user,
            Err(status) => return reply.status(&status),
        };
        let Some(_permit) = self.admit(&info, &user) else {
            let mut response = respond::text(429, "Too many requests, please try again later.");
            set(response.headers_mut(), "retry-after", "1");
            return response;
        };
        let authorized = match self.authorize(user, &parts.headers, info) {
            Ok(authorized) => authorized,
            Err(status) => return reply.status(&status),
        };
        let edge = self.clone();
        let handled = edge.handle(authorized, &parts.headers, body, &reply);
        if watching {
            let response = handled.await;
            return match response.status() == StatusCode::OK && websocket::is_asked(&parts.headers) {
                true => websocket::upgrade(response, &parts.headers, parts.extensions.remove()),
                false => response,
            };
        }
        match tokio::time::timeout(timeout, handled).await {
            Ok(response) => response,
            Err(_) => reply
                .status(&Status::new(Reason::Timeout, "Timeout: request did not complete within the allotted timeout")),
        }
    }

    /// `?timeout=`, bounded by the server's own.
    fn timeout(&self, info: &RequestInfo) -> Result<std::time::Duration, Status> {
        let Some(text) = info.query.get("timeout").filter(|_| info.verb != Verb::Watch) else {
            return Ok(self.request_timeout);
        };
        if text.is_empty() {
            return Ok(self.request_timeout);
        }
        let given = super::health::parse_duration(text)
            .map_err(|why| Status::bad_request(format!("invalid timeout specified in the request URL - {why}")))?;
        Ok(if given.is_zero() { self.request_timeout } else { given.min(self.request_timeout) })
    }

    /// A place among the requests in flight; watches and administrators need none.
    fn admit(&self, info: &RequestInfo, user: &User) -> Option<Permit<'_>> {
        if info.verb == Verb::Watch {
            return Some(Permit { inflight: None });
        }
        let gauge = METRICS.current_inflight_requests.get_or_create_owned(&request_kind(info.verb, &info.method));
        let now = self.inflight.fetch_add(1, Ordering::Relaxed);
        gauge.inc();
        let permit = Permit { inflight: Some((&self.inflight, gauge)) };
        let free = self.inflight_max == 0 || user.in_group(User::MASTERS);
        (free || now < self.inflight_max as u64).then_some(permit)
    }

    fn identify(&self, certificate: &ClientCertificate, headers: &HeaderMap) -> Result<User, Status> {
        let authorization = headers.get(AUTHORIZATION).and_then(|v| v.to_str().ok());
        let protocols = websocket::is_asked(headers).then(|| websocket::protocols(headers));
        let credentials = Credentials { certificate, authorization, protocols: protocols.as_deref() };
        let found = self.context.authentication.authenticate(&self.context.objects, &credentials);
        let result = if found.is_ok() { "success" } else { "failure" };
        METRICS.authentication_attempts.get_or_create(&AttemptResult { result }).inc();
        found
    }

    fn authorize(&self, user: User, headers: &HeaderMap, info: RequestInfo) -> Result<Authorized, Status> {
        let rbac = &self.context.rbac;
        let judged = impersonate(rbac, user, headers).and_then(|user| authorize(rbac, user, info));
        let result = if judged.is_ok() { "allowed" } else { "denied" };
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
            if let Some(answer) = self.issuer_document(&authorized.info).await {
                return answer;
            }
            return self.document(&authorized.info, headers, reply);
        }
        let route = match self.route(&authorized.info) {
            Ok(route) => route,
            Err(NotServed::Plain) => return respond::text(404, "404 page not found\n"),
            Err(NotServed::Status(status, warning)) => {
                let mut response = reply.status(&status);
                append_warnings(warning.as_slice(), response.headers_mut());
                return response;
            }
        };
        let deprecation = route.version.deprecation.clone();
        let request = Arc::new(Request {
            authorized,
            resource: route.resource,
            version: route.version,
            subresource: route.subresource,
            default_manager: default_manager(headers),
            admitted: true,
            warnings: Default::default(),
        });
        if let Some(text) = deprecation {
            request.warn(text);
        }
        let result = self.perform(request.clone(), headers, body, reply).await;
        let mut response = result.unwrap_or_else(|status| reply.status(&status));
        add_warnings(&request, response.headers_mut());
        response
    }

    /// What is not a resource: discovery, OpenAPI, health, version, metrics.
    fn document(&self, info: &RequestInfo, headers: &HeaderMap, reply: &Reply) -> Answer {
        let path = info.path.trim_end_matches('/');
        match info.path.as_str() {
            path @ ("/healthz" | "/livez" | "/readyz") => return self.health.answer(path, &info.query),
            "/healthz/" | "/livez/" | "/readyz/" => return respond::text(404, "404 page not found\n"),
            _ => {}
        }
        match path {
            "/version" => {
                let accepted = Accepted { pretty: Some(true), ..Accepted::JSON };
                return reply.tree(StatusCode::OK, &super::health::version(), &accepted);
            }
            "/metrics" => {
                let accept = headers.get(ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
                return self.metrics(accept);
            }
            _ => {}
        }
        if let Some(check) = ["/healthz/", "/livez/", "/readyz/"].iter().find_map(|p| path.strip_prefix(p)) {
            return self.health.check(check);
        }
        let etag = headers.get("if-none-match").and_then(|v| v.to_str().ok()).unwrap_or_default();
        let accept = headers.get(ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
        if path == "/openapi/v2" || path == "/openapi/v3" || path.starts_with("/openapi/v3/") {
            return openapi(self.openapi.answer(&info.path, &info.query, accept, etag), reply);
        }
        if info.path.starts_with("//") {
            return respond::text(404, "404 page not found\n");
        }
        if let Some(found) = self.discovery.answer(path, accept, etag, reply) {
            return found;
        }
        if info.path.starts_with("/apis//") {
            return respond::text(404, "404 page not found\n");
        }
        let in_shipped = path.strip_prefix("/apis/").and_then(|rest| rest.split_once('/'));
        let in_shipped = in_shipped.is_some_and(|(group, _)| crate::resource::builtin::is_shipped_group(group));
        if info.path.starts_with("/api/") || in_shipped {
            return reply.status(&Status::no_such_resource());
        }
        respond::text(404, "404 page not found\n")
    }

    /// What others verify tokens of ServiceAccounts with (api-machinery 21.1).
    async fn issuer_document(&self, info: &RequestInfo) -> Option<Answer> {
        let accounts = &self.context.authentication.accounts;
        let (content_type, document) = match info.path.trim_end_matches('/') {
            "/.well-known/openid-configuration" => ("application/json", accounts.configuration().await?),
            "/openid/v1/jwks" => ("application/jwk-set+json", accounts.key_set().await),
            _ => return None,
        };
        if !matches!(info.method, Method::GET | Method::HEAD) {
            return Some(respond::text(405, "405: Method Not Allowed"));
        }
        let mut response = respond::text(200, &document.to_json());
        set(response.headers_mut(), CONTENT_TYPE.as_str(), content_type);
        set(response.headers_mut(), "cache-control", "public, max-age=3600");
        Some(response)
    }

    fn metrics(&self, accept: &str) -> Answer {
        let (format, text) = measure::expose(&self.context.registry, accept);
        let mut response = respond::text(200, &text);
        set(response.headers_mut(), CONTENT_TYPE.as_str(), format);
        response
    }

    /// The resource of a path (api-machinery 14.1, crd.md 7.1).
    fn route(&self, info: &RequestInfo) -> Result<Route, NotServed> {
        let shipped_group = info.group.is_empty() || crate::resource::builtin::is_shipped_group(&info.group);
        let unknown =
            || if shipped_group { NotServed::Status(Status::no_such_resource(), None) } else { NotServed::Plain };
        if info.malformed || (shipped_group && info.rest > 0) {
            return Err(unknown());
        }
        let resource = self.context.registry.get(&info.group, &info.resource).ok_or_else(unknown)?;
        let version = resource.served(&info.version).cloned().ok_or_else(unknown)?;
        if resource.broken {
            return Err(NotServed::Status(Status::internal("error resolving resource"), None));
        }
        let named_scope = !info.namespace.is_empty() && info.resource != "namespaces";
        let scoped = match (resource.namespaced, named_scope) {
            (true, false) => info.name.is_empty() && matches!(info.verb, Verb::List | Verb::Watch | Verb::Proxy),
            (false, true) => false,
            _ => true,
        };
        if !scoped && !resource.is_custom() && !resource.is_review() && resource.namespaced && info.name.is_empty() {
            // the path lists all namespaces, so it exists
            let message = "the server does not allow this method on the requested resource";
            let status = Status::new(Reason::MethodNotAllowed, message).with_details(Default::default());
            return Err(NotServed::Status(status, None));
        }
        if !scoped {
            return Err(unknown());
        }
        let subresource = match info.subresource.as_str() {
            "" => Subresource::None,
            "status" if version.status => Subresource::Status,
            "scale" if version.scale.is_some() => Subresource::Scale,
            "finalize" if info.resource == "namespaces" => Subresource::Finalize,
            "token" if info.group.is_empty() && info.resource == "serviceaccounts" => {
                let resource = self.context.token_requests.clone();
                let version = resource.storage_version().clone();
                return Ok(Route { resource, version, subresource: Subresource::Token });
            }
            _ if resource.is_custom() => {
                let deprecation = version.deprecation.clone();
                return Err(NotServed::Status(resource.not_found(&info.name), deprecation));
            }
            _ => return Err(NotServed::Status(Status::no_such_resource(), None)),
        };
        Ok(Route { resource, version, subresource })
    }

    async fn perform(
        self: Arc<Self>,
        request: Arc<Request>,
        headers: &HeaderMap,
        body: Incoming,
        reply: &Reply,
    ) -> Result<Answer, Status> {
        let verb = verb_of(&request)?;
        let patch = match verb {
            Verb::Patch => Some(patch_kind(self.served, &request, headers)?),
            _ => None,
        };
        check_accept(&request, verb, reply)?;
        let context = &*self.context;
        let outcome = match verb {
            Verb::Get if request.subresource == Subresource::Scale => verbs::scale::get(context, &request).await?,
            Verb::Get => verbs::get(context, &request).await?,
            Verb::List => verbs::list(context, &request).await?,
            Verb::Watch => return self.watch(request, reply).await,
            Verb::Create => {
                let format = body_format(self.served, headers)?;
                let document = read(headers, body, format).await?;
                verbs::create(context, &request, &document).await?
            }
            Verb::Update => {
                let format = body_format(self.served, headers)?;
                let document = read(headers, body, format).await?;
                verbs::update(context, &request, &document).await?
            }
            Verb::Patch => {
                let (kind, format) = patch.ok_or_else(|| negotiate::unsupported_media_type(self.served))?;
                let document = read(headers, body, format).await?;
                verbs::patch(context, &request, kind, &document).await?
            }
            Verb::Delete | Verb::DeleteCollection => {
                let document = delete_document(self.served, headers, body).await?;
                if verb == Verb::Delete {
                    verbs::delete(context, &request, document.as_ref()).await?
                } else {
                    verbs::delete_collection(context, &request, document.as_ref()).await?
                }
            }
            Verb::Proxy | Verb::None => return Err(not_allowed(&request, verb)),
        };
        reply.outcome(&request, outcome)
    }

    async fn watch(&self, request: Arc<Request>, reply: &Reply) -> Result<Answer, Status> {
        let accepted = reply.accepted.first().copied().ok_or_else(|| negotiate::not_acceptable(self.served, false))?;
        if accepted.media == Media::Yaml {
            return Err(negotiate::not_acceptable(self.served, true));
        }
        if accepted.shape == negotiate::Shape::Table {
            super::table::Table::new(&request, &accepted)?;
        }
        let custom = request.resource.is_custom();
        let sayable = |a: &&Accepted| match a.media {
            Media::Json | Media::Cbor => true,
            Media::Protobuf => !custom || a.shape == negotiate::Shape::Partial,
            Media::Yaml => false,
        };
        let accepted =
            reply.accepted.iter().find(sayable).copied().ok_or_else(|| negotiate::not_acceptable(self.served, true))?;
        let running = Running::begin(&request);
        let watch = verbs::watch(self.context.clone(), request, self.stop.clone()).await?;
        if accepted.shape == negotiate::Shape::PartialList {
            return Ok(reply.bytes(StatusCode::OK, Media::Json.as_str(), vec![]));
        }
        let stream = Box::new(Stream { watch, accepted, first: true, running });
        let mut response = Response::new(Body::stream(stream));
        let content_type = match accepted.media {
            Media::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            Media::Cbor => negotiate::CBOR_SEQUENCE,
            _ => Media::Json.as_str(),
        };
        set(response.headers_mut(), CONTENT_TYPE.as_str(), content_type);
        Ok(response)
    }
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

/// An OpenAPI document as an answer.
fn openapi(answer: crate::openapi::Answer, reply: &Reply) -> Answer {
    use crate::openapi::Answer as Found;
    match answer {
        Found::NotFound => empty(StatusCode::NOT_FOUND),
        Found::NotAcceptable => empty(StatusCode::NOT_ACCEPTABLE),
        Found::NotModified { etag } => reply.not_modified(&etag),
        Found::Moved { location } => {
            let mut response = empty(StatusCode::MOVED_PERMANENTLY);
            set(response.headers_mut(), "location", &location);
            response
        }
        Found::Document { content_type, body, etag, expires } => {
            let mut response = reply.raw(content_type, body, &etag);
            response.headers_mut().remove("cache-control");
            if let Some(expires) = expires {
                set(response.headers_mut(), "cache-control", "public, immutable");
                set(response.headers_mut(), "expires", &expires);
            }
            response
        }
    }
}

fn empty(code: StatusCode) -> Answer {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = code;
    response
}

impl crate::discovery::Render for Reply {
    type Answer = Answer;

    fn json(&self, value: &machinery::Value) -> Answer {
        match self.plain.iter().find(|a| matches!(a.media, Media::Json | Media::Yaml)) {
            Some(accepted) => self.tree(StatusCode::OK, value, accepted),
            None => self.status(&negotiate::not_acceptable(self.served, false)),
        }
    }

    fn raw(&self, content_type: &str, body: Bytes, etag: &str) -> Answer {
        let mut response = self.bytes(StatusCode::OK, content_type, body.to_vec());
        set(response.headers_mut(), "etag", etag);
        set(response.headers_mut(), "vary", "Accept");
        set(response.headers_mut(), "cache-control", "public");
        response
    }

    fn not_modified(&self, etag: &str) -> Answer {
        let mut response = empty(StatusCode::NOT_MODIFIED);
        set(response.headers_mut(), "etag", etag);
        set(response.headers_mut(), "vary", "Accept");
        response
    }
}

/// A place among the requests in flight; watches take none.
struct Permit<'a> {
    inflight: Option<(&'a AtomicU64, Gauge)>,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some((inflight, gauge)) = &self.inflight {
            inflight.fetch_sub(1, Ordering::Relaxed);
            gauge.dec();
        }
    }
}

struct Route {
    resource: Arc<Resource>,
    version: Arc<Version>,
    subresource: Subresource,
}

enum NotServed {
    Plain,
    /// With the warning of a deprecated version.
    Status(Status, Option<Text>),
}

fn reply(served: &'static [Media], info: &RequestInfo, headers: &HeaderMap) -> Reply {
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let accept: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
    let agent = text(USER_AGENT);
    let by_agent = ["curl/", "Wget/", "Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix));
    let pretty = match info.query.get("pretty") {
        Some("true" | "1") => true,
        Some("false" | "0") => false,
        _ => by_agent,
    };
    Reply {
        served,
        accepted: negotiate::negotiate(served, &accept.join(","), true),
        plain: negotiate::negotiate(served, &accept.join(","), false),
        pretty,
        gzip: text(ACCEPT_ENCODING).split(',').any(|e| e.trim().split(';').next() == Some("gzip")),
    }
}

fn add_warnings(request: &Request, headers: &mut HeaderMap) {
    let warnings = request.warnings.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    append_warnings(&warnings, headers);
}

fn append_warnings<T: AsRef<str>>(warnings: &[T], headers: &mut HeaderMap) {
    let warnings: Vec<&str> = warnings.iter().map(AsRef::as_ref).collect();
    let runes: usize = warnings.iter().map(|w| w.chars().count()).sum();
    let mut left = limits::WARNING_RUNES_MAX;
    for warning in warnings.iter() {
        let cut: String = match runes > limits::WARNING_RUNES_MAX {
            true => warning.chars().take(limits::WARNING_RUNES_EACH).collect(),
            false => (*warning).to_owned(),
        };
        let count = cut.chars().count();
        if count > left {
            break;
        }
        left -= count;
        if cut.chars().any(char::is_control) {
            continue;
        }
        let escaped = cut.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = http::HeaderValue::from_bytes(format!("299 - \"{escaped}\"").as_bytes()) {
            headers.append("warning", value);
        }
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

fn not_allowed(request: &Request, verb: Verb) -> Status {
    let resource = &request.resource;
    if resource.is_custom() {
        return Status::method_not_supported(&resource.group, &resource.plural, verb.as_str());
    }
    let message = "the server does not allow this method on the requested resource";
    Status::new(Reason::MethodNotAllowed, message).with_details(Default::default())
}

/// What the path and the method ask for, if the resource can do it.
fn verb_of(request: &Request) -> Result<Verb, Status> {
    let info = &request.authorized.info;
    let verb = info.verb;
    let named = !info.name.is_empty();
    let refused = || not_allowed(request, verb);
    if named && !matches!(verb, Verb::Proxy | Verb::None | Verb::Create) {
        let messages = machinery::names::path_segment(&info.name);
        if let Some(why) = messages.first() {
            let quoted = machinery::value::quote(&info.name);
            return Err(Status::bad_request(format!("Name parameter invalid: {quoted}: {why}")));
        }
    }
    if request.resource.is_review() {
        let fits = verb == Verb::Create && named == (request.subresource == Subresource::Token);
        return if fits { Ok(verb) } else { Err(refused()) };
    }
    if request.subresource == Subresource::Finalize && verb != Verb::Update {
        return Err(refused());
    }
    if verb == Verb::DeleteCollection && request.resource.shipped().is_some_and(|s| s.kind == "Namespace") {
        return Err(refused());
    }
    if request.subresource != Subresource::None {
        return match verb {
            Verb::Get | Verb::Update | Verb::Patch => Ok(verb),
            _ => Err(refused()),
        };
    }
    match verb {
        // shipped kinds have no POST to an item, custom resources create from it (corrections crud 7)
        Verb::Create if named && !request.resource.is_custom() => Err(refused()),
        Verb::Update | Verb::Patch if !named && request.resource.is_custom() => {
            Err(Status::bad_request("name must be provided"))
        }
        Verb::Update | Verb::Patch if !named => Err(refused()),
        Verb::Proxy | Verb::None => Err(refused()),
        Verb::Get | Verb::List if info.method == Method::HEAD && !request.resource.is_custom() => Err(refused()),
        verb => Ok(verb),
    }
}

fn check_accept(request: &Request, verb: Verb, reply: &Reply) -> Result<(), Status> {
    let whole = |a: &Accepted| a.media == Media::Protobuf && a.shape == negotiate::Shape::Whole;
    let unsayable = request.resource.is_custom() && request.subresource != Subresource::Scale;
    if unsayable && !reply.accepted.is_empty() && reply.accepted.iter().all(whole) && verb != Verb::Delete {
        return Err(negotiate::not_acceptable(reply.served, false));
    }
    if !reply.accepted.is_empty() {
        return Ok(());
    }
    if request.resource.is_custom() || verb == Verb::Watch {
        return Err(negotiate::not_acceptable(reply.served, false));
    }
    let list = negotiate::media_list(reply.served);
    let message = format!("406: Not Acceptable\n\nAvailable representations: {list}");
    Err(Status::new(Reason::NotAcceptable, message).with_details(Default::default()))
}

fn content_type(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default()
}

fn body_format(served: &[Media], headers: &HeaderMap) -> Result<Format, Status> {
    let given = content_type(headers).to_ascii_lowercase();
    let malformed = given.split(';').skip(1).any(|param| !param.trim().is_empty() && !param.contains('='));
    match Media::of_content_type(served, &given).filter(|_| !malformed) {
        Some(Media::Json) => Ok(Format::Json),
        Some(Media::Yaml) => Ok(Format::Yaml),
        Some(Media::Protobuf) => Ok(Format::Protobuf),
        Some(Media::Cbor) => Ok(Format::Cbor),
        None => Err(negotiate::unsupported_media_type(served)),
    }
}

fn patch_kind(served: &[Media], request: &Request, headers: &HeaderMap) -> Result<(PatchKind, Format), Status> {
    let cbor = served.contains(&Media::Cbor);
    let kind = PatchKind::of(content_type(headers)).filter(|(_, format)| cbor || *format != Format::Cbor);
    if request.resource.is_custom() {
        return kind.filter(|(kind, _)| *kind != PatchKind::Strategic).ok_or_else(|| {
            let list = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
            let more = if cbor { ", application/apply-patch+cbor" } else { "" };
            Status::new(
                Reason::UnsupportedMediaType,
                format!(
                    "the body of the request was in an unknown format - accepted media types include: {list}{more}"
                ),
            )
        });
    }
    kind.ok_or_else(|| {
        Status::new(Reason::UnsupportedMediaType, "415: Unsupported Media Type").with_details(Default::default())
    })
}

async fn read(headers: &HeaderMap, body: Incoming, format: Format) -> Result<Document, Status> {
    let too_large = || {
        let message = format!("Request entity too large: limit is {}", limits::BODY_BYTES_MAX);
        Status::new(Reason::RequestEntityTooLarge, message)
    };
    let mut body = body;
    let declared = headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limits::BODY_BYTES_MAX) {
        drain(&mut body).await;
        return Err(too_large());
    }
    let bytes: Bytes = match Limited::new(&mut body, limits::BODY_BYTES_MAX).collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            drain(&mut body).await;
            return Err(too_large());
        }
        Err(error) => return Err(Status::bad_request(error.to_string())),
    };
    Ok(Document { bytes, format })
}

/// Reads on, within bounds: a client that is still sending would not see the answer.
async fn drain(body: &mut Incoming) {
    let mut rest = Limited::new(body, limits::BODY_BYTES_DRAINED);
    while let Some(Ok(_)) = rest.frame().await {}
}

async fn delete_document(served: &[Media], headers: &HeaderMap, body: Incoming) -> Result<Option<Document>, Status> {
    let document = read(headers, body, Format::Json).await?;
    if document.bytes.is_empty() {
        return Ok(None);
    }
    let format = body_format(served, headers)?;
    Ok(Some(Document { bytes: document.bytes, format }))
}

#[cfg(test)]
mod tests {
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
