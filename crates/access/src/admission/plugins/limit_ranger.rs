//! LimitRanger: sets the defaults of a namespace's LimitRanges in containers, and enforces their bounds.

use machinery::Value;
use machinery::quantity::Quantity;
use machinery::status::aggregate;

use super::pod_resources::{Amounts, Field, amounts, total};
use super::{Decision, PluginRequest};

const ANNOTATION: [&str; 3] = ["metadata", "annotations", "kubernetes.io/limit-ranger"];
/// The lists of containers, and the noun for their items in annotations.
const CONTAINERS: [(&str, &str); 2] = [("containers", "container"), ("initContainers", "init container")];

/// Whether the write is limited: the creation or resizing of a Pod, or any write of a claim, unless the object is being
/// deleted.
fn is_limited(call: &PluginRequest<'_>) -> bool {
    let attributes = call.attributes;
    let is_pod_update = attributes.plural() == "pods" && attributes.subresource.is_empty() && !call.is_create();
    !is_pod_update && call.old().at(&["metadata", "deletionTimestamp"]).is_none()
}

fn limits_of(range: &Value, kind: &str) -> Vec<Value> {
    range.items_at(&["spec", "limits"]).iter().filter(|limit| limit.str_at(&["type"]) == kind).cloned().collect()
}

pub fn admit(call: &PluginRequest<'_>, object: &mut Value) -> Decision {
    if !is_limited(call) || call.attributes.plural() != "pods" {
        return Ok(());
    }
    for range in call.all_here("", "limitranges") {
        let changes = set_defaults(object, &limits_of(&range, "Container"));
        if !changes.is_empty() {
            object.set_at(&ANNOTATION, Value::from(format!("LimitRanger plugin set: {}", changes.join("; "))));
        }
    }
    Ok(())
}

/// Sets the defaults of the limits in containers. Returns a description of each change.
fn set_defaults(pod: &mut Value, limits: &[Value]) -> Vec<String> {
    let mut changes = vec![];
    for (list, noun) in CONTAINERS {
        let containers = pod.get_mut("spec").and_then(|spec| spec.get_mut(list)).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            for (field, defaults, word) in [("requests", "defaultRequest", "request"), ("limits", "default", "limit")] {
                let names = set_container_defaults(container, field, limits, defaults);
                if !names.is_empty() {
                    changes.push(format!("{} {word} for {noun} {}", names.join(", "), container.str_at(&["name"])));
                }
            }
        }
    }
    changes
}

/// Sets the defaults in one list of resources of a container. Returns the names of the resources that were missing, sorted.
fn set_container_defaults(container: &mut Value, field: &str, limits: &[Value], defaults: &str) -> Vec<String> {
    let mut names = vec![];
    // the last of several defaults counts
    for limit in limits.iter().rev() {
        let defaults = limit.get(defaults).and_then(Value::as_object);
        for (name, amount) in defaults.into_iter().flat_map(|defaults| defaults.iter()) {
            if container.at(&["resources", field, name]).is_none() {
                container.set_at(&["resources", field, name], amount.clone());
                names.push(name.to_string());
            }
        }
    }
    names.sort();
    names
}

pub fn validate(call: &PluginRequest<'_>) -> Decision {
    if !is_limited(call) {
        return Ok(());
    }
    let is_pod = call.attributes.plural() == "pods";
    for range in call.all_here("", "limitranges") {
        let errors = if is_pod { pod_errors(call.object(), &range) } else { claim_errors(call.object(), &range) };
        if !errors.is_empty() {
            return Err(aggregate(&errors).into());
        }
    }
    Ok(())
}

fn pod_errors(pod: &Value, range: &Value) -> Vec<String> {
    let mut errors = vec![];
    for limit in range.items_at(&["spec", "limits"]) {
        match limit.str_at(&["type"]) {
            kind @ "Container" => {
                for container in CONTAINERS.iter().flat_map(|(list, _)| pod.items_at(&["spec", list])) {
                    let of = |field: Field| amounts(container.at(&["resources", field.name()]));
                    bounds(limit, kind, &of(Field::Requests), &of(Field::Limits), &mut errors);
                }
            }
            kind @ "Pod" => bounds(limit, kind, &total(pod, Field::Requests), &total(pod, Field::Limits), &mut errors),
            _ => {}
        }
    }
    errors
}

fn claim_errors(claim: &Value, range: &Value) -> Vec<String> {
    let requests = amounts(claim.at(&["spec", "resources", "requests"]));
    let (kind, none) = ("PersistentVolumeClaim", Amounts::new());
    let mut errors = vec![];
    for limit in limits_of(range, kind) {
        let min = amounts(limit.get("min"));
        errors.extend(min.iter().filter_map(|(name, least)| below(kind, name, least, &requests, &none)));
        for (name, most) in amounts(limit.get("max")) {
            errors.extend(match requests.get(&name) {
                None => Some(format!("maximum {name} usage per {kind} is {most}.  No request is specified")),
                Some(request) if request.compare(&most).is_gt() => {
                    Some(format!("maximum {name} usage per {kind} is {most}, but request is {request}"))
                }
                Some(_) => None,
            });
        }
    }
    errors
}

