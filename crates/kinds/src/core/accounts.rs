//! ServiceAccount.

use machinery::Value;

use schema::at::At;

/// Warns about a deprecated annotation, unless the old object had it too.
pub fn warnings(at: At) {
    let annotations = at.field("metadata.annotations");
    let given = annotations.entry("kubernetes.io/enforce-mountable-secrets");
    if given.is_given() && given.old.is_none_or(Value::is_null) {
        given.warn("deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets");
    }
}

/// Reduces references to Secrets to their names.
pub fn prepare(object: &mut Value, _old: Option<&Value>) {
    let Some(secrets) = object.get_mut("secrets").and_then(Value::as_array_mut) else { return };
    for secret in secrets {
        let name = secret.str_at(&["name"]);
        *secret = if name.is_empty() { Value::object() } else { [("name", Value::from(name))].into() };
    }
}
