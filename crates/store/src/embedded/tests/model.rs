//! A model of the log: all entries, in a plain list.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::sim::{Chance, Sim};
use crate::contract::content::{Image, LiveValue, Map, Number, bytes_of};
use crate::contract::{BranchSource, Change, Entry, Revision, Snapshot, StoreError};
use crate::embedded::branch::{BranchOperation, BranchState, Branches, EarlierPart, Origin, Share};
use crate::embedded::entry::{BranchEntry, Difference, ForkOf, LogEntry, NOTHING, ROOT};
use crate::embedded::live_branches::LiveBranches;
use crate::embedded::options::{Durability, Options};
use crate::embedded::state::Shared;
use crate::embedded::writer::{Failure, Writer};
use crate::embedded::{Embedded, Recovered, checkpoint, recovery};

/// Small files, so that everything happens often.
pub const OPTIONS: Options =
    Options { durability: Durability::Sync, segment_bytes: 3000, checkpoint_bytes: 0, history_bytes: u64::MAX };

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Change(Change),
    InBranch(Number, Change),
    Branch(BranchEntry),
}

/// A log, and the entries that were sent to it.
pub struct Run {
    pub disk: Sim,
    pub shared: Shared,
    pub writer: Writer,
    branches: Branches,
    live_branches: LiveBranches,
    /// Entries that were acknowledged; the entry of revision `n` is at index `n - 1`.
    pub acknowledged: Vec<Act>,
    /// Entries that were sent and not acknowledged.
    pub incomplete: Vec<Act>,
    /// Forks, resets and deletions that have not been sent.
    pending: Vec<Act>,
}

impl Run {
    pub fn create() -> Run {
        let disk = Sim::default();
        recovery::create(&disk).unwrap();
        Run::open(disk, vec![], vec![], OPTIONS).unwrap()
    }

    /// Opens the log of a disk and compares it with the model.
    pub fn open(disk: Sim, acknowledged: Vec<Act>, incomplete: Vec<Act>, options: Options) -> Result<Run, StoreError> {
        let recovered = Embedded::recover(Arc::new(disk.clone()), options, vec![])?;
        let mut run = Run { incomplete, ..Run::of(disk, recovered, acknowledged) };
        run.resolve_incomplete();
        run.compare();
        Ok(run)
    }

    pub fn of(disk: Sim, recovered: Recovered, acknowledged: Vec<Act>) -> Run {
        let Recovered { shared, branches, live_branches, writer } = recovered;
        Run { disk, shared, writer, branches, live_branches, acknowledged, incomplete: vec![], pending: vec![] }
    }

    /// Asserts that the incomplete write has taken effect as a whole or not at all, and adopts the outcome.
    fn resolve_incomplete(&mut self) {
        let head = self.writer.head() as usize;
        let (least, all) = (self.acknowledged.len(), self.acknowledged.len() + self.incomplete.len());
        assert!(head == least || head == all, "{head} entries are there, of {least} acknowledged and {all} sent");
        if head == all {
            self.acknowledged.append(&mut self.incomplete);
        }
        self.incomplete.clear();
    }

    pub fn compare(&self) {
        let all = &self.acknowledged;
        let state = self.shared.lock();
        assert_eq!(state.revisions(), live(all), "the live keys");
        let bytes: usize = state.index.iter().map(|(_, live)| live.value.len()).sum();
        assert_eq!(state.bytes, bytes as u64, "bytes of the values");
        let compacted = state.compacted as usize;
        drop(state);
        assert_eq!(self.found_branches(), branches(all), "the branches");
        let base = self.writer.files.entries_at(compacted as Revision, |_| true).unwrap();
        let base: BTreeMap<_, _> = base.into_iter().map(|entry| (entry.key, entry.revision)).collect();
        assert_eq!(base, live(&all[..compacted]), "the keys that were live at {compacted}");
        let later = all[compacted..].iter().filter_map(Act::change).cloned().collect::<Vec<_>>();
        let mut read: Vec<Change> = vec![];
        while read.len() < later.len() {
            let after = read.last().map_or(compacted as Revision, |last| last.revision);
            let more = self.writer.files.read_after(after, 7).unwrap();
            assert!(!more.is_empty(), "no changes after {after}");
            read.extend(more);
        }
        assert_eq!(read, later, "the changes after {compacted}");
    }

    fn found_branches(&self) -> BTreeMap<Number, ModelBranch> {
        let images = self.live_branches.images(&self.shared, self.writer.head());
        images.branches.into_iter().map(|image| (image.number, ModelBranch::from(image))).collect()
    }

