//! The committer: the thread that makes all writes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::checkpoint;
use super::options::Durability;
use super::state::{self, Shared, State};
use super::writer::{Failure, Writer};
use crate::contract::{Change, Refused, Revision, StoreError, Write};
use crate::limits;

/// A job for the committer, and the channel for its result.
pub enum Job {
    Write {
        write: Write,
        reply: state::Reply,
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

/// A writer, and the reply to it.
type Reply = (state::Reply, Result<Revision, Refused>);
type Written = (Write, state::Reply);
type Waiting = Vec<Written>;

/// The committer, and the log that it writes.
pub struct Committer {
    pub shared: Arc<Shared>,
    pub log: Writer,
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
        let mut writes = vec![];
        for job in group.drain(..) {
            match job {
                Job::Write { write, reply } => writes.push((write, reply)),
                Job::Compact { before, reply } => self.compact(before, reply),
                Job::Sync { each, reply } => {
                    self.commit_all(std::mem::take(&mut writes));
                    let _ = reply.send(self.sync_each(each));
                }
            }
        }
        self.commit_all(writes);
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
        done.map_err(|(Failure::Temporary(why) | Failure::Fatal(why))| StoreError::Unavailable(why))
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
        let (changes, accepted) = accept(&self.shared.lock(), round, &mut replies);
        if changes.is_empty() {
            return replies;
        }
        let appended = self.log.append(&changes);
        note(&self.shared, appended.clone().err());
        if let Err(Failure::Temporary(why) | Failure::Fatal(why)) = appended {
            let failed = || Err(Refused::Failed(StoreError::Unavailable(why.clone())));
            replies.extend(accepted.into_iter().map(|(reply, _)| (reply, failed())));
            return replies;
        }
        let mut state = self.shared.lock();
        changes.into_iter().for_each(|change| state.apply(change));
        let head = state.head;
        let unheld = state.held.hold(accepted);
        drop(state);
        self.shared.newest.send_replace(head);
        replies.extend(unheld.into_iter().map(|(reply, revision)| (reply, Ok(revision))));
        replies
    }

    /// Forgets history up to `before`. If a checkpoint is worthwhile, another thread writes it.
    fn compact(&self, before: Revision, reply: oneshot::Sender<Result<(), StoreError>>) {
        // compactions happen regularly, so that a server without writes notices missing files too
        if let Err(Failure::Fatal(why)) = self.log.check_files() {
            self.shared.fail(why);
        }
        let poisoned = self.shared.lock().poisoned.clone();
        if let Some(why) = poisoned {
            // the last writes may not be on disk, so a recovery may need all files
            return drop(reply.send(Err(StoreError::Unavailable(why))));
        }
        let before = self.shared.lock().forget(before);
        let (files, shared) = (self.log.files.clone(), self.shared.clone());
        let turn = files.begin_checkpoint();
        let Some(turn) =
            turn.filter(|_| checkpoint::is_worthwhile(&files, before, self.log.options().checkpoint_bytes))
        else {
            return drop(reply.send(Ok(())));
        };
        let work = move || {
            let superseded =
                shared.lock().superseded.iter().take_while(|(at, _)| *at <= before).copied().collect::<Vec<_>>();
            let gone: HashSet<Revision> = superseded.iter().map(|(_, record)| *record).collect();
            let written = checkpoint::write(&turn.0, before, &gone);
            if written.is_ok() {
                // the committer has only appended to the other end meanwhile
                shared.lock().superseded.drain(..superseded.len());
            }
            drop(turn);
            let _ = reply.send(written);
        };
        // if no thread can be started, a later compaction writes the checkpoint
        let _ = std::thread::Builder::new().name("checkpoint".to_owned()).spawn(work);
    }
}

/// Records whether the last append succeeded, for `/readyz`.
fn note(shared: &Shared, failed: Option<Failure>) {
    match failed {
        None => shared.lock().full = None,
        Some(Failure::Temporary(why)) => shared.lock().full = Some(why),
        Some(Failure::Fatal(why)) => shared.fail(why),
    }
}

/// The next writes that are committed together.
fn next_group(writes: &mut std::iter::Peekable<std::vec::IntoIter<Written>>) -> Waiting {
    let mut bytes = 0;
    let mut group = vec![];
    while let Some(next) =
        writes.next_if(|(write, _)| group.is_empty() || bytes + size(write) <= limits::COMMIT_GROUP_BYTES_MAX)
    {
        bytes += size(&next.0);
        group.push(next);
    }
    group
}

fn size(write: &Write) -> usize {
    write.key.len() + write.value.as_ref().map_or(0, bytes::Bytes::len)
}

fn first_of_each_key(writes: Waiting) -> (Waiting, Waiting) {
    let mut seen = HashSet::new();
    writes.into_iter().partition(|(write, _)| seen.insert(write.key.clone()))
}

type Accepted = Vec<(state::Reply, Revision)>;

/// Rejects the writes whose precondition fails, and assigns revisions to the others.
fn accept(state: &State, round: Waiting, replies: &mut Vec<Reply>) -> (Vec<Change>, Accepted) {
    let (mut changes, mut accepted) = (Vec::with_capacity(round.len()), Vec::with_capacity(round.len()));
    let mut next = state.head + 1;
    for (write, reply) in round {
        if let Some(why) = &state.poisoned {
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
            (Write { key: "k".into(), expected: crate::contract::Expected::Absent, value }, oneshot::channel().0)
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
