//! v1beta1 definitions: conversion from and to v1, and their own defaults (crd.md 2.2, 2.3).
//!
//! What v1 repeats in every version stands at the top of v1beta1, if it is the same everywhere.

use machinery::{Map, Value};

use super::body::{default_names, default_stored_versions, members};
use super::hoist::Hoisted;

const SHARED: [(&str, &str); 4] = [
    ("validation", "schema"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// A v1beta1 definition, as its shape was read, in the form of v1, with the defaults of v1beta1.
pub fn from_beta(beta: &Value) -> Value {
    let mut out = members(beta);
    let mut spec = out.get("spec").cloned().unwrap_or_default();
    default_spec(&mut spec);
    out.insert("spec", spec_to_v1(&spec));
    if out.contains_key("apiVersion") {
        out.insert("apiVersion", Value::from("apiextensions.k8s.io/v1"));
    }
    let mut definition = Value::Object(out);
    default_stored_versions(&mut definition);
    definition
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
    let mut spec = members(beta);
    let shared: Vec<(&str, Option<Value>)> = SHARED.iter().map(|(top, each)| (*each, spec.remove(top))).collect();
    spec.remove("version");
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
        spec.remove("preserveUnknownFields");
    }
    let versions = spec.remove("versions").unwrap_or_default();
    let versions = versions.as_array().unwrap_or_default().iter().map(|version| {
        let mut version = members(version);
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
    let versions = versions.collect();
    spec.insert("versions", versions);
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
    let mut conversion = members(beta);
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

/// A definition as v1beta1 shows it.
pub fn to_beta(definition: &Value) -> Value {
    let mut out = members(definition);
    let spec = out.get("spec").map(spec_to_beta).unwrap_or_default();
    out.insert("spec", spec);
    if out.contains_key("apiVersion") {
        out.insert("apiVersion", Value::from("apiextensions.k8s.io/v1beta1"));
    }
    Value::Object(out)
}

fn spec_to_beta(v1: &Value) -> Value {
    let hoisted = Hoisted::of(v1);
    let mut spec = members(v1);
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
            rename_columns(&mut value, "jsonPath", "JSONPath");
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
        let v1 = read(&body, ApiVersion::V1Beta1).unwrap().definition;
        assert_eq!(v1.get("spec").unwrap().to_json(), decode(v1_spec.as_bytes()).unwrap().to_json());
        let again = from_beta(&to_beta(&v1));
        assert_eq!(again.to_json(), v1.to_json());
    }

    #[test]
    fn old_manifests_become_v1() {
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
