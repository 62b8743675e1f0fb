//! The conversion of HorizontalPodAutoscalers between `v1` and `v2`. Annotations hold the fields that `v1` does not
//! have.

use std::borrow::Cow;

use machinery::{Value, json};

use resource::builtin::checks::{is_set, text};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// All annotations that stand for fields of `v2`.
pub const FIELDS_OF_V2: [&str; 4] = [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR];

/// Whether the annotation for metrics holds a readable list with at least one metric.
pub fn has_metrics(object: &Value) -> bool {
    let text = object.str_at(&["metadata", "annotations", METRICS]);
    let metrics = machinery::value::decode(text.as_bytes()).unwrap_or_default();
    metrics
        .as_array()
        .is_some_and(|metrics| !metrics.is_empty() && metrics.iter().all(|metric| metric.as_object().is_some()))
}

/// Removes an annotation and decodes its JSON.
fn take(object: &mut Value, annotation: &str) -> Option<Value> {
    let text = object.remove_at(&["metadata", "annotations", annotation])?;
    if object.at(&["metadata", "annotations"]).and_then(Value::as_object).is_some_and(machinery::Map::is_empty) {
        object.remove_at(&["metadata", "annotations"]);
    }
    machinery::value::decode(text.as_str()?.as_bytes()).ok()
}

/// Restores the annotations that stand for the status, which only the subresource `status` may change.
pub fn keep_status(object: &mut Value, old: Option<&Value>) {
    for annotation in [CURRENT_METRICS, CONDITIONS] {
        let path = ["metadata", "annotations", annotation];
        match old.and_then(|old| old.at(&path)) {
            Some(kept) => object.set_at(&path, kept.clone()),
            None => drop(take(object, annotation)),
        }
    }
}

fn put(object: &mut Value, annotation: &str, value: &Value) {
    object.set_at(&["metadata", "annotations", annotation], Value::from(in_order(value)));
}

/// The fields of v1's metrics and conditions, in an order that agrees with the order of each Go struct.
const ORDER: [&str; 30] = [
    "type", "object", "pods", "resource", "containerResource", "external", "target", "kind", "name", "apiVersion",
    "metricName", "metricSelector", "targetValue", "currentValue", "targetAverageUtilization",
    "currentAverageUtilization", "targetAverageValue", "currentAverageValue", "selector", "matchLabels",
    "matchExpressions", "key", "operator", "values", "averageValue", "container", "status", "lastTransitionTime",
    "reason", "message",
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

/// Converts a behavior from the field names of kube-apiserver's internal type, which writes null for fields that
/// are not set, to those of v2.
fn published(behavior: Value) -> Value {
    match behavior {
        Value::Array(items) => Value::Array(items.into_iter().map(published).collect()),
        Value::Object(fields) => {
            let mut out = Value::object();
            for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                let (first, rest) = name.split_at_checked(1).unwrap_or(("", name.as_str()));
                out.set_at(&[&format!("{}{rest}", first.to_ascii_lowercase())], published(value.clone()));
            }
            out
        }
        scalar => scalar,
    }
}

/// If the field at `from` is set, copies it to `to`.
fn copy_field(value: &Value, from: &[&str], out: &mut Value, to: &[&str]) {
    if let Some(found) = value.at(from).filter(|found| !found.is_null()) {
        out.set_at(to, found.clone());
    }
}

/// The paths of the fields of a metric's source in v2, each with its path in v1.
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

/// The types of metric sources, and the fields of each.
const SOURCES: [(&str, Fields); 5] = [
    ("resource", RESOURCE),
    ("containerResource", RESOURCE),
    ("pods", PODS),
    ("object", OBJECT),
    ("external", EXTERNAL),
];

fn metric_to_v1(metric: &Value) -> Value {
    let mut out = json!({"type": (metric.get("type").cloned().unwrap_or_default())});
    for (name, fields) in SOURCES {
        let Some(source) = metric.get(name).filter(|source| !source.is_null()) else { continue };
        let mut shown = Value::object();
        fields.iter().for_each(|(from, to)| copy_field(source, from, &mut shown, to));
        if name == "object" && shown.get("targetValue").is_none() {
            shown.set_at(&["targetValue"], Value::from("0"));
        }
        out.set_at(&[name], shown);
    }
    out
}

