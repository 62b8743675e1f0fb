//! Errors of patch decoders, and the findings of strict field validation.

use crate::value::JsonError;
use std::fmt;

/// Why bytes are not a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatchError {
    /// The bytes are not JSON.
    Json(JsonError),
    /// A part of the patch has the wrong JSON type.
    WrongType {
        /// The type that was found, as Go names it.
        found: &'static str,
        /// The part of the patch.
        part: PatchPart,
    },
    /// The patch has more operations than [`super::json_patch::OPERATIONS_MAX`].
    TooManyOperations {
        /// The number of operations.
        count: usize,
    },
}

/// A part of a patch that must be of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchPart {
    /// A merge patch, which is an object.
    Document,
    /// A JSON patch, which is an array.
    Operations,
    /// An item of a JSON patch, which is an object.
    Operation,
    /// A field of an operation, which is a string.
    OperationField(&'static str),
}

/// A field that strict field validation reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrictError {
    /// The position of the field in the patch: `spec.x`, or `[0].value.x` in a JSON patch.
    pub path: String,
    /// Whether the field is repeated; otherwise it is unknown.
    pub is_duplicate: bool,
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatchError::Json(error) => error.fmt(f),
            PatchError::WrongType { found, part } => match part {
                PatchPart::Document => write!(f, "a patch must be an object, not of type {found}"),
                PatchPart::Operations => write!(f, "a JSON patch must be an array, not of type {found}"),
                PatchPart::Operation => write!(f, "an operation must be an object, not of type {found}"),
                PatchPart::OperationField(name) => write!(f, "{name} must be a string, not of type {found}"),
            },
            PatchError::TooManyOperations { count } => write!(f, "{count} operations are too many"),
        }
    }
}

impl std::error::Error for PatchError {}

impl From<JsonError> for PatchError {
    fn from(error: JsonError) -> PatchError {
        PatchError::Json(error)
    }
}
