//! The event ring: the newest events of a collection, within the limits of number and bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use store::Revision;

use super::event::Event;
use crate::limits;

/// Events in the order of their revisions, without a gap.
#[derive(Default)]
pub(super) struct Ring {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    after: Revision,
}

impl Ring {
    /// An empty ring for events after `after`.
    pub fn new(after: Revision) -> Ring {
        Ring { events: VecDeque::new(), bytes: 0, after }
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
        self.bytes += size(&event);
        self.events.push_back(event);
        while self.is_over_full() {
            if let Some(old) = self.events.pop_front() {
                self.bytes -= size(&old);
                self.after = old.revision;
            }
        }
    }

    fn is_over_full(&self) -> bool {
        let many = self.bytes > limits::RING_BYTES_MAX && self.events.len() > limits::RING_EVENTS_MIN;
        many || self.events.len() > limits::RING_EVENTS_MAX
    }

    /// Prepends earlier events; `earlier` ends where this ring begins.
    pub fn put_before(&mut self, earlier: Ring) {
        let later = std::mem::replace(self, earlier);
        later.events.into_iter().for_each(|event| self.push(event));
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
fn size(event: &Event) -> usize {
    event.object.body.bytes.len()
}
