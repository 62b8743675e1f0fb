//! Lease.

use machinery::Value;

use resource::Resource;

pub fn is_leases(resource: &Resource) -> bool {
    resource.group == "coordination.k8s.io" && resource.plural == "leases"
}

/// Drops the fields of coordinated leader election, which is disabled.
pub fn prepare(object: &mut Value, _old: Option<&Value>) {
    for field in ["strategy", "preferredHolder"] {
        object.remove_at(&["spec", field]);
    }
}
