//! The contract of the engines: a revisioned map of bytes with conditional writes, snapshots and followers.

pub mod content;
pub mod copying;
#[cfg(feature = "suite")]
pub mod suite;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use copying::Copying;

/// The number of a commit. It rises with each write, by one or more. Clients see it as resourceVersion.
pub type Revision = u64;

/// The future that each operation of an engine returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The precondition of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Nothing is stored under the key.
    Absent,
    /// The key was last written at this revision.
    At(Revision),
}

/// One write: a new value, or `None` to delete.
#[derive(Clone, Debug)]
pub struct Write {
    pub key: Bytes,
    pub expected: Expected,
    pub value: Option<Bytes>,
}

/// A live key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Bytes,
    pub value: Bytes,
    pub revision: Revision,
}

/// One committed write; a deletion has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub revision: Revision,
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// The live keys at one revision, sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub revision: Revision,
    pub entries: Vec<Entry>,
}

/// Why a write was not committed.
#[derive(Debug)]
pub enum Refused {
    /// The key is not in the expected state; it was last written at this revision, or is absent.
    Conflict(Option<Revision>),
    Failed(StoreError),
}

/// Why an engine cannot serve a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// History before this revision is gone.
    #[error("history up to revision {0} has been compacted")]
    Compacted(Revision),
    /// The store takes no more writes; the text names the failure.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The store has no space for more; the text is for users of the API, too.
    #[error("{0}")]
    Full(&'static str),
    /// Stored data fails its checksum or is missing; the text names the file.
    #[error("the store is corrupt: {0}")]
    Corrupt(String),
    /// An import into the store was not completed; the text names the remedy.
    #[error("{0}")]
    Unfinished(String),
}

impl StoreError {
    /// The failure as users of the API may see it: no paths, and no errors of the operating system.
    pub fn summary(&self) -> &'static str {
        match self {
            Self::Compacted(_) => "the history of the store has been compacted",
            Self::Unavailable(_) | Self::Unfinished(_) => "the store is unavailable",
            Self::Full(why) => why,
            Self::Corrupt(_) => "the store is corrupt",
        }
    }
}

/// Changes delivered to a follower together, by rising revision. They are complete up to `revision`. Changes of one
/// transaction have the same revision and are delivered together. A batch without changes only raises the revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    pub changes: Vec<Change>,
    pub revision: Revision,
}

/// A reader of changes: every change after some revision, in order, exactly once.
pub trait Changes: Send {
    /// The next batch; waits until there is one. After [`StoreError::Compacted`] this follower has missed changes.
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, StoreError>>;

    /// Makes commits return only when this reader has asked for the batch after theirs, so that a writer finds its change
    /// applied, and is woken once instead of twice. Of several readers, the latest one has this effect, until it is dropped. An
    /// engine that learns of changes from elsewhere may ignore this; then writers have to wait for the revision.
    fn precede_writers(&mut self) {}
}

/// A revisioned map of bytes.
pub trait Store: Send + Sync {
    /// Writes if the key is as expected; returns when the write is durable.
    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Revision, Refused>>;

    /// The live keys at the newest revision.
    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot, StoreError>>;

    /// The live keys before the newest `revisions` changes, or at the oldest revision that the engine still knows and from
    /// which [`Store::follow`] can continue. Callers use them to deliver later changes with the values that these replaced.
    /// Keys that have not changed since may be omitted.
    fn history(&self, revisions: u64) -> BoxFuture<'_, Result<Snapshot, StoreError>>;

    fn follow(&self, after: Revision) -> BoxFuture<'_, Result<Box<dyn Changes>, StoreError>>;

    /// The newest committed revision of all writers; every follower reaches it.
    fn head(&self) -> BoxFuture<'_, Result<Revision, StoreError>>;

    /// Compacts: forgets values that were overwritten or deleted at or before `before`.
    fn compact(&self, before: Revision) -> BoxFuture<'_, Result<(), StoreError>>;

    /// From now on until [`Store::sync`], commits may return before they are durable: for many writes that no client learns
    /// of before the last one, as at a start. An engine that need not sync each write ignores it.
    fn defer_sync(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }

    /// Makes all commits durable, and ends [`Store::defer_sync`].
    fn sync(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }

    /// A store in memory with the live keys of this one, whose revisions go on from the newest one, or from `after` if that is
    /// later. Neither sees later changes of the other; history is not copied, and values are shared. `None` if the engine does
    /// not keep its keys in memory.
    fn fork(&self, after: Revision) -> Option<Arc<dyn Store>> {
        let _ = after;
        None
    }

