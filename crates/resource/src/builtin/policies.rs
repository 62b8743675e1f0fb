//! ValidatingAdmissionPolicy and ValidatingAdmissionPolicyBinding.

use std::collections::HashSet;

use cel::{Type, is_identifier};
use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Text, Value, names};

use super::admission::{self as shared};
use super::checks::{invalid_each, items, list, one_of, selector_member, text};
use super::expressions::{Scope, compile, expression_error};
use crate::limits;

/// Only the server writes the status.
pub fn prepare_policy(object: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        object.set_at(&["status"], Value::object());
    }
}

pub fn validate_policy(new: &Value, _: Option<&Value>, _: Release) -> Vec<FieldError> {
    let (path, spec) = (FieldPath::new("spec"), new.get("spec").unwrap_or(&Value::Null));
    let mut errors = vec![];
    let scope = constraint_errors(spec, &path, &mut errors);
    shared::match_condition_errors(spec, &path, scope, &mut errors);
    let variables = variable_types(spec, scope, &path, &mut errors);
    let scope = Scope { variables: (!list(spec, "variables").is_empty()).then_some(variables.as_slice()), ..scope };
    if list(spec, "validations").is_empty() && list(spec, "auditAnnotations").is_empty() {
        let why = "validations or auditAnnotations must contain at least one item";
        errors.push(FieldError::required(&path.child("validations"), why));
        errors.push(FieldError::required(&path.child("auditAnnotations"), why));
    }
    for (path, validation) in items(spec, "validations", &path) {
        validation_errors(validation, scope, &path, &mut errors);
    }
    annotation_errors(spec, new.str_at(&["metadata", "name"]), scope, &path, &mut errors);
    errors
}

/// Validates `failurePolicy`, `paramKind` and `matchConstraints`. Returns the scope of the expressions.
pub fn constraint_errors(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) -> Scope<'static> {
    one_of(spec, "failurePolicy", path, &["Fail", "Ignore"], errors);
    let params = spec.get("paramKind").is_some();
    if let Some(kind) = spec.get("paramKind") {
        param_kind_errors(kind, &path.child("paramKind"), errors);
    }
    let constraints = path.child("matchConstraints");
    match spec.get("matchConstraints") {
        None => errors.push(FieldError::required(&constraints, "")),
        Some(resources) => {
            resource_errors(resources, &constraints, errors);
            if list(resources, "resourceRules").is_empty() {
                errors.push(FieldError::required(&constraints.child("resourceRules"), ""));
            }
        }
    }
    Scope { params, authorizer: true, variables: None, mutations: false }
}

