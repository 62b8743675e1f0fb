//! Pod-level resources: their defaults, and the quality-of-service class of a Pod.

use machinery::Value;
use machinery::quantity::Quantity;

use crate::core::podspec::resources::{HUGE_PAGES, is_overcommitted, needed};
use resource::builtin::checks::list;
use resource::builtin::defaults::set_default;

/// Whether this resource may be specified at Pod level.
fn is_of_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES)
}

/// The names of the amounts of a kind: `requests` or `limits`.
fn names(spec: &Value, kind: &str) -> Vec<String> {
    spec.fields_at(&["resources", kind]).map(|(name, _)| name.as_str().to_owned()).collect()
}

/// If a Pod has resources of its own, completes them from those of its containers: first the limits of huge pages, then
/// all requests, then the limits of resources that every container limits. The latter are not below the requests.
pub fn complete(spec: &mut Value) {
    if names(spec, "requests").is_empty() && names(spec, "limits").is_empty() {
        return;
    }
    let (requests, limits) = (needed(spec, "requests"), needed(spec, "limits"));
    for (name, limit) in limits.iter().filter(|(name, _)| name.starts_with(HUGE_PAGES)) {
        if spec.at(&["resources", "requests", name]).is_none() {
            set_default(spec, &["resources", "limits", name], Value::from(limit.to_string()));
        }
    }
    for (name, request) in requests.iter().filter(|(name, _)| is_of_pods(name) && is_overcommitted(name)) {
        set_default(spec, &["resources", "requests", name], Value::from(request.to_string()));
    }
    for name in names(spec, "limits").into_iter().filter(|name| is_of_pods(name)) {
        let limit = spec.at(&["resources", "limits", &name]).cloned().unwrap_or_default();
        set_default(spec, &["resources", "requests", &name], limit);
    }
    for name in names(spec, "requests").into_iter().filter(|name| is_of_pods(name)) {
        let Some(limit) = limits.get(&name).filter(|_| is_limited_by_all(spec, &name)) else { continue };
        let request = spec.at(&["resources", "requests", &name]).and_then(|request| Quantity::of(request).ok());
        let greatest = request.filter(|request| request.compare(limit).is_gt()).unwrap_or_else(|| limit.clone());
        set_default(spec, &["resources", "limits", &name], Value::from(greatest.to_string()));
    }
}

fn is_limited_by_all(spec: &Value, name: &str) -> bool {
    let kinds = ["initContainers", "containers", "ephemeralContainers"];
    let mut containers = kinds.into_iter().flat_map(|kind| list(spec, kind));
    containers.all(|container| container.at(&["resources", "limits", name]).is_some())
}

const BEST_EFFORT: &str = "BestEffort";
const BURSTABLE: &str = "Burstable";

/// The class of one set of resources: Guaranteed if limits and requests are equal, BestEffort if there are none.
fn class_of(resources: Option<&Value>) -> &'static str {
    let amount = |kind: &str, name: &str| {
        let given = resources.and_then(|resources| resources.at(&[kind, name]));
        given.and_then(|given| Quantity::of(given).ok()).unwrap_or_else(|| Quantity::from_int(0))
    };
    let of = |name: &str| {
        let (request, limit) = (amount("requests", name), amount("limits", name));
        match request.signum() {
            _ if request.compare(&limit).is_ne() => BURSTABLE,
            0 => BEST_EFFORT,
            _ => "Guaranteed",
        }
    };
    common([of("cpu"), of("memory")].into_iter())
}

fn common(mut classes: impl Iterator<Item = &'static str>) -> &'static str {
    let first = classes.next().unwrap_or(BEST_EFFORT);
    if classes.all(|class| class == first) { first } else { BURSTABLE }
}

/// The quality-of-service class of a Pod, from its own resources if it has any, and else from those of all containers.
pub fn quality_of_service(pod: &Value) -> &'static str {
    let Some(spec) = pod.get("spec") else { return BEST_EFFORT };
    if ["requests", "limits"].into_iter().any(|kind| names(spec, kind).iter().any(|name| is_of_pods(name))) {
        return class_of(spec.get("resources"));
    }
    let containers = ["initContainers", "containers"].into_iter().flat_map(|kind| list(spec, kind));
    common(containers.map(|container| class_of(container.get("resources"))))
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    /// The expected values are those of kube-apiserver 1.37.
    #[test]
    fn resources_of_pods_are_completed_by_those_of_containers() {
        let container =
            |requests: Value, limits: Value| json!({"resources": {"requests": (requests), "limits": (limits)}});
        let none = || json!({});
        let cases = [
            (
                json!({"limits": {"cpu": "1"}}),
                vec![container(none(), none())],
                json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}),
                "Burstable",
            ),
            (
                json!({"limits": {"cpu": "1", "memory": "1Gi"}}),
                vec![container(json!({"cpu": "300m"}), none()), container(json!({"cpu": "300m"}), none())],
                json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "600m", "memory": "1Gi"}}),
                "Burstable",
            ),
            (
                json!({"requests": {"memory": "1Gi"}}),
                vec![container(json!({"cpu": "300m"}), none())],
                json!({"requests": {"cpu": "300m", "memory": "1Gi"}}),
                "Burstable",
            ),
            (
                json!({"requests": {"cpu": "2"}}),
                vec![container(json!({"cpu": "1", "memory": "1Mi"}), json!({"cpu": "1", "memory": "2Mi"}))],
                json!({"limits": {"cpu": "2", "memory": "2Mi"}, "requests": {"cpu": "2", "memory": "1Mi"}}),
                "Burstable",
            ),
            (
                json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}),
                vec![container(none(), none())],
                json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}),
                "Guaranteed",
            ),
            (json!({}), vec![container(none(), json!({"cpu": "1"}))], json!({}), "Burstable"),
        ];
        for (given, containers, want, class) in cases {
            let mut pod = json!({"spec": {"containers": (Value::Array(containers)), "resources": (given)}});
            complete(pod.get_mut("spec").expect("a spec"));
            assert_eq!(pod.at(&["spec", "resources"]), Some(&want));
            assert_eq!(quality_of_service(&pod), class, "{want}");
        }
    }
}
