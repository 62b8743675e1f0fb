//! The events of watches, and what a layer above may do to them before they are sent.

use futures_util::future::BoxFuture;
use machinery::Status;
use store::Revision;

use super::response::ResponseObject;

/// One event of a stream.
pub enum WatchEvent {
    Object(&'static str, ResponseObject),
    /// A bookmark; true if it marks the end of the initial events.
    Bookmark(Revision, bool),
    Error(Status),
}

/// Decides when, and in which order, the events of one watch are delivered.
pub trait Deliveries: Send {
    /// Takes the events that the watch would send, and returns those to send now.
    fn pass(&mut self, events: Vec<WatchEvent>) -> Passed;

    /// Completes when [`Deliveries::pass`] may return more although there are no new events; `None` if nothing is
    /// held. The future may be dropped before it completes.
    fn ready(&mut self) -> Option<BoxFuture<'_, ()>>;

    /// Called when all events up to a revision have been sent, except held ones.
    fn reached(&mut self, revision: Revision);
}

/// The events to send now.
#[derive(Default)]
pub struct Passed {
    pub events: Vec<WatchEvent>,
    /// Whether the watch ends after them.
    pub ends: bool,
}

/// Waits until held events may be sent; for ever if none are.
pub(super) async fn ready(deliveries: &mut Option<Box<dyn Deliveries>>) {
    match deliveries.as_mut().and_then(|deliveries| deliveries.ready()) {
        Some(ready) => ready.await,
        None => std::future::pending().await,
    }
}
