//! Branches: each begins with the keys of the store or of another branch, or without keys, and then has keys of its own, in
//! the same log. The committer starts them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use super::entry::{NOTHING, ROOT};
use super::past::Past;
use super::state::{Shared, State};
use crate::contract::content::{Image, LiveValue, Map, Number, bytes_of};
use crate::contract::{BranchInfo, BranchSource, Entry, Revision, Snapshot};

/// The number and the origin of a branch.
#[derive(Clone, Default)]
pub struct Lineage {
    /// 0 until the branch has begun.
    pub number: Number,
    pub source: Number,
    /// The keys that the branch began with, and the bytes of their values.
    pub base: Map,
    pub base_bytes: u64,
}

pub struct BranchState {
    pub id: Bytes,
    pub label: Bytes,
    pub shared: Arc<Shared>,
    pub lineage: Mutex<Lineage>,
    /// Its changes before the start, as long as they are of use.
    past: Mutex<Option<Arc<Past>>>,
    /// Notified, with the lineage, when the branch has begun or cannot begin.
    begins: Condvar,
}

impl BranchState {
    /// A branch that the committer has still to begin.
    fn waiting(id: &[u8], label: &[u8]) -> Arc<BranchState> {
        let state = State { is_waiting: true, ..State::default() };
        Self::new(Bytes::copy_from_slice(id), Bytes::copy_from_slice(label), state, Lineage::default())
    }

    /// A branch as it was recovered, and the changes of it that are known.
    pub fn recovered(image: Image, past: Option<Past>) -> Arc<BranchState> {
        let Image { number, id, source, label, base, live, head } = image;
        let (bytes, base_bytes) = (bytes_of(&live), bytes_of(&base));
        let branch = Self::new(id, label, State::of(live, bytes, head), Lineage { number, source, base, base_bytes });
        *branch.past.lock() = past.filter(|past| past.until() == head).map(Arc::new);
        branch
    }

    fn new(id: Bytes, label: Bytes, state: State, lineage: Lineage) -> Arc<BranchState> {
        let shared = Arc::new(Shared::new(state));
        let (lineage, past) = (Mutex::new(lineage), Mutex::default());
        Arc::new(BranchState { id, label, shared, lineage, past, begins: Condvar::new() })
    }

    /// Its changes before the start.
    pub fn past(&self) -> Option<Arc<Past>> {
        self.past.lock().clone()
    }

    /// Forgets changes before the start, if history up to `before` is compacted.
    pub fn forget(&self, before: Revision) {
        let mut past = self.past.lock();
        *past = past.take().filter(|past| before < past.until());
    }

    /// Starts the branch with the keys of its lineage, and wakes the threads that wait for it.
    pub fn begin(&self, lineage: Lineage, head: Revision) {
        let (base, bytes) = (lineage.base.clone(), lineage.base_bytes);
        let mut own = self.lineage.lock();
        *own = lineage;
        *self.shared.lock() = State::of(base, bytes, head);
        drop(own);
        self.shared.newest.send_replace(head);
        self.begins.notify_all();
    }

    /// Makes all further writes fail; a branch that has not begun never will.
    pub fn end(&self, why: &str) {
        let own = self.lineage.lock();
        let mut state = self.shared.lock();
        state.poisoned.get_or_insert_with(|| why.to_owned());
        state.is_waiting = false;
        let head = state.head;
        drop((state, own));
        self.shared.newest.send_replace(head);
        self.begins.notify_all();
    }

    /// Blocks until the committer has begun the branch, which it does once it has completed the writes that it is making.
    pub fn wait(&self) {
        self.begins.wait_while(&mut self.lineage.lock(), |_| self.shared.lock().is_waiting);
    }

    /// Blocks until the branch has begun, or cannot begin; returns whether it has.
    pub fn has_begun(&self) -> bool {
        self.wait();
        self.lineage.lock().number > 0
    }

    /// What the branch began with; `None` if it could not begin.
    pub fn origin(&self) -> Option<State> {
        self.wait();
        let Lineage { number, base, base_bytes, .. } = self.lineage.lock().clone();
        (number > 0).then(|| State::of(base, base_bytes, self.shared.head()))
    }

    pub fn image(&self) -> Image {
        let Lineage { number, source, base, .. } = self.lineage.lock().clone();
        let mut state = self.shared.lock();
        let (live, head) = (state.index.fork(), state.head);
        Image { number, id: self.id.clone(), source, label: self.label.clone(), base, live, head }
    }
}

/// A change of the branches that the committer has yet to make.
pub enum BranchOperation {
    Fork {
        branch: Arc<BranchState>,
        source: Origin,
        share: Share,
        /// The branch that had the same id.
        replaced: Option<Arc<BranchState>>,
    },
    Reset {
        old: Arc<BranchState>,
        new: Arc<BranchState>,
    },
    Drop(Arc<BranchState>),
}

