//! The specs of claims: of PersistentVolumeClaims, and of the templates in StatefulSets and ephemeral volumes.

use machinery::field::{FieldError, FieldPath};
use machinery::quantity::Quantity;
use machinery::{Value, names};
use schema::metadata::annotation_errors;

use super::checks::{invalid_each, labels, selector_operators, text};

type Errors = Vec<FieldError>;

/// Validates the spec of a claim or of a template of claims.
pub fn spec(spec: &Value, is_group_checked: bool, path: &FieldPath, errors: &mut Errors) {
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    selector_operators(selector, &path.child("selector"), errors);
    storage_errors(spec.at(&["resources", "requests", "storage"]), &path.child("resources").key("storage"), errors);
    if let (Some(source), Some(reference)) = (spec.get("dataSource"), spec.get("dataSourceRef"))
        && !source.is_null()
        && !reference.is_null()
    {
        let is_equal = ["apiGroup", "kind", "name"].iter().all(|name| source.get(name) == reference.get(name));
        if !text(reference, "namespace").is_empty() {
            let why = "may not be specified when dataSourceRef.namespace is specified";
            errors.push(FieldError::invalid(path, &Value::object(), why));
        } else if !is_equal {
            errors.push(FieldError::invalid(path, &Value::object(), "must match dataSourceRef"));
        }
    }
    for name in ["dataSource", "dataSourceRef"] {
        if let Some(source) = spec.get(name).filter(|source| !source.is_null()) {
            source_errors(source, is_group_checked, &path.child(name), errors);
        }
    }
}

/// The group and the kind of the source of a claim, and the namespace of a reference.
fn source_errors(source: &Value, is_group_checked: bool, path: &FieldPath, errors: &mut Errors) {
    let (group, kind, namespace) = (text(source, "apiGroup"), text(source, "kind"), text(source, "namespace"));
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(FieldError::invalid(path, &Value::from(kind), why));
    }
    if !group.is_empty() && is_group_checked {
        invalid_each(&path.child("apiGroup"), group, names::dns1123_subdomain(group), errors);
    }
    if !namespace.is_empty() {
        invalid_each(&path.child("namespace"), namespace, names::dns1123_label(namespace), errors);
    }
}

/// The storage that a claim requests must be at least one byte, in whole bytes.
fn storage_errors(amount: Option<&Value>, path: &FieldPath, errors: &mut Errors) {
    let Some(amount) = amount.filter(|amount| !amount.is_null()) else {
        return errors.push(FieldError::required(path, ""));
    };
    if Quantity::of(amount).is_ok_and(|amount| amount.signum() <= 0) {
        errors.push(FieldError::invalid(path, amount, "must be greater than zero"));
    }
}

/// The template of the claim of an ephemeral volume, whose metadata may have annotations and labels only.
pub fn template(source: &Value, path: &FieldPath, errors: &mut Errors) {
    let Some(template) = source.get("volumeClaimTemplate").filter(|template| !template.is_null()) else { return };
    let (path, none) = (path.child("volumeClaimTemplate"), Value::object());
    let (metadata, at) = (template.get("metadata").unwrap_or(&none), path.child("metadata"));
    annotation_errors(metadata, &at.child("annotations"), errors);
    labels(metadata.get("labels").unwrap_or(&none), &at.child("labels"), errors);
    for name in FORBIDDEN_METADATA.into_iter().filter(|name| is_not_zero(metadata, name)) {
        // kube-apiserver derives the name from that of the Go field
        let name = if name == "uid" { "uID" } else { name };
        errors.push(FieldError::forbidden(&at.child(name), "cannot be set"));
    }
    spec(template.get("spec").unwrap_or(&none), true, &path.child("spec"), errors);
}

/// The fields that the metadata of a template of claims cannot have, in the order in which they are reported.
const FORBIDDEN_METADATA: [&str; 13] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// Whether a field has another value than the zero value of its Go type; empty lists and numbers of pointers do.
fn is_not_zero(metadata: &Value, name: &str) -> bool {
    metadata.get(name).is_some_and(|value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        value => name != "generation" || value.as_int() != Some(0),
    })
}