    /// Makes a random step in a store without branches.
    pub fn step(&mut self, chance: &mut Chance) -> Result<(), Failure> {
        match chance.below(10) {
            0 => self.compact(chance),
            1 | 2 => self.writer.seal(),
            _ => self.write(chance),
        }
    }

    /// Makes a random step, often one of branches.
    pub fn step_with_branches(&mut self, chance: &mut Chance) -> Result<(), Failure> {
        match chance.below(3) {
            0 => self.operate(chance),
            1 => self.write_in_branches(chance),
            _ => self.step(chance),
        }
    }

    pub fn write(&mut self, chance: &mut Chance) -> Result<(), Failure> {
        let mut changes: Vec<Change> = vec![];
        let mut used = HashSet::new();
        let first = self.next();
        for _ in 0..=chance.below(4) {
            let key = Bytes::from(format!("key-{}", chance.below(12)));
            if used.insert(key.clone()) {
                changes.push(change(&self.shared, chance, first + changes.len() as Revision, key));
            }
        }
        self.send(changes.iter().cloned().map(Act::Change).collect())?;
        changes.into_iter().for_each(|change| self.shared.lock().apply(change));
        Ok(())
    }

    /// A group of writes to several branches.
    fn write_in_branches(&mut self, chance: &mut Chance) -> Result<(), Failure> {
        let mut acts = vec![];
        let mut made: Vec<(Arc<BranchState>, Change)> = vec![];
        for branch in self.known() {
            if chance.half() {
                continue;
            }
            let key = Bytes::from(format!("key-{}", chance.below(12)));
            let next = branch.shared.head() + 1;
            let change = change(&branch.shared, chance, next, key);
            acts.push(Act::InBranch(branch.lineage.lock().number, change.clone()));
            made.push((branch, change));
        }
        self.send(acts)?;
        made.into_iter().for_each(|(branch, change)| branch.shared.lock().apply(change));
        Ok(())
    }

    fn known(&self) -> Vec<Arc<BranchState>> {
        let mut ids: Vec<Bytes> = self.branches.list().into_iter().map(|branch| branch.id).collect();
        ids.sort();
        ids.iter().filter_map(|id| self.branches.get(id)).collect()
    }

    /// Begins, resets or ends a branch.
    fn operate(&mut self, chance: &mut Chance) -> Result<(), Failure> {
        let known = self.known();
        let any = (!known.is_empty()).then(|| known[chance.below(known.len())].clone());
        let number = any.as_ref().map(|branch| branch.lineage.lock().number);
        let label = Bytes::from(vec![b'l'; chance.below(4)]);
        let mut is_unwritten = false;
        let entry = match (chance.below(10), &any) {
            (0, Some(branch)) => {
                self.branches.remove(&branch.id);
                BranchEntry::Drop { number: number.unwrap() }
            }
            (1 | 2, Some(branch)) => {
                let head = branch.shared.head() + 1;
                self.branches.reset(&branch.id, &label).unwrap();
                BranchEntry::Reset { number: number.unwrap(), head, label }
            }
            (9, Some(branch)) => {
                is_unwritten = true;
                let on = known[chance.below(known.len())].clone();
                let on_number = on.lineage.lock().number;
                self.branches.push(BranchOperation::Rebase { branch: branch.clone(), on, reply: oneshot::channel().0 });
                BranchEntry::Rebase { number: number.unwrap(), on: on_number }
            }
            (kind, _) => {
                let id = Bytes::from(format!("branch-{}", chance.below(6)));
                let replaced = self.branches.get(&id).map(|old| old.shared.head() + 1);
                let earlier = kind == 8 && any.is_some() && chance.half();
                let of_part = any.clone().filter(|_| earlier);
                let part = earlier_than(of_part.as_ref().map_or(&self.shared, |branch| &branch.shared), chance);
                let (source, from, of, head) = match (kind, &any) {
                    (3, _) => (NOTHING, BranchSource::Nothing, ForkOf::Newest, 0),
                    (4 | 5, Some(branch)) => {
                        let from = BranchSource::Branch(&branch.id, None);
                        (number.unwrap(), from, ForkOf::Newest, branch.shared.head())
                    }
                    (7, Some(branch)) => {
                        (number.unwrap(), BranchSource::Origin(&branch.id), ForkOf::Origin, branch.shared.head())
                    }
                    (8, _) => {
                        is_unwritten = true;
                        let source = number.filter(|_| earlier).unwrap_or(ROOT);
                        (source, BranchSource::Nothing, ForkOf::Earlier(part.differences.clone()), part.at)
                    }
                    _ => (ROOT, BranchSource::Store(None), ForkOf::Newest, self.shared.head()),
                };
                if is_unwritten {
                    self.branches.begin(&id, of_part.map_or(Origin::Root, Origin::Branch), Share::Part(part), &label);
                } else {
                    self.branches.fork(&id, &from, &label).unwrap();
                }
                BranchEntry::Fork { id, source, of, head: head.max(replaced.unwrap_or(0)), label }
            }
        };
        for made in self.branches.take_operations() {
            self.live_branches.take(made, &self.shared, self.writer.head());
        }
        self.pending.push(Act::Branch(entry));
        assert_eq!(self.live_branches.has_unwritten(), is_unwritten);
        if is_unwritten {
            self.send(vec![])?;
            self.live_branches.settle(Ok(()));
        }
        Ok(())
    }

