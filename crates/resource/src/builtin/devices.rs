//! Devices: classes, claims and their templates, slices and taints (`resource.k8s.io`).

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::{Map, Release, Value, names};

use super::checks::{invalid_shown, items, list, text};
use super::defaults::{at_mut, set_default};

/// Requests of a ResourceClaim, or of its template, are for one device.
pub fn default_resource_claim(object: &mut Value) {
    for path in [&["spec", "devices", "requests"][..], &["spec", "spec", "devices", "requests"]] {
        for request in at_mut(object, path).and_then(Value::as_array_mut).into_iter().flatten() {
            if request.str_at(&["exactly", "allocationMode"]) == "ExactCount" {
                set_default(request, &["exactly", "count"], Value::Int(1));
            }
        }
    }
}

/// Taints of devices have the time at which they were added.
pub fn default_taint_rule(rule: &mut Value) {
    let path = ["spec", "taint", "timeAdded"];
    if rule.at(&["spec", "taint"]).is_some() && rule.at(&path).is_none_or(Value::is_null) {
        rule.set_at(&path, Value::from(base::clock::now_rfc3339()));
    }
}

/// The same in a ResourceSlice.
pub fn default_slice(slice: &mut Value) {
    for device in at_mut(slice, &["spec", "devices"]).and_then(Value::as_array_mut).into_iter().flatten() {
        for taint in device.get_mut("taints").and_then(Value::as_array_mut).into_iter().flatten() {
            set_default(taint, &["timeAdded"], Value::from(base::clock::now_rfc3339()));
        }
    }
}

/// The spec of a ResourceClaim never changes.
pub fn validate_claim(claim: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, empty) = (FieldPath::new("spec"), Value::object());
    devices(claim.at(&["spec", "devices"]).unwrap_or(&empty), &path.child("devices"), &mut errors);
    if old.is_some_and(|old| old.get("spec") != claim.get("spec")) {
        errors = vec![FieldError::invalid(&path, &Value::Null, "field is immutable")];
    }
    errors
}

/// A template of ResourceClaims.
pub fn validate_claim_template(claim: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, empty) = (FieldPath::new("spec").child("spec").child("devices"), Value::object());
    if old.is_none() {
        devices(claim.at(&["spec", "spec", "devices"]).unwrap_or(&empty), &path, &mut errors);
    }
    let (null, path) = (Value::Null, FieldPath::new("spec").child("metadata"));
    let labels = claim.at(&["spec", "metadata", "labels"]).unwrap_or(&null);
    super::rule_checks::labels(labels, &path.child("labels"), &mut errors);
    let metadata = claim.at(&["spec", "metadata"]).and_then(Value::as_object);
    for (name, value) in metadata.into_iter().flat_map(Map::iter) {
        if !["labels", "annotations"].contains(&name.as_str()) && !value.is_null() {
            errors.push(FieldError::forbidden(&path.child(name), "cannot be set"));
        }
    }
    unchanged(claim, old, "resource.ResourceClaimTemplateSpec", &mut errors);
    errors
}

/// A spec that never changes.
fn unchanged(object: &Value, old: Option<&Value>, go: &str, errors: &mut Vec<FieldError>) {
    let spec = object.get("spec");
    if let Some(old) = old
        && old.get("spec") != spec
    {
        let shown = machinery::types::internal_json(spec.unwrap_or(&Value::object()), go, false);
        errors.push(invalid_shown(&FieldPath::new("spec"), shown, "field is immutable"));
    }
}

/// The device requests of a claim.
fn devices(devices: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut names: HashSet<String> = HashSet::new();
    for (path, request) in items(devices, "requests", path) {
        let name = text(request, "name");
        if !names.insert(name.to_owned()) {
            let shown = machinery::types::published_json(request, "resource.v1.DeviceRequest");
            errors.push(FieldError { value: shown, ..FieldError::duplicate(&path, &Value::Null) });
        }
        names.extend(list(request, "firstAvailable").iter().map(|sub| format!("{name}/{}", text(sub, "name"))));
        let is_set = |field: &str| request.get(field).is_some_and(|value| !value.is_null());
        match (is_set("exactly"), !list(request, "firstAvailable").is_empty()) {
            (false, false) => {
                let why = "exactly one of `exactly` or `firstAvailable` is required";
                errors.push(FieldError::required(&path, why));
            }
            (true, true) => {
                let why = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
                errors.push(FieldError::invalid(&path, &Value::Null, why));
            }
            _ => {}
        }
    }
    for kind in ["constraints", "config"] {
        for (path, item) in items(devices, kind, path) {
            request_names(item, &names, &path, errors);
            if kind == "config" && item.get("opaque").is_none_or(Value::is_null) {
                errors.push(FieldError::required(&path.child("opaque"), ""));
            }
            if kind == "constraints" {
                constraint(item, &path, errors);
            }
        }
    }
}

fn constraint(constraint: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let given = ["matchAttribute", "distinctAttribute"]
        .into_iter()
        .filter(|name| constraint.get(name).is_some_and(|value| !value.is_null()))
        .count();
    let why = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required";
    if given == 0 {
        // upstream's words for both mistakes
        errors.push(FieldError::required(path, format!("{why}, but multiple fields are set")));
    }
    for name in ["matchAttribute", "distinctAttribute"] {
        if let Some(attribute) = constraint.get(name).and_then(Value::as_str) {
            attribute_name(attribute, &path.child(name), errors);
        }
    }
}

