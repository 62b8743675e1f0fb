//! The validation of Services, in kube-apiserver's order and words.

use std::collections::HashSet;

use machinery::field::FieldPath;
use machinery::{Release, Value, names};

use crate::core::services::{HEADLESS, headless, is_external, is_external_name, needs_health_check};
use crate::ip::{self, Family};
use crate::rule_checks;
use resource::builtin::checks::{go_struct, labels, list, text};
use schema::at::At;

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const FAMILY_POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];
const POLICIES: [&str; 2] = ["Cluster", "Local"];
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const ONLY_LOAD_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";
const ONCE_SET: &str = "may not change once set";

/// Validates a new Service, or an update.
pub fn validate(at: At) {
    let spec = at.field("spec");
    if let Some(old) = spec.old {
        address_changes(spec, old);
        family_changes(spec, old);
        class(spec, Some(old));
        let port = spec.field("healthCheckNodePort");
        if needs_health_check(spec.value) && needs_health_check(old) && port.old != Some(port.value) {
            port.forbidden("field is immutable");
        }
    }
    topology(at.field("metadata.annotations"));
    of_type(spec);
    ports(spec);
    labels(spec.field("selector"));
    affinity(spec);
    linked(spec);
    let before = spec.old.map(|old| texts(old, "externalIPs")).unwrap_or_default();
    for address in spec.items_of("externalIPs") {
        let found = at.count();
        ip::address(address, &before);
        if at.count() == found {
            ip::endpoint(address);
        }
    }
    known(spec.field("type"), &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    node_ports(spec);
    same_ports(spec);
    source_ranges(at);
    load_balancer(spec);
    traffic(spec);
}

fn known(at: At, values: &[&str]) {
    at.shown_as_json().require_one_of(values);
}

/// The texts of a list.
fn texts<'a>(object: &'a Value, name: &str) -> HashSet<&'a str> {
    list(object, name).iter().filter_map(Value::as_str).collect()
}

fn topology(annotations: At) {
    let (mode, hints) = (annotations.entry(TOPOLOGY_MODE), annotations.entry(TOPOLOGY_HINTS));
    if mode.is_given() && hints.is_given() && mode.value != hints.value {
        mode.invalid(format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified"));
    }
}

/// Validates the fields that depend on the type.
fn of_type(spec: At) {
    let kind = spec.text("type");
    if spec.list("ports").is_empty() && !headless(spec.value) && kind != "ExternalName" {
        spec.field("ports").required("");
    }
    match kind {
        "ExternalName" => external_name(spec),
        "LoadBalancer" | "NodePort" if headless(spec.value) => {
            let why = format!("may not be set to 'None' for {kind} services");
            spec.field("clusterIPs").item(0).shown_as_text(HEADLESS).invalid(why);
        }
        _ => {}
    }
}

fn external_name(spec: At) {
    for set in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"].iter().filter_map(|name| spec.field_if_given(name)) {
        set.forbidden("may not be set for ExternalName services");
    }
    // an external name may end with a dot
    let name = spec.field("externalName");
    match name.as_text().strip_suffix('.').unwrap_or(name.as_text()) {
        "" => name.required(""),
        text => name.shown_as_text(text).invalid_each(names::dns1123_subdomain(text)),
    }
}

fn ports(spec: At) {
    let is_one = spec.list("ports").len() < 2;
    let mut known_names = HashSet::new();
    for port in spec.items_of("ports") {
        let name = port.field("name");
        if !name.as_text().is_empty() {
            name.check_text(names::dns1123_label);
            name.unique(&mut known_names);
        } else if !is_one {
            name.required("");
        }
        valid_port(port.field("port"));
        known(port.field("protocol"), &["SCTP", "TCP", "UDP"]);
        rule_checks::port(port.field("targetPort"));
        port.field("appProtocol").check_text_if_given(names::qualified_name);
    }
}

fn valid_port(at: At) {
    if !at.value.as_int().is_some_and(|number| (1..=65535).contains(&number)) {
        at.invalid("must be between 1 and 65535, inclusive");
    }
}

