//! Why nothing can be checked, in one line each.

use std::io;

use machinery::Status;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Source(#[from] sources::Error),
    #[error(transparent)]
    Cluster(#[from] sources::ClusterError),
    #[error("cannot start: {0}")]
    NotStarted(#[source] io::Error),
    #[error("cannot write the report: {0}")]
    Report(#[source] io::Error),
    #[error("a check has panicked: {0}")]
    Panicked(#[from] tokio::task::JoinError),
    #[error("{}", .0.message)]
    Refused(#[from] Status),
    /// The engine refuses an object of the inputs.
    #[error("{kind} {name}: {}", status.message)]
    Object { kind: String, name: String, status: Status },
    #[error("{0}")]
    Text(String),
}

impl From<String> for Error {
    fn from(text: String) -> Error {
        Error::Text(text)
    }
}

impl From<&str> for Error {
    fn from(text: &str) -> Error {
        Error::Text(text.to_owned())
    }
}
