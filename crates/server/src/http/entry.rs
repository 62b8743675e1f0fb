//! The filters before a handler: authentication, impersonation, flow control, authorization.

use std::pin::pin;
use std::sync::Arc;

use access::audit::{self, AuditContext, Layer};
use access::authentication::{self, CredentialWarnings, Credentials};
use access::authorization::{Authorized, Refusal, authorize, escape};
use access::flow::{Flow, Seat};
use base::metrics::{AttemptResult, METRICS};
use base::request::{RequestInfo, User, Verb};
use base::{clock, trace, wording};
use http::header::{HOST, USER_AGENT};
use http::{HeaderMap, StatusCode};
use machinery::status::{Details, Reason};
use machinery::{Result, Status, Text, Value};

use super::arrival::Arrival;
use super::chain::{Early, Edge, HttpResponse, out_of_time};
use super::client::Client;
use super::inflight::{CountedRequest, Permit};
use super::negotiate::Accepted;
use super::request_body::RequestBody;
use super::respond::{self, Reply, header, set};
use super::{measure, websocket};
use crate::limits;

/// An authorized request. It occupies its seat, or its share of the in-flight limit, until this is dropped.
pub(super) struct Entry<'a> {
    pub authorized: Authorized,
    pub until: tokio::time::Instant,
    pub slot: RequestSlot<'a>,
}

/// The seat or the in-flight permit that is released when a request has completed.
#[expect(dead_code, reason = "held for their Drop")]
pub(super) enum RequestSlot<'a> {
    Counted(Permit<'a>),
    Seated(Seat, CountedRequest),
}

impl RequestSlot<'_> {
    /// Keeps the seat of a share until the response is sent, so that a share sends no more responses at once than
    /// it has seats. Not called for watches.
    pub fn kept(self, flow: Option<&Flow>, response: HttpResponse) -> HttpResponse {
        match self {
            RequestSlot::Seated(seat, _) if flow.is_some_and(Flow::is_shared) => {
                response.map(|body| body.guarded(Box::new(seat)))
            }
            _ => response,
        }
    }
}

/// The entry to workspaces has decided about the request, by a document or a refusal.
#[derive(Clone)]
struct Settled(Result<Value>);

impl Edge {
    /// Responds to a request with an outcome that the entry to workspaces has decided. The request is audited, logged and
    /// measured, and takes a seat, like any other, but is not authorized again.
    pub async fn settle(
        self: Arc<Self>,
        client: Arc<Client>,
        mut request: http::Request<RequestBody>,
        outcome: Result<Value>,
    ) -> HttpResponse {
        request.extensions_mut().insert(Settled(outcome));
        self.serve(client, request).await
    }

    /// Authenticates a client and authorizes a request for it. The request is not made.
    pub async fn vouch(&self, client: &Client, headers: &HeaderMap, info: RequestInfo) -> Result<()> {
        let vouched = async {
            let user = self.identify(client, headers, &info, &mut CredentialWarnings::default()).await?;
            self.authorize(user, info).await.map(drop).map_err(|refusal| match refusal {
                Refusal::Forbidden { status, .. } => status,
                Refusal::Failed(why) => Status::internal(&why),
            })
        };
        clock::within(self.clock.clone(), vouched).await
    }

    /// The realm of the ServiceAccount whose token a client sends, see [`access::authentication::Authentication::realm_of`].
    pub fn realm_of(&self, client: &Client, headers: &HeaderMap, path: &str) -> Option<Text> {
        let protocols = offered_protocols(headers);
        self.context.authentication.realm_of(&credentials(client, headers, protocols.as_deref(), path))
    }

    /// Whether a request would be authenticated by a token of one of the API's own ServiceAccounts.
    pub async fn is_by_account(&self, client: &Client, headers: &HeaderMap, path: &str) -> bool {
        let protocols = offered_protocols(headers);
        let credentials = credentials(client, headers, protocols.as_deref(), path);
        let context = &self.context;
        // tokens expire by the clock of the API
        let found = context.authentication.is_by_account(&context.objects, &credentials);
        clock::within(self.clock.clone(), found).await
    }

    /// Whether the connection ends after the response, because the client is anonymous or its credentials are invalid.
    fn closes_after<E>(&self, version: http::Version, identified: &Result<User, E>) -> bool {
        let is_anonymous = identified.as_ref().map_or(true, User::is_anonymous);
        self.closes_anonymous && version == http::Version::HTTP_2 && is_anonymous
    }

