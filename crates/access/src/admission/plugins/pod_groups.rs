//! PodGroupProtection: new PodGroups are not deleted while Pods are in them.

use machinery::Value;

use super::{Decision, PluginRequest, push};

const FINALIZER: &str = "scheduling.k8s.io/podgroup-protection";

/// Adds the finalizer. The controller that watches the Pods removes it.
pub fn protect(_call: &PluginRequest<'_>, group: &mut Value) -> Decision {
    let path = ["metadata", "finalizers"];
    if !group.items_at(&path).iter().any(|finalizer| finalizer.as_str() == Some(FINALIZER)) {
        push(group, &path, Value::from(FINALIZER));
    }
    Ok(())
}
