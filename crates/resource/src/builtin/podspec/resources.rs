//! Resources of containers.

use machinery::field::{FieldError, FieldPath};
use machinery::quantity::Quantity;
use machinery::{Map, Value, names};

use super::Errors;
use crate::builtin::checks::{invalid_each, items, text};

/// The resources that containers may have without a domain.
const STANDARD: [&str; 3] = ["cpu", "ephemeral-storage", "memory"];

pub(super) fn resources(container: &Value, path: &FieldPath, claims: &[&str], errors: &mut Errors) {
    let Some(resources) = container.get("resources") else { return };
    let path = path.child("resources");
    for (path, claim) in items(resources, "claims", &path) {
        let name = text(claim, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else if !claims.contains(&name) {
            let known = if claims.is_empty() { "which is empty".to_owned() } else { format!("{claims:?}") };
            let mut error = FieldError::not_found(&path, &Value::from(name));
            error.detail = format!("must be one of the names in pod.spec.resourceClaims {known}");
            errors.push(error);
        }
    }
    for kind in ["limits", "requests"] {
        let amounts = resources.get(kind).and_then(Value::as_object);
        for (name, amount) in amounts.into_iter().flat_map(Map::iter) {
            let path = path.child(kind).key(name);
            container_resource(name, &path, errors);
            if amount.as_str().is_some_and(|amount| amount.starts_with('-')) {
                errors.push(FieldError::invalid(&path, amount, "must be greater than or equal to 0"));
            }
        }
    }
    let amount = |kind: &str, name: &str| {
        resources.at(&[kind, name]).and_then(Value::as_str).and_then(|text| Quantity::parse(text).ok())
    };
    let requests = resources.get("requests").and_then(Value::as_object);
    for (name, shown) in requests.into_iter().flat_map(Map::iter) {
        let (request, limit) = (amount("requests", name), amount("limits", name));
        if let (Some(request), Some(limit)) = (request, limit)
            && request.compare(&limit).is_gt()
        {
            let why = format!("must be less than or equal to {name} limit of {}", resources.str_at(&["limits", name]));
            errors.push(FieldError::invalid(&path.child("requests"), shown, why));
        }
    }
}

/// The resources without a domain that containers may not have.
const COUNTED: [&str; 18] = [
    "configmaps",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "storage",
    "requests.hugepages-",
];

/// The name of a resource: a standard one, or one with a domain.
pub fn resource_name(name: &str, path: &FieldPath, errors: &mut Errors) {
    let problems = names::qualified_name(name);
    let is_name = problems.is_empty();
    invalid_each(path, name, problems, errors);
    let is_known = name.contains('/') || STANDARD.contains(&name) || name.starts_with("hugepages-");
    if is_name && !is_known && !COUNTED.contains(&name) {
        let why = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(path, &Value::from(name), why));
    }
}

/// A resource of a container.
pub fn container_resource(name: &str, path: &FieldPath, errors: &mut Errors) {
    let problems = names::qualified_name(name);
    let is_name = problems.is_empty();
    invalid_each(path, name, problems, errors);
    let is_known = name.contains('/') || STANDARD.contains(&name) || name.starts_with("hugepages-");
    let mut invalid = |why: &str| errors.push(FieldError::invalid(path, &Value::from(name), why));
    if !is_known && !COUNTED.contains(&name) && is_name {
        invalid("must be a standard resource type or fully qualified");
    }
    if !is_known {
        invalid("must be a standard resource for containers");
    }
}
