//! What the server sets in workloads: the selector of a Job, and how changes are counted.

use machinery::Value;
use schema::shape::{named, same};

use crate::builtin::defaults::set_default;

/// The labels of the Pods of a Job, and the field of its metadata that each has.
pub(super) const JOB_LABELS: [(&str, &str); 4] = [
    ("batch.kubernetes.io/controller-uid", "uid"),
    ("batch.kubernetes.io/job-name", "name"),
    ("controller-uid", "uid"),
    ("job-name", "name"),
];

/// A Job without a selector of its own selects the Pods that have its uid. Labels that it has stay, and are refused
/// later.
pub fn prepare_job(job: &mut Value, old: Option<&Value>) {
    let manual = job.at(&["spec", "manualSelector"]).and_then(Value::as_bool).unwrap_or_default();
    if old.is_some() || manual {
        return;
    }
    // labels that default to those of the template are the same map in Go
    let labels = job.at(&["metadata", "labels"]);
    let shares = labels.is_some() && labels == job.at(&["spec", "template", "metadata", "labels"]);
    for (label, field) in JOB_LABELS {
        let value = Value::from(job.str_at(&["metadata", field]));
        set_default(job, &["spec", "template", "metadata", "labels", label], value);
    }
    if shares {
        let labels = job.at(&["spec", "template", "metadata", "labels"]).cloned().unwrap_or_default();
        job.set_at(&["metadata", "labels"], labels);
    }
    let uid = Value::from(job.str_at(&["metadata", "uid"]));
    set_default(job, &["spec", "selector", "matchLabels", JOB_LABELS[0].0], uid);
}

/// Stands for a field that v1 does not have, so that metadata alone do not show it.
pub const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Counts the changes of the template in an annotation, which stands for a field that v1 does not have.
pub fn prepare_daemon_set(object: &mut Value, old: Option<&Value>) {
    let generation = match old {
        None => 1,
        Some(old) => {
            let text = old.str_at(&["metadata", "annotations", TEMPLATE_GENERATION]);
            const TEMPLATE: &[&str] = &["spec", "template"];
            let template = named("apps.v1.DaemonSetSpec").field("template");
            let is_same = template.is_some_and(|field| same(object.at(TEMPLATE), old.at(TEMPLATE), field));
            text.parse::<i64>().unwrap_or_default() + i64::from(!is_same)
        }
    };
    object.set_at(&["metadata", "annotations", TEMPLATE_GENERATION], Value::from(generation.to_string()));
}

/// Changes of annotations also increment the generation of a Deployment.
pub fn prepare_deployment(object: &mut Value, old: Option<&Value>) {
    let annotations = |object: &Value| {
        let given = object.at(&["metadata", "annotations"]).and_then(Value::as_object);
        given.filter(|annotations| !annotations.is_empty()).cloned()
    };
    if let Some(old) =
        old.filter(|old| annotations(object) != annotations(old) && object.get("spec") == old.get("spec"))
    {
        let generation = old.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or_default();
        object.set_at(&["metadata", "generation"], Value::Int(generation + 1));
    }
}
