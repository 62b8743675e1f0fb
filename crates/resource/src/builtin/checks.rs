//! Validation that several kinds share.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::names;
use machinery::{Map, Release, Text, Value};

/// The quota resources that count objects, whose amounts must be whole numbers.
pub const OBJECT_COUNTS: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// The items of a list; none if it is absent.
pub fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object.get(name).and_then(Value::as_array).unwrap_or_default()
}

/// The items of a list with their paths.
pub fn items<'a>(object: &'a Value, name: &str, path: &FieldPath) -> impl Iterator<Item = (FieldPath, &'a Value)> {
    let path = path.child(name);
    list(object, name).iter().enumerate().map(move |(i, item)| (path.index(i), item))
}

/// The entries of a map; none if it is absent.
pub fn entries<'a>(object: &'a Value, path: &[&str]) -> impl Iterator<Item = (&'a Text, &'a Value)> + use<'a> {
    object.at(path).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

pub fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.str_at(&[name])
}

/// Whether a field has a value.
pub fn is_set(object: &Value, name: &str) -> bool {
    object.get(name).is_some_and(|value| !value.is_null())
}

/// An `Invalid value` error with the text of the value.
pub fn invalid_shown(path: &FieldPath, shown: String, why: impl Into<String>) -> FieldError {
    FieldError { value: shown, ..FieldError::invalid(path, &Value::Null, why) }
}

/// An `Invalid value` error that prints an object as its internal type.
pub fn invalid_internal(path: &FieldPath, object: &Value, go: &str, why: impl Into<String>) -> FieldError {
    let value = machinery::types::internal_json(object, go, false);
    FieldError { value, ..FieldError::invalid(path, &Value::Null, why) }
}

pub fn invalid_each(path: &FieldPath, value: &str, messages: Vec<String>, errors: &mut Vec<FieldError>) {
    errors.extend(messages.into_iter().map(|message| FieldError::invalid(path, &Value::from(value), message)));
}

/// Validates that a field, if it is set, has one of the `known` values.
pub fn one_of(object: &Value, name: &str, path: &FieldPath, known: &[&str], errors: &mut Vec<FieldError>) {
    if let Some(value) = object.get(name)
        && !value.as_str().is_some_and(|text| known.contains(&text))
    {
        errors.push(named(FieldError::not_supported(&path.child(name), value, known), value));
    }
}

/// Changes an error as kube-apiserver shows it for texts of a named Go type, which it prints as JSON.
pub fn named(error: FieldError, value: &Value) -> FieldError {
    FieldError { value: machinery::types::internal_json(value, "string", false), ..error }
}

/// A struct as Go prints it, with its fields in the given order.
fn go_struct(fields: &[(&str, Value)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{}", value.to_json())).collect();
    format!("{{{}}}", fields.join(","))
}

/// A `Duplicate value` error that prints a struct.
pub fn duplicate_struct(path: &FieldPath, fields: &[(&str, Value)]) -> FieldError {
    FieldError { value: go_struct(fields), ..FieldError::duplicate(path, &Value::Null) }
}

/// An `Invalid value` error that prints a struct.
pub fn invalid_struct(path: &FieldPath, fields: &[(&str, Value)], why: &str) -> FieldError {
    FieldError { value: go_struct(fields), ..FieldError::invalid(path, &Value::Null, why) }
}

/// An `Invalid value` error that prints all conditions of a status.
pub fn invalid_conditions(status: &Value, path: &FieldPath, why: &str) -> FieldError {
    const ORDER: [&str; 6] = ["type", "status", "observedGeneration", "lastTransitionTime", "reason", "message"];
    let shown = |condition: &Value| {
        go_struct(&ORDER.into_iter().filter_map(|name| Some((name, condition.get(name)?.clone()))).collect::<Vec<_>>())
    };
    let shown: Vec<String> = list(status, "conditions").iter().map(shown).collect();
    let value = format!("[{}]", shown.join(","));
    FieldError { value, ..FieldError::invalid(&path.child("conditions"), &Value::Null, why) }
}

/// Validates the conditions (`metav1.Condition`) of a status.
pub fn condition_errors(status: &Value, path: &FieldPath, release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let mut known = HashSet::new();
    for (path, condition) in items(status, "conditions", path) {
        let kind = text(condition, "type");
        if !known.insert(kind) {
            let at = if release >= Release::V1_37 { path.clone() } else { path.child("type") };
            errors.push(FieldError::duplicate(&at, &Value::from(kind)));
        }
        one_condition_errors(condition, &path, release, &mut errors);
    }
    errors
}

fn one_condition_errors(condition: &Value, path: &FieldPath, release: Release, errors: &mut Vec<FieldError>) {
    const REASON_BYTES_MAX: usize = 1024;
    const MESSAGE_BYTES_MAX: usize = 32 * 1024;
    const REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
    let (kind, reason) = (text(condition, "type"), text(condition, "reason"));
    match kind.is_empty() && release >= Release::V1_37 {
        true => errors.push(FieldError::required(&path.child("type"), "is required")),
        false => invalid_each(&path.child("type"), kind, names::qualified_name(kind), errors),
    }
    match text(condition, "status").is_empty() && release >= Release::V1_37 {
        true => errors.push(FieldError::required(&path.child("status"), "")),
        false => one_of(condition, "status", path, &["False", "True", "Unknown"], errors),
    }
    if let Some(seen) = condition.get("observedGeneration").filter(|seen| seen.as_int().is_some_and(|seen| seen < 0)) {
        errors.push(FieldError::invalid(
            &path.child("observedGeneration"),
            seen,
            "must be greater than or equal to zero",
        ));
    }
    if condition.get("lastTransitionTime").is_none_or(Value::is_null) {
        errors.push(FieldError::required(&path.child("lastTransitionTime"), ""));
    }
    if reason.is_empty() {
        errors.push(FieldError::required(&path.child("reason"), ""));
    } else if !is_reason(reason) {
        errors.push(FieldError::invalid(&path.child("reason"), &Value::from(reason), REASON));
    }
    for (field, max) in [("reason", REASON_BYTES_MAX), ("message", MESSAGE_BYTES_MAX)] {
        if text(condition, field).len() > max {
            errors.push(FieldError::too_long(&path.child(field), max));
        }
    }
}

fn is_reason(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().copied().is_some_and(word)
        && bytes.iter().all(|byte| word(*byte) || matches!(byte, b',' | b':'))
}

/// Reports keys that occur more than once.
pub fn duplicates<'a>(keys: impl Iterator<Item = (FieldPath, &'a str)>, errors: &mut Vec<FieldError>) {
    let mut seen = HashSet::new();
    for (path, key) in keys {
        if !seen.insert(key) {
            errors.push(FieldError::duplicate(&path, &Value::from(key)));
        }
    }
}

