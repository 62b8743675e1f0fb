//! The dependents of each owner, by uid, and the queue of objects to be examined, both derived from events.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use base::clock;
use base::metrics::Queue;
use machinery::Text;
use objects::{Event, EventKind, Key, Stored};
use parking_lot::Mutex;
use resource::builtin::{DEFINITION_GROUP, DEFINITIONS};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::super::switch::AbsentOwners;
use super::dependents::{Dependent, Dependents};

/// The metrics of the queue of objects to be examined.
pub const QUEUE: Queue = Queue("garbage_collector_attempt_to_delete");

/// The reason to examine an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkItem {
    /// Its owners may be absent.
    Dependent,
    /// Its deletion waits for its dependents to be orphaned or deleted.
    Owner,
}

/// The examination of one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    pub item: WorkItem,
    pub key: Key,
    pub uid: Text,
    /// Whether the grace period has ended, or does not apply.
    pub due: bool,
    /// The number of failed attempts.
    pub failures: u32,
}

impl Task {
    fn new(item: WorkItem, key: &Key, uid: &Text) -> Task {
        Task { item, key: key.clone(), uid: uid.clone(), due: false, failures: 0 }
    }
}

#[derive(Default)]
struct GraphState {
    /// By the uid of the owner.
    dependents: HashMap<Text, Dependents>,
    /// Owners whose deletion was observed and that still have dependents.
    gone: HashSet<Text>,
    /// Owners whose deletion waits for their dependents.
    waiting: HashMap<Text, Key>,
    /// Tasks that are due, with the time at which they were added.
    ready: VecDeque<(Task, Instant)>,
    /// The content of `ready`.
    queued: HashSet<Task>,
    later: BTreeMap<(Instant, u64), Task>,
    /// Dependents of owners whose kind is not served; a new definition may change that.
    parked: HashSet<Task>,
    /// The number of tasks that have been taken and are being examined.
    examining: usize,
    /// Distinguishes tasks that are due at the same time.
    sequence: u64,
}

impl GraphState {
    fn enqueue(&mut self, task: Task) {
        if self.queued.insert(task.clone()) {
            QUEUE.added(1);
            self.ready.push_back((task, clock::moment()));
        }
    }

    fn enqueue_due(&mut self, item: WorkItem, key: &Key, uid: &Text) {
        self.enqueue(Task { due: true, ..Task::new(item, key, uid) });
    }

    /// Enqueues those owners of this object that are being deleted and that no other dependent blocks.
    fn wake_owners(&mut self, object: &Stored) {
        for owner in &object.meta.owners {
            let is_blocked = self.dependents.get(&owner.uid).is_some_and(Dependents::are_blocking);
            if !is_blocked && let Some(key) = self.waiting.get(&owner.uid).cloned() {
                self.enqueue_due(WorkItem::Owner, &key, &owner.uid);
            }
        }
    }

    fn dependents_of(&self, owner: &str) -> Vec<Dependent> {
        self.dependents.get(owner).into_iter().flat_map(Dependents::iter).cloned().collect()
    }

    fn forget(&mut self, key: &Key, object: &Stored) {
        for owner in &object.meta.owners {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.remove(key);
                if dependents.is_empty() {
                    self.dependents.remove(&owner.uid);
                    self.gone.remove(&owner.uid);
                }
            }
        }
    }
}

/// The graph of owners and dependents.
#[derive(Default)]
pub struct Graph {
    state: Mutex<GraphState>,
    changed: Notify,
    pub absent_owners: AbsentOwners,
}

impl Graph {
    pub fn new(absent_owners: AbsentOwners) -> Graph {
        Graph { absent_owners, ..Graph::default() }
    }

