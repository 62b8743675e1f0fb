//! Validation of the status of a Pod: its addresses, and consistency with the containers and claims of the spec.

use std::collections::HashSet;

use std::net::IpAddr;

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, names};

use super::checks::{invalid_each, items, list, text};
use super::defaults::restore;
use super::rule_checks;

type Errors = Vec<FieldError>;

/// `podIP` and the first of `podIPs` complete each other.
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

/// Keeps what kubelets that do not know a field leave out of a status, and the owners of the Pod and its deletion.
pub fn prepare(pod: &mut Value, old: &Value) {
    let kept = ["qosClass", "observedGeneration", "resourceClaimStatuses", "extendedResourceClaimStatus"];
    for field in kept {
        let path = ["status", field];
        let is_absent = pod.at(&path).is_none_or(|value| value.is_null() || *value == Value::from(""));
        if let Some(value) = old.at(&path).filter(|_| is_absent) {
            pod.set_at(&path, value.clone());
        }
    }
    for field in ["deletionTimestamp", "ownerReferences"] {
        restore(pod, old, &["metadata", field]);
    }
}

pub fn validate(pod: &Value, old: &Value, _release: Release) -> Vec<FieldError> {
    let (mut errors, path, empty) = (vec![], FieldPath::new("status"), Value::object());
    let (status, spec) = (pod.get("status").unwrap_or(&empty), pod.get("spec").unwrap_or(&empty));
    let class = text(status, "qosClass");
    if !old.str_at(&["status", "qosClass"]).is_empty() && old.str_at(&["status", "qosClass"]) != class {
        errors.push(FieldError::invalid(&path.child("qosClass"), &Value::from(class), "field is immutable"));
    }
    let node = text(status, "nominatedNodeName");
    if !node.is_empty() {
        invalid_each(&path.child("nominatedNodeName"), node, names::dns1123_subdomain(node), &mut errors);
    }
    if let Some(seen) = status.get("observedGeneration").filter(|seen| seen.as_int().is_some_and(|seen| seen < 0)) {
        errors.push(FieldError::invalid(&path.child("observedGeneration"), seen, "must be a non-negative integer"));
    }
    addresses(status, "podIPs", &path, &mut errors);
    addresses(status, "hostIPs", &path, &mut errors);
    let host = list(status, "hostIPs").first().map(|host| text(host, "ip"));
    if let Some(host) = host.filter(|host| *host != text(status, "hostIP")) {
        let path = path.child("hostIPs").index(0).child("ip");
        errors.push(FieldError::invalid(&path, &Value::from(host), "must be equal to `hostIP`"));
    }
    claims(status, spec, &path, &mut errors);
    for (path, container) in items(status, "ephemeralContainerStatuses", &path) {
        if !list(container, "allocatedResourcesStatus").is_empty() {
            let why = "must not be specified in container status";
            errors.push(FieldError::forbidden(&path.child("allocatedResourcesStatus"), why));
        }
    }
    errors
}

/// At most one address of each family.
fn addresses(status: &Value, name: &str, path: &FieldPath, errors: &mut Errors) {
    let given: Vec<&str> = list(status, name).iter().map(|address| text(address, "ip")).collect();
    for (i, address) in given.iter().enumerate() {
        rule_checks::ip(address, &path.child(name).index(i), errors);
    }
    if given.len() < 2 {
        return;
    }
    let path = path.child(name);
    let families: Vec<_> = given.iter().map(|ip| ip.parse::<IpAddr>().map(|ip| ip.is_ipv6())).collect();
    if let Some(i) = families.iter().position(Result::is_err) {
        let why = format!("failed to check for dual stack with error:invalid IP[{i}]: {}", given[i]);
        errors.push(FieldError::internal(&path, why));
    }
    let is_dual = given.len() == 2 && matches!(families[..], [Ok(one), Ok(other)] if one != other);
    if !is_dual {
        let shown: Vec<String> = given.iter().map(|ip| format!("{{\"IP\":{}}}", machinery::value::quote(ip))).collect();
        let why = "may specify no more than one IP for each IP family";
        let error = FieldError::invalid(&path, &Value::Null, why);
        errors.push(FieldError { value: format!("[{}]", shown.join(",")), ..error });
    }
}

fn claims(status: &Value, spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let of_spec: HashSet<&str> = list(spec, "resourceClaims").iter().map(|claim| text(claim, "name")).collect();
    let mut known = HashSet::new();
    for (path, claim) in items(status, "resourceClaimStatuses", path) {
        let (name, path) = (text(claim, "name"), path.child("name"));
        if !of_spec.contains(name) {
            let why = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(FieldError::invalid(&path, &Value::from(name), why));
        }
        if !known.insert(name) {
            errors.push(FieldError::duplicate(&path, &Value::from(name)));
        }
    }
    let containers: HashSet<&str> = ["initContainers", "containers"]
        .into_iter()
        .flat_map(|kind| list(spec, kind))
        .map(|container| text(container, "name"))
        .collect();
    let Some(extended) = status.get("extendedResourceClaimStatus") else { return };
    for (path, mapping) in items(extended, "requestMappings", &path.child("extendedResourceClaimStatus")) {
        let name = text(mapping, "containerName");
        if !containers.contains(name) {
            let why = "must match the name of an entry in spec.initContainers.name or spec.containers.name";
            errors.push(FieldError::invalid(&path.child("containerName"), &Value::from(name), why));
        }
    }
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
