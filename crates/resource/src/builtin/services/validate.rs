//! The validation of Services, in kube-apiserver's order and words.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, names};

use super::super::checks::{duplicate_struct, invalid_each, items, labels, list, named, one_of, text};
use super::super::rule_checks;
use super::{HEADLESS, headless, is_external_name, needs_health_check};
use crate::builtin::ip::{self, Family};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const AFFINITIES: [&str; 2] = ["ClientIP", "None"];
const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const FAMILY_POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const POLICIES: [&str; 2] = ["Cluster", "Local"];
const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const ONLY_LOAD_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";
const PORT_NUMBER: &str = "must be between 1 and 65535, inclusive";
const ONCE_SET: &str = "may not change once set";

/// Validates a new Service, or an update of `old`.
pub fn validate(new: &Value, old: Option<&Value>, release: Release) -> Vec<FieldError> {
    let (path, spec) = (FieldPath::new("spec"), new.get("spec").unwrap_or(&Value::Null));
    let old_spec = old.map(|old| old.get("spec").unwrap_or(&Value::Null));
    let mut errors = vec![];
    if let Some(old) = old_spec {
        address_changes(spec, old, &path, &mut errors);
        family_changes(spec, old, &path, &mut errors);
        class_errors(spec, Some(old), &path, &mut errors);
        if needs_health_check(spec) && needs_health_check(old) && spec.get(HEALTH_PORT) != old.get(HEALTH_PORT) {
            errors.push(FieldError::forbidden(&path.child(HEALTH_PORT), "field is immutable"));
        }
    }
    topology_errors(new, &mut errors);
    type_errors(spec, &path, &mut errors);
    ports_errors(spec, &path, &mut errors);
    labels(spec.get("selector").unwrap_or(&Value::Null), &path.child("selector"), &mut errors);
    affinity_errors(spec, &path, &mut errors);
    errors.extend(linked_errors(spec, old_spec, release));
    let before = old_spec.map(|old| texts(old, "externalIPs")).unwrap_or_default();
    for (path, address) in items(spec, "externalIPs", &path) {
        match ip::error(&path, address, &before, release) {
            Some(error) => errors.push(error),
            None => ip::endpoint_errors(&path, address, &mut errors),
        }
    }
    known(spec, "type", &path, &TYPES, &mut errors);
    node_port_errors(spec, &path, &mut errors);
    same_ports(spec, &path, &mut errors);
    source_range_errors(new, old, &mut errors, release);
    load_balancer_errors(spec, &path, &mut errors);
    traffic_errors(spec, &path, &mut errors);
    errors
}

const HEALTH_PORT: &str = "healthCheckNodePort";

/// Validates that a field has one of `values`.
fn known(object: &Value, name: &str, path: &FieldPath, values: &[&str], errors: &mut Vec<FieldError>) {
    match text(object, name) {
        "" => errors.push(FieldError::required(&path.child(name), "")),
        _ => one_of(object, name, path, values, errors),
    }
}

/// The texts of a list.
fn texts<'a>(object: &'a Value, name: &str) -> HashSet<&'a str> {
    list(object, name).iter().filter_map(Value::as_str).collect()
}

fn value(object: &Value, name: &str) -> Value {
    object.get(name).cloned().unwrap_or_default()
}

fn topology_errors(service: &Value, errors: &mut Vec<FieldError>) {
    let annotation = |name: &str| service.at(&["metadata", "annotations", name]);
    let (Some(mode), Some(hints)) = (annotation(TOPOLOGY_MODE), annotation(TOPOLOGY_HINTS)) else { return };
    if mode != hints {
        let path = FieldPath::new("metadata").child("annotations").key(TOPOLOGY_MODE);
        let why = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
        errors.push(FieldError::invalid(&path, mode, why));
    }
}

/// Validates the fields that depend on the type.
fn type_errors(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let kind = text(spec, "type");
    if list(spec, "ports").is_empty() && !headless(spec) && kind != "ExternalName" {
        errors.push(FieldError::required(&path.child("ports"), ""));
    }
    match kind {
        "ExternalName" => external_name_errors(spec, path, errors),
        "LoadBalancer" | "NodePort" if headless(spec) => {
            let why = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid(&path.child("clusterIPs").index(0), &Value::from(HEADLESS), why));
        }
        _ => {}
    }
}

