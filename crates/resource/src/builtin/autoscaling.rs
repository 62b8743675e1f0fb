//! HorizontalPodAutoscalers of `autoscaling/v1`, which are stored in v2. Fields that v1 does not have are JSON in annotations.

use std::borrow::Cow;

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, json};

use super::checks::{items, list, text};
use super::{BASE, BuiltIn, Form, StoredAs, tables};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

pub const FIRST: BuiltIn = BuiltIn {
    group: "autoscaling",
    version: "v1",
    kind: "HorizontalPodAutoscaler",
    plural: "horizontalpodautoscalers",
    singular: "horizontalpodautoscaler",
    short_names: &["hpa"],
    categories: &["all"],
    status: true,
    fresh_status: true,
    generation: true,
    form: Form::Named("autoscaling.v1.HorizontalPodAutoscaler"),
    stored_as: Some(&StoredAs { group: "autoscaling", to_stored, to_shown }),
    // what only v2 has is in annotations, which writers own as they are shown
    canonicalize: |object| *object = to_shown(to_stored(std::mem::take(object))),
    default: |object| {
        if object.at(&["spec", "minReplicas"]).is_none_or(Value::is_null) {
            object.set_at(&["spec", "minReplicas"], Value::Int(1));
        }
        let target = ["spec", "targetCPUUtilizationPercentage"];
        let has_metrics = object.at(&["metadata", "annotations", METRICS]).is_some();
        if object.get("spec").is_some() && object.at(&target).is_none_or(Value::is_null) && !has_metrics {
            object.set_at(&target, Value::Int(80));
        }
    },
    validate,
    columns: tables::AUTOSCALER,
    ..BASE
};

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
        for (field, value) in rules.as_object().into_iter().flat_map(machinery::Map::iter) {
            if behavior.at(&[name, field]).is_none_or(Value::is_null) {
                behavior.set_at(&[name, field], value.clone());
            }
        }
    }
}

pub fn validate(object: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (empty, path) = (Value::object(), FieldPath::new("spec"));
    let spec = object.get("spec").unwrap_or(&empty);
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
    // the form of v1 has one metric, which is validated as v2 stores it
    if let Some(share) = number("targetCPUUtilizationPercentage").filter(|share| *share < 1) {
        let path = path.child("metrics").index(0).child("resource").child("target").child("averageUtilization");
        errors.push(FieldError::invalid(&path, &Value::Int(share), "must be greater than 0"));
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
    const PERIOD_MAX: i64 = 1800;
    for (path, policy) in items(rules, "policies", path) {
        let period = policy.get("periodSeconds").and_then(Value::as_int).unwrap_or_default();
        if period > PERIOD_MAX {
            let why = format!("must be less than or equal to {PERIOD_MAX}");
            errors.push(FieldError::invalid(&path.child("periodSeconds"), &Value::Int(period), why));
        }
    }
}

/// The types of metrics, and the field of each.
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
        errors.push(FieldError::not_supported(&path.child("type"), &Value::from(kind), &known));
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
    // upstream looks into the first source
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
    if !is_resource && source.str_at(&["metric", "name"]).is_empty() {
        errors.push(FieldError::required(&path.child("metric").child("name"), "must specify a metric name"));
    }
    let (empty, path) = (Value::object(), path.child("target"));
    let target = source.get("target").unwrap_or(&empty);
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

fn target_type(target: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let kind = text(target, "type");
    if kind.is_empty() {
        errors.push(FieldError::required(&path.child("type"), "must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind) {
        let why = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(&path.child("type"), &Value::from(kind), why));
    }
    if let Some(share) = target.get("averageUtilization").filter(|share| share.as_int().is_some_and(|s| s < 1)) {
        errors.push(FieldError::invalid(&path.child("averageUtilization"), share, "must be greater than 0"));
    }
}

/// Removes an annotation and decodes its JSON.
fn take(object: &mut Value, annotation: &str) -> Option<Value> {
    let text = object.remove_at(&["metadata", "annotations", annotation])?;
    if object.at(&["metadata", "annotations"]).and_then(Value::as_object).is_some_and(machinery::Map::is_empty) {
        object.remove_at(&["metadata", "annotations"]);
    }
    machinery::value::decode(text.as_str()?.as_bytes()).ok()
}

fn put(object: &mut Value, annotation: &str, value: &Value) {
    object.set_at(&["metadata", "annotations", annotation], Value::from(in_order(value)));
}

/// The fields of metrics and conditions of v1, in an order that is that of each of their structs.
const ORDER: [&str; 32] = [
    "type",
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
    "target",
    "kind",
    "name",
    "apiVersion",
    "metricName",
    "metricSelector",
    "targetValue",
    "currentValue",
    "targetAverageUtilization",
    "currentAverageUtilization",
    "targetAverageValue",
    "currentAverageValue",
    "selector",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "averageValue",
    "container",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
    "scaleUp",
    "scaleDown",
];

/// A value as JSON with the fields in the order of their structs.
fn in_order(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(in_order).collect::<Vec<_>>().join(",")),
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by_key(|(name, _)| ORDER.iter().position(|known| known == name).unwrap_or(ORDER.len()));
            let field = |(name, value): (&machinery::Text, &Value)| {
                format!("{}:{}", Value::from(name.as_str()).to_json(), in_order(value))
            };
            format!("{{{}}}", fields.into_iter().map(field).collect::<Vec<_>>().join(","))
        }
        scalar => scalar.to_json(),
    }
}

