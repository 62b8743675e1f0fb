//! The faults, gates, watches and waits of a workspace.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::Duration;

use base::clock::{self, WorkspaceClock};
use machinery::{Text, Value};
use objects::{Event, Key, Position, Stored};
use parking_lot::Mutex;
use store::Revision;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::fault::{Fault, FaultEffect, Lateness};
use super::gate::Gate;
use super::queue::{Hold, Queue};
use super::repeats::{RepeatKey, Repeats};
use super::report::{WatchKey, resource_name};
use crate::limits;
use crate::verbs::WatchEvent;

/// What heartbeats of leaders count as.
const LEASES: &str = "leases.coordination.k8s.io";

/// Whether an object of a resource is the lock of a leader election, as older versions of client-go have it instead of a Lease.
pub fn is_lock(plural: &str, object: &Stored) -> bool {
    let has_annotations = matches!(plural, "configmaps" | "endpoints") && object.body.has("metadata", "annotations");
    let leader = ["metadata", "annotations", "control-plane.alpha.kubernetes.io/leader"];
    has_annotations && object.body.to_value(object.revision).at(&leader).is_some()
}

pub struct Watcher {
    pub id: u64,
    pub user: Text,
    pub agent: String,
    pub key: WatchKey,
    /// The request that the client repeats when the watch ends.
    pub repeat: RepeatKey,
    pub position: Position,
    /// Whether the initial objects have been sent.
    pub has_begun: AtomicBool,
    /// The revision up to which every event was sent, except held ones.
    pub reached: AtomicU64,
    /// The number of events that have been sent, for the report.
    pub events: Arc<AtomicU64>,
    /// The number of held events.
    pub held: AtomicUsize,
    pub queue: Mutex<Queue<WatchEvent>>,
    /// Notified when held events may be sent.
    pub wake: Notify,
}

#[derive(Clone)]
pub struct InFlightRequest {
    pub request: String,
    pub user: Text,
    pub agent: String,
}

/// The writes and deliveries since a wait began.
pub struct Activity {
    /// Resources that do not count.
    pub ignored: Vec<String>,
    pub writes: u64,
    /// The time of the last write or delivery.
    pub last: Instant,
    /// The object that was written last.
    pub object: String,
}

/// The kinds whose status is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportedKind {
    Fault,
    Gate,
}

#[derive(Default)]
pub struct TestState {
    pub clock: Arc<WorkspaceClock>,
    pub faults: BTreeMap<Text, Fault>,
    /// The faults of the context that the workspace had before.
    pub earlier: BTreeMap<Text, Fault>,
    pub gates: BTreeMap<Text, Gate>,
    pub watches: BTreeMap<u64, Arc<Watcher>>,
    pub flights: BTreeMap<u64, InFlightRequest>,
    pub waits: BTreeMap<u64, Activity>,
    /// Requests that clients are expected to repeat.
    pub repeats: Repeats,
    /// Objects whose status has changed.
    pub changed: BTreeSet<(ReportedKind, Text)>,
    /// Revisions and the times at which they were written, oldest first. Kept while a fault needs them.
    ages: VecDeque<(Instant, Revision)>,
    next: u64,
}

impl TestState {
    pub fn new(clock: Arc<WorkspaceClock>) -> TestState {
        TestState { clock, ..TestState::default() }
    }

    /// A number that was not returned before.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Milliseconds since the Unix epoch.
    pub fn now_millis(&self) -> i64 {
        clock::micros_of(Some(&self.clock)).div_euclid(1000)
    }

    /// Whether any object may concern a request.
    pub fn is_active(&self) -> bool {
        let now = self.now_millis();
        let acts = |fault: &Fault| !fault.has_ended(now) && !fault.rules.is_empty();
        let is_watched = !self.gates.is_empty() || !self.waits.is_empty() || !self.repeats.is_empty();
        is_watched || self.faults.values().any(acts)
    }

    pub fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    pub fn set_fault(&mut self, name: &Text, object: &Value, revision: Revision) {
        let fault = Fault::read(object);
        let is_known = |known: &Fault| known.uid == fault.uid && known.generation == fault.generation;
        if self.faults.get(name).is_some_and(is_known) {
            // the controller has written this status
            return;
        }
        self.remove_fault(name);
        let fault = self.earlier.remove(name).filter(is_known).unwrap_or(fault);
        self.faults.insert(name.clone(), fault);
        if self.ages.is_empty() && self.longest_age().is_some() {
            self.ages.push_back((clock::instant(), revision));
        }
        self.changed.insert((ReportedKind::Fault, name.clone()));
    }

    pub fn remove_fault(&mut self, name: &Text) {
        self.faults.remove(name);
        if self.longest_age().is_none() {
            self.ages.clear();
        }
        self.free(|hold| matches!(hold, Hold::Until(_, by) | Hold::Swap(_, by) if by == name));
    }

    pub fn set_gate(&mut self, name: &Text, object: &Value) {
        let gate = Gate::read(object);
        match self.gates.get_mut(name).filter(|known| known.uid == gate.uid) {
            Some(known) if known.generation == gate.generation => return,
            Some(known) => known.change(gate),
            None => {
                self.remove_gate(name);
                self.gates.insert(name.clone(), gate);
            }
        }
        self.changed.insert((ReportedKind::Gate, name.clone()));
    }

    pub fn remove_gate(&mut self, name: &Text) {
        self.gates.remove(name);
        self.free_gate(name);
    }

