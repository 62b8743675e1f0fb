//! Why a configuration cannot be applied, and why managedFields cannot be read.

use machinery::value::JsonError;
use machinery::{Status, Text};

/// Why a configuration cannot be applied.
#[derive(Debug)]
pub enum ApplyError {
    /// The response to the client.
    Status(Status),
    /// The managedFields of the live object cannot be read.
    ManagedFields(ManagedFieldsError),
}

impl From<Status> for ApplyError {
    fn from(status: Status) -> ApplyError {
        ApplyError::Status(status)
    }
}

/// Why `metadata.managedFields` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManagedFieldsError {
    #[error("an entry is not an object")]
    EntryNotAnObject,
    /// A field of an entry is not a string.
    #[error("{field} is not a string")]
    NotAString { field: &'static str },
    /// The operation is neither `Apply` nor `Update`.
    #[error("the operation is neither Apply nor Update")]
    UnknownOperation,
    #[error("apiVersion is empty")]
    EmptyVersion,
    #[error("entry {index} has no fieldsType")]
    MissingFieldsType { index: usize },
    #[error("entry {index} has the unknown fieldsType {found:?}")]
    UnknownFieldsType { index: usize, found: Text },
    #[error("time is not in RFC 3339")]
    InvalidTime,
    /// The value of a key of `fieldsV1` is neither an object nor null.
    #[error("fieldsV1 holds something other than objects")]
    FieldsNotAnObject,
    /// A key of `fieldsV1` is too short to have a prefix.
    #[error("a key of fieldsV1 is too short")]
    KeyTooShort,
    /// A key of `fieldsV1` does not begin with a letter and a colon.
    #[error("the key {key:?} has no colon")]
    MissingColon { key: String },
    /// The text behind `k:` is not a JSON object.
    #[error("{text:?} is not a JSON object")]
    KeyNotAnObject { text: String },
    /// The text behind `i:` is not an index.
    #[error("{text:?} is not an index")]
    InvalidIndex { text: String },
    /// The text behind `k:` or `v:` is not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
}
