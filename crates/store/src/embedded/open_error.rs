//! Why a data directory cannot be opened.

use std::io;
use std::path::{Path, PathBuf};

use crate::contract::StoreError;

/// The newest format of data directories that this version reads, which a directory gets with its first branch.
pub const FORMAT_VERSION: u32 = 3;

/// A task that fills a data directory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Filling {
    /// A restore, with the names of the files that it writes besides the store.
    #[error(
        "a restore into it was not completed; run \"pintle store restore\" again, which first removes what is there"
    )]
    Restore(Vec<String>),
    #[error(
        "an import into it was not completed; run \"pintle import --conflict skip\" with the same file again, or remove the file UNFINISHED to use the part that was imported"
    )]
    Import,
}

/// Why a data directory cannot be opened. The text is one line.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has locked the directory; the text is its description of itself.
    #[error("data directory {path} is locked by another process; its file LOCK names {1}", path = .0.display())]
    Held(PathBuf, String),
    /// The directory was written by a newer version.
    #[error("data directory {path} has format {1}, but this version of pintle understands up to {FORMAT_VERSION}; use a newer pintle", path = .0.display())]
    NewerFormat(PathBuf, u32),
    /// The directory was written by a version whose format this one no longer reads.
    #[error("data directory {path} has format {1}, which this version of pintle no longer reads; export its objects with the version that wrote it and import them with this one", path = .0.display())]
    OlderFormat(PathBuf, u32),
    #[error("data directory {path} is corrupt: {1}; restore a backup into a new directory with \"pintle store restore\", or export what can be read with \"pintle store check --salvage FILE\"", path = .0.display())]
    Corrupt(PathBuf, String),
    /// The file FORMAT is damaged or missing, which says nothing about the log.
    #[error("data directory {path}: the file FORMAT {1}; if no newer pintle has written the directory, put it back with \"echo 'pintle {FORMAT_VERSION}' > {path}/FORMAT\", and check the log with \"pintle store check --data-dir {path}\"", path = .0.display())]
    UnknownFormat(PathBuf, &'static str),
    #[error("data directory {path}: {1}", path = .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// The directory, or a file in it, is not one that may be used; the text says why.
    #[error("data directory {path}: {1}", path = .0.display())]
    Unusable(PathBuf, &'static str),
    #[error("data directory {path}: {1}", path = .0.display())]
    Store(PathBuf, #[source] StoreError),
    /// The log cannot be read or written; the text names the file.
    #[error("data directory {path}: {1}", path = .0.display())]
    Unavailable(PathBuf, String),
    /// A backup can't be written or read.
    #[error("backup {path}: {1}", path = .0.display())]
    Backup(PathBuf, String),
    /// A task that fills the directory was interrupted.
    #[error("data directory {path}: {1}", path = .0.display())]
    Unfinished(PathBuf, Filling),
}

impl OpenError {
    pub fn of(directory: &Path, error: StoreError) -> OpenError {
        match error {
            StoreError::Corrupt(why) => OpenError::Corrupt(directory.to_owned(), why),
            StoreError::Unavailable(why) => OpenError::Unavailable(directory.to_owned(), why),
            StoreError::Compacted(_) | StoreError::Full(_) | StoreError::Unfinished(_) => {
                OpenError::Store(directory.to_owned(), error)
            }
        }
    }
}
