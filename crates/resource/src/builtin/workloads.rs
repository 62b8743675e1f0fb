//! Workloads and some other kinds: defaults and validation that depend on several fields.

use machinery::field::{FieldError, FieldPath};
use machinery::selector::LabelSelector;
use machinery::{Map, Release, Value, json, names};

use super::checks::{is_set, items, list, text};
use super::{claim_templates, job_rules, pods, rollouts};

pub fn or_else(object: &mut Value, path: &[&str], value: Value) {
    if object.at(path).is_none_or(Value::is_null) {
        object.set_at(path, value);
    }
}

pub fn at_mut<'a>(object: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    path.iter().try_fold(object, |value, name| value.get_mut(name))
}

fn default_pod_template(object: &mut Value, path: &[&str]) {
    if let Some(spec) = at_mut(object, path) {
        pods::default_spec(spec);
    }
}

pub fn default_template(object: &mut Value) {
    default_pod_template(object, &["spec", "template", "spec"]);
    default_pod_template(object, &["template", "spec"]);
}

pub fn default_deployment(object: &mut Value) {
    default_template(object);
    if object.str_at(&["spec", "strategy", "type"]) == "RollingUpdate" {
        or_else(object, &["spec", "strategy", "rollingUpdate", "maxUnavailable"], Value::from("25%"));
        or_else(object, &["spec", "strategy", "rollingUpdate", "maxSurge"], Value::from("25%"));
    }
}

pub fn default_daemon_set(object: &mut Value) {
    default_template(object);
    or_else(object, &["metadata", "annotations", TEMPLATE_GENERATION], Value::from("1"));
    if object.str_at(&["spec", "updateStrategy", "type"]) == "RollingUpdate" {
        or_else(object, &["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"], Value::Int(1));
    }
    // what is set has both amounts, as numbers that are no pointers in Go
    if object.at(&["spec", "updateStrategy", "rollingUpdate"]).is_some_and(|rolling| !rolling.is_null()) {
        for name in ["maxUnavailable", "maxSurge"] {
            or_else(object, &["spec", "updateStrategy", "rollingUpdate", name], Value::Int(0));
        }
    }
}

pub fn default_stateful_set(object: &mut Value) {
    default_template(object);
    if object.str_at(&["spec", "updateStrategy", "type"]).is_empty() && object.get("spec").is_some() {
        object.set_at(&["spec", "updateStrategy", "type"], Value::from("RollingUpdate"));
        or_else(object, &["spec", "updateStrategy", "rollingUpdate"], Value::object());
    }
    let strategy = object.at(&["spec", "updateStrategy"]).unwrap_or(&Value::Null);
    if text(strategy, "type") == "RollingUpdate" && is_set(strategy, "rollingUpdate") {
        or_else(object, &["spec", "updateStrategy", "rollingUpdate", "partition"], Value::Int(0));
        or_else(object, &["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"], Value::Int(1));
    }
    let kept = json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
    or_else(object, &["spec", "persistentVolumeClaimRetentionPolicy"], kept);
    let claims = at_mut(object, &["spec", "volumeClaimTemplates"]).and_then(Value::as_array_mut);
    for claim in claims.into_iter().flatten() {
        or_else(claim, &["apiVersion"], Value::from("v1"));
        or_else(claim, &["kind"], Value::from("PersistentVolumeClaim"));
    }
}

/// Selector and labels of a ReplicationController default to the labels of its template.
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