    /// The revision of the next entry that is not a pending one.
    fn next(&self) -> Revision {
        self.live_branches.next(self.writer.head())
    }

    /// Appends the pending entries and these, as the committer does.
    fn send(&mut self, acts: Vec<Act>) -> Result<(), Failure> {
        let first = self.next();
        self.incomplete = self.pending.iter().cloned().chain(acts).collect();
        let rest = &self.incomplete[self.pending.len()..];
        let rest = rest.iter().zip(first..).map(|(act, position)| match act {
            Act::Change(change) => LogEntry::from(change),
            Act::InBranch(number, change) => LogEntry::in_branch(*number, position, change),
            Act::Branch(_) => panic!("entries of branches are pending first"),
        });
        let entries: Vec<LogEntry<'_>> = self.live_branches.entries().chain(rest).collect();
        if !entries.is_empty() {
            self.writer.append(&entries)?;
        }
        self.live_branches.appended();
        self.pending.clear();
        self.acknowledged.append(&mut self.incomplete);
        Ok(())
    }

    /// Compacts as the committer does, in this thread.
    fn compact(&mut self, chance: &mut Chance) -> Result<(), Failure> {
        let before = chance.below(self.acknowledged.len() + 1) as Revision;
        let mut state = self.shared.lock();
        let before = before.min(state.head).max(state.compacted);
        state.compacted = before;
        let is_quiet = self.live_branches.is_used && before == state.head;
        drop(state);
        self.send(vec![])?;
        self.writer.sync()?;
        let before = if is_quiet { self.writer.head() } else { before };
        if !checkpoint::is_worthwhile(&self.writer.files, before, 0) {
            return Ok(());
        }
        let mut state = self.shared.lock();
        let superseded: Vec<_> = state.superseded.iter().take_while(|(at, _)| *at <= before).copied().collect();
        let gone = superseded.iter().map(|(_, record)| *record).collect();
        drop(state);
        let images = self.live_branches.is_used.then(|| self.live_branches.images(&self.shared, self.writer.head()));
        let is_shared = |key: &Bytes, value: &_| self.shared.lock().has(key, value, before);
        let images = images.as_ref().map(|images| (images, &is_shared as _));
        let written = checkpoint::write(&self.writer.files, before, &gone, images);
        state = self.shared.lock();
        match written {
            Ok(()) => drop(state.superseded.drain(..superseded.len())),
            Err(_) if self.disk.has_stopped() => return Err(Failure::Fatal("stopped".to_owned())),
            Err(error) => return Err(Failure::Temporary(error.to_string())),
        }
        Ok(())
    }
}

/// An earlier state of a store.
fn earlier_than(shared: &Shared, chance: &mut Chance) -> EarlierPart {
    let Snapshot { revision: head, mut entries } = shared.snapshot();
    let mut differences = vec![];
    entries.retain(|entry| {
        let is_kept = chance.below(4) > 0;
        if !is_kept {
            differences.push(Difference { key: entry.key.clone(), live: None });
        }
        is_kept
    });
    let revision = head.saturating_sub(chance.below(9) as Revision).max(1);
    for entry in entries.iter_mut().filter(|entry| entry.revision > 1) {
        if chance.below(4) == 0 {
            (entry.revision, entry.value) = (entry.revision - 1, Bytes::from(vec![b'e'; chance.below(700)]));
            let live = LiveValue { revision: entry.revision, value: entry.value.clone() };
            differences.push(Difference { key: entry.key.clone(), live: Some(live) });
        }
    }
    let keys: Map =
        entries.into_iter().map(|Entry { key, revision, value }| (key, LiveValue { revision, value })).collect();
    EarlierPart { differences, bytes: bytes_of(&keys), keys, at: revision }
}

