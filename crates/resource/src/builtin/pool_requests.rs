//! ResourcePoolStatusRequests: one-time requests for the state of pools of devices.

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value};

use super::checks;

/// The status is written once.
pub fn validate_status(object: &Value, old: &Value, release: Release) -> Vec<FieldError> {
    let path = FieldPath::new("status");
    let set = |object: &Value| object.get("status").filter(|status| !status.is_null()).cloned();
    match (set(object), set(old)) {
        (given, Some(before)) if given.as_ref() != Some(&before) => {
            vec![FieldError::invalid(&path, &given.unwrap_or_default(), "field is immutable")]
        }
        (Some(status), None) => checks::condition_errors(&status, &path, release),
        _ => vec![],
    }
}
