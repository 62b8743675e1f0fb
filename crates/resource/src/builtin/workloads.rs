//! Kinds that manage Pods, and a few small ones besides: defaults and validation that depend on several fields.

use machinery::field::{FieldError, FieldPath};
use machinery::selector::LabelSelector;
use machinery::{Map, Release, Value, json};

use super::checks::text;
use super::pods;

fn or_else(object: &mut Value, path: &[&str], value: Value) {
    if object.at(path).is_none_or(Value::is_null) {
        object.set_at(path, value);
    }
}

fn at_mut<'a>(object: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
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
        or_else(object, &["spec", "updateStrategy", "rollingUpdate", "maxSurge"], Value::Int(0));
    }
}

pub fn default_stateful_set(object: &mut Value) {
    default_template(object);
    if object.str_at(&["spec", "updateStrategy", "type"]) == "RollingUpdate" {
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
        or_else(object, &["spec", "selector"], Value::Object(labels.clone()));
        or_else(object, &["metadata", "labels"], Value::Object(labels));
    }
}

pub fn default_cron_job(object: &mut Value) {
    default_pod_template(object, &["spec", "jobTemplate", "spec", "template", "spec"]);
}

/// Jobs have defaults that templates of Jobs in CronJobs do not have.
pub fn default_job(object: &mut Value) {
    default_template(object);
    let Some(spec) = object.get_mut("spec") else { return };
    or_else(spec, &["backoffLimit"], Value::Int(6));
    or_else(spec, &["completionMode"], Value::from("NonIndexed"));
    or_else(spec, &["manualSelector"], Value::Bool(false));
    or_else(spec, &["podReplacementPolicy"], Value::from("TerminatingOrFailed"));
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
    for (label, field) in JOB_LABELS {
        let value = Value::from(job.str_at(&["metadata", field]));
        job.set_at(&["spec", "template", "metadata", "labels", label], value);
    }
    let labels = job.at(&["spec", "template", "metadata", "labels"]).cloned().unwrap_or_default();
    or_else(job, &["metadata", "labels"], labels);
    let uid = Value::from(job.str_at(&["metadata", "uid"]));
    job.set_at(&["spec", "selector", "matchLabels", JOB_LABELS[0].0], uid);
}

/// The generation of a PriorityClass never changes.
pub fn prepare_priority_class(object: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        object.set_at(&["metadata", "generation"], Value::Int(1));
    }
}

