//! The usage of objects, by the resource names of quotas.

use machinery::Value;
use machinery::quantity::Quantity;

use super::devices::Devices;
use super::pods::{is_of_pods, of_pod_usage};
use super::scopes::{NONE, of_claim, of_pod};
use crate::admission::plugins::classes::storage_class;
use crate::admission::plugins::pod_resources::Amounts;

/// Kinds that are also counted under their plain name.
const NAMED: [&str; 4] = ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];
const OF_SERVICES: [&str; 3] = ["services", "services.nodeports", "services.loadbalancers"];
const OF_CLAIMS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];
/// The infix between a storage class and a resource name.
const BY_CLASS: &str = ".storageclass.storage.k8s.io/";

/// How the objects of a kind are counted.
pub struct Counting {
    /// The name of a quota under which objects are counted, such as `count/pods`.
    pub count: String,
    /// The plain name under which objects are counted as well.
    named: Option<&'static str>,
    /// Whether a name of a quota belongs to the kind, apart from `count` and `named`.
    pub knows: fn(&str, &Devices<'_>) -> bool,
    /// The usage of an object, apart from `count` and `named`.
    pub usage: fn(&Value, i64, &Devices<'_>) -> Amounts,
    /// Whether an object is in a scope, which has a name, an operator and values.
    pub is_in_scope: fn(&Value, &Value) -> bool,
    /// Whether updates change the usage.
    pub updates: bool,
}

/// How the objects of a resource are counted; `None` for Events, which are not counted.
pub fn counting(group: &str, plural: &str) -> Option<Counting> {
    let count = match group {
        "" | "events.k8s.io" if plural == "events" => return None,
        "" => format!("count/{plural}"),
        _ => format!("count/{plural}.{group}"),
    };
    let plain = Counting {
        count,
        named: NAMED.into_iter().find(|name| group.is_empty() && *name == plural),
        knows: |_, _| false,
        usage: |_, _, _| Amounts::new(),
        is_in_scope: NONE,
        updates: false,
    };
    Some(match (group, plural) {
        ("", "pods") => Counting {
            knows: |name, _| is_of_pods(name),
            usage: |pod, now, _| of_pod_usage(pod, now),
            is_in_scope: of_pod,
            updates: true,
            ..plain
        },
        ("", "services") => Counting {
            knows: |name, _| OF_SERVICES.contains(&name),
            usage: |service, _, _| service_usage(service),
            updates: true,
            ..plain
        },
        ("", "persistentvolumeclaims") => Counting {
            knows: |name, _| is_of_claims(name),
            usage: |claim, _, _| claim_usage(claim),
            is_in_scope: of_claim,
            updates: true,
            ..plain
        },
        ("resource.k8s.io", "resourceclaims") => Counting {
            knows: |name, devices| devices.counts(name),
            usage: |claim, now, devices| devices.usage(claim, now),
            updates: true,
            ..plain
        },
        _ => plain,
    })
}

/// The groups and plurals of the kinds to which a name of a quota belongs.
pub fn counted_kinds<'n>(name: &'n str, devices: &Devices<'_>) -> Vec<(&'n str, &'n str)> {
    const CLAIMS: (&str, &str) = ("resource.k8s.io", "resourceclaims");
    match name.strip_prefix("count/") {
        Some(counted) => vec![counted.split_once('.').map_or(("", counted), |(plural, group)| (group, plural))],
        None if is_of_claims(name) => vec![("", "persistentvolumeclaims")],
        None if OF_SERVICES.contains(&name) => vec![("", "services")],
        None if NAMED.contains(&name) => vec![("", name)],
        // Pods ask for extended resources, which devices may provide
        None if devices.counts_extended(name) => vec![("", "pods"), CLAIMS],
        None if devices.counts(name) => vec![CLAIMS],
        None => vec![("", "pods")],
    }
}

impl Counting {
    /// The usage of an object at a time in seconds.
    pub fn of(&self, object: &Value, now: i64, devices: &Devices<'_>) -> Amounts {
        let mut used = (self.usage)(object, now, devices);
        let counted = [Some(self.count.as_str()), self.named].into_iter().flatten();
        used.extend(counted.map(|name| (name.to_owned(), Quantity::from_int(1))));
        used
    }

