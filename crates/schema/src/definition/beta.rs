//! v1beta1 definitions: conversion from and to v1, and the defaults of v1beta1.
//!
//! If all versions agree, v1beta1 has the schema and the like at the top level, which v1 has in each version.

use machinery::field::FieldErrorKind;
use machinery::types::internal_json;
use machinery::{FieldError, FieldPath, Map, Value};

use super::body::{default_names, default_stored_versions, fields};
use super::hoist::Hoisted;
use super::openapi::list;
use super::options::BetaErrors;

const SHARED: [(&str, &str); 4] = [
    ("validation", "schema"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// Converts a v1beta1 definition to v1.
pub fn from_beta(beta: &Value) -> Value {
    let mut out = fields(beta);
    out.insert("spec", out.get("spec").map(spec_to_v1).unwrap_or_else(Value::object));
    if out.contains_key("apiVersion") {
        out.insert("apiVersion", Value::from("apiextensions.k8s.io/v1"));
    }
    Value::Object(out)
}

/// The form in which a valid v1beta1 definition is stored.
pub fn beta_to_stored(beta: &Value) -> Value {
    super::to_stored(&from_beta(beta))
}

/// Sets the defaults of v1beta1.
pub(super) fn default(definition: &mut Value) {
    if let Some(spec) = definition.get_mut("spec") {
        default_spec(spec);
    }
    default_stored_versions(definition);
}

/// As [`prepare_for_create`](super::prepare_for_create).
pub fn prepare_beta_for_create(beta: &mut Value) {
    let mut definition = from_beta(beta);
    super::prepare_for_create(&mut definition);
    take_prepared(beta, &definition);
}

/// As [`prepare_for_update`](super::prepare_for_update), for two v1beta1 definitions.
pub fn prepare_beta_for_update(beta: &mut Value, old: &Value) {
    let mut definition = from_beta(beta);
    super::prepare_for_update(&mut definition, &from_beta(old));
    take_prepared(beta, &definition);
}

/// Copies status and generation, which are the same in both versions.
fn take_prepared(beta: &mut Value, definition: &Value) {
    for path in [&["status"] as &[&str], &["metadata", "generation"]] {
        beta.put_at(path, definition.at(path).cloned());
    }
}

/// The errors that only v1beta1 definitions can have.
pub(super) fn beta_errors(beta: &Value) -> BetaErrors {
    let spec = beta.get("spec").unwrap_or(&Value::Null);
    BetaErrors { version: spec.str_at(&["version"]).to_owned(), errors: shared_errors(spec) }
}

/// A field must not be both at the top level and in a version. If it is equal in all versions, it must be at the top
/// level.
fn shared_errors(spec: &Value) -> Vec<FieldError> {
    const WORDS: [(&str, &str, &str); 3] = [
        ("validation", "schema", "schemas"),
        ("subresources", "subresources", "subresources"),
        ("additionalPrinterColumns", "additionalPrinterColumns", "additionalPrinterColumns"),
    ];
    let versions = list(spec, "versions");
    let path = FieldPath::new("spec");
    let mut errors = vec![];
    for (top, each, what) in WORDS {
        if !is_blank(spec.get(top)) && versions.iter().any(|v| !is_blank(v.get(each))) {
            let detail = format!("top-level and per-version {what} are mutually exclusive");
            errors.push(FieldError::forbidden(&path.child(top), detail));
        }
    }
    for (top, each, what) in WORDS {
        let first = versions.first().and_then(|v| v.get(each)).filter(|value| !is_blank(Some(value)));
        if first.is_some() && versions.iter().all(|v| v.get(each) == first) {
            let detail = format!(
                "per-version {what} may not all be set to identical values (top-level {top} should be used instead)"
            );
            let (kind, field) = (FieldErrorKind::Invalid, path.child("versions").as_str().to_owned());
            errors.push(FieldError { kind, field, value: printed(versions), detail });
        }
    }
    errors
}

/// The list of versions as upstream's internal version prints it.
fn printed(versions: &[Value]) -> String {
    internal_json(&versions.iter().cloned().collect(), "[]apiextensions.CustomResourceDefinitionVersion")
}

fn is_blank(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(s)) => s.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        _ => false,
    }
}

fn default_spec(spec: &mut Value) {
    if is_blank(spec.get("scope")) {
        spec.set_at(&["scope"], Value::from("Namespaced"));
    }
    default_names(spec);
    let version = spec.get("version").cloned();
    if is_blank(spec.get("versions")) && !is_blank(version.as_ref()) {
        let only = Value::from([
            ("name", version.unwrap_or_default()),
            ("served", Value::Bool(true)),
            ("storage", Value::Bool(true)),
        ]);
        spec.set_at(&["versions"], Value::Array(vec![only]));
    }
    if let Some(first) = list(spec, "versions").first().map(|v| v.str_at(&["name"]).to_owned())
        && spec.str_at(&["version"]).is_empty()
        && !first.is_empty()
    {
        spec.set_at(&["version"], Value::from(first));
    }
    if spec.get("conversion").is_none() {
        spec.set_at(&["conversion"], Value::from([("strategy", Value::from("None"))]));
    }
    let webhook = spec.str_at(&["conversion", "strategy"]) == "Webhook";
    if webhook && is_blank(spec.at(&["conversion", "conversionReviewVersions"])) {
        let versions = Value::Array(vec![Value::from("v1beta1")]);
        spec.set_at(&["conversion", "conversionReviewVersions"], versions);
    }
    let service = ["conversion", "webhookClientConfig", "service"];
    if spec.at(&service).is_some_and(|s| s.get("port").is_none()) {
        spec.set_at(&["conversion", "webhookClientConfig", "service", "port"], Value::Int(443));
    }
    if spec.get("preserveUnknownFields").is_none() {
        spec.set_at(&["preserveUnknownFields"], Value::Bool(true));
    }
}

