//! JSON Patch, JSON Merge Patch and Strategic Merge Patch as the reference server understands them (api-machinery 8.3).
//!
//! Each kind has a `decode` for the bytes of a request, which tells what strict field validation would complain about,
//! and an `apply` from value to value. Invariants: a patch that fails changes nothing; nothing is resolved or validated
//! here, the result may be any JSON value.

pub mod gotext;
pub mod json_patch;
pub mod merge_patch;
mod raw;
pub mod strategic_merge;

pub use raw::{Kind as RawKind, Raw};

use crate::value::{Value, decode_strict};

/// What becomes of unknown and duplicate members of a patch document (`fieldValidation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// `Ignore`: they are dropped silently, and so are some wrong types.
    Ignored,
    /// `Warn` and `Strict`: they are told.
    Told,
}

/// A document that must be a JSON object or null, and its duplicate fields.
fn decode_object(bytes: &[u8]) -> Result<(Value, Vec<String>), String> {
    let decoded = decode_strict(bytes).map_err(|e| e.message)?;
    match decoded.value {
        value @ (Value::Object(_) | Value::Null) => {
            let told = decoded.duplicates.iter().map(|path| format!("duplicate field \"{path}\"")).collect();
            Ok((value, told))
        }
        other => {
            let kind = other.json_type();
            Err(format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"))
        }
    }
}
