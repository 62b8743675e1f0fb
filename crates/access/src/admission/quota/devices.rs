//! The usage of ResourceClaims: devices by class, also under the names of extended resources.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

use machinery::quantity::Quantity;
use machinery::{Text, Value};
use objects::Objects;

use super::pods::of_pod_usage;
use crate::admission::plugins::pod_resources::Amounts;

const GROUP: Text = Text::new_static("resource.k8s.io");
const CLAIMS: Text = Text::new_static("resourceclaims");
const OF_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
const REQUESTS: &str = "requests.";
/// The prefix before the class in the name of the extended resource that every class implicitly has.
const IMPLICIT: &str = "deviceclass.resource.kubernetes.io/";
/// The number of devices that is charged for a request of all devices: the most that a claim can get.
const DEVICES_MAX: i64 = 32;
const EXTENDED: &str = "resource.kubernetes.io/extended-resource-claim";

/// The objects that the usage of claims depends on: the classes of devices, Pods and other claims.
pub struct Devices<'a> {
    objects: Option<&'a Objects>,
    /// Whether devices count as extended resources (`DRAExtendedResource`).
    are_extended: bool,
    /// The names of extended resources by class, read when they are first needed.
    classes: OnceCell<BTreeMap<Text, Option<String>>>,
    /// By namespace, the first claim of each Pod, read when it is first needed.
    first_claims: RefCell<BTreeMap<Text, FirstClaims>>,
}

/// The time and the name of the first claim that was made for a Pod, by the uid of the Pod.
type FirstClaims = BTreeMap<String, (String, String)>;

impl<'a> Devices<'a> {
    pub fn new(objects: &'a Objects, are_extended: bool) -> Devices<'a> {
        Devices { objects: Some(objects), are_extended, classes: OnceCell::new(), first_claims: RefCell::default() }
    }

    /// A cluster without classes.
    #[cfg(test)]
    pub fn none() -> Devices<'static> {
        Devices { objects: None, are_extended: true, classes: OnceCell::new(), first_claims: RefCell::default() }
    }

    fn classes(&self) -> &BTreeMap<Text, Option<String>> {
        self.classes.get_or_init(|| {
            let Some(objects) = self.objects else { return BTreeMap::new() };
            let (root, _) = objects.collection(&GROUP, &Text::new_static("deviceclasses")).latest();
            let read = |(name, stored): (&Text, &std::sync::Arc<objects::Stored>)| {
                let class = stored.body.to_value(stored.revision);
                let resource = class.str_at(&["spec", "extendedResourceName"]);
                (name.clone(), Some(resource.to_owned()).filter(|name| !name.is_empty()))
            };
            root.iter().map(read).collect()
        })
    }

    /// Whether a quota limits ResourceClaims by this name. The name for the number of stored claims is not among these.
    pub fn counts(&self, name: &str) -> bool {
        name.ends_with(OF_CLASS) || self.counts_extended(name)
    }

    /// Whether this name of a quota is an extended resource that a DeviceClass provides.
    pub fn counts_extended(&self, name: &str) -> bool {
        let Some(resource) = name.strip_prefix(REQUESTS).filter(|_| self.are_extended) else { return false };
        match resource.strip_prefix(IMPLICIT) {
            Some(class) => self.classes().contains_key(class),
            None if !resource.contains('/') => false,
            None => self.classes().values().any(|name| name.as_deref() == Some(resource)),
        }
    }

    /// The usage of a claim, apart from the number of stored claims.
    pub fn usage(&self, claim: &Value, now: i64) -> Amounts {
        let mut used = BTreeMap::<String, i64>::new();
        for request in claim.items_at(&["spec", "devices", "requests"]) {
            for (class, count) in most_of(request) {
                *used.entry(class.to_owned()).or_default() += count;
            }
        }
        let extended = if self.are_extended { self.extended_usage(claim, &used, now) } else { Amounts::new() };
        let of_class = |(class, count)| (format!("{class}{OF_CLASS}"), Quantity::from_int(count));
        used.into_iter().map(of_class).chain(extended).collect()
    }

    /// The devices of a claim (`used`, by class), under the names of the extended resources that their classes provide.
    /// Requests of the Pod itself under these names are already charged to the Pod, and therefore not to its claim.
    fn extended_usage(&self, claim: &Value, used: &BTreeMap<String, i64>, now: i64) -> Amounts {
        let mut extended = Amounts::new();
        for (class, count) in used.iter().filter(|(class, _)| !class.is_empty()) {
            let count = Quantity::from_int(*count);
            extended.insert(format!("{REQUESTS}{IMPLICIT}{class}"), count.clone());
            if let Some(Some(resource)) = self.classes().get(class.as_str()) {
                extended.insert(format!("{REQUESTS}{resource}"), count);
            }
        }
        let of_pod = self.pod_usage(claim, now).unwrap_or_default();
        for (name, amount) in &mut extended {
            if let Some(charged) = of_pod.get(name) {
                *amount = amount.minus(charged);
            }
        }
        extended.retain(|_, amount| amount.signum() > 0);
        extended
    }

