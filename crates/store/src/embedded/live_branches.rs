//! The branches, as the committer sees them. Only the committer begins, resets and ends branches, so that their
//! content agrees with the order of the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::branch::{BranchOperation, BranchState, EarlierPart, Lineage, Origin, Share};
use super::entry::{BranchEntry, DRAFT, ForkOf, LogEntry};
use super::frame::Kind;
use super::state::Shared;
use crate::contract::Revision;
use crate::contract::content::{Images, Map, Number};

/// An entry that is appended before the next writes. It needs no sync of its own: what depends on it comes later in
/// the log, and is synced with it.
struct Pending {
    position: Revision,
    kind: Kind,
    key: Bytes,
    value: Bytes,
}

/// Changes that take effect only once they are in the log.
enum Unwritten {
    /// A fork of an earlier revision. After a crash, only its entry has the content that it begins with, so it must
    /// be in the log first.
    Fork {
        branch: Arc<BranchState>,
        lineage: Lineage,
        head: Revision,
    },
    Rebase {
        branch: Arc<BranchState>,
        base: Map,
        base_bytes: u64,
        reply: oneshot::Sender<Result<(), String>>,
    },
}

/// The branches that have begun and have not ended.
#[derive(Default)]
pub struct LiveBranches {
    all: BTreeMap<Number, Arc<BranchState>>,
    pending: Vec<Pending>,
    unwritten: Option<Unwritten>,
    /// Operations on branches that have not begun yet.
    early: Vec<BranchOperation>,
    /// Whether the log has ever had branches.
    pub is_used: bool,
}

impl LiveBranches {
    pub fn new(branches: impl Iterator<Item = Arc<BranchState>>, is_used: bool) -> LiveBranches {
        let all = branches.map(|branch| (branch.lineage.lock().number, branch.clone())).collect();
        LiveBranches { all, pending: vec![], unwritten: None, early: vec![], is_used }
    }

    /// Carries out an operation; `head` is the revision of the last entry of the log.
    pub fn take(&mut self, operation: BranchOperation, root: &Shared, head: Revision) {
        self.is_used = true;
        if operation.is_early() {
            return self.early.push(operation);
        }
        match operation {
            BranchOperation::Fork { branch, source, share, replaced } => {
                self.fork(&branch, &source, share, replaced.as_deref(), root, head)
            }
            // deleted before its turn came
            BranchOperation::Reset { old, new } if !new.is_waiting() => {
                self.take(BranchOperation::Drop(old), root, head);
            }
            BranchOperation::Reset { old, new } => self.reset(&old, &new, head),
            BranchOperation::Drop(branch) => {
                let number = branch.lineage.lock().number;
                if self.all.remove(&number).is_some() {
                    self.push(&BranchEntry::Drop { number }, head);
                }
                branch.end("the branch has been deleted");
            }
            BranchOperation::Rebase { branch, on, reply } => self.rebase(branch, &on, reply, head),
        }
    }

    fn fork(
        &mut self,
        branch: &Arc<BranchState>,
        source: &Origin,
        share: Share,
        replaced: Option<&BranchState>,
        root: &Shared,
        log: Revision,
    ) {
        if !branch.is_waiting() {
            // deleted before its turn came
            return;
        }
        let number = source.number();
        let (live, bytes, newest) = match source {
            Origin::Nothing => (Map::new(), 0, 0),
            Origin::Root => content(root),
            Origin::Branch(source) => content(&source.shared),
        };
        // the source could not begin: its number is 0
        let is_missing = matches!(source, Origin::Branch(_)) && number == 0;
        if is_missing || matches!(share, Share::Newest(Some(at)) if at != newest) {
            return branch.end("the source of the branch has changed");
        }
        let (of, (base, base_bytes), head) = match (share, source) {
            (Share::Part(EarlierPart { differences, keys, bytes, at }), _) => {
                (ForkOf::Earlier(differences), (keys, bytes), at)
            }
            (Share::Origin, Origin::Branch(source)) => {
                let lineage = source.lineage.lock();
                (ForkOf::Origin, (lineage.base.clone(), lineage.base_bytes), newest)
            }
            (Share::Newest(_) | Share::Origin, _) => (ForkOf::Newest, (live, bytes), newest),
        };
        let is_earlier = matches!(of, ForkOf::Earlier(_));
        let mut begins_at = head;
        if let Some(replaced) = replaced {
            begins_at = begins_at.max(self.end(replaced) + 1);
        }
        let (id, label) = (branch.id.clone(), branch.label.clone());
        let own = self.push(&BranchEntry::Fork { id, source: number, of, head: begins_at, label }, log);
        let of = match source {
            Origin::Branch(draft) if draft.id.starts_with(DRAFT) => draft.lineage.lock().source,
            _ => number,
        };
        let lineage = Lineage { number: own, source: of, base, base_bytes };
        if is_earlier {
            self.unwritten = Some(Unwritten::Fork { branch: branch.clone(), lineage, head: begins_at });
        } else {
            self.begin(branch, lineage, begins_at);
        }
    }