fn external_name_errors(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for name in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if spec.get(name).is_some() {
            errors.push(FieldError::forbidden(&path.child(name), "may not be set for ExternalName services"));
        }
    }
    // an external name may end with a dot
    let name = text(spec, "externalName");
    let name = name.strip_suffix('.').unwrap_or(name);
    match name.is_empty() {
        true => errors.push(FieldError::required(&path.child("externalName"), "")),
        false => invalid_each(&path.child("externalName"), name, names::dns1123_subdomain(name), errors),
    }
}

fn ports_errors(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let named = list(spec, "ports").len() > 1;
    let mut names = HashSet::new();
    for (path, port) in items(spec, "ports", path) {
        let name = text(port, "name");
        if !name.is_empty() {
            let path = path.child("name");
            invalid_each(&path, name, names::dns1123_label(name), errors);
            if !names.insert(name) {
                errors.push(FieldError::duplicate(&path, &Value::from(name)));
            }
        } else if named {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        if !is_port(port.get("port")) {
            errors.push(FieldError::invalid(&path.child("port"), &value(port, "port"), PORT_NUMBER));
        }
        known(port, "protocol", &path, &PROTOCOLS, errors);
        rule_checks::port(port.get("targetPort").unwrap_or(&Value::Int(0)), &path.child("targetPort"), errors);
        if let Some(protocol) = port.get("appProtocol").and_then(Value::as_str) {
            invalid_each(&path.child("appProtocol"), protocol, names::qualified_name(protocol), errors);
        }
    }
}

fn is_port(number: Option<&Value>) -> bool {
    number.and_then(Value::as_int).is_some_and(|number| (1..=65535).contains(&number))
}

fn affinity_errors(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    known(spec, "sessionAffinity", path, &AFFINITIES, errors);
    let (config, affinity) = (path.child("sessionAffinityConfig"), text(spec, "sessionAffinity"));
    if affinity == "None" && spec.get("sessionAffinityConfig").is_some() {
        errors.push(FieldError::forbidden(&config, "must not be set when session affinity is None"));
    }
    if affinity != "ClientIP" {
        return;
    }
    let steps = ["sessionAffinityConfig", "clientIP", "timeoutSeconds"];
    let paths = [config.clone(), config.child(steps[1]), config.child(steps[1]).child(steps[2])];
    for (i, path) in paths.iter().enumerate() {
        if spec.at(&steps[..=i]).is_none() {
            return errors.push(FieldError::required(path, "when session affinity type is ClientIP"));
        }
    }
    let seconds = spec.at(&steps).cloned().unwrap_or_default();
    if !seconds.as_int().is_some_and(|seconds| (1..=86400).contains(&seconds)) {
        errors.push(FieldError::invalid(&paths[2], &seconds, "must be greater than 0 and less than 86400"));
    }
}

/// Validates addresses, families and their policy against each other.
pub fn linked_errors(spec: &Value, old: Option<&Value>, release: Release) -> Vec<FieldError> {
    let (path, mut errors) = (FieldPath::new("spec"), vec![]);
    if is_external_name(spec) {
        return errors;
    }
    let (one, all, whole) = (text(spec, "clusterIP"), list(spec, "clusterIPs"), value(spec, "clusterIPs"));
    let addresses = path.child("clusterIPs");
    match (one.is_empty(), all.first()) {
        (false, None) => errors.push(FieldError::required(&addresses, "")),
        (false, Some(first)) if first.as_str() != Some(one) => {
            errors.push(FieldError::invalid(&addresses, &whole, "first value must match `clusterIP`"));
        }
        (true, Some(_)) => {
            errors.push(FieldError::invalid(&addresses, &whole, "must be empty when `clusterIP` is not specified"));
        }
        _ => {}
    }
    let mut known = HashSet::new();
    for (path, family) in items(spec, "ipFamilies", &path) {
        if !FAMILIES.contains(&family.as_str().unwrap_or_default()) {
            errors.push(FieldError::not_supported(&path, family, &FAMILIES));
        }
        if !known.insert(family.as_str()) {
            errors.push(FieldError::duplicate(&path, family));
        }
    }
    one_of(spec, "ipFamilyPolicy", &path, &FAMILY_POLICIES, &mut errors);
    address_errors(spec, old, &addresses, &mut errors, release);
    errors
}

fn address_errors(spec: &Value, old: Option<&Value>, path: &FieldPath, errors: &mut Vec<FieldError>, release: Release) {
    let (all, whole, before) = (list(spec, "clusterIPs"), value(spec, "clusterIPs"), errors.len());
    let before_update = old.map(|old| texts(old, "clusterIPs")).unwrap_or_default();
    for (i, address) in all.iter().enumerate() {
        if i > 0 || address.as_str() != Some(HEADLESS) {
            errors.extend(ip::error(&path.index(i), address, &before_update, release));
        } else if all.len() > 1 {
            errors.push(FieldError::invalid(path, &whole, "'None' must be the first and only value"));
        }
    }
    let wrong = errors.len() > before;
    if all.len() > 2 {
        errors.push(FieldError::invalid(path, &whole, "may only hold up to 2 values"));
    }
    if wrong {
        return;
    }
    let family = |address: &Value| address.as_str().and_then(ip::parse).map(Family::of);
    let of = |wanted: Family| all.iter().filter(|address| family(address) == Some(wanted)).count();
    if all.len() > 1 && (of(Family::IPv4) == 0 || of(Family::IPv6) == 0) {
        errors.push(FieldError::invalid(path, &whole, "may specify no more than one IP for each IP family"));
    }
    if headless(spec) {
        return;
    }
    for (i, (address, wanted)) in all.iter().zip(list(spec, "ipFamilies")).enumerate() {
        let wanted = wanted.as_str().and_then(Family::parse);
        if let Some(wanted) = wanted.filter(|wanted| family(address) != Some(*wanted)) {
            let why = format!("expected an {} value as indicated by `ipFamilies[{i}]`", wanted.as_str());
            errors.push(FieldError::invalid(&path.index(i), address, why));
        }
    }
}

/// The primary address is immutable. So is the secondary one, unless the Service becomes single-stack.
fn address_changes(spec: &Value, old: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if is_external_name(spec) || is_external_name(old) || headless(spec) && headless(old) {
        return;
    }
    let (new, before, whole) = (list(spec, "clusterIPs"), list(old, "clusterIPs"), value(spec, "clusterIPs"));
    let addresses = path.child("clusterIPs");
    if new.len() == before.len() {
        for i in (0..new.len()).filter(|i| new.get(*i) != before.get(*i)) {
            errors.push(FieldError::invalid(&addresses.index(i), &whole, ONCE_SET));
        }
        return;
    }
    if new.is_empty() {
        errors.push(FieldError::invalid(&addresses.index(0), &whole, "primary clusterIP can not be unset"));
    }
    if let (Some(new), Some(before)) = (new.first(), before.first())
        && new != before
    {
        errors.push(FieldError::invalid(&addresses.index(0), &whole, ONCE_SET));
    }
    if new.len() == 1 && before.len() > 1 && text(spec, "ipFamilyPolicy") != "SingleStack" {
        let why = "must be set to 'SingleStack' when releasing the secondary clusterIP";
        errors.push(FieldError::invalid(&path.child("ipFamilyPolicy"), &value(spec, "ipFamilyPolicy"), why));
    }
}

fn family_changes(spec: &Value, old: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if is_external_name(spec) || is_external_name(old) || headless(spec) || headless(old) {
        return;
    }
    let (new, before, first) = (list(spec, "ipFamilies"), list(old, "ipFamilies"), path.child("ipFamilies").index(0));
    if new.len() == before.len() {
        for _ in (0..new.len()).filter(|i| new.get(*i) != before.get(*i)) {
            errors.push(FieldError::invalid(&first, &value(spec, "ipFamilies"), ONCE_SET));
        }
        return;
    }
    if new.len() < before.len() && list(spec, "clusterIPs").is_empty() {
        errors.push(FieldError::invalid(&first, &value(spec, "ipFamilies"), "primary ipFamily can not be unset"));
    }
    if let (Some(new), Some(before)) = (new.first(), before.first())
        && new != before
    {
        errors.push(FieldError::invalid(&first, &value(spec, "clusterIPs"), ONCE_SET));
    }
    if new.len() == 1 && before.len() > 1 && text(spec, "ipFamilyPolicy") != "SingleStack" {
        let why = "must be set to 'SingleStack' when releasing the secondary ipFamily";
        errors.push(FieldError::invalid(&path.child("ipFamilyPolicy"), &value(spec, "ipFamilyPolicy"), why));
    }
}

fn node_port_errors(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let given = || items(spec, "ports", path).filter(|(_, port)| port.get("nodePort").is_some());
    if text(spec, "type") == "ClusterIP" {
        for (path, _) in given() {
            errors.push(FieldError::forbidden(&path.child("nodePort"), "may not be used when `type` is 'ClusterIP'"));
        }
    }
    let mut seen = HashSet::new();
    for (path, port) in given() {
        let number = value(port, "nodePort");
        if !seen.insert((text(port, "protocol"), number.as_int())) {
            errors.push(FieldError::duplicate(&path.child("nodePort"), &number));
        }
    }
}

fn same_ports(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut seen = HashSet::new();
    for (path, port) in items(spec, "ports", path) {
        let (protocol, number) = (text(port, "protocol"), port.get("port").and_then(Value::as_int));
        if seen.insert((protocol, number)) {
            continue;
        }
        let shown = [
            ("Name", Value::from("")),
            ("Protocol", Value::from(protocol)),
            ("AppProtocol", Value::Null),
            ("Port", Value::Int(number.unwrap_or_default())),
            ("TargetPort", Value::Int(0)),
            ("NodePort", Value::Int(0)),
        ];
        errors.push(duplicate_struct(&path, &shown));
    }
}

fn source_range_errors(service: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>, release: Release) {
    let ranges = |service: &Value| service.at(&["spec", "loadBalancerSourceRanges"]).cloned().unwrap_or_default();
    let annotation = |service: &Value| service.at(&["metadata", "annotations", SOURCE_RANGES]).cloned();
    let balanced = service.str_at(&["spec", "type"]) == "LoadBalancer";
    let (given, before) = (ranges(service), old.map(ranges).unwrap_or_default());
    let given = given.as_array().unwrap_or_default();
    if !given.is_empty() {
        let path = FieldPath::new("spec").child("LoadBalancerSourceRanges");
        if !balanced {
            errors.push(FieldError::forbidden(&path, ONLY_LOAD_BALANCER));
        }
        let before: HashSet<&str> =
            before.as_array().unwrap_or_default().iter().filter_map(Value::as_str).map(str::trim).collect();
        for (i, range) in given.iter().enumerate() {
            errors.extend(ip::cidr_error(&path.index(i), range.as_str().unwrap_or_default().trim(), &before, release));
        }
        return;
    }
    let Some(text) = annotation(service) else { return };
    let path = FieldPath::new("metadata").child("annotations").key(SOURCE_RANGES);
    if !balanced {
        errors.push(FieldError::forbidden(&path, ONLY_LOAD_BALANCER));
    }
    if old.and_then(annotation).as_ref() == Some(&text) {
        return;
    }
    let ranges = text.as_str().unwrap_or_default().trim();
    for range in ranges.split(',').filter(|_| !ranges.is_empty()) {
        errors.extend(ip::cidr_error(&path, range.trim(), &HashSet::new(), release));
    }
}

fn load_balancer_errors(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let (balanced, name) = (text(spec, "type") == "LoadBalancer", "allocateLoadBalancerNodePorts");
    match (balanced, spec.get(name).is_some()) {
        (false, true) => errors.push(FieldError::forbidden(&path.child(name), ONLY_LOAD_BALANCER)),
        (true, false) => errors.push(FieldError::required(&FieldPath::new(name), "")),
        _ => {}
    }
    class_errors(spec, None, path, errors);
}

fn class_errors(spec: &Value, old: Option<&Value>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let path = path.child("loadBalancerClass");
    let balanced = |spec: &Value| text(spec, "type") == "LoadBalancer";
    let class = spec.get("loadBalancerClass");
    if old.is_some_and(|old| balanced(old) && balanced(spec) && old.get("loadBalancerClass") != class) {
        let class = class.cloned().unwrap_or_default();
        errors.push(named(FieldError::invalid(&path, &class, ONCE_SET), &class));
    }
    let Some(class) = class.and_then(Value::as_str) else { return };
    match balanced(spec) {
        true => invalid_each(&path, class, names::qualified_name(class), errors),
        false => errors.push(FieldError::forbidden(&path, ONLY_LOAD_BALANCER)),
    }
}

fn traffic_errors(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let outside = "externalTrafficPolicy";
    if super::is_external(spec) {
        known(spec, outside, path, &POLICIES, errors);
    } else if spec.get(outside).is_some() {
        let why = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(&path.child(outside), &value(spec, outside), why));
    }
    let (place, port) = (path.child(HEALTH_PORT), spec.get(HEALTH_PORT));
    match (needs_health_check(spec), port) {
        (false, Some(port)) => {
            let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(FieldError::invalid(&place, port, why));
        }
        (true, None) => errors.push(FieldError::required(&place, "")),
        (true, port) if !is_port(port) => {
            errors.push(FieldError::invalid(&place, &value(spec, HEALTH_PORT), PORT_NUMBER))
        }
        _ => {}
    }
    let inside = "internalTrafficPolicy";
    if spec.get(inside).is_none() && matches!(text(spec, "type"), "ClusterIP" | "LoadBalancer" | "NodePort") {
        errors.push(FieldError::required(&path.child(inside), ""));
    }
    one_of(spec, inside, path, &POLICIES, errors);
    if let Some(given) = spec.get("trafficDistribution")
        && !given.as_str().is_some_and(|given| DISTRIBUTIONS.contains(&given))
    {
        errors.push(FieldError::not_supported(&path.child("trafficDistribution"), given, &DISTRIBUTIONS));
    }
}

