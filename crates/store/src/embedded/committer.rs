//! The one thread that writes.

use tokio::sync::{mpsc, oneshot};

use super::log::Log;
use super::state::{Shared, State};
use crate::contract::{Change, Refused, Revision, StoreError, Write};

/// Writes that share one fdatasync.
const GROUP_MAX: usize = 1024;

/// Work for the committer, and where the answer goes.
pub enum Job {
    Write { write: Write, reply: oneshot::Sender<Result<Revision, Refused>> },
    Compact { before: Revision, reply: oneshot::Sender<Result<(), StoreError>> },
}

type Reply = (oneshot::Sender<Result<Revision, Refused>>, Result<Revision, Refused>);

/// Serves jobs until every sender is gone.
pub fn run(mut jobs: mpsc::Receiver<Job>, shared: &Shared, log: Option<&Log>) {
    let mut group = Vec::with_capacity(GROUP_MAX);
    while jobs.blocking_recv_many(&mut group, GROUP_MAX) > 0 {
        let mut writes = vec![];
        for job in group.drain(..) {
            match job {
                Job::Write { write, reply } => writes.push((write, reply)),
                Job::Compact { before, reply } => drop(reply.send(compact(shared, log, before))),
            }
        }
        if !writes.is_empty() {
            commit(shared, log, writes);
        }
    }
    if let Some(log) = log {
        log.close();
    }
}

fn commit(shared: &Shared, log: Option<&Log>, writes: Vec<(Write, oneshot::Sender<Result<Revision, Refused>>)>) {
    let mut replies: Vec<Reply> = Vec::with_capacity(writes.len());
    let mut waiting = writes;
    // Writes to one key in one group build on each other, so each round takes the first write of every key.
    while !waiting.is_empty() {
        let (round, later) = first_of_each_key(waiting);
        waiting = later;
        replies.extend(commit_round(shared, log, round));
    }
    for (reply, answer) in replies {
        let _ = reply.send(answer);
    }
}

type Waiting = Vec<(Write, oneshot::Sender<Result<Revision, Refused>>)>;

fn first_of_each_key(writes: Waiting) -> (Waiting, Waiting) {
    let mut seen = std::collections::HashSet::new();
    writes.into_iter().partition(|(write, _)| seen.insert(write.key.clone()))
}

fn commit_round(shared: &Shared, log: Option<&Log>, round: Waiting) -> Vec<Reply> {
    let mut replies = Vec::with_capacity(round.len());
    let (changes, accepted) = accept(&shared.lock(), round, &mut replies);
    if changes.is_empty() {
        return replies;
    }
    if let Some(log) = log
        && let Err(why) = log.append(&changes)
    {
        shared.lock().poisoned = Some(why.clone());
        let failed = || Err(Refused::Failed(StoreError::Unavailable(why.clone())));
        replies.extend(accepted.into_iter().map(|(reply, _)| (reply, failed())));
        return replies;
    }
    let mut state = shared.lock();
    changes.into_iter().for_each(|change| state.apply(change));
    let head = state.head;
    drop(state);
    shared.newest.send_replace(head);
    replies.extend(accepted.into_iter().map(|(reply, revision)| (reply, Ok(revision))));
    replies
}

type Accepted = Vec<(oneshot::Sender<Result<Revision, Refused>>, Revision)>;

/// Sorts out the writes that don't find their key as expected and gives the others their revisions.
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

fn compact(shared: &Shared, log: Option<&Log>, before: Revision) -> Result<(), StoreError> {
    let mut state = shared.lock();
    let before = before.min(state.head);
    if before <= state.compacted {
        return Ok(());
    }
    let count = state.superseded.iter().take_while(|(at, _)| *at <= before).count();
    let gone: Vec<Revision> = state.superseded.drain(..count).map(|(_, record)| record).collect();
    state.compacted = before;
    state.base = None;
    while state.tail.front().is_some_and(|change| change.revision <= before) {
        state.tail.pop_front();
    }
    state.tail_after = state.tail_after.max(before);
    drop(state);
    log.map_or(Ok(()), |log| log.forget(before, &gone))
}
