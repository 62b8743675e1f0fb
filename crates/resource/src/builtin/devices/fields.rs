//! Names, taints and other fields that several kinds of `resource.k8s.io` share.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, names};

use super::super::checks::{invalid_each, is_set, items, list, text};
use super::super::formats::identifier;

pub type Errors = Vec<FieldError>;

const LABEL_BYTES_MAX: usize = 63;
const POOL_BYTES_MAX: usize = 253;
const BINDING_CONDITIONS_MAX: usize = 4;

pub const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

/// The name of a driver.
pub fn driver(name: &str, path: &FieldPath, errors: &mut Errors) {
    if name.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    if name.len() > LABEL_BYTES_MAX {
        errors.push(FieldError::too_long(path, LABEL_BYTES_MAX));
    }
    invalid_each(path, name, names::dns1123_subdomain(&name.to_lowercase()), errors);
}

/// Validates the name of a pool: DNS subdomains that are separated by slashes.
pub fn pool(name: &str, path: &FieldPath, errors: &mut Errors) {
    if name.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    if name.len() > POOL_BYTES_MAX {
        errors.push(FieldError::too_long(path, POOL_BYTES_MAX));
    }
    name.split('/').for_each(|part| invalid_each(path, part, names::dns1123_subdomain(part), errors));
}

pub fn label(name: &str, path: &FieldPath, errors: &mut Errors) {
    invalid_each(path, name, names::dns1123_label(name), errors);
}

/// Validates the name of an attribute or a capacity: an identifier, usually with a domain in front of it.
pub fn qualified_name(name: &str, path: &FieldPath, errors: &mut Errors) {
    let part_error = |why: &str| FieldError::invalid(path, &Value::from(""), why);
    match name.split('/').collect::<Vec<_>>()[..] {
        [own] => crate::builtin::at::at_path(&Value::Null, path, errors, |at| identifier(own, at)),
        [domain, own] => {
            match domain {
                "" => errors.push(part_error("the domain must not be empty")),
                _ => driver(domain, path, errors),
            }
            match own {
                "" => errors.push(part_error("the name must not be empty")),
                _ => crate::builtin::at::at_path(&Value::Null, path, errors, |at| identifier(own, at)),
            }
        }
        // upstream accepts more than one slash
        _ => {}
    }
}

/// Validates a name that must have a domain.
pub fn fully_qualified_name(name: &str, path: &FieldPath, errors: &mut Errors) {
    qualified_name(name, path, errors);
    if !name.contains('/') {
        let why = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(FieldError::invalid(path, &Value::from(name), why));
    }
}

/// Validates the selector of the devices that a rule taints.
pub fn device_selector(selector: &Value, path: &FieldPath, errors: &mut Errors) {
    type Check = fn(&str, &FieldPath, &mut Errors);
    for (name, check) in [("driver", driver as Check), ("pool", pool), ("device", label)] {
        if is_set(selector, name) {
            check(text(selector, name), &path.child(name), errors);
        }
    }
}

pub fn taint(taint: &Value, old: Option<&Value>, path: &FieldPath, errors: &mut Errors) {
    let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
    invalid_each(&path.child("key"), key, names::qualified_name(key), errors);
    if !value.is_empty() {
        invalid_each(&path.child("value"), value, names::label_value(value), errors);
    }
    if old.is_none_or(|old| text(old, "effect") != effect) {
        match effect {
            "" => errors.push(FieldError::required(&path.child("effect"), "")),
            known if EFFECTS.contains(&known) => {}
            _ => errors.push(FieldError::not_supported(&path.child("effect"), &Value::from(effect), &EFFECTS)),
        }
    }
}

pub fn tolerations(object: &Value, path: &FieldPath, errors: &mut Errors) {
    const OPERATORS: [&str; 2] = ["Equal", "Exists"];
    for (path, toleration) in items(object, "tolerations", path) {
        let of = |name: &str| text(toleration, name);
        let (key, value, effect) = (of("key"), of("value"), of("effect"));
        if !key.is_empty() {
            invalid_each(&path.child("key"), key, names::qualified_name(key), errors);
        }
        match of("operator") {
            "Exists" if !value.is_empty() => {
                let why = "must be empty for operator `Exists`";
                errors.push(FieldError::invalid(&path.child("value"), &Value::from(value), why));
            }
            "Exists" => {}
            "Equal" => invalid_each(&path.child("value"), value, names::label_value(value), errors),
            "" => errors.push(FieldError::required(&path.child("operator"), "")),
            other => {
                errors.push(FieldError::not_supported(&path.child("operator"), &Value::from(other), &OPERATORS));
            }
        }
        if !effect.is_empty() && !EFFECTS.contains(&effect) {
            errors.push(FieldError::not_supported(&path.child("effect"), &Value::from(effect), &EFFECTS));
        }
    }
}

/// The conditions that a device needs before it is bound, and those that end the attempt, must both be given or both be
/// absent.
pub fn binding_conditions(object: &Value, path: &FieldPath, errors: &mut Errors) {
    const NAMES: [&str; 2] = ["bindingConditions", "bindingFailureConditions"];
    for name in NAMES {
        let given = list(object, name);
        if given.len() > BINDING_CONDITIONS_MAX {
            errors.push(FieldError::too_many(&path.child(name), given.len(), BINDING_CONDITIONS_MAX));
            continue;
        }
        for (path, condition) in items(object, name, path) {
            let condition = condition.as_str().unwrap_or_default();
            invalid_each(&path, condition, names::qualified_name(condition), errors);
        }
    }
    let of = |name: &str| list(object, name).iter().filter_map(Value::as_str).collect::<HashSet<_>>();
    let bound = of(NAMES[0]);
    for name in NAMES {
        let mut seen = HashSet::new();
        for (path, condition) in items(object, name, path) {
            if !seen.insert(condition.as_str()) {
                errors.push(FieldError::duplicate(&path, condition));
            }
            if name == NAMES[1] && condition.as_str().is_some_and(|condition| bound.contains(condition)) {
                let why = "bindingFailureConditions must not overlap with bindingConditions";
                errors.push(FieldError::invalid(&path, condition, why));
            }
        }
    }
    for (missing, given) in [(NAMES[0], NAMES[1]), (NAMES[1], NAMES[0])] {
        if list(object, missing).is_empty() && !list(object, given).is_empty() {
            let why = format!("{missing} are required to use {given}");
            errors.push(FieldError::invalid(&path.child(missing), &Value::Null, why));
        }
    }
}

/// Validates the data of a driver: a JSON object of bounded size.
pub fn raw_object(value: Option<&Value>, bytes_max: Option<usize>, path: &FieldPath, errors: &mut Errors) {
    match value {
        None | Some(Value::Null) => errors.push(FieldError::required(path, "")),
        Some(value) if bytes_max.is_some_and(|most| value.to_json().len() > most) => {
            errors.push(FieldError::too_long(path, bytes_max.unwrap_or_default()));
        }
        Some(Value::Object(_)) => {}
        Some(_) => {
            let why = "must be a valid JSON object";
            errors.push(FieldError::invalid(path, &Value::from("<value omitted>"), why));
        }
    }
}
