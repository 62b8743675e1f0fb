//! Forks of earlier revisions, which a thread makes beside the committer.
//!
//! A draft is a branch that begins as a fork of the source as it is now, and then is replaced by forks of itself, each of which differs
//! by a part of what has changed since. The last of these is the branch that was wanted. So each part is an entry of its own, between
//! those of other writers, and what a crash leaves of a draft is a branch that no owner knows.
//!
//! The initial content of a branch is rewritten in the same way: the draft begins with it, gets other values, and takes its place.

use std::collections::HashSet;
use std::sync::mpsc::{self, TrySendError};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::branch::{BranchOperation, BranchState, Branches, EarlierPart, Origin, Share};
use super::entry::{DRAFT, Difference};
use crate::contract::content::{LiveValue, Map, bytes_of};
use crate::contract::{Earlier, Entry, Revision, Snapshot};
use crate::limits;

/// A draft, and the branch that it is made for.
pub enum Draft {
    /// A fork of an earlier revision.
    Fork {
        branch: Arc<BranchState>,
        /// The branch that had the same id.
        replaced: Option<Arc<BranchState>>,
        source: Origin,
        earlier: Earlier,
    },
    /// Other values for what a branch began with.
    Origin { branch: Arc<BranchState>, values: Vec<Entry>, reply: oneshot::Sender<Result<(), String>> },
}

/// The drafts of a store, which are made one after the other: each holds all keys of its source.
#[derive(Default)]
pub struct Drafts {
    sender: OnceLock<Option<mpsc::SyncSender<Draft>>>,
}

impl Drafts {
    /// Has a draft made. `wake` wakes the committer.
    pub fn make(&self, draft: Draft, branches: &Arc<Branches>, wake: impl Fn() + Send + 'static) {
        let start = || {
            let (sender, receiver) = mpsc::sync_channel::<Draft>(limits::DRAFTS_MAX);
            let branches = branches.clone();
            let work = move || receiver.into_iter().for_each(|draft| draft.make(&branches, &wake));
            std::thread::Builder::new().name("forks".to_owned()).spawn(work).ok().map(|_| sender)
        };
        let Some(sender) = self.sender.get_or_init(start) else {
            return draft.fail("no thread can be started", branches);
        };
        if let Err(TrySendError::Full(draft) | TrySendError::Disconnected(draft)) = sender.try_send(draft) {
            draft.fail("too many forks of earlier revisions are being made", branches);
        }
    }
}

/// The committer, as a draft needs it.
struct Maker<'a> {
    id: Bytes,
    branches: &'a Branches,
    wake: &'a dyn Fn(),
}

impl Maker<'_> {
    fn begin(&self, source: Origin, share: Share) -> Result<Arc<BranchState>, String> {
        let draft = self.branches.begin(&self.id, source, share, &[]);
        (self.wake)();
        if draft.has_begun() { Ok(draft) } else { Err(draft.why_ended()) }
    }

    fn push(&self, operation: BranchOperation) {
        self.branches.push(operation);
        (self.wake)();
    }
}

impl Draft {
    fn fail(self, why: &str, branches: &Branches) {
        match self {
            Draft::Fork { branch, .. } => branches.abandon(&branch, why),
            Draft::Origin { reply, .. } => drop(reply.send(Err(why.to_owned()))),
        }
    }

    fn make(self, branches: &Branches, wake: &dyn Fn()) {
        let (Draft::Fork { branch, .. } | Draft::Origin { branch, .. }) = &self;
        let branch = branch.clone();
        let maker = Maker { id: Bytes::from([DRAFT, &branch.id].concat()), branches, wake };
        match self {
            Draft::Fork { replaced, source, earlier, .. } => {
                if let Err(why) = fork(&maker, &branch, replaced, source, earlier) {
                    branches.abandon(&branch, &why);
                }
            }
            Draft::Origin { values, reply, .. } => match origin(&maker, &branch, values) {
                Ok(on) => maker.push(BranchOperation::Rebase { branch, on, reply }),
                Err(why) => drop(reply.send(Err(why))),
            },
        }
        branches.remove(&maker.id);
        wake();
    }
}