/// A random change of a key, a deletion only if it is there.
fn change(shared: &Shared, chance: &mut Chance, revision: Revision, key: Bytes) -> Change {
    let there = shared.lock().index.get(&key).is_some();
    let delete = there && chance.below(3) == 0;
    let value = (!delete).then(|| Bytes::from(vec![revision as u8; chance.below(1500)]));
    Change { revision, key, value }
}

impl Act {
    /// The change, if it is one of the store itself.
    pub fn change(&self) -> Option<&Change> {
        match self {
            Act::Change(change) => Some(change),
            _ => None,
        }
    }
}

/// The live keys of the store itself after these entries, each with its revision.
pub fn live(acts: &[Act]) -> BTreeMap<Bytes, Revision> {
    let mut live = BTreeMap::new();
    acts.iter().filter_map(Act::change).for_each(|change| apply(&mut live, change, change.revision));
    live
}

fn apply<T>(live: &mut BTreeMap<Bytes, T>, change: &Change, to: T) {
    match &change.value {
        Some(_) => live.insert(change.key.clone(), to),
        None => live.remove(&change.key),
    };
}

type Values = BTreeMap<Bytes, (Revision, Bytes)>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelBranch {
    id: Bytes,
    label: Bytes,
    base: Values,
    live: Values,
    head: Revision,
}

impl ModelBranch {
    /// Whether this is its id and its revision.
    pub fn is(&self, id: &Bytes, head: Revision) -> bool {
        self.id == id && self.head == head
    }

    /// Whether it holds just these keys.
    pub fn holds(&self, snapshot: &Snapshot) -> bool {
        let held = snapshot.entries.iter().map(|entry| (entry.key.clone(), (entry.revision, entry.value.clone())));
        held.collect::<Values>() == self.live
    }
}

impl From<Image> for ModelBranch {
    fn from(image: Image) -> ModelBranch {
        let values = |map: crate::contract::content::Map| {
            map.into_iter().map(|(key, live)| (key, (live.revision, live.value))).collect()
        };
        let Image { id, label, base, live, head, .. } = image;
        ModelBranch { id, label, base: values(base), live: values(live), head }
    }
}

/// The branches after these entries.
pub fn branches(acts: &[Act]) -> BTreeMap<Number, ModelBranch> {
    let mut root = Values::new();
    let mut all: BTreeMap<Number, ModelBranch> = BTreeMap::new();
    let put = |live: &mut Values, change: &Change| {
        apply(live, change, (change.revision, change.value.clone().unwrap_or_default()));
    };
    for (act, position) in acts.iter().zip(1..) {
        match act {
            Act::Change(change) => put(&mut root, change),
            Act::InBranch(number, change) => {
                let branch = all.get_mut(number).unwrap();
                put(&mut branch.live, change);
                branch.head = change.revision;
            }
            Act::Branch(BranchEntry::Fork { id, source, of, head, label }) => {
                let mut base = match *source {
                    NOTHING => Values::new(),
                    ROOT => root.clone(),
                    source if *of == ForkOf::Origin => all[&source].base.clone(),
                    source => all[&source].live.clone(),
                };
                let differences = if let ForkOf::Earlier(differences) = of { &differences[..] } else { &[] };
                for Difference { key, live } in differences {
                    match live {
                        Some(live) => drop(base.insert(key.clone(), (live.revision, live.value.clone()))),
                        None => drop(base.remove(key)),
                    }
                }
                all.retain(|_, branch| branch.id != *id);
                let (id, label, live) = (id.clone(), label.clone(), base.clone());
                all.insert(position, ModelBranch { id, label, base, live, head: *head });
            }
            Act::Branch(BranchEntry::Reset { number, head, label }) => {
                let old = all.remove(number).unwrap();
                let (live, label) = (old.base.clone(), label.clone());
                all.insert(position, ModelBranch { live, label, head: *head, ..old });
            }
            Act::Branch(BranchEntry::Drop { number }) => drop(all.remove(number).unwrap()),
            Act::Branch(BranchEntry::Rebase { number, on }) => {
                let base = all[on].live.clone();
                all.get_mut(number).unwrap().base = base;
            }
        }
    }
    all
}
