//! Defaults of workloads.

use machinery::{Map, Value};

use crate::apps::workloads::prepare::TEMPLATE_GENERATION;
use crate::core::pods;
use resource::builtin::checks::{is_set, text};
use resource::builtin::defaults::{at_mut, set_default};

fn default_pod_template(object: &mut Value, path: &[&str]) {
    if let Some(spec) = at_mut(object, path) {
        pods::default_spec(spec);
    }
}

pub fn default_template(object: &mut Value) {
    default_pod_template(object, &["spec", "template", "spec"]);
    default_pod_template(object, &["template", "spec"]);
}

pub fn default_daemon_set(object: &mut Value) {
    default_template(object);
    set_default(object, &["metadata", "annotations", TEMPLATE_GENERATION], Value::from("1"));
    if object.str_at(&["spec", "updateStrategy", "type"]) == "RollingUpdate" {
        set_default(object, &["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"], Value::Int(1));
    }
    // a given `rollingUpdate` has both amounts, since they are not pointers in Go
    if object.at(&["spec", "updateStrategy", "rollingUpdate"]).is_some_and(|rolling| !rolling.is_null()) {
        for name in ["maxUnavailable", "maxSurge"] {
            set_default(object, &["spec", "updateStrategy", "rollingUpdate", name], Value::Int(0));
        }
    }
}

pub fn default_stateful_set(object: &mut Value) {
    default_template(object);
    if object.str_at(&["spec", "updateStrategy", "type"]).is_empty() && object.get("spec").is_some() {
        object.set_at(&["spec", "updateStrategy", "type"], Value::from("RollingUpdate"));
        set_default(object, &["spec", "updateStrategy", "rollingUpdate"], Value::object());
    }
    let strategy = object.at(&["spec", "updateStrategy"]).unwrap_or(&Value::Null);
    if text(strategy, "type") == "RollingUpdate" && is_set(strategy, "rollingUpdate") {
        set_default(object, &["spec", "updateStrategy", "rollingUpdate", "partition"], Value::Int(0));
        set_default(object, &["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"], Value::Int(1));
    }
    let claims = at_mut(object, &["spec", "volumeClaimTemplates"]).and_then(Value::as_array_mut);
    for claim in claims.into_iter().flatten() {
        claim.set_at(&["apiVersion"], Value::from("v1"));
        claim.set_at(&["kind"], Value::from("PersistentVolumeClaim"));
    }
}

/// The selector and the labels of a ReplicationController default to the labels of its template.
pub fn default_controller(object: &mut Value) {
    default_template(object);
    let labels = object.at(&["spec", "template"]).and_then(pods::template_labels).cloned();
    if let Some(labels) = labels.filter(|labels| !labels.is_empty()) {
        for path in [["spec", "selector"], ["metadata", "labels"]] {
            if object.at(&path).and_then(Value::as_object).is_none_or(Map::is_empty) {
                object.set_at(&path, Value::Object(labels.clone()));
            }
        }
    }
}

pub fn default_cron_job(object: &mut Value) {
    default_pod_template(object, &["spec", "jobTemplate", "spec", "template", "spec"]);
}

/// The labels of a Job default to those of its template.
pub fn default_labels(job: &mut Value) {
    let own = job.at(&["metadata", "labels"]).and_then(Value::as_object);
    if own.is_none_or(Map::is_empty)
        && let Some(labels) = job.at(&["spec", "template"]).and_then(pods::template_labels).cloned()
    {
        job.set_at(&["metadata", "labels"], Value::Object(labels));
    }
}

/// Defaults of Jobs that do not apply to the Job templates of CronJobs.
pub fn default_job(object: &mut Value) {
    default_template(object);
    default_labels(object);
    let Some(spec) = object.get_mut("spec") else { return };
    let retries = if spec.get("backoffLimitPerIndex").is_some() { i64::from(i32::MAX) } else { 6 };
    set_default(spec, &["backoffLimit"], Value::Int(retries));
    set_default(spec, &["completionMode"], Value::from("NonIndexed"));
    set_default(spec, &["manualSelector"], Value::Bool(false));
    let replaced = if spec.get("podFailurePolicy").is_some() { "Failed" } else { "TerminatingOrFailed" };
    set_default(spec, &["podReplacementPolicy"], Value::from(replaced));

    set_default(spec, &["suspend"], Value::Bool(false));
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        spec.set_at(&["completions"], Value::Int(1));
        spec.set_at(&["parallelism"], Value::Int(1));
    }
    set_default(spec, &["parallelism"], Value::Int(1));
}
