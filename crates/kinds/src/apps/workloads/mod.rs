//! Workloads and some other kinds: the defaults and the validation that involve several fields.

mod defaults;
mod prepare;

pub use defaults::{
    default_controller, default_cron_job, default_daemon_set, default_job, default_labels, default_stateful_set,
    default_template,
};
pub use prepare::{JOB_LABELS, TEMPLATE_GENERATION, prepare_daemon_set, prepare_deployment, prepare_job};

use std::sync::LazyLock;

use machinery::selector::LabelSelector;
use machinery::{Map, Value, json};
use schema::apply::FieldSet;
use schema::shape::{named, same_fields};

use crate::apps::{claim_templates, rollouts};
use crate::core::pods::{self, pod_annotations};
use crate::stages;
use resource::builtin::checks::{is_usable_selector, labels, selector_operators};
use resource::builtin::defaults::restore;
use schema::at::{At, CheckStage};

/// The data of a ControllerRevision is immutable.
pub fn validate_revision(at: At) {
    let data = at.field("data");
    match (data.value, data.old) {
        (Value::Null, None) => data.required("data is mandatory"),
        (Value::Object(_), None) => {}
        (_, None) => data.required("data must be a valid JSON object"),
        (Value::Null, Some(_)) => data.invalid("field is immutable"),
        (_, Some(_)) => data.immutable(),
    }
}

pub fn validate_pod_template(at: At) {
    template(at.field("template"));
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
pub fn shown_selector(selector: &Value) -> String {
    machinery::types::published_json(selector, "meta.v1.LabelSelector")
}

/// Validates DaemonSets, Deployments, ReplicaSets and StatefulSets.
pub fn validate(at: At) {
    let (kind, spec) = (at.text("kind"), at.field("spec"));
    let selector = spec.field("selector");
    if selector.is_given() {
        selector_operators(selector);
        if is_empty_selector(selector.value) {
            let kind = if kind == "ReplicaSet" { "deployment".to_owned() } else { kind.to_lowercase() };
            selector
                .shown_verbatim(&shown_selector(selector.value))
                .invalid(format!("empty selector is invalid for {kind}"));
        }
    } else if kind != "DaemonSet" {
        selector.required("");
    }
    of_workload(spec, kind, Some(selector.value).filter(|_| selector.is_given()));
    rollouts::check(kind, spec);
    if kind == "StatefulSet" {
        claim_templates::check(spec);
    }
    let is_same =
        |old: &Value| selector.is_given() && same_fields(selector.value, old, named("meta.v1.LabelSelector"), &[]);
    if selector.old.is_some_and(|old| !is_same(old)) {
        let shown = if selector.is_given() { shown_selector(selector.value) } else { "null".to_owned() };
        selector.in_stage(CheckStage::Change).shown_verbatim(&shown).invalid("field is immutable");
    }
}

fn is_empty_selector(selector: &Value) -> bool {
    let is_empty = |name| match selector.get(name) {
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        _ => true,
    };
    is_empty("matchLabels") && is_empty("matchExpressions")
}

/// Validates the template in the `spec` of a workload, and whether the selector selects its labels.
fn of_workload(spec: At, kind: &str, selector: Option<&Value>) {
    let own = spec.field("template");
    let labels = pods::template_labels(own.value).cloned().unwrap_or_default();
    let usable = selector.filter(|selector| is_usable_selector(selector));
    let is_plain = kind == "ReplicationController";
    if let (Some(selector), None, false) = (selector, usable, is_plain || kind == "DaemonSet") {
        let is_set = kind == "StatefulSet";
        let why = if is_set { "" } else { "invalid label selector" };
        spec.field("selector").shown_verbatim(&shown_selector(selector)).invalid(why);
        if is_set {
            restarts(own, kind);
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
        own.field("metadata.labels").invalid("`selector` does not match template `labels`");
    }
    template(own);
    restarts(own, kind);
}

/// The Pods of a workload must have the restart policy `Always` and no deadline.
fn restarts(template: At, kind: &str) {
    let template = template.in_stage(stages::WHOLE);
    let (policy, deadline) = (template.field("spec.restartPolicy"), template.field("spec.activeDeadlineSeconds"));
    if !policy.as_text().is_empty() {
        policy.one_of(&["Always"]);
    }
    if deadline.is_given() {
        // upstream checks a Deployment like a ReplicaSet
        let kind = if kind == "Deployment" { "ReplicaSet" } else { kind };
        deadline.forbidden(format!("activeDeadlineSeconds in {kind} is not Supported"));
    }
}

/// Validates the metadata and the spec of a Pod template.
pub fn template(at: At) {
    let at = at.with_old(None);
    // upstream leaves out `metadata`
    let (own, annotations) = (at.field("labels"), at.field("annotations"));
    labels(own.with_value(at.field("metadata.labels").value));
    schema::metadata::annotations(annotations.with_value(at.field("metadata.annotations").value));
    pod_annotations::check_at(at, annotations);
    pod_annotations::mismatches(at);
    pods::validate_spec(at.field("spec"));
    if !at.list("spec.ephemeralContainers").is_empty() {
        let containers = at.field("spec.ephemeralContainers").in_stage(stages::WHOLE);
        containers.forbidden("ephemeral containers not allowed in pod template");
    }
}

pub fn validate_controller(at: At) {
    let spec = at.field("spec");
    let selector = spec.field("selector");
    selector.required_if(selector.value.as_object().is_none_or(Map::is_empty), "");
    if !spec.has("template") {
        return spec.field("template").required("");
    }
    let wanted = json!({"matchLabels": (selector.value.clone())});
    of_workload(spec, at.text("kind"), Some(&wanted));
}

/// The number of collisions of names with hashes may only grow, since the next hash depends on it.
pub fn not_decremented(count: At) {
    let before = count.old.and_then(Value::as_int);
    if before.is_some_and(|before| count.value.as_int().is_none_or(|now| now < before)) {
        let count = if count.is_given() { count } else { count.with_value(&Value::Int(0)) };
        count.invalid("cannot be decremented");
    }
}
