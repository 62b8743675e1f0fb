//! Warnings about kinds that have few of them: deprecated labels, annotations and sources, IP addresses that are not in
//! canonical form, names that cannot be host names.

use machinery::field::FieldPath;
use machinery::quantity::Quantity;
use machinery::{Release, Value, names};

use super::checks::{entries, is_set, items, text};
use super::ip;

type Old<'a> = Option<&'a Value>;

/// Warns about a name that is not a DNS label, for kinds whose names are used in names of Pods or hosts.
pub fn of_name(object: &Value, used_in: &str) -> Option<String> {
    let problems = names::dns1123_label(object.str_at(&["metadata", "name"]));
    let warning = || {
        let why = "which can result in surprising behavior; a DNS label is recommended";
        format!("metadata.name: this is used in {used_in}, {why}: [{}]", problems.join(" "))
    };
    (!problems.is_empty()).then(warning)
}

/// Deprecated labels of Nodes, and what has replaced them.
const FORMER_LABELS: [(&str, &str); 5] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    ("failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"),
    ("beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"),
];

/// The warning about a label that has been replaced.
pub fn former_label(key: &str) -> Option<&'static str> {
    FORMER_LABELS.iter().find(|(label, _)| *label == key).map(|(_, why)| *why)
}

/// Warns about deprecated labels in the expressions of a selector.
pub fn former_keys(term: &Value, path: &FieldPath) -> Vec<String> {
    let keys = items(term, "matchExpressions", path).map(|(path, it)| (path.child("key"), text(it, "key")));
    keys.filter_map(|(path, key)| Some(format!("{path}: {key} is {}", former_label(key)?))).collect()
}

/// Volume sources that no longer work: the field, its name in warnings, and the releases concerned.
const FORMER_SOURCES: [(&str, &str, &str); 9] = [
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
];

/// Warns about sources of a volume that no longer work.
pub fn former_sources(volume: &Value, path: &FieldPath) -> Vec<String> {
    let former = FORMER_SOURCES.iter().filter(|(source, _, _)| is_set(volume, source));
    former.map(|(_, shown, why)| format!("{}: {why}", path.child(shown))).collect()
}

/// The annotation that names the class of a volume or a claim.
pub const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Warns about annotations that fields have replaced.
fn former_annotations(object: &Value, known: &[(&str, &str)]) -> Vec<String> {
    let path = FieldPath::new("metadata").child("annotations");
    let given = |key: &str| object.at(&["metadata", "annotations", key]).is_some();
    let found = known.iter().filter(|(key, _)| given(key));
    found.map(|(key, why)| format!("{}: deprecated since {why} attribute instead", path.key(key))).collect()
}

pub fn of_volume(volume: &Value, _old: Old<'_>, _release: Release) -> Vec<String> {
    let mut warnings = former_annotations(
        volume,
        &[
            (CLASS, "v1.8; use \"storageClassName\""),
            ("volume.beta.kubernetes.io/mount-options", "v1.31; use \"mountOptions\""),
        ],
    );
    let (path, spec) = (FieldPath::new("spec"), volume.get("spec").unwrap_or(&Value::Null));
    if text(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
        let why = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.";
        warnings.push(format!("{}: {why}", path.child("persistentVolumeReclaimPolicy")));
    }
    let required = spec.at(&["nodeAffinity", "required"]).unwrap_or(&Value::Null);
    for (path, term) in items(required, "nodeSelectorTerms", &path.child("nodeAffinity").child("required")) {
        warnings.extend(former_keys(term, &path));
    }
    // kube-apiserver does not warn of these in PersistentVolumes
    if !is_set(spec, "flocker") && !is_set(spec, "quobyte") {
        warnings.extend(former_sources(spec, &path));
    }
    warnings
}

/// Warns about fractions of bytes in a claim.
pub fn of_claim(claim: &Value, _old: Old<'_>, _release: Release) -> Vec<String> {
    let mut warnings = former_annotations(claim, &[(CLASS, "v1.8; use \"storageClassName\"")]);
    let spec = claim.get("spec").unwrap_or(&Value::Null);
    claim_fractions(spec, &FieldPath::new("spec"), &mut warnings);
    warnings
}

/// Warns about fractions of bytes in the spec of a claim.
pub fn claim_fractions(spec: &Value, path: &FieldPath, warnings: &mut Vec<String>) {
    for kind in ["requests", "limits"] {
        let Some(amount) = spec.at(&["resources", kind, "storage"]) else { continue };
        if let Ok(amount) = Quantity::of(amount)
            && !amount.is_whole()
        {
            let (path, shown) = (path.child("resources").child(kind).key("storage"), amount.rounded_to_thousandths());
            warnings.push(format!("{path}: fractional byte value \"{shown}\" is invalid, must be an integer"));
        }
    }
}

