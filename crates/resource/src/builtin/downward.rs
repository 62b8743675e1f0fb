//! What the downward API may show of a Pod and of its containers.

use machinery::field::{FieldError, FieldPath};
use machinery::quantity::Quantity;
use machinery::{Value, names};

use super::checks::{invalid_each, text};

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
        return errors.push(FieldError::not_supported(&path.child("resource"), &Value::from(resource), &RESOURCES));
    }
    let divisor = reference.get("divisor").filter(|_| !resource.is_empty());
    let divisor = divisor.and_then(|divisor| Quantity::of(divisor).ok());
    let (divisors, of) = divisors(resource);
    if let Some(divisor) = divisor.filter(|divisor| divisor.signum() != 0)
        && !divisors.contains(&divisor.to_string().as_str())
    {
        let (last, others) = divisors.split_last().unwrap_or((&"", &[]));
        let known = if of == "cpu" { format!("{} and {last}", others.join(", ")) } else { divisors.join(", ") };
        let why = format!("only divisor's values {known} are supported with the {of} resource");
        errors.push(FieldError::invalid(&path.child("divisor"), &Value::from(resource), why));
    }
}

/// The units in which an amount may be shown, and what an error calls it.
fn divisors(resource: &str) -> (&'static [&'static str], &'static str) {
    const OF_CPU: [&str; 2] = ["1m", "1"];
    const OF_BYTES: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    match resource.split_once('.').map_or("", |(_, name)| name) {
        "cpu" => (&OF_CPU, "cpu"),
        "memory" => (&OF_BYTES, "memory"),
        "ephemeral-storage" => (&OF_BYTES, "local ephemeral storage"),
        _ => (&OF_BYTES, "hugepages"),
    }
}

/// A field with a key in brackets and quotes: `metadata.labels['KEY']`.
fn subscripted(field: &str) -> Option<(&str, &str)> {
    field.strip_suffix("']")?.split_once("['").filter(|(name, _)| !name.is_empty())
}

/// The field of the Pod that a `fieldRef`, whose path is `path`, refers to: one of `shown`, a label or an annotation.
pub fn field_path(reference: &Value, shown: &[&str], path: &FieldPath, errors: &mut Vec<FieldError>) {
    let (whole, path) = (path, &path.child("fieldPath"));
    let (version, field) = (text(reference, "apiVersion"), text(reference, "fieldPath"));
    if !field.is_empty() && version != "v1" {
        let why = format!("error converting fieldPath: unsupported pod version: {version}");
        return errors.push(FieldError::invalid(path, &Value::from(field), why));
    }
    let value = Value::from(field);
    match subscripted(field) {
        Some(("metadata.labels", key)) => return invalid_each(whole, key, names::qualified_name(key), errors),
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            return invalid_each(whole, &key, names::qualified_name(&key), errors);
        }
        Some(_) => {
            let why = format!("error converting fieldPath: field label does not support subscript: {field}");
            return errors.push(FieldError::invalid(path, &value, why));
        }
        None if field.is_empty() || shown.contains(&field) => return,
        None => {}
    }
    // what the downward API knows and not every place may show
    const OTHERS: [&str; 5] =
        ["metadata.labels", "metadata.annotations", "spec.restartPolicy", "spec.schedulerName", "status.phase"];
    if OTHERS.contains(&field) || VARIABLES.contains(&field) {
        return errors.push(FieldError::not_supported(path, &value, shown));
    }
    let why = format!("error converting fieldPath: field label not supported: {field}");
    errors.push(FieldError::invalid(path, &value, why));
}
