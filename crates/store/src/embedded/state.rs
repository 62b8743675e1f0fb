//! The state in memory: the index of live keys, and the tail of newest changes.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{oneshot, watch};

use super::index::Index;
use super::timing::Timing;
use crate::contract::content::{LiveValue, Map};
use crate::contract::{Change, Entry, Expected, Refused, Revision, Snapshot, StoreError, Write};
use crate::limits;

/// The channel to a writer.
pub type Reply = oneshot::Sender<Result<Revision, Refused>>;

/// Replies to writers that wait until a reader has applied their changes, see `Changes::precede_writers`.
#[derive(Default)]
pub struct HeldReplies {
    /// The number of the reader.
    reader: Option<u64>,
    readers: u64,
    replies: VecDeque<(Revision, Reply)>,
}

impl HeldReplies {
    /// Holds replies until a new reader, whose number is returned, has applied their changes.
    pub fn begin(&mut self) -> u64 {
        self.readers += 1;
        self.reader = Some(self.readers);
        self.readers
    }

    /// Holds replies, in order of their revisions. They are returned if no reader precedes writers.
    pub fn hold(&mut self, accepted: Vec<(Reply, Revision)>) -> Vec<(Reply, Revision)> {
        if self.reader.is_none() {
            return accepted;
        }
        self.replies.extend(accepted.into_iter().map(|(reply, revision)| (revision, reply)));
        vec![]
    }

    /// The replies to changes up to `applied`, which `reader` has applied.
    pub fn release(&mut self, reader: u64, applied: Revision) -> Vec<(Revision, Reply)> {
        if self.reader != Some(reader) {
            return vec![];
        }
        let count = self.replies.partition_point(|(revision, _)| *revision <= applied);
        self.replies.drain(..count).collect()
    }

    /// Ends the effect of `reader`, and returns all replies that it held up.
    pub fn end(&mut self, reader: u64) -> Vec<(Revision, Reply)> {
        let released = self.release(reader, Revision::MAX);
        self.reader = self.reader.filter(|current| *current != reader);
        released
    }
}

/// Replies to writers whose changes are committed.
pub fn reply_all(replies: impl IntoIterator<Item = (Revision, Reply)>) {
    for (revision, reply) in replies {
        // a writer may have stopped waiting
        let _ = reply.send(Ok(revision));
    }
}

/// Opens a store again whose writes fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reopening {
    /// It has every acknowledged write, and takes new ones.
    Helps,
    /// The objects are only in this process.
    LosesObjects,
}

#[derive(Default)]
pub struct State {
    pub index: Index,
    /// Bytes of the live values.
    pub bytes: u64,
    /// Every change after `tail_after`, oldest first.
    pub tail: VecDeque<Change>,
    pub tail_after: Revision,
    pub tail_bytes: usize,
    /// Whether changes older than the tail can be read from the log.
    pub logged: bool,
    pub head: Revision,
    pub compacted: Revision,
    /// Obsolete records of the log in rising order: `(revision that overwrote it, revision of the record)`.
    pub superseded: VecDeque<(Revision, Revision)>,
    /// The error that makes all further writes fail.
    pub poisoned: Option<String>,
    /// Whether writes go on once the store is opened again.
    pub reopening: Option<Reopening>,
    /// The error of the last write, if it failed; later ones may succeed.
    pub full: Option<String>,
    pub held: HeldReplies,
    /// Whether the committer has still to begin the branch.
    pub is_waiting: bool,
}

impl State {
    /// Checks the precondition of `write`; the error is the current revision of the key.
    pub fn check(&self, write: &Write) -> Result<(), Option<Revision>> {
        let found = self.index.get(&write.key).map(|live| live.revision);
        let wanted = match write.expected {
            Expected::Absent => None,
            Expected::At(revision) => Some(revision),
        };
        if found == wanted { Ok(()) } else { Err(found) }
    }

    /// The live keys with their revisions.
    #[cfg(test)]
    pub fn revisions(&self) -> std::collections::BTreeMap<Bytes, Revision> {
        self.index.iter().map(|(key, live)| (key.clone(), live.revision)).collect()
    }

