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

/// What the admission plugin StorageObjectInUseProtection adds to a new claim.
pub fn admit_claim(claim: &mut Value, old: Option<&Value>) {
    protect(claim, old, "kubernetes.io/pvc-protection");
}

/// What it adds to a new volume.
pub fn admit_volume(volume: &mut Value, old: Option<&Value>) {
    protect(volume, old, "kubernetes.io/pv-protection");
}

/// What it adds to a new class of attributes.
pub fn admit_attributes_class(class: &mut Value, old: Option<&Value>) {
    protect(class, old, "kubernetes.io/vac-protection");
}

fn protect(object: &mut Value, old: Option<&Value>, finalizer: &str) {
    if old.is_some() {
        return;
    }
    let mut finalizers = object.at(&["metadata", "finalizers"]).and_then(Value::as_array).unwrap_or_default().to_vec();
    if !finalizers.iter().any(|known| known.as_str() == Some(finalizer)) {
        finalizers.push(Value::from(finalizer));
        object.set_at(&["metadata", "finalizers"], Value::Array(finalizers));
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