/// The name of an attribute, in its domain.
fn attribute_name(name: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some((domain, own)) = name.split_once('/') else {
        let why = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(FieldError::invalid(path, &Value::from(name), why));
        return identifier(name, path, errors);
    };
    super::checks::invalid_each(path, domain, names::dns1123_subdomain(domain), errors);
    identifier(own, path, errors);
}

/// A name without a domain: an identifier of C.
fn identifier(name: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const BYTES_MAX: usize = 32;
    const NO_IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";
    if name.len() > BYTES_MAX {
        errors.push(FieldError::too_long(path, BYTES_MAX));
    }
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(word) {
        errors.push(FieldError::invalid(path, &Value::from(name), NO_IDENTIFIER));
    }
}

fn request_names(item: &Value, names: &HashSet<String>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut given = HashSet::new();
    for (path, name) in items(item, "requests", path) {
        let text = name.as_str().unwrap_or_default();
        if !given.insert(text) {
            errors.push(FieldError::duplicate(&path, name));
        }
        for part in text.splitn(2, '/') {
            super::checks::invalid_each(&path, part, names::dns1123_label(part), errors);
        }
        if !names.contains(text) {
            let why =
                "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
            errors.push(FieldError::invalid(&path, name, why));
        }
    }
}

/// Where the devices of a ResourceSlice can be used, and what is said about each.
pub fn validate_slice(slice: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (mut errors, path, empty) = (vec![], FieldPath::new("spec"), Value::object());
    let spec = slice.get("spec").unwrap_or(&empty);
    node_choice(spec, &path, &mut errors);
    let (driver, mut known) = (text(spec, "driver"), HashSet::new());
    const DRIVER_BYTES_MAX: usize = 63;
    if driver.len() > DRIVER_BYTES_MAX {
        errors.push(FieldError::too_long(&path.child("driver"), DRIVER_BYTES_MAX));
    }
    let is_per_device = spec.get("perDeviceNodeSelection").and_then(Value::as_bool).unwrap_or_default();
    for (path, device) in items(spec, "devices", &path) {
        let name = text(device, "name");
        if !known.insert(name) {
            errors.push(FieldError::duplicate(&path, &Value::from(name)));
        }
        let has = |name: &&str| device.get(name).is_some_and(|value| !value.is_null());
        if !is_per_device && ["nodeName", "nodeSelector", "allNodes"].iter().any(has) {
            let why = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
            errors.push(FieldError::invalid(&path, &Value::Null, why));
        }
        let (binding, failure) = ("bindingConditions", "bindingFailureConditions");
        for (given, other) in [(binding, failure), (failure, binding)] {
            if !list(device, given).is_empty() && list(device, other).is_empty() {
                let why = format!("{other} are required to use {given}");
                errors.push(FieldError::invalid(&path.child(other), &Value::Null, why));
            }
        }
        described(device, &path, &mut errors);
    }
    errors
}

/// The Nodes of a slice are chosen in one way.
fn node_choice(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const WAYS: [&str; 4] = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];
    const ONE: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    let is_chosen = |name: &&str| match spec.get(name) {
        Some(Value::String(name)) => !name.is_empty(),
        Some(Value::Bool(chosen)) => *chosen,
        given => given.is_some_and(|value| !value.is_null()),
    };
    let given: Vec<String> = WAYS.iter().filter(|name| is_chosen(name)).map(|name| format!("`{name}`")).collect();
    match given.len() {
        0 => errors.push(FieldError::required(path, ONE)),
        1 => {}
        _ => {
            let shown = Value::from(format!("{{{}}}", given.join(", ")));
            let why = format!("{ONE}, but multiple fields are set");
            errors.push(FieldError::invalid(path, &shown, why));
        }
    }
    let Some(node) = spec.get("nodeName").and_then(Value::as_str) else { return };
    let path = path.child("nodeName");
    if node.is_empty() {
        errors.push(FieldError::invalid(&path, &Value::from(""), "must be either unset or set to a non-empty string"));
    } else {
        super::checks::invalid_each(&path, node, names::dns1123_subdomain(node), errors);
    }
}

/// The names of attributes and capacities of a device, and the values of attributes.
fn described(device: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for kind in ["attributes", "capacity"] {
        let given = device.get(kind).and_then(Value::as_object);
        for (name, value) in given.into_iter().flat_map(Map::iter) {
            let list_path = path.child(kind);
            match name.split_once('/') {
                Some(_) => attribute_name(name, &list_path, errors),
                None => identifier(name, &list_path, errors),
            }
            if kind == "attributes" {
                attribute_value(value, &list_path.key(name), errors);
            }
        }
    }
}

fn attribute_value(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const FORMS: [&str; 8] = ["int", "bool", "string", "version", "ints", "bools", "strings", "versions"];
    const BYTES_MAX: usize = 64;
    if !FORMS.iter().any(|form| value.get(form).is_some_and(|given| !given.is_null())) {
        let why = "must specify one of: `int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`";
        errors.push(FieldError::invalid(path, &Value::from(""), why));
    }
    for form in ["string", "version"].into_iter().filter(|form| text(value, form).len() > BYTES_MAX) {
        errors.push(FieldError::too_long(&path.child(form), BYTES_MAX));
    }
}
