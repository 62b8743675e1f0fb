//! What a layer above may do to authorized requests for resources: delay or refuse them, lose or cut their
//! responses, serve reads from an old cache, hold the events of watches.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use base::request::{RequestInfo, User};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Response;
use machinery::status::Reason;
use machinery::{Result, Status, Text, Value};
use objects::{Position, Stored};
use store::Revision;

use crate::verbs::{Completion, Deliveries, Lag, Request};

/// Intercepts the requests of one API.
pub trait Interceptor: Send + Sync {
    /// The counter of requests in flight to which a request belongs, if any.
    fn counter(&self, info: &RequestInfo) -> Option<&AtomicUsize>;

    /// The effect on a request, if any.
    fn intercept(&self, subject: &InterceptedRequest<'_>) -> Option<Interception>;

    /// Begins to observe a request, which may turn out to be unauthorized.
    fn observe(&self, info: &RequestInfo, agent: &str) -> Option<Box<dyn Observation>>;

    /// Begins to copy a request and its response. `path` is below the prefix of the API.
    fn tap(&self, info: &RequestInfo, path: &str, head: &http::request::Parts) -> Option<Arc<dyn Tap>>;

    /// Decides about the events of a new watch.
    fn deliveries(&self, watch: &Request, agent: &str, position: Position) -> Box<dyn Deliveries>;

    /// Completes the object that a request writes, if the interceptor does so for its resource.
    fn completion(&self, info: &RequestInfo) -> Option<Box<dyn Completion>>;

    /// Whether a request is a review: its object is validated but not stored, and [`Interceptor::review`] completes it.
    fn is_review(&self, info: &RequestInfo) -> bool;

    fn review(&self, object: Value) -> BoxFuture<'_, Result<Value>>;
}

/// Observes one request.
pub trait Observation: Send + Sync {
    /// Called when the acting user is known.
    fn identified(&mut self, user: &User);

    /// Called at the end of the request; for a watch, when it begins.
    fn ended(self: Box<Self>, ending: &RequestEnding);
}

/// Copies one request and its response. The bytes come in pieces, in order.
pub trait Tap: Send + Sync {
    fn sent(&self, bytes: &Bytes);

    fn responded(&self, head: &http::response::Parts);

    fn received(&self, bytes: &Bytes);
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestEnding {
    /// The code of the response; 0 if the connection ends instead.
    pub code: u16,
    /// The reason of the Status in the response, if it is a Status.
    pub reason: Option<Reason>,
    /// The message of that Status.
    pub message: Text,
    /// The revision of the stored object in the response, if there is one.
    pub revision: Option<Revision>,
    /// The name of that object, which requests that create one do not have in their path.
    pub name: Text,
}

/// A request that may be intercepted.
pub struct InterceptedRequest<'a> {
    pub user: &'a User,
    pub info: &'a RequestInfo,
    pub agent: &'a str,
}

/// The effect on a request.
#[derive(Default)]
pub struct Interception {
    /// Awaited before the request is handled.
    pub delay: Option<BoxFuture<'static, ()>>,
    pub disruption: Option<Disruption>,
    /// The cause, for the response and the audit log.
    pub cause: Text,
    /// Kept until the request has been handled.
    pub guard: Option<Box<dyn Any + Send>>,
}

/// How the handling of a request is disrupted.
pub enum Disruption {
    /// The request is not handled, and gets this response.
    Refused(Status),
    /// The request is not handled, and the connection or the stream of HTTP/2 ends.
    Reset,
    /// The request is handled, but the client gets a timeout error.
    ResponseTimedOut,
    /// The request is handled, but the connection or the stream of HTTP/2 ends before the response.
    ResponseLost,
    /// The request is handled, and half of the response is sent.
    ResponseCut,
    /// The request reads from an old cache.
    Lagging(Lag),
}

/// The header that names the cause in a response.
pub const CAUSE_HEADER: &str = "pintle-fault";
/// The annotation that names the cause in the audit log.
pub const CAUSE_ANNOTATION: &str = "testing.pintle.dev/fault";

/// Marks a response in whose place the connection ends.
#[derive(Clone, Copy)]
pub struct Dropped;

/// The Status in a response.
#[derive(Clone)]
pub struct ShownStatus {
    pub reason: Reason,
    pub message: Text,
}

/// The stored object in a response.
#[derive(Clone)]
pub struct ShownObject(pub Arc<Stored>);

/// How a request with this response has ended.
pub fn ending_of<B>(response: &Response<B>) -> RequestEnding {
    let extensions = response.extensions();
    if extensions.get::<Dropped>().is_some() {
        return RequestEnding::default();
    }
    let (status, object) = (extensions.get::<ShownStatus>(), extensions.get::<ShownObject>());
    RequestEnding {
        code: response.status().as_u16(),
        reason: status.map(|status| status.reason),
        message: status.map(|status| status.message.clone()).unwrap_or_default(),
        revision: object.map(|object| object.0.revision),
        name: object.map(|object| object.0.meta.name.clone()).unwrap_or_default(),
    }
}

/// The error with which a connection ends instead of a response.
#[derive(Debug, thiserror::Error)]
#[error("the connection is reset by a fault")]
pub struct DroppedConnection;
