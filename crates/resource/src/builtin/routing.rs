//! Ingresses, NetworkPolicies, disruption budgets and PriorityClasses: the rules that involve several fields.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::{Map, Release, Value, json, names};

use super::checks::{duplicates, invalid_each, is_oversized, is_set, items, list, text};
use super::ip::Cidr;
use super::podspec;
use super::rule_checks::port_name_problems;

/// An Ingress needs a default backend or rules.
pub fn validate_ingress(object: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, spec) = (FieldPath::new("spec"), object.get("spec").unwrap_or(&Value::Null));
    let default = spec.get("defaultBackend").filter(|backend| !backend.is_null());
    if list(spec, "rules").is_empty() && default.is_none() {
        let why = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(&path, spec.get("rules").unwrap_or(&Value::Null), why));
    }
    if let Some(backend) = default {
        backend_errors(backend, &path.child("defaultBackend"), &mut errors);
    }
    for (path, rule) in items(spec, "rules", &path) {
        let http = rule.get("http").unwrap_or(&Value::Null);
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
            backend_errors(http_path.get("backend").unwrap_or(&Value::Null), &path.child("backend"), &mut errors);
        }
    }
    errors
}

const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];

/// Reports the parts that a path must not contain.
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
    let mut invalid = |why: &str| errors.push(FieldError::invalid(path, &Value::from(""), why));
    match (is_set(backend, "service"), is_set(backend, "resource")) {
        (true, true) => return invalid("cannot set both resource and service backends"),
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

/// Validates the reference to an object that serves as a backend.
fn resource_errors(backend: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if let Some(group) = backend.at(&["resource", "apiGroup"]).and_then(Value::as_str) {
        invalid_each(&path.child("apiGroup"), group, names::dns1123_subdomain(group), errors);
    }
    for name in ["kind", "name"] {
        match backend.str_at(&["resource", name]) {
            "" => errors.push(FieldError::required(&path.child(name), "")),
            given => invalid_each(&path.child(name), given, names::path_segment(given), errors),
        }
    }
}

pub fn validate_network_policy(object: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, spec) = (FieldPath::new("spec"), object.get("spec").unwrap_or(&Value::Null));
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

/// The exceptions of an IP block must be ranges within it. They are not checked if the block itself is invalid.
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
    let selects = ["podSelector", "namespaceSelector"].into_iter().filter(|name| is_set(peer, name));
    for name in selects.clone() {
        podspec::selector_operators(peer.get(name), &path.child(name), errors);
    }
    if let Some(block) = peer.get("ipBlock") {
        exception_errors(block, &path.child("ipBlock"), errors);
    }
    match (selects.count(), is_set(peer, "ipBlock")) {
        (0, false) => errors.push(FieldError::required(path, "must specify a peer")),
        (1.., true) => errors.push(FieldError::forbidden(path, "may not specify both ipBlock and another peer")),
        _ => {}
    }
}

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
    if is_set(spec, "minAvailable") && is_set(spec, "maxUnavailable") {
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.push(super::checks::invalid_internal(&path, spec, "policy.PodDisruptionBudgetSpec", why));
    }
    errors
}

