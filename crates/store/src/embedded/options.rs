//! Options of a store on disk.

use std::time::Duration;

use crate::limits;

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After `fdatasync`.
    Sync,
    /// At once; the write is synced within this interval. A crash of the machine loses the writes of the last interval.
    Interval(Duration),
    /// At once; the operating system decides when to sync. A crash of the machine loses unsynced writes.
    None,
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub durability: Durability,
    /// Size after which the log continues in a new file.
    pub segment_bytes: u64,
    /// A checkpoint is written if it frees at least this many bytes, and at least the size of the last checkpoint.
    pub checkpoint_bytes: u64,
    /// Bytes of the log that are kept for history when it is compacted, rounded up to whole segments.
    pub history_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            durability: Durability::Sync,
            segment_bytes: 16 << 20,
            checkpoint_bytes: 32 << 20,
            history_bytes: limits::HISTORY_BYTES,
        }
    }
}
