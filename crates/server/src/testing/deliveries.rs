//! Applies gates and faults to the events of a watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use access::audit::AuditContext;
use base::clock;
use base::request::Verb;
use futures_util::future::BoxFuture;
use machinery::{Status, Text};
use objects::{Position, Stored};
use parking_lot::Mutex;
use store::Revision;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Testing;
use super::definition::GROUP;
use super::fault::{EventEffect, FaultEffect, Hit};
use super::matching::Matchable;
use super::queue::{Hold, Item, Queue};
use super::repeats::{FailedRequest, RepeatKey};
use super::report::WatchKey;
use super::state::{ReportedKind, TestState, Watcher, is_lock};
use crate::http::CAUSE_ANNOTATION;
use crate::limits;
use crate::verbs::{Deliveries, Passed, Request, ResponseObject, WatchEvent};

/// The deliveries of a watch, until it ends.
pub struct Delivering {
    testing: Arc<Testing>,
    watcher: Arc<Watcher>,
    audit_context: Option<Arc<AuditContext>>,
    /// Whether events are being sent of which no waiting client knows yet.
    sends: bool,
}

impl Testing {
    pub fn begin(self: Arc<Self>, watch: &Request, agent: &str, position: Position) -> Delivering {
        let info = &watch.authorized.info;
        let mut selection = String::new();
        for option in ["labelSelector", "fieldSelector"] {
            if let Some(text) = info.query.get(option).filter(|text| !text.is_empty()) {
                selection.push_str(&format!(" {option}={text}"));
            }
        }
        if !info.name.is_empty() {
            selection.push_str(&format!(" {}", info.name));
        }
        let key = WatchKey {
            group: info.group.clone(),
            resource: info.resource.clone(),
            namespace: info.namespace.clone(),
            selection,
        };
        let events = if key.group == GROUP { Arc::default() } else { self.kept.tally.lock().watch_begins(agent, &key) };
        let repeat = RepeatKey::of(&watch.authorized.user.name, agent, info);
        let mut state = self.state.lock();
        let id = state.number();
        let watcher = Arc::new(Watcher {
            id,
            user: watch.authorized.user.name.clone(),
            agent: agent.to_owned(),
            key,
            repeat,
            events,
            position,
            has_begun: AtomicBool::default(),
            reached: AtomicU64::default(),
            held: AtomicUsize::default(),
            queue: Mutex::new(Queue::new()),
            wake: Notify::default(),
        });
        state.watches.insert(id, watcher.clone());
        drop(state);
        Delivering { testing: self, watcher, audit_context: watch.audit_context.clone(), sends: false }
    }
}

impl Drop for Delivering {
    fn drop(&mut self) {
        let watcher = &self.watcher;
        self.testing.state.lock().watches.remove(&watcher.id);
        if watcher.key.group != GROUP {
            self.testing.kept.tally.lock().watch_ends(&watcher.agent, &watcher.key);
        }
    }
}

impl Delivering {
    /// Passes events through gates and faults. Returns those that may be sent now, including earlier ones.
    fn passed(&self, events: Vec<WatchEvent>) -> Passed {
        let holds = self.watcher.held.load(Ordering::Acquire) > 0;
        // watches of this group are never intercepted
        if self.watcher.key.group == GROUP || !holds && !self.testing.is_active() {
            return Passed { events, ends: false };
        }
        let now = clock::instant();
        let cause = self.testing.change(|state| {
            let mut cause = None;
            for event in events {
                cause = state.admit(&self.watcher, event, now).or(cause);
            }
            cause
        });
        if let (Some(cause), Some(audit_context)) = (cause, &self.audit_context) {
            audit_context.annotate(CAUSE_ANNOTATION, cause);
        }
        let mut queue = self.watcher.queue.lock();
        let (mut events, mut ends) = queue.take(now);
        if queue.len() > limits::HELD_EVENTS_MAX {
            queue.clear();
            events.push(WatchEvent::Error(Status::expired("more events of the watch are held than the server keeps")));
            ends = true;
        }
        self.watcher.held.store(queue.len(), Ordering::Release);
        Passed { events, ends }
    }
}

impl Deliveries for Delivering {
    fn pass(&mut self, events: Vec<WatchEvent>) -> Passed {
        let passed = self.passed(events);
        let objects = passed.events.iter().filter(|event| matches!(event, WatchEvent::Object(..))).count();
        self.watcher.events.fetch_add(objects as u64, Ordering::AcqRel);
        let is_heartbeat = |event: &WatchEvent| match event {
            WatchEvent::Object(_, ResponseObject::Stored(stored, _)) => is_lock(&self.watcher.key.resource, stored),
            WatchEvent::Object(..) => false,
            _ => true,
        };
        self.sends |= !passed.events.iter().all(is_heartbeat);
        passed
    }

    fn ready(&mut self) -> Option<BoxFuture<'_, ()>> {
        if self.watcher.held.load(Ordering::Acquire) == 0 {
            return None;
        }
        let due = self.watcher.queue.lock().due();
        let watcher = &self.watcher;
        Some(Box::pin(async move {
            match due {
                None => watcher.wake.notified().await,
                Some(due) => tokio::select! {
                    () = watcher.wake.notified() => {}
                    () = tokio::time::sleep_until(due) => {}
                },
            }
        }))
    }

    fn reached(&mut self, revision: Revision) {
        if std::mem::take(&mut self.sends) && self.testing.is_active() {
            self.testing.state.lock().delivered(&self.watcher.key);
        }
        self.watcher.reached.store(revision, Ordering::Release);
        self.watcher.has_begun.store(true, Ordering::Release);
    }
}

