//! Variables of containers.

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, names};

use super::Errors;
use crate::builtin::checks::{invalid_each, is_set, text};

/// The sources of a variable's value, in the order in which errors name them.
const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

const DOWNWARD: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// The amounts of a container that a variable may show.
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

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
    if let Some(reference) = source.get("fieldRef") {
        let (path, field) = (path.child("fieldRef").child("fieldPath"), text(reference, "fieldPath"));
        match text(reference, "apiVersion") {
            "" | "v1" => field_path(field, &DOWNWARD, &path, errors),
            version => {
                let why = format!("error converting fieldPath: unsupported pod version: {version}");
                errors.push(FieldError::invalid(&path, &Value::from(field), why));
            }
        }
    }
    if let Some(reference) = source.get("resourceFieldRef") {
        container_amount(reference, &path.child("resourceFieldRef"), errors);
    }
}

/// An amount of a container that a variable or a file shows.
pub(super) fn container_amount(reference: &Value, path: &FieldPath, errors: &mut Errors) {
    let resource = text(reference, "resource");
    let is_huge = ["limits.", "requests."]
        .iter()
        .any(|kind| resource.strip_prefix(kind).is_some_and(|name| name.starts_with("hugepages-")));
    if !resource.is_empty() && !RESOURCES.contains(&resource) && !is_huge {
        errors.push(FieldError::not_supported(&path.child("resource"), &Value::from(resource), &RESOURCES));
    }
}

/// A field of the Pod: one of `shown`, a label or an annotation.
pub(super) fn field_path(field: &str, shown: &[&str], path: &FieldPath, errors: &mut Errors) {
    let is_subscript = |name: &str| field.starts_with(&format!("metadata.{name}['")) && field.ends_with("']");
    if field.is_empty() || shown.contains(&field) || is_subscript("labels") || is_subscript("annotations") {
        return;
    }
    let value = Value::from(field);
    // what the downward API knows and not every place may show
    const OTHERS: [&str; 5] =
        ["metadata.labels", "metadata.annotations", "spec.restartPolicy", "spec.schedulerName", "status.phase"];
    if OTHERS.contains(&field) || DOWNWARD.contains(&field) {
        return errors.push(FieldError::not_supported(path, &value, shown));
    }
    let why = format!("error converting fieldPath: field label not supported: {field}");
    errors.push(FieldError::invalid(path, &value, why));
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
