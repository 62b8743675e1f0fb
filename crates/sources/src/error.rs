//! Why a source cannot be read or written, in one line each.

use std::io;
use std::path::PathBuf;

use machinery::cbor::CborError;
use machinery::protobuf::ProtobufError;
use machinery::value::JsonError;

use crate::limits::DOCUMENT_BYTES_MAX;

/// Why a source cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {name}: {source}")]
    Unreadable { name: String, source: io::Error },
    #[error("cannot read {name}: a document has more than {DOCUMENT_BYTES_MAX} bytes")]
    LongDocument { name: String },
    #[error("{name}: the {place} has no manifests (*.yaml, *.yml, *.json)")]
    NoManifests { name: String, place: &'static str },
    #[error("{pattern}: no file matches")]
    NoMatch { pattern: String },
    #[error("{name}: no objects are found in it{}", problem.as_ref().map(|line| format!(" ({line})")).unwrap_or_default())]
    NoObjects { name: String, problem: Option<String> },
    /// A source has no objects, and its only line names it.
    #[error("{0}")]
    Problem(String),
    #[error("{name}:{line}: {why}")]
    Undecodable { name: String, line: usize, why: String },
    #[error("{path}: a capture into it was not completed; remove it, and capture again", path = .path.display())]
    Unfinished { path: PathBuf },
    #[error("{path} exists: name a new or empty directory, or a file that ends in .tar.gz", path = .path.display())]
    Exists { path: PathBuf },
    #[error("cannot write {path}: {source}", path = .path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("cannot {act} a temporary file: {source}")]
    Temporary { act: &'static str, source: io::Error },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// Why a running cluster cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error(transparent)]
    Client(#[from] client::Error),
    /// The server has refused to return an object or a list.
    #[error("GET {path}: {source}")]
    Get { path: String, source: client::Error },
    #[error("cannot start: {0}")]
    NotStarted(#[source] io::Error),
    #[error("a thread has panicked")]
    Panicked,
}

/// Why the files of a commit cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git: {reference:?} is not a commit")]
    NotACommit { reference: String },
    #[error("git: there is no commit {reference:?}")]
    NoCommit { reference: String },
    #[error("git: commit {reference:?} has no manifests in {path:?}")]
    NoManifests { reference: String, path: String },
    #[error("cannot run git: {0}")]
    NotRun(#[source] io::Error),
    /// Git has failed; the first line that it has printed, if any.
    #[error("{}", line.as_ref().map(|line| format!("git: {line}")).unwrap_or_default())]
    Failed { line: Option<String> },
    #[error("git: cat-file: {0}")]
    CatFile(#[source] io::Error),
    #[error("git: cat-file has ended early")]
    EndedEarly,
    /// A line of `git cat-file` that is not the head of an object.
    #[error("git: {line}")]
    NoHead { line: String },
}

/// Why a value of a snapshot of etcd is no object that can be read.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    #[error("it is larger than etcd allows")]
    TooLarge,
    #[error("it is encrypted ({provider})")]
    Encrypted { provider: String },
    #[error(transparent)]
    Protobuf(#[from] ProtobufError),
    #[error(transparent)]
    Cbor(#[from] CborError),
    #[error(transparent)]
    Json(#[from] JsonError),
}

impl From<client::Error> for Error {
    fn from(error: client::Error) -> Error {
        Error::Cluster(error.into())
    }
}

impl From<client::AccessError> for Error {
    fn from(error: client::AccessError) -> Error {
        client::Error::from(error).into()
    }
}
