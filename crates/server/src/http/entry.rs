//! Entry of a request: authentication, impersonation, a seat, authorization.

use std::sync::Arc;

use http::HeaderMap;
use http::header::USER_AGENT;
use machinery::Status;
use machinery::status::{Details, Reason};

use super::chain::{Answer, Edge, out_of_time};
use super::client::Client;
use super::inflight::{Permit, Running};
use super::respond::{self, Reply, set};
use super::{measure, websocket};
use crate::audit::{self, AuditContext, Layer};
use crate::authentication::{self, Credentials, Remarks};
use crate::authorization::{Authorized, Refusal, authorize, escape};
use crate::flow::Seat;
use crate::metrics::{AttemptResult, METRICS};
use crate::request::{RequestInfo, User, Verb};
use crate::{clock, limits, trace, wording};

/// A request that has been let in: it has its place until this is dropped.
pub(super) struct Entry<'a> {
    pub authorized: Authorized,
    pub until: tokio::time::Instant,
    _place: Place<'a>,
}

/// What is given back when a request has run.
#[expect(dead_code, reason = "it is kept for its end")]
enum Place<'a> {
    Counted(Permit<'a>),
    Seated(Seat, Running),
}

impl Edge {
    /// Authenticates the request, applies impersonation, waits for a seat and authorizes; the error is the response.
    pub(super) async fn let_in<'a>(
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
}

/// Whether the trace in the request's headers is continued: otherwise any client could force sampling.
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

/// A text of a request in quotes, harmless where it is shown.
fn quoted(text: &str) -> String {
    escape(&machinery::value::quote(text))
}

fn too_many() -> Answer {
    let mut response = respond::text(429, "Too many requests, please try again later.\n");
    set(response.headers_mut(), "retry-after", "1");
    response
}