    /// Authenticates the request, applies impersonation, waits for a seat and authorizes. An error is the response to
    /// send.
    pub(super) async fn authorize_request<'a>(
        &'a self,
        arrival: &Arrival<'_>,
        info: RequestInfo,
        reply: &mut Reply,
    ) -> Result<Entry<'a>, HttpResponse> {
        if *self.stop.borrow() && info.verb != Verb::Watch {
            let message = "apiserver is shutting down";
            let details = Details { retry_after_seconds: 1, ..Details::default() };
            return Err(reply.status(&Status::new(Reason::ServiceUnavailable, message).with_details(details)));
        }
        if info.is_unfinished {
            let uri = arrival.target();
            let why = "failed to create RequestInfo: unable to determine kind and namespace from url";
            let text = format!("Internal Server Error: {}: {why}, {}\n", quoted(uri), escape(uri));
            let mut response = respond::text(500, &text);
            response.extensions_mut().insert(Early);
            return Err(response);
        }
        let timeout = self.timeout(&info).map_err(|status| reply.status(&status))?;
        // authentication may call webhooks, so it counts towards the request timeout
        let until = clock::instant() + timeout;
        let user = self.authenticate(arrival, &info, until, reply).await?;
        let span_attributes = || span_of(arrival, &info);
        (reply.span, reply.trace_context) =
            trace::of_request(&arrival.parts.headers, continues_trace(&user), arrival.received, span_attributes);
        let is_master = user.in_group(User::MASTERS);
        let user = self.impersonate(arrival, user, &info, until, reply).await?;
        if let Some(observation) = &mut reply.observation {
            observation.identified(&user);
        }
        let queued = clock::instant();
        let slot = self.admit(&user, &info, is_master, timeout, reply).await?;
        if let Some(Settled(outcome)) = arrival.parts.extensions.get() {
            return Err(match outcome {
                Ok(document) => reply.tree(StatusCode::OK, document, &Accepted::JSON),
                Err(status) => reply.status(status),
            });
        }
        let dequeued = clock::instant();
        let authorized = pin!(self.authorize(user, info));
        let authorized = trace::at(reply.trace_context, authorized);
        let authorized = tokio::time::timeout_at(until, authorized).await.map_err(|_| out_of_time())?;
        reply.audit(|audit| {
            audit.took(Layer::Queue, dequeued - queued);
            audit.took(Layer::Authorization, dequeued.elapsed());
            annotate_decision(audit, &authorized);
        });
        let authorized = authorized.map_err(|refusal| match refusal {
            Refusal::Forbidden { status, .. } => reply.status(&status),
            Refusal::Failed(why) => {
                respond::text(500, &format!("Internal Server Error: {}: {}\n", quoted(arrival.target()), escape(&why)))
            }
        })?;
        Ok(Entry { authorized, until, slot })
    }

    /// Authenticates the user of a request, then creates the audit context, since the audit policy selects requests by
    /// user.
    async fn authenticate(
        &self,
        arrival: &Arrival<'_>,
        info: &RequestInfo,
        until: tokio::time::Instant,
        reply: &mut Reply,
    ) -> Result<User, HttpResponse> {
        let started = clock::instant();
        let (client, headers) = (arrival.client, &arrival.parts.headers);
        let mut remarks = CredentialWarnings::default();
        let identified = tokio::time::timeout_at(until, self.identify(client, headers, info, &mut remarks)).await;
        let identified = identified.map_err(|_| out_of_time())?;
        if self.config.audit.is_on() {
            reply.audit_context = self.record(arrival, info, identified.as_ref().ok());
        }
        reply.warnings = remarks.warnings;
        reply.audit(|audit| {
            remarks.annotations.into_iter().for_each(|(key, text)| audit.annotate(key, text));
            audit.took(Layer::Authentication, started.elapsed());
        });
        reply.closes = self.closes_after(arrival.parts.version, &identified);
        identified.map_err(|status| {
            let response = reply.status(&status);
            reply.audit(|audit| audit.unauthenticated(&authentication::attempted(&client.certificate, headers)));
            response
        })
    }

    /// The user that acts in a request: the impersonated one, or the one that has been authenticated.
    async fn impersonate(
        &self,
        arrival: &Arrival<'_>,
        user: User,
        info: &RequestInfo,
        until: tokio::time::Instant,
        reply: &Reply,
    ) -> Result<User, HttpResponse> {
        let headers = &arrival.parts.headers;
        let impersonated = self.impersonation.impersonate(&self.context.authorizer, &user, info, headers);
        let impersonated = trace::at(reply.trace_context, impersonated);
        let impersonated = tokio::time::timeout_at(until, impersonated).await.map_err(|_| out_of_time())?;
        let Some(impersonated) = impersonated.map_err(|status| reply.status(&status))? else { return Ok(user) };
        reply.audit(|audit| audit.impersonated(&impersonated.user, impersonated.constraint));
        Ok(impersonated.user)
    }

    /// Creates the audit context of a request if the audit policy selects it.
    fn record(&self, arrival: &Arrival<'_>, info: &RequestInfo, user: Option<&User>) -> Option<Arc<AuditContext>> {
        let unknown = User::default();
        let headers = &arrival.parts.headers;
        let subject = audit::AuditedRequest {
            id: arrival.audit_id,
            uri: arrival.target(),
            info,
            user: user.unwrap_or(&unknown),
            agent: header(headers, USER_AGENT),
            sources: &audit::source_addresses(headers, arrival.client.address),
        };
        self.config.audit.begin(subject, arrival.received)
    }

    /// Waits for a seat of API priority and fairness or, if that is disabled, checks the in-flight limits.
    async fn admit<'a>(
        &'a self,
        user: &User,
        info: &RequestInfo,
        is_master: bool,
        timeout: std::time::Duration,
        reply: &mut Reply,
    ) -> Result<RequestSlot<'a>, HttpResponse> {
        let Some(flow) = &self.context.flow else {
            return self.inflight.admit(info, user).map(RequestSlot::Counted).ok_or_else(too_many);
        };
        let counted = CountedRequest::begin(info);
        let (classification, seat) = flow.admit(user, info, is_master, limits::FLOW_WAIT_MAX.min(timeout / 4)).await;
        reply.classification = classification;
        seat.map(|seat| RequestSlot::Seated(seat, counted)).map_err(|_| too_many())
    }

    /// The duration of `?timeout=`, at most the request timeout of the server.
    fn timeout(&self, info: &RequestInfo) -> Result<std::time::Duration> {
        let text = info.query.get("timeout").unwrap_or_default();
        if text.is_empty() || info.is_long_running() {
            return Ok(self.config.timeout);
        }
        let given = machinery::time::parse_duration(text).map_err(|error| {
            let why = wording::duration_error(&error, text);
            Status::bad_request(format!("invalid timeout specified in the request URL - {why}"))
        })?;
        Ok(if given.is_zero() { self.config.timeout } else { given.min(self.config.timeout) })
    }

    /// Authenticates the client by its certificate or the headers, and counts the attempt.
    async fn identify(
        &self,
        client: &Client,
        headers: &HeaderMap,
        info: &RequestInfo,
        remarks: &mut CredentialWarnings,
    ) -> Result<User> {
        let protocols = offered_protocols(headers);
        let credentials = credentials(client, headers, protocols.as_deref(), &info.path);
        let user = self.context.authentication.authenticate(&self.context.objects, &credentials, remarks).await;
        user.iter().for_each(measure::authenticated);
        let result = if user.is_ok() { "success" } else { "failure" };
        METRICS.authentication_attempts.get_or_create(&AttemptResult { result }).inc();
        user
    }

    async fn authorize(&self, user: User, info: RequestInfo) -> Result<Authorized, Refusal> {
        let authorized = authorize(&self.context.authorizer, user, info).await;
        let result = match &authorized {
            Ok(_) => "allowed",
            Err(Refusal::Forbidden { is_final: true, .. }) => "denied",
            Err(Refusal::Forbidden { .. }) => "no-opinion",
            Err(Refusal::Failed(_)) => "error",
        };
        METRICS.authorization_attempts.get_or_create(&AttemptResult { result }).inc();
        authorized
    }
}

