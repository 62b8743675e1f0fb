//! The filters before a handler: authentication, impersonation, flow control, authorization.

use std::sync::Arc;

use access::audit::{self, AuditContext, Layer};
use access::authentication::{self, CredentialWarnings, Credentials};
use access::authorization::{Authorized, Refusal, authorize, escape};
use access::flow::Seat;
use base::metrics::{AttemptResult, METRICS};
use base::request::{RequestInfo, User, Verb};
use base::{clock, trace, wording};
use http::HeaderMap;
use http::header::USER_AGENT;
use machinery::Status;
use machinery::status::{Details, Reason};

use super::chain::{Edge, HttpResponse, out_of_time};
use super::client::Client;
use super::inflight::{CountedRequest, Permit};
use super::respond::{self, Reply, set};
use super::{measure, websocket};
use crate::limits;

/// An authorized request. It occupies its seat, or its share of the in-flight limit, until this is dropped.
pub(super) struct Entry<'a> {
    pub authorized: Authorized,
    pub until: tokio::time::Instant,
    _slot: RequestSlot<'a>,
}

/// The seat or the in-flight permit that is released when a request has completed.
#[expect(dead_code, reason = "held for its Drop")]
enum RequestSlot<'a> {
    Counted(Permit<'a>),
    Seated(Seat, CountedRequest),
}

impl Edge {
    /// Whether the connection ends after the response, since its client has no credentials that are known.
    fn closes_after<E>(&self, version: http::Version, identified: &Result<User, E>) -> bool {
        let is_anonymous = identified.as_ref().map_or(true, User::is_anonymous);
        self.closes_anonymous && version == http::Version::HTTP_2 && is_anonymous
    }