/// Defaults of Jobs that do not apply to the Job templates of CronJobs.
pub fn default_job(object: &mut Value) {
    default_template(object);
    let labels = object.at(&["spec", "template"]).and_then(pods::template_labels).cloned();
    if let Some(labels) = labels {
        let own = object.at(&["metadata", "labels"]).and_then(Value::as_object);
        if own.is_none_or(Map::is_empty) {
            object.set_at(&["metadata", "labels"], Value::Object(labels));
        }
    }
    let Some(spec) = object.get_mut("spec") else { return };
    let retries = if spec.get("backoffLimitPerIndex").is_some() { i64::from(i32::MAX) } else { 6 };
    or_else(spec, &["backoffLimit"], Value::Int(retries));
    or_else(spec, &["completionMode"], Value::from("NonIndexed"));
    or_else(spec, &["manualSelector"], Value::Bool(false));
    let replaced = if spec.get("podFailurePolicy").is_some() { "Failed" } else { "TerminatingOrFailed" };
    or_else(spec, &["podReplacementPolicy"], Value::from(replaced));

    or_else(spec, &["suspend"], Value::Bool(false));
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        spec.set_at(&["completions"], Value::Int(1));
        spec.set_at(&["parallelism"], Value::Int(1));
    }
    or_else(spec, &["parallelism"], Value::Int(1));
}

const JOB_LABELS: [(&str, &str); 4] = [
    ("batch.kubernetes.io/controller-uid", "uid"),
    ("batch.kubernetes.io/job-name", "name"),
    ("controller-uid", "uid"),
    ("job-name", "name"),
];

/// A Job without a selector of its own selects the Pods that have its uid.
pub fn prepare_job(job: &mut Value, old: Option<&Value>) {
    let manual = job.at(&["spec", "manualSelector"]).and_then(Value::as_bool).unwrap_or_default();
    if old.is_some() || manual {
        return;
    }
    // labels that default to those of the template are the same map in Go
    let shares = job.at(&["metadata", "labels"]) == job.at(&["spec", "template", "metadata", "labels"]);
    for (label, field) in JOB_LABELS {
        let value = Value::from(job.str_at(&["metadata", field]));
        job.set_at(&["spec", "template", "metadata", "labels", label], value);
    }
    if shares {
        let labels = job.at(&["spec", "template", "metadata", "labels"]).cloned().unwrap_or_default();
        job.set_at(&["metadata", "labels"], labels);
    }
    let uid = Value::from(job.str_at(&["metadata", "uid"]));
    job.set_at(&["spec", "selector", "matchLabels", JOB_LABELS[0].0], uid);
}

/// The generation of a PriorityClass never changes.
pub fn prepare_priority_class(object: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        object.set_at(&["metadata", "generation"], Value::Int(1));
    }
}

/// Requests of a container default to its limits.
pub fn default_limit_range(range: &mut Value) {
    let limits = range.get_mut("spec").and_then(|spec| spec.get_mut("limits")).and_then(Value::as_array_mut);
    for item in limits.into_iter().flatten().filter(|item| text(item, "type") == "Container") {
        fill(item, "default", "max");
        fill(item, "defaultRequest", "default");
        fill(item, "defaultRequest", "min");
    }
}

/// Completes a list of resources by another.
fn fill(item: &mut Value, name: &str, by: &str) {
    let given = item.get(by).and_then(Value::as_object).cloned().unwrap_or_default();
    given.iter().for_each(|(resource, amount)| or_else(item, &[name, resource], amount.clone()));
}

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Counts the changes of the template in an annotation, which stands for a field that v1 does not have.
pub fn prepare_daemon_set(object: &mut Value, old: Option<&Value>) {
    let generation = match old {
        None => 1,
        Some(old) => {
            let text = old.str_at(&["metadata", "annotations", TEMPLATE_GENERATION]);
            let template = ["spec", "template"];
            text.parse::<i64>().unwrap_or_default() + i64::from(object.at(&template) != old.at(&template))
        }
    };
    object.set_at(&["metadata", "annotations", TEMPLATE_GENERATION], Value::from(generation.to_string()));
}

/// A Deployment's generation counts the changes of its annotations, too.
pub fn prepare_deployment(object: &mut Value, old: Option<&Value>) {
    let annotations = ["metadata", "annotations"];
    if let Some(old) =
        old.filter(|old| object.at(&annotations) != old.at(&annotations) && object.get("spec") == old.get("spec"))
    {
        let generation = old.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or_default();
        object.set_at(&["metadata", "generation"], Value::Int(generation + 1));
    }
}

