//! A model of the log: all changes, in a plain list.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;

use super::sim::{Chance, Sim};
use crate::contract::{Change, Revision, StoreError};
use crate::embedded::options::{Durability, Options};
use crate::embedded::state::Shared;
use crate::embedded::writer::{Failure, Writer};
use crate::embedded::{Embedded, checkpoint, recovery};

/// Small files, so that everything happens often.
pub const OPTIONS: Options = Options { durability: Durability::Sync, segment_bytes: 3000, checkpoint_bytes: 0 };

/// A log, and the changes that were sent to it.
pub struct Run {
    pub disk: Sim,
    pub shared: Shared,
    pub writer: Writer,
    /// Changes that were acknowledged; the change of revision `n` is at index `n - 1`.
    pub acknowledged: Vec<Change>,
    /// Changes that were sent and not acknowledged.
    pub incomplete: Vec<Change>,
}

impl Run {
    pub fn create() -> Run {
        let disk = Sim::default();
        recovery::create(&disk).unwrap();
        Run::open(disk, vec![], vec![], OPTIONS).unwrap()
    }

    /// Opens the log of a disk and compares it with the model.
    pub fn open(
        disk: Sim,
        acknowledged: Vec<Change>,
        incomplete: Vec<Change>,
        options: Options,
    ) -> Result<Run, StoreError> {
        let (shared, writer) = Embedded::recover(Arc::new(disk.clone()), options, None)?;
        let mut run = Run { disk, shared, writer, acknowledged, incomplete };
        run.resolve_incomplete();
        run.compare();
        Ok(run)
    }

    /// Asserts that the incomplete write has taken effect as a whole or not at all, and adopts the outcome.
    fn resolve_incomplete(&mut self) {
        let head = self.shared.head() as usize;
        let (least, all) = (self.acknowledged.len(), self.acknowledged.len() + self.incomplete.len());
        assert!(head == least || head == all, "{head} changes are there, of {least} acknowledged and {all} sent");
        if head == all {
            self.acknowledged.append(&mut self.incomplete);
        }
        self.incomplete.clear();
    }

    fn compare(&self) {
        let state = self.shared.lock();
        let all = &self.acknowledged;
        assert_eq!(state.revisions(), live(all), "the live keys");
        let compacted = state.compacted as usize;
        drop(state);
        let base = self.writer.files.entries_at(compacted as Revision, |_| true).unwrap();
        let base: BTreeMap<_, _> = base.into_iter().map(|entry| (entry.key, entry.revision)).collect();
        assert_eq!(base, live(&all[..compacted]), "the keys that were live at {compacted}");
        let mut read: Vec<Change> = vec![];
        while read.len() < all.len() - compacted {
            let after = (compacted + read.len()) as Revision;
            let more = self.writer.files.read_after(after, 7).unwrap();
            assert!(!more.is_empty(), "no changes after {after}");
            read.extend(more);
        }
        assert_eq!(read, all[compacted..], "the changes after {compacted}");
    }

    /// Makes a random step.
    pub fn step(&mut self, chance: &mut Chance) -> Result<(), Failure> {
        match chance.below(10) {
            0 => self.compact(chance),
            1 | 2 => self.writer.seal(),
            _ => self.write(chance),
        }
    }

    pub fn write(&mut self, chance: &mut Chance) -> Result<(), Failure> {
        let mut changes: Vec<Change> = vec![];
        let mut used = HashSet::new();
        for _ in 0..=chance.below(4) {
            let key = Bytes::from(format!("key-{}", chance.below(12)));
            let there = self.shared.lock().index.get(&key).is_some();
            if !used.insert(key.clone()) {
                continue;
            }
            let revision = (self.acknowledged.len() + changes.len() + 1) as Revision;
            let delete = there && chance.below(3) == 0;
            let value = (!delete).then(|| Bytes::from(vec![revision as u8; chance.below(1500)]));
            changes.push(Change { revision, key, value });
        }
        self.incomplete.clone_from(&changes);
        self.writer.append(&changes)?;
        self.incomplete.clear();
        changes.iter().for_each(|change| self.shared.lock().apply(change.clone()));
        self.acknowledged.extend(changes);
        Ok(())
    }

    /// Compacts as the committer does, in this thread.
    fn compact(&mut self, chance: &mut Chance) -> Result<(), Failure> {
        let before = chance.below(self.acknowledged.len() + 1) as Revision;
        let mut state = self.shared.lock();
        if before <= state.compacted {
            return Ok(());
        }
        state.compacted = before;
        let superseded: Vec<_> = state.superseded.iter().take_while(|(at, _)| *at <= before).copied().collect();
        let gone = superseded.iter().map(|(_, record)| *record).collect();
        let written = checkpoint::write(&self.writer.files, before, &gone);
        match written {
            Ok(()) => drop(state.superseded.drain(..superseded.len())),
            Err(_) if self.disk.has_stopped() => return Err(Failure::Fatal("stopped".to_owned())),
            Err(error) => return Err(Failure::Temporary(error.to_string())),
        }
        Ok(())
    }
}

/// The live keys after these changes, each with its revision.
pub fn live(changes: &[Change]) -> BTreeMap<Bytes, Revision> {
    let mut live = BTreeMap::new();
    for change in changes {
        match &change.value {
            Some(_) => live.insert(change.key.clone(), change.revision),
            None => live.remove(&change.key),
        };
    }
    live
}
