//! DefaultStorageClass and DefaultIngressClass: objects without a class get the default one.

use machinery::Value;

use super::{Decision, PluginRequest, annotation};

const BETA_STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// The class of a claim: the beta annotation, or the field.
pub fn storage_class(claim: &Value) -> &str {
    annotation(claim, BETA_STORAGE_CLASS).unwrap_or_else(|| claim.str_at(&["spec", "storageClassName"]))
}

pub fn default_storage_class(call: &PluginRequest<'_>, claim: &mut Value) -> Decision {
    const DEFAULT: [&str; 2] =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    if annotation(claim, BETA_STORAGE_CLASS).is_some() || claim.at(&["spec", "storageClassName"]).is_some() {
        return Ok(());
    }
    if let Some(class) = newest(call, "storage.k8s.io", "storageclasses", &DEFAULT) {
        claim.set_at(&["spec", "storageClassName"], class);
    }
    Ok(())
}

pub fn default_ingress_class(call: &PluginRequest<'_>, ingress: &mut Value) -> Decision {
    const DEFAULT: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];
    let has_class = annotation(ingress, "kubernetes.io/ingress.class").is_some();
    if has_class || ingress.at(&["spec", "ingressClassName"]).is_some() {
        return Ok(());
    }
    if let Some(class) = newest(call, "networking.k8s.io", "ingressclasses", &DEFAULT) {
        ingress.set_at(&["spec", "ingressClassName"], class);
    }
    Ok(())
}

/// The name of the newest class that has one of the annotations; of classes of equal age, the first by name.
fn newest(call: &PluginRequest<'_>, group: &'static str, plural: &'static str, keys: &[&str]) -> Option<Value> {
    let mut newest: Option<(String, String)> = None;
    for stored in call.all(group, plural) {
        let class = stored.body.to_value(stored.revision);
        if !keys.iter().any(|key| annotation(&class, key) == Some("true")) {
            continue;
        }
        let text = |key: &str| class.str_at(&["metadata", key]).to_owned();
        let (created, name) = (text("creationTimestamp"), text("name"));
        let is_newer = newest.as_ref().is_none_or(|(newest_created, newest_name)| {
            created > *newest_created || (created == *newest_created && name < *newest_name)
        });
        if is_newer {
            newest = Some((created, name));
        }
    }
    newest.map(|(_, name)| Value::from(name))
}