/// The sub-protocols that a WebSocket offers, in which browsers send tokens.
fn offered_protocols(headers: &HeaderMap) -> Option<String> {
    websocket::is_upgrade_request(headers).then(|| websocket::protocols(headers))
}

fn credentials<'a>(
    client: &'a Client,
    headers: &'a HeaderMap,
    protocols: Option<&'a str>,
    path: &'a str,
) -> Credentials<'a> {
    Credentials { certificate: &client.certificate, headers, protocols, path }
}

/// Records the decision of the authorizers, and its reason.
fn annotate_decision(audit_context: &AuditContext, authorized: &Result<Authorized, Refusal>) {
    let (decision, reason) = match authorized {
        Ok(authorized) => (Some("allow"), authorized.decision.reason()),
        Err(Refusal::Forbidden { reason, .. }) => (Some("forbid"), reason.clone()),
        Err(Refusal::Failed(_)) => (None, "internal error".to_owned()),
    };
    if let Some(decision) = decision {
        audit_context.annotate("authorization.k8s.io/decision", decision);
    }
    audit_context.annotate("authorization.k8s.io/reason", reason);
}

/// Whether the trace context in the request's headers is used. It is ignored for most users, since any client could
/// force sampling with it.
fn continues_trace(user: &User) -> bool {
    user.in_group(User::MASTERS) || user.in_group("system:monitoring")
}

/// The name and the attributes of a request's span.
fn span_of(arrival: &Arrival<'_>, info: &RequestInfo) -> (String, trace::Attributes) {
    let parts = arrival.parts;
    let address = arrival.client.address.to_string();
    let protocol = format!("{:?}", parts.version);
    let attributes = trace::attributes([
        ("http.request.method", parts.method.as_str()),
        ("url.scheme", "https"),
        ("url.path", parts.uri.path()),
        ("http.target", arrival.target()),
        ("server.address", header(&parts.headers, HOST)),
        ("network.peer.address", &address),
        ("network.protocol.version", protocol.trim_start_matches("HTTP/")),
        ("user_agent.original", header(&parts.headers, USER_AGENT)),
        ("audit-id", arrival.audit_id),
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
