//! Warnings about kinds that have few of them: deprecated labels, annotations and sources, IP addresses that are not in
//! canonical form, names that cannot be host names.

use machinery::names;
use machinery::quantity::Quantity;

use crate::ip;
use schema::at::At;

/// Warns about a name that is not a DNS label, for kinds whose names are used in names of Pods or hosts.
pub fn of_name(object: At, used_in: &str) {
    let name = object.field("metadata.name");
    let problems = names::dns1123_label(name.as_text());
    if !problems.is_empty() {
        let why = "which can result in surprising behavior; a DNS label is recommended";
        name.warn(format!("this is used in {used_in}, {why}: [{}]", problems.join(" ")));
    }
}

/// Deprecated labels of Nodes, and what has replaced them.
const FORMER_LABELS: [(&str, &str); 8] = [
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
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

/// Warns if the text at this place is the key of a deprecated label.
pub fn former_key(at: At) {
    if let Some(why) = former_label(at.as_text()) {
        at.warn(format!("{} is {why}", at.as_text()));
    }
}

/// Warns about deprecated labels in the expressions of a selector.
pub fn former_keys(term: At) {
    term.items_of("matchExpressions").for_each(|requirement| former_key(requirement.field("key")));
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
pub fn former_sources(volume: At) {
    for (_, shown, why) in FORMER_SOURCES.iter().filter(|(source, _, _)| volume.has(source)) {
        volume.field(shown).warn(why);
    }
}

/// The annotation that names the class of a volume or a claim.
pub const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Warns about an annotation that a field has replaced.
fn former_annotation(object: At, key: &str, why: &str) {
    let annotations = object.field("metadata.annotations");
    if annotations.entry(key).is_given() {
        annotations.entry(key).warn(format!("deprecated since {why} attribute instead"));
    }
}

pub fn of_volume(volume: At) {
    former_annotation(volume, CLASS, "v1.8; use \"storageClassName\"");
    former_annotation(volume, "volume.beta.kubernetes.io/mount-options", "v1.31; use \"mountOptions\"");
    let spec = volume.field("spec");
    if spec.text("persistentVolumeReclaimPolicy") == "Recycle" {
        spec.field("persistentVolumeReclaimPolicy").warn("The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.");
    }
    spec.field("nodeAffinity.required").items_of("nodeSelectorTerms").for_each(former_keys);
    // kube-apiserver does not warn of these in PersistentVolumes
    if !spec.has("flocker") && !spec.has("quobyte") {
        former_sources(spec);
    }
}

/// Warns about fractions of bytes in a claim.
pub fn of_claim(claim: At) {
    former_annotation(claim, CLASS, "v1.8; use \"storageClassName\"");
    claim_fractions(claim.field("spec"));
}

/// Warns about fractions of bytes in the spec of a claim.
pub fn claim_fractions(spec: At) {
    for resources in ["resources.requests", "resources.limits"] {
        fraction(spec.field(resources).entry("storage"));
    }
}

/// Warns about an amount of bytes that is not whole.
pub fn fraction(at: At) {
    if let Ok(amount) = Quantity::of(at.value)
        && !amount.is_whole()
    {
        let shown = amount.rounded_to_thousandths();
        at.warn(format!("fractional byte value \"{shown}\" is invalid, must be an integer"));
    }
}

pub fn of_class(class: At) {
    for term in class.items_of("allowedTopologies") {
        for requirement in term.items_of("matchLabelExpressions") {
            let key = requirement.field("key");
            former_label(key.as_text()).into_iter().for_each(|why| key.warn(why));
        }
    }
}

pub fn of_capacity(capacity: At) {
    let topology = capacity.field("nodeTopology");
    former_keys(topology);
    let labels = topology.field("matchLabels");
    for (label, _) in topology.entries_of("matchLabels") {
        former_label(label).into_iter().for_each(|why| labels.field_with_dots(label).warn(why));
    }
}

pub fn of_runtime_class(class: At) {
    let selector = class.field("scheduling.nodeSelector");
    let former = class.entries_of("scheduling.nodeSelector").filter_map(|(label, _)| former_label(label));
    former.for_each(|why| selector.warn(why));
}

/// Warns about a new Ingress whose class is an annotation.
pub fn of_ingress(ingress: At) {
    const CLASS: &str = "kubernetes.io/ingress.class";
    let is_annotated = ingress.field("metadata.annotations").entry(CLASS).is_given();
    if !ingress.is_update() && !ingress.has("spec.ingressClassName") && is_annotated {
        ingress.warn_text(format!("annotation \"{CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"));
    }
}

/// Warns about IP addresses of load balancers in the status of Ingresses and Services. Upstream leaves `ip` out of
/// the path.
pub fn of_balancers(object: At) {
    for point in object.items_of("status.loadBalancer.ingress") {
        ip::warn_address(point.with_value(point.field("ip").value));
    }
}

/// Warns about IP addresses in the status of a Pod.
pub fn of_pod_status(pod: At) {
    let addresses = ["status.podIPs", "status.hostIPs"];
    addresses.iter().flat_map(|list| pod.items_of(list)).for_each(|address| ip::warn_address(address.field("ip")));
}

pub fn of_network_policy(policy: At) {
    for (direction, peers) in [("spec.ingress", "from"), ("spec.egress", "to")] {
        for rule in policy.items_of(direction) {
            for peer in rule.items_of(peers) {
                ip::warn_cidr(peer.field("ipBlock.cidr"));
                peer.items_of("ipBlock.except").for_each(ip::warn_cidr);
            }
        }
    }
}

/// Warns about IP addresses in Endpoints, unless their controller writes them.
pub fn of_endpoints(endpoints: At) {
    let labels = endpoints.field("metadata.labels");
    if labels.entry("endpoints.kubernetes.io/managed-by").as_text() == "endpoint-controller" {
        return;
    }
    for subset in endpoints.items_of("subsets") {
        for address in ["addresses", "notReadyAddresses"].iter().flat_map(|list| subset.items_of(list)) {
            ip::warn_address(address.field("ip"));
        }
    }
}

/// Warns about a new quota that allows more requests than limits.
pub fn of_quota(quota: At) {
    let hard = quota.field("spec.hard");
    let amount = |name: &str| Quantity::of(hard.value.get(name)?).ok();
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"].into_iter().filter(|_| !quota.is_update()) {
        let (mut name, limit_name) = (format!("requests.{resource}"), format!("limits.{resource}"));
        if amount(&name).is_none() && ["cpu", "memory"].contains(&resource) {
            resource.clone_into(&mut name);
        }
        if let (Some(request), Some(limit)) = (amount(&name), amount(&limit_name))
            && request.compare(&limit).is_gt()
        {
            quota.warn_text(format!("ResourceQuota {name} ({request}) should be less than {limit_name} ({limit})"));
        }
    }
}
