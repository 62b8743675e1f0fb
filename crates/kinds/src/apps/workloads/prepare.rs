//! Sets the labels and the selector of a Job, and counts the changes of workloads.

use machinery::Value;
use schema::shape::{named, same};

use resource::builtin::defaults::set_default;

/// The labels that the Pods of a Job get, each with the field of the Job's metadata that is its value.
pub const JOB_LABELS: [(&str, &str); 4] = [
    ("batch.kubernetes.io/controller-uid", "uid"),
    ("batch.kubernetes.io/job-name", "name"),
    ("controller-uid", "uid"),
    ("job-name", "name"),
];

/// Gives a new Job the selector by which it finds its Pods, and their template the labels, unless `manualSelector` leaves
/// both to the user. Labels that are there already stay; validation rejects wrong ones.
pub fn prepare_job(job: &mut Value, old: Option<&Value>) {
    let manual = job.is_true_at(&["spec", "manualSelector"]);
    if old.is_some() || manual {
        return;
    }
    // in Go, the labels of a Job without any default to the very map of its template's labels, so a label added to one
    // is in both; if the labels are equal, this is assumed to have happened
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

/// The annotation that stands for `spec.templateGeneration`, a field of the internal type that `apps/v1` does not have.
pub const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Counts the changes of the Pod template of a DaemonSet.
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

/// A change of annotations also increments the generation of a Deployment. If `spec` changes as well, it is incremented
/// once, as for other kinds.
pub fn prepare_deployment(object: &mut Value, old: Option<&Value>) {
    let annotations = |object: &Value| {
        let given = object.at(&["metadata", "annotations"]).and_then(Value::as_object);
        given.filter(|annotations| !annotations.is_empty()).cloned()
    };
    if let Some(old) =
        old.filter(|old| annotations(object) != annotations(old) && object.get("spec") == old.get("spec"))
    {
        let generation = old.int_at(&["metadata", "generation"]);
        object.set_at(&["metadata", "generation"], Value::Int(generation + 1));
    }
}