/// A generation that counts the changes of labels, too. That of the rest is counted afterwards.
pub fn count_labels(object: &mut Value, old: Option<&Value>) {
    let path = ["metadata", "labels"];
    let Some(old) = old else { return };
    let unchanged = |object: &Value| {
        let mut object = object.clone();
        ["metadata", "apiVersion", "kind", "status"].iter().for_each(|name| drop(object.remove_at(&[name])));
        object
    };
    if object.at(&path) != old.at(&path) && unchanged(object) == unchanged(old) {
        let generation = old.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or_default();
        object.set_at(&["metadata", "generation"], Value::Int(generation + 1));
    }
}

/// The data of a ControllerRevision does not change.
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

/// A PodTemplate.
pub fn validate_pod_template(object: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    template_errors(object.get("template").unwrap_or(&Value::object()), &FieldPath::new("template"), &mut errors);
    errors
}

/// A policy is one for incoming traffic, and for outgoing traffic if it has rules for that.
pub fn default_network_policy(policy: &mut Value) {
    let types = policy.at(&["spec", "policyTypes"]).and_then(Value::as_array).unwrap_or_default();
    if types.is_empty() {
        let outgoing = policy.at(&["spec", "egress"]).and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
        let types = if outgoing { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        policy.set_at(&["spec", "policyTypes"], types);
    }
}

/// A selector as Go prints it.
fn shown_selector(selector: &Value) -> String {
    machinery::types::published_json(selector, "meta.v1.LabelSelector")
}

/// An error that shows a value as Go prints it.
pub fn invalid_shown(path: &FieldPath, shown: String, why: impl Into<String>) -> FieldError {
    FieldError { value: shown, ..FieldError::invalid(path, &Value::Null, why) }
}

/// DaemonSets, Deployments, ReplicaSets and StatefulSets.
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
                errors.push(FieldError::invalid(&path.child("selector"), selector, why));
            }
        }
    }
    validate_template(object, selector, &path, &mut errors);
    rollouts::check(object, &path, &mut errors);
    if kind == "StatefulSet" {
        claim_templates::check(object, old, &path, &mut errors);
    }
    if let Some(old) = old.and_then(|old| old.at(&["spec", "selector"]))
        && selector != Some(old)
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

/// Whether a selector can be used: its labels and expressions are valid.
fn is_usable(selector: &Value) -> bool {
    let mut errors = vec![];
    pods::selector_operators(Some(selector), &FieldPath::root(), &mut errors);
    errors.extend(super::checks::label_selector(selector, &FieldPath::root()));
    errors.is_empty()
}

fn validate_template(object: &Value, selector: Option<&Value>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let empty = Value::object();
    let (template, template_path) = (object.at(&["spec", "template"]).unwrap_or(&empty), path.child("template"));
    let labels = pods::template_labels(template).cloned().unwrap_or_default();
    let usable = selector.filter(|selector| is_usable(selector));
    let is_plain = object.str_at(&["kind"]) == "ReplicationController";
    let is_reported = !["ReplicationController", "DaemonSet"].contains(&object.str_at(&["kind"]));
    if let (Some(selector), None, true) = (selector, usable, is_reported) {
        let is_set = object.str_at(&["kind"]) == "StatefulSet";
        let (shown, why) = (shown_selector(selector), if is_set { "" } else { "invalid label selector" });
        errors.push(invalid_shown(&path.child("selector"), shown, why));
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
    let (spec, path) = (template.get("spec").unwrap_or(&empty), template_path.child("spec"));
    let policy = text(spec, "restartPolicy");
    if policy != "Always" && !policy.is_empty() {
        errors.push(FieldError::not_supported(&path.child("restartPolicy"), &Value::from(policy), &["Always"]));
    }
    if spec.get("activeDeadlineSeconds").is_some_and(|seconds| !seconds.is_null()) {
        let kind = object.str_at(&["kind"]);
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(&path.child("activeDeadlineSeconds"), why));
    }
}

/// The labels of a template as errors show them.
fn labels_or_null(template: &Value) -> Value {
    template.at(&["metadata", "labels"]).cloned().unwrap_or_default()
}