fn spec_to_v1(beta: &Value) -> Value {
    let mut spec = fields(beta);
    let shared: Vec<(&str, Option<Value>)> = SHARED.iter().map(|(top, each)| (*each, spec.remove(top))).collect();
    spec.remove("version");
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
        spec.remove("preserveUnknownFields");
    }
    let versions = spec.remove("versions").unwrap_or_default();
    let versions = versions.as_array().unwrap_or_default().iter().map(|version| {
        let mut version = fields(version);
        for (each, value) in &shared {
            if let Some(value) = value {
                version.insert(*each, value.clone());
            }
        }
        if let Some(columns) = version.get_mut("additionalPrinterColumns") {
            rename_columns(columns, "JSONPath", "jsonPath");
        }
        Value::Object(version)
    });
    let versions: Vec<Value> = versions.collect();
    spec.insert("versions", if versions.is_empty() { Value::Null } else { Value::Array(versions) });
    if let Some(conversion) = spec.get("conversion").map(conversion_to_v1) {
        spec.insert("conversion", conversion);
    }
    Value::Object(spec)
}

fn rename_columns(columns: &mut Value, from: &str, to: &str) {
    for column in columns.as_array_mut().into_iter().flatten() {
        if let Some(map) = column.as_object_mut()
            && let Some(path) = map.remove(from)
        {
            map.insert(to, path);
        }
    }
}

fn conversion_to_v1(beta: &Value) -> Value {
    let mut conversion = fields(beta);
    let config = conversion.remove("webhookClientConfig");
    let versions = conversion.remove("conversionReviewVersions");
    if config.is_some() || versions.is_some() {
        let mut webhook = Map::new();
        webhook.insert("conversionReviewVersions", versions.unwrap_or_default());
        if let Some(config) = config {
            webhook.insert("clientConfig", config);
        }
        conversion.insert("webhook", Value::Object(webhook));
    }
    Value::Object(conversion)
}

/// Converts a definition to v1beta1.
pub fn to_beta(definition: &Value) -> Value {
    let mut out = fields(definition);
    let spec = out.get("spec").map(spec_to_beta).unwrap_or_default();
    out.insert("spec", spec);
    if out.contains_key("apiVersion") {
        out.insert("apiVersion", Value::from("apiextensions.k8s.io/v1beta1"));
    }
    Value::Object(out)
}

fn spec_to_beta(v1: &Value) -> Value {
    let hoisted = Hoisted::of(v1);
    let mut spec = fields(v1);
    let mut versions = spec.remove("versions").unwrap_or_default();
    for (top, each) in SHARED {
        let value = hoisted.top(each);
        if hoisted.is_shared(each) {
            for version in versions.as_array_mut().into_iter().flatten() {
                version.remove_at(&[each]);
            }
        }
        if let Some(value) = value {
            let mut value = value.clone();
            if top == "additionalPrinterColumns" {
                rename_columns(&mut value, "jsonPath", "JSONPath");
            }
            spec.insert(top, value);
        }
    }
    for version in versions.as_array_mut().into_iter().flatten() {
        if let Some(columns) = version.get_mut("additionalPrinterColumns") {
            rename_columns(columns, "jsonPath", "JSONPath");
        }
    }
    if let Some(first) = versions.as_array().and_then(|v| v.first()) {
        spec.insert("version", Value::from(first.str_at(&["name"])));
    }
    spec.insert("versions", versions);
    if !spec.contains_key("preserveUnknownFields") {
        spec.insert("preserveUnknownFields", Value::Bool(false));
    }
    if let Some(mut conversion) = spec.remove("conversion") {
        if let Some(Value::Object(mut webhook)) = conversion.remove_at(&["webhook"]) {
            if let Some(config) = webhook.remove("clientConfig") {
                conversion.set_at(&["webhookClientConfig"], config);
            }
            if let Some(versions) = webhook.remove("conversionReviewVersions").filter(|v| !is_blank(Some(v))) {
                conversion.set_at(&["conversionReviewVersions"], versions);
            }
        }
        spec.insert("conversion", conversion);
    }
    Value::Object(spec)
}

#[cfg(test)]
mod tests {
    use machinery::value::decode;

    use super::super::{ApiVersion, decode as read};
    use super::*;

    fn check(beta: &str, v1_spec: &str) {
        let body = decode(beta.as_bytes()).unwrap();
        let v1 = from_beta(&read(&body, ApiVersion::V1Beta1).unwrap().definition);
        assert_eq!(v1.get("spec").unwrap().to_json(), decode(v1_spec.as_bytes()).unwrap().to_json());
        let again = from_beta(&to_beta(&v1));
        assert_eq!(again.to_json(), v1.to_json());
    }

    #[test]
    fn v1beta1_manifests_convert_to_v1() {
        check(
            r#"{"spec":{"group":"g.io","version":"v1","names":{"plural":"xs","kind":"X"},
                "additionalPrinterColumns":[{"name":"a","type":"string","JSONPath":".a"}],
                "validation":{"openAPIV3Schema":{"type":"object"}},"preserveUnknownFields":false}}"#,
            r#"{"group":"g.io","conversion":{"strategy":"None"},"scope":"Namespaced",
                "names":{"plural":"xs","kind":"X","singular":"x","listKind":"XList"},
                "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}},
                "additionalPrinterColumns":[{"name":"a","type":"string","jsonPath":".a"}]}]}"#,
        );
    }
}