impl BranchOperation {
    /// Ends the branch that would begin.
    pub fn fail(&self, why: &str) {
        match self {
            BranchOperation::Fork { branch, .. } | BranchOperation::Reset { new: branch, .. } => branch.end(why),
            BranchOperation::Drop(_) => {}
        }
    }
}

/// The source of a branch.
pub enum Origin {
    Nothing,
    Root,
    Branch(Arc<BranchState>),
}

/// The keys of its source with which a branch begins.
pub enum Share {
    /// The current keys of the source. If a revision is given, it must be the newest one of the source.
    Newest(Option<Revision>),
    /// The keys that the source began with.
    Origin,
    /// Keys that the source held at an earlier revision.
    Earlier(Map, Revision),
}

impl Origin {
    pub fn number(&self) -> Number {
        match self {
            Origin::Nothing => NOTHING,
            Origin::Root => ROOT,
            Origin::Branch(branch) => branch.lineage.lock().number,
        }
    }

    /// The keys of a snapshot of the source, which share nodes and values with the current ones.
    fn earlier(&self, root: &Shared, snapshot: &Snapshot) -> Map {
        let mut keys = match self {
            Origin::Nothing => Map::new(),
            Origin::Root => root.lock().index.fork(),
            Origin::Branch(branch) => {
                branch.wait();
                branch.shared.lock().index.fork()
            }
        };
        let wanted: HashSet<&Bytes> = snapshot.entries.iter().map(|entry| &entry.key).collect();
        let gone: Vec<Bytes> = keys.keys().filter(|key| !wanted.contains(key)).cloned().collect();
        gone.iter().for_each(|key| drop(keys.remove(key)));
        for Entry { key, value, revision } in &snapshot.entries {
            // an equal revision means an equal value: none is used twice
            if keys.get(key).is_none_or(|live| live.revision != *revision) {
                keys.insert(key.clone(), LiveValue { revision: *revision, value: value.clone() });
            }
        }
        keys
    }
}

/// The branches of a store by id, and the operations that the committer has yet to make.
#[derive(Default)]
pub struct Branches {
    by_id: Mutex<HashMap<Bytes, Arc<BranchState>>>,
    operations: Mutex<Vec<BranchOperation>>,
}

impl Branches {
    pub fn new(branches: impl Iterator<Item = Arc<BranchState>>) -> Branches {
        let by_id = branches.map(|branch| (branch.id.clone(), branch)).collect();
        Branches { by_id: Mutex::new(by_id), operations: Mutex::default() }
    }

    pub fn get(&self, id: &[u8]) -> Option<Arc<BranchState>> {
        self.by_id.lock().get(id).cloned()
    }

    pub fn list(&self) -> Vec<BranchInfo> {
        let all = self.by_id.lock();
        all.values().map(|branch| BranchInfo { id: branch.id.clone(), label: branch.label.clone() }).collect()
    }

    /// Begins a branch; `None` if there is no such source. `root` is the store itself.
    pub fn fork(&self, id: &[u8], source: &BranchSource<'_>, label: &[u8], root: &Shared) -> Option<Arc<BranchState>> {
        let of = |id: &[u8]| self.get(id).map(Origin::Branch);
        let (source, share) = match source {
            BranchSource::Nothing => (Origin::Nothing, Share::Newest(None)),
            BranchSource::Store(at) => (Origin::Root, Share::Newest(*at)),
            BranchSource::Branch(id, at) => (of(id)?, Share::Newest(*at)),
            BranchSource::Origin(id) => (of(id)?, Share::Origin),
            BranchSource::Earlier(id, snapshot) => {
                let source = id.map_or(Some(Origin::Root), of)?;
                let share = Share::Earlier(source.earlier(root, snapshot), snapshot.revision);
                (source, share)
            }
        };
        let mut all = self.by_id.lock();
        let branch = BranchState::waiting(id, label);
        let replaced = all.insert(branch.id.clone(), branch.clone());
        self.operations.lock().push(BranchOperation::Fork { branch: branch.clone(), source, share, replaced });
        Some(branch)
    }

    pub fn reset(&self, id: &[u8], label: &[u8]) -> Option<Arc<BranchState>> {
        let mut all = self.by_id.lock();
        let old = all.get(id)?.clone();
        let new = BranchState::waiting(id, label);
        all.insert(new.id.clone(), new.clone());
        self.operations.lock().push(BranchOperation::Reset { old, new: new.clone() });
        Some(new)
    }

    pub fn remove(&self, id: &[u8]) {
        let mut all = self.by_id.lock();
        if let Some(branch) = all.remove(id) {
            self.operations.lock().push(BranchOperation::Drop(branch));
        }
    }

    /// Removes a branch that could not begin.
    pub fn forget(&self, branch: &Arc<BranchState>) {
        let mut all = self.by_id.lock();
        if all.get(&branch.id).is_some_and(|known| Arc::ptr_eq(known, branch)) {
            all.remove(&branch.id);
        }
    }

    /// The operations since the last call, in order.
    pub fn take_operations(&self) -> Vec<BranchOperation> {
        std::mem::take(&mut *self.operations.lock())
    }
}
