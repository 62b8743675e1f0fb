//! Validation of Jobs and CronJobs.

use machinery::selector::LabelSelector;
use machinery::{Map, Value, names};
use schema::shape::{named, same, same_fields};

use crate::apps::workloads::{JOB_LABELS, shown_selector, template};
use crate::batch::failures::failure_policy;
use crate::batch::job_rules;
use crate::core::pods;
use crate::stages;
use resource::builtin::checks::{is_set, is_usable_selector, list, selector_operators, text};
use resource::builtin::defaults::restore;
use schema::at::{At, CheckStage};

pub fn validate_job(at: At) {
    let spec = at.field("spec");
    let (selector, labels) = (spec.field("selector"), spec.field("template.metadata.labels"));
    if selector.is_given() {
        selector_operators(selector)
    } else {
        selector.required("")
    }
    let given = pods::template_labels(spec.field("template").value).cloned().unwrap_or_default();
    let usable = Some(selector.value).filter(|selector| is_usable_selector(selector));
    let is_matched = |selector: LabelSelector| selector.matches(|key| given.get(key).and_then(Value::as_str));
    // an absent selector selects nothing; an invalid one is not compared
    if !selector.is_given() || usable.and_then(LabelSelector::from_value).is_some_and(|parsed| !is_matched(parsed)) {
        labels.in_stage(stages::SELECTION).invalid("`selector` does not match template `labels`");
    }
    job_spec(spec);
    if !at.is_update() {
        generated(at, &given);
    }
    let name = at.field_or_empty("metadata.name");
    if let Some(last) = spec.int("completions").filter(|_| is_indexed(spec)) {
        let pod = format!("{}-{}", name.as_text(), last.saturating_sub(1).max(0));
        if !names::dns1123_label(&pod).is_empty() {
            name.in_stage(CheckStage::Across)
                .invalid(format!("will not able to create pod with invalid DNS label: {pod}"));
        }
    }
    if let Some(old) = at.old.filter(|old| old.get("spec").is_some()) {
        job_changes(spec, old);
    }
}

/// Unless `manualSelector` is set, a Job must have the generated labels and select its Pods by them.
fn generated(job: At, labels: &Map) {
    let (selector, own) = (job.field("spec.selector"), job.field("spec.template.metadata.labels"));
    if !selector.is_given() || job.is_true("spec.manualSelector") {
        return;
    }
    let metadata = job.field("metadata");
    for (label, field) in JOB_LABELS {
        let (wanted, at) = (metadata.text(field), own.entry(label));
        let why = format!("must be '{wanted}'");
        match labels.get(label).and_then(Value::as_str) {
            None => at.required(why),
            Some(given) if given == wanted => {}
            Some(_) => at.with_value(own.value).invalid(why),
        }
    }
    let field_of = |label: &str| JOB_LABELS.iter().find(|(known, _)| *known == label).map(|(_, field)| field);
    let is_generated =
        |selector: LabelSelector| selector.matches(|label| field_of(label).map(|field| metadata.text(field)));
    let usable = Some(selector.value).filter(|selector| is_usable_selector(selector));
    if usable.and_then(LabelSelector::from_value).is_some_and(|parsed| !is_generated(parsed)) {
        let shown = shown_selector(selector.value);
        selector.in_stage(stages::SELECTION).shown_verbatim(&shown).invalid("`selector` not auto-generated");
    }
}

fn is_indexed(spec: At) -> bool {
    spec.text("completionMode") == "Indexed"
}

