//! The usage of Pods.

use machinery::Value;
use machinery::quantity::Quantity;

use crate::admission::plugins::pod_resources::{Amounts, Field, amounts, in_use, own};

const OF_PODS: [&str; 10] = [
    "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage", "pods",
];
const HUGE_PAGES: &str = "hugepages-";

/// Whether a quota limits Pods by this name, apart from `count/pods`, the number of stored Pods.
pub fn is_of_pods(name: &str) -> bool {
    let requested = name.strip_prefix("requests.");
    // an extended resource has the domain of its vendor before the `/`
    let is_extended = requested.is_some_and(|name| name.contains('/') && !name.contains("kubernetes.io/"));
    let is_device = requested.is_some_and(|name| name.starts_with("deviceclass.resource.kubernetes.io/"));
    let pages = requested.unwrap_or(name).starts_with(HUGE_PAGES);
    OF_PODS.contains(&name) || pages || is_extended || is_device
}

/// The usage of a Pod, apart from `count/pods`. A Pod that has ended uses nothing, nor does one that should have been gone
/// by the end of its grace period.
pub fn of_pod_usage(pod: &Value, now: i64) -> Amounts {
    if ["Failed", "Succeeded"].contains(&pod.str_at(&["status", "phase"])) || is_overdue(pod, now) {
        return Amounts::new();
    }
    let overhead = amounts(pod.at(&["spec", "overhead"]));
    let with_overhead = |field: Field| {
        let mut sum = in_use(pod, field);
        for (name, amount) in &overhead {
            let known = sum.get(name).cloned();
            // the overhead adds to existing limits only
            match (known, field) {
                (Some(known), _) => drop(sum.insert(name.clone(), known.plus(amount))),
                (None, Field::Requests) => drop(sum.insert(name.clone(), amount.clone())),
                (None, Field::Limits) => {}
            }
        }
        sum
    };
    let mut used = container_usage(&with_overhead(Field::Requests), &with_overhead(Field::Limits));
    used.insert("pods".to_owned(), Quantity::from_int(1));
    used
}

/// Requests and limits, under their names in quotas.
fn container_usage(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut used = Amounts::new();
    for (name, amount) in requests {
        let is_plain = ["cpu", "memory", "ephemeral-storage"].contains(&name.as_str()) || name.starts_with(HUGE_PAGES);
        if is_plain {
            used.insert(name.clone(), amount.clone());
        }
        if is_plain || name.contains('/') {
            used.insert(format!("requests.{name}"), amount.clone());
        }
    }
    for (name, amount) in limits.iter().filter(|(name, _)| OF_PODS.contains(&format!("limits.{name}").as_str())) {
        used.insert(format!("limits.{name}"), amount.clone());
    }
    used
}

/// The names of a quota whose amounts some containers of a Pod must state and do not, each with those containers.
pub fn missing(pod: &Value, names: &[&str]) -> Vec<(String, String)> {
    const REQUIRED: [&str; 6] = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
    if [Field::Requests, Field::Limits].into_iter().any(|field| own(pod, field).next().is_some()) {
        return vec![];
    }
    let lists = ["containers", "initContainers"].iter();
    let containers = lists.flat_map(|list| pod.items_at(&["spec", list]));
    let containers: Vec<(&str, Amounts)> = containers
        .map(|container| {
            let amounts_of = |field: Field| amounts(container.at(&["resources", field.name()]));
            (container.str_at(&["name"]), container_usage(&amounts_of(Field::Requests), &amounts_of(Field::Limits)))
        })
        .collect();
    let mut missing = vec![];
    for name in names.iter().filter(|name| REQUIRED.contains(name)) {
        let mut containers_without: Vec<&str> =
            containers.iter().filter(|(_, used)| !used.contains_key(*name)).map(|(container, _)| *container).collect();
        containers_without.sort_unstable();
        containers_without.dedup();
        if !containers_without.is_empty() {
            missing.push(((*name).to_owned(), containers_without.join(",")));
        }
    }
    missing.sort();
    missing
}

/// Whether a Pod that is being deleted has exceeded its grace period.
fn is_overdue(pod: &Value, now: i64) -> bool {
    let deleted = machinery::time::parse_rfc3339(pod.str_at(&["metadata", "deletionTimestamp"]));
    let grace = pod.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_int);
    matches!((deleted, grace), (Some((deleted, _)), Some(grace)) if now > deleted.saturating_add(grace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn names_of_pods() {
        assert!(
            is_of_pods("requests.hugepages-2Mi") && is_of_pods("requests.x.io/gpu") && !is_of_pods("requests.storage")
        );
    }

    #[test]
    fn containers_state_what_quotas_limit() {
        let pod = json!({"spec": {
            "containers": [{"name": "b", "resources": {"requests": {"cpu": "1"}}}, {"name": "a"}]
        }});
        let want = [("limits.cpu".to_owned(), "a,b".to_owned()), ("requests.cpu".to_owned(), "a".to_owned())];
        assert_eq!(missing(&pod, &["requests.cpu", "pods", "limits.cpu"]), want);
    }
}