    /// Receives every event, in order, and returns whether there is an object to be examined. Objects of kind Event are not
    /// tracked as dependents.
    pub fn follow(&self, key: &Key, event: &Event) -> bool {
        let (object, previous) = (&event.object, event.previous.as_deref());
        let same_owners = previous.is_some_and(|previous| previous.meta.owners == object.meta.owners);
        let plain = object.meta.owners.is_empty() && previous.is_none_or(|previous| previous.meta.owners.is_empty());
        if key.group.is_empty() && key.plural == "events" {
            return false;
        }
        let uid = &object.meta.uid;
        let mut state = self.state.lock();
        let before = state.ready.len();
        if key.group == DEFINITION_GROUP && key.plural == DEFINITIONS {
            std::mem::take(&mut state.parked).into_iter().for_each(|task| state.enqueue(task));
        }
        if event.kind == EventKind::Deleted {
            state.waiting.remove(uid);
            if !plain {
                state.forget(key, object);
                state.wake_owners(object);
            }
            let dependents = state.dependents_of(uid);
            if !dependents.is_empty() {
                state.gone.insert(uid.clone());
            }
            for dependent in dependents {
                state.enqueue_due(WorkItem::Dependent, &dependent.key, &dependent.uid);
            }
        } else {
            if !plain && !same_owners {
                if let Some(previous) = previous {
                    state.forget(key, previous);
                }
                for owner in &object.meta.owners {
                    let entry = state.dependents.entry(owner.uid.clone());
                    let dependents = entry.or_insert_with(|| Dependents::of(&owner.uid));
                    dependents.insert(Dependent { key: key.clone(), uid: uid.clone(), blocks: owner.blocks });
                }
                if let Some(previous) = previous {
                    state.wake_owners(previous);
                }
                state.enqueue(Task::new(WorkItem::Dependent, key, uid));
            }
            if object.meta.deleting && object.meta.finalizers {
                state.waiting.insert(uid.clone(), key.clone());
                // an object without dependents gets a grace period, in which dependents may still be observed
                let due = state.dependents.contains_key(uid);
                state.enqueue(Task { due, ..Task::new(WorkItem::Owner, key, uid) });
            }
        }
        let has_work = state.ready.len() > before;
        if has_work {
            self.changed.notify_one();
        }
        has_work
    }

    /// The dependents of an owner.
    pub fn dependents(&self, uid: &str) -> Vec<Dependent> {
        self.state.lock().dependents_of(uid)
    }

    /// Whether the deletion of an owner was observed.
    pub fn has_gone(&self, uid: &str) -> bool {
        self.state.lock().gone.contains(uid)
    }

    /// Whether the deletion of one object waits for another one, directly or through others.
    pub fn waits_for(&self, owner: &Text, dependent: &Text) -> bool {
        let state = self.state.lock();
        let (mut seen, mut pending) = (HashSet::new(), vec![owner]);
        while let Some(uid) = pending.pop() {
            let blocking = state.dependents.get(uid).into_iter().flat_map(Dependents::iter);
            for Dependent { uid, .. } in blocking.filter(|dependent| dependent.blocks) {
                if uid == dependent {
                    return true;
                }
                if seen.insert(uid) {
                    pending.push(uid);
                }
            }
        }
        false
    }

    pub fn enqueue_object(&self, item: WorkItem, key: &Key, uid: &Text) {
        self.state.lock().enqueue_due(item, key, uid);
        self.changed.notify_one();
    }

    /// Postpones a task until a CRD changes.
    pub fn park(&self, task: Task) {
        self.state.lock().parked.insert(task);
    }

    pub fn postpone(&self, task: Task, after: Duration) {
        let mut state = self.state.lock();
        QUEUE.retried();
        state.sequence += 1;
        let at = (clock::moment() + after, state.sequence);
        state.later.insert(at, task);
        self.changed.notify_one();
    }

    /// Whether there are objects to be examined, now or after a grace period.
    pub fn has_tasks(&self) -> bool {
        let state = self.state.lock();
        state.examining > 0 || !state.ready.is_empty() || !state.later.is_empty()
    }

    /// Called when that many of the taken tasks have been examined.
    pub fn examined(&self, count: usize) {
        self.state.lock().examining -= count;
    }

    #[cfg(test)]
    pub fn take_by(&self, now: Instant) -> Vec<Task> {
        self.state.lock().take(usize::MAX, now).0
    }

    /// The due tasks, at most `most`; waits until there is at least one.
    pub async fn take(&self, most: usize) -> Vec<Task> {
        loop {
            let (tasks, next) = self.state.lock().take(most, clock::moment());
            if !tasks.is_empty() {
                return tasks;
            }
            let due = async {
                match next {
                    Some(at) => clock::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = due => {}
            }
        }
    }
}

impl GraphState {
    fn take(&mut self, most: usize, now: Instant) -> (Vec<Task>, Option<Instant>) {
        while let Some(entry) = self.later.first_entry()
            && entry.key().0 <= now
        {
            let task = entry.remove();
            self.enqueue(task);
        }
        let many = most.min(self.ready.len());
        let taken: Vec<(Task, Instant)> = self.ready.drain(..many).collect();
        for (task, since) in &taken {
            self.queued.remove(task);
            QUEUE.taken(now.saturating_duration_since(*since));
        }
        self.examining += taken.len();
        let tasks = taken.into_iter().map(|(task, _)| task).collect();
        (tasks, self.later.first_key_value().map(|((at, _), _)| *at))
    }
}
