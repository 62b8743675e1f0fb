//! Lease.

use machinery::Value;

use super::at::At;

/// Coordinated leader election is disabled: its fields are dropped.
pub fn prepare(object: &mut Value, _old: Option<&Value>) {
    for field in ["strategy", "preferredHolder"] {
        object.remove_at(&["spec", field]);
    }
}

pub fn validate(at: At) {
    let spec = at.field("spec");
    if spec.int("leaseDurationSeconds").is_some_and(|seconds| seconds < 1) {
        spec.field("leaseDurationSeconds").invalid("must be greater than 0");
    }
    if spec.int("leaseTransitions").is_some_and(|count| count < 0) {
        spec.field("leaseTransitions").invalid("must be greater than or equal to 0");
    }
}