    fn begin(&mut self, branch: &Arc<BranchState>, lineage: Lineage, head: Revision) {
        self.all.insert(lineage.number, branch.clone());
        branch.begin(lineage, head);
    }

    /// Whether a change waits for [`LiveBranches::entries`] to be appended. Nothing else may be done until then.
    pub fn has_unwritten(&self) -> bool {
        self.unwritten.is_some()
    }

    /// Makes the waiting change take effect once its entry has been appended. If that failed, fails the change and
    /// removes the entry, which is the last one.
    pub fn settle(&mut self, appended: Result<(), String>) {
        let Some(unwritten) = self.unwritten.take() else { return };
        if appended.is_err() {
            self.pending.pop();
        }
        match (unwritten, appended) {
            (Unwritten::Fork { branch, lineage, head }, Ok(())) => self.begin(&branch, lineage, head),
            (Unwritten::Fork { branch, .. }, Err(why)) => branch.end(&why),
            (Unwritten::Rebase { branch, base, base_bytes, reply }, appended) => {
                if appended.is_ok() {
                    let mut lineage = branch.lineage.lock();
                    (lineage.base, lineage.base_bytes) = (base, base_bytes);
                }
                let _ = reply.send(appended);
            }
        }
    }

    fn rebase(
        &mut self,
        branch: Arc<BranchState>,
        on: &BranchState,
        reply: oneshot::Sender<Result<(), String>>,
        log: Revision,
    ) {
        // locked one after the other, because both may be the same branch
        let numbers = [&branch, on].map(|branch| branch.lineage.lock().number);
        if !numbers.iter().all(|number| self.all.contains_key(number)) {
            return drop(reply.send(Err("the branch has been replaced".to_owned())));
        }
        let [number, on_number] = numbers;
        self.push(&BranchEntry::Rebase { number, on: on_number }, log);
        let (base, base_bytes, _) = content(&on.shared);
        self.unwritten = Some(Unwritten::Rebase { branch, base, base_bytes, reply });
    }

    /// Takes an operation whose branch has begun, or has ended instead.
    pub fn next_early(&mut self) -> Option<BranchOperation> {
        let ready = self.early.iter().position(|operation| !operation.is_early())?;
        Some(self.early.remove(ready))
    }

    /// Fails the operations whose branches have not begun.
    pub fn stop(&mut self, why: &str) {
        self.early.drain(..).for_each(|operation| operation.fail(why));
    }

    fn reset(&mut self, old: &BranchState, new: &Arc<BranchState>, log: Revision) {
        let lineage = old.lineage.lock().clone();
        if lineage.number == 0 {
            return new.end("the branch has not begun");
        }
        // a later revision than any client has seen, so that earlier watches and continue tokens expire
        let head = self.end(old) + 1;
        let number = self.push(&BranchEntry::Reset { number: lineage.number, head, label: new.label.clone() }, log);
        new.begin(Lineage { number, ..lineage }, head);
        self.all.insert(number, new.clone());
    }

    /// Ends a branch that another one replaces, and returns its last revision.
    fn end(&mut self, replaced: &BranchState) -> Revision {
        let number = replaced.lineage.lock().number;
        self.all.remove(&number);
        replaced.end("the branch has been replaced");
        replaced.shared.head()
    }

    /// Adds an entry, and returns its revision in the log.
    fn push(&mut self, entry: &BranchEntry, log: Revision) -> Revision {
        let position = self.next(log);
        let (kind, key, value) = entry.encode();
        self.pending.push(Pending { position, kind, key, value });
        position
    }

    /// The revision of the next entry of the log.
    pub fn next(&self, log: Revision) -> Revision {
        log + self.pending.len() as Revision + 1
    }

    /// The entries to append before the next writes.
    pub fn entries(&self) -> impl Iterator<Item = LogEntry<'_>> {
        self.pending.iter().map(|pending| {
            let Pending { position, kind, key, value } = pending;
            LogEntry { kind: *kind, position: *position, branch: None, key, value }
        })
    }

    /// Called when [`LiveBranches::entries`] have been appended.
    pub fn appended(&mut self) {
        self.pending.clear();
    }

    /// The state of all branches, for a checkpoint. `at` is the revision of the last entry of the log.
    pub fn images(&self, root: &Shared, at: Revision) -> Images {
        let state = root.lock();
        let of_root = (state.head, state.compacted);
        drop(state);
        Images { at, root: of_root, branches: self.all.values().map(|branch| branch.image()).collect() }
    }
}

/// The keys of a source, the bytes of their values, and its revision.
fn content(shared: &Shared) -> (Map, u64, Revision) {
    let mut state = shared.lock();
    (state.index.fork(), state.bytes, state.head)
}