fn affinity(spec: At) {
    known(spec.field("sessionAffinity"), &["ClientIP", "None"]);
    let affinity = spec.text("sessionAffinity");
    if affinity == "None" && spec.has("sessionAffinityConfig") {
        spec.field("sessionAffinityConfig").forbidden("must not be set when session affinity is None");
    }
    if affinity != "ClientIP" {
        return;
    }
    const STEPS: [&str; 3] =
        ["sessionAffinityConfig", "sessionAffinityConfig.clientIP", "sessionAffinityConfig.clientIP.timeoutSeconds"];
    if let Some(missing) = STEPS.into_iter().find(|step| !spec.has(step)) {
        return spec.field(missing).required("when session affinity type is ClientIP");
    }
    let seconds = spec.field(STEPS[2]);
    if !seconds.value.as_int().is_some_and(|seconds| (1..=86400).contains(&seconds)) {
        seconds.invalid("must be greater than 0 and less than 86400");
    }
}

/// Validates addresses, families and their policy in a `spec` against each other.
pub fn linked(spec: At) {
    if is_external_name(spec.value) {
        return;
    }
    let (one, addresses) = (spec.text("clusterIP"), spec.field("clusterIPs"));
    match (one.is_empty(), spec.list("clusterIPs").first()) {
        (false, None) => addresses.required(""),
        (false, Some(first)) if first.as_str() != Some(one) => {
            addresses.invalid("first value must match `clusterIP`");
        }
        (true, Some(_)) => addresses.invalid("must be empty when `clusterIP` is not specified"),
        _ => {}
    }
    let mut seen = HashSet::new();
    for family in spec.items_of("ipFamilies") {
        family.one_of(&FAMILIES);
        family.unique(&mut seen);
    }
    spec.field("ipFamilyPolicy").shown_as_json().one_of(&FAMILY_POLICIES);
    addresses_of(spec);
}

fn addresses_of(spec: At) {
    let (all, before) = (spec.field("clusterIPs"), spec.count());
    let count = all.items().len();
    let before_update = spec.old.map(|old| texts(old, "clusterIPs")).unwrap_or_default();
    for (i, address) in all.items().enumerate() {
        if i > 0 || address.as_text() != HEADLESS {
            ip::address(address, &before_update);
        } else if count > 1 {
            all.invalid("'None' must be the first and only value");
        }
    }
    let is_wrong = spec.count() > before;
    all.invalid_if(count > 2, "may only hold up to 2 values");
    if is_wrong {
        return;
    }
    let family = |address: At| ip::parse(address.as_text()).map(Family::of);
    let has = |wanted: Family| all.items().any(|address| family(address) == Some(wanted));
    if count > 1 && !(has(Family::IPv4) && has(Family::IPv6)) {
        all.invalid("may specify no more than one IP for each IP family");
    }
    if headless(spec.value) {
        return;
    }
    for (i, (address, wanted)) in all.items().zip(spec.list("ipFamilies")).enumerate() {
        let wanted = wanted.as_str().and_then(Family::parse);
        if let Some(wanted) = wanted.filter(|wanted| family(address) != Some(*wanted)) {
            address.invalid(format!("expected an {} value as indicated by `ipFamilies[{i}]`", wanted.as_str()));
        }
    }
}

/// The primary address is immutable. So is the secondary one, unless the Service becomes single-stack.
fn address_changes(spec: At, old: &Value) {
    if is_external_name(spec.value) || is_external_name(old) || headless(spec.value) && headless(old) {
        return;
    }
    let (new, before, all) = (spec.list("clusterIPs"), list(old, "clusterIPs"), spec.field("clusterIPs"));
    let whole = |i: usize, why: &str| all.item(i).with_value(all.value).invalid(why);
    if new.len() == before.len() {
        return (0..new.len()).filter(|i| new.get(*i) != before.get(*i)).for_each(|i| whole(i, ONCE_SET));
    }
    if new.is_empty() {
        whole(0, "primary clusterIP can not be unset");
    }
    if let (Some(new), Some(before)) = (new.first(), before.first())
        && new != before
    {
        whole(0, ONCE_SET);
    }
    released(spec, new, before, "clusterIP");
}

