//! The committer: the thread that makes all writes.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::branch::{BranchState, Branches};
use super::entry::LogEntry;
use super::live_branches::LiveBranches;
use super::options::Durability;
use super::state::{self, Reopening, Shared, State};
use super::writer::{Failure, Writer};
use super::{checkpoint, format};
use crate::contract::content::{Images, LiveValue, Number};
use crate::contract::{Change, Refused, Revision, Snapshot, StoreError, Write};
use crate::limits;

/// A job for the committer, and the channel for its result.
pub enum Job {
    Write {
        /// The branch that is written to, instead of the store itself.
        branch: Option<Arc<BranchState>>,
        write: Write,
        reply: state::Reply,
    },
    /// Wakes the committer for operations of branches.
    BranchOperations,
    /// All live keys, at one moment.
    Content {
        reply: oneshot::Sender<(Snapshot, Option<Images>)>,
    },
    Compact {
        before: Revision,
        reply: oneshot::Sender<Result<(), StoreError>>,
    },
    /// Whether appends are synced one by one; if so, those before are synced first.
    Sync {
        each: bool,
        reply: oneshot::Sender<Result<(), StoreError>>,
    },
}

/// Submits a job to the committer, if there still is one, and waits for the result.
pub async fn submit<T>(
    jobs: Option<mpsc::Sender<Job>>,
    job: impl FnOnce(oneshot::Sender<T>) -> Job,
) -> Result<T, StoreError> {
    let gone = || StoreError::Unavailable("the committer has stopped".to_owned());
    let (reply, result) = oneshot::channel();
    jobs.ok_or_else(gone)?.send(job(reply)).await.map_err(|_| gone())?;
    result.await.map_err(|_| gone())
}

/// A writer, and the reply to it.
type Reply = (state::Reply, Result<Revision, Refused>);

/// A write that waits.
struct Written {
    branch: Option<Arc<BranchState>>,
    write: Write,
    reply: state::Reply,
}

type Waiting = Vec<Written>;

/// The committer, and the log that it writes.
pub struct Committer {
    pub shared: Arc<Shared>,
    pub branches: Arc<Branches>,
    pub live_branches: LiveBranches,
    pub log: Writer,
    /// The directory, whose format is raised before its first branch.
    pub directory: Option<PathBuf>,
}

