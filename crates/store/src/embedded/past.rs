//! The history of branches before the start: their newest changes, which a recovery keeps.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::follower::Follower;
use crate::contract::content::{LiveValue, Number};
use crate::contract::{Batch, BoxFuture, Change, Changes, Entry, Revision, Snapshot, StoreError};
use crate::limits;

/// A change of a branch, and what it replaced.
struct PastChange {
    number: Number,
    change: Change,
    replaced: Option<LiveValue>,
}

impl PastChange {
    fn bytes(&self) -> usize {
        let replaced = self.replaced.as_ref().map_or(0, |live| live.value.len());
        self.change.value.as_ref().map_or(0, Bytes::len) + replaced
    }
}

/// The newest changes of all branches while a log is read.
#[derive(Default)]
pub struct PastChanges {
    newest: VecDeque<PastChange>,
    bytes: usize,
}

impl PastChanges {
    pub fn push(&mut self, number: Number, change: Change, replaced: Option<LiveValue>) {
        let past = PastChange { number, change, replaced };
        self.bytes += past.bytes();
        self.newest.push_back(past);
        while self.newest.len() > limits::PAST_CHANGES_MAX || self.bytes > limits::PAST_BYTES_MAX {
            let Some(oldest) = self.newest.pop_front() else { return };
            self.bytes -= oldest.bytes();
        }
    }

    /// The state of each branch.
    pub fn by_branch(self) -> HashMap<Number, Past> {
        let mut all: HashMap<Number, Past> = HashMap::new();
        let mut known: HashSet<(Number, Bytes)> = HashSet::new();
        for PastChange { number, change, replaced } in self.newest {
            let past = all.entry(number).or_insert_with(|| Past { after: change.revision - 1, ..Past::default() });
            if known.insert((number, change.key.clone())) {
                let entry = |LiveValue { revision, value }| Entry { key: change.key.clone(), value, revision };
                past.before.extend(replaced.map(entry));
            }
            past.changes.push(change);
        }
        all
    }
}

/// The changes of a branch before the start, as far as they are known, without a gap up to the start.
#[derive(Default)]
pub struct Past {
    /// They are known after this revision.
    after: Revision,
    /// Earlier values of the keys that have changed since.
    before: Vec<Entry>,
    changes: Vec<Change>,
}

impl Past {
    /// The revision at the start.
    pub fn until(&self) -> Revision {
        self.changes.last().map_or(self.after, |change| change.revision)
    }

    /// Values that later changes replace.
    pub fn snapshot(&self) -> Snapshot {
        let mut entries = self.before.clone();
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        Snapshot { revision: self.after, entries }
    }

    /// Whether a follower may begin before the start.
    pub fn reaches(&self, after: Revision) -> bool {
        self.after <= after && after < self.until()
    }
}

/// A follower that begins before the start.
pub struct PastFollower {
    past: Arc<Past>,
    after: Revision,
    /// Goes on from the start.
    then: Follower,
}

impl PastFollower {
    pub fn new(past: Arc<Past>, after: Revision, then: Follower) -> PastFollower {
        PastFollower { past, after, then }
    }
}

impl Changes for PastFollower {
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, StoreError>> {
        Box::pin(async move {
            let changes = &self.past.changes;
            let first = changes.partition_point(|change| change.revision <= self.after);
            let batch: Vec<Change> = changes.iter().skip(first).take(limits::FOLLOWER_BATCH).cloned().collect();
            let Some(last) = batch.last() else { return self.then.next().await };
            self.after = last.revision;
            Ok(Batch { revision: self.after, changes: batch })
        })
    }

    fn precede_writers(&mut self) {
        self.then.precede_writers();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(revision: Revision, key: &str, value: Option<&str>) -> Change {
        let value = value.map(|value| Bytes::copy_from_slice(value.as_bytes()));
        Change { revision, key: Bytes::copy_from_slice(key.as_bytes()), value }
    }

    fn live(revision: Revision, value: &str) -> Option<LiveValue> {
        Some(LiveValue { revision, value: Bytes::copy_from_slice(value.as_bytes()) })
    }

    #[test]
    fn a_branch_knows_what_its_changes_replaced() {
        let mut all = PastChanges::default();
        all.push(7, change(5, "a", Some("2")), live(3, "1"));
        all.push(8, change(9, "a", Some("x")), None);
        all.push(7, change(6, "a", None), live(5, "2"));
        all.push(7, change(7, "b", Some("1")), None);
        let past = all.by_branch();
        let of = &past[&7];
        assert_eq!((of.after, of.until(), of.changes.len()), (4, 7, 3));
        let before = Entry { key: "a".into(), value: "1".into(), revision: 3 };
        assert_eq!(of.snapshot(), Snapshot { revision: 4, entries: vec![before] });
        for (after, reaches) in [(3, false), (4, true), (6, true), (7, false)] {
            assert_eq!(of.reaches(after), reaches, "{after}");
        }
        assert_eq!((past[&8].after, past[&8].snapshot().entries.len()), (8, 0));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut all = PastChanges::default();
        let value = "x".repeat(1 << 20);
        for revision in 1..=40 {
            all.push(1, change(revision, "a", Some(&value)), live(revision - 1, &value));
        }
        // each has its value and the one that it replaced
        let past = &all.by_branch()[&1];
        assert_eq!((past.after, past.until()), (24, 40));
    }
}
