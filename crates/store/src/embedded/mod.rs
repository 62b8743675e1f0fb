//! The embedded engines. The durable one is a committer thread, a log of changes and all live values in memory
//! (docs/src/design/store.md); the other one, `memory`, has the last of the three only.
//!
//! The committer takes all waiting writes, checks them against the index, appends the accepted ones to the log with one
//! fdatasync, makes them visible and acknowledges them.
//! After a failed fdatasync, no further write is acknowledged.
//!
//! Modules, from the disk up: `disk`, `frame` (bytes of a file), `entry` (what is appended), `files` (the list of files), `mark`, `timing`, `writer`,
//! `entries` and `images` (the bytes of a checkpoint, and of its branches), `checkpoint`, `open_error`, `format` and `unfinished` (the directory); `index`, `state`,
//! `follower`, `memory`, `past` (changes of branches before the start), `scan`, `replay`, `recovery`; `offline` (check, backup, restore),
//! `salvage_branches`, `salvage`; `branch`, `drafts` (forks of earlier revisions), `live_branches` (those of the committer), `committer`,
//! `branch_store`.

use crate::limits;

mod backup;
mod branch;
mod branch_store;
mod checkpoint;
mod committer;
mod disk;
mod drafts;
mod entries;
mod entry;
mod files;
mod follower;
mod format;
mod frame;
mod images;
mod index;
mod live_branches;
mod mark;
mod memory;
mod offline;
mod open_error;
mod options;
mod past;
mod recovery;
mod replay;
mod salvage;
mod salvage_branches;
mod scan;
mod scrub;
mod state;
#[cfg(test)]
mod tests;
mod timing;
mod unfinished;
mod writer;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::contract::content::{Content, Image};
use crate::contract::{
    BoxFuture, BranchInfo, BranchSource, Branching, Changes, Earlier, Entry, Refused, Revision, Snapshot, Store,
    StoreError, StoreObserver, Write,
};
use branch::{BranchState, Branches, Origin};
use branch_store::Branch;
use committer::{Committer, Job, submit};
use disk::{Directory, Disk};
use drafts::{Draft, Drafts};
use files::Files;
use live_branches::LiveBranches;
use recovery::Found;
use state::{Reopening, Shared};
use writer::Writer;

pub use backup::{BackupFile, RESTORE_BUMP, Restored, check_backup, restore, write_backup};
pub use format::{create_directory, is_initialized};
pub use memory::Memory;
pub use offline::{Summary, check, content, snapshot};
pub use open_error::{FORMAT_VERSION, Filling, OpenError};
pub use options::{Durability, Options};
pub use salvage::{Salvaged, salvage, salvage_backup};
pub use salvage_branches::SalvagedBranch;

pub struct Embedded {
    shared: Arc<Shared>,
    branches: Arc<Branches>,
    drafts: Drafts,
    jobs: mpsc::Sender<Job>,
    files: Arc<Files>,
    committer: Option<std::thread::JoinHandle<()>>,
}

/// The state of a directory before an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeforeImport {
    Nothing,
    Store,
    /// The rest of an interrupted import, which this one may continue.
    Unfinished,
}

/// Lets the directory of [`Embedded::open_for_import`] be opened: everything is imported, or the store that was there has not changed.
pub fn finish_import(directory: &Path) -> Result<(), OpenError> {
    unfinished::clear(directory)
}

/// Waits until all writes are done and the lock is released.
impl Drop for Embedded {
    fn drop(&mut self) {
        // the committer ends when its last sender is dropped
        self.jobs = mpsc::channel(1).0;
        if let Some(committer) = self.committer.take() {
            let _ = committer.join();
        }
    }
}

impl Embedded {
    /// Opens or creates the store in `directory` and locks it. `holder` describes this process in the error of others.
    pub fn open(directory: &Path, holder: &str, options: Options) -> Result<Embedded, OpenError> {
        format::create_directory(directory)?;
        let lock = format::take_lock(directory, holder)?;
        unfinished::refuse(directory)?;
        Self::open_locked(directory, lock, options)
    }

    /// Opens the store as [`Embedded::open`] does, for an import: until [`finish_import`], opening it otherwise fails. Returns also
    /// what was there before.
    pub fn open_for_import(
        directory: &Path,
        holder: &str,
        options: Options,
    ) -> Result<(Embedded, BeforeImport), OpenError> {
        format::create_directory(directory)?;
        let lock = format::take_lock(directory, holder)?;
        let before = match unfinished::read(directory)? {
            None if is_initialized(directory)? => BeforeImport::Store,
            None => BeforeImport::Nothing,
            Some(Filling::Import) => BeforeImport::Unfinished,
            Some(other) => return Err(OpenError::Unfinished(directory.to_owned(), other)),
        };
        unfinished::mark(directory, &Filling::Import)?;
        match Self::open_locked(directory, lock, options) {
            Ok(store) => Ok((store, before)),
            Err(error) => {
                // a store that cannot be opened has not changed
                if before == BeforeImport::Store {
                    unfinished::clear(directory)?;
                }
                Err(error)
            }
        }
    }

