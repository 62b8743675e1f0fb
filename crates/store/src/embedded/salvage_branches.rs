//! The branches of a damaged log: what their intact records say. A branch whose records do not follow each other is incomplete.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::entry::{BranchEntry, ForkOf, NOTHING, ROOT};
use super::frame::{Kind, Record};
use super::replay::Replay;
use crate::contract::content::{Image, LiveValue, Map, Number};
use crate::contract::{Change, Entry, Revision, Snapshot};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalvagedBranch {
    /// Empty if the record with which it began is lost.
    pub id: Bytes,
    /// The live keys, as far as they can be read.
    pub snapshot: Snapshot,
    /// Whether it is known that something is missing. The last changes may be missing in any case.
    pub is_incomplete: bool,
}

impl SalvagedBranch {
    pub fn whole(image: &Image) -> SalvagedBranch {
        let entry = |(key, live): (&Bytes, &LiveValue)| Entry {
            key: key.clone(),
            value: live.value.clone(),
            revision: live.revision,
        };
        let snapshot = Snapshot { revision: image.head, entries: image.live.iter().map(entry).collect() };
        SalvagedBranch { id: image.id.clone(), snapshot, is_incomplete: false }
    }
}

/// The branches, while the intact records of a log are taken in order.
#[derive(Default)]
pub struct BranchSalvage {
    replay: Replay,
    incomplete: BTreeSet<Number>,
    /// The revision of the last record.
    position: Revision,
    /// Whether a record before the last one is lost.
    has_gap: bool,
}

impl BranchSalvage {
    /// Takes the records of a checkpoint of this revision that is intact, except its end.
    pub fn take_checkpoint<'a>(&mut self, revision: Revision, records: impl Iterator<Item = &'a Record>) {
        self.position = revision;
        let taken = records.cloned().try_for_each(|record| self.replay.take_of_checkpoint(record));
        if taken.and_then(|()| self.replay.end_checkpoint()).is_none() {
            self.replay = Replay::default();
        }
    }

    /// Takes the records of a checkpoint of which parts are lost. Only values that are written out count: the others are named by
    /// their place, which is uncertain.
    pub fn take_part<'a>(&mut self, records: impl Iterator<Item = &'a Record>) {
        for record in records {
            match record.kind {
                Kind::Branch => drop(self.add(record.revision, record.key.clone(), 0)),
                Kind::BranchPut | Kind::BranchDelete => self.change(record),
                _ => {}
            }
        }
    }

    /// Takes a record of a segment that comes after the checkpoint.
    pub fn take(&mut self, record: &Record) {
        self.has_gap |= record.revision > self.position + 1;
        self.position = self.position.max(record.revision);
        let record = &record.detached();
        let value = match record.kind {
            Kind::BranchPut | Kind::BranchDelete if record.revision > self.replay.branches_at => {
                return self.change(record);
            }
            kind if kind.is_branch_operation() && record.revision > self.replay.branches_at => {
                return self.operation(record);
            }
            Kind::Put => Some(record.value.clone()),
            Kind::Delete => None,
            _ => return,
        };
        self.replay.change(&Change { revision: record.revision, key: record.key.clone(), value });
    }

    /// Adds a branch about which nothing else is known.
    fn add(&mut self, number: Number, id: Bytes, head: Revision) -> &mut Image {
        self.incomplete.insert(number);
        self.replay.branches.entry(number).or_insert_with(|| Image {
            number,
            id,
            source: NOTHING,
            label: Bytes::new(),
            base: Map::new(),
            live: Map::new(),
            head,
        })
    }

    fn change(&mut self, record: &Record) {
        let Some((number, revision, key)) = record.in_branch() else { return };
        if !self.replay.branches.contains_key(&number) {
            self.add(number, Bytes::new(), 0);
        }
        let Some(image) = self.replay.branches.get_mut(&number) else { return };
        if revision.checked_sub(1) != Some(image.head) {
            self.incomplete.insert(number);
        }
        image.head = image.head.max(revision);
        if image.live.get(&key).is_some_and(|live| live.revision >= revision) {
            return;
        }
        match record.kind {
            Kind::BranchDelete => drop(image.live.remove(&key)),
            _ => {
                let live = LiveValue { revision, value: Bytes::copy_from_slice(&record.value) };
                drop(image.live.insert(Bytes::copy_from_slice(&key), live));
            }
        }
    }

    fn operation(&mut self, record: &Record) {
        let is_incomplete = match BranchEntry::decode(record) {
            Some(BranchEntry::Fork { source: ROOT, .. }) => self.has_gap,
            Some(BranchEntry::Fork { source, of, head, .. }) => {
                let known = self.replay.branches.get(&source);
                let is_behind = known.is_some_and(|known| of == ForkOf::Newest && known.head < head);
                is_behind || self.incomplete.contains(&source)
            }
            Some(BranchEntry::Reset { number, .. }) => self.incomplete.contains(&number),
            _ => false,
        };
        let number = record.revision;
        if self.replay.take(record).is_none()
            && let Some(BranchEntry::Fork { id, head, .. }) = BranchEntry::decode(record)
        {
            // its source is lost
            self.replay.branches.retain(|_, image| image.id != id);
            self.add(number, id, head);
        }
        if is_incomplete {
            self.incomplete.insert(number);
        }
    }

    pub fn finish(self) -> Vec<SalvagedBranch> {
        let branches = self.replay.branches.values();
        let salvaged = |image: &Image| SalvagedBranch {
            is_incomplete: self.incomplete.contains(&image.number),
            ..SalvagedBranch::whole(image)
        };
        branches.map(salvaged).collect()
    }
}
