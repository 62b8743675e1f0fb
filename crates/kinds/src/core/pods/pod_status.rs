//! Validation of the status of a Pod: its conditions and addresses, and whether it agrees with the claims of the spec.

use std::collections::{HashMap, HashSet, VecDeque};

use machinery::field::FieldError;
use machinery::{Release, Value, json, names};

use crate::core::pods::{container_statuses, pod_annotations};
use crate::{ip, rule_checks};
use resource::builtin::checks::{list, text};
use resource::builtin::defaults::restore;
use schema::at::{At, CheckStage};

/// Completes `podIP` and the first of `podIPs` from each other.
pub fn default(pod: &mut Value) {
    let Some(status) = pod.get_mut("status") else { return };
    let first = list(status, "podIPs").first().map(|ip| text(ip, "ip").to_owned());
    match (text(status, "podIP").to_owned(), first) {
        (one, Some(first)) if one.is_empty() => status.set_at(&["podIP"], Value::from(first)),
        (one, first) if !one.is_empty() && first.as_ref() != Some(&one) => {
            let mut address = Value::object();
            address.set_at(&["ip"], Value::from(one));
            status.set_at(&["podIPs"], Value::Array(vec![address]));
        }
        _ => {}
    }
}

/// Keeps the fields that a kubelet leaves out of a status because it does not know them, and the owners and deletion of
/// the Pod.
pub fn prepare(pod: &mut Value, old: &Value) {
    let kept = ["qosClass", "observedGeneration", "resourceClaimStatuses", "extendedResourceClaimStatus"];
    for field in kept {
        let path = ["status", field];
        let is_absent = pod.at(&path).is_none_or(|value| value.is_null() || *value == Value::from(""));
        if let Some(value) = old.at(&path).filter(|_| is_absent) {
            pod.set_at(&path, value.clone());
        }
    }
    keep_observed(pod, old);
    for field in ["deletionTimestamp", "ownerReferences"] {
        restore(pod, old, &["metadata", field]);
    }
}

/// A condition without an observed generation keeps the one that the stored condition of its type has. Conditions of
/// equal types correspond in their order.
fn keep_observed(pod: &mut Value, old: &Value) {
    const SEEN: &str = "observedGeneration";
    let mut before: HashMap<&str, VecDeque<Option<&Value>>> = HashMap::new();
    for condition in old.items_at(&["status", "conditions"]) {
        before.entry(text(condition, "type")).or_default().push_back(condition.get(SEEN));
    }
    let new = resource::builtin::defaults::at_mut(pod, &["status", "conditions"]).and_then(Value::as_array_mut);
    for condition in new.into_iter().flatten() {
        let seen = before.get_mut(text(condition, "type")).and_then(VecDeque::pop_front).flatten();
        if let Some(seen) = seen.filter(|_| condition.get(SEEN).is_none()) {
            condition.set_at(&[SEEN], seen.clone());
        }
    }
}

pub fn validate(pod: At) {
    let (status, spec) = (pod.field("status"), pod.field("spec"));
    pod_annotations::check(pod);
    pod_annotations::changes(pod);
    conditions(status);
    nomination(pod);
    not_negative(status);
    let class = status.field_or_empty("qosClass");
    if class.old_text() != class.as_text() {
        class.shown_as_json().in_stage(CheckStage::Change).invalid("field is immutable");
    }
    container_statuses::transitions(status, spec);
    claims(status, spec);
    status.field_if_given("extendedResourceClaimStatus").into_iter().for_each(|claim| extended_claim(claim, spec));
    pod_addresses(status);
    host_addresses(status);
    container_statuses::users(status, spec);
    if pod.release() >= Release::V1_36 {
        container_statuses::allocated_resources(status, spec);
    }
}

fn not_negative(at: At) {
    at.field("observedGeneration").at_least(0, "must be a non-negative integer");
}

/// Types of conditions must be qualified names, except for those of the kubelet. Errors show the name of the Go field.
fn conditions(status: At) {
    const OWN: [&str; 3] = ["Initialized", "PodScheduled", "Ready"];
    for condition in status.items_of("conditions") {
        not_negative(condition);
        if !OWN.contains(&condition.text("type")) {
            condition.field("type").with_name("Type").check_text(names::qualified_name);
        }
    }
}

/// A Node can only be nominated for a Pod that is not assigned to one.
fn nomination(pod: At) {
    let node = pod.field("status.nominatedNodeName");
    if node.as_text().is_empty() || node.old == Some(node.value) {
        return;
    }
    node.check_text(names::dns1123_subdomain);
    if pod.field("spec.nodeName").old.and_then(Value::as_str).is_some_and(|node| !node.is_empty()) {
        node.forbidden("may not be set on pods that are already bound to a node");
    }
}

/// A list of addresses as Go prints it.
fn shown_addresses(given: &[&str]) -> String {
    let shown: Vec<String> = given.iter().map(|ip| format!("{{\"IP\":{}}}", machinery::value::quote(ip))).collect();
    format!("[{}]", shown.join(","))
}

