//! ServiceAccount.

use machinery::{Release, Value};

/// Warns of an annotation that is deprecated, unless the object had it.
pub fn warnings(object: &Value, old: Option<&Value>, _release: Release) -> Vec<String> {
    const DEPRECATED: [&str; 3] = ["metadata", "annotations", "kubernetes.io/enforce-mountable-secrets"];
    if object.at(&DEPRECATED).is_none() || old.is_some_and(|old| old.at(&DEPRECATED).is_some()) {
        return vec![];
    }
    vec![format!(
        "metadata.annotations[{}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets",
        DEPRECATED[2]
    )]
}

/// Reduces references to secrets to their name.
pub fn prepare(object: &mut Value, _old: Option<&Value>) {
    let Some(secrets) = object.get_mut("secrets").and_then(Value::as_array_mut) else { return };
    for secret in secrets {
        let name = secret.str_at(&["name"]);
        *secret = if name.is_empty() { Value::object() } else { [("name", Value::from(name))].into() };
    }
}
