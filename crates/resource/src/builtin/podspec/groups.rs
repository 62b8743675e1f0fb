//! The group that a Pod is scheduled with, and the responders to its eviction: fields of feature gates.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, names};

use super::Errors;
use crate::builtin::checks::{invalid_each, is_set, items, list, text};
use crate::builtin::prefixed_names;

const RESPONDERS_MAX: usize = 10;
const PRIORITY_MAX: i64 = 100_000;
/// Smaller priorities are those of responders of Kubernetes.
const OWN_PRIORITY_MIN: i64 = 1000;

/// The PodGroup of a Pod.
pub fn scheduling_group(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let Some(group) = spec.get("schedulingGroup").filter(|group| !group.is_null()) else { return };
    let path = path.child("schedulingGroup");
    let (name, name_path) = (text(group, "podGroupName"), path.child("podGroupName"));
    match is_set(group, "podGroupName") {
        true => invalid_each(&name_path, name, names::dns1123_subdomain(name), errors),
        false => errors.push(FieldError::invalid(&name_path, &Value::Null, "must specify one of: `podGroupName`")),
    }
    if !list(spec, "evictionResponders").is_empty() {
        errors.push(FieldError::forbidden(&path, "may not be set when evictionResponders is set"));
    }
}

/// The responders to the eviction of a Pod.
pub fn eviction_responders(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let count = list(spec, "evictionResponders").len();
    if count > RESPONDERS_MAX {
        return errors.push(FieldError::too_many(&path.child("evictionResponders"), count, RESPONDERS_MAX));
    }
    let mut known = HashSet::new();
    for (path, responder) in items(spec, "evictionResponders", path) {
        if !known.insert(text(responder, "name")) {
            let error = FieldError::duplicate(&path, responder);
            let value = machinery::types::published_json(responder, "core.v1.EvictionResponder");
            errors.push(FieldError { value, ..error });
        }
    }
    for (path, responder) in items(spec, "evictionResponders", path) {
        match text(responder, "name") {
            "" => errors.push(FieldError::required(&path.child("name"), "")),
            name => {
                let problems = [prefixed_names::reserved_problems(name), prefixed_names::label_key_problems(name)];
                invalid_each(&path.child("name"), name, problems.concat(), errors);
            }
        }
        let path = path.child("priority");
        let Some(priority) = responder.get("priority").and_then(Value::as_int) else {
            errors.push(FieldError::required(&path, ""));
            continue;
        };
        let why = match priority {
            ..0 => "must be greater than or equal to 0".to_owned(),
            0..OWN_PRIORITY_MIN => "priorities 0-999 are reserved for responders with *.k8s.io suffix".to_owned(),
            OWN_PRIORITY_MIN..=PRIORITY_MAX => continue,
            _ => format!("must be less than or equal to {PRIORITY_MAX}"),
        };
        errors.push(FieldError::invalid(&path, &Value::Int(priority), why));
    }
}
