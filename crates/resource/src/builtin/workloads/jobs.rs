//! Validation of Jobs and CronJobs.

use machinery::field::{FieldError, FieldPath};
use machinery::selector::LabelSelector;
use machinery::{Map, Release, Value, names};
use schema::shape::{named, same, same_fields};

use super::failures::failure_policy;
use super::prepare::JOB_LABELS;
use super::{labels_or_null, shown_selector, template_errors};
use crate::builtin::checks::{invalid_shown, is_set, is_usable_selector, list, text};
use crate::builtin::defaults::restore;
use crate::builtin::{checks, job_rules, pods};

pub fn validate_job(object: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, spec) = (FieldPath::new("spec"), object.get("spec").unwrap_or(&Value::Null));
    match spec.get("selector").filter(|selector| !selector.is_null()) {
        None => errors.push(FieldError::required(&path.child("selector"), "")),
        Some(selector) => pods::selector_operators(Some(selector), &path.child("selector"), &mut errors),
    }
    let template = spec.get("template").unwrap_or(&Value::Null);
    let labels = pods::template_labels(template).cloned().unwrap_or_default();
    let usable = spec.get("selector").filter(|selector| !selector.is_null() && is_usable_selector(selector));
    let parsed = usable.and_then(LabelSelector::from_value);
    let is_matched = |selector: LabelSelector| selector.matches(|key| labels.get(key).and_then(Value::as_str));
    // an absent selector selects nothing; an invalid one is not compared
    let is_unmatched = match spec.get("selector").filter(|selector| !selector.is_null()) {
        None => true,
        Some(_) => parsed.is_some_and(|selector| !is_matched(selector)),
    };
    if is_unmatched {
        let why = "`selector` does not match template `labels`";
        let path = path.child("template").child("metadata").child("labels");
        errors.push(FieldError::invalid(&path, &labels_or_null(template), why));
    }
    job_errors(spec, &path, &mut errors);
    if old.is_none() {
        generated_errors(object, &labels, &path, &mut errors);
    }
    let name = object.str_at(&["metadata", "name"]);
    if let Some(last) = spec.get("completions").and_then(Value::as_int).filter(|_| is_indexed(spec)) {
        let pod = format!("{name}-{}", last.saturating_sub(1).max(0));
        let problems = names::dns1123_label(&pod);
        if !problems.is_empty() {
            let why = format!("will not able to create pod with invalid DNS label: {pod}");
            errors.push(FieldError::invalid(&FieldPath::new("metadata").child("name"), &Value::from(name), why));
        }
    }
    if let Some((old, before)) = old.and_then(|old| Some((old, old.get("spec")?))) {
        job_changes(spec, before, waits(old), &path, &mut errors);
    }
    errors
}

/// Unless `manualSelector` is set, a Job must have the generated labels and select its Pods by them.
fn generated_errors(job: &Value, labels: &Map, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let spec = job.get("spec").unwrap_or(&Value::Null);
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    let is_manual = spec.get("manualSelector").and_then(Value::as_bool) == Some(true);
    let Some(selector) = selector.filter(|_| !is_manual) else { return };
    let path_of_labels = path.child("template").child("metadata").child("labels");
    for (label, field) in JOB_LABELS {
        let (wanted, path) = (job.str_at(&["metadata", field]), path_of_labels.key(label));
        let why = format!("must be '{wanted}'");
        match labels.get(label).and_then(Value::as_str) {
            None => errors.push(FieldError::required(&path, why)),
            Some(given) if given == wanted => {}
            Some(_) => errors.push(FieldError::invalid(&path, &Value::Object(labels.clone()), why)),
        }
    }
    let field_of = |label: &str| JOB_LABELS.iter().find(|(known, _)| *known == label).map(|(_, field)| field);
    let is_generated = |selector: LabelSelector| {
        selector.matches(|label| field_of(label).map(|field| job.str_at(&["metadata", field])))
    };
    let parsed = LabelSelector::from_value(selector).filter(|_| is_usable_selector(selector));
    if parsed.is_some_and(|parsed| !is_generated(parsed)) {
        let why = "`selector` not auto-generated";
        errors.push(invalid_shown(&path.child("selector"), shown_selector(selector), why));
    }
}

