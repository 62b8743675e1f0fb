//! Why managedFields cannot be read.

use machinery::value::JsonError;

/// Why `metadata.managedFields` cannot be read, in the words of kube-apiserver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ManagedFieldsError(pub String);

impl From<&str> for ManagedFieldsError {
    fn from(why: &str) -> ManagedFieldsError {
        ManagedFieldsError(why.to_owned())
    }
}

impl From<JsonError> for ManagedFieldsError {
    fn from(error: JsonError) -> ManagedFieldsError {
        ManagedFieldsError(error.problem.to_string())
    }
}
