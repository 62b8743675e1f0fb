//! Branches: each begins with the keys of the store or of another branch, or without keys, and then has keys of its own, in
//! the same log. The committer starts them.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::entry::{Difference, NOTHING, ROOT};
use super::past::Past;
use super::state::{Shared, State};
use crate::contract::content::{Image, Map, Number, bytes_of};
use crate::contract::{BranchInfo, BranchSource, Revision};

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

    /// Whether it has still to begin.
    pub fn is_waiting(&self) -> bool {
        self.shared.lock().is_waiting
    }

    /// Blocks until the committer has begun the branch, which it does once it has completed the writes that it is making.
    pub fn wait(&self) {
        self.begins.wait_while(&mut self.lineage.lock(), |_| self.is_waiting());
    }

    /// Blocks until the branch has begun, or cannot begin; returns whether it has.
    pub fn has_begun(&self) -> bool {
        self.wait();
        self.lineage.lock().number > 0
    }

    /// Why the branch takes no writes.
    pub fn why_ended(&self) -> String {
        self.shared.lock().poisoned.clone().unwrap_or_else(|| "the branch has not begun".to_owned())
    }

    /// The initial content of the branch; `None` if it could not begin.
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
    /// Replaces what a branch began with by what another one holds.
    Rebase {
        branch: Arc<BranchState>,
        on: Arc<BranchState>,
        reply: oneshot::Sender<Result<(), String>>,
    },
}

impl BranchOperation {
    /// Ends the branch that would begin.
    pub fn fail(self, why: &str) {
        match self {
            BranchOperation::Fork { branch, .. } | BranchOperation::Reset { new: branch, .. } => branch.end(why),
            BranchOperation::Drop(_) => {}
            BranchOperation::Rebase { reply, .. } => drop(reply.send(Err(why.to_owned()))),
        }
    }

    /// Whether it needs a branch that has still to begin.
    pub fn is_early(&self) -> bool {
        match self {
            BranchOperation::Fork { source: Origin::Branch(needed), .. }
            | BranchOperation::Reset { old: needed, .. } => needed.is_waiting(),
            BranchOperation::Fork { .. } | BranchOperation::Drop(_) | BranchOperation::Rebase { .. } => false,
        }
    }
}

/// The source of a branch.
#[derive(Clone)]
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
    /// Keys that differ from those of the source.
    Part(EarlierPart),
}

/// A part of what leads from the keys of a source to those that it held earlier.
pub struct EarlierPart {
    pub differences: Vec<Difference>,
    /// The keys of the source with these differences, and the bytes of their values.
    pub keys: Map,
    pub bytes: u64,
    /// The earlier revision.
    pub at: Revision,
}

impl Origin {
    pub fn number(&self) -> Number {
        match self {
            Origin::Nothing => NOTHING,
            Origin::Root => ROOT,
            Origin::Branch(branch) => branch.lineage.lock().number,
        }
    }
}

/// Why a branch cannot begin any more.
const STOPPED: &str = "the committer has stopped";

/// The branches of a store by id, and the operations that the committer has yet to make.
pub struct Branches {
    by_id: Mutex<HashMap<Bytes, Arc<BranchState>>>,
    /// `None` once the committer has stopped.
    operations: Mutex<Option<Vec<BranchOperation>>>,
}

impl Branches {
    pub fn new(branches: impl Iterator<Item = Arc<BranchState>>) -> Branches {
        let by_id = branches.map(|branch| (branch.id.clone(), branch)).collect();
        Branches { by_id: Mutex::new(by_id), operations: Mutex::new(Some(vec![])) }
    }

    pub fn get(&self, id: &[u8]) -> Option<Arc<BranchState>> {
        self.by_id.lock().get(id).cloned()
    }

    pub fn list(&self) -> Vec<BranchInfo> {
        let all = self.by_id.lock();
        all.values().map(|branch| BranchInfo { id: branch.id.clone(), label: branch.label.clone() }).collect()
    }

    /// Adds an operation, or fails it if the committer has stopped.
    pub fn push(&self, operation: BranchOperation) {
        match &mut *self.operations.lock() {
            Some(operations) => operations.push(operation),
            None => operation.fail(STOPPED),
        }
    }

    /// Begins a branch; `None` if there is no such source.
    pub fn fork(&self, id: &[u8], source: &BranchSource<'_>, label: &[u8]) -> Option<Arc<BranchState>> {
        let of = |id: &[u8]| self.get(id).map(Origin::Branch);
        let (source, share) = match source {
            BranchSource::Nothing => (Origin::Nothing, Share::Newest(None)),
            BranchSource::Store(at) => (Origin::Root, Share::Newest(*at)),
            BranchSource::Branch(id, at) => (of(id)?, Share::Newest(*at)),
            BranchSource::Origin(id) => (of(id)?, Share::Origin),
        };
        Some(self.begin(id, source, share, label))
    }

    /// Begins a branch with what its source shares.
    pub fn begin(&self, id: &[u8], source: Origin, share: Share, label: &[u8]) -> Arc<BranchState> {
        let mut all = self.by_id.lock();
        let branch = BranchState::waiting(id, label);
        let replaced = all.insert(branch.id.clone(), branch.clone());
        self.push(BranchOperation::Fork { branch: branch.clone(), source, share, replaced });
        branch
    }

    /// A branch that begins later, and the one that had the same id.
    pub fn expect(&self, id: &[u8], label: &[u8]) -> (Arc<BranchState>, Option<Arc<BranchState>>) {
        let branch = BranchState::waiting(id, label);
        let replaced = self.by_id.lock().insert(branch.id.clone(), branch.clone());
        (branch, replaced)
    }

    pub fn reset(&self, id: &[u8], label: &[u8]) -> Option<Arc<BranchState>> {
        let mut all = self.by_id.lock();
        let old = all.get(id)?.clone();
        let new = BranchState::waiting(id, label);
        all.insert(new.id.clone(), new.clone());
        self.push(BranchOperation::Reset { old, new: new.clone() });
        Some(new)
    }

    pub fn remove(&self, id: &[u8]) {
        let mut all = self.by_id.lock();
        if let Some(branch) = all.remove(id) {
            self.push(BranchOperation::Drop(branch));
        }
    }

    /// Ends a branch that cannot begin. Nothing of it is in the log.
    pub fn abandon(&self, branch: &Arc<BranchState>, why: &str) {
        let mut all = self.by_id.lock();
        if all.get(&branch.id).is_some_and(|known| Arc::ptr_eq(known, branch)) {
            all.remove(&branch.id);
        }
        drop(all);
        branch.end(why);
    }

    /// The operations since the last call, in order.
    pub fn take_operations(&self) -> Vec<BranchOperation> {
        self.operations.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Fails the operations that are left, and all later ones.
    pub fn stop(&self) {
        let left = self.operations.lock().take();
        left.into_iter().flatten().for_each(|operation| operation.fail(STOPPED));
    }
}