    /// The usage of the Pod for whose extended resources a claim was made.
    fn pod_usage(&self, claim: &Value, now: i64) -> Option<Amounts> {
        let objects = self.objects?;
        let owner = pod_of(claim)?;
        let namespace = Text::from(claim.str_at(&["metadata", "namespace"]));
        let pods = objects.collection(&Text::new_static(""), &Text::new_static("pods"));
        let stored = pods.get(&format!("{namespace}/{}", owner.str_at(&["name"])))?;
        let pod = stored.body.to_value(stored.revision);
        let uid = owner.str_at(&["uid"]);
        if pod.str_at(&["metadata", "uid"]) != uid {
            return None;
        }
        let own = (claim.str_at(&["metadata", "creationTimestamp"]), claim.str_at(&["metadata", "name"]));
        let is_its_claim = match pod.at(&["status", "extendedResourceClaimStatus"]).filter(|status| !status.is_null()) {
            Some(status) => status.str_at(&["resourceClaimName"]) == own.1,
            None => {
                let mut by_namespace = self.first_claims.borrow_mut();
                let of_namespace =
                    by_namespace.entry(namespace.clone()).or_insert_with(|| first_claims(objects, &namespace));
                of_namespace.get(uid).is_none_or(|(time, name)| own <= (time.as_str(), name.as_str()))
            }
        };
        is_its_claim.then(|| of_pod_usage(&pod, now))
    }
}

/// The first claims of a namespace. All of its claims are read once, however many Pods they belong to.
fn first_claims(objects: &Objects, namespace: &Text) -> FirstClaims {
    let mut first = FirstClaims::new();
    for stored in objects.collection(&GROUP, &CLAIMS).in_namespace(namespace) {
        let claim = stored.body.to_value(stored.revision);
        let Some(owner) = pod_of(&claim) else { continue };
        let text = |name: &str| claim.str_at(&["metadata", name]).to_owned();
        let key = (text("creationTimestamp"), text("name"));
        let known = first.entry(owner.str_at(&["uid"]).to_owned()).or_insert_with(|| key.clone());
        if key < *known {
            *known = key;
        }
    }
    first
}

/// The reference to the Pod for whose extended resources a claim was made.
fn pod_of(claim: &Value) -> Option<&Value> {
    if claim.str_at(&["metadata", "annotations", EXTENDED]) != "true" {
        return None;
    }
    let is_controller = |owner: &&Value| owner.is_true_at(&["controller"]);
    let owner = claim.items_at(&["metadata", "ownerReferences"]).iter().find(is_controller)?;
    (owner.str_at(&["kind"]) == "Pod" && owner.str_at(&["apiVersion"]) == "v1").then_some(owner)
}

/// The most devices of each class that a request may get.
fn most_of(request: &Value) -> BTreeMap<&str, i64> {
    let alternatives = request.items_at(&["firstAvailable"]);
    let given =
        if alternatives.is_empty() { request.get("exactly").map(std::slice::from_ref) } else { Some(alternatives) };
    let mut most = BTreeMap::new();
    for one in given.unwrap_or_default().iter().filter(|one| !one.is_null()) {
        let count = match one.str_at(&["allocationMode"]) {
            "ExactCount" => one.int_at(&["count"]),
            "All" => DEVICES_MAX,
            _ => 0,
        };
        let entry = most.entry(one.str_at(&["deviceClassName"])).or_insert(count);
        *entry = count.max(*entry);
    }
    // alternatives without devices are not counted at all
    most.retain(|_, count| *count > 0 || alternatives.is_empty());
    most
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    fn used(requests: Value) -> String {
        let claim = json!({"spec": {"devices": {"requests": (requests)}}});
        let used = Devices::none().usage(&claim, 0);
        used.iter().map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn claims_use_devices() {
        let exactly = |mode: &str, count: i64| json!({"exactly": {"deviceClassName": "a", "allocationMode": (mode), "count": count}});
        let sub = |class: &str, count: i64| json!({"deviceClassName": (class), "allocationMode": "ExactCount", "count": count});
        let cases = [
            (json!([]), ""),
            (
                json!([(exactly("ExactCount", 2)), (exactly("ExactCount", 3))]),
                "a.deviceclass.resource.k8s.io/devices=5 requests.deviceclass.resource.kubernetes.io/a=5",
            ),
            (
                json!([(exactly("All", 0))]),
                "a.deviceclass.resource.k8s.io/devices=32 requests.deviceclass.resource.kubernetes.io/a=32",
            ),
            (
                json!([{"firstAvailable": [(sub("a", 1)), (sub("a", 4)), (sub("b", 2))]}]),
                "a.deviceclass.resource.k8s.io/devices=4 b.deviceclass.resource.k8s.io/devices=2 \
                 requests.deviceclass.resource.kubernetes.io/a=4 requests.deviceclass.resource.kubernetes.io/b=2",
            ),
        ];
        for (requests, want) in cases {
            assert_eq!(used(requests), want);
        }
    }

    #[test]
    fn names_of_devices() {
        let devices = Devices::none();
        assert!(devices.counts("a.deviceclass.resource.k8s.io/devices"));
        assert!(!devices.counts("requests.example.com/gpu") && !devices.counts("requests.cpu"));
    }
}
