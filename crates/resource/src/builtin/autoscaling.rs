//! HorizontalPodAutoscalers of `autoscaling/v1`, which are stored as v2. Fields that v1 does not have are JSON in
//! annotations.

use machinery::field::{FieldError, FieldPath};
use machinery::quantity::Quantity;
use machinery::{Release, Value, json};

use super::autoscaling_versions::{has_metrics, newest};
use super::checks::{entries, items, list, named, text};
use super::podspec;

/// The defaults of `autoscaling/v1`.
pub fn default_v1(object: &mut Value) {
    let target = ["spec", "targetCPUUtilizationPercentage"];
    if object.get("spec").is_some() && object.at(&target).is_none_or(Value::is_null) && !has_metrics(object) {
        object.set_at(&target, Value::Int(80));
    }
}

/// The default scaling rules.
pub fn default(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    if spec.get("metrics").and_then(Value::as_array).is_none_or(<[Value]>::is_empty) {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        spec.set_at(&["metrics"], Value::Array(vec![metric]));
    }
    let Some(behavior) = spec.get_mut("behavior").filter(|behavior| !behavior.is_null()) else { return };
    let policy = |kind: &str, value: i64| json!({"type": kind, "value": value, "periodSeconds": 15});
    let up = vec![policy("Pods", 4), policy("Percent", 100)];
    let up = json!({"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": (Value::Array(up))});
    let down = json!({"selectPolicy": "Max", "policies": (Value::Array(vec![policy("Percent", 100)]))});
    for (name, rules) in [("scaleUp", up), ("scaleDown", down)] {
        for (field, value) in entries(&rules, &[]) {
            if behavior.at(&[name, field]).is_none_or(Value::is_null) {
                behavior.set_at(&[name, field], value.clone());
            }
        }
    }
}

pub fn validate(object: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let path = FieldPath::new("spec");
    let object = newest(object);
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let number = |name: &str| spec.get(name).and_then(Value::as_int);
    let (least, most) = (number("minReplicas"), number("maxReplicas").unwrap_or_default());
    if let Some(least) = least.filter(|least| *least < 0) {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&path.child("minReplicas"), &Value::Int(least), why));
    }
    if most == 0 {
        errors.push(FieldError::required(&path.child("maxReplicas"), ""));
    } else if most < 1 {
        let why = "must be greater than or equal to 1";
        errors.push(FieldError::invalid(&path.child("maxReplicas"), &Value::Int(most), why));
    }
    if least.is_some_and(|least| most < least) {
        let why = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid(&path.child("maxReplicas"), &Value::Int(most), why));
    }
    let scales_from_zero = |metric: &Value| ["Object", "External"].contains(&text(metric, "type"));
    if least == Some(0) && !list(spec, "metrics").iter().any(scales_from_zero) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden(&path.child("metrics"), why));
    }
    for (path, metric) in items(spec, "metrics", &path) {
        metric_errors(metric, &path, &mut errors);
    }
    for name in ["scaleUp", "scaleDown"] {
        if let Some(rules) = spec.at(&["behavior", name]) {
            scaling_errors(rules, &path.child("behavior").child(name), &mut errors);
        }
    }
    errors
}

fn scaling_errors(rules: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const SECONDS_MAX: i64 = 3600;
    let window = rules.get("stabilizationWindowSeconds").and_then(Value::as_int);
    if let Some(window) = window.filter(|window| !(0..=SECONDS_MAX).contains(window)) {
        let why = match window {
            ..0 => "must be greater than or equal to zero".to_owned(),
            _ => format!("must be less than or equal to {SECONDS_MAX}"),
        };
        errors.push(FieldError::invalid(&path.child("stabilizationWindowSeconds"), &Value::Int(window), why));
    }
    if list(rules, "policies").is_empty() {
        errors.push(FieldError::required(&path.child("policies"), "must specify at least one Policy"));
    }
    let tolerance = rules.get("tolerance").filter(|tolerance| !tolerance.is_null());
    let is_negative = |amount: Quantity| amount.compare(&Quantity::from_int(0)).is_lt();
    if let Some(tolerance) = tolerance.filter(|tolerance| Quantity::of(tolerance).is_ok_and(is_negative)) {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&path.child("tolerance"), tolerance, why));
    }
    const PERIOD_MAX: i64 = 1800;
    for (path, policy) in items(rules, "policies", path) {
        let period = policy.get("periodSeconds").and_then(Value::as_int).unwrap_or_default();
        if period > PERIOD_MAX {
            let why = format!("must be less than or equal to {PERIOD_MAX}");
            errors.push(FieldError::invalid(&path.child("periodSeconds"), &Value::Int(period), why));
        }
    }
}

/// The types of metrics, each with the name of its field.
const METRIC_SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

