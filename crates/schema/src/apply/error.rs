//! Why a configuration cannot be applied, and why managedFields cannot be read.

use machinery::value::JsonError;
use machinery::{Status, Text};
use std::fmt;

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
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManagedFieldsError {
    EntryNotAnObject,
    /// A field of an entry is not a string.
    NotAString {
        field: &'static str,
    },
    /// The operation is neither `Apply` nor `Update`.
    UnknownOperation,
    EmptyVersion,
    MissingFieldsType {
        index: usize,
    },
    UnknownFieldsType {
        index: usize,
        found: Text,
    },
    InvalidTime,
    /// The value of a key of `fieldsV1` is neither an object nor null.
    FieldsNotAnObject,
    /// A key of `fieldsV1` is too short to have a prefix.
    KeyTooShort,
    /// A key of `fieldsV1` does not begin with a letter and a colon.
    MissingColon {
        key: String,
    },
    /// The text behind `k:` is not a JSON object.
    KeyNotAnObject {
        text: String,
    },
    /// The text behind `i:` is not an index.
    InvalidIndex {
        text: String,
    },
    /// The text behind `k:` or `v:` is not JSON.
    Json(JsonError),
}

impl From<JsonError> for ManagedFieldsError {
    fn from(error: JsonError) -> ManagedFieldsError {
        ManagedFieldsError::Json(error)
    }
}

impl fmt::Display for ManagedFieldsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ManagedFieldsError::EntryNotAnObject => f.write_str("an entry is not an object"),
            ManagedFieldsError::NotAString { field } => write!(f, "{field} is not a string"),
            ManagedFieldsError::UnknownOperation => f.write_str("the operation is neither Apply nor Update"),
            ManagedFieldsError::EmptyVersion => f.write_str("apiVersion is empty"),
            ManagedFieldsError::MissingFieldsType { index } => write!(f, "entry {index} has no fieldsType"),
            ManagedFieldsError::UnknownFieldsType { index, found } => {
                write!(f, "entry {index} has the unknown fieldsType {found:?}")
            }
            ManagedFieldsError::InvalidTime => f.write_str("time is not in RFC 3339"),
            ManagedFieldsError::FieldsNotAnObject => f.write_str("fieldsV1 holds something other than objects"),
            ManagedFieldsError::KeyTooShort => f.write_str("a key of fieldsV1 is too short"),
            ManagedFieldsError::MissingColon { key } => write!(f, "the key {key:?} has no colon"),
            ManagedFieldsError::KeyNotAnObject { text } => write!(f, "{text:?} is not a JSON object"),
            ManagedFieldsError::InvalidIndex { text } => write!(f, "{text:?} is not an index"),
            ManagedFieldsError::Json(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ManagedFieldsError {}
