//! RuntimeClass: the overhead and scheduling of its Pods.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldErrorKind, FieldPath};
use machinery::{Map, Release, Value};

use super::checks::{invalid_internal, items};
use super::{podspec, rule_checks};

pub fn validate(class: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (mut errors, empty) = (vec![], Value::object());
    let overhead = class.at(&["overhead", "podFixed"]).and_then(Value::as_object);
    for (name, amount) in overhead.into_iter().flat_map(Map::iter) {
        // upstream shows the overhead as if it were limits
        let path = FieldPath::new("overhead").child("limits").key(name);
        podspec::container_resource(name, &path, &mut errors);
        if amount.as_str().is_some_and(|amount| amount.starts_with('-')) {
            errors.push(FieldError::invalid(&path, amount, "must be greater than or equal to 0"));
        }
    }
    let (scheduling, path) = (class.get("scheduling").unwrap_or(&empty), FieldPath::new("scheduling"));
    let selector = scheduling.get("nodeSelector").unwrap_or(&Value::Null);
    rule_checks::labels(selector, &path.child("nodeSelector"), &mut errors);
    let mut known = HashSet::new();
    for (path, toleration) in items(scheduling, "tolerations", &path) {
        podspec::validate_toleration(toleration, &path, &mut errors);
        if !known.insert(toleration.to_json()) {
            let mut error = invalid_internal(&path, toleration, "core.Toleration", "");
            error.kind = FieldErrorKind::Duplicate;
            errors.push(error);
        }
    }
    errors
}
