//! The resource requests and limits of Pods, and AlwaysPullImages.

use std::collections::BTreeMap;

use machinery::Value;
use machinery::quantity::Quantity;

use super::{Decision, PluginRequest};

/// The lists of containers in the spec of a Pod.
pub const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

pub type Amounts = BTreeMap<String, Quantity>;

/// The requests and limits of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Requests,
    Limits,
}

impl Field {
    pub fn name(self) -> &'static str {
        match self {
            Field::Requests => "requests",
            Field::Limits => "limits",
        }
    }
}

/// A list of resources, such as `limits`.
pub fn amounts(list: Option<&Value>) -> Amounts {
    let list = list.and_then(Value::as_object).into_iter().flat_map(|list| list.iter());
    list.filter_map(|(name, amount)| Some((name.to_string(), Quantity::of(amount).ok()?))).collect()
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let total = sum.get(name).map_or_else(|| amount.clone(), |known| known.plus(amount));
        sum.insert(name.clone(), total);
    }
}

/// Sets each amount to the greater one of both lists.
fn raise(amounts: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        if amounts.get(name).is_none_or(|known| amount.compare(known).is_gt()) {
            amounts.insert(name.clone(), amount.clone());
        }
    }
}

/// The total requests or limits of a Pod: either the sum of its containers and sidecars or what it needs while one of
/// its init containers runs, whichever is greater. Amounts of the Pod itself replace those of its containers.
pub fn total(pod: &Value, field: Field) -> Amounts {
    let mut sum = of_containers(pod, |container| amounts(container.at(&["resources", field.name()])));
    sum.extend(own(pod, field));
    sum
}

/// The requests or limits of a Pod as quotas count them. For a Pod that is being resized, they are the greater of what
/// it requests and what it has, or only what it has if its Node cannot resize it.
pub fn in_use(pod: &Value, field: Field) -> Amounts {
    let pending =
        pod.items_at(&["status", "conditions"]).iter().find(|one| one.str_at(&["type"]) == "PodResizePending");
    let is_infeasible = pending.is_some_and(|condition| condition.str_at(&["reason"]) == "Infeasible");
    let statuses = ["containerStatuses", "initContainerStatuses"].into_iter();
    let statuses: Vec<&Value> = statuses.flat_map(|list| pod.items_at(&["status", list])).collect();
    let requested = |container: &Value| amounts(container.at(&["resources", field.name()]));
    // the first of these paths that a container's status has
    let granted = |paths: &[&[&str]]| {
        of_containers(pod, |container| {
            let status = statuses.iter().find(|status| status.get("name") == container.get("name"));
            let found = paths.iter().find_map(|path| status?.at(path).filter(|list| !list.is_null()));
            match found {
                Some(list) => amounts(Some(list)),
                None if is_infeasible => Amounts::new(),
                None => requested(container),
            }
        })
    };
    let resources: &[&str] = &["resources", field.name()];
    let mut sum = granted(&[resources]);
    if field == Field::Requests {
        sum = granted(&[resources, &["allocatedResources"]]);
        raise(&mut sum, &granted(&[&["allocatedResources"]]));
    }
    if !is_infeasible {
        raise(&mut sum, &of_containers(pod, requested));
    }
    sum.extend(own(pod, field));
    sum
}

/// The amounts of the Pod itself.
pub fn own(pod: &Value, field: Field) -> impl Iterator<Item = (String, Quantity)> {
    let is_supported = |name: &str| ["cpu", "memory"].contains(&name) || name.starts_with("hugepages-");
    let given = amounts(pod.at(&["spec", "resources", field.name()])).into_iter();
    given.filter(move |(name, _)| is_supported(name))
}

fn of_containers(pod: &Value, of: impl Fn(&Value) -> Amounts) -> Amounts {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let (mut sum, mut sidecars, mut most_while_starting) = (Amounts::new(), Amounts::new(), Amounts::new());
    spec.items_at(&["containers"]).iter().for_each(|container| add(&mut sum, &of(container)));
    for container in spec.items_at(&["initContainers"]) {
        let mut needed = of(container);
        if container.str_at(&["restartPolicy"]) == "Always" {
            add(&mut sum, &needed);
            add(&mut sidecars, &needed);
            needed = sidecars.clone();
        } else {
            add(&mut needed, &sidecars);
        }
        raise(&mut most_while_starting, &needed);
    }
    raise(&mut sum, &most_while_starting);
    sum
}

/// AlwaysPullImages: sets the pull policy Always, so that each Pod needs credentials for its images.
pub fn always_pull(_call: &PluginRequest<'_>, pod: &mut Value) -> Decision {
    let Some(spec) = pod.get_mut("spec") else { return Ok(()) };
    for list in CONTAINERS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container.set_at(&["imagePullPolicy"], Value::from("Always"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn resized_pods_use_what_they_have() {
        let pod = |requested: &str, has: &str, reason: &str| {
            json!({
                "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": (requested)}}}]},
                "status": {
                    "containerStatuses": [{"name": "a", "allocatedResources": {"cpu": (has)}}],
                    "conditions": [{"type": "PodResizePending", "reason": (reason)}],
                },
            })
        };
        let cases = [("2", "1", "Deferred", "2"), ("1", "2", "Deferred", "2"), ("2", "1", "Infeasible", "1")];
        for (requested, has, reason, want) in cases {
            let pod = pod(requested, has, reason);
            assert_eq!(in_use(&pod, Field::Requests)["cpu"].to_string(), want, "{}", pod.to_json());
        }
    }

    #[test]
    fn init_containers_and_sidecars_are_counted() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let mut sidecar = container("1");
        sidecar.set_at(&["restartPolicy"], Value::from("Always"));
        let pod = |init: Vec<Value>, own: Value| {
            let containers = [container("500m"), container("1")];
            json!({"spec": {"initContainers": (Value::Array(init)), "containers": (containers.into_iter().collect::<Value>()),
                "resources": {"requests": own}}})
        };
        let cases = [
            (pod(vec![], json!({})), "1500m"),
            (pod(vec![container("2")], json!({})), "2"),
            (pod(vec![sidecar.clone(), container("2")], json!({})), "3"),
            (pod(vec![sidecar], json!({})), "2500m"),
            (pod(vec![], json!({"cpu": "5"})), "5"),
        ];
        for (pod, want) in cases {
            assert_eq!(total(&pod, Field::Requests)["cpu"].to_string(), want, "{}", pod.to_json());
            assert!(total(&pod, Field::Limits).is_empty());
        }
    }
}
