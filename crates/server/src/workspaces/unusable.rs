//! Why a workspace cannot begin, be opened or be copied.

use std::error::Error;

use machinery::Status;
use store::{Revision, StoreError};

use super::definition::DEFAULT;
use crate::assembly::StartError;

/// Says in one line why a workspace cannot be used. Its source, if it has one, is for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("there is no workspace {0:?} to fork")]
    NoSource(String),
    #[error("workspace {0:?} is not ready")]
    NotReady(String),
    /// A durable fork of an ephemeral workspace was asked for.
    #[error("workspace {0:?} is ephemeral, so a fork of it has to be ephemeral too: set spec.ephemeral to true")]
    Ephemeral(String),
    /// An earlier revision is no longer in the history.
    #[error("workspace {name:?} does not keep what it held at resourceVersion {revision}")]
    NotKept { name: String, revision: Revision },
    #[error("workspace {name:?} is at resourceVersion {head}, not at {wanted}")]
    NotAt { name: String, head: Revision, wanted: Revision },
    #[error("the workspace {DEFAULT:?} began empty")]
    BeganEmpty,
    /// The store of its source is in no state to be forked.
    #[error("its store cannot be forked")]
    NotForked,
    #[error("the store of the workspace {DEFAULT:?} cannot be forked")]
    DefaultNotForked,
    /// Its status says so, or an earlier step did.
    #[error("{0}")]
    Recorded(String),
    #[error("{0}")]
    Other(&'static str),
    #[error("it cannot be copied: {0}")]
    NotCopied(#[source] StoreError),
    /// In words for users: the whole error may name files.
    #[error("{}", .0.summary())]
    Store(#[from] StoreError),
    #[error("{}", .0.message)]
    Refused(#[from] Status),
    #[error(transparent)]
    Start(#[from] StartError),
}

impl Unusable {
    /// Returns it as the log shows it, with causes that users do not see.
    pub fn with_causes(&self) -> &(dyn Error + 'static) {
        self
    }
}

impl From<&'static str> for Unusable {
    fn from(why: &'static str) -> Unusable {
        Unusable::Other(why)
    }
}

impl From<String> for Unusable {
    fn from(why: String) -> Unusable {
        Unusable::Recorded(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_see_no_paths() {
        let error = StoreError::Corrupt("/data/log/1 fails its checksum".to_owned());
        let why = Unusable::from(error.clone());
        assert_eq!(why.to_string(), "the store is corrupt");
        assert_eq!(why.with_causes().source().map(ToString::to_string), Some(error.to_string()));
    }
}
