//! RuntimeClass: the overhead and scheduling of its Pods.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldErrorKind, FieldPath};
use machinery::{Release, Value, names};

use super::checks::{invalid_each, invalid_internal, items, labels, text};
use super::podspec;

pub fn validate(class: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let handler = text(class, "handler");
    if !handler.is_empty() {
        let mut problems = names::dns1123_label(handler);
        if old.is_none() {
            // the declared rule replaces the other one
            problems.iter_mut().for_each(|why| *why = why.replace("63 characters", "63 bytes"));
        }
        invalid_each(&FieldPath::new("handler"), handler, problems, &mut errors);
    }
    podspec::overhead(class.at(&["overhead", "podFixed"]), &FieldPath::new("overhead"), &mut errors);
    let (scheduling, path) = (class.get("scheduling").unwrap_or(&Value::Null), FieldPath::new("scheduling"));
    let selector = scheduling.get("nodeSelector").unwrap_or(&Value::Null);
    labels(selector, &path.child("nodeSelector"), &mut errors);
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
