//! Readers of changes: from the tail in memory, or from the log for changes that are older.

use std::sync::Arc;

use tokio::sync::watch;

use super::files::Files;
use super::state::{self, Shared};
use crate::contract::{Batch, BoxFuture, Change, Changes, Revision, StoreError};
use crate::limits;

pub struct Follower {
    shared: Arc<Shared>,
    files: Option<Arc<Files>>,
    newest: watch::Receiver<Revision>,
    /// The last change that was handed out.
    after: Revision,
    /// Its number, if writers wait for this reader.
    precedes: Option<u64>,
}

/// Writers do not wait for a reader that is gone.
impl Drop for Follower {
    fn drop(&mut self) {
        if let Some(reader) = self.precedes {
            let released = self.shared.lock().held.end(reader);
            state::reply_all(released);
        }
    }
}

impl Follower {
    pub fn new(shared: Arc<Shared>, files: Option<Arc<Files>>, after: Revision) -> Result<Follower, StoreError> {
        let compacted = shared.lock().compacted;
        if after < compacted {
            return Err(StoreError::Compacted(compacted));
        }
        let newest = shared.newest.subscribe();
        Ok(Follower { shared, files, newest, after, precedes: None })
    }

    /// Replies to the writers of the changes that were handed out, which have been applied.
    fn release(&self) {
        if let Some(reader) = self.precedes {
            let mut state = self.shared.lock();
            let released = state.held.release(reader, self.after);
            state.drop_applied(self.after);
            drop(state);
            state::reply_all(released);
        }
    }

    /// The changes after `after`; empty if there are none.
    fn read(&self) -> Result<Vec<Change>, StoreError> {
        let state = self.shared.lock();
        if self.after >= state.head {
            return Ok(vec![]);
        }
        if self.after >= state.tail_after {
            let start = state.tail.partition_point(|change| change.revision <= self.after);
            return Ok(state.tail.range(start..).take(limits::FOLLOWER_BATCH).cloned().collect());
        }
        let compacted = state.compacted;
        drop(state);
        match &self.files {
            Some(files) if self.after >= compacted => {
                let mut changes = files.read_after(self.after, limits::FOLLOWER_BATCH)?;
                let state = self.shared.lock();
                // files may have been replaced meanwhile
                if self.after < state.compacted {
                    return Err(StoreError::Compacted(state.compacted));
                }
                state.share(&mut changes);
                Ok(changes)
            }
            _ => Err(StoreError::Compacted(compacted)),
        }
    }
}

impl Changes for Follower {
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, StoreError>> {
        Box::pin(async move {
            self.release();
            loop {
                self.newest.borrow_and_update();
                let changes = self.read()?;
                if let Some(last) = changes.last() {
                    self.after = last.revision;
                    return Ok(Batch { changes, revision: self.after });
                }
                if self.newest.changed().await.is_err() {
                    return Err(StoreError::Unavailable("the store has been closed".to_owned()));
                }
            }
        })
    }

    fn precede_writers(&mut self) {
        self.precedes = Some(self.shared.lock().held.begin());
    }
}
