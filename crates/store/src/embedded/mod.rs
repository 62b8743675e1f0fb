//! The embedded engine: one committer thread, a log of changes, all live values in memory.
//!
//! The committer takes every write that waits, checks it against the index, appends the accepted ones to the log in
//! one batch with one fdatasync, makes them visible and acknowledges them. Without a directory the same engine keeps
//! everything in memory. After a failed append nothing is acknowledged any more.

mod committer;
mod follower;
mod log;
mod state;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::contract::{BoxFuture, Changes, Refused, Revision, Snapshot, Store, StoreError, Write};
use committer::Job;
use log::Log;
use state::Shared;

/// The format of the data directory that this version writes.
pub const FORMAT_VERSION: u32 = 1;

/// Writes that may wait for the committer before callers have to.
const QUEUE_MAX: usize = 4096;

/// Why a data directory can't be opened. The text is one clear line.
#[derive(Debug)]
pub enum OpenError {
    /// Another process works on the directory; the text is what it wrote about itself.
    Held(PathBuf, String),
    /// The directory was written by a newer version.
    NewerFormat(PathBuf, u32),
    Damaged(PathBuf, String),
    Io(PathBuf, String),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Held(path, by) => write!(f, "data directory {} is in use by {by}", path.display()),
            Self::NewerFormat(path, version) => write!(
                f,
                "data directory {} has format {version}, but this version of pintle understands up to {FORMAT_VERSION}; use a newer pintle",
                path.display()
            ),
            Self::Damaged(path, why) => write!(f, "data directory {} is damaged: {why}", path.display()),
            Self::Io(path, why) => write!(f, "data directory {}: {why}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {}

/// The embedded store.
pub struct Embedded {
    shared: Arc<Shared>,
    jobs: mpsc::Sender<Job>,
    log: Option<Arc<Log>>,
}

impl Embedded {
    /// A store that lives and dies with the process.
    pub fn in_memory() -> Embedded {
        Self::start(Shared::default(), None)
    }

    /// Opens or creates the store in `directory` and takes its lock, which says `holder` to others.
    pub fn open(directory: &Path, holder: &str) -> Result<Embedded, OpenError> {
        let (log, shared) = Log::open(directory, holder)?;
        Ok(Self::start(shared, Some(log)))
    }

    fn start(shared: Shared, log: Option<Log>) -> Embedded {
        let shared = Arc::new(shared);
        let log = log.map(Arc::new);
        let (jobs, receiver) = mpsc::channel(QUEUE_MAX);
        let (for_thread, log_for_thread) = (shared.clone(), log.clone());
        std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || committer::run(receiver, &for_thread, log_for_thread.as_deref()))
            .expect("the operating system gives us a thread at start");
        Embedded { shared, jobs, log }
    }

    async fn submit<T>(&self, job: impl FnOnce(oneshot::Sender<T>) -> Job) -> Result<T, StoreError> {
        let gone = || StoreError::Unavailable("the committer has stopped".to_owned());
        let (reply, answer) = oneshot::channel();
        self.jobs.send(job(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }
}

impl Store for Embedded {
    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Revision, Refused>> {
        Box::pin(async move { self.submit(|reply| Job::Write { write, reply }).await.map_err(Refused::Failed)? })
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async move { Ok(self.shared.snapshot()) })
    }

    fn follow(&self, after: Revision) -> BoxFuture<'_, Result<Box<dyn Changes>, StoreError>> {
        let follower = follower::Follower::new(self.shared.clone(), self.log.clone(), after);
        Box::pin(async move { follower.map(|f| Box::new(f) as Box<dyn Changes>) })
    }

    fn head(&self) -> BoxFuture<'_, Result<Revision, StoreError>> {
        Box::pin(async move { Ok(self.shared.head()) })
    }

    fn compact(&self, before: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.submit(|reply| Job::Compact { before, reply }).await? })
    }
}