/// The metadata and the spec of a template of Pods.
fn template_errors(template: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let (empty, null) = (Value::object(), Value::Null);
    // upstream leaves out `metadata`
    let labels = template.at(&["metadata", "labels"]).unwrap_or(&null);
    super::rule_checks::labels(labels, &path.child("labels"), errors);
    pods::validate_spec(template.get("spec").unwrap_or(&empty), &path.child("spec"), errors);
    if !list(template.get("spec").unwrap_or(&empty), "ephemeralContainers").is_empty() {
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

/// A Job.
pub fn validate_job(object: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, empty) = (FieldPath::new("spec"), Value::object());
    let spec = object.get("spec").unwrap_or(&empty);
    match spec.get("selector").filter(|selector| !selector.is_null()) {
        None => errors.push(FieldError::required(&path.child("selector"), "")),
        Some(selector) => pods::selector_operators(Some(selector), &path.child("selector"), &mut errors),
    }
    let template = spec.get("template").unwrap_or(&empty);
    let labels = pods::template_labels(template).cloned().unwrap_or_default();
    let parsed = spec.get("selector").and_then(LabelSelector::from_value);
    if !parsed.is_some_and(|selector| selector.matches(|key| labels.get(key).and_then(Value::as_str))) {
        let why = "`selector` does not match template `labels`";
        let path = path.child("template").child("metadata").child("labels");
        errors.push(FieldError::invalid(&path, &labels_or_null(template), why));
    }
    job_errors(spec, &path, &mut errors);
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
        let started = old.at(&["status", "startTime"]).is_some_and(|time| !time.is_null());
        let suspended = before.get("suspend").and_then(Value::as_bool).unwrap_or_default();
        job_changes(spec, before, suspended && !started, &path, &mut errors);
    }
    errors
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
    for name in names {
        let (new, old) = (spec.get(name), old.get(name));
        if name == "completions" && is_indexed(spec) {
            if let Some(new) = new.filter(|new| Some(*new) != old && Some(*new) != spec.get("parallelism")) {
                let why = "can only be modified in tandem with spec.parallelism";
                errors.push(FieldError::invalid(&path.child(name), new, why));
            }
            continue;
        }
        if name == "template" && waits {
            waiting_template(new, old, &path.child("template").child("spec"), errors);
        } else if new != old {
            errors.push(invalid_shown(&path.child(name), shown_part(name, new), "field is immutable"));
        }
    }
}

/// The template of a Job that waits to be started: where its Pods may run, and what they need, still changes.
fn waiting_template(new: Option<&Value>, old: Option<&Value>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let (empty, new) = (Value::object(), new.and_then(|template| template.get("spec")));
    let (new, mut old) = (new.unwrap_or(&empty), old.and_then(|old| old.get("spec")).cloned().unwrap_or_default());
    let mut take = |path: &[&str]| match new.at(path) {
        Some(value) => old.set_at(path, value.clone()),
        None => drop(old.remove_at(path)),
    };
    take(&["affinity", "nodeAffinity"]);
    ["nodeSelector", "tolerations", "schedulingGates"].into_iter().for_each(|name| take(&[name]));
    if old.get("affinity").and_then(Value::as_object).is_some_and(Map::is_empty) {
        old.remove_at(&["affinity"]);
    }
    let containers = old.get_mut("containers").and_then(Value::as_array_mut).into_iter().flatten();
    for (before, container) in containers.zip(list(new, "containers")) {
        match container.get("resources") {
            Some(resources) => before.set_at(&["resources"], resources.clone()),
            None => drop(before.remove_at(&["resources"])),
        }
    }
    if *new != old {
        let shown = machinery::types::internal_json(new, "core.PodSpec", false);
        errors.push(invalid_shown(path, shown, "field is immutable"));
    }
}

