//! Ingresses, NetworkPolicies, disruption budgets and PriorityClasses: the rules that involve several fields.

use std::collections::HashSet;

use machinery::field::FieldPath;
use machinery::{Map, Value, json, names};

use super::at::{At, CheckStage};
use super::checks::{conditions, selector_operators};
use super::ip::{self, Cidr};
use super::rule_checks::{self, port_name_problems};

/// An Ingress needs a default backend or rules.
pub fn validate_ingress(at: At) {
    let (spec, rules) = (at.field("spec"), at.field("spec.rules"));
    let default = spec.field_if_given("defaultBackend");
    if spec.list("rules").is_empty() && default.is_none() {
        at.field("spec").with_value(rules.value).invalid("either `defaultBackend` or `rules` must be specified");
    }
    default.into_iter().for_each(backend);
    for rule in spec.items_of("rules") {
        rule.items_of("http.paths").for_each(http_path);
    }
    class_annotation(at);
}

/// The annotation that named the class of a new Ingress before the field did.
fn class_annotation(at: At) {
    let path = FieldPath::new("annotations");
    let annotations = at.field("metadata.annotations");
    let annotations = annotations.with_path(&path);
    let annotated = annotations.field_with_dots("kubernetes.io/ingress.class");
    let class = at.field("spec.ingressClassName");
    if !at.is_update() && annotated.is_given() && class.is_given() && annotated.as_text() != class.as_text() {
        annotated.invalid("must match `ingressClassName` when both are specified");
    }
}

fn http_path(at: At) {
    const ABSOLUTE: &str = "must be an absolute path";
    let (kind, given) = (at.text("pathType"), at.field_or_empty("path"));
    let is_absolute = given.as_text().starts_with('/');
    if matches!(kind, "Exact" | "Prefix") {
        if !is_absolute {
            given.invalid(ABSOLUTE);
        }
        path_parts(given);
    } else if kind == "ImplementationSpecific" && !given.as_text().is_empty() && !is_absolute {
        given.invalid(ABSOLUTE);
    }
    if !at.has("pathType") {
        return at.field("pathType").required("pathType must be specified");
    }
    at.field("pathType").one_of(&["Exact", "ImplementationSpecific", "Prefix"]);
    backend(at.field("backend"));
}

/// Reports the parts that a path must not contain.
fn path_parts(at: At) {
    for part in ["//", "/./", "/../", "%2f", "%2F"].into_iter().filter(|part| at.as_text().contains(part)) {
        at.invalid(format!("must not contain '{part}'"));
    }
    for end in ["/..", "/."].into_iter().filter(|end| at.as_text().ends_with(end)) {
        at.invalid(format!("cannot end with '{end}'"));
    }
}

fn backend(at: At) {
    match (at.has("service"), at.has("resource")) {
        (true, true) => return at.shown_as_text("").invalid("cannot set both resource and service backends"),
        (false, false) => return at.shown_as_text("").invalid("resource or service backend is required"),
        (false, true) => return resource(at.field("resource")),
        (true, false) => {}
    }
    at.field("service.name").check_required_text(names::dns1123_label);
    let (name, number) = (at.field("service.port.name"), at.field("service.port.number"));
    match (name.as_text(), number.value.as_int().unwrap_or_default()) {
        ("", 0) => at.required("port name or number is required"),
        ("", _) => number.within(1..=65535),
        (_, 0) => name.check_text(port_name_problems),
        _ => at.shown_as_text("").invalid("cannot set both port name & port number"),
    }
}

/// Validates the reference to an object that serves as a backend.
fn resource(at: At) {
    at.field("apiGroup").check_text_if_given(names::dns1123_subdomain);
    at.field("kind").check_required_text(names::path_segment);
    at.field("name").check_required_text(names::path_segment);
}

pub fn validate_network_policy(at: At) {
    let spec = at.field("spec");
    selector_operators(spec.field("podSelector"));
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.items_of(direction) {
            rule.items_of("ports").for_each(port_range);
            rule.items_of(peers).for_each(peer);
        }
    }
    if spec.list("policyTypes").len() > 2 {
        spec.field("policyTypes").invalid("may not specify more than two policyTypes");
    }
}

fn port_range(at: At) {
    let Some(end) = at.field_if_given("endPort") else { return };
    match at.field("port").value {
        Value::Null => end.invalid("may not be specified when `port` is not specified"),
        Value::String(_) => {
            end.in_stage(CheckStage::Across).invalid("may not be specified when `port` is non-numeric");
        }
        start => {
            if end.value.as_int() < start.as_int() {
                end.invalid("must be greater than or equal to `port`");
            }
            end.within(1..=65535);
        }
    }
}

