//! Lease.

use machinery::Value;

use resource::Resource;
use resource::builtin::at::At;

pub fn is_leases(resource: &Resource) -> bool {
    resource.group == "coordination.k8s.io" && resource.plural == "leases"
}

/// Drops the fields of coordinated leader election, which is disabled.
pub fn prepare(object: &mut Value, _old: Option<&Value>) {
    for field in ["strategy", "preferredHolder"] {
        object.remove_at(&["spec", field]);
    }
}

pub fn validate(at: At) {
    let spec = at.field("spec");
    spec.field("leaseDurationSeconds").at_least(1, "must be greater than 0");
    spec.field("leaseTransitions").at_least(0, "must be greater than or equal to 0");
}
