//! Nodes: their taints, and the fields that updates may change.

use std::collections::HashSet;

use std::net::IpAddr;

use machinery::field::{FieldError, FieldPath};
use machinery::quantity::Quantity;
use machinery::{Map, Value, names};

use schema::at::At;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub fn taints(at: At) {
    // a quirk of upstream: errors say `metadata.taints`, although taints are in the spec
    let path = FieldPath::new("metadata.taints");
    let (at, mut known) = (at.with_path(&path), HashSet::new());
    for taint in at.items() {
        taint.field("key").check_text(names::qualified_name);
        taint.field("value").check_text(names::label_value);
        effect(taint.field("effect"));
        if !known.insert((taint.text("key"), taint.text("effect"))) {
            taint.shown_as_go("core.Taint").duplicate_because("taints must be unique by key and effect pair");
        }
    }
}

fn effect(at: At) {
    at.require_one_of(&EFFECTS);
}

pub fn validate(at: At) {
    families(at.field("spec.podCIDRs"));
}

/// Defaults: `podCIDR` and `podCIDRs` complete each other, and `allocatable` defaults to `capacity`.
pub fn default(node: &mut Value) {
    let first = node.at(&["spec", "podCIDRs"]).and_then(Value::as_array).and_then(<[Value]>::first).cloned();
    match (first, node.str_at(&["spec", "podCIDR"]).to_owned()) {
        (Some(first), one) if one.is_empty() => node.set_at(&["spec", "podCIDR"], first),
        (first, one) if !one.is_empty() && first.as_ref().and_then(Value::as_str) != Some(&one) => {
            node.set_at(&["spec", "podCIDRs"], Value::Array(vec![Value::from(one)]));
        }
        _ => {}
    }
    let Some(status) = node.get_mut("status") else { return };
    if let Some(capacity) = status.get("capacity").filter(|capacity| !capacity.is_null()).cloned()
        && status.get("allocatable").and_then(Value::as_object).is_none_or(machinery::Map::is_empty)
    {
        status.set_at(&["allocatable"], capacity);
    }
}

/// If there are two networks, they must be of different IP families.
fn families(ranges: At) {
    if ranges.items().len() < 2 {
        return;
    }
    let family = |range: At| {
        let (address, _) = range.as_text().split_once('/')?;
        address.parse::<IpAddr>().ok().map(|address| address.is_ipv6())
    };
    let families: Vec<Option<bool>> = ranges.items().map(family).collect();
    if let Some(i) = families.iter().position(Option::is_none) {
        let range = ranges.item(i).as_text();
        let why = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{i}]: <nil> (invalid CIDR address: {range})"
        );
        ranges.push(FieldError::internal(&ranges.path(), why));
    }
    if !matches!(families[..], [Some(one), Some(other)] if one != other) {
        ranges.invalid("may specify no more than one CIDR for each IP family");
    }
}

pub fn warnings(at: At) {
    let fields = [
        (
            "spec.configSource",
            "the Dynamic Kubelet Config feature was removed in 1.24, and the field is unused by Kubernetes",
        ),
        ("spec.externalID", "this field is deprecated, and is unused by Kubernetes"),
    ];
    for (name, why) in fields.into_iter().filter(|(name, _)| at.has(name) && *at.field(name).value != Value::from("")) {
        at.field(name).warn(why);
    }
}

/// Validates the addresses, the amounts and the features of a Node.
pub fn validate_status(at: At) {
    let (status, mut known) = (at.field("status"), HashSet::new());
    for address in status.items_of("addresses").filter(|address| !known.insert(address.value.to_json())) {
        address.shown_as_go("core.NodeAddress").duplicate();
    }
    for kind in ["capacity", "allocatable"] {
        let amounts = status.field(kind);
        for name in amounts.value.as_object().into_iter().flat_map(Map::keys) {
            amount(name, amounts.field_with_dots(name));
        }
    }
    features(status.field("declaredFeatures"));
}

fn amount(name: &str, at: At) {
    let Ok(amount) = Quantity::of(at.value) else { return };
    if amount.signum() < 0 {
        at.shown_as_text(&amount.to_string()).invalid("must be greater than or equal to 0");
    }
    if name.contains('/') && !name.contains("kubernetes.io/") && !amount.is_whole() {
        at.shown_as_text(&amount.to_string()).invalid("must be an integer");
    }
}

fn features(at: At) {
    let mut last: Option<&str> = None;
    for feature in at.items() {
        let name = feature.as_text();
        if last == Some(name) {
            feature.duplicate();
        } else if last.is_some_and(|last| name < last) {
            feature.invalid("list must be sorted alphabetically");
        }
        let is_segment = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric());
        const BYTES_MAX: usize = 253;
        if name.len() > BYTES_MAX {
            feature.invalid(format!("invalid feature name {name:?}: must be no more than {BYTES_MAX} characters"));
        } else if !name.starts_with(|c: char| c.is_ascii_uppercase()) || !name.split('/').all(is_segment) {
            feature.invalid(format!(
                "invalid feature name {name:?}: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
            ));
        }
        last = Some(name);
    }
}