    fn open_locked(directory: &Path, lock: File, options: Options) -> Result<Embedded, OpenError> {
        format::prepare(directory)?;
        let locks = vec![lock, format::lock_log(directory)?];
        let disk = Arc::new(Directory::new(format::log_directory(directory)));
        disk.sync().map_err(|error| OpenError::Io(directory.to_owned(), error))?;
        let recovered = Self::recover(disk, options, locks).map_err(|error| OpenError::of(directory, error))?;
        Ok(Self::start(recovered, Some(directory.to_owned())))
    }

    /// Recovers a log and prepares it for writes.
    fn recover(disk: Arc<dyn Disk>, options: Options, locks: Vec<File>) -> Result<Recovered, StoreError> {
        let found = recovery::read(&*disk)?;
        if found.cut > 0 {
            let (file, revision) = (found.listed.segments.last().map(|last| last.name.as_str()), found.head);
            tracing::warn!(file, bytes = found.cut, revision, "the incomplete write at the end of the log is cut off");
        }
        let repaired = recovery::repair(&*disk, &found);
        let file = repaired.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let Found { listed, replay, head, .. } = found;
        let files = Arc::new(Files::new(disk, listed, locks));
        let is_used = replay.has_branched;
        let mut past = replay.past.by_branch();
        let recovered = |image: Image| {
            let past = past.remove(&image.number);
            BranchState::recovered(image, past)
        };
        let branches: Vec<_> = replay.branches.into_values().map(recovered).collect();
        let live_branches = LiveBranches::new(branches.iter().cloned(), is_used);
        let branches = Branches::new(branches.into_iter());
        let shared = Shared::new(replay.state);
        let writer = Writer::new(files, options, file, head, shared.timing.clone());
        Ok(Recovered { shared, branches, live_branches, writer })
    }

    fn start(recovered: Recovered, directory: Option<PathBuf>) -> Embedded {
        let Recovered { shared, branches, live_branches, writer: log } = recovered;
        let (shared, branches) = (Arc::new(shared), Arc::new(branches));
        let files = log.files.clone();
        let (jobs, receiver) = mpsc::channel(limits::QUEUE_MAX);
        let committer = Committer { shared: shared.clone(), branches: branches.clone(), live_branches, log, directory };
        let thread = std::thread::Builder::new().name("store".to_owned()).spawn(move || committer.run(receiver));
        let thread = thread.expect("the operating system gives us a thread at start");
        Embedded { shared, branches, drafts: Drafts::default(), jobs, files, committer: Some(thread) }
    }

    fn store_of(&self, branch: Arc<BranchState>) -> Arc<dyn Store> {
        Arc::new(Branch::new(branch, self.jobs.downgrade(), self.shared.clone()))
    }

    fn wake_committer(&self) {
        // if its queue is full, it is awake
        let _ = self.jobs.try_send(Job::BranchOperations);
    }

    fn make(&self, draft: Draft) {
        let jobs = self.jobs.downgrade();
        let wake = move || {
            if let Some(jobs) = jobs.upgrade() {
                // if its queue is full, it is awake
                let _ = jobs.try_send(Job::BranchOperations);
            }
        };
        self.drafts.make(draft, &self.branches, wake);
    }

    fn read_history(&self, revisions: u64) -> Result<Snapshot, StoreError> {
        let files = &self.files;
        // a checkpoint that is being written will remove the oldest files
        let compacted = || StoreError::Compacted(self.shared.lock().compacted);
        let _guard = files.begin_checkpoint().ok_or_else(compacted)?;
        let checkpoint = files.lock().checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.revision);
        let revision = {
            let state = self.shared.lock();
            state.head.saturating_sub(revisions).max(state.compacted).max(checkpoint).min(state.head)
        };
        let has_changed =
            |entry: &Entry| self.shared.lock().index.get(&entry.key).is_none_or(|live| live.revision != entry.revision);
        let mut entries = files.entries_at(revision, has_changed)?;
        entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Ok(Snapshot { revision, entries })
    }

    async fn submit<T>(&self, job: impl FnOnce(oneshot::Sender<T>) -> Job) -> Result<T, StoreError> {
        submit(Some(self.jobs.clone()), job).await
    }
}

/// A log that is ready for writes.
struct Recovered {
    shared: Shared,
    branches: Branches,
    live_branches: LiveBranches,
    writer: Writer,
}

impl Branching for Embedded {
    fn branches(&self) -> Vec<BranchInfo> {
        self.branches.list()
    }

    fn branch(&self, id: &[u8]) -> Option<Arc<dyn Store>> {
        Some(self.store_of(self.branches.get(id)?))
    }