    /// Lets all events of a gate pass, as far as faults let them.
    fn free_gate(&mut self, name: &Text) {
        let now = clock::instant();
        for watcher in self.watches.values().cloned().collect::<Vec<_>>() {
            let mut queue = watcher.queue.lock();
            if queue.free_gate(name, |item| self.disrupted(&watcher, item, now).0) > 0 {
                watcher.wake.notify_one();
            }
        }
    }

    /// Frees the events whose reason to be held is gone.
    fn free(&self, is_gone: impl Fn(&Hold) -> bool) {
        for watcher in self.watches.values() {
            if watcher.queue.lock().free(&is_gone) > 0 {
                watcher.wake.notify_one();
            }
        }
    }

    /// Lets gates release events, as far as they may, and no longer expects what clients should have done.
    pub fn pump(&mut self) {
        self.expire_repeats();
        let names: Vec<Text> = self.gates.keys().cloned().collect();
        for name in names {
            let released = self.release(&name);
            if let Some(gate) = self.gates.get_mut(&name).filter(|_| released > 0) {
                gate.released += released;
                self.changed.insert((ReportedKind::Gate, name));
            }
        }
    }

    /// Releases the events that a gate may let through, and returns their number.
    fn release(&mut self, name: &Text) -> u64 {
        let Some(gate) = self.gates.get(name) else { return 0 };
        if gate.open {
            // events that pass an open gate do not count, so that closing it holds all later ones
            self.free_gate(name);
            return 0;
        }
        let (release, released, order) = (gate.release, gate.released, gate.order);
        if released >= release {
            return 0;
        }
        let now = clock::instant();
        let mut held = self.held_by(name);
        let mut done = 0;
        while released + done < release && !held.is_empty() {
            let (number, id) = held[order.next(held.len(), released + done)];
            let Some(watcher) = self.watches.get(&id).cloned() else { break };
            let mut queue = watcher.queue.lock();
            let Some(item) = queue.take_held(name, number) else { break };
            held.retain(|(other, _)| *other != item.order);
            queue.release(self.disrupted(&watcher, item, now).0);
            watcher.wake.notify_one();
            done += 1;
        }
        done
    }

    /// The events that a gate holds, in their order, and the watches that they belong to.
    pub fn held_by(&self, name: &str) -> Vec<(u64, u64)> {
        let of = |watcher: &Arc<Watcher>| -> Vec<(u64, u64)> {
            watcher.queue.lock().held_by(name).map(|order| (order, watcher.id)).collect()
        };
        let mut held: Vec<_> = self.watches.values().flat_map(of).collect();
        held.sort_unstable();
        held
    }

    /// Records a write.
    pub fn written(&mut self, key: &Key, event: &Event) {
        let revision = event.revision;
        self.trigger(key, event);
        let now = clock::instant();
        let resource = match is_lock(&key.plural, &event.object) {
            true => LEASES.to_owned(),
            false => resource_name(&key.group, &key.plural, ""),
        };
        for activity in self.waits.values_mut().filter(|activity| !activity.ignored.contains(&resource)) {
            (activity.writes, activity.last) = (activity.writes + 1, now);
            activity.object = format!("{resource} {}", key.path);
        }
        if let Some(longest) = self.longest_age() {
            self.remember_age(now, revision, longest);
        }
    }

    /// Begins the faults that wait for a write like this.
    fn trigger(&mut self, key: &Key, event: &Event) {
        for (name, fault) in &mut self.faults {
            if fault.trigger.take_if(|trigger| trigger.fires(key, event)).is_some() {
                self.changed.insert((ReportedKind::Fault, name.clone()));
            }
        }
    }

    /// Records that events of a resource have been sent to a client.
    pub fn delivered(&mut self, key: &WatchKey) {
        let (now, resource) = (clock::instant(), resource_name(&key.group, &key.resource, ""));
        for activity in self.waits.values_mut().filter(|activity| !activity.ignored.contains(&resource)) {
            activity.last = now;
        }
    }

    /// Stops to expect repeated requests whose time is over. From then on, the clients get the quiet time.
    pub fn expire_repeats(&mut self) {
        let now = clock::instant();
        if self.repeats.expire(now) {
            self.waits.values_mut().for_each(|activity| activity.last = now);
        }
    }

    /// Whether a client has a watch.
    pub fn has_watch(&self, user: &str, agent: &str) -> bool {
        self.watches.values().any(|watch| watch.user == user && watch.agent == agent)
    }

    /// The longest time by which a cache lags behind, if any does.
    fn longest_age(&self) -> Option<Duration> {
        let rules = self.faults.values().flat_map(|fault| &fault.rules);
        let age = |effect: &FaultEffect| match effect {
            FaultEffect::Stale { behind: Lateness::Time(age), .. } => Some(*age),
            _ => None,
        };
        rules.filter_map(|rule| age(&rule.effect)).max()
    }

    fn remember_age(&mut self, now: Instant, revision: Revision, longest: Duration) {
        let is_alone = self.ages.len() == 1;
        match self.ages.back_mut().filter(|(at, _)| !is_alone && now - *at < limits::FAULT_AGE_STEP) {
            Some(last) => last.1 = revision,
            None => self.ages.push_back((now, revision)),
        }
        while self.ages.get(1).is_some_and(|(at, _)| now - *at > longest) || self.ages.len() > limits::FAULT_AGES_MAX {
            self.ages.pop_front();
        }
    }

    /// The revision of a cache that lags behind by a time, or else the oldest known one.
    pub fn revision_before(&self, age: Duration) -> Option<Revision> {
        let now = clock::instant();
        let old = self.ages.iter().take_while(|(at, _)| now - *at >= age).last();
        old.or(self.ages.front()).map(|(_, revision)| *revision)
    }
}
