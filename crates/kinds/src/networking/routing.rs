//! Ingresses, NetworkPolicies, disruption budgets and PriorityClasses: the rules that involve several fields.

use machinery::field::FieldPath;
use machinery::{Value, json, names};

use crate::ip::parse_network;
use crate::rule_checks::{self, port_name_problems};
use resource::builtin::checks::selector_operators;
use schema::at::{At, CheckStage};

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
        given.invalid_if(!is_absolute, ABSOLUTE);
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
}

fn port_range(at: At) {
    let Some(end) = at.field_if_given("endPort") else { return };
    match at.field("port").value {
        Value::Null => end.invalid("may not be specified when `port` is not specified"),
        Value::String(_) => {
            end.in_stage(CheckStage::Across).invalid("may not be specified when `port` is non-numeric");
        }
        start => {
            end.invalid_if(end.value.as_int() < start.as_int(), "must be greater than or equal to `port`");
            end.within(1..=65535);
        }
    }
}

/// The exceptions of an IP block must be ranges within it. They are not checked if the block itself is invalid.
fn exceptions(block: At) {
    let Some(all) = parse_network(block.text("cidr")) else { return };
    for exception in block.items_of("except") {
        rule_checks::cidr(exception);
        let Some(part) = parse_network(exception.as_text()) else { continue };
        exception.invalid_if(!all.holds(part.address) || all.bits >= part.bits, "must be a strict subset of `cidr`");
    }
}

fn peer(at: At) {
    ["podSelector", "namespaceSelector"].iter().for_each(|name| selector_operators(at.field(name)));
    exceptions(at.field("ipBlock"));
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
    ranges.required_if(given.is_empty(), "at least one CIDR required");
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
        let canonical = parse_network(given).map(|cidr| cidr.to_string()).filter(|canonical| canonical != given);
        if let Some(canonical) = canonical.filter(|_| range.count() == before) {
            range.invalid(format!("must be in canonical form ({canonical:?})"));
        }
    }
    let families: Vec<_> = ranges.items().map(|at| Some(parse_network(at.as_text())?.address.is_ipv4())).collect();
    if let [Some(one), Some(other)] = families[..]
        && one == other
    {
        ranges.invalid("may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64");
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
