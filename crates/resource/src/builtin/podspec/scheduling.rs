//! Tolerations, affinities, selectors of Nodes, and topology spread.

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, names};

use super::Errors;
use crate::builtin::checks::{invalid_each, is_set, items, list, operator_errors, text};

/// Validates a toleration of a Pod or of a RuntimeClass.
pub fn validate_toleration(toleration: &Value, path: &FieldPath, errors: &mut Errors) {
    let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
    let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
    if key.is_empty() && operator != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(&path.child("operator"), &Value::from(operator), why));
    }
    if is_set(toleration, "tolerationSeconds") && effect != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&path.child("effect"), &Value::from(effect), why));
    }
    match operator {
        "Equal" | "" => {
            let problems = names::label_value(value);
            if !problems.is_empty() {
                let why = problems.join(";");
                errors.push(FieldError::invalid(&path.child("operator"), &Value::from(value), why));
            }
        }
        "Exists" if !value.is_empty() => {
            let why = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(&path.child("operator"), &Value::from(value), why));
        }
        "Exists" => {}
        other => {
            errors.push(FieldError::not_supported(&path.child("operator"), &Value::from(other), &["Equal", "Exists"]))
        }
    }
    if !["", "NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
        let known = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        errors.push(FieldError::not_supported(&path.child("effect"), &Value::from(effect), &known));
    }
}

pub(super) fn affinity(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let path = path.child("affinity");
    let empty = Value::object();
    let affinity = spec.get("affinity").unwrap_or(&empty);
    let (required, preferred) =
        ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution");
    if let Some(node) = affinity.get("nodeAffinity") {
        let path = path.child("nodeAffinity");
        if let Some(selector) = node.get(required) {
            node_selector(selector, &path.child(required), errors);
        }
        for (path, term) in items(node, preferred, &path) {
            if let Some(preference) = term.get("preference") {
                selector_term(preference, &path.child("preference"), errors);
            }
        }
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(terms) = affinity.get(kind) else { continue };
        let path = path.child(kind);
        let plain = items(terms, required, &path).collect::<Vec<_>>();
        let weighted = items(terms, preferred, &path)
            .filter_map(|(path, term)| Some((path.child("podAffinityTerm"), term.get("podAffinityTerm")?)));
        for (path, term) in plain.into_iter().chain(weighted) {
            for selector in ["labelSelector", "namespaceSelector"] {
                selector_operators(term.get(selector), &path.child(selector), errors);
            }
        }
    }
}

/// The operators of a label selector, and their values.
pub fn selector_operators(selector: Option<&Value>, path: &FieldPath, errors: &mut Errors) {
    let Some(selector) = selector else { return };
    for (path, requirement) in items(selector, "matchExpressions", path) {
        operator_errors(requirement, &path, errors);
        for (path, value) in items(requirement, "values", &path) {
            let value = value.as_str().unwrap_or_default();
            invalid_each(&path, value, names::label_value(value), errors);
        }
    }
}

/// A selector of Nodes.
pub fn node_selector(selector: &Value, path: &FieldPath, errors: &mut Errors) {
    for (path, term) in items(selector, "nodeSelectorTerms", path) {
        selector_term(term, &path, errors);
    }
}

fn selector_term(term: &Value, path: &FieldPath, errors: &mut Errors) {
    for (path, requirement) in items(term, "matchExpressions", path) {
        let values = list(requirement, "values");
        let mut push = |error: FieldError| errors.push(error);
        match text(requirement, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                push(FieldError::required(&path.child("values"), why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                push(FieldError::forbidden(&path.child("values"), why));
            }
            "Gt" | "Lt" if values.len() != 1 => {
                let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                push(FieldError::required(&path.child("values"), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => {
                let why = "not a valid selector operator";
                push(FieldError::invalid(&path.child("operator"), &Value::from(other), why));
            }
        }
        for (path, value) in items(requirement, "values", &path) {
            let value = value.as_str().unwrap_or_default();
            invalid_each(&path, value, names::label_value(value), errors);
        }
    }
    for (path, requirement) in items(term, "matchFields", path) {
        let (operator, key) = (text(requirement, "operator"), text(requirement, "key"));
        match operator {
            "In" | "NotIn" if list(requirement, "values").len() != 1 => {
                let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.push(FieldError::required(&path.child("values"), why));
            }
            "In" | "NotIn" => {}
            other => {
                let why = "not a valid selector operator";
                errors.push(FieldError::invalid(&path.child("operator"), &Value::from(other), why));
            }
        }
        if key == "metadata.name" {
            for (path, value) in items(requirement, "values", &path) {
                let value = value.as_str().unwrap_or_default();
                invalid_each(&path, value, names::dns1123_subdomain(value), errors);
            }
        } else {
            let why = "not a valid field selector key";
            errors.push(FieldError::invalid(&path.child("key"), &Value::from(key), why));
        }
    }
}

pub(super) fn spread(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let mut known = vec![];
    for (path, constraint) in items(spec, "topologySpreadConstraints", path) {
        let unsatisfiable = text(constraint, "whenUnsatisfiable");
        let key = text(constraint, "topologyKey");
        let (constraints, place) = (list(spec, "topologySpreadConstraints"), known.len());
        known.push((key, unsatisfiable));
        let is_same =
            |other: &Value| (text(other, "topologyKey"), text(other, "whenUnsatisfiable")) == (key, unsatisfiable);
        let choices = ["DoNotSchedule", "ScheduleAnyway"];
        if !choices.contains(&unsatisfiable) {
            let path = path.child("whenUnsatisfiable");
            errors.push(FieldError::not_supported(&path, &Value::from(unsatisfiable), &choices));
        }
        // the first of equal constraints is reported
        if constraints.iter().skip(place + 1).any(is_same) {
            let shown = format!("{{{key}, {unsatisfiable}}}");
            let path = path.child("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(&path, &Value::from(shown)));
        }
        selector_operators(constraint.get("labelSelector"), &path.child("labelSelector"), errors);
    }
}
