//! What gates and faults do to the events of a watch.

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
use super::state::{ReportedKind, TestState, Watcher};
use crate::http::CAUSE_ANNOTATION;
use crate::limits;
use crate::verbs::{Deliveries, Passed, Request, WatchEvent};

/// The deliveries of a watch, until it ends.
pub struct Delivering {
    testing: Arc<Testing>,
    watcher: Arc<Watcher>,
    audit_context: Option<Arc<AuditContext>>,
    /// Whether events are being sent of which no waiting client knows yet.
    sends: bool,
}

impl Testing {
    /// Begins the deliveries of a watch.
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
        let events = match key.group == GROUP {
            true => Arc::default(),
            false => self.tally().watch_begins(agent, &key),
        };
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
            self.testing.tally().watch_ends(&watcher.agent, &watcher.key);
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
        self.sends |= objects > 0;
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
    /// Adds an event to the queue of its watch, held as gates and faults demand. Returns the fault that hit it.
    fn admit(&mut self, watcher: &Watcher, event: WatchEvent, now: Instant) -> Option<Text> {
        let order = self.number();
        let (path, hold, hit) = match &event {
            WatchEvent::Object(_, object) => match object.as_stored() {
                Some(stored) => self.decide(watcher, stored, now),
                None => Default::default(),
            },
            WatchEvent::Bookmark(..) | WatchEvent::Error(_) => Default::default(),
        };
        let (cause, effect) = hit.unzip();
        let mut queue = watcher.queue.lock();
        let mut push = |event, hold| queue.push(Item { event, path: path.clone(), hold, order });
        match effect {
            Some(EventEffect::Drop) => {}
            Some(EventEffect::End) => push(None, Hold::Free),
            Some(EventEffect::Expire) => {
                let expired = Status::expired("The resourceVersion for the provided watch is too old.");
                push(Some(WatchEvent::Error(expired)), Hold::Free);
                push(None, Hold::Free);
            }
            Some(EventEffect::Repeat) => {
                if let WatchEvent::Object(kind, object) = &event {
                    push(Some(WatchEvent::Object(kind, object.clone())), hold.clone());
                }
                push(Some(event), hold);
            }
            Some(EventEffect::Delay | EventEffect::Reorder) | None => push(Some(event), hold),
        }
        cause
    }

    /// The path of an object, the reason to hold its event, and what a fault does to the event.
    fn decide(
        &mut self,
        watcher: &Watcher,
        stored: &Stored,
        now: Instant,
    ) -> (Text, Hold, Option<(Text, EventEffect)>) {
        let meta = &stored.meta;
        let path = match meta.namespace.as_str() {
            "" => meta.name.clone(),
            namespace => format!("{namespace}/{}", meta.name).into(),
        };
        let target = Matchable {
            user: &watcher.user,
            agent: &watcher.agent,
            verb: None,
            group: &watcher.key.group,
            resource: &watcher.key.resource,
            subresource: "",
            namespace: &meta.namespace,
            name: &meta.name,
            reads_state: false,
            may_be_stale: false,
        };
        let (labels, millis) = (|| Some(&*meta.labels), self.now_millis());
        let mut found = None;
        for (name, fault) in &mut self.faults {
            let Some((rule, at)) = fault.hit(&target, labels, millis) else { continue };
            if let FaultEffect::Event(effect) = rule.effect {
                found = Some((name.clone(), effect, at.ordinal, rule.delay_of(at)));
                break;
            }
        }
        if let Some((name, effect, ordinal, delay)) = found {
            let hit = Hit {
                seconds: millis.div_euclid(1000),
                ordinal,
                effect: FaultEffect::Event(effect).name(),
                request: format!("{} {} {path}", Verb::Watch.as_str(), watcher.key.resource),
                user: watcher.user.clone(),
                agent: watcher.agent.as_str().into(),
            };
            if matches!(effect, EventEffect::End | EventEffect::Expire) {
                let request = hit.request.clone();
                let failed = FailedRequest { request, fault: name.clone(), pause: None };
                self.repeats.expect(watcher.repeat.clone(), failed, now);
            }
            self.remember(&name, hit);
            let hold = match effect {
                EventEffect::Delay => Hold::Until(now + delay, name.clone()),
                EventEffect::Reorder if delay.is_zero() => Hold::Swap(now + limits::FAULT_REORDER, name.clone()),
                EventEffect::Reorder => Hold::Swap(now + delay, name.clone()),
                _ => Hold::Free,
            };
            return (path, hold, Some((name, effect)));
        }
        let gate = self.gates.iter().find(|(_, gate)| !gate.open && gate.matcher.matches(&target, labels));
        let hold = match gate {
            Some((name, _)) => Hold::Gate(name.clone()),
            None => Hold::Free,
        };
        if let Hold::Gate(name) = &hold {
            self.changed.insert((ReportedKind::Gate, name.clone()));
        }
        (path, hold, None)
    }
}
