//! HorizontalPodAutoscalers of `autoscaling/v1`, which are stored as v2. Fields that v1 does not have are JSON in
//! annotations.

use machinery::quantity::Quantity;
use machinery::{Value, json, names};

use crate::autoscaling::autoscaling_versions::{has_metrics, newest};
use crate::core::podspec;
use schema::at::At;

pub fn default_v1(object: &mut Value) {
    let target = ["spec", "targetCPUUtilizationPercentage"];
    if object.get("spec").is_some() && object.at(&target).is_none_or(Value::is_null) && !has_metrics(object) {
        object.set_at(&target, Value::Int(80));
    }
}

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
        for (field, value) in rules.fields_at(&[]) {
            if behavior.at(&[name, field]).is_none_or(Value::is_null) {
                behavior.set_at(&[name, field], value.clone());
            }
        }
    }
}

pub fn validate(at: At) {
    at.items_of("spec.metrics").for_each(metric);
}

/// Validates what annotations of `autoscaling/v1` hold, at its paths in v2.
pub fn validate_v1(at: At) {
    let object = newest(at.value);
    at.showing(&object, |at| {
        validate(at);
        at.field("spec").check_conditions("autoscaling.v2.HorizontalPodAutoscalerSpec");
    });
}

/// The types of metrics, each with the name of its field.
const METRIC_SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

fn metric(metric: At) {
    let kind = metric.field_or_empty("type");
    kind.require_text("must specify a metric source type");
    kind.shown_as_json().one_of(&METRIC_SOURCES.map(|(known, _)| known));
    let own = METRIC_SOURCES.iter().find(|(known, _)| *known == kind.as_text()).map(|(_, field)| *field);
    let given: Vec<&str> = METRIC_SOURCES.iter().map(|(_, field)| *field).filter(|field| metric.has(field)).collect();
    if let Some(own) = own
        && !given.contains(&own)
    {
        metric.field(own).required("must populate information for the given metric source");
    }
    for field in given.iter().filter(|field| given.len() != 1 && Some(**field) != own) {
        metric.field(field).forbidden("must populate the given metric source only");
    }
    // upstream validates only the first source that is set
    const ORDER: [&str; 5] = ["object", "external", "pods", "resource", "containerResource"];
    if let Some(field) = ORDER.into_iter().find(|field| given.contains(field)) {
        metric_source(field, metric.field(field));
    }
}

fn metric_source(field: &str, source: At) {
    let (resource, name) = (source.field("name"), source.field("metric.name"));
    let is_resource = matches!(field, "resource" | "containerResource");
    resource.required_if(is_resource && resource.as_text().is_empty(), "must specify a resource name");
    if field == "containerResource" {
        if !resource.as_text().is_empty() {
            podspec::container_resource(resource.as_text(), resource);
        }
        let container = source.field("container");
        match container.as_text() {
            "" => container.required("must specify a container"),
            _ => container.check_text(names::dns1123_label),
        }
    }
    if !is_resource {
        name.require_text("must specify a metric name");
        name.check_text(names::path_segment);
    }
    metric_target(field, source.field("target"));
}

fn metric_target(field: &str, target: At) {
    target_type(target);
    let (value, average, share) =
        (target.field("value"), target.field("averageValue"), target.field("averageUtilization"));
    let is_resource = matches!(field, "resource" | "containerResource");
    let has_amount = value.is_given() || average.is_given();
    match field {
        "pods" if !average.is_given() => average.required("must specify a positive target averageValue"),
        "object" if !has_amount => average.required("must set either a target value or averageValue"),
        "external" if !has_amount => {
            average.required("must set either a target value for metric or a per-pod target");
        }
        _ if is_resource && !share.is_given() && !average.is_given() => {
            share.required("must set either a target raw value or a target utilization");
        }
        _ => {}
    }
    if is_resource && share.is_given() && average.is_given() {
        average.forbidden("may not set both a target raw value and a target utilization");
    }
    if field == "external" && value.is_given() && average.is_given() {
        value.forbidden("may not set both a target value for metric and a per-pod target");
    }
}

fn target_type(target: At) {
    let kind = target.field_or_empty("type");
    kind.require_text("must specify a metric target type");
    if !["Utilization", "Value", "AverageValue"].contains(&kind.as_text()) {
        kind.shown_as_json().invalid("must be either Utilization, Value, or AverageValue");
    }
    for amount in ["value", "averageValue"].into_iter().filter_map(|name| target.field_if_given(name)) {
        amount.invalid_if(Quantity::of(amount.value).is_ok_and(|amount| amount.signum() <= 0), "must be positive");
    }
    target.field("averageUtilization").at_least(1, "must be greater than 0");
}