/// The immutable fields of a Job, whose stored object is `old`.
fn job_changes(spec: At, old: &Value) {
    let names = [
        "completions", "selector", "template", "completionMode", "podFailurePolicy", "backoffLimitPerIndex",
        "managedBy", "successPolicy",
    ];
    let form = named("batch.v1.JobSpec");
    for name in names {
        let at = spec.field(name);
        if name == "completions" && is_indexed(spec) {
            if at.is_given() && at.old != Some(at.value) && at.value != spec.field("parallelism").value {
                at.in_stage(CheckStage::Across).invalid("can only be modified in tandem with spec.parallelism");
            }
        } else if name == "template" && waits(old) {
            waiting_template(at.field("spec"));
        } else if !form.field(name).is_some_and(|field| same(Some(at.value), at.old, field)) {
            at.in_stage(CheckStage::Change).shown_verbatim(&shown_part(name, at.value)).invalid("field is immutable");
        }
    }
}

/// Whether a Job is suspended and has no active Pods, so that it waits to start or to continue.
fn waits(job: &Value) -> bool {
    let is_suspended = job.is_true_at(&["spec", "suspend"]);
    let status = job.get("status").unwrap_or(&Value::Null);
    let is_active = status.get("active").and_then(Value::as_int).is_some_and(|active| active != 0);
    let is_stopped = |condition: &Value| text(condition, "type") == "Suspended" && text(condition, "status") == "True";
    let has_stopped = || !is_set(status, "startTime") || list(status, "conditions").iter().any(is_stopped);
    is_suspended && !is_active && has_stopped()
}

/// Validates the template of a waiting Job: the fields that decide where its Pods run and what they need may still
/// change.
fn waiting_template(spec: At) {
    let (new, mut old) = (spec.value, spec.old.cloned().unwrap_or_default());
    restore(&mut old, new, &["affinity", "nodeAffinity"]);
    ["nodeSelector", "tolerations", "schedulingGates"].into_iter().for_each(|name| restore(&mut old, new, &[name]));
    match (new.get("affinity"), old.get("affinity")) {
        (Some(_), None) => old.set_at(&["affinity"], Value::object()),
        (None, Some(bare)) if bare.as_object().is_some_and(Map::is_empty) => drop(old.remove_at(&["affinity"])),
        _ => {}
    }
    for kind in ["containers", "initContainers"] {
        let containers = old.get_mut(kind).and_then(Value::as_array_mut).into_iter().flatten();
        let pairs = containers.zip(list(new, kind));
        for (before, now) in pairs.filter(|(before, now)| text(before, "name") == text(now, "name")) {
            restore(before, now, &["resources"]);
        }
    }
    if !same_fields(new, &old, named("core.v1.PodSpec"), &[]) {
        spec.shown_as_go("core.PodSpec").in_stage(CheckStage::Change).invalid("field is immutable");
    }
}

/// A part of the spec of a Job as Go prints it.
fn shown_part(name: &str, value: &Value) -> String {
    use machinery::types::internal_json;
    match name {
        _ if value.is_null() => "null".to_owned(),
        "template" => internal_json(value, "core.PodTemplateSpec"),
        "podFailurePolicy" => internal_json(value, "batch.PodFailurePolicy"),
        "successPolicy" => internal_json(value, "batch.SuccessPolicy"),
        "selector" => shown_selector(value),
        _ => internal_json(value, "any"),
    }
}

pub fn validate_cron_job(at: At) {
    const NAME_BYTES_MAX: usize = 52;
    if at.text("metadata.name").len() > NAME_BYTES_MAX {
        at.field("metadata.name").invalid("must be no more than 52 characters");
    }
    let spec = at.field("spec.jobTemplate.spec");
    let (selector, is_manual) = (spec.field("selector"), spec.field("manualSelector"));
    if selector.is_given() {
        let shown = shown_selector(selector.value);
        selector.in_stage(stages::SELECTION).shown_verbatim(&shown).invalid("`selector` will be auto-generated");
    }
    if spec.is_true("manualSelector") {
        is_manual.unsupported(&["nil", "false"]);
    }
    job_spec(spec);
}

fn job_spec(spec: At) {
    template(spec.field("template"));
    failure_policy(spec);
    job_rules::success_policy(spec);
}