/// The exceptions of an IP block must be ranges within it. They are not checked if the block itself is invalid.
fn exceptions(block: At) {
    let Some(all) = Cidr::parse(block.text("cidr")) else { return };
    for exception in block.items_of("except") {
        rule_checks::cidr(exception);
        let Some(part) = Cidr::parse(exception.as_text()) else { continue };
        let within = Cidr { address: part.address, bits: all.bits }.network().address;
        let is_below = part.address.is_ipv4() == all.address.is_ipv4() && within == all.network().address;
        if !is_below || all.bits >= part.bits {
            exception.invalid("must be a strict subset of `cidr`");
        }
    }
}

fn peer(at: At) {
    let selectors = ["podSelector", "namespaceSelector"].into_iter().filter_map(|name| at.field_if_given(name));
    let count = selectors.inspect(|selector| selector_operators(*selector)).count();
    exceptions(at.field("ipBlock"));
    match (count, at.has("ipBlock")) {
        (0, false) => at.required("must specify a peer"),
        (1.., true) => at.forbidden("may not specify both ipBlock and another peer"),
        _ => {}
    }
}

pub fn validate_budget(at: At) {
    const SHARE: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
    let spec = at.field("spec");
    selector_operators(spec.field("selector"));
    let amounts = [spec.field("minAvailable"), spec.field("maxUnavailable")];
    for amount in amounts {
        match amount.value {
            Value::Int(..0) => amount.invalid("must be greater than or equal to 0"),
            Value::String(share) if !is_share(share) => amount.invalid(SHARE),
            _ => {}
        }
    }
    for amount in amounts {
        let share = amount.as_text().strip_suffix('%').and_then(|share| share.parse::<u64>().ok());
        if share.is_some_and(|share| share > 100) {
            amount.invalid("must not be greater than 100%");
        }
    }
    if amounts.iter().all(At::is_given) {
        spec.shown_as_go("policy.PodDisruptionBudgetSpec")
            .invalid("minAvailable and maxUnavailable cannot be both set");
    }
}

/// The ranges of a ServiceCIDR are immutable, except that a second one may be added.
pub fn validate_service_cidr(at: At) {
    let ranges = at.field("spec.cidrs");
    let given = at.list("spec.cidrs");
    if let Some(old) = ranges.old.and_then(Value::as_array) {
        // a range of the other IP family may be added
        let is_second = (old.len(), given.len()) == (1, 2);
        if old.len() != given.len() && !is_second {
            return ranges.invalid("field is immutable");
        }
        for (range, _) in ranges.items().zip(old).filter(|(range, old)| range.value != *old) {
            range.invalid("field is immutable");
        }
        if is_second {
            range_families(ranges);
        }
        return;
    }
    if given.is_empty() {
        ranges.required("at least one CIDR required");
    }
    if given.len() > 2 {
        let shown = json!({"CIDRs": (Value::Array(given.to_vec()))});
        return ranges.shown_verbatim(&shown.to_json()).invalid("may only hold up to 2 values");
    }
    range_families(ranges);
}

/// Ranges must be canonical, with at most one for each IP family.
fn range_families(ranges: At) {
    for range in ranges.items() {
        let (before, given) = (range.count(), range.as_text());
        rule_checks::cidr(range);
        let canonical = Cidr::parse(given).map(|cidr| cidr.to_string()).filter(|canonical| canonical != given);
        if let Some(canonical) = canonical.filter(|_| range.count() == before) {
            range.invalid(format!("must be in canonical form ({canonical:?})"));
        }
    }
    let families: Vec<_> = ranges.items().map(|at| Some(Cidr::parse(at.as_text())?.address.is_ipv4())).collect();
    if let [Some(one), Some(other)] = families[..]
        && one == other
    {
        ranges.invalid("may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64");
    }
}

/// Validates a status that has no rules besides those for conditions.
pub fn validate_conditions(at: At) {
    conditions(at.field("status"));
}

