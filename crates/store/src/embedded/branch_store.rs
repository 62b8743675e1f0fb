//! A branch as a store: it reads from memory, and the committer makes its writes.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::branch::BranchState;
use super::committer::{Job, submit};
use super::follower::Follower;
use super::memory::Memory;
use super::past::PastFollower;
use super::state::Shared;
use crate::contract::{BoxFuture, Changes, Refused, Revision, Snapshot, Store, StoreError, Write};

pub struct Branch {
    state: Arc<BranchState>,
    jobs: mpsc::WeakSender<Job>,
    /// The store itself, whose log fails for all.
    root: Arc<Shared>,
}

impl Branch {
    pub fn new(state: Arc<BranchState>, jobs: mpsc::WeakSender<Job>, root: Arc<Shared>) -> Branch {
        Branch { state, jobs, root }
    }

    /// Waits until the branch has begun.
    async fn begun(&self) -> Result<&Arc<Shared>, StoreError> {
        let shared = &self.state.shared;
        // callers that cannot wait poll once; Tokio's primitives would make a busy task wait even for what is there
        if self.state.is_waiting() {
            let mut newest = shared.newest.subscribe();
            // the sender lives as long as the branch
            let _ = newest.wait_for(|_| !self.state.is_waiting()).await;
        }
        if self.state.lineage.lock().number == 0 {
            return Err(StoreError::Unavailable(self.state.why_ended()));
        }
        Ok(shared)
    }
}

impl Store for Branch {
    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Revision, Refused>> {
        Box::pin(async move {
            let job = |reply| Job::Write { branch: Some(self.state.clone()), write, reply };
            submit(self.jobs.upgrade(), job).await.map_err(Refused::Failed)?
        })
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async move { Ok(self.begun().await?.snapshot()) })
    }

    /// The history is what a recovery has kept: without that, all keys are as they are now.
    fn history(&self, _revisions: u64) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async move {
            let shared = self.begun().await?;
            // later changes have to follow without a gap
            let past = self.state.past().filter(|past| shared.lock().tail_after <= past.until());
            let now = || Snapshot { revision: shared.head(), entries: vec![] };
            Ok(past.map_or_else(now, |past| past.snapshot()))
        })
    }

    fn follow(&self, after: Revision) -> BoxFuture<'_, Result<Box<dyn Changes>, StoreError>> {
        Box::pin(async move {
            let shared = self.begun().await?.clone();
            if let Some(past) = self.state.past().filter(|past| past.reaches(after)) {
                let then = Follower::new(shared, None, past.until())?;
                return Ok(Box::new(PastFollower::new(past, after, then)) as Box<dyn Changes>);
            }
            Ok(Box::new(Follower::new(shared, None, after)?) as Box<dyn Changes>)
        })
    }

    fn head(&self) -> BoxFuture<'_, Result<Revision, StoreError>> {
        Box::pin(async move { Ok(self.begun().await?.head()) })
    }

    /// Forgets the newest changes; the log is compacted with the store itself.
    fn compact(&self, before: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.begun().await?.lock().forget(before);
            self.state.forget(before);
            Ok(())
        })
    }

    fn fork(&self, after: Revision) -> Option<Arc<dyn Store>> {
        self.state.has_begun().then(|| Arc::new(Memory::of(self.state.shared.lock().fork(after))) as Arc<dyn Store>)
    }

    fn live_bytes(&self) -> Option<u64> {
        Some(self.state.shared.lock().bytes)
    }

    fn ended(&self) -> Option<String> {
        self.jobs.upgrade().is_none().then(|| "the committer has stopped".to_owned())
    }

    fn health(&self) -> Result<(), StoreError> {
        self.root.health()
    }
}
