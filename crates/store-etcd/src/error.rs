//! Why a client of etcd cannot be made.

use std::path::PathBuf;

/// A text that is no cluster id.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a cluster id of up to 16 hexadecimal digits")]
pub struct IdError(pub String);

/// Why a client of etcd cannot be made. The text is one line.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    #[error("no etcd server is named")]
    NoServer,
    #[error("etcd server {url:?}: wanted http://HOST:PORT or https://HOST:PORT")]
    Scheme { url: String },
    #[error("etcd server {url:?}: {source}")]
    Server { url: String, source: tonic::transport::Error },
    #[error("cannot read {path}: {source}", path = .path.display())]
    ClusterFile { path: PathBuf, source: std::io::Error },
    /// The file that stores the id of the cluster has something else.
    #[error("{path}: {source}", path = .path.display())]
    StoredId { path: PathBuf, source: IdError },
}

impl From<OptionsError> for String {
    fn from(error: OptionsError) -> String {
        error.to_string()
    }
}