impl TestState {
    /// Adds an event to the queue of its watch, held as gates and faults demand. Returns the fault that hit it. The event that a
    /// gate holds meets faults when it is released.
    fn admit(&mut self, watcher: &Watcher, event: WatchEvent, now: Instant) -> Option<Text> {
        let order = self.number();
        let path = stored_of(&event).map(path_of).unwrap_or_default();
        let item = Item { event: Some(event), path, hold: Hold::Free, order };
        if let Some(gate) = self.gate_of(watcher, &item) {
            self.changed.insert((ReportedKind::Gate, gate.clone()));
            watcher.queue.lock().push(Item { hold: Hold::Gate(gate), ..item });
            return None;
        }
        let (items, cause) = self.disrupted(watcher, item, now);
        let mut queue = watcher.queue.lock();
        items.into_iter().for_each(|item| queue.push(item));
        cause
    }

    fn gate_of(&self, watcher: &Watcher, item: &Item<WatchEvent>) -> Option<Text> {
        let stored = stored_of(item.event.as_ref()?)?;
        let (target, labels) = (target_of(watcher, stored), || Some(&*stored.meta.labels));
        let gate = self.gates.iter().find(|(_, gate)| !gate.open && gate.matcher.matches(&target, labels));
        gate.map(|(name, _)| name.clone())
    }

    /// The event after the faults, and the fault that hit it.
    pub fn disrupted(
        &mut self,
        watcher: &Watcher,
        item: Item<WatchEvent>,
        now: Instant,
    ) -> (Vec<Item<WatchEvent>>, Option<Text>) {
        let free = Item { hold: Hold::Free, ..item };
        let Some(hit) = free.event.as_ref().and_then(stored_of).and_then(|stored| self.hit_event(watcher, stored, now))
        else {
            return (vec![free], None);
        };
        let Item { event, path, order, .. } = free;
        let of = |event, hold: &Hold| Item { event, path: path.clone(), hold: hold.clone(), order };
        let items = match hit.effect {
            EventEffect::Drop => vec![],
            EventEffect::End => vec![of(None, &hit.hold)],
            EventEffect::Expire => {
                let expired = Status::expired("The resourceVersion for the provided watch is too old.");
                vec![of(Some(WatchEvent::Error(expired)), &hit.hold), of(None, &Hold::Free)]
            }
            EventEffect::Repeat => {
                let copy = match &event {
                    Some(WatchEvent::Object(kind, object)) => Some(WatchEvent::Object(kind, object.clone())),
                    _ => None,
                };
                let copy = copy.map(|event| of(Some(event), &hit.hold));
                copy.into_iter().chain([of(event, &hit.hold)]).collect()
            }
            EventEffect::Delay | EventEffect::Reorder => vec![of(event, &hit.hold)],
        };
        (items, Some(hit.fault))
    }

    /// The fault that hits an event, if one does.
    fn hit_event(&mut self, watcher: &Watcher, stored: &Stored, now: Instant) -> Option<EventHit> {
        let (target, labels, millis) = (target_of(watcher, stored), || Some(&*stored.meta.labels), self.now_millis());
        let (fault, effect, ordinal, delay) = self.faults.iter_mut().find_map(|(name, fault)| {
            let (rule, at) = fault.hit(&target, labels, millis)?;
            let FaultEffect::Event(effect) = rule.effect else { return None };
            Some((name.clone(), effect, at.ordinal, rule.delay_of(at)))
        })?;
        let hit = Hit {
            seconds: millis.div_euclid(1000),
            ordinal,
            effect: FaultEffect::Event(effect).name(),
            request: format!("{} {} {}", Verb::Watch.as_str(), watcher.key.resource, path_of(stored)),
            user: watcher.user.clone(),
            agent: watcher.agent.as_str().into(),
        };
        if matches!(effect, EventEffect::End | EventEffect::Expire) {
            let (request, pause) = (hit.request.clone(), Some(delay + limits::FAULT_REPEAT));
            self.repeats.expect(watcher.repeat.clone(), FailedRequest { request, fault: fault.clone(), pause }, now);
        }
        self.remember(&fault, hit);
        let hold = match effect {
            EventEffect::Reorder if delay.is_zero() => Hold::Swap(now + limits::FAULT_REORDER, fault.clone()),
            EventEffect::Reorder => Hold::Swap(now + delay, fault.clone()),
            _ if delay.is_zero() => Hold::Free,
            _ => Hold::Until(now + delay, fault.clone()),
        };
        Some(EventHit { fault, effect, hold })
    }
}

/// The effect of a fault on an event.
struct EventHit {
    fault: Text,
    effect: EventEffect,
    hold: Hold,
}

/// The object of an event.
fn stored_of(event: &WatchEvent) -> Option<&Stored> {
    match event {
        WatchEvent::Object(_, object) => object.as_stored(),
        WatchEvent::Bookmark(..) | WatchEvent::Error(_) => None,
    }
}

fn path_of(stored: &Stored) -> Text {
    match stored.meta.namespace.as_str() {
        "" => stored.meta.name.clone(),
        namespace => format!("{namespace}/{}", stored.meta.name).into(),
    }
}

fn target_of<'a>(watcher: &'a Watcher, stored: &'a Stored) -> Matchable<'a> {
    Matchable {
        user: &watcher.user,
        agent: &watcher.agent,
        verb: None,
        group: &watcher.key.group,
        resource: &watcher.key.resource,
        subresource: "",
        namespace: &stored.meta.namespace,
        name: &stored.meta.name,
        reads_state: false,
        may_be_stale: false,
    }
}