fn fork(
    maker: &Maker<'_>,
    branch: &Arc<BranchState>,
    replaced: Option<Arc<BranchState>>,
    source: Origin,
    earlier: Earlier,
) -> Result<(), String> {
    let snapshot = earlier()?;
    let mut draft = maker.begin(source, Share::Newest(None))?;
    let now = draft.image().live;
    let differences = Difference::between(&now, &keys_at(&now, &snapshot));
    let mut parts = parts(now, differences, snapshot.revision)?;
    let last = parts.pop().ok_or("nothing is left to be written")?;
    for part in parts {
        draft = maker.begin(Origin::Branch(draft), Share::Part(part))?;
    }
    let (source, share) = (Origin::Branch(draft), Share::Part(last));
    maker.push(BranchOperation::Fork { branch: branch.clone(), source, share, replaced });
    if branch.has_begun() { Ok(()) } else { Err(branch.why_ended()) }
}

/// A draft with what a branch began with, and other values.
fn origin(maker: &Maker<'_>, branch: &Arc<BranchState>, values: Vec<Entry>) -> Result<Arc<BranchState>, String> {
    let mut draft = maker.begin(Origin::Branch(branch.clone()), Share::Origin)?;
    let now = draft.image().live;
    let head = draft.image().head;
    let is_same = |entry: &Entry| now.get(&entry.key).is_some_and(|live| live.revision == entry.revision);
    let differences = values
        .into_iter()
        .filter(is_same)
        .map(|Entry { key, value, revision }| Difference { key, live: Some(LiveValue { revision, value }) });
    let differences = differences.collect();
    for part in parts(now, differences, head)? {
        draft = maker.begin(Origin::Branch(draft), Share::Part(part))?;
    }
    Ok(draft)
}

/// Differences from keys in parts of bounded size: at least one.
fn parts(now: Map, differences: Vec<Difference>, at: Revision) -> Result<Vec<EarlierPart>, String> {
    if differences.iter().map(Difference::size).sum::<usize>() > limits::FORK_DIFFERENCE_BYTES_MAX {
        return Err("too much of the source has changed since then".to_owned());
    }
    let bytes = bytes_of(&now);
    let mut next = EarlierPart { differences: vec![], keys: now, bytes, at };
    let mut parts = vec![];
    let mut size = 0;
    for difference in differences {
        size += difference.size();
        if size > limits::FORK_PART_BYTES && !next.differences.is_empty() {
            let EarlierPart { keys, bytes, .. } = &next;
            let after = EarlierPart { differences: vec![], keys: keys.clone(), bytes: *bytes, at };
            parts.push(std::mem::replace(&mut next, after));
            size = difference.size();
        }
        next.add(difference);
    }
    parts.push(next);
    Ok(parts)
}

impl EarlierPart {
    fn add(&mut self, difference: Difference) {
        let size = |live: Option<&LiveValue>| live.map_or(0, |live| live.value.len() as u64);
        self.bytes = self.bytes + size(difference.live.as_ref()) - size(self.keys.get(&difference.key));
        self.differences.push(difference.clone());
        difference.apply(&mut self.keys);
    }
}

/// The keys of a snapshot, which share nodes and values with others.
fn keys_at(now: &Map, snapshot: &Snapshot) -> Map {
    let mut keys = now.clone();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lead_to_the_earlier_keys_and_are_bounded() {
        let live = |revision: Revision, bytes: usize| LiveValue { revision, value: Bytes::from(vec![b'v'; bytes]) };
        let key = |index: usize| Bytes::from(format!("{index:04}"));
        let now: Map = (0..100).map(|index| (key(index), live(1000, 10))).collect();
        for (large, count) in [(0, 1), (1, 1), (60, 10), (90, 15)] {
            let entries = (0..90).map(|index| {
                let (revision, bytes) = if index < large { (1, 40 << 10) } else { (1000, 10) };
                Entry { key: key(index), value: live(1, bytes).value, revision }
            });
            let snapshot = Snapshot { revision: 900, entries: entries.collect() };
            let differences = Difference::between(&now, &keys_at(&now, &snapshot));
            let parts = parts(now.clone(), differences, 900).unwrap();
            let mut keys = now.clone();
            for part in &parts {
                assert!(part.differences.iter().map(Difference::size).sum::<usize>() <= limits::FORK_PART_BYTES);
                part.differences.iter().cloned().for_each(|difference| difference.apply(&mut keys));
                assert_eq!((&keys, part.bytes, part.at), (&part.keys, bytes_of(&keys), 900));
            }
            assert_eq!((keys, parts.len()), (keys_at(&now, &snapshot), count), "{large}");
        }
    }
}
