//! PersistentVolumes and PersistentVolumeClaims.

use base::clock;
use machinery::Value;

use super::checks::text;

/// The phase of a new volume or claim.
const PENDING: &str = "Pending";

/// A new volume waits to be bound, since it was created.
pub fn prepare_volume(volume: &mut Value, old: Option<&Value>) {
    prepare_pending(volume, old);
    if old.is_none() {
        volume.set_at(&["status", "lastPhaseTransitionTime"], Value::from(clock::now_rfc3339()));
    }
}

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
