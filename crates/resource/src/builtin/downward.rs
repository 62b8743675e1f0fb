//! What the downward API may show of a Pod and of its containers.

use machinery::Value;
use machinery::field::{FieldError, FieldPath};

use super::checks::text;

/// The fields of a Pod that a variable may show, beside single labels and annotations.
pub const VARIABLES: [&str; 9] = [
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

/// The amounts of a container that variables and files may show.
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// An amount of a container that a variable or a file shows.
pub fn container_amount(reference: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let resource = text(reference, "resource");
    let is_huge = ["limits.", "requests."]
        .iter()
        .any(|kind| resource.strip_prefix(kind).is_some_and(|name| name.starts_with("hugepages-")));
    if !resource.is_empty() && !RESOURCES.contains(&resource) && !is_huge {
        errors.push(FieldError::not_supported(&path.child("resource"), &Value::from(resource), &RESOURCES));
    }
}

/// The field of the Pod that a `fieldRef` refers to: one of `shown`, a label or an annotation. `path` is that of `fieldPath`.
pub fn field_path(reference: &Value, shown: &[&str], path: &FieldPath, errors: &mut Vec<FieldError>) {
    let (version, field) = (text(reference, "apiVersion"), text(reference, "fieldPath"));
    if !field.is_empty() && version != "v1" {
        let why = format!("error converting fieldPath: unsupported pod version: {version}");
        return errors.push(FieldError::invalid(path, &Value::from(field), why));
    }
    let is_subscript = |name: &str| field.starts_with(&format!("metadata.{name}['")) && field.ends_with("']");
    if field.is_empty() || shown.contains(&field) || is_subscript("labels") || is_subscript("annotations") {
        return;
    }
    let value = Value::from(field);
    // what the downward API knows and not every place may show
    const OTHERS: [&str; 5] =
        ["metadata.labels", "metadata.annotations", "spec.restartPolicy", "spec.schedulerName", "status.phase"];
    if OTHERS.contains(&field) || VARIABLES.contains(&field) {
        return errors.push(FieldError::not_supported(path, &value, shown));
    }
    let why = format!("error converting fieldPath: field label not supported: {field}");
    errors.push(FieldError::invalid(path, &value, why));
}
