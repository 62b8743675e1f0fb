//! Bounds of the watch cache. Where kube-apiserver has the same bound, it is the same value.

use std::time::Duration;

/// Positions of paginated lists for which the number of remaining objects is cached.
pub const LIST_POSITIONS: usize = 256;
/// Past states of a resource that are kept for the next pages of lists.
pub const LIST_ROOTS: usize = 4;
/// Indexes of labels that a collection has. With short values and paths, an index takes about 140 bytes for each
/// object.
pub const INDEXES_MAX: usize = 4;
/// Once [`INDEXES_MAX`] is reached, a new index may replace another one that more than this many lists in a row have
/// not used. So many lists take much longer than building an index.
pub const INDEX_IDLE_LISTS: usize = 100;
/// Events kept for watchers of a resource; kube-apiserver's watch cache grows to this many.
pub const RING_EVENTS_MAX: usize = 102_400;
/// Bytes of the events that all APIs of the process keep, unless a flag says otherwise: a few thousand large objects, and some
/// hundred thousand small ones.
pub const HISTORY_BYTES: u64 = 64 << 20;
/// Age up to which events are kept, unless a flag says otherwise; etcd keeps five to ten minutes.
pub const HISTORY_DURATION: Duration = Duration::from_secs(600);
/// Bytes of events that an API may always keep, however many APIs there are.
pub const HISTORY_SHARE_BYTES_MIN: u64 = 1 << 20;
/// Events that an API keeps even when they are large: watchers must be able to take each of a burst.
pub const HISTORY_EVENTS_MIN: u64 = 16;
/// Bytes of an event besides its object.
pub const EVENT_BYTES: u64 = 256;
/// Events per batch of a watcher.
pub const EVENTS_PER_BATCH: usize = 256;
/// Wakers without a watcher are swept when there are more than this.
pub const WAKERS_SWEEP: usize = 1_024;
/// Changes of the store that stay readable: watches resume and lists page within them.
pub const HISTORY_REVISIONS: u64 = 50_000;
/// Pause before changes of the store are read again after an error; doubled up to [`FEED_RETRY_MAX`].
pub const FEED_RETRY: Duration = Duration::from_millis(100);
pub const FEED_RETRY_MAX: Duration = Duration::from_secs(5);
/// Time that a read waits for changes that other servers have made.
pub const CATCH_UP: Duration = Duration::from_secs(10);
/// Attempts to read history that is being compacted.
pub const HISTORY_ATTEMPTS: usize = 3;
/// Items per thread, at least, when a store is decoded on all cores: fewer take less time than the start of a thread.
pub const ITEMS_PER_CORE_MIN: usize = 64;
/// Encoded forms of an object that are kept for other readers, usually one for each API version that is read.
pub const RENDITIONS_MAX: usize = 4;
/// Interval of the status calls of a KMS plugin; kube-apiserver's.
pub const KMS_STATUS: Duration = Duration::from_secs(60);
/// Interval of the status calls of a KMS plugin after a failed one; kube-apiserver's.
pub const KMS_RETRY: Duration = Duration::from_secs(10);
/// Time for which a seed is used after the last good status; kube-apiserver's.
pub const KMS_SEED_LIFETIME: Duration = Duration::from_secs(180);
/// Time within which a plugin must be healthy at the start; kube-apiserver's.
pub const KMS_START: Duration = Duration::from_secs(10);
/// Interval of the status calls at the start.
pub const KMS_START_RETRY: Duration = Duration::from_millis(200);
/// Calls of a plugin that may wait in its queue.
pub const KMS_CALLS_MAX: usize = 16;
/// Decrypted sources that are kept, one for each start of a server and each key.
pub const KMS_SOURCES_MAX: usize = 4_096;
/// Bytes of an encrypted source; kube-apiserver's.
pub const KMS_SOURCE_BYTES_MAX: usize = 1 << 10;
/// Bytes of the id of a key; kube-apiserver's.
pub const KMS_KEY_ID_BYTES_MAX: usize = 1 << 10;
/// Bytes of all annotations of a value; kube-apiserver's.
pub const KMS_ANNOTATIONS_BYTES_MAX: usize = 32 << 10;
/// A commit that takes longer than this is logged: a sync takes milliseconds.
pub const SLOW_COMMIT: Duration = Duration::from_secs(1);
