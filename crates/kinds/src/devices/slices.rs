//! ResourceSlices: the devices of a pool, and the Nodes that can access them.

use std::collections::HashSet;

use machinery::{Map, Value, names};

use crate::core::podspec;
use crate::devices::{capacity, fields};
use schema::at::At;

const DEVICES_MAX: usize = 128;
/// The maximum number of devices in a slice in which a device has taints, counters or lists as attributes.
const ADVANCED_DEVICES_MAX: usize = 64;
const COUNTER_SETS_MAX: usize = 8;
const COUNTERS_MAX: usize = 32;
const CONSUMPTIONS_MAX: usize = 2;
const TAINTS_MAX: usize = 16;
/// The maximum number of attributes and capacities of a device.
const ENTRIES_MAX: usize = 32;
const VALUES_MAX: usize = 48;
const VALUE_BYTES_MAX: usize = 64;
/// Longer keys are abbreviated in the paths of errors. This is the size of a domain, a slash and a name.
const KEY_BYTES_MAX: usize = 63 + 1 + 32;
const LISTS: [&str; 4] = ["bools", "ints", "strings", "versions"];

pub fn validate_slice(at: At) {
    let spec = at.field("spec");
    fields::driver(spec.field("driver"));
    fields::pool(spec.field("pool.name"));
    spec.field("pool.name").immutable();
    spec.field("driver").immutable();
    // the Node's name is a pointer in Go
    spec.field("nodeName").shown_as_json().immutable();
    nodes(spec);
    devices(spec);
    let counter_sets = spec.field("sharedCounters");
    if counter_sets.max_items(COUNTER_SETS_MAX) {
        counter_sets.items().for_each(|set| counters(set, "name"));
        unique(counter_sets, "name");
    }
}

/// Warns about driver names with capital letters.
pub fn slice_warnings(slice: At) {
    let driver = slice.field("spec.driver");
    let name = driver.as_text();
    if name != name.to_lowercase() {
        driver.warn(format!("driver names should be lowercase; {name:?} contains uppercase characters"));
    }
}

/// Reports items of a list whose `field` has the text of an earlier one.
fn unique(list: At, field: &'static str) {
    let mut known = HashSet::new();
    list.items().for_each(|item| item.with_value(item.field_or_empty(field).value).unique(&mut known));
}

/// Validates the name of a Node, if it is set.
fn node_name(at: At, why: &str) {
    match at.as_text() {
        _ if !at.is_given() => {}
        "" => at.invalid(why),
        _ => at.check_text(names::dns1123_subdomain),
    }
}

