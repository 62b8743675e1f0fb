//! PersistentVolumes and PersistentVolumeClaims.

use machinery::Value;

use super::checks::text;

/// The phase of a new volume or claim.
const PENDING: &str = "Pending";

/// A new object waits to be bound.
pub fn prepare_pending(object: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        object.set_at(&["status", "phase"], Value::from(PENDING));
    }
}

/// Completes the deprecated and the current form of a data source by each other.
pub fn default_claim(claim: &mut Value) {
    let Some(spec) = claim.get_mut("spec") else { return };
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) => spec.set_at(&["dataSourceRef"], source),
        (None, Some(reference)) if text(&reference, "namespace").is_empty() => {
            spec.set_at(&["dataSource"], reference);
        }
        _ => {}
    }
}
