//! The stored form of a definition, and its defaults.

use machinery::{Map, Value};

use crate::shape;

/// The form in which a valid definition is stored and shown. In upstream, validation has already coerced the metadata
/// of embedded resources in defaults.
pub fn to_stored(definition: &Value) -> Value {
    let mut stored = shape::read(definition, shape::named("apiextensions.v1.CustomResourceDefinition")).value;
    if let Some(versions) = stored.get_mut("spec").and_then(|s| s.get_mut("versions")).and_then(Value::as_array_mut) {
        let schemas = versions.iter_mut().filter_map(|v| v.get_mut("schema")?.get_mut("openAPIV3Schema"));
        schemas.for_each(super::defaults::coerce_embedded);
    }
    stored
}

/// Sets the defaults of v1.
pub fn default(definition: &mut Value) {
    if let Some(spec) = definition.get_mut("spec") {
        default_names(spec);
        if spec.get("conversion").is_none() {
            spec.set_at(&["conversion"], Value::from([("strategy", Value::from("None"))]));
        }
        let webhook = spec.at(&["conversion", "webhook"]);
        let blank =
            |w: &Value| w.get("clientConfig").is_none() && w.get("conversionReviewVersions").is_none_or(Value::is_null);
        if webhook.is_some_and(blank) {
            spec.remove_at(&["conversion", "webhook"]);
        }
        let service = ["conversion", "webhook", "clientConfig", "service"];
        if spec.at(&service).is_some_and(|s| s.get("port").is_none()) {
            spec.set_at(&["conversion", "webhook", "clientConfig", "service", "port"], Value::Int(443));
        }
    }
    default_stored_versions(definition);
}

pub(super) fn default_names(spec: &mut Value) {
    let kind = spec.str_at(&["names", "kind"]).to_owned();
    if spec.str_at(&["names", "singular"]).is_empty() && !kind.is_empty() {
        spec.set_at(&["names", "singular"], Value::from(kind.to_lowercase()));
    }
    if spec.str_at(&["names", "listKind"]).is_empty() && !kind.is_empty() {
        spec.set_at(&["names", "listKind"], Value::from(format!("{kind}List")));
    }
}

pub(super) fn default_stored_versions(definition: &mut Value) {
    let stored = definition.items_at(&["status", "storedVersions"]);
    if !stored.is_empty() {
        return;
    }
    if let Some(name) = storage_version(definition).map(Value::from) {
        definition.set_at(&["status", "storedVersions"], Value::Array(vec![name]));
    }
}

/// The name of the first version that is marked as storage version.
pub(super) fn storage_version(definition: &Value) -> Option<&str> {
    let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array)?;
    versions.iter().find(|v| v.is_true_at(&["storage"])).map(|v| v.str_at(&["name"]))
}

/// The fields of an object; empty for other values.
pub(super) fn fields(value: &Value) -> Map {
    value.as_object().cloned().unwrap_or_default()
}