fn param_kind_errors(kind: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let version_path = path.child("apiVersion");
    let api_version = text(kind, "apiVersion");
    let mut invalid = |path: &FieldPath, value: &str, why: String| {
        errors.push(FieldError::invalid(path, &Value::from(value), why));
    };
    if api_version.matches('/').count() > 1 {
        invalid(&version_path, api_version, format!("unexpected GroupVersion string: {api_version}"));
    } else if !api_version.is_empty() {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let messages = names::dns1123_subdomain(group);
        if !group.is_empty() && !messages.is_empty() {
            invalid(&version_path, group, messages.join(","));
        }
        let messages = names::dns1035_label(version);
        if version.is_empty() {
            invalid(&version_path, api_version, "version must be specified".to_owned());
        } else if !messages.is_empty() {
            invalid(&version_path, version, messages.join(","));
        }
    }
    let name = text(kind, "kind");
    let messages = names::dns1035_label(&name.to_lowercase());
    if !name.is_empty() && !messages.is_empty() {
        let why = format!("may have mixed case, but should otherwise match: {}", messages.join(","));
        invalid(&path.child("kind"), name, why);
    }
    for field in ["apiVersion", "kind"] {
        if text(kind, field).is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
}

fn resource_errors(resources: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    one_of(resources, "matchPolicy", path, &["Equivalent", "Exact"], errors);
    errors.extend(selector_member(resources, "namespaceSelector", path));
    errors.extend(selector_member(resources, "objectSelector", path));
    let rules = ["resourceRules", "excludeResourceRules"].into_iter().flat_map(|name| items(resources, name, path));
    for (path, rule) in rules {
        let mut known = HashSet::new();
        for (path, name) in items(rule, "resourceNames", &path) {
            let segment = name.as_str().unwrap_or_default();
            invalid_each(&path, segment, names::path_segment(segment), errors);
            if !known.insert(segment) {
                errors.push(FieldError::duplicate(&path, name));
            }
        }
        shared::rule_errors(rule, &path, errors);
    }
}

/// The names and types of variables. Each variable may use those before it.
pub fn variable_types(
    spec: &Value,
    scope: Scope<'_>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) -> Vec<(Text, Type)> {
    let mut known: Vec<(Text, Type)> = vec![];
    for (path, variable) in items(spec, "variables", path) {
        let (name, expression) = (text(variable, "name"), text(variable, "expression"));
        if name.trim().is_empty() || name == "_" {
            errors.push(FieldError::required(&path.child("name"), "name is not specified"));
        } else if !is_identifier(name) {
            let why = "must be a valid CEL identifier";
            errors.push(FieldError::invalid(&path.child("name"), &Value::from(name), why));
        }
        let path = path.child("expression");
        if expression.trim().is_empty() {
            errors.push(FieldError::required(&path, "expression is not specified"));
            continue;
        }
        let found = compile(expression, Scope { variables: Some(&known), ..scope });
        // later expressions may use an invalid variable, which then has the type `dyn`
        let found = found.unwrap_or_else(|fault| {
            errors.push(fault.error(expression, &path));
            Type::Dyn
        });
        known.push((Text::from(name), found));
    }
    known
}

fn validation_errors(validation: &Value, scope: Scope<'_>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let expression = text(validation, "expression");
    if expression.trim().is_empty() {
        errors.push(FieldError::required(&path.child("expression"), "expression is not specified"));
    } else {
        errors.extend(expression_error(expression, &path.child("expression"), scope, &[Type::Bool]));
    }
    let blank = |name: &str| {
        let value = text(validation, name);
        let why = "must be non-empty if specified";
        let is_blank = !value.is_empty() && value.trim().is_empty();
        is_blank.then(|| FieldError::invalid(&path.child(name), &Value::from(value), why))
    };
    errors.extend(blank("messageExpression"));
    let expression = text(validation, "messageExpression");
    if !expression.trim().is_empty() {
        let scope = Scope { authorizer: false, ..scope };
        errors.extend(expression_error(expression, &path.child("messageExpression"), scope, &[Type::String]));
    }
    errors.extend(blank("message"));
    let message = text(validation, "message");
    if message.trim().contains(['\n', '\r']) {
        let why = "must not contain line breaks";
        errors.push(FieldError::invalid(&path.child("message"), &Value::from(message), why));
    }
    one_of(validation, "reason", path, &["Forbidden", "Invalid", "RequestEntityTooLarge"], errors);
}

/// Validates audit annotations. The name of the policy qualifies their keys.
fn annotation_errors(spec: &Value, policy: &str, scope: Scope<'_>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let annotations = list(spec, "auditAnnotations");
    if annotations.len() > limits::AUDIT_ANNOTATIONS_MAX {
        // the value is shown with the names of its Go fields
        let shown = |annotation: &Value| -> Value {
            let field = |name: &str| Value::from(text(annotation, name));
            [("Key", field("key")), ("ValueExpression", field("valueExpression"))].into()
        };
        let why = format!("must not have more than {} auditAnnotations", limits::AUDIT_ANNOTATIONS_MAX);
        let shown: Value = annotations.iter().map(shown).collect();
        errors.push(FieldError::invalid(&path.child("auditAnnotations"), &shown, why));
    }
    let mut known = HashSet::new();
    for (path, annotation) in items(spec, "auditAnnotations", path) {
        let key = text(annotation, "key");
        if policy.is_empty() {
            let why = "requires metadata.name be non-empty";
            errors.push(FieldError::invalid(&path.child("key"), &Value::from(key), why));
        } else {
            let whole = format!("{policy}/{key}");
            invalid_each(&path.child("key"), &whole, names::qualified_name(&whole), errors);
        }
        let (expression, value_path) = (text(annotation, "valueExpression"), path.child("valueExpression"));
        if expression.trim().is_empty() {
            errors.push(FieldError::required(&value_path, "valueExpression is not specified"));
        } else {
            errors.extend(expression_error(expression, &value_path, scope, &[Type::String, Type::Null]));
        }
        if !known.insert(key) {
            errors.push(FieldError::duplicate(&path.child("key"), &Value::from(key)));
        }
    }
}

pub fn validate_binding(new: &Value, _: Option<&Value>, _: Release) -> Vec<FieldError> {
    let spec = new.get("spec").unwrap_or(&Value::Null);
    let mut errors = binding_errors(spec);
    action_errors(spec, &FieldPath::new("spec").child("validationActions"), &mut errors);
    errors
}

/// Validates the spec of a binding, for both kinds of policies.
pub fn binding_errors(spec: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("spec");
    let mut errors = vec![];
    let name = text(spec, "policyName");
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("policyName"), ""));
    } else {
        invalid_each(&path.child("policyName"), name, names::dns1123_subdomain(name), &mut errors);
    }
    if let Some(reference) = spec.get("paramRef") {
        param_ref_errors(reference, &path.child("paramRef"), &mut errors);
    }
    if let Some(resources) = spec.get("matchResources") {
        resource_errors(resources, &path.child("matchResources"), &mut errors);
    }
    errors
}

fn param_ref_errors(reference: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let (name, selector) = (text(reference, "name"), reference.get("selector"));
    invalid_each(&path.child("name"), name, names::path_segment(name), errors);
    match (name.is_empty(), selector.is_some()) {
        (true, false) => errors.push(FieldError::required(path, "one of name or selector must be specified")),
        (false, true) => {
            let both = |field| FieldError::forbidden(&path.child(field), "name and selector are mutually exclusive");
            errors.extend(["name", "selector"].map(both));
        }
        _ => {}
    }
    errors.extend(selector_member(reference, "selector", path));
    if text(reference, "parameterNotFoundAction").is_empty() {
        errors.push(FieldError::required(&path.child("parameterNotFoundAction"), ""));
    } else {
        one_of(reference, "parameterNotFoundAction", path, &["Deny", "Allow"], errors);
    }
}

fn action_errors(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 3] = ["Audit", "Deny", "Warn"];
    let actions = list(spec, "validationActions");
    if actions.is_empty() {
        errors.push(FieldError::required(path, "at least one validation action is required"));
    }
    let mut known = HashSet::new();
    for (i, action) in actions.iter().enumerate() {
        if !action.as_str().is_some_and(|name| KNOWN.contains(&name)) {
            errors.push(FieldError::not_supported(&path.index(i), action, &KNOWN));
        }
        if !known.insert(action.as_str()) {
            errors.push(FieldError::duplicate(&path.index(i), action));
        }
    }
    let has = |name: &str| actions.iter().any(|action| action.as_str() == Some(name));
    if has("Deny") && has("Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        errors.push(FieldError::invalid(path, &Value::Array(actions.to_vec()), why));
    }
}
