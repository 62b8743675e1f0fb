//! Variables of containers.

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, names};

use super::Errors;
use crate::builtin::checks::{invalid_each, is_set, text};
use crate::builtin::downward::{VARIABLES, container_amount, field_path};
use crate::builtin::rule_checks;
use crate::rules::label_name;

/// The sources of a variable's value, in the order in which errors name them.
const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

pub(super) fn environment(variable: &Value, path: &FieldPath, errors: &mut Errors) {
    let Some(source) = variable.get("valueFrom").filter(|source| !source.is_null()) else { return };
    let path = path.child("valueFrom");
    let mut invalid = |why: &str| errors.push(FieldError::invalid(&path, &Value::from(""), why));
    let given = SOURCES.iter().filter(|name| is_set(source, name)).count();
    match given {
        0 => invalid(
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        ),
        _ if !text(variable, "value").is_empty() => invalid("may not be specified when `value` is not empty"),
        1 => {}
        _ => invalid("may not have more than one field specified at a time"),
    }
    for name in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(reference) = source.get(name) {
            let (name_path, value) = (path.child(name).child("name"), text(reference, "name"));
            invalid_each(&name_path, value, names::dns1123_subdomain(value), errors);
        }
    }
    if let Some(reference) = source.get("fileKeyRef").filter(|reference| !reference.is_null()) {
        file_key(reference, &path.child("fileKeyRef"), errors);
    }
    if let Some(reference) = source.get("fieldRef") {
        field_path(reference, &VARIABLES, &path.child("fieldRef"), errors);
    }
    if let Some(reference) = source.get("resourceFieldRef") {
        container_amount(reference, &path.child("resourceFieldRef"), errors);
    }
}

fn file_key(reference: &Value, path: &FieldPath, errors: &mut Errors) {
    let field = |name: &str| reference.get(name).unwrap_or(&Value::Null);
    crate::builtin::at::at_path(field("key"), &path.child("key"), errors, rule_checks::env_name);
    let volume = text(reference, "volumeName");
    if !volume.is_empty() {
        invalid_each(&path.child("volumeName"), volume, label_name(volume), errors);
    }
    crate::builtin::at::at_path(field("path"), &path.child("path"), errors, rule_checks::no_backsteps);
}

pub(super) fn environment_source(source: &Value, path: &FieldPath, errors: &mut Errors) {
    let given = ["configMapRef", "secretRef"].iter().filter(|name| is_set(source, name)).count();
    let mut invalid = |why: &str| errors.push(FieldError::invalid(path, &Value::from(""), why));
    match given {
        0 => invalid("must specify one of: `configMapRef` or `secretRef`"),
        2 => invalid("may not have more than one field specified at a time"),
        _ => {}
    }
}
