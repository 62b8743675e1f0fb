//! StorageObjectInUseProtection and PodGroupProtection.

use machinery::Value;

use super::{Decision, PluginRequest, push};

/// Adds the finalizer by which controllers keep objects that are in use, and groups of Pods while Pods are in them.
pub fn protect(call: &PluginRequest<'_>, object: &mut Value) -> Decision {
    const FINALIZERS: [&str; 2] = ["metadata", "finalizers"];
    let finalizer = match call.attributes.plural().as_str() {
        "persistentvolumeclaims" => "kubernetes.io/pvc-protection",
        "persistentvolumes" => "kubernetes.io/pv-protection",
        "podgroups" => "scheduling.k8s.io/podgroup-protection",
        _ => "kubernetes.io/vac-protection",
    };
    if !object.items_at(&FINALIZERS).iter().any(|known| known.as_str() == Some(finalizer)) {
        push(object, &FINALIZERS, Value::from(finalizer));
    }
    Ok(())
}
