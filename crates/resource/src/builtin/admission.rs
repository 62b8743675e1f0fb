//! What webhook configurations and admission policies share: rules, match conditions, defaults.

use std::collections::HashSet;

use base::request::FeatureGates;
use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, names};

use super::BuiltIn;
use super::checks::{invalid_each, items, list, one_of, text};
use super::expressions::{Scope, expression_error};
use crate::limits;

/// The group of all admission kinds.
const GROUP: &str = "admissionregistration.k8s.io";

/// The suffix of names that are reserved for manifests (KEP-5793).
pub const STATIC_SUFFIX: &str = ".static.k8s.io";

impl BuiltIn {
    fn reserved_name_problem(&self, object: &Value) -> Option<String> {
        let name = object.str_at(&["metadata", "name"]);
        (self.group == GROUP && name.ends_with(STATIC_SUFFIX)).then(|| {
            format!(
                "names ending with \"{STATIC_SUFFIX}\" are reserved for static manifest-based configurations and cannot be managed via the API"
            )
        })
    }

    /// The error of a new object with a reserved name.
    pub fn reserved_name_error(&self, object: &Value, gates: &FeatureGates) -> Option<FieldError> {
        let problem = self.reserved_name_problem(object).filter(|_| gates.admission_manifests())?;
        let name = Value::from(object.str_at(&["metadata", "name"]));
        Some(FieldError::invalid(&FieldPath::new("metadata.name"), &name, problem))
    }

    /// The warning about an object with a reserved name, which is not refused.
    pub fn reserved_name_warning(&self, object: &Value, is_new: bool, gates: &FeatureGates) -> Option<String> {
        let warns = gates.release() >= Release::V1_36 && !(is_new && gates.admission_manifests());
        let problem = self.reserved_name_problem(object).filter(|_| warns)?;
        Some(format!("metadata.name: {problem}"))
    }
}

/// Validates a rule of resources and operations.
pub fn rule_errors(rule: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    alone(rule, "operations", "operations", path, errors);
    for (path, operation) in items(rule, "operations", path) {
        if !operation.as_str().is_some_and(|name| KNOWN.contains(&name)) {
            errors.push(FieldError::not_supported(&path, operation, &KNOWN));
        }
    }
    alone(rule, "apiGroups", "API groups", path, errors);
    alone(rule, "apiVersions", "API versions", path, errors);
    for (path, version) in items(rule, "apiVersions", path) {
        if version.as_str() == Some("") {
            errors.push(FieldError::required(&path, ""));
        }
    }
    resource_errors(rule, path, errors);
    one_of(rule, "scope", path, &["*", "Cluster", "Namespaced"], errors);
}

/// Validates a list that must not be empty, and in which `*` must be the only item.
fn alone(rule: &Value, name: &str, what: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let values = list(rule, name);
    if values.is_empty() {
        errors.push(FieldError::required(&path.child(name), ""));
    }
    if values.len() > 1 && values.iter().any(|v| v.as_str() == Some("*")) {
        let why = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(&path.child(name), &Value::Array(values.to_vec()), why));
    }
}

fn resource_errors(rule: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let values = list(rule, "resources");
    let all = path.child("resources");
    if values.is_empty() {
        errors.push(FieldError::required(&all, ""));
    }
    // the resources and the subresources that `parent/*` and `*/subresource` cover
    let (mut parents, mut subresources): (HashSet<&str>, HashSet<&str>) = (HashSet::new(), HashSet::new());
    let mut ends_without_subresource = false;
    for (path, value) in items(rule, "resources", path) {
        let resource = value.as_str().unwrap_or_default();
        if resource.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let Some((parent, subresource)) = resource.split_once('/') else {
            ends_without_subresource = resource != "*";
            continue;
        };
        let mut covered = |by: String| {
            let why = format!("if '{by}' is present, must not specify {resource}");
            errors.push(FieldError::invalid(&path, value, why));
        };
        if parents.contains(parent) {
            covered(format!("{parent}/*"));
        }
        if subresources.contains(subresource) {
            covered(format!("*/{subresource}"));
        }
        if subresource == "*" {
            parents.insert(parent);
        }
        if parent == "*" {
            subresources.insert(subresource);
        }
    }
    let has = |what: &str| values.iter().any(|v| v.as_str() == Some(what));
    let mut refuse = |why: &str| errors.push(FieldError::invalid(&all, &Value::Array(values.to_vec()), why));
    if values.len() > 1 && has("*/*") {
        refuse("if '*/*' is present, must not specify other resources");
    }
    if has("*") && ends_without_subresource {
        refuse("if '*' is present, must not specify other resources without subresources");
    }
}

/// Validates `matchConditions`.
pub fn match_condition_errors(object: &Value, path: &FieldPath, scope: Scope<'_>, errors: &mut Vec<FieldError>) {
    let conditions = list(object, "matchConditions");
    if conditions.len() > limits::MATCH_CONDITIONS_MAX {
        let path = path.child("matchConditions");
        errors.push(FieldError::too_many(&path, conditions.len(), limits::MATCH_CONDITIONS_MAX));
    }
    let mut known = HashSet::new();
    for (path, condition) in items(object, "matchConditions", path) {
        let expression = text(condition, "expression").trim();
        if expression.is_empty() {
            errors.push(FieldError::required(&path.child("expression"), ""));
        } else {
            errors.extend(expression_error(expression, &path.child("expression"), scope, &[cel::Type::Bool]));
        }
        let (name, path) = (text(condition, "name"), path.child("name"));
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        invalid_each(&path, name, names::qualified_name(name), errors);
        if !known.insert(name) {
            errors.push(FieldError::duplicate(&path, &Value::from(name)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn resources_of_rules() {
        let cases: [(Value, &[&str]); 8] = [
            (json!([]), &["resources"]),
            (json!(["*"]), &[]),
            (json!(["*", "a/b"]), &[]),
            (json!(["*", "a"]), &["resources"]),
            (json!(["a/*", "a/b"]), &["resources[1]"]),
            (json!(["*/b", "a/b"]), &["resources[1]"]),
            (json!(["*/*", "a/b"]), &["resources"]),
            (json!([""]), &["resources[0]"]),
        ];
        for (resources, want) in cases {
            let mut errors = vec![];
            resource_errors(&json!({"resources": (resources.clone())}), &FieldPath::root(), &mut errors);
            let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
            assert_eq!(fields, want, "{resources:?}");
        }
    }
}
