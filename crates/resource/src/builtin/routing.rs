//! Ingresses, NetworkPolicies, disruption budgets and PriorityClasses: rules of several fields.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, json, names};

use super::checks::{TWO_BACKENDS, invalid_each, items, list, text};
use super::ip::Cidr;
use super::podspec;
use super::rule_checks::port_name_problems;

/// An Ingress has a backend for what it routes.
pub fn validate_ingress(object: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, empty) = (FieldPath::new("spec"), Value::object());
    let spec = object.get("spec").unwrap_or(&empty);
    let default = spec.get("defaultBackend").filter(|backend| !backend.is_null());
    if list(spec, "rules").is_empty() && default.is_none() {
        let why = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(&path, &Value::Null, why));
    }
    if let Some(backend) = default {
        backend_errors(backend, &path.child("defaultBackend"), &mut errors);
    }
    for (path, rule) in items(spec, "rules", &path) {
        let http = rule.get("http").unwrap_or(&empty);
        for (path, http_path) in items(http, "paths", &path.child("http")) {
            let (kind, given) = (text(http_path, "pathType"), text(http_path, "path"));
            if matches!(kind, "Exact" | "Prefix") && !given.starts_with('/') {
                errors.push(FieldError::invalid(&path.child("path"), &Value::from(given), "must be an absolute path"));
            }
            if matches!(kind, "Exact" | "Prefix") {
                path_errors(given, &path.child("path"), &mut errors);
            } else if kind == "ImplementationSpecific" && !given.is_empty() && !given.starts_with('/') {
                errors.push(FieldError::invalid(&path.child("path"), &Value::from(given), "must be an absolute path"));
            }
            let kind_path = path.child("pathType");
            let Some(kind) = http_path.get("pathType").filter(|kind| !kind.is_null()) else {
                errors.push(FieldError::required(&kind_path, "pathType must be specified"));
                continue;
            };
            if !kind.as_str().is_some_and(|kind| PATH_TYPES.contains(&kind)) {
                errors.push(FieldError::not_supported(&kind_path, kind, &PATH_TYPES));
            }
            backend_errors(http_path.get("backend").unwrap_or(&empty), &path.child("backend"), &mut errors);
        }
    }
    errors
}

const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];

/// The parts that a path may not have.
fn path_errors(given: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut invalid = |why: String| errors.push(FieldError::invalid(path, &Value::from(given), why));
    for part in ["//", "/./", "/../", "%2f", "%2F"].into_iter().filter(|part| given.contains(part)) {
        invalid(format!("must not contain '{part}'"));
    }
    for end in ["/..", "/."].into_iter().filter(|end| given.ends_with(end)) {
        invalid(format!("cannot end with '{end}'"));
    }
}

fn backend_errors(backend: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let is_set = |name: &str| backend.get(name).is_some_and(|value| !value.is_null());
    let mut invalid = |why: &str| errors.push(FieldError::invalid(path, &Value::from(""), why));
    match (is_set("service"), is_set("resource")) {
        (true, true) => return invalid(TWO_BACKENDS),
        (false, false) => return invalid("resource or service backend is required"),
        (false, true) => return resource_errors(backend, &path.child("resource"), errors),
        (true, false) => {}
    }
    let (service, port) = (path.child("service"), path.child("service").child("port"));
    match backend.str_at(&["service", "name"]) {
        "" => errors.push(FieldError::required(&service.child("name"), "")),
        name => invalid_each(&service.child("name"), name, names::dns1123_label(name), errors),
    }
    let number = backend.at(&["service", "port", "number"]).and_then(Value::as_int).unwrap_or_default();
    match (backend.str_at(&["service", "port", "name"]), number) {
        ("", 0) => errors.push(FieldError::required(path, "port name or number is required")),
        ("", 1..=65535) => {}
        ("", number) => {
            let why = "must be between 1 and 65535, inclusive";
            errors.push(FieldError::invalid(&port.child("number"), &Value::Int(number), why));
        }
        (name, 0) => invalid_each(&port.child("name"), name, port_name_problems(name), errors),
        _ => {
            errors.push(FieldError::invalid(path, &Value::from(""), "cannot set both port name & port number"));
        }
    }
}

