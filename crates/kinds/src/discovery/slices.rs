//! EndpointSlices.

use std::collections::HashSet;

use machinery::{Map, Value, names};

use crate::ip::{self};
use crate::rule_checks::{self};
use schema::at::At;

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

/// Increments the generation if only the labels change. Changes of other fields are counted afterwards.
pub fn count_labels(object: &mut Value, old: Option<&Value>) {
    let Some(old) = old else { return };
    fn labels(object: &Value) -> Option<&Map> {
        object.at(&["metadata", "labels"]).and_then(Value::as_object).filter(|labels| !labels.is_empty())
    }
    if labels(object) != labels(old) && resource::builtin::is_same("discovery.v1.EndpointSlice", object, old) {
        let generation = old.int_at(&["metadata", "generation"]);
        object.set_at(&["metadata", "generation"], Value::Int(generation + 1));
    }
}