    /// Applies `change` to the index. The record that it replaces becomes obsolete when history up to `at` is compacted. The
    /// value of a deleted key becomes obsolete before its deletion, so that a crash between the two does not restore it. See
    /// [`Index::insert`] for `own`.
    fn index_change(&mut self, change: &Change, at: Revision, own: fn(&Bytes) -> Bytes) {
        let revision = change.revision;
        self.bytes += bytes_of(change) as u64;
        let old = match change.value.clone() {
            Some(value) => self.index.insert(&change.key, LiveValue { revision, value }, own),
            None => self.index.remove(&change.key),
        };
        self.bytes -= old.as_ref().map_or(0, |old| old.value.len() as u64);
        if !self.logged {
            return;
        }
        self.superseded.extend(old.map(|old| (at, old.revision)));
        if change.value.is_none() {
            self.superseded.push_back((at, revision));
        }
    }

    /// Applies a change that was read from the log, or an entry of the checkpoint.
    pub fn replay(&mut self, change: &Change) {
        self.index_change(change, change.revision.max(self.compacted), Bytes::clone);
        self.head = self.head.max(change.revision);
    }

    /// Whether this value of a key is live since `before`: the same bytes in memory.
    pub fn has(&self, key: &[u8], value: &LiveValue, before: Revision) -> bool {
        let live = self.index.get(key).filter(|live| live.revision == value.revision && live.revision <= before);
        live.is_some_and(|live| live.value.as_ptr() == value.value.as_ptr() && live.value.len() == value.value.len())
    }

    /// The live keys, in no order.
    pub fn live(&self) -> Vec<Entry> {
        let live = self.index.iter();
        live.map(|(key, live)| Entry { key: key.clone(), value: live.value.clone(), revision: live.revision }).collect()
    }

    /// The state of a store in memory that begins with the same live keys at the same revision, and without their history.
    pub fn fork(&mut self, after: Revision) -> State {
        let head = self.head.max(after);
        State::of(self.index.fork(), self.bytes, head)
    }

    /// A state without history. `bytes` are those of the values.
    pub fn of(live: Map, bytes: u64, head: Revision) -> State {
        State { index: Index::Forked(live), bytes, tail_after: head, head, compacted: head, ..State::default() }
    }

    /// Applies a change to the index and appends it to the tail.
    ///
    /// # Panics
    ///
    /// If the revision is not greater than the last one: memory and disk would differ.
    pub fn apply(&mut self, change: Change) {
        let revision = change.revision;
        assert!(revision > self.head, "revision {revision} is applied after {}", self.head);
        // the key of a change may be part of a larger buffer
        self.index_change(&change, revision, |key| Bytes::copy_from_slice(key));
        self.head = revision;
        self.tail_bytes += bytes_of(&change);
        self.tail.push_back(change);
        while self.tail.len() > limits::TAIL_CHANGES_MAX
            || (self.logged && self.tail_bytes > limits::TAIL_BYTES_MAX && self.tail.len() > 1)
        {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(first) = self.tail.pop_front() {
            debug_assert!(self.tail_bytes >= bytes_of(&first), "the bytes of the tail are counted");
            self.tail_bytes -= bytes_of(&first);
            self.tail_after = first.revision;
        }
    }

    /// Drops changes that the reader which precedes writers has applied: only a reader that begins now needs them, and from the newest
    /// one on.
    pub fn drop_applied(&mut self, applied: Revision) {
        let is_applied = |state: &State| state.tail.front().is_some_and(|first| first.revision <= applied);
        while !self.logged && self.tail_bytes > limits::TAIL_APPLIED_BYTES_MAX && is_applied(self) {
            self.drop_oldest();
        }
    }

    /// Replaces values that were read from the log by equal live ones, so that no value is in memory twice.
    pub fn share(&self, changes: &mut [Change]) {
        for change in changes {
            if let Some(live) = self.index.get(&change.key).filter(|live| live.revision == change.revision) {
                change.value = Some(live.value.clone());
            }
        }
    }

    /// Forgets changes up to `before`; returns the compacted revision.
    pub fn forget(&mut self, before: Revision) -> Revision {
        let before = before.min(self.head).max(self.compacted);
        if before > self.compacted {
            self.compacted = before;
        }
        while self.tail.front().is_some_and(|change| change.revision <= before) {
            self.drop_oldest();
        }
        self.tail_after = self.tail_after.max(before);
        before
    }
}

fn bytes_of(change: &Change) -> usize {
    change.value.as_ref().map_or(0, Bytes::len)
}

/// The state, shared by the committer and its readers.
pub struct Shared {
    state: Mutex<State>,
    pub newest: watch::Sender<Revision>,
    pub timing: Arc<Timing>,
}

impl Default for Shared {
    fn default() -> Self {
        Self::new(State::default())
    }
}

impl Shared {
    pub fn new(state: State) -> Shared {
        let newest = watch::Sender::new(state.head);
        Shared { state: Mutex::new(state), newest, timing: Arc::default() }
    }