fn metric_errors(metric: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let kind = text(metric, "type");
    if kind.is_empty() {
        errors.push(FieldError::required(&path.child("type"), "must specify a metric source type"));
    }
    let own = METRIC_SOURCES.iter().find(|(known, _)| *known == kind).map(|(_, field)| *field);
    if own.is_none() {
        let known = METRIC_SOURCES.map(|(known, _)| known);
        let value = Value::from(kind);
        errors.push(named(FieldError::not_supported(&path.child("type"), &value, &known), &value));
    }
    let given: Vec<&str> = METRIC_SOURCES
        .iter()
        .map(|(_, field)| *field)
        .filter(|field| metric.get(field).is_some_and(|source| !source.is_null()))
        .collect();
    if let Some(own) = own
        && !given.contains(&own)
    {
        let why = "must populate information for the given metric source";
        errors.push(FieldError::required(&path.child(own), why));
    }
    for field in given.iter().filter(|field| given.len() != 1 && Some(**field) != own) {
        errors.push(FieldError::forbidden(&path.child(field), "must populate the given metric source only"));
    }
    // upstream validates only the first source that is set
    const ORDER: [&str; 5] = ["object", "external", "pods", "resource", "containerResource"];
    if let Some(field) = ORDER.into_iter().find(|field| given.contains(field)) {
        let source = metric.get(field).cloned().unwrap_or_default();
        source_errors(field, &source, &path.child(field), errors);
    }
}

fn source_errors(field: &str, source: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let is_resource = matches!(field, "resource" | "containerResource");
    if is_resource && text(source, "name").is_empty() {
        errors.push(FieldError::required(&path.child("name"), "must specify a resource name"));
    }
    if field == "containerResource" {
        container_errors(source, path, errors);
    }
    if !is_resource {
        let (own, name) = (path.child("metric").child("name"), source.str_at(&["metric", "name"]));
        if name.is_empty() {
            errors.push(FieldError::required(&own, "must specify a metric name"));
        }
        super::checks::invalid_each(&own, name, machinery::names::path_segment(name), errors);
    }
    let path = path.child("target");
    let target = source.get("target").unwrap_or(&Value::Null);
    target_type(target, &path, errors);
    let is_set = |name: &str| target.get(name).is_some_and(|value| !value.is_null());
    let (value, average, share) = (is_set("value"), is_set("averageValue"), is_set("averageUtilization"));
    let mut required = |name: &str, why: &str| errors.push(FieldError::required(&path.child(name), why));
    match field {
        "pods" if !average => required("averageValue", "must specify a positive target averageValue"),
        "object" if !value && !average => {
            required("averageValue", "must set either a target value or averageValue");
        }
        "external" if !value && !average => {
            required("averageValue", "must set either a target value for metric or a per-pod target");
        }
        "resource" | "containerResource" if !share && !average => {
            required("averageUtilization", "must set either a target raw value or a target utilization");
        }
        _ => {}
    }
    if is_resource && share && average {
        let why = "may not set both a target raw value and a target utilization";
        errors.push(FieldError::forbidden(&path.child("averageValue"), why));
    }
    if field == "external" && value && average {
        let why = "may not set both a target value for metric and a per-pod target";
        errors.push(FieldError::forbidden(&path.child("value"), why));
    }
}

/// The names of the resource and of the container.
fn container_errors(source: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let (resource, container, own) = (text(source, "name"), text(source, "container"), path.child("container"));
    if !resource.is_empty() {
        crate::builtin::at::at_path(&Value::Null, &path.child("name"), errors, |at| {
            podspec::container_resource(resource, at)
        });
    }
    match container {
        "" => errors.push(FieldError::required(&own, "must specify a container")),
        name => super::checks::invalid_each(&own, name, machinery::names::dns1123_label(name), errors),
    }
}

fn target_type(target: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let kind = text(target, "type");
    if kind.is_empty() {
        errors.push(FieldError::required(&path.child("type"), "must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind) {
        let why = "must be either Utilization, Value, or AverageValue";
        let value = Value::from(kind);
        errors.push(named(FieldError::invalid(&path.child("type"), &value, why), &value));
    }
    for name in ["value", "averageValue"] {
        let Some(given) = target.get(name).filter(|given| !given.is_null()) else { continue };
        if Quantity::of(given).is_ok_and(|amount| amount.compare(&Quantity::from_int(0)).is_le()) {
            errors.push(FieldError::invalid(&path.child(name), given, "must be positive"));
        }
    }
    if let Some(share) = target.get("averageUtilization").filter(|share| share.as_int().is_some_and(|s| s < 1)) {
        errors.push(FieldError::invalid(&path.child("averageUtilization"), share, "must be greater than 0"));
    }
}