    fn origin(&self, id: &[u8]) -> Option<Arc<dyn Store>> {
        Some(Arc::new(Memory::of(self.branches.get(id)?.origin()?)))
    }

    fn begin(&self, id: &[u8], source: BranchSource<'_>, label: &[u8]) -> Option<Arc<dyn Store>> {
        let branch = self.branches.fork(id, &source, label)?;
        self.wake_committer();
        Some(self.store_of(branch))
    }

    fn begin_earlier(
        &self,
        id: &[u8],
        source: Option<&[u8]>,
        earlier: Earlier,
        label: &[u8],
    ) -> Option<Arc<dyn Store>> {
        let source = source.map_or(Some(Origin::Root), |id| self.branches.get(id).map(Origin::Branch))?;
        let (branch, replaced) = self.branches.expect(id, label);
        let draft = Draft::Fork { branch: branch.clone(), replaced, source, earlier };
        self.make(draft);
        Some(self.store_of(branch))
    }

    fn reset(&self, id: &[u8], label: &[u8]) -> Option<Arc<dyn Store>> {
        let branch = self.branches.reset(id, label)?;
        self.wake_committer();
        Some(self.store_of(branch))
    }

    fn rewrite_origin(&self, id: &[u8], values: Vec<Entry>) -> BoxFuture<'_, Result<(), StoreError>> {
        let branch = self.branches.get(id);
        Box::pin(async move {
            let branch = branch.ok_or_else(|| StoreError::Unavailable("there is no such branch".to_owned()))?;
            let (reply, done) = oneshot::channel();
            self.make(Draft::Origin { branch, values, reply });
            let done = done.await.map_err(|_| StoreError::Unavailable("the committer has stopped".to_owned()))?;
            done.map_err(StoreError::Unavailable)
        })
    }

    fn content(&self) -> BoxFuture<'_, Result<Content, StoreError>> {
        Box::pin(async move {
            let (snapshot, branches) = self.submit(|reply| Job::Content { reply }).await?;
            Ok(Content { snapshot, branches })
        })
    }

    fn end(&self, id: &[u8]) {
        self.branches.remove(id);
        self.wake_committer();
    }
}

impl Store for Embedded {
    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Revision, Refused>> {
        Box::pin(async move {
            self.submit(|reply| Job::Write { branch: None, write, reply }).await.map_err(Refused::Failed)?
        })
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async move { Ok(self.shared.snapshot()) })
    }

    fn history(&self, revisions: u64) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async move { self.read_history(revisions) })
    }

    fn follow(&self, after: Revision) -> BoxFuture<'_, Result<Box<dyn Changes>, StoreError>> {
        let follower = follower::Follower::new(self.shared.clone(), Some(self.files.clone()), after);
        Box::pin(async move { follower.map(|f| Box::new(f) as Box<dyn Changes>) })
    }

    fn head(&self) -> BoxFuture<'_, Result<Revision, StoreError>> {
        Box::pin(async move { Ok(self.shared.head()) })
    }

    fn compact(&self, before: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.submit(|reply| Job::Compact { before, reply }).await? })
    }

    fn defer_sync(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.submit(|reply| Job::Sync { each: false, reply }).await? })
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.submit(|reply| Job::Sync { each: true, reply }).await? })
    }

    fn live_bytes(&self) -> Option<u64> {
        Some(self.shared.lock().bytes)
    }

    fn fork(&self, after: Revision) -> Option<Arc<dyn Store>> {
        Some(Arc::new(Memory::of(self.shared.lock().fork(after))))
    }

    fn branching(self: Arc<Self>) -> Option<Arc<dyn Branching>> {
        Some(self)
    }

    fn size(&self) -> Option<u64> {
        Some(self.files.size())
    }

    fn ended(&self) -> Option<String> {
        let is_over = self.committer.as_ref().is_none_or(std::thread::JoinHandle::is_finished);
        is_over.then(|| "the committer has stopped".to_owned())
    }

    fn wants_reopening(&self) -> Option<String> {
        let state = self.shared.lock();
        state.poisoned.clone().filter(|_| state.reopening == Some(Reopening::Helps))
    }

    fn in_flight(&self) -> Option<Duration> {
        self.shared.timing.in_flight()
    }

    fn observe(&self, observer: Arc<dyn StoreObserver>) {
        self.shared.timing.observe(observer);
    }

    fn scrub(&self, pace: &mut dyn FnMut(u64) -> bool) -> Vec<StoreError> {
        scrub::scrub(&self.files, pace)
    }

    fn health(&self) -> Result<(), StoreError> {
        if let Some(why) = self.ended() {
            return Err(StoreError::Unavailable(why));
        }
        if let Some(name) = self.files.removed() {
            self.shared.fail(format!("{name} has been removed"), Reopening::LosesObjects);
        }
        self.shared.health()
    }
}
