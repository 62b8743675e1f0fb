//! The content of a log while it is read: the store itself, and its branches. Records own their bytes ([`Record::detached`]), which
//! live keys and values are slices of.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use super::entry::{BranchEntry, DRAFT, ForkOf, NOTHING, ROOT};
use super::frame::{Kind, Record};
use super::images::ImagesReader;
use super::past::PastChanges;
use super::state::State;
use crate::contract::content::{Image, LiveValue, Map, Number};
use crate::contract::{Change, Revision};

/// The state read so far.
#[derive(Default)]
pub struct Replay {
    pub state: State,
    pub branches: BTreeMap<Number, Image>,
    /// The numbers of the branches.
    by_id: HashMap<Bytes, Number>,
    /// The checkpoint has the branches at this revision of the log.
    pub branches_at: Revision,
    /// Whether the log has ever had branches.
    pub has_branched: bool,
    reader: ImagesReader,
    /// The newest changes of branches.
    pub past: PastChanges,
}

impl Replay {
    pub fn new() -> Replay {
        Replay { state: State { logged: true, ..State::default() }, ..Replay::default() }
    }

    /// Takes a record of a checkpoint. `None` if it makes no sense.
    pub fn take_of_checkpoint(&mut self, record: Record) -> Option<()> {
        match record.kind {
            Kind::File => {}
            Kind::Put => {
                let change = Change { revision: record.revision, key: record.key, value: Some(record.value) };
                self.state.replay(&change);
            }
            _ => {
                let index = &self.state.index;
                self.reader.take(&record, |key| index.get(key).cloned())?;
            }
        }
        Some(())
    }

    /// Ends the checkpoint. `None` if its branches are not complete.
    pub fn end_checkpoint(&mut self) -> Option<()> {
        let reader = std::mem::take(&mut self.reader);
        if let Some((at, head, compacted)) = reader.images {
            (self.branches_at, self.has_branched) = (at, true);
            (self.state.head, self.state.compacted) = (head, compacted);
        }
        self.branches = reader.finish()?;
        self.by_id = self.branches.values().map(|image| (image.id.clone(), image.number)).collect();
        Some(())
    }

    /// Applies a change of the store itself.
    pub fn change(&mut self, change: &Change) {
        self.state.replay(change);
    }

    /// Takes a record of a segment about a branch. `None` if it makes no sense.
    pub fn take(&mut self, record: &Record) -> Option<()> {
        self.has_branched = true;
        if record.revision <= self.branches_at {
            return Some(());
        }
        if let Kind::BranchPut | Kind::BranchDelete = record.kind {
            return self.change_branch(record);
        }
        let own = record.revision;
        match BranchEntry::decode(record)? {
            BranchEntry::Fork { id, source, of, head, label } => {
                let mut base = match source {
                    ROOT => self.state.index.fork(),
                    NOTHING => Map::new(),
                    number if of == ForkOf::Origin => self.branches.get(&number)?.base.clone(),
                    number => self.branches.get(&number)?.live.clone(),
                };
                if let ForkOf::Earlier(differences) = of {
                    differences.into_iter().for_each(|difference| difference.apply(&mut base));
                }
                let source = match self.branches.get(&source) {
                    Some(draft) if draft.id.starts_with(DRAFT) => draft.source,
                    _ => source,
                };
                // in place of a branch of the same id
                self.by_id.insert(id.clone(), own).map(|replaced| self.branches.remove(&replaced));
                let image = Image { number: own, id, source, label, live: base.clone(), base, head };
                self.branches.insert(own, image);
            }
            BranchEntry::Reset { number, head, label } => {
                let old = self.branches.remove(&number)?;
                self.by_id.insert(old.id.clone(), own);
                let live = old.base.clone();
                self.branches.insert(own, Image { number: own, label, live, head, ..old });
            }
            BranchEntry::Drop { number } => {
                let old = self.branches.remove(&number)?;
                self.by_id.remove(&old.id);
            }
            BranchEntry::Rebase { number, on } => {
                let base = self.branches.get(&on)?.live.clone();
                self.branches.get_mut(&number)?.base = base;
            }
        }
        Some(())
    }

    fn change_branch(&mut self, record: &Record) -> Option<()> {
        let (number, revision, key) = record.in_branch()?;
        let image = self.branches.get_mut(&number).filter(|image| revision.checked_sub(1) == Some(image.head))?;
        image.head = revision;
        // shared with the live keys if the key is one
        let key =
            image.live.get_key_value(&key).map_or_else(|| Bytes::copy_from_slice(&key), |(known, _)| known.clone());
        let (value, replaced) = match record.kind {
            Kind::BranchDelete => (None, Some(image.live.remove(&key)?)),
            _ => {
                let value = record.value.clone();
                let live = LiveValue { revision, value: value.clone() };
                let replaced = match image.live.get_mut(&key) {
                    Some(known) => Some(std::mem::replace(known, live)),
                    None => image.live.insert(key.clone(), live),
                };
                (Some(value), replaced)
            }
        };
        self.past.push(number, Change { revision, key, value }, replaced);
        Some(())
    }

    pub fn end(&mut self) {
        self.state.tail_after = self.state.head;
    }
}