impl Committer {
    /// Serves jobs until every sender is dropped.
    pub fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut group = Vec::with_capacity(limits::COMMIT_GROUP_MAX);
        let mut clock = Clock::new();
        loop {
            let every = self.every();
            let open = match every {
                None => jobs.blocking_recv_many(&mut group, limits::COMMIT_GROUP_MAX) > 0,
                Some(every) => clock.receive(&mut jobs, &mut group, every),
            };
            if !open {
                break;
            }
            self.serve(&mut group);
            if every.is_some() && clock.rang() {
                self.tick();
            }
            if jobs.is_empty() {
                self.rest();
            }
        }
        self.apply_branch_operations();
        self.branches.stop();
        self.live_branches.stop("the committer has stopped");
        let _ = self.append_branch_entries();
        if let Some(log) = self.working_log() {
            // every acknowledged write already has the durability that was promised
            let _ = log.close();
        }
    }

    /// The log, unless an operation has failed fatally: after a failed sync, a later sync may succeed without having written
    /// the data.
    fn working_log(&mut self) -> Option<&mut Writer> {
        self.shared.lock().poisoned.is_none().then_some(&mut self.log)
    }

    /// Interval of periodic work, if there is any.
    fn every(&self) -> Option<Duration> {
        match self.log.options().durability {
            _ if self.shared.lock().full.is_some() => Some(limits::DISK_RETRY),
            Durability::Interval(every) => Some(every),
            _ => None,
        }
    }

    /// Periodic work: syncs with `--durability interval`, and probes whether a full disk has room again.
    fn tick(&mut self) {
        let full = self.shared.lock().full.is_some();
        let Some(log) = self.working_log() else { return };
        let done = log.sync().and_then(|()| if full { log.probe() } else { log.seal() });
        note(&self.shared, done.err());
    }

    /// Called when no job waits: appends the seal of the last frame.
    fn rest(&mut self) {
        if let Some(Err(why)) = self.working_log().map(Writer::seal) {
            note(&self.shared, Some(why));
        }
    }

    fn serve(&mut self, group: &mut Vec<Job>) {
        // Writes to a new branch follow its fork. Writes of the group to the source of a fork are not acknowledged yet, so the
        // fork may precede them.
        self.apply_branch_operations();
        let mut writes = vec![];
        for job in group.drain(..) {
            match job {
                Job::Write { branch, write, reply } => writes.push(Written { branch, write, reply }),
                Job::BranchOperations => {}
                Job::Content { reply } => {
                    self.commit_all(std::mem::take(&mut writes));
                    let _ = reply.send(self.content());
                }
                Job::Compact { before, reply } => self.compact(before, reply),
                Job::Sync { each, reply } => {
                    self.commit_all(std::mem::take(&mut writes));
                    let _ = reply.send(self.sync_each(each));
                }
            }
        }
        self.commit_all(writes);
    }

    /// All live keys, at the revision of the log.
    fn content(&self) -> (Snapshot, Option<Images>) {
        // entries that are not in the log yet have revisions already
        let revision = self.live_branches.next(self.log.head()) - 1;
        let images = self.live_branches.is_used.then(|| self.live_branches.images(&self.shared, revision));
        let snapshot = self.shared.snapshot();
        (Snapshot { revision: if images.is_some() { revision } else { snapshot.revision }, ..snapshot }, images)
    }

    /// Begins, resets and ends branches.
    fn apply_branch_operations(&mut self) {
        let operations = self.branches.take_operations();
        if let (Some(directory), false, false) = (&self.directory, operations.is_empty(), self.live_branches.is_used)
            && let Err(error) = format::allow_branches(directory)
        {
            return operations
                .into_iter()
                .for_each(|operation| operation.fail(&format!("the file FORMAT cannot be written: {error}")));
        }
        for operation in operations {
            let mut next = Some(operation);
            while let Some(operation) = next {
                self.live_branches.take(operation, &self.shared, self.log.head());
                if self.live_branches.has_unwritten() {
                    let appended = self.append_unwritten();
                    self.live_branches.settle(appended);
                }
                next = self.live_branches.next_early();
            }
        }
    }

    /// Appends the entries of branches, as durably as writes. Fails with a one-line message.
    fn append_unwritten(&mut self) -> Result<(), String> {
        if let Some(why) = self.shared.lock().poisoned.clone() {
            return Err(why);
        }
        let appended = self.append_branch_entries();
        note(&self.shared, appended.clone().err());
        appended.map_err(Failure::why)
    }

    /// Appends the entries of branches that have not been appended with a write.
    fn append_branch_entries(&mut self) -> Result<(), Failure> {
        let entries: Vec<LogEntry<'_>> = self.live_branches.entries().collect();
        if entries.is_empty() || self.shared.lock().poisoned.is_some() {
            return Ok(());
        }
        self.log.append(&entries)?;
        self.live_branches.appended();
        Ok(())
    }

    fn commit_all(&mut self, writes: Waiting) {
        let mut writes = writes.into_iter().peekable();
        while writes.peek().is_some() {
            let group = next_group(&mut writes);
            self.commit(group);
        }
    }

    fn sync_each(&mut self, each: bool) -> Result<(), StoreError> {
        if let Some(why) = self.shared.lock().poisoned.clone() {
            return Err(StoreError::Unavailable(why));
        }
        let done = self.log.sync_each(each);
        note(&self.shared, done.clone().err());
        done.map_err(|failure| StoreError::Unavailable(failure.why()))
    }

    fn commit(&mut self, mut waiting: Waiting) {
        let mut replies: Vec<Reply> = Vec::with_capacity(waiting.len());
        // Writes to one key in one group build on each other, so each round takes the first write of every key.
        while !waiting.is_empty() {
            let (round, later) = first_of_each_key(waiting);
            waiting = later;
            replies.extend(self.commit_round(round));
        }
        for (reply, result) in replies {
            let _ = reply.send(result);
        }
    }

    fn commit_round(&mut self, round: Waiting) -> Vec<Reply> {
        let mut replies = Vec::with_capacity(round.len());
        let mut next = self.live_branches.next(self.log.head());
        let mut parts = vec![];
        let poisoned = self.shared.lock().poisoned.clone();
        for (branch, writes) in by_branch(round) {
            let shared = branch.as_ref().map_or(&*self.shared, |branch| &*branch.shared);
            let state = shared.lock();
            // the store itself counts with the log
            let revision = if branch.is_some() { state.head + 1 } else { next };
            let (changes, accepted) = accept(&state, writes, revision, poisoned.as_ref(), &mut replies);
            drop(state);
            let first = next;
            next += changes.len() as Revision;
            parts.push(Part { branch, first, changes, accepted });
        }
        parts.retain(|part| !part.changes.is_empty());
        if parts.is_empty() {
            return replies;
        }
        let entries: Vec<LogEntry<'_>> =
            self.live_branches.entries().chain(parts.iter().flat_map(Part::entries)).collect();
        let appended = self.log.append(&entries);
        drop(entries);
        note(&self.shared, appended.clone().err());
        if let Err(why) = appended.map_err(Failure::why) {
            let failed = || Err(Refused::Failed(StoreError::Unavailable(why.clone())));
            let accepted = parts.into_iter().flat_map(|part| part.accepted);
            replies.extend(accepted.map(|(reply, _)| (reply, failed())));
            return replies;
        }
        self.live_branches.appended();
        for Part { branch, changes, accepted, .. } in parts {
            let shared = branch.as_ref().map_or(&*self.shared, |branch| &*branch.shared);
            let mut state = shared.lock();
            changes.into_iter().for_each(|change| state.apply(change));
            let head = state.head;
            let unheld = state.held.hold(accepted);
            drop(state);
            shared.newest.send_replace(head);
            replies.extend(unheld.into_iter().map(|(reply, revision)| (reply, Ok(revision))));
        }
        replies
    }

    /// Forgets history up to `before`. If a checkpoint is worthwhile, another thread writes it.
    fn compact(&mut self, before: Revision, reply: oneshot::Sender<Result<(), StoreError>>) {
        // compactions happen regularly, so that a server without writes notices missing files too
        if let Err(why) = self.log.check_files() {
            note(&self.shared, Some(why));
        }
        let poisoned = self.shared.lock().poisoned.clone();
        if let Some(why) = poisoned {
            // the last writes may not be on disk, so a recovery may need all files
            return drop(reply.send(Err(StoreError::Unavailable(why))));
        }
        let before = self.forget(before);
        let files = self.log.files.clone();
        let guard = files.begin_checkpoint();
        let Some(guard) =
            guard.filter(|_| checkpoint::is_worthwhile(&files, before, self.log.options().checkpoint_bytes))
        else {
            return drop(reply.send(Ok(())));
        };
        // a checkpoint must not be ahead of the log after a crash
        let synced = self.append_branch_entries().and_then(|()| self.log.sync());
        note(&self.shared, synced.clone().err());
        if let Err(failure) = synced {
            return drop(reply.send(Err(StoreError::Unavailable(failure.why()))));
        }
        let images = self.live_branches.is_used.then(|| self.live_branches.images(&self.shared, self.log.head()));
        let shared = self.shared.clone();
        let work = move || {
            let superseded =
                shared.lock().superseded.iter().take_while(|(at, _)| *at <= before).copied().collect::<Vec<_>>();
            let gone: HashSet<Revision> = superseded.iter().map(|(_, record)| *record).collect();
            let is_shared = |key: &bytes::Bytes, value: &LiveValue| shared.lock().has(key, value, before);
            let branches = images.as_ref().map(|images| (images, &is_shared as _));
            let written = checkpoint::write(&guard.0, before, &gone, branches);
            if written.is_ok() {
                // the committer has only appended to the other end meanwhile
                shared.lock().superseded.drain(..superseded.len());
            }
            drop(guard);
            let _ = reply.send(written);
        };
        // if no thread can be started, a later compaction writes the checkpoint
        let _ = std::thread::Builder::new().name("checkpoint".to_owned()).spawn(work);
    }

    /// Forgets history, also what is beyond the bytes that are kept, and returns the revision of the log up to which it is not needed
    /// any more. Branches need none, and make the log grow while the store itself has few changes.
    fn forget(&self, before: Revision) -> Revision {
        let log = self.log.head();
        let before = before.max(self.log.files.beyond(self.log.options().history_bytes));
        let mut state = self.shared.lock();
        if !self.live_branches.is_used {
            return state.forget(before);
        }
        let before = state.forget(before.max(log.saturating_sub(limits::HISTORY_BESIDE_BRANCHES)));
        if before == state.head { log } else { before }
    }
}

