//! Workloads and some other kinds: the defaults and the validation that involve several fields.

mod defaults;
mod failures;
mod jobs;
mod prepare;

pub use defaults::{
    default_controller, default_cron_job, default_daemon_set, default_job, default_labels, default_stateful_set,
    default_template,
};
pub use jobs::{validate_cron_job, validate_job};
pub use prepare::{TEMPLATE_GENERATION, prepare_daemon_set, prepare_deployment, prepare_job};

use std::sync::LazyLock;

use machinery::field::{FieldError, FieldPath};
use machinery::selector::LabelSelector;
use machinery::{Map, Release, Value, json};
use schema::apply::FieldSet;
use schema::shape::{named, same_fields};

use super::checks::{invalid_shown, is_usable_selector, labels, list, text};
use super::defaults::restore;
use super::{claim_templates, pod_annotations, pods, rollouts};

/// The data of a ControllerRevision is immutable.
pub fn validate_revision(object: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (path, data) = (FieldPath::new("data"), object.get("data").filter(|data| !data.is_null()));
    match (data, old.and_then(|old| old.get("data"))) {
        (None, Some(_)) => vec![FieldError::invalid(&path, &Value::Null, "field is immutable")],
        (Some(data), None) if data.as_object().is_none() => {
            vec![FieldError::required(&path, "data must be a valid JSON object")]
        }
        (None, _) => vec![FieldError::required(&path, "data is mandatory")],
        (Some(data), Some(old)) if data != old => vec![FieldError::invalid(&path, data, "field is immutable")],
        _ => vec![],
    }
}

pub fn validate_pod_template(object: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    template_errors(object.get("template").unwrap_or(&Value::object()), &FieldPath::new("template"), &mut errors);
    errors
}

/// The fields that the status endpoint of a Deployment does not write and therefore does not own.
pub fn status_resets() -> &'static FieldSet {
    static RESETS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[&["spec"], &["metadata", "labels"]]));
    &RESETS
}

/// The status endpoint of a Deployment does not write labels.
pub fn keep_labels(deployment: &mut Value, old: &Value) {
    restore(deployment, old, &["metadata", "labels"]);
}

/// A selector as Go prints it.
fn shown_selector(selector: &Value) -> String {
    machinery::types::published_json(selector, "meta.v1.LabelSelector")
}

/// Validates DaemonSets, Deployments, ReplicaSets and StatefulSets.
pub fn validate(object: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let path = FieldPath::new("spec");
    let selector = object.at(&["spec", "selector"]).filter(|selector| !selector.is_null());
    let kind = object.str_at(&["kind"]);
    match selector {
        None if kind == "DaemonSet" => {}
        None => errors.push(FieldError::required(&path.child("selector"), "")),
        Some(selector) => {
            pods::selector_operators(Some(selector), &path.child("selector"), &mut errors);
            if is_empty_selector(selector) {
                let kind = if kind == "ReplicaSet" { "deployment".to_owned() } else { kind.to_lowercase() };
                let why = format!("empty selector is invalid for {kind}");
                errors.push(invalid_shown(&path.child("selector"), shown_selector(selector), why));
            }
        }
    }
    validate_template(object, selector, &path, &mut errors);
    rollouts::check(object, &path, &mut errors);
    if kind == "StatefulSet" {
        claim_templates::check(object, old, &path, &mut errors);
    }
    if let Some(old) = old.and_then(|old| old.at(&["spec", "selector"]))
        && !selector.is_some_and(|selector| same_fields(selector, old, named("meta.v1.LabelSelector"), &[]))
    {
        let shown = selector.map_or_else(|| "null".to_owned(), shown_selector);
        errors.push(invalid_shown(&path.child("selector"), shown, "field is immutable"));
    }
    errors
}

fn is_empty_selector(selector: &Value) -> bool {
    let is_empty = |name| match selector.get(name) {
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        _ => true,
    };
    is_empty("matchLabels") && is_empty("matchExpressions")
}

