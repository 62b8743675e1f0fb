//! Fields of a Pod and of its containers that the downward API may refer to.

use machinery::names;
use machinery::quantity::Quantity;

use schema::at::At;

/// The fields of a Pod that a variable may show, besides single labels and annotations.
pub const VARIABLES: [&str; 9] = [
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
];

/// The amounts of a container that variables and files may show.
const RESOURCES: [&str; 6] = [
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage",
    "requests.memory",
];

/// An amount of a container that a variable or a file shows.
pub fn container_amount(reference: At) {
    let resource = reference.field("resource");
    let name = resource.as_text();
    let is_huge = ["limits.", "requests."]
        .iter()
        .any(|kind| name.strip_prefix(kind).is_some_and(|name| name.starts_with("hugepages-")));
    if !name.is_empty() && !RESOURCES.contains(&name) && !is_huge {
        return resource.unsupported(&RESOURCES);
    }
    let divisor = Quantity::of(reference.field("divisor").value).ok().filter(|_| !name.is_empty());
    let (divisors, of) = divisors(name);
    if let Some(divisor) = divisor.filter(|divisor| divisor.signum() != 0)
        && !divisors.contains(&divisor.to_string().as_str())
    {
        let (last, others) = divisors.split_last().unwrap_or((&"", &[]));
        let known = if of == "cpu" { format!("{} and {last}", others.join(", ")) } else { divisors.join(", ") };
        let why = format!("only divisor's values {known} are supported with the {of} resource");
        reference.field("divisor").shown_as_text(name).invalid(why);
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

/// The field of the Pod that a `fieldRef` refers to: one of `shown`, a label or an annotation.
pub fn field_path(reference: At, shown: &[&str]) {
    let (version, at) = (reference.text("apiVersion"), reference.field_or_empty("fieldPath"));
    let field = at.as_text();
    if !field.is_empty() && version != "v1" {
        return at.invalid(format!("error converting fieldPath: unsupported pod version: {version}"));
    }
    match subscripted(field) {
        Some(("metadata.labels", key)) => return reference.shown_as_text(key).invalid_each(names::qualified_name(key)),
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            return reference.shown_as_text(&key).invalid_each(names::qualified_name(&key));
        }
        Some(_) => {
            return at.invalid(format!("error converting fieldPath: field label does not support subscript: {field}"));
        }
        None if field.is_empty() || shown.contains(&field) => return,
        None => {}
    }
    // fields that the downward API knows but this place may not show
    const OTHERS: [&str; 5] =
        ["metadata.labels", "metadata.annotations", "spec.restartPolicy", "spec.schedulerName", "status.phase"];
    match OTHERS.contains(&field) || VARIABLES.contains(&field) {
        true => at.unsupported(shown),
        false => at.invalid(format!("error converting fieldPath: field label not supported: {field}")),
    }
}