/// A Node's network of Pods, in both of its forms.
pub fn default_node(node: &mut Value) {
    let first = node.at(&["spec", "podCIDRs"]).and_then(Value::as_array).and_then(<[Value]>::first).cloned();
    match (first, text(node.get("spec").unwrap_or(&Value::Null), "podCIDR").to_owned()) {
        (Some(first), one) if one.is_empty() => node.set_at(&["spec", "podCIDR"], first),
        (None, one) if !one.is_empty() => node.set_at(&["spec", "podCIDRs"], Value::Array(vec![Value::from(one)])),
        _ => {}
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

/// The data of a ControllerRevision does not change.
pub fn validate_revision(object: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (path, data) = (FieldPath::new("data"), object.get("data").filter(|data| !data.is_null()));
    match (data, old.and_then(|old| old.get("data"))) {
        (None, _) => vec![FieldError::required(&path, "data is mandatory")],
        (Some(data), Some(old)) if data != old => vec![FieldError::invalid(&path, data, "field is immutable")],
        _ => vec![],
    }
}

/// Requests of a ResourceClaim, or of its template, are for one device.
pub fn default_resource_claim(object: &mut Value) {
    for path in [&["spec", "devices", "requests"][..], &["spec", "spec", "devices", "requests"]] {
        for request in at_mut(object, path).and_then(Value::as_array_mut).into_iter().flatten() {
            if request.str_at(&["exactly", "allocationMode"]) == "ExactCount" {
                or_else(request, &["exactly", "count"], Value::Int(1));
            }
        }
    }
}

/// A PodTemplate.
pub fn validate_pod_template(object: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let empty = Value::object();
    let spec = object.at(&["template", "spec"]).unwrap_or(&empty);
    pods::validate_spec(spec, &FieldPath::new("template.spec"), &mut errors);
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

/// DaemonSets, Deployments, ReplicaSets and StatefulSets.
pub fn validate(object: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let path = FieldPath::new("spec");
    let selector = object.at(&["spec", "selector"]);
    match selector {
        None | Some(Value::Null) if object.str_at(&["kind"]) == "DaemonSet" => {}
        None | Some(Value::Null) => errors.push(FieldError::required(&path.child("selector"), "")),
        Some(selector) if is_empty_selector(selector) => {
            let why = "empty selector is invalid for deployment";
            errors.push(FieldError::invalid(&path.child("selector"), selector, why));
        }
        Some(_) => {}
    }
    validate_template(object, selector, &path, &mut errors);
    if let Some(old) = old.and_then(|old| old.at(&["spec", "selector"]))
        && selector != Some(old)
    {
        let new = selector.cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&path.child("selector"), &new, "field is immutable"));
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
    let empty = Value::object();
    let (template, path) = (object.at(&["spec", "template"]).unwrap_or(&empty), path.child("template"));
    let labels = pods::template_labels(template).cloned().unwrap_or_default();
    let selects = |selector: &Value| {
        let parsed = LabelSelector::from_value(selector);
        parsed.is_none_or(|selector| selector.matches(|key| labels.get(key).and_then(Value::as_str)))
    };
    let is_selected = selector.is_some_and(|selector| is_empty_selector(selector) || selects(selector));
    if !is_selected {
        let labels = if labels.is_empty() { Value::Null } else { Value::Object(labels.clone()) };
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(&path.child("metadata").child("labels"), &labels, why));
    }
    let (spec, path) = (template.get("spec").unwrap_or(&empty), path.child("spec"));
    pods::validate_spec(spec, &path, errors);
    let policy = text(spec, "restartPolicy");
    if matches!(policy, "OnFailure" | "Never") {
        errors.push(FieldError::not_supported(&path.child("restartPolicy"), &Value::from(policy), &["Always"]));
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
    validate_template(object, Some(&wanted), &path, &mut errors);
    errors
}

pub fn validate_job(object: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let path = FieldPath::new("spec").child("template");
    let empty = Value::object();
    let spec = object.at(&["spec", "template", "spec"]).unwrap_or(&empty);
    pods::validate_spec(spec, &path.child("spec"), &mut errors);
    let policy = text(spec, "restartPolicy");
    if policy == "Always" {
        let path = path.child("spec").child("restartPolicy");
        let why = "valid values: \"OnFailure\", \"Never\"";
        errors.push(FieldError::required(&path, why));
    }
    if let Some(old) = old {
        for name in ["selector", "template", "completionMode"] {
            let (new, old) = (object.at(&["spec", name]), old.at(&["spec", name]));
            if new != old {
                let path = FieldPath::new("spec").child(name);
                errors.push(FieldError::invalid(&path, &new.cloned().unwrap_or_default(), "field is immutable"));
            }
        }
    }
    errors
}

/// A taint has the time at which it was added.
pub fn prepare_taint_rule(rule: &mut Value, old: Option<&Value>) {
    let path = ["spec", "taint", "timeAdded"];
    let taint = |object: &Value| {
        let mut taint = object.at(&["spec", "taint"]).cloned().unwrap_or_default();
        taint.remove_at(&["timeAdded"]);
        taint
    };
    let is_unset = rule.at(&path).is_none_or(Value::is_null);
    let changed = old.is_some_and(|old| taint(old) != taint(rule) && old.at(&path) == rule.at(&path));
    if rule.at(&["spec", "taint"]).is_some() && (is_unset || changed) {
        rule.set_at(&path, Value::from(base::clock::now_rfc3339()));
    }
}
