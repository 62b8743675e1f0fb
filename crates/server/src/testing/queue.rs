//! The held events of one watch: when, and in which order, they are sent.
//!
//! Invariants: the events of one object keep their order. An event about no single object, such as a bookmark, is
//! not sent before earlier ones, since a client that resumes after it would never see them.

use std::collections::{HashSet, VecDeque};

use machinery::Text;
use tokio::time::Instant;

/// Why an event is held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    #[default]
    Free,
    /// Until this gate releases the event.
    Gate(Text),
    /// Until this time, together with all later events, because of this fault.
    Until(Instant, Text),
    /// Until the next event has been sent, but no longer than until this time, because of this fault.
    Swap(Instant, Text),
}

/// An event, or the end of the watch.
pub struct Item<E> {
    /// `None` ends the watch.
    pub event: Option<E>,
    /// The path of the object; empty if the event is about no single object.
    pub path: Text,
    pub hold: Hold,
    /// The number of the event among all events of the workspace.
    pub order: u64,
}

pub struct Queue<E> {
    items: VecDeque<Item<E>>,
    /// The number of the first items that gates have released, in the order of their release.
    released: usize,
}

impl<E> Queue<E> {
    pub fn new() -> Queue<E> {
        Queue { items: VecDeque::new(), released: 0 }
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn push(&mut self, item: Item<E>) {
        self.items.push_back(item);
    }

    pub fn clear(&mut self) {
        self.items.clear();
        self.released = 0;
    }

    /// Takes the events that may be sent now, and whether the watch ends after them.
    pub fn take(&mut self, now: Instant) -> (Vec<E>, bool) {
        let mut out = vec![];
        let mut waiting = std::mem::take(&mut self.items);
        let mut released = std::mem::take(&mut self.released);
        let mut blocked: HashSet<Text> = HashSet::new();
        while let Some(item) = waiting.pop_front() {
            let is_released = released > 0;
            released = released.saturating_sub(1);
            let is_late = match &item.hold {
                Hold::Until(until, _) => now < *until,
                // a swapped event comes after the next event or, if there is none, after all others
                Hold::Swap(until, _) => now < *until && waiting.is_empty(),
                Hold::Free | Hold::Gate(_) => false,
            };
            if is_late {
                // all that are left wait, in their order
                self.released = if is_released { released + 1 } else { 0 };
                self.items.push_back(item);
                self.items.append(&mut waiting);
                break;
            }
            let is_swapped = matches!(&item.hold, Hold::Swap(until, _) if now < *until);
            if is_swapped
                && let Some(next) = waiting.pop_front_if(|next| {
                    next.hold == Hold::Free
                        && !next.path.is_empty()
                        && next.path != item.path
                        && !blocked.contains(&next.path)
                })
            {
                out.extend(next.event);
            }
            let waits_for_others =
                if item.path.is_empty() { !self.items.is_empty() } else { blocked.contains(&item.path) };
            if waits_for_others || matches!(item.hold, Hold::Gate(_)) {
                blocked.insert(item.path.clone());
                self.items.push_back(item);
                continue;
            }
            match item.event {
                Some(event) => out.push(event),
                None => return (out, true),
            }
        }
        (out, false)
    }

    /// The next time at which events may be sent.
    pub fn due(&self) -> Option<Instant> {
        let time = |item: &Item<E>| match item.hold {
            Hold::Until(until, _) | Hold::Swap(until, _) => Some(until),
            Hold::Free | Hold::Gate(_) => None,
        };
        self.items.iter().filter_map(time).min()
    }

    /// The numbers of the events that a gate holds.
    pub fn held_by<'a>(&'a self, gate: &'a str) -> impl Iterator<Item = u64> + 'a {
        self.items.iter().filter(move |item| matches!(&item.hold, Hold::Gate(by) if by == gate)).map(|item| item.order)
    }

    /// Takes an event that a gate holds. If the gate holds an earlier event of the same object, that is taken instead.
    pub fn take_held(&mut self, gate: &str, order: u64) -> Option<Item<E>> {
        let path = self.items.iter().find(|item| item.order == order)?.path.clone();
        let is_held = |item: &Item<E>| item.path == path && matches!(&item.hold, Hold::Gate(by) if by == gate);
        let index = self.items.iter().position(is_held)?;
        self.items.remove(index)
    }

    /// Adds what became of an event that a gate has released. It is sent before the events that are held.
    pub fn release(&mut self, items: Vec<Item<E>>) {
        for item in items {
            self.items.insert(self.released, item);
            self.released += 1;
        }
    }

    /// Frees the events that a gate holds, each as what `decide` makes of it. Returns their number.
    pub fn free_gate(&mut self, gate: &str, mut decide: impl FnMut(Item<E>) -> Vec<Item<E>>) -> usize {
        let mut freed = 0;
        for item in std::mem::take(&mut self.items) {
            if matches!(&item.hold, Hold::Gate(by) if by == gate) {
                freed += 1;
                self.items.extend(decide(item));
            } else {
                self.items.push_back(item);
            }
        }
        freed
    }

    /// Frees the events whose reason to be held is gone. Returns their number.
    pub fn free(&mut self, is_gone: impl Fn(&Hold) -> bool) -> usize {
        let gone = self.items.iter_mut().filter(|item| is_gone(&item.hold));
        gone.map(|item| item.hold = Hold::Free).count()
    }

    /// The number of events that are held for such a reason.
    pub fn count(&self, is_it: impl Fn(&Hold) -> bool) -> usize {
        self.items.iter().filter(|item| is_it(&item.hold)).count()
    }

    /// Why the first held event is held.
    pub fn held_first(&self) -> Option<&Hold> {
        self.items.front().map(|item| &item.hold)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::clock;

    use super::*;

    /// A queue of events, named by object and number, such as `a1`. Those before a colon are held: `g` by a gate,
    /// `u` until later, `s` swapped. `-` is a bookmark, `.` the end.
    fn queue(events: &str, later: Instant) -> Queue<String> {
        let mut queue = Queue::new();
        for (order, word) in events.split_whitespace().enumerate() {
            let (hold, event) = word.split_once(':').unwrap_or(("", word));
            let hold = match hold {
                "g" => Hold::Gate("g".into()),
                "u" => Hold::Until(later, "f".into()),
                "s" => Hold::Swap(later, "f".into()),
                _ => Hold::Free,
            };
            let path = if event == "-" { "" } else { &event[..1] };
            let event = (event != ".").then(|| event.to_owned());
            queue.push(Item { event, path: path.into(), hold, order: order as u64 });
        }
        queue
    }

    #[test]
    fn held_events_keep_the_order_of_their_objects() {
        let now = clock::instant();
        let later = now + Duration::from_secs(1);
        for (events, sent, sent_later) in [
            ("a1 b1 -", "a1 b1 -", ""),
            ("g:a1 b1", "b1", ""),
            ("g:a1 a2 b1 a3", "b1", ""),
            ("g:a1 b1 -", "b1", ""),
            ("u:a1 b1 -", "", "a1 b1 -"),
            ("b1 u:a1 b2", "b1", "a1 b2"),
            ("s:a1 b1", "b1 a1", ""),
            ("s:a1 a2", "a1 a2", ""),
            ("s:a1 -", "a1 -", ""),
            ("s:a1", "", "a1"),
            ("a1 . b1", "a1 END", ""),
        ] {
            let mut queue = queue(events, later);
            let mut take = |at| {
                let (mut taken, ends) = queue.take(at);
                taken.extend(ends.then(|| "END".to_owned()));
                taken.join(" ")
            };
            assert_eq!((take(now).as_str(), take(later).as_str()), (sent, sent_later), "{events}");
        }
    }

    #[test]
    fn gates_release_events_of_an_object_in_order() {
        let now = clock::instant();
        let mut queue = queue("g:a1 g:b1 g:a2 -", now);
        assert_eq!(queue.held_by("g").collect::<Vec<_>>(), [0, 1, 2]);
        let release = |queue: &mut Queue<String>, order| {
            let item = queue.take_held("g", order)?;
            let order = item.order;
            queue.release(vec![Item { hold: Hold::Free, ..item }]);
            Some(order)
        };
        assert_eq!(release(&mut queue, 2), Some(0), "a1 goes before a2");
        assert_eq!(queue.take(now).0, ["a1"]);
        assert_eq!((release(&mut queue, 2), release(&mut queue, 1)), (Some(2), Some(1)));
        assert_eq!(queue.take(now).0, ["a2", "b1", "-"]);
        assert_eq!((release(&mut queue, 1), queue.len()), (None, 0));
    }

    #[test]
    fn a_released_event_that_is_delayed_keeps_its_place() {
        let now = clock::instant();
        let later = now + Duration::from_secs(1);
        let mut queue = queue("g:a1 g:a2 g:b1 -", now);
        let first = queue.take_held("g", 0).unwrap();
        queue.release(vec![Item { hold: Hold::Until(later, "f".into()), ..first }]);
        assert!(queue.take(now).0.is_empty());
        let second = queue.take_held("g", 1).unwrap();
        queue.release(vec![Item { hold: Hold::Free, ..second }]);
        assert!(queue.take(now).0.is_empty(), "a2 comes after a1");
        assert_eq!(queue.take(later).0, ["a1", "a2"]);
        assert_eq!(queue.free_gate("g", |item| vec![Item { hold: Hold::Free, ..item }]), 1);
        assert_eq!(queue.take(later).0, ["b1", "-"]);
    }

    #[test]
    fn deletion_frees_events() {
        let now = clock::instant();
        let mut queue = queue("g:a1 u:b1", now + Duration::from_secs(1));
        assert!(queue.take(now).0.is_empty() && queue.due().is_some());
        assert_eq!(queue.free_gate("g", |item| vec![Item { hold: Hold::Free, ..item }]), 1);
        assert_eq!(queue.take(now).0, ["a1"]);
        assert_eq!(queue.free(|hold| matches!(hold, Hold::Until(..))), 1);
        assert_eq!((queue.take(now).0, queue.due()), (vec!["b1".to_owned()], None));
    }
}