/// The secondary item of a list may only be released by a Service that becomes single-stack.
fn released(spec: At, new: &[Value], before: &[Value], what: &str) {
    if new.len() == 1 && before.len() > 1 && spec.text("ipFamilyPolicy") != "SingleStack" {
        let why = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        spec.field("ipFamilyPolicy").invalid(why);
    }
}

fn family_changes(spec: At, old: &Value) {
    if [spec.value, old].into_iter().any(|spec| is_external_name(spec) || headless(spec)) {
        return;
    }
    let (new, before, all) = (spec.list("ipFamilies"), list(old, "ipFamilies"), spec.field("ipFamilies"));
    let whole = |shown: &str, why: &str| all.item(0).with_value(spec.field(shown).value).invalid(why);
    if new.len() == before.len() {
        let changed = (0..new.len()).filter(|i| new.get(*i) != before.get(*i));
        return changed.for_each(|_| whole("ipFamilies", ONCE_SET));
    }
    if new.len() < before.len() && spec.list("clusterIPs").is_empty() {
        whole("ipFamilies", "primary ipFamily can not be unset");
    }
    if let (Some(new), Some(before)) = (new.first(), before.first())
        && new != before
    {
        whole("clusterIPs", ONCE_SET);
    }
    released(spec, new, before, "ipFamily");
}

fn node_ports(spec: At) {
    if spec.text("type") == "ClusterIP" {
        for port in spec.items_of("ports").filter(|port| port.has("nodePort")) {
            port.field("nodePort").forbidden("may not be used when `type` is 'ClusterIP'");
        }
    }
    let mut seen = HashSet::new();
    for port in spec.items_of("ports").filter(|port| port.has("nodePort")) {
        if !seen.insert((port.text("protocol"), port.int("nodePort"))) {
            port.field("nodePort").duplicate();
        }
    }
}

fn same_ports(spec: At) {
    let mut seen = HashSet::new();
    for port in spec.items_of("ports") {
        let (protocol, number) = (port.text("protocol"), port.int("port"));
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
        port.shown_verbatim(&go_struct(&shown)).duplicate();
    }
}

fn source_ranges(at: At) {
    let balanced = at.text("spec.type") == "LoadBalancer";
    let given = at.field("spec.loadBalancerSourceRanges").with_name("spec.LoadBalancerSourceRanges");
    if given.items().len() > 0 {
        given.forbidden_if(!balanced, ONLY_LOAD_BALANCER);
        let before = given.old_items();
        let before: HashSet<&str> = before.iter().filter_map(Value::as_str).map(str::trim).collect();
        return given.items().for_each(|range| ip::cidr(range, range.as_text().trim(), &before, at.release()));
    }
    let annotations = at.field("metadata.annotations");
    let annotation = annotations.entry(SOURCE_RANGES);
    if !annotation.is_given() {
        return;
    }
    annotation.forbidden_if(!balanced, ONLY_LOAD_BALANCER);
    if annotation.old == Some(annotation.value) {
        return;
    }
    let ranges = annotation.as_text().trim();
    for range in ranges.split(',').filter(|_| !ranges.is_empty()) {
        ip::cidr(annotation, range.trim(), &HashSet::new(), at.release());
    }
}

fn load_balancer(spec: At) {
    let allocates = spec.field("allocateLoadBalancerNodePorts");
    match (spec.text("type") == "LoadBalancer", allocates.is_given()) {
        (false, true) => allocates.forbidden(ONLY_LOAD_BALANCER),
        (true, false) => allocates.with_path(&FieldPath::new("allocateLoadBalancerNodePorts")).required(""),
        _ => {}
    }
    class(spec, None);
}

fn class(spec: At, old: Option<&Value>) {
    let class = spec.field("loadBalancerClass");
    let balanced = |spec: &Value| text(spec, "type") == "LoadBalancer";
    if old.is_some_and(|old| balanced(old) && balanced(spec.value)) && class.old != Some(class.value) {
        class.shown_as_json().invalid(ONCE_SET);
    }
    match balanced(spec.value) {
        _ if !class.is_given() => {}
        true => class.check_text(names::qualified_name),
        false => class.forbidden(ONLY_LOAD_BALANCER),
    }
}

