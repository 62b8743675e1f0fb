//! Validation of the status of a Pod: its conditions and addresses, and whether it agrees with the claims of the spec.

use std::collections::{HashMap, HashSet, VecDeque};

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, json, names};

use super::checks::{invalid_each, invalid_shown, items, list, named, text};
use super::defaults::restore;
use super::{container_statuses, ip, pod_annotations, rule_checks};

type Errors = Vec<FieldError>;

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
    for condition in old.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default() {
        before.entry(text(condition, "type")).or_default().push_back(condition.get(SEEN));
    }
    let new = super::defaults::at_mut(pod, &["status", "conditions"]).and_then(Value::as_array_mut);
    for condition in new.into_iter().flatten() {
        let seen = before.get_mut(text(condition, "type")).and_then(VecDeque::pop_front).flatten();
        if let Some(seen) = seen.filter(|_| condition.get(SEEN).is_none()) {
            condition.set_at(&[SEEN], seen.clone());
        }
    }
}

pub fn validate(pod: &Value, old: &Value, release: Release) -> Vec<FieldError> {
    let (mut errors, path) = (vec![], FieldPath::new("status"));
    let (status, spec) = (pod.get("status").unwrap_or(&Value::Null), pod.get("spec").unwrap_or(&Value::Null));
    let before = old.get("status").unwrap_or(&Value::Null);
    let annotations = FieldPath::new("metadata").child("annotations");
    pod_annotations::errors(pod, Some(old), &annotations, &mut errors);
    pod_annotations::change_errors(pod, old, &annotations, &mut errors);
    conditions(status, &path, &mut errors);
    nomination(pod, old, &path, &mut errors);
    if let Some(seen) = status.get("observedGeneration").filter(|seen| seen.as_int().is_some_and(|seen| seen < 0)) {
        errors.push(FieldError::invalid(&path.child("observedGeneration"), seen, NOT_NEGATIVE));
    }
    let class = text(status, "qosClass");
    if text(before, "qosClass") != class {
        let value = Value::from(class);
        errors.push(named(FieldError::invalid(&path.child("qosClass"), &value, "field is immutable"), &value));
    }
    container_statuses::transitions(status, before, spec, &path, &mut errors);
    claims(status, spec, &path, &mut errors);
    if let Some(extended) = status.get("extendedResourceClaimStatus").filter(|extended| !extended.is_null()) {
        extended_claim(extended, spec, &path.child("extendedResourceClaimStatus"), &mut errors);
    }
    pod_addresses(status, before, &path, &mut errors);
    host_addresses(status, before, &path, &mut errors);
    container_statuses::users(status, spec, &path, &mut errors);
    if release >= Release::V1_36 {
        container_statuses::allocated_resources(status, spec, &path, &mut errors);
    }
    errors
}

const NOT_NEGATIVE: &str = "must be a non-negative integer";

/// Types of conditions must be qualified names, except for those of the kubelet. Errors show the name of the Go field.
fn conditions(status: &Value, path: &FieldPath, errors: &mut Errors) {
    const OWN: [&str; 3] = ["Initialized", "PodScheduled", "Ready"];
    for (path, condition) in items(status, "conditions", path) {
        if let Some(seen) =
            condition.get("observedGeneration").filter(|seen| seen.as_int().is_some_and(|seen| seen < 0))
        {
            errors.push(FieldError::invalid(&path.child("observedGeneration"), seen, NOT_NEGATIVE));
        }
        let kind = text(condition, "type");
        if !OWN.contains(&kind) {
            invalid_each(&path.child("Type"), kind, names::qualified_name(kind), errors);
        }
    }
}

/// A Node can only be nominated for a Pod that is not assigned to one.
fn nomination(pod: &Value, old: &Value, path: &FieldPath, errors: &mut Errors) {
    const FIELD: [&str; 2] = ["status", "nominatedNodeName"];
    let (node, path) = (pod.str_at(&FIELD), path.child(FIELD[1]));
    if node.is_empty() || node == old.str_at(&FIELD) {
        return;
    }
    invalid_each(&path, node, names::dns1123_subdomain(node), errors);
    if !old.str_at(&["spec", "nodeName"]).is_empty() {
        errors.push(FieldError::forbidden(&path, "may not be set on pods that are already bound to a node"));
    }
}

/// The addresses in a list.
fn texts<'a>(status: &'a Value, name: &str) -> Vec<&'a str> {
    list(status, name).iter().map(|address| text(address, "ip")).collect()
}

/// A list of addresses as Go prints it.
fn shown_addresses(given: &[&str]) -> String {
    let shown: Vec<String> = given.iter().map(|ip| format!("{{\"IP\":{}}}", machinery::value::quote(ip))).collect();
    format!("[{}]", shown.join(","))
}

