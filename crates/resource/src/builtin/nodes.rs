//! Nodes: their taints, and the fields that updates may change.

use std::collections::HashSet;

use std::net::IpAddr;

use machinery::field::{FieldError, FieldErrorKind, FieldPath};
use machinery::quantity::Quantity;
use machinery::{Release, Value, names};

use super::checks::{entries, invalid_each, invalid_internal, is_set, items, list, text};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The taints of a Node.
pub fn taint_errors(taints: &Value, _path: &FieldPath, errors: &mut Vec<FieldError>) {
    // upstream reports taints below the metadata
    let path = FieldPath::new("metadata").child("taints");
    let mut known = HashSet::new();
    for (i, taint) in taints.as_array().unwrap_or_default().iter().enumerate() {
        let path = path.index(i);
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        invalid_each(&path.child("key"), key, names::qualified_name(key), errors);
        invalid_each(&path.child("value"), value, names::label_value(value), errors);
        effect_errors(effect, &path.child("effect"), errors);
        if !known.insert((key, effect)) {
            let mut error =
                invalid_internal(&path, taint, "core.Taint", "taints must be unique by key and effect pair");
            error.kind = FieldErrorKind::Duplicate;
            errors.push(error);
        }
    }
}

fn effect_errors(effect: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if effect.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !EFFECTS.contains(&effect) {
        errors.push(FieldError::not_supported(path, &Value::from(effect), &EFFECTS));
    }
}

pub fn validate(node: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let path = FieldPath::new("spec");
    let ranges = |node: &Value| node.get("spec").map(|spec| list(spec, "podCIDRs").to_vec()).unwrap_or_default();
    family_errors(&ranges(node), &path.child("podCIDRs"), &mut errors);
    let Some(old) = old else { return errors };
    if !ranges(old).is_empty() && ranges(old) != ranges(node) {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden(&path.child("podCIDRs"), why));
    }
    let provider = |node: &Value| node.str_at(&["spec", "providerID"]).to_owned();
    if !provider(old).is_empty() && provider(old) != provider(node) {
        let why = if provider(node).is_empty() { "cleared" } else { "modified" };
        let why = format!("field cannot be {why} once set");
        errors.push(FieldError::invalid(&path.child("providerID"), &Value::Null, why));
    }
    if node.str_at(&["spec", "externalID"]) != old.str_at(&["spec", "externalID"]) {
        errors.push(FieldError::forbidden(&path.child("externalID"), "may not be updated"));
    }
    errors
}

/// Defaults: `podCIDR` and `podCIDRs` complete each other, and `allocatable` defaults to `capacity`.
pub fn default(node: &mut Value) {
    let first = node.at(&["spec", "podCIDRs"]).and_then(Value::as_array).and_then(<[Value]>::first).cloned();
    match (first, node.str_at(&["spec", "podCIDR"]).to_owned()) {
        (Some(first), one) if one.is_empty() => node.set_at(&["spec", "podCIDR"], first),
        (first, one) if !one.is_empty() && first.as_ref().and_then(Value::as_str) != Some(&one) => {
            node.set_at(&["spec", "podCIDRs"], Value::Array(vec![Value::from(one)]));
        }
        _ => {}
    }
    let Some(status) = node.get_mut("status") else { return };
    if let Some(capacity) = status.get("capacity").filter(|capacity| !capacity.is_null()).cloned()
        && status.get("allocatable").and_then(Value::as_object).is_none_or(machinery::Map::is_empty)
    {
        status.set_at(&["allocatable"], capacity);
    }
}

/// If there are two networks, they must be of different IP families.
fn family_errors(ranges: &[Value], path: &FieldPath, errors: &mut Vec<FieldError>) {
    if ranges.len() < 2 {
        return;
    }
    let family = |range: &Value| {
        let (address, _) = range.as_str()?.split_once('/')?;
        address.parse::<IpAddr>().ok().map(|address| address.is_ipv6())
    };
    let families: Vec<Option<bool>> = ranges.iter().map(family).collect();
    if let Some(i) = families.iter().position(Option::is_none) {
        let range = ranges[i].as_str().unwrap_or_default();
        let why = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{i}]: <nil> (invalid CIDR address: {range})"
        );
        errors.push(FieldError::internal(path, why));
    }
    if !matches!(families[..], [Some(one), Some(other)] if one != other) {
        let why = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(path, &Value::Array(ranges.to_vec()), why));
    }
}

pub fn warnings(node: &Value, _old: Option<&Value>, _release: Release) -> Vec<String> {
    let fields = [
        (
            "configSource",
            "the Dynamic Kubelet Config feature was removed in 1.24, and the field is unused by Kubernetes",
        ),
        ("externalID", "this field is deprecated, and is unused by Kubernetes"),
    ];
    let spec = node.get("spec").cloned().unwrap_or_default();
    let given = fields.into_iter().filter(|(name, _)| is_set(&spec, name) && spec.get(name) != Some(&Value::from("")));
    given.map(|(name, why)| format!("spec.{name}: {why}")).collect()
}

/// Validates the addresses, the amounts and the features of a Node.
pub fn validate_status(node: &Value, _old: &Value, _release: Release) -> Vec<FieldError> {
    let (mut errors, path) = (vec![], FieldPath::new("status"));
    let status = node.get("status").unwrap_or(&Value::Null);
    let mut known = HashSet::new();
    for (path, address) in items(status, "addresses", &path) {
        if !known.insert(address.to_json()) {
            let mut error = invalid_internal(&path, address, "core.NodeAddress", "");
            error.kind = FieldErrorKind::Duplicate;
            errors.push(error);
        }
    }
    for kind in ["capacity", "allocatable"] {
        for (name, amount) in entries(status, &[kind]) {
            amount_errors(name, amount, &path.child(kind).child(name), &mut errors);
        }
    }
    features(status, &path, &mut errors);
    errors
}

fn amount_errors(name: &str, given: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Ok(amount) = Quantity::of(given) else { return };
    let shown = Value::from(amount.to_string());
    if amount.signum() < 0 {
        errors.push(FieldError::invalid(path, &shown, "must be greater than or equal to 0"));
    }
    if name.contains('/') && !name.contains("kubernetes.io/") && !amount.is_whole() {
        errors.push(FieldError::invalid(path, &shown, "must be an integer"));
    }
}

fn features(status: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut last: Option<&str> = None;
    for (path, feature) in items(status, "declaredFeatures", path) {
        let name = feature.as_str().unwrap_or_default();
        if last == Some(name) {
            errors.push(FieldError::duplicate(&path, feature));
        } else if last.is_some_and(|last| name < last) {
            errors.push(FieldError::invalid(&path, feature, "list must be sorted alphabetically"));
        }
        let is_segment = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric());
        const BYTES_MAX: usize = 253;
        if name.len() > BYTES_MAX {
            let why = format!("invalid feature name {name:?}: must be no more than {BYTES_MAX} characters");
            errors.push(FieldError::invalid(&path, feature, why));
        } else if !name.starts_with(|c: char| c.is_ascii_uppercase()) || !name.split('/').all(is_segment) {
            let why = format!(
                "invalid feature name {name:?}: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
            );
            errors.push(FieldError::invalid(&path, feature, why));
        }
        last = Some(name);
    }
}
