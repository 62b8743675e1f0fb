//! Why a data directory cannot be opened.

use std::path::{Path, PathBuf};

use crate::contract::StoreError;

/// The newest format of data directories that this version reads, which a directory gets with its first branch.
pub const FORMAT_VERSION: u32 = 3;

/// A task that fills a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filling {
    /// A restore, with the names of the files that it writes besides the store.
    Restore(Vec<String>),
    Import,
}

/// Why a data directory cannot be opened. The text is one line.
#[derive(Debug)]
pub enum OpenError {
    /// Another process has locked the directory; the text is its description of itself.
    Held(PathBuf, String),
    /// The directory was written by a newer version.
    NewerFormat(PathBuf, u32),
    /// The directory was written by a version whose format this one no longer reads.
    OlderFormat(PathBuf, u32),
    Corrupt(PathBuf, String),
    /// The file FORMAT is damaged or missing, which says nothing about the log.
    UnknownFormat(PathBuf, &'static str),
    Io(PathBuf, String),
    /// A backup can't be written or read.
    Backup(PathBuf, String),
    /// A task that fills the directory was interrupted.
    Unfinished(PathBuf, Filling),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Held(path, by) => {
                write!(f, "data directory {} is locked by another process; its file LOCK names {by}", path.display())
            }
            Self::NewerFormat(path, version) => write!(
                f,
                "data directory {} has format {version}, but this version of pintle understands up to {FORMAT_VERSION}; use a newer pintle",
                path.display()
            ),
            Self::OlderFormat(path, version) => write!(
                f,
                "data directory {} has format {version}, which this version of pintle no longer reads; export its objects with the version that wrote it and import them with this one",
                path.display()
            ),
            Self::Corrupt(path, why) => write!(
                f,
                "data directory {} is corrupt: {why}; restore a backup into a new directory with \"pintle store restore\", or export what can be read with \"pintle store check --salvage FILE\"",
                path.display()
            ),
            Self::UnknownFormat(path, why) => write!(
                f,
                "data directory {path}: the file FORMAT {why}; if no newer pintle has written the directory, put it back with \"echo 'pintle {FORMAT_VERSION}' > {path}/FORMAT\", and check the log with \"pintle store check --data-dir {path}\"",
                path = path.display()
            ),
            Self::Io(path, why) => write!(f, "data directory {}: {why}", path.display()),
            Self::Backup(path, why) => write!(f, "backup {}: {why}", path.display()),
            Self::Unfinished(path, Filling::Restore(_)) => write!(
                f,
                "data directory {}: a restore into it was not completed; run \"pintle store restore\" again, which first removes what is there",
                path.display()
            ),
            Self::Unfinished(path, Filling::Import) => write!(
                f,
                "data directory {}: an import into it was not completed; run \"pintle import --conflict skip\" with the same file again, or remove the file UNFINISHED to use the part that was imported",
                path.display()
            ),
        }
    }
}

impl std::error::Error for OpenError {}

impl OpenError {
    pub fn of(directory: &Path, error: StoreError) -> OpenError {
        match error {
            StoreError::Corrupt(why) => OpenError::Corrupt(directory.to_owned(), why),
            StoreError::Unavailable(why) => OpenError::Io(directory.to_owned(), why),
            StoreError::Compacted(_) | StoreError::Full(_) | StoreError::Unfinished(_) => {
                OpenError::Io(directory.to_owned(), error.to_string())
            }
        }
    }
}