/// Validates a write to the status.
pub fn validate_status(new: &Value, old: &Value, release: Release) -> Vec<FieldError> {
    let (path, mut errors) = (FieldPath::new("status").child("loadBalancer"), vec![]);
    let ingress = |service: &Value| service.at(&["status", "loadBalancer"]).cloned().unwrap_or_default();
    let (new_status, old_status) = (ingress(new), ingress(old));
    if new.str_at(&["spec", "type"]) != "LoadBalancer" && !list(&new_status, "ingress").is_empty() {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        return vec![FieldError::forbidden(&path.child("ingress"), why)];
    }
    let known = list(&old_status, "ingress").iter().filter_map(|point| point.get("ip")?.as_str()).collect();
    for (path, point) in items(&new_status, "ingress", &path) {
        ingress_errors(point, &path, &known, &mut errors, release);
    }
    errors
}

fn ingress_errors(
    point: &Value,
    path: &FieldPath,
    known: &HashSet<&str>,
    errors: &mut Vec<FieldError>,
    release: Release,
) {
    let address = point.get("ip");
    errors.extend(address.and_then(|address| ip::error(&path.child("ip"), address, known, release)));
    let mode = path.child("ipMode");
    match (point.get("ipMode"), address) {
        (None, Some(_)) => errors.push(FieldError::required(&mode, "must be specified when `ip` is set")),
        (Some(_), None) => errors.push(FieldError::forbidden(&mode, "may not be specified when `ip` is not set")),
        _ => one_of(point, "ipMode", path, &["Proxy", "VIP"], errors),
    }
    let host = text(point, "hostname");
    if host.is_empty() {
        return;
    }
    invalid_each(&path.child("hostname"), host, names::dns1123_subdomain(host), errors);
    if ip::parse(host).is_some() {
        let why = "must be a DNS name, not an IP address";
        errors.push(FieldError::invalid(&path.child("hostname"), &Value::from(host), why));
    }
}

