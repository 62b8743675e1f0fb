//! Revisioned bytes: the [`Store`] contract, and the engines for a directory of this machine and for memory.
//!
//! Invariants: the crate knows neither JSON nor Kubernetes. A write is durable, then visible, then acknowledged, in that
//! order, unless a caller defers the sync of writes that no client learns of. Revisions rise with each write and are never used
//! twice. Start with [`contract`].

pub mod contract;
mod embedded;
mod limits;

pub use contract::content::Content;
pub use contract::copying::{CopySource, Copying};
pub use contract::{
    Batch, BoxFuture, BranchInfo, BranchSource, Branching, Change, Changes, DiskWork, Earlier, Entry, Expected,
    Refused, Revision, Snapshot, Store, StoreError, StoreObserver, Write,
};
pub use embedded::{
    BackupFile, BeforeImport, Durability, Embedded, FORMAT_VERSION, Filling, Memory, OpenError, Options, RESTORE_BUMP,
    Restored, Salvaged, SalvagedBranch, Summary, check, check_backup, content, create_directory, finish_import,
    is_initialized, restore, salvage, salvage_backup, snapshot, write_backup,
};