/// Reports a list with too many items. Returns true if the list should not be validated any further.
pub fn is_oversized(object: &Value, name: &str, most: usize, path: &FieldPath, errors: &mut Vec<FieldError>) -> bool {
    let count = list(object, name).len();
    if count > most {
        errors.push(FieldError::too_many(&path.child(name), count, most));
    }
    count > most
}

/// Validates labels of objects or of selectors.
pub fn labels(value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (key, value) in entries(value, &[]) {
        let value = value.as_str().unwrap_or_default();
        invalid_each(path, key, names::qualified_name(key), errors);
        invalid_each(path, value, names::label_value(value), errors);
    }
}

/// Validates a label selector.
pub fn label_selector(selector: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = vec![];
    labels(selector.get("matchLabels").unwrap_or(&Value::Null), &path.child("matchLabels"), &mut errors);
    for (path, requirement) in items(selector, "matchExpressions", path) {
        requirement_errors(requirement, &path, &mut errors);
    }
    errors
}

/// Validates the operator of a requirement of a label selector, and the number of its values.
pub fn operator_errors(requirement: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let values = list(requirement, "values");
    match text(requirement, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(&path.child("values"), why));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&path.child("values"), why));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            let why = "not a valid selector operator";
            let value = Value::from(other);
            errors.push(named(FieldError::invalid(&path.child("operator"), &value, why), &value));
        }
    }
}

fn requirement_errors(requirement: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    operator_errors(requirement, path, errors);
    let key = text(requirement, "key");
    invalid_each(&path.child("key"), key, names::qualified_name(key), errors);
    for (path, value) in items(requirement, "values", path) {
        let value = value.as_str().unwrap_or_default();
        invalid_each(&path, value, names::label_value(value), errors);
    }
}

/// Validates the operators of a label selector and the numbers of their values.
pub fn selector_operators(selector: Option<&Value>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(selector) = selector else { return };
    for (path, requirement) in items(selector, "matchExpressions", path) {
        operator_errors(requirement, &path, errors);
        for (path, value) in items(requirement, "values", &path) {
            let value = value.as_str().unwrap_or_default();
            invalid_each(&path, value, names::label_value(value), errors);
        }
    }
}

/// Whether a selector can be used, since its labels and expressions are valid.
pub fn is_usable_selector(selector: &Value) -> bool {
    label_selector(selector, &FieldPath::root()).is_empty()
}

/// Validates a field that holds a label selector, if the field is set.
pub fn selector_member(object: &Value, name: &str, path: &FieldPath) -> Vec<FieldError> {
    object.get(name).map(|selector| label_selector(selector, &path.child(name))).unwrap_or_default()
}