/// The ranges of a ServiceCIDR are immutable, except that a second one may be added.
pub fn validate_service_cidr(object: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (mut errors, path) = (vec![], FieldPath::new("spec").child("cidrs"));
    let (spec, given) = (object.get("spec").unwrap_or(&Value::Null), object.at(&["spec", "cidrs"]));
    let ranges = list(spec, "cidrs");
    if let Some(old) = old.and_then(|old| old.at(&["spec", "cidrs"])).and_then(Value::as_array) {
        // a range of the other IP family may be added
        let is_second = (old.len(), ranges.len()) == (1, 2);
        if old.len() != ranges.len() && !is_second {
            let given = given.cloned().unwrap_or_default();
            errors.push(FieldError::invalid(&path, &given, "field is immutable"));
            return errors;
        }
        for (i, range) in ranges.iter().enumerate().filter(|(i, range)| old.get(*i).is_some_and(|old| old != *range)) {
            errors.push(FieldError::invalid(&path.index(i), range, "field is immutable"));
        }
        if is_second {
            range_errors(ranges, &path, &mut errors);
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
    range_errors(ranges, &path, &mut errors);
    errors
}

/// Ranges must be canonical, with at most one for each IP family.
fn range_errors(ranges: &[Value], path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (i, range) in ranges.iter().enumerate() {
        let (before, given, path) = (errors.len(), range.as_str().unwrap_or_default(), path.index(i));
        super::rule_checks::cidr(given, &path, errors);
        let canonical = Cidr::parse(given).map(|cidr| cidr.to_string()).filter(|canonical| canonical != given);
        if let Some(canonical) = canonical.filter(|_| errors.len() == before) {
            let why = format!("must be in canonical form ({canonical:?})");
            errors.push(FieldError::invalid(&path, range, why));
        }
    }
    let families: Vec<_> = ranges.iter().map(|range| Some(Cidr::parse(range.as_str()?)?.address.is_ipv4())).collect();
    if let [Some(one), Some(other)] = families[..]
        && one == other
    {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(FieldError::invalid(path, &Value::Array(ranges.to_vec()), why));
    }
}

/// Validates a status that has no rules besides those for conditions.
pub fn validate_conditions(object: &Value, _old: &Value, release: Release) -> Vec<FieldError> {
    let status = object.get("status").unwrap_or(&Value::Null);
    super::checks::condition_errors(status, &FieldPath::new("status"), release)
}

fn is_share(text: &str) -> bool {
    text.strip_suffix('%').is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

/// Very high values, and names with the prefix of the system's own classes, are reserved for the system.
fn priority_error(class: &Value) -> Option<FieldError> {
    const PREFIX: &str = "system-";
    const KNOWN: [(&str, i64); 2] =
        [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
    const OWN_MAX: i64 = 1_000_000_000;
    let name = class.str_at(&["metadata", "name"]);
    let value = class.get("value").and_then(Value::as_int).unwrap_or_default();
    if !name.starts_with(PREFIX) {
        let why = format!("maximum allowed value of a user defined priority is {OWN_MAX}");
        return (value > OWN_MAX).then(|| FieldError::forbidden(&FieldPath::new("value"), why));
    }
    let why = match KNOWN.iter().find(|(known, _)| *known == name) {
        None => format!("{name} is not a known system priority class"),
        Some((_, wanted)) if *wanted != value => format!("value of {name} PriorityClass must be {wanted}"),
        Some(_) if class.get("globalDefault") == Some(&Value::Bool(true)) => {
            format!("globalDefault of {name} PriorityClass must be false")
        }
        Some(_) => return None,
    };
    let why = format!("priority class names with '{PREFIX}' prefix are reserved for system use only. error: {why}");
    Some(FieldError::forbidden(&FieldPath::new("metadata").child("name"), why))
}

/// The value of a PriorityClass is immutable.
pub fn validate_priority_class(object: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let path = FieldPath::new("preemptionPolicy");
    match (old, text(object, "preemptionPolicy")) {
        (Some(old), _) if old.get("value") != object.get("value") => {
            vec![FieldError::forbidden(&FieldPath::new("value"), "may not be changed in an update.")]
        }
        (Some(_), _) => vec![],
        (None, policy) => {
            let mut errors: Vec<FieldError> = priority_error(object).into_iter().collect();
            match policy {
                "PreemptLowerPriority" | "Never" => {}
                "" => errors.push(FieldError::required(&path, "")),
                policy => {
                    let known = ["PreemptLowerPriority", "Never"];
                    errors.push(FieldError::not_supported(&path, &Value::from(policy), &known));
                }
            }
            errors
        }
    }
}

/// Parameters in a namespace must name it; cluster-scoped parameters must not name one.
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

/// Addresses must be of the address type of the slice. Names of ports and names in hints must be unique.
pub fn validate_slice(slice: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (mut errors, root) = (vec![], FieldPath::root());
    if old.is_none_or(|old| old.get("endpoints") != slice.get("endpoints")) {
        endpoint_errors(slice, &mut errors);
    }
    let names = items(slice, "ports", &root).map(|(path, port)| (path.child("name"), text(port, "name")));
    duplicates(names, &mut errors);
    errors
}

/// If there are too many endpoints, they are not checked one by one.
fn endpoint_errors(slice: &Value, errors: &mut Vec<FieldError>) {
    const ENDPOINTS_MAX: usize = 1000;
    const ADDRESSES_MAX: usize = 100;
    let (root, kind) = (FieldPath::root(), text(slice, "addressType"));
    if is_oversized(slice, "endpoints", ENDPOINTS_MAX, &root, errors) {
        return;
    }
    for (path, endpoint) in items(slice, "endpoints", &root) {
        let addresses = path.child("addresses");
        is_oversized(endpoint, "addresses", ADDRESSES_MAX, &path, errors);
        for (path, address) in items(endpoint, "addresses", &path) {
            address_errors(kind, address.as_str().unwrap_or_default(), (&path, &addresses), errors);
        }
        hint_errors(endpoint.get("hints").unwrap_or(&Value::Null), &path.child("hints"), errors);
    }
}

/// Validates the zones and Nodes that should use an endpoint. Too many zones hide the errors of Nodes.
fn hint_errors(hints: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const HINTS_MAX: usize = 8;
    for list_name in ["forZones", "forNodes"] {
        if is_oversized(hints, list_name, HINTS_MAX, path, errors) {
            return;
        }
        let mut known = HashSet::new();
        for (path, hint) in items(hints, list_name, path) {
            let (name, path) = (text(hint, "name"), path.child("name"));
            if !known.insert(name) {
                errors.push(FieldError::duplicate(&path, &Value::from(name)));
            }
            let is_zone = list_name == "forZones";
            let problems = if is_zone { names::label_value(name) } else { names::dns1123_subdomain(name) };
            invalid_each(&path, name, problems, errors);
        }
    }
}

/// Validates an address against the address type. Errors about its IP family have the path of the list.
fn address_errors(kind: &str, address: &str, (path, all): (&FieldPath, &FieldPath), errors: &mut Vec<FieldError>) {
    let before = errors.len();
    match kind {
        "FQDN" => domain_errors(address, path, errors),
        "IPv4" | "IPv6" => {
            match kind {
                "IPv4" => super::rule_checks::ip(address, path, errors),
                _ => invalid_each(path, address, super::rule_checks::address_problems(address), errors),
            }
            if errors.len() > before {
                return;
            }
            let is_ipv6 = address.parse().is_ok_and(|address: std::net::IpAddr| address.to_canonical().is_ipv6());
            if is_ipv6 != (kind == "IPv6") {
                errors.push(FieldError::invalid(all, &Value::from(address), format!("must be an {kind} address")));
            }
            super::ip::endpoint_errors(path, &Value::from(address), errors);
        }
        _ => {}
    }
}

/// A host name must be a domain of at least two labels.
fn domain_errors(name: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if name.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let mut invalid = |shown: &str, why: String| errors.push(FieldError::invalid(path, &Value::from(shown), why));
    let problems = names::dns1123_subdomain(name);
    if !problems.is_empty() {
        invalid(name, problems.join(","));
    } else if !name.contains('.') {
        invalid(name, "should be a domain with at least two segments separated by dots".to_owned());
    } else if let Some((label, problems)) =
        name.split('.').map(|label| (label, names::dns1123_label(label))).find(|(_, problems)| !problems.is_empty())
    {
        invalid(label, problems.join(","));
    }
}

/// Warns about the deprecated address type and about addresses that are not in canonical form.
pub fn slice_warnings(slice: &Value, old: Option<&Value>, release: Release) -> Vec<String> {
    let mut warnings = vec![];
    if old.is_none() && text(slice, "addressType") == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    const MANAGERS: [&str; 2] = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if MANAGERS.contains(&slice.str_at(&["metadata", "labels", "endpointslice.kubernetes.io/managed-by"])) {
        return warnings;
    }
    for (path, endpoint) in items(slice, "endpoints", &FieldPath::root()) {
        for (path, address) in items(endpoint, "addresses", &path) {
            warnings.extend(super::ip::warning(&path, address.as_str().unwrap_or_default(), release));
        }
    }
    warnings
}

/// By default, a policy applies to incoming traffic, and also to outgoing traffic if it has egress rules.
pub fn default_network_policy(policy: &mut Value) {
    let types = policy.at(&["spec", "policyTypes"]).and_then(Value::as_array).unwrap_or_default();
    if types.is_empty() {
        let outgoing = policy.at(&["spec", "egress"]).and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
        let types = if outgoing { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        policy.set_at(&["spec", "policyTypes"], types);
    }
}

/// The generation of a PriorityClass is always 1.
pub fn prepare_priority_class(object: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        object.set_at(&["metadata", "generation"], Value::Int(1));
    }
}

/// Increments the generation if only the labels change. Changes of other fields are counted afterwards.
pub fn count_labels(object: &mut Value, old: Option<&Value>) {
    let Some(old) = old else { return };
    fn labels(object: &Value) -> Option<&Map> {
        object.at(&["metadata", "labels"]).and_then(Value::as_object).filter(|labels| !labels.is_empty())
    }
    if labels(object) != labels(old) && super::is_same("discovery.v1.EndpointSlice", object, old) {
        let generation = old.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or_default();
        object.set_at(&["metadata", "generation"], Value::Int(generation + 1));
    }
}
