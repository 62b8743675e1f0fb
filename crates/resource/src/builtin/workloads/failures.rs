//! Validation of the failure policies of Jobs.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, names};

use crate::builtin::checks::{invalid_each, invalid_shown, items, list, named, text};

/// How a Job responds to failed Pods.
pub(super) fn failure_policy(spec: &Value, restart: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(policy) = spec.get("podFailurePolicy").filter(|policy| !policy.is_null()) else { return };
    let template_path = path.child("template").child("spec").child("restartPolicy");
    if restart == "OnFailure" {
        let why = "only \"Never\" is supported when podFailurePolicy is specified";
        errors.push(FieldError::invalid(&template_path, &Value::from(restart), why));
    }
    let containers: Vec<&str> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|kind| spec.at(&["template", "spec", kind]).and_then(Value::as_array).unwrap_or_default())
        .map(|container| text(container, "name"))
        .collect();
    let rules = list(policy, "rules").len();
    if rules > RULES_MAX {
        errors.push(FieldError::too_many(&path.child("podFailurePolicy").child("rules"), rules, RULES_MAX));
    }
    for (path, rule) in items(policy, "rules", &path.child("podFailurePolicy")) {
        let action = text(rule, "action");
        if action.is_empty() {
            let why = "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]";
            errors.push(FieldError::required(&path.child("action"), why));
        } else if !["Count", "FailIndex", "FailJob", "Ignore"].contains(&action) {
            let known = ["Count", "FailIndex", "FailJob", "Ignore"];
            let action = Value::from(action);
            errors.push(named(FieldError::not_supported(&path.child("action"), &action, &known), &action));
        }
        if action == "FailIndex" && spec.get("backoffLimitPerIndex").is_none_or(Value::is_null) {
            let why = "requires the backoffLimitPerIndex to be set";
            errors.push(FieldError::invalid(&path.child("action"), &Value::from(action), why));
        }
        let codes = rule.get("onExitCodes").filter(|codes| !codes.is_null());
        let conditions = list(rule, "onPodConditions");
        if let Some(codes) = codes {
            exit_codes(codes, &containers, &path.child("onExitCodes"), errors);
        }
        pod_conditions(rule, &path, errors);
        match (codes, conditions.is_empty()) {
            (Some(_), false) => {
                let why = "specifying both OnExitCodes and OnPodConditions is not supported";
                errors.push(invalid_shown(&path, String::new(), why));
            }
            (None, true) => {
                let why = "specifying one of OnExitCodes and OnPodConditions is required";
                errors.push(invalid_shown(&path, String::new(), why));
            }
            _ => {}
        }
    }
}

/// The most rules of a policy, and conditions of a rule.
const RULES_MAX: usize = 20;
const CODES_MAX: usize = 255;

/// The conditions of Pods that a rule looks for.
fn pod_conditions(rule: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
    let count = list(rule, "onPodConditions").len();
    if count > RULES_MAX {
        errors.push(FieldError::too_many(&path.child("onPodConditions"), count, RULES_MAX));
    }
    for (path, pattern) in items(rule, "onPodConditions", path) {
        let (kind, status) = (text(pattern, "type"), text(pattern, "status"));
        invalid_each(&path.child("type"), kind, names::qualified_name(kind), errors);
        let path = path.child("status");
        if status.is_empty() {
            let why = "valid values: [\"False\" \"True\" \"Unknown\"]";
            errors.push(FieldError::required(&path, why));
        } else if !STATUSES.contains(&status) {
            let status = Value::from(status);
            errors.push(named(FieldError::not_supported(&path, &status, &STATUSES), &status));
        }
    }
}

fn exit_codes(codes: &Value, containers: &[&str], path: &FieldPath, errors: &mut Vec<FieldError>) {
    let (operator, name) = (text(codes, "operator"), text(codes, "containerName"));
    if operator.is_empty() {
        errors.push(FieldError::required(&path.child("operator"), "valid values: [\"In\" \"NotIn\"]"));
    } else if !["In", "NotIn"].contains(&operator) {
        let given = Value::from(operator);
        errors.push(named(FieldError::not_supported(&path.child("operator"), &given, &["In", "NotIn"]), &given));
    }
    if codes.get("containerName").is_some_and(|name| !name.is_null()) && !containers.contains(&name) {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.push(FieldError::invalid(&path.child("containerName"), &Value::from(name), why));
    }
    let values = list(codes, "values");
    if values.is_empty() {
        let given = codes.get("values").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&path.child("values"), &given, "at least one value is required"));
    }
    if values.len() > CODES_MAX {
        errors.push(FieldError::too_many(&path.child("values"), values.len(), CODES_MAX));
    }
    let mut known = HashSet::new();
    for (path, value) in items(codes, "values", path) {
        if operator == "In" && value.as_int() == Some(0) {
            errors.push(FieldError::invalid(&path, value, "must not be 0 for the In operator"));
        }
        if !known.insert(value.as_int()) {
            errors.push(FieldError::duplicate(&path, value));
        }
    }
    if values.windows(2).any(|pair| pair[0].as_int() > pair[1].as_int()) {
        let given = Value::Array(values.to_vec());
        errors.push(FieldError::invalid(&path.child("values"), &given, "must be ordered"));
    }
}