fn traffic(spec: At) {
    let outside = spec.field("externalTrafficPolicy");
    if is_external(spec.value) {
        known(outside, &POLICIES);
    } else if outside.is_given() {
        outside.invalid("may only be set for externally-accessible services");
    }
    let port = spec.field("healthCheckNodePort");
    match (needs_health_check(spec.value), port.is_given()) {
        (false, true) => {
            port.invalid("may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'");
        }
        (true, false) => port.required(""),
        (true, true) => valid_port(port),
        _ => {}
    }
    let inside = spec.field("internalTrafficPolicy");
    if !inside.is_given() && matches!(spec.text("type"), "ClusterIP" | "LoadBalancer" | "NodePort") {
        inside.required("");
    }
    inside.shown_as_json().one_of(&POLICIES);
    spec.field("trafficDistribution").one_of(&["PreferClose", "PreferSameZone", "PreferSameNode"]);
}

pub fn validate_status(at: At) {
    let (ingress, balancer) = (at.field("status.loadBalancer.ingress"), at.field("status.loadBalancer"));
    if at.text("spec.type") != "LoadBalancer" && ingress.items().len() > 0 {
        return ingress.forbidden("may only be used when `spec.type` is 'LoadBalancer'");
    }
    let before = balancer.old.map(|old| list(old, "ingress")).unwrap_or_default();
    let before = before.iter().filter_map(|point| point.get("ip")?.as_str()).collect();
    ingress.items().for_each(|point| ingress_point(point, &before));
}

fn ingress_point(point: At, before: &HashSet<&str>) {
    let (mode, host) = (point.field("ipMode"), point.field("hostname"));
    point.field_if_given("ip").into_iter().for_each(|address| ip::address(address, before));
    match (mode.is_given(), point.has("ip")) {
        (false, true) => mode.required("must be specified when `ip` is set"),
        (true, false) => mode.forbidden("may not be specified when `ip` is not set"),
        _ => mode.shown_as_json().one_of(&["Proxy", "VIP"]),
    }
    if !host.as_text().is_empty() {
        host.check_text(names::dns1123_subdomain);
        host.invalid_if(ip::parse(host.as_text()).is_some(), "must be a DNS name, not an IP address");
    }
}

/// Warns of accepted but discouraged values.
pub fn warnings(at: At) {
    let spec = at.field("spec");
    if at.field("metadata.annotations").entry(TOPOLOGY_HINTS).is_given() {
        at.warn_text(format!("annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"));
    }
    let addresses = |name: &'static str| {
        spec.items_of(name).filter(|address| address.as_text() != HEADLESS).for_each(ip::warn_address);
    };
    addresses("clusterIPs");
    let has_external = !spec.list("externalIPs").is_empty();
    let headless = spec.text("type") == "ClusterIP" && spec.text("clusterIP") == HEADLESS;
    for (name, given) in [
        ("loadBalancerIP", !spec.text("loadBalancerIP").is_empty()),
        ("externalIPs", has_external),
        ("SessionAffinity", spec.text("sessionAffinity") != "None"),
    ] {
        if headless && given {
            at.warn_text(format!("spec.{name} is ignored for headless services"));
        }
    }
    addresses("externalIPs");
    let is_external_name = is_external_name(spec.value);
    if has_external && !headless && !is_external_name && at.release() >= Release::V1_36 {
        at.warn_text("spec.externalIPs is deprecated and may no longer be implemented in some clusters");
    }
    ip::warn_address(spec.field("loadBalancerIP"));
    spec.items_of("loadBalancerSourceRanges").for_each(ip::warn_cidr);
    match is_external_name {
        true if has_external => at.warn_text("spec.externalIPs is ignored when spec.type is \"ExternalName\""),
        false if !spec.text("externalName").is_empty() => {
            at.warn_text("spec.externalName is ignored when spec.type is not \"ExternalName\"");
        }
        _ => {}
    }
    if spec.text("trafficDistribution") == "PreferClose" {
        spec.field("trafficDistribution").warn("\"PreferClose\" is deprecated; use \"PreferSameZone\"");
    }
}
