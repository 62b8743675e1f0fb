//! Intercepts requests, see [`Interceptor`].

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use access::authorization::Authorized;
use base::request::{Query, RequestInfo, Verb};
use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt as _;
use machinery::Status;
use machinery::status::Reason;

use super::body::{Body, Broken, NextPiece, PieceSource};
use super::chain::{Edge, HttpResponse};
use super::interceptor::{
    CAUSE_ANNOTATION, CAUSE_HEADER, Disruption, Dropped, InterceptedRequest, Interception, Interceptor, Observation,
    Tap,
};
use super::request_body::RequestBody;
use super::respond::{Reply, header, response, set};
use crate::limits;
use crate::verbs::{Request, Watch};

/// Counts a request in flight until this is dropped.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn begin(counter: &'a AtomicUsize) -> Counted<'a> {
        counter.fetch_add(1, Ordering::AcqRel);
        Counted(counter)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Edge {
    /// [`Edge::handle`] of a request that may be intercepted.
    pub(super) async fn handle_intercepted(
        self: Arc<Self>,
        interceptor: Arc<dyn Interceptor>,
        mut authorized: Authorized,
        headers: &HeaderMap,
        body: RequestBody,
        reply: &mut Reply,
    ) -> HttpResponse {
        let query = &authorized.info.query;
        if authorized.info.verb == Verb::Create && interceptor.is_review(&authorized.info) && !query.has("dryRun") {
            // a review is validated like every object, but not stored
            authorized.info.query = Query::parse(&format!("{}&dryRun=All", query.encode()));
        }
        let _counted = interceptor.counter(&authorized.info).map(Counted::begin);
        let agent = header(headers, USER_AGENT);
        let subject = InterceptedRequest { user: &authorized.user, info: &authorized.info, agent };
        let Some(interception) = interceptor.intercept(&subject) else {
            return self.handle(authorized, headers, body, reply).await;
        };
        let Interception { delay, disruption, cause, guard: _guard } = interception;
        if let Some(delay) = delay {
            delay.await;
        }
        if !cause.is_empty() {
            reply.audit(|audit| audit.annotate(CAUSE_ANNOTATION, cause.clone()));
        }
        if let Some(Disruption::Lagging(lag)) = disruption {
            reply.lag = Some(lag);
        }
        let mut response = match disruption {
            Some(Disruption::Refused(status)) => reply.status(&status),
            Some(Disruption::Reset) => dropped(),
            _ => {
                let handled = self.handle(authorized, headers, body, reply).await;
                match disruption {
                    Some(Disruption::ResponseTimedOut) => reply.status(&timed_out()),
                    Some(Disruption::ResponseLost) => dropped(),
                    Some(Disruption::ResponseCut) => cut(handled).await,
                    _ => handled,
                }
            }
        };
        if !cause.is_empty() {
            set(response.headers_mut(), CAUSE_HEADER, &cause);
        }
        response
    }

    /// The observation of a request, if there is an interceptor that observes it.
    pub(super) fn observe(&self, info: &RequestInfo, headers: &HeaderMap) -> Option<Box<dyn Observation>> {
        let interceptor = self.interceptor.as_ref()?;
        interceptor.observe(info, header(headers, USER_AGENT))
    }

    /// The tap that copies a request, if there is an interceptor that records it.
    pub(super) fn tap(&self, info: &RequestInfo, path: &str, head: &http::request::Parts) -> Option<Arc<dyn Tap>> {
        let interceptor = self.interceptor.as_ref()?;
        interceptor.tap(info, path, head)
    }

    /// Lets the interceptor decide about the events of a watch.
    pub(super) fn intercept_watch(&self, request: &Request, agent: &str, watch: &mut Watch) {
        if let Some(interceptor) = &self.interceptor {
            watch.deliver_through(|position| interceptor.deliveries(request, agent, position));
        }
    }

    /// The interceptor, if the request is a review, which it completes.
    pub(super) fn reviewer(&self, request: &Request) -> Option<&Arc<dyn Interceptor>> {
        let info = &request.authorized.info;
        self.interceptor.as_ref().filter(|interceptor| info.verb == Verb::Create && interceptor.is_review(info))
    }
}

/// kube-apiserver's response when it does not know whether a write has been committed.
fn timed_out() -> Status {
    Status::new(Reason::Timeout, "Timeout: request did not complete within the allotted timeout")
}

fn dropped() -> HttpResponse {
    let mut response = response(StatusCode::INTERNAL_SERVER_ERROR, Body::Empty);
    response.extensions_mut().insert(Dropped);
    response
}

/// The response with the first half of its body, after which the connection ends.
async fn cut(response: HttpResponse) -> HttpResponse {
    let (parts, mut body) = response.into_parts();
    let mut bytes = vec![];
    // of a large list, only the beginning is cut in half
    while bytes.len() < limits::CUT_BYTES_MAX
        && let Some(Ok(frame)) = body.frame().await
    {
        bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
    }
    bytes.truncate(bytes.len() / 2);
    Response::from_parts(parts, Body::document(Box::new(Half(Some(bytes.into())))))
}

/// The first half of a response.
struct Half(Option<Bytes>);

impl PieceSource for Half {
    fn next(mut self: Box<Self>) -> NextPiece {
        Box::pin(async move {
            match self.0.take() {
                Some(half) => Ok(Some((half, self as Box<dyn PieceSource>))),
                None => {
                    // otherwise the end of the connection would overtake bytes that are not sent yet
                    tokio::time::sleep(limits::CUT_PAUSE).await;
                    Err(Broken("cut in half by a fault".to_owned()))
                }
            }
        })
    }
}
