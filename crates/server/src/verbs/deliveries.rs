//! The events of watches, and the interface by which a higher layer delays, drops or reorders them.

use futures_util::future::BoxFuture;
use machinery::Status;
use store::Revision;

use super::response::ResponseObject;

/// One event of a stream.
pub enum WatchEvent {
    Object(&'static str, ResponseObject),
    Bookmark(Revision, BookmarkKind),
    Error(Status),
}

/// The meaning of a bookmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookmarkKind {
    /// The watch has sent all events up to the revision.
    Progress,
    /// It has sent all initial events.
    InitialEventsEnd,
}

/// Decides when, and in which order, the events of one watch are delivered.
pub trait Deliveries: Send {
    /// Takes the events that the watch is about to send, and returns the events to send now.
    fn pass(&mut self, events: Vec<WatchEvent>) -> Passed;

    /// Completes when [`Deliveries::pass`] may return more events even without new ones; `None` if no events are
    /// held. The future may be dropped before it completes.
    fn ready(&mut self) -> Option<BoxFuture<'_, ()>>;

    /// Called when all events up to a revision have been sent, except events that are held.
    fn reached(&mut self, revision: Revision);
}

/// The events to send now.
#[derive(Default)]
pub struct Passed {
    pub events: Vec<WatchEvent>,
    /// Whether the watch ends after them.
    pub ends: bool,
}

/// Waits until held events may be sent. If no events are held, never returns.
pub(super) async fn ready(deliveries: &mut Option<Box<dyn Deliveries>>) {
    match deliveries.as_mut().and_then(|deliveries| deliveries.ready()) {
        Some(ready) => ready.await,
        None => std::future::pending().await,
    }
}