fn validate_template(object: &Value, selector: Option<&Value>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let (template, template_path) = (object.at(&["spec", "template"]).unwrap_or(&Value::Null), path.child("template"));
    let labels = pods::template_labels(template).cloned().unwrap_or_default();
    let usable = selector.filter(|selector| is_usable_selector(selector));
    let is_plain = object.str_at(&["kind"]) == "ReplicationController";
    let is_reported = !["ReplicationController", "DaemonSet"].contains(&object.str_at(&["kind"]));
    if let (Some(selector), None, true) = (selector, usable, is_reported) {
        let is_set = object.str_at(&["kind"]) == "StatefulSet";
        let (shown, why) = (shown_selector(selector), if is_set { "" } else { "invalid label selector" });
        errors.push(invalid_shown(&path.child("selector"), shown, why));
        if is_set {
            restart_errors(object, template, &template_path, errors);
        }
        return;
    }
    let selects = |selector: &Value| {
        if let Some(wanted) = selector.get("matchLabels").and_then(Value::as_object).filter(|_| is_plain) {
            return Map::iter(wanted).all(|(key, value)| labels.get(key) == Some(value));
        }
        let parsed = LabelSelector::from_value(selector);
        parsed.is_some_and(|selector| selector.matches(|key| labels.get(key).and_then(Value::as_str)))
    };
    let matches = |selector: &Value| is_empty_selector(selector) || selects(selector);
    let usable = if is_plain { selector } else { usable };
    if selector.is_none() || usable.is_some_and(|selector| !matches(selector)) {
        let labels = labels_or_null(template);
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(&template_path.child("metadata").child("labels"), &labels, why));
    }
    template_errors(template, &template_path, errors);
    restart_errors(object, template, &template_path, errors);
}

/// The Pods of a workload must have the restart policy `Always` and no deadline.
fn restart_errors(object: &Value, template: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let (spec, path) = (template.get("spec").unwrap_or(&Value::Null), path.child("spec"));
    let policy = text(spec, "restartPolicy");
    if policy != "Always" && !policy.is_empty() {
        errors.push(FieldError::not_supported(&path.child("restartPolicy"), &Value::from(policy), &["Always"]));
    }
    if spec.get("activeDeadlineSeconds").is_some_and(|seconds| !seconds.is_null()) {
        let kind = object.str_at(&["kind"]);
        // upstream checks a Deployment like a ReplicaSet
        let kind = if kind == "Deployment" { "ReplicaSet" } else { kind };
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(&path.child("activeDeadlineSeconds"), why));
    }
}

/// The labels of a template as errors show them.
fn labels_or_null(template: &Value) -> Value {
    template.at(&["metadata", "labels"]).cloned().unwrap_or_default()
}

/// Validates the metadata and the spec of a Pod template.
fn template_errors(template: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    // upstream leaves out `metadata`
    let given = template.at(&["metadata", "labels"]).unwrap_or(&Value::Null);
    labels(given, &path.child("labels"), errors);
    let metadata = template.get("metadata").unwrap_or(&Value::Null);
    schema::metadata::annotation_errors(metadata, &path.child("annotations"), errors);
    pod_annotations::errors(template, None, &path.child("annotations"), errors);
    pod_annotations::mismatches(template, &path.child("spec"), errors);
    pods::validate_spec(template.get("spec").unwrap_or(&Value::Null), &path.child("spec"), errors);
    if !list(template.get("spec").unwrap_or(&Value::Null), "ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(&path.child("spec").child("ephemeralContainers"), why));
    }
}

pub fn validate_controller(object: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let path = FieldPath::new("spec");
    let selector = object.at(&["spec", "selector"]).and_then(Value::as_object);
    if selector.is_none_or(Map::is_empty) {
        errors.push(FieldError::required(&path.child("selector"), ""));
    }
    let wanted = json!({"matchLabels": (selector.cloned().map(Value::Object).unwrap_or_default())});
    if object.at(&["spec", "template"]).is_none_or(Value::is_null) {
        errors.push(FieldError::required(&path.child("template"), ""));
    } else {
        validate_template(object, Some(&wanted), &path, &mut errors);
    }
    errors
}

/// Validates the numbers in a status, none of which may exceed the number of replicas.
pub fn validate_replicas(object: &Value, _old: &Value, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let path = FieldPath::new("status");
    let number = |name: &str| object.at(&["status", name]).and_then(Value::as_int).unwrap_or_default();
    let parts: &[&str] = match object.str_at(&["kind"]) {
        "Deployment" => &["updatedReplicas", "readyReplicas", "availableReplicas"],
        "StatefulSet" => &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
        _ => &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
    };
    for name in parts.iter().filter(|name| number(name) > number("replicas")) {
        let why = "cannot be greater than status.replicas";
        errors.push(FieldError::invalid(&path.child(name), &Value::Int(number(name)), why));
    }
    if number("availableReplicas") > number("readyReplicas") {
        let why = if object.str_at(&["kind"]) == "StatefulSet" { "status.readyReplicas" } else { "readyReplicas" };
        let why = format!("cannot be greater than {why}");
        let available = Value::Int(number("availableReplicas"));
        errors.push(FieldError::invalid(&path.child("availableReplicas"), &available, why));
    }
    errors
}
