//! Lease.

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value};

/// Coordinated leader election is disabled: its fields are dropped.
pub fn prepare(object: &mut Value, _old: Option<&Value>) {
    for field in ["strategy", "preferredHolder"] {
        object.remove_at(&["spec", field]);
    }
}

pub fn validate(new: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let minimums = [
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ];
    let error = |(field, min, why): (&str, i64, &str)| {
        let value = new.at(&["spec", field]).filter(|v| v.as_int().is_some_and(|i| i < min))?;
        Some(FieldError::invalid(&FieldPath::new("spec").child(field), value, why))
    };
    minimums.into_iter().filter_map(error).collect()
}