fn pod_addresses(status: At) {
    addresses(status, "podIPs");
    let all: Vec<&str> = status.texts("podIPs", "ip");
    if status.text("podIP").is_empty() && !all.is_empty() {
        let why = "podIP and podIPs must either both be set or both be unset";
        status.field("podIPs").shown_verbatim(&shown_addresses(&all)).invalid(why);
    }
}

fn host_addresses(status: At) {
    let (hosts, first) = (status.field("hostIPs"), status.field("hostIPs"));
    let first = first.item(0);
    if hosts.items().len() > 0 && first.text("ip") != status.text("hostIP") {
        first.field_or_empty("ip").invalid("must be equal to `hostIP`");
    }
    addresses(status, "hostIPs");
}

/// There may be one address of each IP family. Addresses that the status had before are not validated.
fn addresses(status: At, name: &str) {
    let (all, given) = (status.field(name), status.texts::<Vec<&str>>(name, "ip"));
    let before = all.old_items();
    let known: HashSet<&str> = before.iter().map(|address| text(address, "ip")).collect();
    for address in all.items().filter(|address| !known.contains(address.text("ip"))) {
        rule_checks::ip(address.with_value(address.field("ip").value));
    }
    if given.len() < 2 {
        return;
    }
    let families: Vec<_> = given.iter().map(|text| Some(ip::parse(text)?.is_ipv6())).collect();
    if let Some(i) = families.iter().position(Option::is_none) {
        let why = format!("failed to check for dual stack with error:invalid IP[{i}]: {}", given[i]);
        all.push(FieldError::internal(&all.path(), why));
    }
    let is_dual = given.len() == 2 && matches!(families[..], [Some(one), Some(other)] if one != other);
    if !is_dual {
        all.shown_verbatim(&shown_addresses(&given)).invalid("may specify no more than one IP for each IP family");
    }
}

fn claims(status: At, spec: At) {
    let of_spec: HashSet<&str> = spec.texts("resourceClaims", "name");
    let mut known = HashSet::new();
    for claim in status.items_of("resourceClaimStatuses") {
        let name = claim.field_or_empty("name");
        name.invalid_if(!of_spec.contains(name.as_text()), "must match the name of an entry in `spec.resourceClaims`");
        name.unique(&mut known);
        if claim.has("resourceClaimName") {
            claim.field("resourceClaimName").shown_as_json().check_text(names::dns1123_subdomain);
        }
    }
}

/// Validates the claim for extended resources and the container requests that it stands for.
fn extended_claim(claim: At, spec: At) {
    const FIELDS: [&str; 3] = ["containerName", "resourceName", "requestName"];
    let containers: HashMap<&str, &Value> = ["initContainers", "containers"]
        .into_iter()
        .flat_map(|kind| spec.list(kind))
        .map(|container| (text(container, "name"), container))
        .collect();
    if claim.list("requestMappings").is_empty() {
        claim.field("requestMappings").required("at least one request mapping is required");
    }
    let mut known = HashSet::new();
    for mapping in claim.items_of("requestMappings") {
        let [container, resource, request] = FIELDS.map(|field| mapping.text(field));
        match containers.get(container) {
            None => {
                let why = "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                mapping.field_or_empty("containerName").invalid(why);
            }
            Some(container) if container.at(&["resources", "requests", resource]).is_none() => {
                let why = "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests";
                mapping.field_or_empty("resourceName").invalid(why);
            }
            Some(_) => {}
        }
        // upstream leaves out the index
        claim.field("requestName").shown_as_text(request).invalid_each(names::dns1123_label(request));
        if !known.insert([container, resource, request]) {
            FIELDS.iter().for_each(|field| mapping.field_or_empty(field).duplicate());
        }
    }
    claim.field("resourceClaimName").check_required_text(names::dns1123_subdomain);
}

/// The condition of the row of a Pod that has ended.
pub fn ended(pod: &Value) -> Option<Value> {
    let message = match pod.str_at(&["status", "phase"]) {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    let reason = pod.str_at(&["status", "phase"]);
    Some(json!([{"type": "Completed", "status": "True", "reason": (reason), "message": (message)}]))
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn what_a_status_leaves_out_is_kept() {
        let old = json!({"metadata": {"name": "a"}, "status": {"phase": "Pending", "qosClass": "Burstable"}});
        let mut pod =
            json!({"metadata": {"name": "a", "ownerReferences": [{"uid": "u"}]}, "status": {"phase": "Running"}});
        prepare(&mut pod, &old);
        assert_eq!(pod, json!({"metadata": {"name": "a"}, "status": {"phase": "Running", "qosClass": "Burstable"}}));
        let mut without = json!({"metadata": {"name": "a"}});
        prepare(&mut without, &old);
        assert_eq!(without.str_at(&["status", "qosClass"]), "Burstable");
    }
}