/// The names of an object that is a backend.
fn resource_errors(backend: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if let Some(group) = backend.at(&["resource", "apiGroup"]).and_then(Value::as_str) {
        invalid_each(&path.child("apiGroup"), group, names::dns1123_subdomain(group), errors);
    }
    for name in ["kind", "name"] {
        let given = backend.str_at(&["resource", name]);
        invalid_each(&path.child(name), given, names::path_segment(given), errors);
    }
}

/// A NetworkPolicy.
pub fn validate_network_policy(object: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, empty) = (FieldPath::new("spec"), Value::object());
    let spec = object.get("spec").unwrap_or(&empty);
    podspec::selector_operators(spec.get("podSelector"), &path.child("podSelector"), &mut errors);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (path, rule) in items(spec, direction, &path) {
            for (path, port) in items(rule, "ports", &path) {
                port_range(port, &path, &mut errors);
            }
            for (path, peer) in items(rule, peers, &path) {
                peer_errors(peer, &path, &mut errors);
            }
        }
    }
    if list(spec, "policyTypes").len() > 2 {
        let why = "may not specify more than two policyTypes";
        let given = spec.get("policyTypes").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&path.child("policyTypes"), &given, why));
    }
    errors
}

fn port_range(port: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(end) = port.get("endPort").filter(|end| !end.is_null()) else { return };
    let mut invalid = |why: &str| errors.push(FieldError::invalid(&path.child("endPort"), end, why));
    match port.get("port").filter(|port| !port.is_null()) {
        None => invalid("may not be specified when `port` is not specified"),
        Some(Value::String(_)) => invalid("may not be specified when `port` is non-numeric"),
        Some(start) => {
            if end.as_int() < start.as_int() {
                invalid("must be greater than or equal to `port`");
            }
            if !end.as_int().is_some_and(|end| (1..=65535).contains(&end)) {
                invalid("must be between 1 and 65535, inclusive");
            }
        }
    }
}

/// The exceptions of a block are ranges within it; without a valid block, they are not looked at.
fn exception_errors(block: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(all) = Cidr::parse(text(block, "cidr")) else { return };
    for (path, exception) in items(block, "except", path) {
        let given = exception.as_str().unwrap_or_default();
        super::rule_checks::cidr(given, &path, errors);
        let Some(part) = Cidr::parse(given) else { continue };
        let within = Cidr { address: part.address, bits: all.bits }.network().address;
        let is_below = part.address.is_ipv4() == all.address.is_ipv4() && within == all.network().address;
        if !is_below || all.bits >= part.bits {
            errors.push(FieldError::invalid(&path, exception, "must be a strict subset of `cidr`"));
        }
    }
}

fn peer_errors(peer: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let is_set = |name: &str| peer.get(name).is_some_and(|value| !value.is_null());
    let selects = ["podSelector", "namespaceSelector"].into_iter().filter(|name| is_set(name));
    for name in selects.clone() {
        podspec::selector_operators(peer.get(name), &path.child(name), errors);
    }
    if let Some(block) = peer.get("ipBlock") {
        exception_errors(block, &path.child("ipBlock"), errors);
    }
    match (selects.count(), is_set("ipBlock")) {
        (0, false) => errors.push(FieldError::required(path, "must specify a peer")),
        (1.., true) => errors.push(FieldError::forbidden(path, "may not specify both ipBlock and another peer")),
        _ => {}
    }
}

