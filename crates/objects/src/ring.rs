//! The event ring: the newest events of a collection. Their bytes count in the share of its API.

use std::collections::VecDeque;
use std::sync::Arc;

use store::Revision;

use super::budget::Share;
use super::event::Event;
use crate::limits;

/// Events in the order of their revisions, without a gap.
pub(super) struct Ring {
    events: VecDeque<Arc<Event>>,
    after: Revision,
    share: Arc<Share>,
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.share.remove(self.events.iter().map(|event| size(event)).sum(), self.events.len() as u64);
    }
}

impl Ring {
    /// An empty ring for events after `after`, which count in a share.
    pub fn new(after: Revision, share: &Arc<Share>) -> Ring {
        Ring { events: VecDeque::new(), after, share: share.clone() }
    }

    /// An empty ring for events after `after`, in the share of this one.
    pub fn anew(&self, after: Revision) -> Ring {
        Ring::new(after, &self.share)
    }

    /// Every change after this revision is in the ring.
    pub fn after(&self) -> Revision {
        self.after
    }

    /// Appends an event.
    ///
    /// # Panics
    ///
    /// If it is older than the last one: watches would skip it.
    pub fn push(&mut self, event: Arc<Event>) {
        let last = self.events.back().map_or(self.after, |last| last.revision);
        assert!(event.revision >= last, "an event of revision {} follows one of {last}", event.revision);
        self.share.add(size(&event));
        self.events.push_back(event);
        while self.events.len() > limits::RING_EVENTS_MAX {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(old) = self.events.pop_front() {
            self.share.remove(size(&old), 1);
            self.after = old.revision;
        }
    }

    /// Drops events up to a revision while `more` returns true, and returns the revision of the oldest one that is left.
    pub fn forget(&mut self, until: Revision, more: impl Fn() -> bool) -> Option<Revision> {
        // changes of one transaction are dropped together, since a cursor continues after all of them
        let mut dropped = None;
        while let Some(first) = self.events.front().map(|first| first.revision) {
            if Some(first) != dropped && (first > until || !more()) {
                return Some(first);
            }
            dropped = Some(first);
            self.drop_oldest();
        }
        None
    }

    pub fn oldest(&self) -> Option<Revision> {
        self.events.front().map(|event| event.revision)
    }

    /// Prepends earlier events; `earlier` ends where this ring begins.
    pub fn put_before(&mut self, earlier: Ring) {
        let mut later = std::mem::replace(self, earlier);
        for event in std::mem::take(&mut later.events) {
            later.share.remove(size(&event), 1);
            self.push(event);
        }
    }

    /// The newest `count` events, in their order; `None` if the ring does not have so many.
    pub fn newest(&self, count: usize) -> Option<impl Iterator<Item = &Arc<Event>>> {
        let start = self.events.len().checked_sub(count)?;
        Some(self.events.range(start..))
    }

    /// The events after a revision, in their order.
    pub fn later_than(&self, revision: Revision) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        let start = self.events.partition_point(|event| event.revision <= revision);
        self.events.range(start..)
    }
}

/// Memory of an event, in bytes.
fn size(event: &Event) -> u64 {
    event.object.body.bytes.len() as u64 + limits::EVENT_BYTES
}
