//! JSON Patch, JSON Merge Patch and Strategic Merge Patch as kube-apiserver understands them.
//!
//! Each kind has a `decode_patch` for the bytes of a request, which reports what strict field validation finds, and an
//! `apply` from value to value. Invariants: a patch that fails changes nothing; nothing is resolved or validated
//! here, the result may be any JSON value.

mod error;
pub mod gotext;
pub mod json_patch;
pub mod merge_patch;
mod raw;
pub mod strategic_merge;

pub use error::{PatchError, PatchPart, StrictError};
pub use raw::{Raw, RawKind};

use crate::value::{Value, decode_strict};

/// How unknown and duplicate fields of a patch are treated (`fieldValidation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// `Ignore`: they are dropped silently, and so are some wrong types.
    Ignored,
    /// `Warn` and `Strict`: they are reported.
    Reported,
}

/// A decoded JSON Merge Patch or Strategic Merge Patch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectPatch {
    /// The patch.
    pub value: Value,
    /// Duplicate fields.
    pub strict_errors: Vec<StrictError>,
}

/// A document that must be a JSON object or null.
fn decode_object(bytes: &[u8]) -> Result<ObjectPatch, PatchError> {
    let decoded = decode_strict(bytes)?;
    match decoded.value {
        value @ (Value::Object(_) | Value::Null) => {
            let duplicates = decoded.duplicates.into_iter().map(|path| StrictError { path, is_duplicate: true });
            Ok(ObjectPatch { value, strict_errors: duplicates.collect() })
        }
        other => Err(PatchError::WrongType { found: other.json_type(), part: PatchPart::Document }),
    }
}