/// Moves a field if it is set.
fn rename(value: &Value, from: &[&str], out: &mut Value, to: &[&str]) {
    if let Some(found) = value.at(from).filter(|found| !found.is_null()) {
        out.set_at(to, found.clone());
    }
}

/// The fields of a metric's source, in v2 and in v1.
type Fields = &'static [(&'static [&'static str], &'static [&'static str])];

const RESOURCE: Fields = &[
    (&["name"], &["name"]),
    (&["target", "averageUtilization"], &["targetAverageUtilization"]),
    (&["target", "averageValue"], &["targetAverageValue"]),
    (&["container"], &["container"]),
];
const PODS: Fields = &[
    (&["metric", "name"], &["metricName"]),
    (&["target", "averageValue"], &["targetAverageValue"]),
    (&["metric", "selector"], &["selector"]),
];
const OBJECT: Fields = &[
    (&["describedObject"], &["target"]),
    (&["metric", "name"], &["metricName"]),
    (&["target", "value"], &["targetValue"]),
    (&["metric", "selector"], &["selector"]),
    (&["target", "averageValue"], &["averageValue"]),
];
const EXTERNAL: Fields = &[
    (&["metric", "name"], &["metricName"]),
    (&["metric", "selector"], &["metricSelector"]),
    (&["target", "value"], &["targetValue"]),
    (&["target", "averageValue"], &["targetAverageValue"]),
];

/// The sources of metrics, and their fields.
const SOURCES: [(&str, Fields); 5] = [
    ("resource", RESOURCE),
    ("containerResource", RESOURCE),
    ("pods", PODS),
    ("object", OBJECT),
    ("external", EXTERNAL),
];

fn metric_to_first(metric: &Value) -> Value {
    let mut out = json!({"type": (metric.get("type").cloned().unwrap_or_default())});
    for (name, fields) in SOURCES {
        let Some(source) = metric.get(name).filter(|source| !source.is_null()) else { continue };
        let mut shown = Value::object();
        fields.iter().for_each(|(from, to)| rename(source, from, &mut shown, to));
        if name == "object" && shown.get("targetValue").is_none() {
            shown.set_at(&["targetValue"], Value::from("0"));
        }
        out.set_at(&[name], shown);
    }
    out
}

fn metric_from_first(metric: &Value) -> Value {
    let mut out = json!({"type": (metric.get("type").cloned().unwrap_or_default())});
    for (name, fields) in SOURCES {
        let Some(source) = metric.get(name).filter(|source| !source.is_null()) else { continue };
        let mut stored = Value::object();
        fields.iter().for_each(|(to, from)| rename(source, from, &mut stored, to));
        let target = stored.get("target").cloned().unwrap_or_default();
        let kind = match () {
            () if target.get("averageUtilization").is_some() => "Utilization",
            () if target.get("averageValue").is_some() => "AverageValue",
            () => "Value",
        };
        stored.set_at(&["target", "type"], Value::from(kind));
        out.set_at(&[name], stored);
    }
    out
}

/// The target CPU utilization of a metric, if it has one.
fn processor_share(metric: &Value) -> Option<Value> {
    let is_processor = metric.str_at(&["type"]) == "Resource" && metric.str_at(&["resource", "name"]) == "cpu";
    let share = metric.at(&["resource", "target", "averageUtilization"]).filter(|_| is_processor)?;
    (!share.is_null()).then(|| share.clone())
}

fn to_shown(stored: Value) -> Value {
    let mut object = stored;
    object.set_at(&["apiVersion"], Value::from("autoscaling/v1"));
    for annotation in [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR] {
        take(&mut object, annotation);
    }
    if let Some(behavior) = object.remove_at(&["spec", "behavior"]) {
        put(&mut object, BEHAVIOR, &behavior);
    }
    let metrics = object.remove_at(&["spec", "metrics"]).unwrap_or_default();
    let mut others = vec![];
    for metric in metrics.as_array().unwrap_or_default() {
        match processor_share(metric) {
            Some(share) => object.set_at(&["spec", "targetCPUUtilizationPercentage"], share),
            None => others.push(metric_to_first(metric)),
        }
    }
    if !others.is_empty() {
        put(&mut object, METRICS, &Value::Array(others));
    }
    shown_status(&mut object);
    object
}

/// The current value of a resource in v1.
fn current_to_first(metric: &Value) -> Value {
    let mut metric = metric.clone();
    for source in ["resource", "containerResource"] {
        let Some(current) = metric.remove_at(&[source, "current"]) else { continue };
        let average = current.get("averageValue").cloned().unwrap_or_else(|| Value::from("0"));
        metric.set_at(&[source, "currentAverageValue"], average);
        rename(&current, &["averageUtilization"], &mut metric, &[source, "currentAverageUtilization"]);
    }
    metric
}

fn current_from_first(metric: &Value) -> Value {
    let mut metric = metric.clone();
    for source in ["resource", "containerResource"] {
        for (first, current) in
            [("currentAverageValue", "averageValue"), ("currentAverageUtilization", "averageUtilization")]
        {
            if let Some(value) = metric.remove_at(&[source, first]) {
                metric.set_at(&[source, "current", current], value);
            }
        }
    }
    metric
}

fn shown_status(object: &mut Value) {
    let current = object.remove_at(&["status", "currentMetrics"]).unwrap_or_default();
    let mut others = vec![];
    for metric in current.as_array().unwrap_or_default() {
        let is_processor = metric.str_at(&["resource", "name"]) == "cpu";
        let share = metric.at(&["resource", "current", "averageUtilization"]).filter(|_| is_processor);
        if let Some(share) = share {
            object.set_at(&["status", "currentCPUUtilizationPercentage"], share.clone());
        }
        others.push(current_to_first(metric));
    }
    if !others.is_empty() {
        put(object, CURRENT_METRICS, &Value::Array(others));
    }
    let conditions = object.remove_at(&["status", "conditions"]).unwrap_or_default();
    if conditions.as_array().is_some_and(|conditions| !conditions.is_empty()) {
        put(object, CONDITIONS, &conditions);
    }
    if object.at(&["status", "desiredReplicas"]).is_none() {
        object.set_at(&["status", "desiredReplicas"], Value::Int(0));
    }
    if object.at(&["status", "currentReplicas"]).is_none() {
        object.set_at(&["status", "currentReplicas"], Value::Int(0));
    }
}

/// An autoscaler in the form of v2.
pub fn newest(object: &Value) -> Cow<'_, Value> {
    match text(object, "apiVersion") {
        "autoscaling/v1" => Cow::Owned(to_stored(object.clone())),
        _ => Cow::Borrowed(object),
    }
}

fn to_stored(shown: Value) -> Value {
    let mut object = shown;
    object.set_at(&["apiVersion"], Value::from("autoscaling/v2"));
    let mut metrics: Vec<Value> = match take(&mut object, METRICS) {
        Some(Value::Array(metrics)) => metrics.iter().map(metric_from_first).collect(),
        _ => vec![],
    };
    if let Some(share) = object.remove_at(&["spec", "targetCPUUtilizationPercentage"]) {
        let target = json!({"type": "Utilization", "averageUtilization": share});
        metrics.insert(0, json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }
    if !metrics.is_empty() {
        object.set_at(&["spec", "metrics"], Value::Array(metrics));
    }
    if let Some(behavior) = take(&mut object, BEHAVIOR) {
        object.set_at(&["spec", "behavior"], behavior);
    }
    let share = object.remove_at(&["status", "currentCPUUtilizationPercentage"]);
    let current = match (take(&mut object, CURRENT_METRICS), share) {
        // the annotation says more
        (Some(Value::Array(metrics)), _) => metrics.iter().map(current_from_first).collect(),
        (_, Some(share)) => {
            let value = json!({"averageUtilization": share});
            vec![json!({"type": "Resource", "resource": {"name": "cpu", "current": value}})]
        }
        _ => vec![],
    };
    if !current.is_empty() {
        object.set_at(&["status", "currentMetrics"], Value::Array(current));
    }
    if let Some(conditions) = take(&mut object, CONDITIONS) {
        object.set_at(&["status", "conditions"], conditions);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v1_autoscaler_keeps_v2_fields_in_annotations() {
        let target = json!({"type": "Utilization", "averageUtilization": 50});
        let memory = json!({"type": "AverageValue", "averageValue": "1Gi"});
        let stored = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
            "spec": {"maxReplicas": 3, "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": target}},
                {"type": "Resource", "resource": {"name": "memory", "target": memory}}
            ]},
            "status": {"currentReplicas": 1, "desiredReplicas": 0}
        });
        let shown = to_shown(stored.clone());
        assert_eq!(shown.at(&["spec", "targetCPUUtilizationPercentage"]), Some(&Value::Int(50)));
        let kept = r#"[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}]"#;
        assert_eq!(
            machinery::value::decode(shown.str_at(&["metadata", "annotations", METRICS]).as_bytes()).ok(),
            machinery::value::decode(kept.as_bytes()).ok()
        );
        assert_eq!(to_stored(shown), stored);
    }

    #[test]
    fn current_metrics_are_shown_once() {
        let shown =
            json!({"status": {"currentCPUUtilizationPercentage": 5, "currentReplicas": 1, "desiredReplicas": 1}});
        let once = to_shown(to_stored(shown));
        let text = r#"[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":5,"currentAverageValue":"0"}}]"#;
        assert_eq!(once.str_at(&["metadata", "annotations", CURRENT_METRICS]), text);
        assert_eq!(to_shown(to_stored(once.clone())), once);
    }
}