/// The errors of amounts that are outside the bounds of one limit.
fn bounds(limit: &Value, kind: &str, requests: &Amounts, limits: &Amounts, errors: &mut Vec<String>) {
    let of = |field: &str| amounts(limit.get(field));
    errors.extend(of("min").iter().filter_map(|(name, least)| below(kind, name, least, requests, limits)));
    errors.extend(of("max").iter().filter_map(|(name, most)| above(kind, name, most, requests, limits)));
    let ratios = of("maxLimitRequestRatio");
    errors.extend(ratios.iter().filter_map(|(name, most)| beyond(kind, name, most, requests, limits)));
}

fn below(kind: &str, name: &str, least: &Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let is_low = |amount: &&Quantity| amount.compare(least).is_lt();
    let text = format!("minimum {name} usage per {kind} is {least}");
    match (requests.get(name), limits.get(name)) {
        (None, _) => Some(format!("{text}.  No request is specified")),
        (Some(request), _) if is_low(&request) => Some(format!("{text}, but request is {request}")),
        (_, limit) => limit.filter(is_low).map(|limit| format!("{text}, but limit is {limit}")),
    }
}

fn above(kind: &str, name: &str, most: &Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let is_high = |amount: &&Quantity| amount.compare(most).is_gt();
    let text = format!("maximum {name} usage per {kind} is {most}");
    match (requests.get(name), limits.get(name)) {
        (_, None) => Some(format!("{text}.  No limit is specified")),
        (_, Some(limit)) if is_high(&limit) => Some(format!("{text}, but limit is {limit}")),
        (request, _) => request.filter(is_high).map(|request| format!("{text}, but request is {request}")),
    }
}

fn beyond(kind: &str, name: &str, most: &Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let text = format!("{name} max limit to request ratio per {kind} is {most}");
    let given = |list: &Amounts| list.get(name).map(Quantity::approximate).filter(|amount| *amount != 0.0);
    let Some(request) = given(requests) else {
        return Some(format!("{text}, but no request is specified or request is 0"));
    };
    let Some(limit) = given(limits) else { return Some(format!("{text}, but no limit is specified or limit is 0")) };
    let ratio = limit / request;
    (ratio > most.approximate()).then(|| format!("{text}, but provided ratio is {ratio:.6}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn defaults_are_filled_in_and_named() {
        let mut pod = json!({"spec": {
            "containers": [{"name": "a", "resources": {"limits": {"cpu": "3"}}}], "initContainers": [{"name": "b"}]
        }});
        let limits = [json!({"default": {"cpu": "1", "memory": "2"}, "defaultRequest": {"memory": "1", "cpu": "1"}})];
        let want = [
            "cpu, memory request for container a",
            "memory limit for container a",
            "cpu, memory request for init container b",
            "cpu, memory limit for init container b",
        ];
        assert_eq!(set_defaults(&mut pod, &limits), want);
        let filled = pod.at(&["spec", "initContainers"]).unwrap();
        let want =
            r#"[{"name":"b","resources":{"limits":{"cpu":"1","memory":"2"},"requests":{"cpu":"1","memory":"1"}}}]"#;
        assert_eq!(filled.to_json(), want);
    }

    #[test]
    fn bounds_are_enforced() {
        let limit = json!({"min": {"cpu": "1"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "1500m"}});
        let cases: [(Value, Value, &[&str]); 4] = [
            (json!({"cpu": "1"}), json!({"cpu": "1500m"}), &[]),
            (
                json!({}),
                json!({}),
                &[
                    "minimum cpu usage per Pod is 1.  No request is specified",
                    "maximum cpu usage per Pod is 2.  No limit is specified",
                    "cpu max limit to request ratio per Pod is 1500m, but no request is specified or request is 0",
                ],
            ),
            (
                json!({"cpu": "500m"}),
                json!({"cpu": "3"}),
                &[
                    "minimum cpu usage per Pod is 1, but request is 500m",
                    "maximum cpu usage per Pod is 2, but limit is 3",
                    "cpu max limit to request ratio per Pod is 1500m, but provided ratio is 6.000000",
                ],
            ),
            (
                json!({"cpu": "1"}),
                json!({}),
                &[
                    "maximum cpu usage per Pod is 2.  No limit is specified",
                    "cpu max limit to request ratio per Pod is 1500m, but no limit is specified or limit is 0",
                ],
            ),
        ];
        for (requests, limits, want) in cases {
            let mut errors = vec![];
            bounds(&limit, "Pod", &amounts(Some(&requests)), &amounts(Some(&limits)), &mut errors);
            assert_eq!(errors, want);
        }
    }
}