fn is_share(text: &str) -> bool {
    text.strip_suffix('%').is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

/// Very high values, and names with the prefix of the system's own classes, are reserved for the system.
fn reserved_priority(class: At) {
    const PREFIX: &str = "system-";
    const KNOWN: [(&str, i64); 2] =
        [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
    const OWN_MAX: i64 = 1_000_000_000;
    let (name, value) = (class.text("metadata.name"), class.int("value").unwrap_or_default());
    if !name.starts_with(PREFIX) {
        if value > OWN_MAX {
            class.field("value").forbidden(format!("maximum allowed value of a user defined priority is {OWN_MAX}"));
        }
        return;
    }
    let why = match KNOWN.iter().find(|(known, _)| *known == name) {
        None => format!("{name} is not a known system priority class"),
        Some((_, wanted)) if *wanted != value => format!("value of {name} PriorityClass must be {wanted}"),
        Some(_) if class.is_true("globalDefault") => format!("globalDefault of {name} PriorityClass must be false"),
        Some(_) => return,
    };
    let why = format!("priority class names with '{PREFIX}' prefix are reserved for system use only. error: {why}");
    class.field("metadata.name").forbidden(why);
}

/// The value of a PriorityClass is immutable.
pub fn validate_priority_class(at: At) {
    let (value, policy) = (at.field("value"), at.field("preemptionPolicy"));
    match value.old {
        Some(old) if old != value.value => value.forbidden("may not be changed in an update."),
        Some(_) => {}
        None => {
            reserved_priority(at);
            policy.require_one_of(&["PreemptLowerPriority", "Never"]);
        }
    }
}

/// Parameters in a namespace must name it; cluster-scoped parameters must not name one.
pub fn validate_ingress_class(at: At) {
    let Some(parameters) = at.field_if_given("spec.parameters") else { return };
    parameters.field("name").check_text(names::path_segment);
    let namespace = parameters.field("namespace");
    match (parameters.text("scope"), namespace.is_given()) {
        ("Namespace", false) => namespace.required("`parameters.scope` is set to 'Namespace'"),
        ("Namespace", true) => namespace.check_text(names::dns1123_label),
        ("Cluster", true) => namespace.forbidden("`parameters.scope` is set to 'Cluster'"),
        _ => {}
    }
}

/// Addresses must be of the address type of the slice. Names of ports and names in hints must be unique.
pub fn validate_slice(at: At) {
    if at.field("endpoints").old.is_none_or(|old| old != at.field("endpoints").value) {
        endpoints(at);
    }
    let mut known = HashSet::new();
    at.items_of("ports").for_each(|port| port.field_or_empty("name").unique(&mut known));
}

/// If there are too many endpoints, they are not checked one by one.
fn endpoints(slice: At) {
    const ENDPOINTS_MAX: usize = 1000;
    const ADDRESSES_MAX: usize = 100;
    if !slice.field("endpoints").max_items(ENDPOINTS_MAX) {
        return;
    }
    for endpoint in slice.items_of("endpoints") {
        let addresses = endpoint.field("addresses");
        addresses.max_items(ADDRESSES_MAX);
        addresses.items().for_each(|address| endpoint_address(slice.text("addressType"), address, addresses));
        hints(endpoint.field("hints"));
    }
}

/// Validates the zones and Nodes that should use an endpoint. Too many zones hide the errors of Nodes.
fn hints(at: At) {
    const HINTS_MAX: usize = 8;
    for (list, problems) in [("forZones", names::label_value as fn(&str) -> _), ("forNodes", names::dns1123_subdomain)]
    {
        if !at.field(list).max_items(HINTS_MAX) {
            return;
        }
        let mut known = HashSet::new();
        for hint in at.items_of(list) {
            hint.field_or_empty("name").unique(&mut known);
            hint.field("name").check_text(problems);
        }
    }
}

/// Validates an address against the address type. Errors about its IP family have the path of the list.
fn endpoint_address(kind: &str, at: At, all: At) {
    let (before, address) = (at.count(), at.as_text());
    match kind {
        "FQDN" => domain(at),
        "IPv4" | "IPv6" => {
            match kind {
                "IPv4" => rule_checks::ip(at),
                _ => at.check_text(rule_checks::address_problems),
            }
            if at.count() > before {
                return;
            }
            let is_ipv6 = address.parse().is_ok_and(|address: std::net::IpAddr| address.to_canonical().is_ipv6());
            if is_ipv6 != (kind == "IPv6") {
                all.shown_as_text(address).invalid(format!("must be an {kind} address"));
            }
            ip::endpoint(at);
        }
        _ => {}
    }
}

/// A host name must be a domain of at least two labels.
fn domain(at: At) {
    if at.as_text().is_empty() {
        return at.required("");
    }
    let name = at.as_text().strip_suffix('.').unwrap_or(at.as_text());
    let problems = names::dns1123_subdomain(name);
    if !problems.is_empty() {
        at.shown_as_text(name).invalid(problems.join(","));
    } else if !name.contains('.') {
        at.shown_as_text(name).invalid("should be a domain with at least two segments separated by dots");
    } else if let Some((label, problems)) =
        name.split('.').map(|label| (label, names::dns1123_label(label))).find(|(_, problems)| !problems.is_empty())
    {
        at.shown_as_text(label).invalid(problems.join(","));
    }
}

/// Warns about the deprecated address type and about addresses that are not in canonical form.
pub fn slice_warnings(slice: At) {
    const MANAGERS: [&str; 2] = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if !slice.is_update() && slice.text("addressType") == "FQDN" {
        slice.warn_text("spec.addressType: FQDN endpoints are deprecated");
    }
    let labels = slice.field("metadata.labels");
    if !MANAGERS.contains(&labels.entry("endpointslice.kubernetes.io/managed-by").as_text()) {
        slice.items_of("endpoints").for_each(|endpoint| endpoint.items_of("addresses").for_each(ip::warn_address));
    }
}

/// By default, a policy applies to incoming traffic, and also to outgoing traffic if it has egress rules.
pub fn default_network_policy(policy: &mut Value) {
    let types = policy.items_at(&["spec", "policyTypes"]);
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
