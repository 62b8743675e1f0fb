//! PersistentVolumeClaimResize.

use machinery::Value;
use machinery::quantity::Quantity;

use super::classes::storage_class;
use super::{Decision, PluginRequest};

/// Rejects the expansion of a claim that is not bound, or whose class does not allow expansion.
pub fn resize(call: &PluginRequest<'_>) -> Decision {
    let (old, new) = (call.old(), call.object());
    let size = |claim: &Value| {
        let size = claim.at(&["spec", "resources", "requests", "storage"]).and_then(|size| Quantity::of(size).ok());
        size.unwrap_or_else(|| Quantity::from_int(0))
    };
    if size(new).compare(&size(old)).is_le() {
        return Ok(());
    }
    if old.str_at(&["status", "phase"]) != "Bound" {
        return Err("Only bound persistent volume claims can be expanded".to_owned().into());
    }
    let class = storage_class(new);
    let expands = |class: Value| class.is_true_at(&["allowVolumeExpansion"]);
    let is_same = !class.is_empty() && class == storage_class(old);
    if is_same && call.get("storage.k8s.io", "storageclasses", class).is_some_and(expands) {
        return Ok(());
    }
    Err("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize".to_owned().into())
}
