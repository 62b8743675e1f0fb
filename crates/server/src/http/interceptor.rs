//! What a layer above may do to authorized requests for resources: delay or refuse them, lose or cut their responses, let them
//! read from an old cache, hold the events of their watches.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use base::request::{RequestInfo, User};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Response;
use machinery::status::Reason;
use machinery::{Status, Text, Value};
use objects::Position;
use store::Revision;

use crate::verbs::{Completion, Deliveries, Lag, Request};

/// Intercepts the requests of one API.
pub trait Interceptor: Send + Sync {
    /// The counter of requests in flight that a request belongs to, if any.
    fn counter(&self, info: &RequestInfo) -> Option<&AtomicUsize>;

    /// What is to be done to a request, if anything.
    fn intercept(&self, subject: &Subject<'_>) -> Option<Interception>;

    /// What takes note of a request, which need not be authorized, if anything does.
    fn observe(&self, info: &RequestInfo, agent: &str) -> Option<Box<dyn Observation>>;

    /// What keeps a copy of a request and of its response, if anything does. The path is that below the prefix of the API.
    fn tap(&self, info: &RequestInfo, path: &str, head: &http::request::Parts) -> Option<Arc<dyn Tap>>;

    /// What decides about the events of a watch that begins.
    fn deliveries(&self, watch: &Request, agent: &str, position: Position) -> Box<dyn Deliveries>;

    /// What completes the object that a request writes, if anything does.
    fn completion(&self, info: &RequestInfo) -> Option<Box<dyn Completion>>;

    /// Whether a request is a review: its object is validated but not stored, and [`Interceptor::review`] completes it.
    fn is_review(&self, info: &RequestInfo) -> bool;

    /// Completes the object of a review.
    fn review(&self, object: Value) -> BoxFuture<'_, Result<Value, Status>>;
}

/// Takes note of one request.
pub trait Observation: Send + Sync {
    /// The user that acts in it is known.
    fn identified(&mut self, user: &User);

    /// It has ended; a watch, when it begins.
    fn ended(self: Box<Self>, ending: &RequestEnding);
}

/// Keeps a copy of one request and of its response. The bytes come in pieces, in their order.
pub trait Tap: Send + Sync {
    fn sent(&self, bytes: &Bytes);

    fn responded(&self, head: &http::response::Parts);

    fn received(&self, bytes: &Bytes);
}

/// How a request has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestEnding {
    /// The code of the response; 0 if the connection ends instead.
    pub code: u16,
    /// The reason of its Status, if it is one.
    pub reason: Option<Reason>,
    /// The revision of the stored object in the response, if it is one.
    pub revision: Option<Revision>,
}

/// A request that may be intercepted.
pub struct Subject<'a> {
    pub user: &'a User,
    pub info: &'a RequestInfo,
    pub agent: &'a str,
}

/// What is done to a request.
#[derive(Default)]
pub struct Interception {
    /// Awaited before the request is handled.
    pub delay: Option<BoxFuture<'static, ()>>,
    pub disruption: Option<Disruption>,
    /// What causes it, for the response and the audit log.
    pub cause: Text,
    /// Kept until the request has been handled.
    pub guard: Option<Box<dyn Any + Send>>,
}

/// How the handling of a request is disrupted.
pub enum Disruption {
    /// It is not handled, and gets this response.
    Refused(Status),
    /// It is not handled, and the connection ends, or the stream of HTTP/2.
    Reset,
    /// It is handled, but the client gets the timeout.
    ResponseTimedOut,
    /// It is handled, but the connection ends before its response, or the stream of HTTP/2.
    ResponseLost,
    /// It is handled, and half of its response is sent.
    ResponseCut,
    /// It reads from an old cache.
    Lagging(Lag),
}

/// Names the cause in a response.
pub const CAUSE_HEADER: &str = "pintle-fault";
/// Names it in the audit log.
pub const CAUSE_ANNOTATION: &str = "testing.pintle.dev/fault";

/// Marks a response instead of which the connection ends.
#[derive(Clone, Copy)]
pub struct Dropped;

/// The reason of the Status in a response.
#[derive(Clone, Copy)]
pub struct StatusReason(pub Reason);

/// The revision of the stored object in a response.
#[derive(Clone, Copy)]
pub struct ShownRevision(pub Revision);

/// How a request has ended that has this response.
pub fn ending_of<B>(response: &Response<B>) -> RequestEnding {
    let extensions = response.extensions();
    if extensions.get::<Dropped>().is_some() {
        return RequestEnding::default();
    }
    RequestEnding {
        code: response.status().as_u16(),
        reason: extensions.get::<StatusReason>().map(|reason| reason.0),
        revision: extensions.get::<ShownRevision>().map(|revision| revision.0),
    }
}

/// The error with which a connection ends instead of a response.
#[derive(Debug)]
pub struct DroppedConnection;

impl std::fmt::Display for DroppedConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection is reset by a fault")
    }
}

impl std::error::Error for DroppedConnection {}