/// Records whether the last append succeeded, for `/readyz`.
fn note(shared: &Shared, failed: Option<Failure>) {
    match failed {
        None => shared.lock().full = None,
        Some(Failure::Temporary(why)) => shared.lock().full = Some(why),
        Some(Failure::Fatal(why)) => shared.fail(why, Reopening::Helps),
        Some(Failure::Lost(why)) => shared.fail(why, Reopening::LosesObjects),
    }
}

/// The next writes that are committed together.
fn next_group(writes: &mut std::iter::Peekable<std::vec::IntoIter<Written>>) -> Waiting {
    let mut bytes = 0;
    let mut group = vec![];
    while let Some(next) =
        writes.next_if(|written| group.is_empty() || bytes + size(&written.write) <= limits::COMMIT_GROUP_BYTES_MAX)
    {
        bytes += size(&next.write);
        group.push(next);
    }
    group
}

fn size(write: &Write) -> usize {
    write.key.len() + write.value.as_ref().map_or(0, bytes::Bytes::len)
}

fn first_of_each_key(writes: Waiting) -> (Waiting, Waiting) {
    let mut seen = HashSet::new();
    writes.into_iter().partition(|written| seen.insert((address(written.branch.as_ref()), written.write.key.clone())))
}

/// A number that distinguishes the branches of a group.
fn address(branch: Option<&Arc<BranchState>>) -> usize {
    branch.map_or(0, |branch| Arc::as_ptr(branch).addr())
}