fn pod_addresses(status: &Value, before: &Value, path: &FieldPath, errors: &mut Errors) {
    addresses(status, before, "podIPs", path, errors);
    let (one, all, path) = (text(status, "podIP"), texts(status, "podIPs"), path.child("podIPs"));
    if one.is_empty() && !all.is_empty() {
        let why = "podIP and podIPs must either both be set or both be unset";
        errors.push(invalid_shown(&path, shown_addresses(&all), why));
    }
}

fn host_addresses(status: &Value, before: &Value, path: &FieldPath, errors: &mut Errors) {
    let host = list(status, "hostIPs").first().map(|host| text(host, "ip"));
    if let Some(host) = host.filter(|host| *host != text(status, "hostIP")) {
        let path = path.child("hostIPs").index(0).child("ip");
        errors.push(FieldError::invalid(&path, &Value::from(host), "must be equal to `hostIP`"));
    }
    addresses(status, before, "hostIPs", path, errors);
}

/// There may be one address of each IP family. Addresses that the status had before are not validated.
fn addresses(status: &Value, before: &Value, name: &str, path: &FieldPath, errors: &mut Errors) {
    let (given, path) = (texts(status, name), path.child(name));
    let known: HashSet<&str> = texts(before, name).into_iter().collect();
    for (i, address) in given.iter().enumerate().filter(|(_, address)| !known.contains(*address)) {
        crate::builtin::at::at_path(&Value::from(*address), &path.index(i), errors, rule_checks::ip);
    }
    if given.len() < 2 {
        return;
    }
    let families: Vec<_> = given.iter().map(|text| Some(ip::parse(text)?.is_ipv6())).collect();
    if let Some(i) = families.iter().position(Option::is_none) {
        let why = format!("failed to check for dual stack with error:invalid IP[{i}]: {}", given[i]);
        errors.push(FieldError::internal(&path, why));
    }
    let is_dual = given.len() == 2 && matches!(families[..], [Some(one), Some(other)] if one != other);
    if !is_dual {
        let why = "may specify no more than one IP for each IP family";
        errors.push(invalid_shown(&path, shown_addresses(&given), why));
    }
}

fn claims(status: &Value, spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let of_spec: HashSet<&str> = list(spec, "resourceClaims").iter().map(|claim| text(claim, "name")).collect();
    let mut known = HashSet::new();
    for (path, claim) in items(status, "resourceClaimStatuses", path) {
        let (name, at) = (text(claim, "name"), path.child("name"));
        if !of_spec.contains(name) {
            let why = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(FieldError::invalid(&at, &Value::from(name), why));
        }
        if !known.insert(name) {
            errors.push(FieldError::duplicate(&at, &Value::from(name)));
        }
        if let Some(name) = claim.get("resourceClaimName") {
            let path = path.child("resourceClaimName");
            let problems = names::dns1123_subdomain(name.as_str().unwrap_or_default()).into_iter();
            errors.extend(problems.map(|why| named(FieldError::invalid(&path, name, why), name)));
        }
    }
}

/// Validates the claim for extended resources and the container requests that it stands for.
fn extended_claim(claim: &Value, spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let containers: HashMap<&str, &Value> = ["initContainers", "containers"]
        .into_iter()
        .flat_map(|kind| list(spec, kind))
        .map(|container| (text(container, "name"), container))
        .collect();
    if list(claim, "requestMappings").is_empty() {
        errors.push(FieldError::required(&path.child("requestMappings"), "at least one request mapping is required"));
    }
    let mut known = HashSet::new();
    for (at, mapping) in items(claim, "requestMappings", path) {
        const FIELDS: [&str; 3] = ["containerName", "resourceName", "requestName"];
        let [container, resource, request] = FIELDS.map(|field| text(mapping, field));
        match containers.get(container) {
            None => {
                let why = "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                errors.push(FieldError::invalid(&at.child("containerName"), &Value::from(container), why));
            }
            Some(container) if container.at(&["resources", "requests", resource]).is_none() => {
                let why = "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests";
                errors.push(FieldError::invalid(&at.child("resourceName"), &Value::from(resource), why));
            }
            Some(_) => {}
        }
        invalid_each(&path.child("requestName"), request, names::dns1123_label(request), errors);
        if !known.insert([container, resource, request]) {
            errors.extend(
                FIELDS.map(|field| FieldError::duplicate(&at.child(field), &Value::from(text(mapping, field)))),
            );
        }
    }
    let (name, path) = (text(claim, "resourceClaimName"), path.child("resourceClaimName"));
    match name.is_empty() {
        true => errors.push(FieldError::required(&path, "")),
        false => invalid_each(&path, name, names::dns1123_subdomain(name), errors),
    }
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