    /// Authenticates the request, applies impersonation, waits for a seat and authorizes. An error is the response to
    /// send.
    pub(super) async fn authorize_request<'a>(
        &'a self,
        client: &Client,
        info: RequestInfo,
        parts: &http::request::Parts,
        audit_id: &str,
        received: i64,
        reply: &mut Reply,
    ) -> Result<Entry<'a>, HttpResponse> {
        if *self.stop.borrow() && info.verb != Verb::Watch {
            let message = "apiserver is shutting down";
            let details = Details { retry_after_seconds: 1, ..Details::default() };
            return Err(reply.status(&Status::new(Reason::ServiceUnavailable, message).with_details(details)));
        }
        if info.is_unfinished {
            let uri = parts.uri.path_and_query().map_or("/", |uri| uri.as_str());
            let why = "failed to create RequestInfo: unable to determine kind and namespace from url";
            let text = format!("Internal Server Error: {}: {why}, {}\n", quoted(uri), escape(uri));
            return Err(respond::text(500, &text));
        }
        let timeout = self.timeout(&info).map_err(|status| reply.status(&status))?;
        // authentication may call webhooks, so it counts towards the request timeout
        let began = clock::instant();
        let until = began + timeout;
        let mut remarks = CredentialWarnings::default();
        let identified =
            tokio::time::timeout_at(until, self.identify(client, &parts.headers, &info, &mut remarks)).await;
        let identified = identified.map_err(|_| out_of_time(reply))?;
        let authenticated = began.elapsed();
        if self.audit.is_on() {
            reply.audit_context = self.record(client, &info, parts, identified.as_ref().ok(), audit_id, received);
        }
        reply.warnings = remarks.warnings;
        if let Some(audit_context) = &reply.audit_context {
            remarks.annotations.into_iter().for_each(|(key, text)| audit_context.annotate(key, text));
            audit_context.took(Layer::Authentication, authenticated);
        }
        reply.closes = self.closes_after(parts.version, &identified);
        let user = match identified {
            Ok(user) => user,
            Err(status) => {
                let response = reply.status(&status);
                if let Some(audit_context) = &reply.audit_context {
                    audit_context.message(&authentication::attempted(&client.certificate, &parts.headers));
                }
                return Err(response);
            }
        };
        let of_span = || span_of(client, &info, parts, audit_id);
        (reply.span, reply.trace_context) =
            trace::of_request(&parts.headers, continues_trace(&user), received, of_span);
        let trace_context = reply.trace_context;
        let acting = self.impersonation.impersonate(&self.context.authorizer, &user, &info, &parts.headers);
        let acting =
            tokio::time::timeout_at(until, trace::at(trace_context, acting)).await.map_err(|_| out_of_time(reply))?;
        let acting = acting.map_err(|status| reply.status(&status))?;
        if let (Some(audit_context), Some(acting)) = (&reply.audit_context, &acting) {
            audit_context.impersonated(&acting.user, acting.constraint);
        }
        let acting = acting.map_or(user, |acting| acting.user);
        let queued = clock::instant();
        let slot = self.admit(&acting, &info, timeout, reply).await?;
        let dequeued = clock::instant();
        let decided = tokio::time::timeout_at(until, trace::at(trace_context, self.authorize(acting, info))).await;
        let decided = decided.map_err(|_| out_of_time(reply))?;
        if let Some(audit_context) = &reply.audit_context {
            audit_context.took(Layer::Queue, dequeued - queued);
            audit_context.took(Layer::Authorization, dequeued.elapsed());
            let (decision, reason) = match &decided {
                Ok(authorized) => ("allow", authorized.decision.reason()),
                Err(Refusal::Forbidden { reason, .. }) => ("forbid", reason.clone()),
                Err(Refusal::Failed(_)) => ("", "internal error".to_owned()),
            };
            if !decision.is_empty() {
                audit_context.annotate("authorization.k8s.io/decision", decision);
            }
            audit_context.annotate("authorization.k8s.io/reason", reason);
        }
        let authorized = decided.map_err(|refusal| match refusal {
            Refusal::Forbidden { status, .. } => reply.status(&status),
            Refusal::Failed(why) => {
                let uri = parts.uri.path_and_query().map_or("/", |uri| uri.as_str());
                respond::text(500, &format!("Internal Server Error: {}: {}\n", quoted(uri), escape(&why)))
            }
        })?;
        Ok(Entry { authorized, until, _slot: slot })
    }

    /// Creates the audit context of a request if the audit policy selects it.
    fn record(
        &self,
        client: &Client,
        info: &RequestInfo,
        parts: &http::request::Parts,
        user: Option<&User>,
        id: &str,
        received: i64,
    ) -> Option<Arc<AuditContext>> {
        let unknown = User::default();
        let subject = audit::AuditedRequest {
            id,
            uri: parts.uri.path_and_query().map_or("/", |uri| uri.as_str()),
            info,
            user: user.unwrap_or(&unknown),
            agent: parts.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default(),
            sources: &audit::source_addresses(&parts.headers, client.address),
        };
        self.audit.begin(subject, received)
    }

    /// Waits for a seat of API priority and fairness or, if that is disabled, checks the in-flight limits.
    async fn admit<'a>(
        &'a self,
        user: &User,
        info: &RequestInfo,
        timeout: std::time::Duration,
        reply: &mut Reply,
    ) -> Result<RequestSlot<'a>, HttpResponse> {
        let Some(flow) = &self.context.flow else {
            return self.inflight.admit(info, user).map(RequestSlot::Counted).ok_or_else(too_many);
        };
        let running = CountedRequest::begin(info);
        let (classification, seat) = flow.admit(user, info, limits::FLOW_WAIT_MAX.min(timeout / 4)).await;
        reply.classification = classification;
        seat.map(|seat| RequestSlot::Seated(seat, running)).map_err(|_| too_many())
    }

    /// The duration of `?timeout=`, at most the request timeout of the server.
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

    /// Authenticates the client by its certificate or the headers, and counts the attempt.
    async fn identify(
        &self,
        client: &Client,
        headers: &HeaderMap,
        info: &RequestInfo,
        remarks: &mut CredentialWarnings,
    ) -> Result<User, Status> {
        let certificate = &client.certificate;
        let protocols = websocket::is_upgrade_request(headers).then(|| websocket::protocols(headers));
        let credentials = Credentials { certificate, headers, protocols: protocols.as_deref(), path: &info.path };
        let found = self.context.authentication.authenticate(&self.context.objects, &credentials, remarks).await;
        found.iter().for_each(measure::authenticated);
        let result = if found.is_ok() { "success" } else { "failure" };
        METRICS.authentication_attempts.get_or_create(&AttemptResult { result }).inc();
        found
    }

    async fn authorize(&self, user: User, info: RequestInfo) -> Result<Authorized, Refusal> {
        let decided = authorize(&self.context.authorizer, user, info).await;
        let result = match &decided {
            Ok(_) => "allowed",
            Err(Refusal::Forbidden { is_final: true, .. }) => "denied",
            Err(Refusal::Forbidden { .. }) => "no-opinion",
            Err(Refusal::Failed(_)) => "error",
        };
        METRICS.authorization_attempts.get_or_create(&AttemptResult { result }).inc();
        decided
    }
}

/// Whether the trace context in the request's headers is used. It is ignored for most users, since any client could
/// force sampling with it.
fn continues_trace(user: &User) -> bool {
    user.in_group(User::MASTERS) || user.in_group("system:monitoring")
}

/// The name and the attributes of a request's span.
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

/// Text from a request, quoted and HTML-escaped.
fn quoted(text: &str) -> String {
    escape(&machinery::value::quote(text))
}

fn too_many() -> HttpResponse {
    let mut response = respond::text(429, "Too many requests, please try again later.\n");
    set(response.headers_mut(), "retry-after", "1");
    response
}