fn is_indexed(spec: &Value) -> bool {
    text(spec, "completionMode") == "Indexed"
}

/// The immutable fields of a Job.
fn job_changes(spec: &Value, old: &Value, waits: bool, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let names = [
        "completions",
        "selector",
        "template",
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ];
    let form = named("batch.v1.JobSpec");
    for name in names {
        let (new, old) = (spec.get(name), old.get(name));
        if name == "completions" && is_indexed(spec) {
            if let Some(new) = new.filter(|new| Some(*new) != old && Some(*new) != spec.get("parallelism")) {
                let why = "can only be modified in tandem with spec.parallelism";
                errors.push(FieldError::invalid(&path.child(name), new, why));
            }
            continue;
        }
        let field = form.field(name);
        if name == "template" && waits {
            waiting_template(new, old, &path.child("template").child("spec"), errors);
        } else if !field.is_some_and(|field| same(new, old, field)) {
            errors.push(invalid_shown(&path.child(name), shown_part(name, new), "field is immutable"));
        }
    }
}

/// Whether a Job is suspended and has no active Pods, so that it waits to start or to continue.
fn waits(job: &Value) -> bool {
    let is_suspended = job.at(&["spec", "suspend"]).and_then(Value::as_bool).unwrap_or_default();
    let status = job.get("status").unwrap_or(&Value::Null);
    let is_active = status.get("active").and_then(Value::as_int).is_some_and(|active| active != 0);
    let is_stopped = |condition: &Value| text(condition, "type") == "Suspended" && text(condition, "status") == "True";
    let has_stopped = || !is_set(status, "startTime") || list(status, "conditions").iter().any(is_stopped);
    is_suspended && !is_active && has_stopped()
}

/// Validates the template of a waiting Job: the fields that decide where its Pods run and what they need may still
/// change.
fn waiting_template(new: Option<&Value>, old: Option<&Value>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let new = new.and_then(|template| template.get("spec"));
    let (new, mut old) =
        (new.unwrap_or(&Value::Null), old.and_then(|old| old.get("spec")).cloned().unwrap_or_default());
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
        let shown = machinery::types::internal_json(new, "core.PodSpec", false);
        errors.push(invalid_shown(path, shown, "field is immutable"));
    }
}

/// A part of the spec of a Job as Go prints it.
fn shown_part(name: &str, value: Option<&Value>) -> String {
    use machinery::types::internal_json;
    let Some(value) = value else { return "null".to_owned() };
    match name {
        "template" => internal_json(value, "core.PodTemplateSpec", false),
        "podFailurePolicy" => internal_json(value, "batch.PodFailurePolicy", false),
        "successPolicy" => internal_json(value, "batch.SuccessPolicy", false),
        "selector" => shown_selector(value),
        _ => internal_json(value, "any", false),
    }
}

pub fn validate_cron_job(object: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let path = FieldPath::new("spec");
    const NAME_BYTES_MAX: usize = 52;
    let name = object.str_at(&["metadata", "name"]);
    if name.len() > NAME_BYTES_MAX {
        let why = "must be no more than 52 characters";
        errors.push(FieldError::invalid(&FieldPath::new("metadata").child("name"), &Value::from(name), why));
    }
    if object.str_at(&["spec", "concurrencyPolicy"]).is_empty() {
        errors.push(FieldError::required(&path.child("concurrencyPolicy"), ""));
    }
    let (spec, path) =
        (object.at(&["spec", "jobTemplate", "spec"]).unwrap_or(&Value::Null), path.child("jobTemplate").child("spec"));
    if let Some(selector) = spec.get("selector").filter(|selector| !selector.is_null()) {
        errors.push(invalid_shown(
            &path.child("selector"),
            shown_selector(selector),
            "`selector` will be auto-generated",
        ));
    }
    if spec.get("manualSelector").and_then(Value::as_bool) == Some(true) {
        let path = path.child("manualSelector");
        errors.push(FieldError::not_supported(&path, &Value::Bool(true), &["nil", "false"]));
    }
    job_errors(spec, &path, &mut errors);
    errors
}

