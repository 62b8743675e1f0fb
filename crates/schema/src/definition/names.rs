//! The rules for groups and names of definitions.

use machinery::{FieldError, FieldPath, Value, names as label};

use super::openapi::{list, text};

pub(super) fn validate_group(group: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if group.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let problems = label::dns1123_subdomain(group);
    if !problems.is_empty() {
        errors.push(FieldError::invalid(path, &Value::from(group), problems.join(",")));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(path, &Value::from(group), "should be a domain with at least one dot"));
    }
}

/// The required names of a spec.
pub(super) fn validate_required(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for key in ["plural", "singular", "kind", "listKind"] {
        if spec.str_at(&["names", key]).is_empty() {
            errors.push(FieldError::required(&path.child(key), ""));
        }
    }
}

/// The error of a name that is not a DNS-1035 label, with all reasons in one text.
pub(super) fn validate_label(name: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let problems = label::dns1035_label(name.as_str().unwrap_or_default());
    if !problems.is_empty() {
        errors.push(FieldError::invalid(path, name, problems.join(",")));
    }
}

/// Validates the syntax of the given names.
pub(super) fn validate(names: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for key in ["plural", "singular"] {
        if let Some(name) = names.get(key).filter(|n| !n.as_str().unwrap_or_default().is_empty()) {
            validate_label(name, &path.child(key), errors);
        }
    }
    let (kind, list_kind) = (text(names, "kind"), text(names, "listKind"));
    for (key, name) in [("kind", kind), ("listKind", list_kind)] {
        if !name.is_empty()
            && let Some(problem) = crate::embedded::kind_problem(name)
        {
            errors.push(FieldError::invalid(&path.child(key), &Value::from(name), problem));
        }
    }
    for (i, name) in list(names, "shortNames").iter().enumerate() {
        validate_label(name, &path.child("shortNames").index(i), errors);
    }
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(&path.child("listKind"), &Value::from(list_kind), detail));
    }
    for (i, name) in list(names, "categories").iter().enumerate() {
        validate_label(name, &path.child("categories").index(i), errors);
    }
}
