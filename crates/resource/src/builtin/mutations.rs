//! MutatingAdmissionPolicy and MutatingAdmissionPolicyBinding (KEP-3962): `v1` since 1.36, and earlier versions by
//! `--runtime-config`. The feature gate decides whether they have an effect.

use cel::Type;
use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Text, Value};

use super::admission::{self as shared};
use super::checks::{items, list, one_of, text};
use super::defaults::set_default;
use super::expressions::{Scope, expression_error};
use super::policies;

/// The defaults of bindings in `v1alpha1`.
pub fn default_alpha_binding(binding: &mut Value) {
    if binding.at(&["spec", "paramRef"]).is_some_and(|reference| !reference.is_null()) {
        set_default(binding, &["spec", "paramRef", "parameterNotFoundAction"], Value::from("Deny"));
    }
}

pub fn validate_policy(new: &Value, _: Option<&Value>, _: Release) -> Vec<FieldError> {
    let (path, spec) = (FieldPath::new("spec"), new.get("spec").unwrap_or(&Value::Null));
    let mut errors = vec![];
    let scope = policies::constraint_errors(spec, &path, &mut errors);
    operation_errors(spec, "matchConstraints", &mut errors);
    shared::match_condition_errors(spec, &path, scope, &mut errors);
    let variables: Vec<(Text, Type)> = policies::variable_types(spec, scope, &path, &mut errors);
    let scope = Scope { variables: Some(&variables), mutations: true, ..scope };
    if list(spec, "mutations").is_empty() {
        errors.push(FieldError::required(&path.child("mutations"), "mutations must contain at least one item"));
    }
    for (path, mutation) in items(spec, "mutations", &path) {
        mutation_errors(mutation, scope, &path, &mut errors);
    }
    match text(spec, "reinvocationPolicy") {
        "" => errors.push(FieldError::required(&path.child("reinvocationPolicy"), "")),
        _ => one_of(spec, "reinvocationPolicy", &path, &["IfNeeded", "Never"], &mut errors),
    }
    errors
}

pub fn validate_binding(new: &Value, _: Option<&Value>, _: Release) -> Vec<FieldError> {
    let spec = new.get("spec").unwrap_or(&Value::Null);
    let mut errors = policies::binding_errors(spec);
    operation_errors(spec, "matchResources", &mut errors);
    errors
}

/// Rejects the operation `DELETE`: deleted objects cannot be mutated. The path names no index, as in kube-apiserver.
fn operation_errors(spec: &Value, field: &str, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
    let path = FieldPath::new("spec").child(field).child("resourceRules").child("operations");
    let rules = spec.get(field).map_or(&[][..], |resources| list(resources, "resourceRules"));
    let operations = rules.iter().flat_map(|rule| list(rule, "operations"));
    let unknown = operations.filter(|operation| !operation.as_str().is_some_and(|name| KNOWN.contains(&name)));
    errors.extend(unknown.map(|operation| FieldError::not_supported(&path, operation, &KNOWN)));
}

/// Each `patchType` requires its own field and forbids the other.
fn mutation_errors(mutation: &Value, scope: Scope<'_>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let (own, other, of) = match text(mutation, "patchType") {
        "" => return errors.push(FieldError::required(&path.child("patchType"), "")),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Type::Made("Object".into())),
        "JSONPatch" => ("jsonPatch", "applyConfiguration", Type::list(Type::Made("JSONPatch".into()))),
        _ => return one_of(mutation, "patchType", path, &["ApplyConfiguration", "JSONPatch"], errors),
    };
    let patch_type = text(mutation, "patchType");
    if mutation.get(other).is_some() {
        let why = format!("must not be specified when patchType is {patch_type}");
        errors.push(FieldError::invalid(&path.child(other), &Value::from(format!("{{{other}}}")), why));
    }
    let Some(patch) = mutation.get(own) else {
        let why = format!("must be specified when patchType is {patch_type}");
        return errors.push(FieldError::required(&path.child(own), why));
    };
    let (expression, path) = (text(patch, "expression"), path.child(own).child("expression"));
    match expression.trim() {
        "" => errors.push(FieldError::required(&path, "")),
        _ => errors.extend(expression_error(expression, &path, scope, &[of])),
    }
}