    /// Whether a name of a quota belongs to the kind.
    pub fn has(&self, name: &str, devices: &Devices<'_>) -> bool {
        name == self.count || self.named == Some(name) || (self.knows)(name, devices)
    }
}

fn is_of_claims(name: &str) -> bool {
    let of_class = name.split_once(BY_CLASS).map(|(_, rest)| rest);
    OF_CLAIMS.contains(&of_class.unwrap_or(name))
}

fn service_usage(service: &Value) -> Amounts {
    let ports = service.items_at(&["spec", "ports"]);
    let explicit_node_ports = || ports.iter().filter(|port| port.int_at(&["nodePort"]) != 0);
    let allocates_node_ports =
        service.at(&["spec", "allocateLoadBalancerNodePorts"]).and_then(Value::as_bool).unwrap_or(true);
    let (node_ports, load_balancers) = match service.str_at(&["spec", "type"]) {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" => (if allocates_node_ports { ports.len() } else { explicit_node_ports().count() }, 1),
        _ => (0, 0),
    };
    let counts = OF_SERVICES.into_iter().zip([1, node_ports, load_balancers]);
    counts.map(|(name, count)| (name.to_owned(), Quantity::from_int(count as i64))).collect()
}

fn claim_usage(claim: &Value) -> Amounts {
    let mut used = Amounts::from([(OF_CLAIMS[0].to_owned(), Quantity::from_int(1))]);
    let amount = |path: &[&str]| claim.at(path).and_then(|amount| Quantity::of(amount).ok());
    let requested = amount(&["spec", "resources", "requests", "storage"]);
    let allocated = amount(&["status", "allocatedResources", "storage"]);
    let storage = match (requested, allocated) {
        (Some(requested), Some(allocated)) if allocated.compare(&requested).is_gt() => Some(allocated),
        (requested, _) => requested,
    };
    if let Some(storage) = storage {
        used.insert(OF_CLAIMS[1].to_owned(), storage);
    }
    let class = storage_class(claim);
    if !class.is_empty() {
        let of_class: Amounts =
            used.iter().map(|(name, amount)| (format!("{class}{BY_CLASS}{name}"), amount.clone())).collect();
        used.extend(of_class);
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    fn used(plural: &str, object: Value) -> String {
        let counting = counting("", plural).unwrap();
        let used = counting.of(&object, 0, &Devices::none());
        used.iter().map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn objects_use_quotas() {
        let pod = |phase: &str| {
            json!({"spec": {"overhead": {"cpu": "1"}, "containers": [{"name": "a", "resources": {
                "requests": {"cpu": "500m", "x.io/gpu": "2"}, "limits": {"memory": "1Gi"}
            }}]}, "status": {"phase": phase}})
        };
        let service = json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 1}, {"port": 2}]}});
        let claim = json!({"spec": {"storageClassName": "a", "resources": {"requests": {"storage": "1Gi"}}}});
        let cases = [
            ("pods", pod("Failed"), "count/pods=1"),
            (
                "pods",
                pod("Running"),
                "count/pods=1 cpu=1500m limits.memory=1Gi pods=1 requests.cpu=1500m requests.x.io/gpu=2",
            ),
            ("services", service, "count/services=1 services=1 services.loadbalancers=1 services.nodeports=2"),
            (
                "persistentvolumeclaims",
                claim,
                "a.storageclass.storage.k8s.io/persistentvolumeclaims=1 a.storageclass.storage.k8s.io/requests.storage=1Gi count/persistentvolumeclaims=1 persistentvolumeclaims=1 requests.storage=1Gi",
            ),
            ("secrets", json!({}), "count/secrets=1 secrets=1"),
            ("endpoints", json!({}), "count/endpoints=1"),
        ];
        for (plural, object, want) in cases {
            assert_eq!(used(plural, object), want);
        }
        assert!(counting("", "events").is_none() && counting("events.k8s.io", "events").is_none());
        assert_eq!(counting("g.io", "foos").unwrap().count, "count/foos.g.io");
    }

    #[test]
    fn names_belong_to_kinds() {
        let cases = [
            ("count/deployments.apps", ("apps", "deployments")),
            ("a.deviceclass.resource.k8s.io/devices", ("resource.k8s.io", "resourceclaims")),
            ("requests.example.com/gpu", ("", "pods")),
            ("count/pods", ("", "pods")),
            ("requests.cpu", ("", "pods")),
            ("requests.storage", ("", "persistentvolumeclaims")),
            ("gold.storageclass.storage.k8s.io/requests.storage", ("", "persistentvolumeclaims")),
            ("services.nodeports", ("", "services")),
            ("configmaps", ("", "configmaps")),
        ];
        for (name, want) in cases {
            assert_eq!(counted_kinds(name, &Devices::none()), [want], "{name}");
        }
    }
}
