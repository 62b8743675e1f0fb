//! A store in memory. A commit is a change of a map, made by the caller itself: there is no thread and no log.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::follower::Follower;
use super::state::{Shared, State};
use crate::contract::content::{LiveValue, Map, bytes_of};
use crate::contract::{BoxFuture, Change, Changes, Entry, Refused, Revision, Snapshot, Store, StoreError, Write};

/// A store in memory, empty or forked from another one.
#[derive(Default)]
pub struct Memory {
    shared: Arc<Shared>,
}

impl Memory {
    pub(super) fn of(state: State) -> Memory {
        Memory { shared: Arc::new(Shared::new(state)) }
    }

    /// A store with the keys of a snapshot, at its revision and without history.
    pub fn with(snapshot: Snapshot) -> Memory {
        let live = |entry: Entry| (entry.key, LiveValue { revision: entry.revision, value: entry.value });
        let map: Map = snapshot.entries.into_iter().map(live).collect();
        let bytes = bytes_of(&map);
        Memory::of(State::of(map, bytes, snapshot.revision))
    }

    /// Commits a write. The channel is that of the reply, if a reader precedes writers.
    fn write(&self, write: Write) -> Result<(Revision, oneshot::Receiver<Result<Revision, Refused>>), Refused> {
        let mut state = self.shared.lock();
        state.check(&write).map_err(Refused::Conflict)?;
        let revision = state.head + 1;
        state.apply(Change { revision, key: write.key, value: write.value });
        let (reply, replied) = oneshot::channel();
        let unheld = state.held.hold(vec![(reply, revision)]);
        drop(state);
        self.shared.newest.send_replace(revision);
        unheld.into_iter().for_each(|(reply, revision)| drop(reply.send(Ok(revision))));
        Ok((revision, replied))
    }
}

impl Store for Memory {
    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Revision, Refused>> {
        Box::pin(async move {
            let (revision, replied) = self.write(write)?;
            replied.await.unwrap_or(Ok(revision))
        })
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async move { Ok(self.shared.snapshot()) })
    }

    /// There is no history: all keys are as they are now.
    fn history(&self, _revisions: u64) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async move { Ok(Snapshot { revision: self.shared.head(), entries: vec![] }) })
    }

    fn follow(&self, after: Revision) -> BoxFuture<'_, Result<Box<dyn Changes>, StoreError>> {
        let follower = Follower::new(self.shared.clone(), None, after);
        Box::pin(async move { follower.map(|f| Box::new(f) as Box<dyn Changes>) })
    }

    fn head(&self) -> BoxFuture<'_, Result<Revision, StoreError>> {
        Box::pin(async move { Ok(self.shared.head()) })
    }

    fn compact(&self, before: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        self.shared.lock().forget(before);
        Box::pin(async { Ok(()) })
    }

    fn live_bytes(&self) -> Option<u64> {
        Some(self.shared.lock().bytes)
    }

    fn fork(&self, after: Revision) -> Option<Arc<dyn Store>> {
        Some(Arc::new(Memory::of(self.shared.lock().fork(after))))
    }
}