/// A part of a Job's spec as Go prints it.
fn shown_part(name: &str, value: Option<&Value>) -> String {
    use machinery::types::internal_json;
    let Some(value) = value else { return "null".to_owned() };
    match name {
        "template" => internal_json(value, "core.PodTemplateSpec", false),
        "podFailurePolicy" => internal_json(value, "batch.PodFailurePolicy", false),
        "successPolicy" => internal_json(value, "batch.SuccessPolicy", false),
        "selector" => shown_selector(value),
        _ => machinery::field::render(value),
    }
}

/// A template of Jobs.
pub fn validate_cron_job(object: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, empty) = (FieldPath::new("spec"), Value::object());
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
        (object.at(&["spec", "jobTemplate", "spec"]).unwrap_or(&empty), path.child("jobTemplate").child("spec"));
    if let Some(selector) = spec.get("selector").filter(|selector| !selector.is_null()) {
        let why = "`selector` will be auto-generated";
        errors.push(invalid_shown(&path.child("selector"), shown_selector(selector), why));
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
    let empty = Value::object();
    let template = spec.get("template").unwrap_or(&empty);
    template_errors(template, &path.child("template"), errors);
    let is_set = |name: &str| spec.get(name).is_some_and(|value| !value.is_null());
    let value = |name: &str| spec.get(name).cloned().unwrap_or_default();
    let indexed = is_indexed(spec);
    if indexed {
        if !is_set("completions") {
            errors.push(FieldError::required(&path.child("completions"), "when completion mode is Indexed"));
        }
    } else {
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
                errors.push(FieldError::not_supported(&path, &Value::from(other), &["OnFailure", "Never"]));
            }
        }
    }
    failure_policy(spec, policy, path, errors);
    job_rules::success_policy(spec, path, errors);
    if is_set("podFailurePolicy") && text(spec, "podReplacementPolicy") == "TerminatingOrFailed" {
        let path = path.child("podReplacementPolicy");
        errors.push(FieldError::not_supported(&path, &Value::from("TerminatingOrFailed"), &["Failed"]));
    }
    let number = |name: &str| spec.get(name).and_then(Value::as_int);
    if let Some(most) = number("maxFailedIndexes")
        && indexed
        && number("completions").is_some_and(|all| most > all)
    {
        let why = "must be less than or equal to completions";
        errors.push(FieldError::invalid(&path.child("maxFailedIndexes"), &Value::Int(most), why));
    }
}

/// How a Job responds to failed Pods.
fn failure_policy(spec: &Value, restart: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
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
    for (path, rule) in items(policy, "rules", &path.child("podFailurePolicy")) {
        let action = text(rule, "action");
        if action.is_empty() {
            let why = "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]";
            errors.push(FieldError::required(&path.child("action"), why));
        } else if !["Count", "FailIndex", "FailJob", "Ignore"].contains(&action) {
            let known = ["Count", "FailIndex", "FailJob", "Ignore"];
            errors.push(FieldError::not_supported(&path.child("action"), &Value::from(action), &known));
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

fn exit_codes(codes: &Value, containers: &[&str], path: &FieldPath, errors: &mut Vec<FieldError>) {
    let (operator, name) = (text(codes, "operator"), text(codes, "containerName"));
    if operator.is_empty() {
        errors.push(FieldError::required(&path.child("operator"), "valid values: [\"In\" \"NotIn\"]"));
    } else if !["In", "NotIn"].contains(&operator) {
        errors.push(FieldError::not_supported(&path.child("operator"), &Value::from(operator), &["In", "NotIn"]));
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
    for (i, value) in values.iter().enumerate() {
        let path = path.child("values").index(i);
        if operator == "In" && value.as_int() == Some(0) {
            errors.push(FieldError::invalid(&path, value, "must not be 0 for the In operator"));
        }
        if values[..i].contains(value) {
            errors.push(FieldError::duplicate(&path, value));
        }
    }
    if values.windows(2).any(|pair| pair[0].as_int() > pair[1].as_int()) {
        let given = Value::Array(values.to_vec());
        errors.push(FieldError::invalid(&path.child("values"), &given, "must be ordered"));
    }
}

/// The numbers of replicas in a status: none is greater than that of all replicas.
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