/// The spec of a Job.
fn job_errors(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let template = spec.get("template").unwrap_or(&Value::Null);
    template_errors(template, &path.child("template"), errors);
    let is_set = |name: &str| spec.get(name).is_some_and(|value| !value.is_null());
    let value = |name: &str| spec.get(name).cloned().unwrap_or_default();
    let indexed = is_indexed(spec);
    if indexed {
        if !is_set("completions") {
            errors.push(FieldError::required(&path.child("completions"), "when completion mode is Indexed"));
        }
    } else if !is_set("completionMode") || text(spec, "completionMode") == "NonIndexed" {
        for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if is_set(name) {
                let why = "requires indexed completion mode";
                errors.push(FieldError::invalid(&path.child(name), &value(name), why));
            }
        }
    }
    if is_set("maxFailedIndexes") && !is_set("backoffLimitPerIndex") {
        errors.push(FieldError::required(&path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"));
    }
    let policy = template.str_at(&["spec", "restartPolicy"]);
    if !matches!(policy, "OnFailure" | "Never") {
        let path = path.child("template").child("spec").child("restartPolicy");
        match policy {
            "" | "Always" => {
                errors.push(FieldError::required(&path, "valid values: \"OnFailure\", \"Never\""));
            }
            other => {
                let given = Value::from(other);
                let error = FieldError::not_supported(&path, &given, &["OnFailure", "Never"]);
                errors.push(checks::named(error, &given));
            }
        }
    }
    failure_policy(spec, policy, path, errors);
    job_rules::success_policy(spec, path, errors);
    let known: &[&str] = if is_set("podFailurePolicy") { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    if is_set("podReplacementPolicy") && !known.contains(&text(spec, "podReplacementPolicy")) {
        let given = value("podReplacementPolicy");
        let error = FieldError::not_supported(&path.child("podReplacementPolicy"), &given, known);
        errors.push(checks::named(error, &given));
    }
    if indexed {
        index_limits(spec, path, errors);
    }
}

/// Limits how many indexes of an indexed Job may run at once or fail. The limits are lower if it has very many indexes.
fn index_limits(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const INDEXES_MAX: i64 = 100_000;
    const MANY_MAX: i64 = 10_000;
    let number = |name: &str| spec.get(name).and_then(Value::as_int);
    let mut invalid = |name: &str, number: i64, why: String| {
        errors.push(FieldError::invalid(&path.child(name), &Value::Int(number), why));
    };
    let (failed, parallel) = (number("maxFailedIndexes"), number("parallelism"));
    let completions = number("completions");
    if let Some(parallel) = parallel.filter(|parallel| *parallel > INDEXES_MAX) {
        let why = format!("must be less than or equal to {INDEXES_MAX} when completion mode is Indexed");
        invalid("parallelism", parallel, why);
    }
    if let Some(failed) = failed.filter(|failed| completions.is_some_and(|all| *failed > all)) {
        invalid("maxFailedIndexes", failed, "must be less than or equal to completions".to_owned());
    }
    if let Some(failed) = failed.filter(|failed| *failed > INDEXES_MAX) {
        invalid("maxFailedIndexes", failed, format!("must be less than or equal to {INDEXES_MAX}"));
    }
    if number("backoffLimitPerIndex").is_none() || completions.is_none_or(|all| all <= INDEXES_MAX) {
        return;
    }
    for (name, given) in [("parallelism", parallel), ("maxFailedIndexes", failed)] {
        if let Some(given) = given.filter(|given| *given > MANY_MAX) {
            let why = format!(
                "must be less than or equal to {MANY_MAX} when completions are above {INDEXES_MAX} and used with backoff limit per index"
            );
            invalid(name, given, why);
        }
    }
    if failed.is_none() {
        let why = format!("must be specified when completions is above {INDEXES_MAX}");
        errors.push(FieldError::required(&path.child("maxFailedIndexes"), why));
    }
}