/// A PodDisruptionBudget.
pub fn validate_budget(object: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    const SHARE: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
    let mut errors = vec![];
    let path = FieldPath::new("spec");
    let selector = object.at(&["spec", "selector"]).filter(|selector| !selector.is_null());
    podspec::selector_operators(selector, &path.child("selector"), &mut errors);
    for name in ["minAvailable", "maxUnavailable"] {
        let why = match object.at(&["spec", name]) {
            Some(Value::Int(number)) if *number < 0 => "must be greater than or equal to 0",
            Some(Value::String(share)) if !is_share(share) => SHARE,
            _ => continue,
        };
        let given = object.at(&["spec", name]).cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&path.child(name), &given, why));
    }
    for name in ["minAvailable", "maxUnavailable"] {
        let given = object.str_at(&["spec", name]);
        let share = given.strip_suffix('%').and_then(|share| share.parse::<u64>().ok());
        if share.is_some_and(|share| share > 100) {
            let why = "must not be greater than 100%";
            errors.push(FieldError::invalid(&path.child(name), &Value::from(given), why));
        }
    }
    let spec = object.get("spec").unwrap_or(&Value::Null);
    if super::checks::is_set(spec, "minAvailable") && super::checks::is_set(spec, "maxUnavailable") {
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.push(super::checks::invalid_internal(&path, spec, "policy.PodDisruptionBudgetSpec", why));
    }
    errors
}

/// The ranges of a ServiceCIDR, which never change.
pub fn validate_service_cidr(object: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (mut errors, path) = (vec![], FieldPath::new("spec").child("cidrs"));
    let (spec, given) = (object.get("spec").unwrap_or(&Value::Null), object.at(&["spec", "cidrs"]));
    let ranges = list(spec, "cidrs");
    if let Some(old) = old.and_then(|old| old.at(&["spec", "cidrs"])).and_then(Value::as_array) {
        if old.len() != ranges.len() {
            let given = given.cloned().unwrap_or_default();
            errors.push(FieldError::invalid(&path, &given, "field is immutable"));
        }
        for (i, range) in ranges.iter().enumerate().filter(|(i, range)| old.len() == ranges.len() && old[*i] != **range)
        {
            errors.push(FieldError::invalid(&path.index(i), range, "field is immutable"));
        }
        return errors;
    }
    if ranges.is_empty() {
        errors.push(FieldError::required(&path, "at least one CIDR required"));
    }
    if ranges.len() > 2 {
        let shown = json!({"CIDRs": (Value::Array(ranges.to_vec()))});
        errors.push(FieldError::invalid(&path, &shown, "may only hold up to 2 values"));
        return errors;
    }
    for (i, range) in ranges.iter().enumerate() {
        super::rule_checks::cidr(range.as_str().unwrap_or_default(), &path.index(i), &mut errors);
    }
    let is_ipv6 = |range: &Value| range.as_str().is_some_and(|range| range.contains(':'));
    if errors.is_empty() && ranges.len() == 2 && is_ipv6(&ranges[0]) == is_ipv6(&ranges[1]) {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(FieldError::invalid(&path, &Value::Array(ranges.to_vec()), why));
    }
    errors
}

/// The conditions of a status that has no other rules.
pub fn validate_conditions(object: &Value, _old: &Value, release: Release) -> Vec<FieldError> {
    let status = object.get("status").unwrap_or(&Value::Null);
    super::checks::condition_errors(status, &FieldPath::new("status"), release)
}