fn metric_from_v1(metric: &Value) -> Value {
    let mut out = json!({"type": (metric.get("type").cloned().unwrap_or_default())});
    for (name, fields) in SOURCES {
        let Some(source) = metric.get(name).filter(|source| !source.is_null()) else { continue };
        let mut stored = Value::object();
        fields.iter().for_each(|(to, from)| copy_field(source, from, &mut stored, to));
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

/// The target CPU utilization of a metric, if it has one. v1 has a field for it.
fn processor_share(metric: &Value) -> Option<Value> {
    let is_processor = metric.str_at(&["type"]) == "Resource" && metric.str_at(&["resource", "name"]) == "cpu";
    let share = metric.at(&["resource", "target", "averageUtilization"]).filter(|_| is_processor)?;
    (!share.is_null()).then(|| share.clone())
}

pub fn to_shown(stored: Value) -> Value {
    let mut object = stored;
    object.set_at(&["apiVersion"], Value::from("autoscaling/v1"));
    for annotation in [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR] {
        take(&mut object, annotation);
    }
    if let Some(behavior) = object.remove_at(&["spec", "behavior"]) {
        let text = machinery::types::internal_json(&behavior, "autoscaling.HorizontalPodAutoscalerBehavior");
        object.set_at(&["metadata", "annotations", BEHAVIOR], Value::from(text));
    }
    let metrics = object.remove_at(&["spec", "metrics"]).unwrap_or_default();
    let mut others = vec![];
    for metric in metrics.as_array().unwrap_or_default() {
        match processor_share(metric) {
            Some(share) => object.set_at(&["spec", "targetCPUUtilizationPercentage"], share),
            None => others.push(metric_to_v1(metric)),
        }
    }
    if !others.is_empty() {
        put(&mut object, METRICS, &Value::Array(others));
    }
    shown_status(&mut object);
    object
}

fn current_to_v1(metric: &Value) -> Value {
    let mut metric = metric.clone();
    for source in ["resource", "containerResource"] {
        let Some(current) = metric.remove_at(&[source, "current"]) else { continue };
        let average = current.get("averageValue").cloned().unwrap_or_else(|| Value::from("0"));
        metric.set_at(&[source, "currentAverageValue"], average);
        copy_field(&current, &["averageUtilization"], &mut metric, &[source, "currentAverageUtilization"]);
    }
    metric
}

fn current_from_v1(metric: &Value) -> Value {
    let mut metric = metric.clone();
    for source in ["resource", "containerResource"] {
        for (v1, current) in
            [("currentAverageValue", "averageValue"), ("currentAverageUtilization", "averageUtilization")]
        {
            if let Some(value) = metric.remove_at(&[source, v1]) {
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
        others.push(current_to_v1(metric));
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

/// An autoscaler converted to v2.
pub fn newest(object: &Value) -> Cow<'_, Value> {
    match text(object, "apiVersion") {
        "autoscaling/v1" => Cow::Owned(to_stored(object.clone())),
        _ => Cow::Borrowed(object),
    }
}

pub fn to_stored(shown: Value) -> Value {
    let mut object = shown;
    object.set_at(&["apiVersion"], Value::from("autoscaling/v2"));
    let mut metrics: Vec<Value> = match take(&mut object, METRICS) {
        Some(Value::Array(metrics)) => metrics.iter().map(metric_from_v1).collect(),
        _ => vec![],
    };
    if let Some(share) = object.remove_at(&["spec", "targetCPUUtilizationPercentage"]) {
        let target = json!({"type": "Utilization", "averageUtilization": share});
        metrics.insert(0, json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }
    if !metrics.is_empty() {
        object.set_at(&["spec", "metrics"], Value::Array(metrics));
    }
    let behavior = take(&mut object, BEHAVIOR).map(published);
    // a behavior without rules counts as absent
    if let Some(behavior) =
        behavior.filter(|behavior| ["scaleUp", "scaleDown"].iter().any(|name| is_set(behavior, name)))
    {
        object.set_at(&["spec", "behavior"], behavior);
    }
    let share = object.remove_at(&["status", "currentCPUUtilizationPercentage"]);
    let current = match (take(&mut object, CURRENT_METRICS), share) {
        // the annotation is more complete than the field
        (Some(Value::Array(metrics)), _) => metrics.iter().map(current_from_v1).collect(),
        (_, Some(share)) => {
            let value = json!({"averageUtilization": share});
            vec![json!({"type": "Resource", "resource": {"name": "cpu", "current": value}})]
        }
        _ => vec![],
    };
    match current.is_empty() {
        false => object.set_at(&["status", "currentMetrics"], Value::Array(current)),
        // v2 shows an absent list as null
        true if object.get("status").is_some() => object.set_at(&["status", "currentMetrics"], Value::Null),
        true => {}
    }
    if object.at(&["status", "currentReplicas"]) == Some(&Value::Int(0)) {
        object.remove_at(&["status", "currentReplicas"]);
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
            "status": {"currentMetrics": null, "currentReplicas": 1, "desiredReplicas": 0}
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
    #[test]
    fn behavior_has_the_names_of_the_internal_type() {
        let stored = json!({"spec": {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 5, "policies": [
            {"type": "Pods", "value": 1, "periodSeconds": 15}]}}}});
        let shown = to_shown(stored.clone());
        let text = r#"{"ScaleUp":{"StabilizationWindowSeconds":5,"SelectPolicy":null,"Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":15}],"Tolerance":null},"ScaleDown":null}"#;
        assert_eq!(shown.str_at(&["metadata", "annotations", BEHAVIOR]), text);
        assert_eq!(to_stored(shown).at(&["spec", "behavior"]), stored.at(&["spec", "behavior"]));
    }
}