/// The writes to each branch, those to the store itself first.
fn by_branch(round: Waiting) -> Vec<(Option<Arc<BranchState>>, Waiting)> {
    if round.iter().all(|written| written.branch.is_none()) {
        return vec![(None, round)];
    }
    let mut parts: BTreeMap<usize, (Option<Arc<BranchState>>, Waiting)> = BTreeMap::new();
    for written in round {
        let part = parts.entry(address(written.branch.as_ref()));
        part.or_insert_with(|| (written.branch.clone(), vec![])).1.push(written);
    }
    parts.into_values().collect()
}

type Accepted = Vec<(state::Reply, Revision)>;

/// The changes of a round in one branch, or in the store itself.
struct Part {
    branch: Option<Arc<BranchState>>,
    /// The revision of the first change in the log.
    first: Revision,
    changes: Vec<Change>,
    accepted: Accepted,
}

impl Part {
    fn entries(&self) -> impl Iterator<Item = LogEntry<'_>> {
        let number: Option<Number> = self.branch.as_ref().map(|branch| branch.lineage.lock().number);
        self.changes.iter().zip(self.first..).map(move |(change, position)| match number {
            None => LogEntry::from(change),
            Some(number) => LogEntry::in_branch(number, position, change),
        })
    }
}

/// Rejects the writes whose precondition fails, and assigns revisions from `next` on to the others. `poisoned` is why the log takes
/// no writes.
fn accept(
    state: &State,
    round: Waiting,
    mut next: Revision,
    poisoned: Option<&String>,
    replies: &mut Vec<Reply>,
) -> (Vec<Change>, Accepted) {
    let (mut changes, mut accepted) = (Vec::with_capacity(round.len()), Vec::with_capacity(round.len()));
    for Written { write, reply, .. } in round {
        if let Some(why) = poisoned.or(state.poisoned.as_ref()) {
            replies.push((reply, Err(Refused::Failed(StoreError::Unavailable(why.clone())))));
        } else if let Err(found) = state.check(&write) {
            replies.push((reply, Err(Refused::Conflict(found))));
        } else {
            changes.push(Change { revision: next, key: write.key, value: write.value });
            accepted.push((reply, next));
            next += 1;
        }
    }
    (changes, accepted)
}

/// A receiver of jobs with a periodic tick.
struct Clock {
    runtime: Option<tokio::runtime::Runtime>,
    interval: Option<tokio::time::Interval>,
    rang: bool,
}

impl Clock {
    fn new() -> Clock {
        Clock { runtime: None, interval: None, rang: false }
    }

    /// Receives jobs, or none at a tick; false when every sender is dropped.
    fn receive(&mut self, jobs: &mut mpsc::Receiver<Job>, group: &mut Vec<Job>, every: Duration) -> bool {
        let make = || tokio::runtime::Builder::new_current_thread().enable_time().build();
        if self.runtime.is_none() {
            self.runtime = make().ok();
        }
        // without a runtime there is no timer, so every batch of jobs counts as a tick
        let Some(runtime) = &self.runtime else {
            self.rang = true;
            return jobs.blocking_recv_many(group, limits::COMMIT_GROUP_MAX) > 0;
        };
        runtime.block_on(async {
            let same = self.interval.take().filter(|interval| interval.period() == every);
            let mut interval = same.unwrap_or_else(|| tokio::time::interval(every));
            interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            let mut open = true;
            tokio::select! {
                biased;
                _ = interval.tick() => self.rang = true,
                count = jobs.recv_many(group, limits::COMMIT_GROUP_MAX) => open = count > 0,
            }
            self.interval = Some(interval);
            open
        })
    }

    fn rang(&mut self) -> bool {
        std::mem::take(&mut self.rang)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_groups_are_bounded_by_bytes() {
        let write = |bytes: usize| {
            let value = Some(bytes::Bytes::from(vec![0; bytes]));
            let write = Write { key: "k".into(), expected: crate::contract::Expected::Absent, value };
            Written { branch: None, write, reply: oneshot::channel().0 }
        };
        let sizes = [
            limits::COMMIT_GROUP_BYTES_MAX * 2,
            10,
            20,
            limits::COMMIT_GROUP_BYTES_MAX - 31,
            1,
            limits::COMMIT_GROUP_BYTES_MAX / 2,
            limits::COMMIT_GROUP_BYTES_MAX / 2,
        ];
        let mut writes = sizes.map(write).into_iter().collect::<Vec<_>>().into_iter().peekable();
        let mut groups = vec![];
        while writes.peek().is_some() {
            groups.push(next_group(&mut writes).len());
        }
        assert_eq!(groups, [1, 2, 2, 1, 1]);
    }
}
