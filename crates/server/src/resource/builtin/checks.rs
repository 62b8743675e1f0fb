//! Checks that several kinds share.

use machinery::Value;
use machinery::field::{FieldError, FieldPath};
use machinery::names;

/// The items of a list; none if it is absent.
pub fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object.get(name).and_then(Value::as_array).unwrap_or_default()
}

/// Items with their paths.
pub fn items<'a>(object: &'a Value, name: &str, path: &FieldPath) -> impl Iterator<Item = (FieldPath, &'a Value)> {
    let path = path.child(name);
    list(object, name).iter().enumerate().map(move |(i, item)| (path.index(i), item))
}

pub fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.str_at(&[name])
}

pub fn invalid_each(path: &FieldPath, value: &str, messages: Vec<String>, errors: &mut Vec<FieldError>) {
    errors.extend(messages.into_iter().map(|message| FieldError::invalid(path, &Value::from(value), message)));
}

/// A member that, if it is given, is one of a few texts.
pub fn one_of(object: &Value, name: &str, path: &FieldPath, known: &[&str], errors: &mut Vec<FieldError>) {
    if let Some(value) = object.get(name)
        && !value.as_str().is_some_and(|text| known.contains(&text))
    {
        errors.push(FieldError::not_supported(&path.child(name), value, known));
    }
}

/// `Invalid value` with a struct as Go prints it: members in the order of its fields.
pub fn invalid_struct(path: &FieldPath, members: &[(&str, Value)], why: &str) -> FieldError {
    let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{}", value.to_json())).collect();
    FieldError { value: format!("{{{}}}", members.join(",")), ..FieldError::invalid(path, &Value::Null, why) }
}

/// The errors of a label selector.
pub fn label_selector(selector: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = vec![];
    let labels = path.child("matchLabels");
    let pairs = selector.get("matchLabels").and_then(Value::as_object).into_iter().flat_map(machinery::Map::iter);
    for (key, value) in pairs {
        let value = value.as_str().unwrap_or_default();
        invalid_each(&labels, key, names::qualified_name(key), &mut errors);
        invalid_each(&labels, value, names::label_value(value), &mut errors);
    }
    for (path, requirement) in items(selector, "matchExpressions", path) {
        requirement_errors(requirement, &path, &mut errors);
    }
    errors
}

fn requirement_errors(requirement: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let values = list(requirement, "values");
    let (operator, key) = (text(requirement, "operator"), text(requirement, "key"));
    match operator {
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
            errors.push(FieldError::invalid(&path.child("operator"), &Value::from(other), why));
        }
    }
    invalid_each(&path.child("key"), key, names::qualified_name(key), errors);
    for (path, value) in items(requirement, "values", path) {
        let value = value.as_str().unwrap_or_default();
        invalid_each(&path, value, names::label_value(value), errors);
    }
}

/// The errors of a member that is a label selector, if it is given.
pub fn selector_member(object: &Value, name: &str, path: &FieldPath) -> Vec<FieldError> {
    object.get(name).map(|selector| label_selector(selector, &path.child(name))).unwrap_or_default()
}