pub fn of_class(class: &Value, _old: Old<'_>, _release: Release) -> Vec<String> {
    let mut warnings = vec![];
    for (path, term) in items(class, "allowedTopologies", &FieldPath::root()) {
        for (path, requirement) in items(term, "matchLabelExpressions", &path) {
            let why = former_label(text(requirement, "key"));
            warnings.extend(why.map(|why| format!("{}: {why}", path.child("key"))));
        }
    }
    warnings
}

pub fn of_capacity(capacity: &Value, _old: Old<'_>, _release: Release) -> Vec<String> {
    let (path, topology) = (FieldPath::new("nodeTopology"), capacity.get("nodeTopology").unwrap_or(&Value::Null));
    let mut warnings = former_keys(topology, &path);
    for (label, _) in entries(topology, &["matchLabels"]) {
        let why = former_label(label);
        warnings.extend(why.map(|why| format!("{}: {why}", path.child("matchLabels").child(label))));
    }
    warnings
}

pub fn of_runtime_class(class: &Value, _old: Old<'_>, _release: Release) -> Vec<String> {
    let former = entries(class, &["scheduling", "nodeSelector"]).filter_map(|(label, _)| former_label(label));
    former.map(|why| format!("scheduling.nodeSelector: {why}")).collect()
}

/// Warns about a new Ingress whose class is an annotation.
pub fn of_ingress(ingress: &Value, old: Old<'_>, _release: Release) -> Vec<String> {
    const CLASS: &str = "kubernetes.io/ingress.class";
    let has_field = ingress.at(&["spec", "ingressClassName"]).is_some_and(|class| !class.is_null());
    match old.is_none() && !has_field && ingress.at(&["metadata", "annotations", CLASS]).is_some() {
        true => vec![format!("annotation \"{CLASS}\" is deprecated, please use 'spec.ingressClassName' instead")],
        false => vec![],
    }
}

/// Warns about IP addresses of load balancers in the status of Ingresses and Services.
pub fn of_balancers(object: &Value, release: Release) -> Vec<String> {
    let balancer = object.at(&["status", "loadBalancer"]).unwrap_or(&Value::Null);
    let path = FieldPath::new("status").child("loadBalancer");
    let points = items(balancer, "ingress", &path);
    points.filter_map(|(path, point)| ip::warning(&path, text(point, "ip"), release)).collect()
}

/// Warns about IP addresses in the status of a Pod.
pub fn of_pod_status(pod: &Value, release: Release) -> Vec<String> {
    let (path, status) = (FieldPath::new("status"), pod.get("status").unwrap_or(&Value::Null));
    let addresses = ["podIPs", "hostIPs"].into_iter().flat_map(|list| items(status, list, &path));
    addresses.filter_map(|(path, address)| ip::warning(&path.child("ip"), text(address, "ip"), release)).collect()
}

pub fn of_network_policy(policy: &Value, _old: Old<'_>, release: Release) -> Vec<String> {
    let (path, spec, mut warnings) = (FieldPath::new("spec"), policy.get("spec").unwrap_or(&Value::Null), vec![]);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (path, rule) in items(spec, direction, &path) {
            for (path, peer) in items(rule, peers, &path) {
                let Some(block) = peer.get("ipBlock") else { continue };
                let path = path.child("ipBlock");
                warnings.extend(ip::cidr_warnings(&path.child("cidr"), text(block, "cidr"), release));
                for (path, range) in items(block, "except", &path) {
                    warnings.extend(ip::cidr_warnings(&path, range.as_str().unwrap_or_default(), release));
                }
            }
        }
    }
    warnings
}

/// Warns about IP addresses in Endpoints, unless their controller writes them.
pub fn of_endpoints(endpoints: &Value, _old: Old<'_>, release: Release) -> Vec<String> {
    let manager = endpoints.str_at(&["metadata", "labels", "endpoints.kubernetes.io/managed-by"]);
    let mut warnings = vec![];
    for (path, subset) in items(endpoints, "subsets", &FieldPath::root()).filter(|_| manager != "endpoint-controller") {
        for (path, address) in
            ["addresses", "notReadyAddresses"].into_iter().flat_map(|list| items(subset, list, &path))
        {
            warnings.extend(ip::warning(&path.child("ip"), text(address, "ip"), release));
        }
    }
    warnings
}

/// Warns about a new quota that allows more requests than limits.
pub fn of_quota(quota: &Value, old: Old<'_>, _release: Release) -> Vec<String> {
    let (mut warnings, hard) = (vec![], quota.at(&["spec", "hard"]).unwrap_or(&Value::Null));
    let amount = |name: &str| hard.get(name).and_then(|amount| Quantity::of(amount).ok());
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"].into_iter().filter(|_| old.is_none()) {
        let (mut name, limit_name) = (format!("requests.{resource}"), format!("limits.{resource}"));
        if amount(&name).is_none() && ["cpu", "memory"].contains(&resource) {
            resource.clone_into(&mut name);
        }
        if let (Some(request), Some(limit)) = (amount(&name), amount(&limit_name))
            && request.compare(&limit).is_gt()
        {
            warnings.push(format!("ResourceQuota {name} ({request}) should be less than {limit_name} ({limit})"));
        }
    }
    warnings
}
