//! Bounds of the embedded engine.

use std::time::Duration;

/// Writes that share one fdatasync: a larger group would not make the sync cheaper, and its first write would wait
/// longer.
pub const COMMIT_GROUP_MAX: usize = 1024;
/// Bytes of the writes that share one fdatasync, unless a single write is larger: a disk writes as much within some
/// milliseconds.
pub const COMMIT_GROUP_BYTES_MAX: usize = 16 << 20;
/// Revisions of the log after which a store forgets its history while its branches are written to, so that the log stays
/// bounded: as many as a server keeps.
pub const HISTORY_BESIDE_BRANCHES: u64 = 50_000;
/// Bytes of the log that a compaction keeps for history, unless a flag says otherwise: as many as a server keeps of events.
pub const HISTORY_BYTES: u64 = 64 << 20;
/// Interval between attempts to write to a full disk.
pub const DISK_RETRY: Duration = Duration::from_millis(200);
/// Time after which a write that is in flight counts as a failure of the disk: healthy ones sync within milliseconds, and busy network
/// volumes within seconds.
pub const COMMIT_STALLED: Duration = Duration::from_secs(15);
/// Changes kept in memory for followers; older ones are read from the log: a follower that keeps up never reads the
/// disk.
pub const TAIL_CHANGES_MAX: usize = 8192;
/// Changes of all branches that a recovery keeps: those that one store keeps after a start (`HISTORY_BESIDE_BRANCHES`), so that its
/// memory does not grow with the number of branches.
pub const PAST_CHANGES_MAX: usize = 50_000;
/// Bytes of their values.
pub const PAST_BYTES_MAX: usize = 32 << 20;
/// Bytes of the values that are kept in memory for followers, if there is a log.
pub const TAIL_BYTES_MAX: usize = 32 << 20;
/// Bytes of changes in memory that a store without a log, or a branch, keeps after its reader has applied them.
pub const TAIL_APPLIED_BYTES_MAX: usize = 1 << 20;
/// Changes that are read at a time to find the live keys of an earlier revision.
pub const ENTRIES_BATCH: usize = 1024;
/// Capacity of the committer's queue; callers wait when it is full: a few groups of writes.
pub const QUEUE_MAX: usize = 4096;
/// Bytes of the records of one frame of a checkpoint, unless a single record is larger: what a flipped bit costs. The headers of
/// the frames are a part in 700.
pub const CHECKPOINT_FRAME_BYTES: usize = 16 << 10;
/// Bytes of a checkpoint that are written at a time: the committer writes at the same time.
pub const CHECKPOINT_WRITE_BYTES: usize = 256 << 10;
/// Bytes of the differences that a fork of an earlier revision writes.
pub const FORK_DIFFERENCE_BYTES_MAX: usize = 1 << 30;
/// Bytes of them that are written at a time, unless a single one is larger: other writes wait no longer than for a few of their own.
pub const FORK_PART_BYTES: usize = 256 << 10;
/// Forks of earlier revisions that wait for those before them.
pub const DRAFTS_MAX: usize = 1024;
/// Bytes of the records of one frame of the log, unless a single record is larger: a reader keeps a whole frame in
/// memory.
pub const FRAME_BYTES_MAX: usize = 4 << 20;
/// Bytes of a segment that a recovery rewrites at a time.
pub const REWRITE_BYTES: usize = 1 << 20;
/// Bytes read from a file at a time.
pub const READ_BYTES: usize = 1 << 20;
/// Parts of a checkpoint, of [`READ_BYTES`], that each thread of a recovery may be ahead of the one that takes them.
pub const PARTS_AHEAD: usize = 1;
/// Changes per batch of a follower; etcd: 1000 events per response.
pub const FOLLOWER_BATCH: usize = 1024;
/// Attempts to read a log that seems to be corrupt: a server may be writing the same bytes.
pub const READ_ATTEMPTS: usize = 10;
/// Losses of a damaged log that are described.
pub const LOSSES_MAX: usize = 1000;
/// Keys that the description of one loss names.
pub const LOST_KEYS_MAX: usize = 20;