fn is_share(text: &str) -> bool {
    text.strip_suffix('%').is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

/// The value of a PriorityClass never changes.
pub fn validate_priority_class(object: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let path = FieldPath::new("preemptionPolicy");
    match (old, text(object, "preemptionPolicy")) {
        (Some(old), _) if old.get("value") != object.get("value") => {
            vec![FieldError::forbidden(&FieldPath::new("value"), "may not be changed in an update.")]
        }
        (Some(_), _) | (None, "PreemptLowerPriority" | "Never") => vec![],
        (None, "") => vec![FieldError::required(&path, "")],
        (None, policy) => {
            vec![FieldError::not_supported(&path, &Value::from(policy), &["PreemptLowerPriority", "Never"])]
        }
    }
}

/// Parameters of an IngressClass that are in a namespace name it.
pub fn validate_ingress_class(class: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let Some(parameters) = class.at(&["spec", "parameters"]).filter(|parameters| !parameters.is_null()) else {
        return errors;
    };
    let path = FieldPath::new("spec").child("parameters");
    let name = text(parameters, "name");
    invalid_each(&path.child("name"), name, machinery::names::path_segment(name), &mut errors);
    let path = path.child("namespace");
    let namespace = parameters.get("namespace").filter(|namespace| !namespace.is_null());
    match (text(parameters, "scope"), namespace) {
        ("Namespace", None) => {
            errors.push(FieldError::required(&path, "`parameters.scope` is set to 'Namespace'"));
        }
        ("Namespace", Some(namespace)) => {
            let name = namespace.as_str().unwrap_or_default();
            invalid_each(&path, name, machinery::names::dns1123_label(name), &mut errors);
        }
        ("Cluster", Some(_)) => errors.push(FieldError::forbidden(&path, "`parameters.scope` is set to 'Cluster'")),
        _ => {}
    }
    errors
}

/// The addresses of an EndpointSlice are of its type; names of its ports and zones of its hints occur once.
pub fn validate_slice(slice: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (mut errors, root) = (vec![], FieldPath::root());
    let kind = text(slice, "addressType");
    for (path, endpoint) in items(slice, "endpoints", &root) {
        for (path, address) in items(endpoint, "addresses", &path) {
            address_errors(kind, address.as_str().unwrap_or_default(), &path, &mut errors);
        }
        let (empty, mut zones) = (Value::object(), HashSet::new());
        for (path, zone) in items(endpoint.get("hints").unwrap_or(&empty), "forZones", &path.child("hints")) {
            let name = text(zone, "name");
            if !zones.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), &Value::from(name)));
            }
        }
    }
    let mut names = HashSet::new();
    for (path, port) in items(slice, "ports", &root) {
        let name = text(port, "name");
        if !names.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), &Value::from(name)));
        }
    }
    errors
}

fn address_errors(kind: &str, address: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let before = errors.len();
    match kind {
        "FQDN" => invalid_each(path, address, machinery::names::dns1123_subdomain(address), errors),
        "IPv4" | "IPv6" => {
            super::rule_checks::ip(address, path, errors);
            let is_ipv6 = address.contains(':');
            if errors.len() == before && is_ipv6 != (kind == "IPv6") {
                let why = format!("must be a valid {kind} address");
                errors.push(FieldError::invalid(path, &Value::from(address), why));
            }
        }
        _ => {}
    }
}

/// A policy is one for incoming traffic, and for outgoing traffic if it has rules for that.
pub fn default_network_policy(policy: &mut Value) {
    let types = policy.at(&["spec", "policyTypes"]).and_then(Value::as_array).unwrap_or_default();
    if types.is_empty() {
        let outgoing = policy.at(&["spec", "egress"]).and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
        let types = if outgoing { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        policy.set_at(&["spec", "policyTypes"], types);
    }
}

/// The generation of a PriorityClass never changes.
pub fn prepare_priority_class(object: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        object.set_at(&["metadata", "generation"], Value::Int(1));
    }
}

/// A generation that counts the changes of labels, too. That of the rest is counted afterwards.
pub fn count_labels(object: &mut Value, old: Option<&Value>) {
    let path = ["metadata", "labels"];
    let Some(old) = old else { return };
    let unchanged = |object: &Value| {
        let mut object = object.clone();
        ["metadata", "apiVersion", "kind", "status"].iter().for_each(|name| drop(object.remove_at(&[name])));
        object
    };
    if object.at(&path) != old.at(&path) && unchanged(object) == unchanged(old) {
        let generation = old.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or_default();
        object.set_at(&["metadata", "generation"], Value::Int(generation + 1));
    }
}
