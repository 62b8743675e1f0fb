//! Bounds of the embedded engine.

use std::time::Duration;

/// Writes that share one fdatasync. Ours: more would not lower the cost of a sync, and let the first wait longer.
pub const COMMIT_GROUP_MAX: usize = 1024;
/// Bytes of their frames, unless a single write is larger. Ours: what a disk writes within some milliseconds.
pub const COMMIT_GROUP_BYTES_MAX: usize = 16 << 20;
/// Interval of attempts to write to a disk without room. Ours.
pub const DISK_RETRY: Duration = Duration::from_millis(200);
/// Changes kept in memory for followers; older ones are read from the log. Ours: a follower that keeps up never reads
/// the disk.
pub const TAIL_CHANGES_MAX: usize = 8192;
/// Bytes of their values, if there is a log. Ours.
pub const TAIL_BYTES_MAX: usize = 32 << 20;
/// Changes read at a time to find what was live. Ours.
pub const ENTRIES_BATCH: usize = 1024;
/// Writes that may wait for the committer before callers have to. Ours: some groups.
pub const QUEUE_MAX: usize = 4096;
/// Bytes of the records of one frame of a checkpoint. Ours: a checkpoint is written beside the writers, in pieces that
/// a disk writes at once.
pub const CHECKPOINT_FRAME_BYTES: usize = 256 << 10;
/// Bytes of the records of one frame of the log, unless a single record is larger. Ours: a reader has a frame in
/// memory.
pub const FRAME_BYTES_MAX: usize = 4 << 20;
/// Bytes of a segment that are written anew at a time. Ours.
pub const REWRITE_BYTES: usize = 1 << 20;
/// Bytes read from a file at a time. Ours.
pub const READ_BYTES: usize = 1 << 20;
/// Changes handed to a follower at a time. Ours; etcd: 1000 events of a response.
pub const FOLLOWER_BATCH: usize = 1024;
/// Attempts to read a log that seems to be corrupt: a server may be writing what is read at this moment. Ours.
pub const READ_ATTEMPTS: usize = 10;