    /// The branches of this store, if the engine keeps any.
    fn branching(self: Arc<Self>) -> Option<Arc<dyn Branching>> {
        None
    }

    /// The copies of this store, if the engine makes any.
    fn copying(self: Arc<Self>) -> Option<Arc<dyn Copying>> {
        None
    }

    /// Bytes of the live values, if the engine counts them.
    fn live_bytes(&self) -> Option<u64> {
        None
    }

    /// Size on disk in bytes, if it is known.
    fn size(&self) -> Option<u64> {
        None
    }

    /// Whether other processes write to the same store. Such a store compacts itself.
    fn is_shared(&self) -> bool {
        false
    }

    /// The fatal error after which the store has to be opened again, if there was one.
    fn ended(&self) -> Option<String> {
        None
    }

    /// The error after which writes fail until the store is opened again, which makes them possible; reads and followers work.
    fn wants_reopening(&self) -> Option<String> {
        None
    }

    /// How long the disk has worked on the write that is in flight, if there is one.
    fn in_flight(&self) -> Option<Duration> {
        None
    }

    /// Sets who learns how long commits take, if the engine has a disk.
    fn observe(&self, observer: Arc<dyn StoreObserver>) {
        drop(observer);
    }

    /// Reads what is on the disk again, and returns the places that are damaged. Waits for the disk, and for `pace`, which is called
    /// with the number of bytes that have been read and ends the work by returning false.
    fn scrub(&self, pace: &mut dyn FnMut(u64) -> bool) -> Vec<StoreError> {
        let _ = pace;
        vec![]
    }

    /// The error with which writes fail at present, if they do; reads and followers work.
    fn health(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Work of the disk that writers wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskWork {
    /// Writing a group of changes, with its sync.
    Commit,
    /// One fdatasync.
    Sync,
}

/// Learns how long the disk of a store takes.
pub trait StoreObserver: Send + Sync {
    fn took(&self, work: DiskWork, time: Duration);
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchInfo {
    pub id: Bytes,
    /// The note of its owner from when it began or was reset.
    pub label: Bytes,
}

/// The source of a branch. If a revision is given, it must be the newest one of the source.
#[derive(Clone, Copy, Debug)]
pub enum BranchSource<'a> {
    Nothing,
    /// The store itself.
    Store(Option<Revision>),
    /// The branch with this id.
    Branch(&'a [u8], Option<Revision>),
    /// The beginning of the branch with this id, at its newest revision.
    Origin(&'a [u8]),
}

/// Returns what a source held at an earlier revision. Fails with a one-line message.
pub type Earlier = Box<dyn FnOnce() -> Result<Snapshot, String> + Send>;

/// Branches: stores with keys and revisions of their own, which are as durable as the store that they belong to. Forks, resets and
/// deletions are made in the order of the calls, and before all writes that are committed later.
///
/// A fork or a deletion may be lost in a crash, with all later writes of the store and of all branches: then the source is as it
/// was, and the same fork made again has the same keys. A fork of an earlier revision cannot be made again, so it has begun only once
/// it is as durable as a write.
pub trait Branching: Send + Sync {
    fn branches(&self) -> Vec<BranchInfo>;

    fn branch(&self, id: &[u8]) -> Option<Arc<dyn Store>>;

    /// A store in memory with what a branch began with, at the newest revision of the branch.
    fn origin(&self, id: &[u8]) -> Option<Arc<dyn Store>>;

    /// Begins a branch, in place of one with the same id. `None` if there is no such source.
    fn begin(&self, id: &[u8], source: BranchSource<'_>, label: &[u8]) -> Option<Arc<dyn Store>>;

    /// Begins a branch with what another one, or the store itself, held earlier. It is written in the background, while others are
    /// written to; until then, what needs it waits. It may fail as writes do.
    fn begin_earlier(&self, id: &[u8], source: Option<&[u8]>, earlier: Earlier, label: &[u8])
    -> Option<Arc<dyn Store>>;

    /// Resets a branch to what it began with, at a later revision than all before. Stores that were returned for the branch
    /// before take no more writes. `None` if there is no such branch.
    fn reset(&self, id: &[u8], label: &[u8]) -> Option<Arc<dyn Store>>;

    /// Replaces values of what a branch began with, each of the same key and revision. Returns when that is durable.
    fn rewrite_origin(&self, id: &[u8], values: Vec<Entry>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// All that the store and its branches hold, at one moment.
    fn content(&self) -> BoxFuture<'_, Result<content::Content, StoreError>>;

    /// Deletes a branch.
    fn end(&self, id: &[u8]);
}