/// The fields of a choice that are set. Reports flags that are false, since a flag must be true or absent.
fn chosen(object: At, names: &[&'static str]) -> Vec<&'static str> {
    let mut found = vec![];
    for name in names {
        let at = object.field(name);
        match at.value {
            Value::Null => {}
            Value::Bool(false) => at.invalid("must be either unset or set to true"),
            Value::String(text) if text.is_empty() => {}
            _ => found.push(*name),
        }
    }
    found
}

fn shown(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    format!("{{{}}}", names.join(", "))
}

/// A slice must name its Nodes in exactly one way.
fn nodes(spec: At) {
    const WAYS: [&str; 4] = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];
    const ONE: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    node_name(spec.field("nodeName"), "must be either unset or set to a non-empty string");
    if let Some(selector) = spec.field_if_given("nodeSelector") {
        podspec::node_selector(selector);
        let terms = selector.field("nodeSelectorTerms");
        if terms.items().len() != 1 {
            let shown = terms.printed_items("core.NodeSelectorTerm");
            terms.shown_verbatim(&shown).invalid("must have exactly one node selector term");
        }
    }
    match chosen(spec, &WAYS)[..] {
        [] => spec.required(ONE),
        [_] => {}
        ref several => spec.shown_as_text(&shown(several)).invalid(format!("{ONE}, but multiple fields are set")),
    }
}

fn devices(spec: At) {
    let is_list = |value: At| LISTS.iter().any(|name| value.has(name));
    let is_advanced = |device: At| {
        !device.list("taints").is_empty()
            || !device.list("consumesCounters").is_empty()
            || device.entries_of("attributes").any(|(_, value)| is_list(value))
    };
    let devices = spec.field("devices");
    let most = if devices.items().any(is_advanced) { ADVANCED_DEVICES_MAX } else { DEVICES_MAX };
    if !devices.max_items(most) {
        return;
    }
    let before = devices.old_items();
    for device in devices.items() {
        let old = before.iter().find(|old| old.str_at(&["name"]) == device.text("name"));
        let device = device.with_old(old);
        described(device);
        let (taints, consumed) = (device.field("taints"), device.field("consumesCounters"));
        if taints.old != Some(taints.value) && taints.max_items(TAINTS_MAX) {
            taints.items().for_each(fields::taint);
        }
        if consumed.max_items(CONSUMPTIONS_MAX) {
            consumed.items().for_each(|set| counters(set, "counterSet"));
            unique(consumed, "counterSet");
        }
        if spec.is_true("perDeviceNodeSelection") {
            device_nodes(device)
        } else {
            without_nodes(device)
        }
        fields::binding_conditions(device);
    }
    unique(devices, "name");
}

const DEVICE_WAYS: [&str; 3] = ["nodeName", "nodeSelector", "allNodes"];

fn without_nodes(device: At) {
    if DEVICE_WAYS.iter().any(|name| device.has(name)) {
        device.shown_verbatim("null").invalid("`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec");
    }
}

fn device_nodes(device: At) {
    const ONE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    node_name(device.field("nodeName"), "must not be empty");
    podspec::node_selector(device.field("nodeSelector"));
    match chosen(device, &DEVICE_WAYS)[..] {
        [] => device.required(ONE),
        [_] => {}
        ref several => device.shown_as_text(&shown(several)).invalid(ONE),
    }
}

/// Validates a set of counters, or what a device consumes of one.
fn counters(set: At, name: &str) {
    let inner = set.field("counters");
    set.field(name).check_required_text(names::dns1123_label);
    match set.entries_of("counters").count() {
        0 => inner.required(""),
        count if count > COUNTERS_MAX => inner.too_many(count, COUNTERS_MAX),
        _ => set
            .entries_of("counters")
            .for_each(|(key, _)| inner.shown_as_text(key).invalid_each(names::dns1123_label(key))),
    }
}

/// Validates the attributes and capacities of a device. Unchanged capacities are not validated again.
fn described(device: At) {
    fields::label(device.field("name"));
    let (attributes, capacities) = (device.field("attributes"), device.field("capacity"));
    let count = |map: At| map.value.as_object().map_or(0, Map::len);
    let values = |(_, value): (_, At)| LISTS.iter().map(|name| value.list(name).len()).sum::<usize>().max(1);
    let of_attributes: usize = device.entries_of("attributes").map(values).sum();
    for (count, most, what) in [
        (count(attributes) + count(capacities), ENTRIES_MAX, "attributes and capacities"),
        (of_attributes, VALUES_MAX, "attribute values"),
    ] {
        if count > most {
            let why = format!("the total number of {what} must not exceed {most}");
            device.shown_verbatim(&count.to_string()).invalid(why);
        }
    }
    for (name, value) in device.entries_of("attributes") {
        fields::qualified_name(name, attributes);
        attribute(attributes.entry(&abbreviated(name)).with_value(value.value));
    }
    if capacities.old == Some(capacities.value) {
        return;
    }
    for (name, value) in device.entries_of("capacity") {
        fields::qualified_name(name, capacities);
        let key = abbreviated(name);
        let place = capacities.entry(&key);
        let capacity = place.with_value(value.value);
        match device.is_true("allowMultipleAllocations") {
            _ if !capacity.has("requestPolicy") => {}
            true => capacity::request_policy(capacity),
            false => capacity.field("requestPolicy").forbidden("allowMultipleAllocations must be true"),
        }
    }
}

/// A key as paths show it: long keys are shortened in the middle.
fn abbreviated(key: &str) -> String {
    if key.len() <= KEY_BYTES_MAX {
        return key.to_owned();
    }
    let kept = KEY_BYTES_MAX - "...".len();
    let (head, tail) = (&key.as_bytes()[..kept.div_ceil(2)], &key.as_bytes()[key.len() - kept / 2..]);
    format!("{}...{}", String::from_utf8_lossy(head), String::from_utf8_lossy(tail))
}

fn attribute(at: At) {
    const SINGLE: [&str; 4] = ["bool", "int", "string", "version"];
    if SINGLE.into_iter().chain(LISTS).filter(|name| at.has(name)).count() != 1 {
        at.shown_as_text("").invalid("exactly one value must be specified");
    }
    let check = |value: At, name: &str| {
        if name.starts_with("version") && !is_semantic_version(value.as_text()) {
            value.invalid("must be a string compatible with semver.org spec 2.0.0");
        }
        value.max_bytes(VALUE_BYTES_MAX);
    };
    for name in ["string", "version"].into_iter().filter(|name| at.has(name)) {
        check(at.field(name), name);
    }
    for name in ["strings", "versions"] {
        at.items_of(name).for_each(|item| check(item, name));
    }
    for name in LISTS.into_iter().filter(|name| at.has(name) && at.list(name).is_empty()) {
        at.field(name).shown_verbatim("[]").invalid("must not be empty if specified");
    }
}

/// A version of <https://semver.org>.
fn is_semantic_version(text: &str) -> bool {
    let is_number = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'))
    };
    let is_word =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let (rest, build) = text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
    let (numbers, pre) = rest.split_once('-').map_or((rest, None), |(numbers, pre)| (numbers, Some(pre)));
    let is_all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.split('.').count() == 3
        && numbers.split('.').all(is_number)
        && pre.is_none_or(|pre| pre.split('.').all(|part| is_word(&part) && (!is_all_digits(part) || is_number(part))))
        && build.is_none_or(|build| build.split('.').all(|part| is_word(&part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semantic_versions() {
        for text in ["1.2.3", "0.0.0-alpha.1", "1.0.0+build.01", "1.0.0--", "1.0.0-0a.b+c-d"] {
            assert!(is_semantic_version(text), "{text}");
        }
        for text in ["", "1", "1.2", "01.2.3", "1.2.3-01", "1.2.3-", "1.2.3+", "1.2.3-a..b", "v1.2.3", "1.2.3+a+b"] {
            assert!(!is_semantic_version(text), "{text}");
        }
    }

    #[test]
    fn long_keys_are_abbreviated_in_the_middle() {
        assert_eq!(abbreviated(&"a".repeat(96)).len(), 96);
        let long = format!("{}{}", "a".repeat(60), "b".repeat(60));
        assert_eq!(abbreviated(&long), format!("{}...{}", "a".repeat(47), "b".repeat(46)));
    }
}