    /// A panic while the lock was held leaves the state usable: each change is applied whole or not at all.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Makes all further writes fail, and logs the first reason.
    pub fn fail(&self, why: String, reopening: Reopening) {
        let mut state = self.lock();
        if state.poisoned.is_none() {
            state.reopening = Some(reopening);
            tracing::error!(why, "the store takes no more writes until the server is restarted");
            state.poisoned = Some(why);
        }
    }

    /// The error with which writes fail at present.
    pub fn health(&self) -> Result<(), StoreError> {
        let state = self.lock();
        if let Some(why) = state.poisoned.as_ref().or(state.full.as_ref()) {
            return Err(StoreError::Unavailable(why.clone()));
        }
        drop(state);
        self.timing.check()
    }

    pub fn head(&self) -> Revision {
        self.lock().head
    }

    pub fn snapshot(&self) -> Snapshot {
        let state = self.lock();
        let (revision, mut entries) = (state.head, state.live());
        drop(state);
        entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Snapshot { revision, entries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_tail_is_bounded() {
        let value = Bytes::from(vec![0; 1 << 20]);
        for (logged, kept) in [(true, 32), (false, 100)] {
            let mut state = State { logged, ..State::default() };
            (1..=100)
                .for_each(|revision| state.apply(Change { revision, key: "a".into(), value: Some(value.clone()) }));
            assert_eq!((state.tail.len(), state.tail_after), (kept, 100 - kept as Revision));
            assert_eq!((state.forget(95), state.tail.len(), state.tail_bytes), (95, 5, 5 << 20));
        }
    }

    #[test]
    fn applied_changes_are_dropped() {
        let value = Bytes::from(vec![0; 1 << 18]);
        for (logged, kept) in [(true, [20, 20, 20]), (false, [20, 10, 4])] {
            let mut state = State { logged, ..State::default() };
            (1..=20).for_each(|revision| state.apply(Change { revision, key: "a".into(), value: Some(value.clone()) }));
            let left = [0, 10, 20].map(|applied| {
                state.drop_applied(applied);
                state.tail.len()
            });
            assert_eq!(left, kept, "{logged}");
        }
    }

    #[test]
    fn unchanged_values_share_memory() {
        let put = |revision, value: &str| Change {
            revision,
            key: "a".into(),
            value: Some(Bytes::copy_from_slice(value.as_bytes())),
        };
        let mut state = State::default();
        [put(1, "old"), put(2, "new")].into_iter().for_each(|change| state.apply(change));
        let mut read = [put(1, "old"), put(2, "new")];
        state.share(&mut read);
        let live = state.index.get(&b"a"[..]).map(|live| live.value.as_ptr());
        let shared = read.map(|change| (change.value.as_ref().map(|value| value.as_ptr()) == live, change.value));
        assert_eq!(shared, [(false, Some(Bytes::from("old"))), (true, Some(Bytes::from("new")))]);
    }
}
