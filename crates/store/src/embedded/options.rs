//! How a store on disk is kept.

use std::time::Duration;

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When it is on disk.
    Sync,
    /// At once; it is on disk after this time. A crash of the machine loses what was written in it.
    Interval(Duration),
    /// At once; the operating system decides when it is on disk. A crash of the machine loses what it has not written.
    None,
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub durability: Durability,
    /// Bytes after which the log goes on in a new file.
    pub segment_bytes: u64,
    /// Bytes of old files that make a checkpoint worth its work, at least; also as many as the last checkpoint has.
    pub checkpoint_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { durability: Durability::Sync, segment_bytes: 16 << 20, checkpoint_bytes: 32 << 20 }
    }
}
