//! Errors of patch decoders, and the findings of strict field validation.

use crate::value::JsonError;

/// Why bytes are not a patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The bytes are not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A part of the patch has the wrong JSON type.
    #[error("{part}, not of type {found}")]
    WrongType {
        /// The type that was found, as Go names it.
        found: &'static str,
        /// The part of the patch.
        part: PatchPart,
    },
    /// The patch has more operations than [`super::json_patch::OPERATIONS_MAX`].
    #[error("{count} operations are too many")]
    TooManyOperations {
        /// The number of operations.
        count: usize,
    },
}

/// A part of a patch that must be of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchPart {
    /// A merge patch, which is an object.
    #[error("a patch must be an object")]
    Document,
    /// A JSON patch, which is an array.
    #[error("a JSON patch must be an array")]
    Operations,
    /// An item of a JSON patch, which is an object.
    #[error("an operation must be an object")]
    Operation,
    /// A field of an operation, which is a string.
    #[error("{0} must be a string")]
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