/// Warns of accepted but discouraged values.
pub fn warnings(new: &Value, _old: Option<&Value>, release: Release) -> Vec<String> {
    let (path, spec) = (FieldPath::new("spec"), new.get("spec").unwrap_or(&Value::Null));
    let mut out = vec![];
    if new.at(&["metadata", "annotations", TOPOLOGY_HINTS]).is_some() {
        out.push(format!("annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"));
    }
    let addresses = |name: &'static str| {
        let listed = items(spec, name, &path).filter_map(|(path, item)| Some((path, item.as_str()?)));
        listed
            .filter(|(_, text)| *text != HEADLESS)
            .filter_map(|(path, text)| ip::warning(&path, text, release))
            .collect::<Vec<_>>()
    };
    out.extend(addresses("clusterIPs"));
    let balancer = text(spec, "loadBalancerIP");
    let headless = text(spec, "type") == "ClusterIP" && text(spec, "clusterIP") == HEADLESS;
    if headless {
        let ignored = [
            ("loadBalancerIP", !balancer.is_empty()),
            ("externalIPs", !list(spec, "externalIPs").is_empty()),
            ("SessionAffinity", text(spec, "sessionAffinity") != "None"),
        ];
        let ignored = ignored.into_iter().filter(|(_, given)| *given);
        out.extend(ignored.map(|(name, _)| format!("spec.{name} is ignored for headless services")));
    }
    out.extend(addresses("externalIPs"));
    let used = !list(spec, "externalIPs").is_empty() && !headless && !is_external_name(spec);
    if used && release >= Release::V1_36 {
        out.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned());
    }
    out.extend(ip::warning(&path.child("loadBalancerIP"), balancer, release));
    for (path, range) in items(spec, "loadBalancerSourceRanges", &path) {
        out.extend(ip::cidr_warnings(&path, range.as_str().unwrap_or_default(), release));
    }
    match is_external_name(spec) {
        true if !list(spec, "externalIPs").is_empty() => {
            out.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
        }
        false if !text(spec, "externalName").is_empty() => {
            out.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
        }
        _ => {}
    }
    if text(spec, "trafficDistribution") == "PreferClose" {
        out.push("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned());
    }
    out
}
