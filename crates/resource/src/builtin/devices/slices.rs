//! ResourceSlices: the devices of a pool, and the Nodes that can access them.

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, names};

use super::super::checks::{duplicates, entries, invalid_each, is_oversized, is_set, items, list, named, text};
use super::super::podspec;
use super::capacity;
use super::fields::{self, Errors};

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

pub fn validate_slice(slice: &Value, old: Option<&Value>, release: Release) -> Vec<FieldError> {
    let (path, spec) = (FieldPath::new("spec"), slice.get("spec").unwrap_or(&Value::Null));
    let mut errors = vec![];
    fields::driver(text(spec, "driver"), &path.child("driver"), &mut errors);
    pool(spec.get("pool").unwrap_or(&Value::Null), &path.child("pool"), &mut errors);
    if let Some(old) = old {
        unchanged(spec, old.get("spec").unwrap_or(&Value::Null), &path, &mut errors);
    }
    nodes(spec, &path, &mut errors);
    if is_set(spec, "sharedCounters") && is_set(spec, "devices") {
        let why = "only one of `sharedCounters` or `devices` is allowed";
        errors.push(FieldError::invalid(&path, &Value::from(""), why));
    }
    let before = old.and_then(|old| old.at(&["spec", "devices"])?.as_array()).unwrap_or_default();
    devices(spec, before, &path, release, &mut errors);
    if !is_oversized(spec, "sharedCounters", COUNTER_SETS_MAX, &path, &mut errors) {
        let all = || items(spec, "sharedCounters", &path);
        all().for_each(|(path, set)| counters(set, "name", COUNTERS_MAX, &path, &mut errors));
        duplicates(all().map(|(path, set)| (path, text(set, "name"))), &mut errors);
    }
    errors
}

/// Warns about driver names with capital letters.
pub fn slice_warnings(slice: &Value, _old: Option<&Value>, _release: Release) -> Vec<String> {
    let driver = slice.str_at(&["spec", "driver"]);
    let why = format!("spec.driver: driver names should be lowercase; {driver:?} contains uppercase characters");
    if driver == driver.to_lowercase() { vec![] } else { vec![why] }
}

fn pool(pool: &Value, path: &FieldPath, errors: &mut Errors) {
    fields::pool(text(pool, "name"), &path.child("name"), errors);
    for (name, least, why) in [
        ("resourceSliceCount", 1, "must be greater than zero"),
        ("generation", 0, "must be greater than or equal to zero"),
    ] {
        let number = pool.get(name).and_then(Value::as_int).unwrap_or_default();
        if number < least {
            errors.push(FieldError::invalid(&path.child(name), &Value::Int(number), why));
        }
    }
}

fn unchanged(spec: &Value, old: &Value, path: &FieldPath, errors: &mut Errors) {
    for name in [&["pool", "name"][..], &["driver"], &["nodeName"]] {
        if spec.at(name) != old.at(name) {
            let path = name.iter().fold(path.clone(), |path, name| path.child(name));
            let shown = spec.at(name).cloned().unwrap_or_default();
            let error = FieldError::invalid(&path, &shown, "field is immutable");
            // the Node's name is a pointer in Go
            errors.push(if *name == ["nodeName"] { named(error, &shown) } else { error });
        }
    }
}

/// Validates the name of a Node.
fn node_name(name: &str, path: &FieldPath, why: &str, errors: &mut Errors) {
    match name {
        "" => errors.push(FieldError::invalid(path, &Value::from(""), why)),
        _ => invalid_each(path, name, names::dns1123_subdomain(name), errors),
    }
}

/// The fields of a choice that are set. Reports flags that are false, since a flag must be true or absent.
fn chosen(object: &Value, names: &[&'static str], path: &FieldPath, errors: &mut Errors) -> Vec<&'static str> {
    let mut found = vec![];
    for name in names {
        match object.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::Bool(false)) => {
                let why = "must be either unset or set to true";
                errors.push(FieldError::invalid(&path.child(name), &Value::Bool(false), why));
            }
            Some(Value::String(text)) if text.is_empty() => {}
            Some(_) => found.push(*name),
        }
    }
    found
}

fn shown(names: &[&str]) -> Value {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    Value::from(format!("{{{}}}", names.join(", ")))
}

/// A slice must name its Nodes in exactly one way.
fn nodes(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    const WAYS: [&str; 4] = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];
    const ONE: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    if is_set(spec, "nodeName") {
        let why = "must be either unset or set to a non-empty string";
        node_name(text(spec, "nodeName"), &path.child("nodeName"), why, errors);
    }
    if let Some(selector) = spec.get("nodeSelector").filter(|selector| !selector.is_null()) {
        let path = path.child("nodeSelector");
        crate::builtin::at::at_path(selector, &path, errors, podspec::node_selector);
        let terms = list(selector, "nodeSelectorTerms");
        if terms.len() != 1 {
            let shown = |term| machinery::types::internal_json(term, "core.NodeSelectorTerm", false);
            let shown = match selector.get("nodeSelectorTerms").filter(|terms| !terms.is_null()) {
                None => "null".to_owned(),
                Some(_) => format!("[{}]", terms.iter().map(shown).collect::<Vec<_>>().join(",")),
            };
            let why = "must have exactly one node selector term";
            let error = FieldError::invalid(&path.child("nodeSelectorTerms"), &Value::Null, why);
            errors.push(FieldError { value: shown, ..error });
        }
    }
    match chosen(spec, &WAYS, path, errors)[..] {
        [] => errors.push(FieldError::required(path, ONE)),
        [_] => {}
        ref several => {
            errors.push(FieldError::invalid(path, &shown(several), format!("{ONE}, but multiple fields are set")));
        }
    }
}

fn devices(spec: &Value, before: &[Value], path: &FieldPath, release: Release, errors: &mut Errors) {
    let is_list = |value: &Value| LISTS.iter().any(|name| is_set(value, name));
    let has_lists = |device: &Value| entries(device, &["attributes"]).any(|(_, value)| is_list(value));
    let is_advanced = |device: &Value| {
        !list(device, "taints").is_empty() || !list(device, "consumesCounters").is_empty() || has_lists(device)
    };
    let most = if list(spec, "devices").iter().any(is_advanced) { ADVANCED_DEVICES_MAX } else { DEVICES_MAX };
    if is_oversized(spec, "devices", most, path, errors) {
        return;
    }
    let is_per_device = spec.get("perDeviceNodeSelection").and_then(Value::as_bool).unwrap_or_default();
    for (path, device) in items(spec, "devices", path) {
        let old = before.iter().find(|old| text(old, "name") == text(device, "name"));
        described(device, old, &path, release, errors);
        if old.is_none_or(|old| old.get("taints") != device.get("taints"))
            && !is_oversized(device, "taints", TAINTS_MAX, &path, errors)
        {
            items(device, "taints", &path).for_each(|(path, taint)| fields::taint(taint, None, &path, errors));
        }
        if !is_oversized(device, "consumesCounters", CONSUMPTIONS_MAX, &path, errors) {
            let all = || items(device, "consumesCounters", &path);
            all().for_each(|(path, consumed)| counters(consumed, "counterSet", COUNTERS_MAX, &path, errors));
            duplicates(all().map(|(path, consumed)| (path, text(consumed, "counterSet"))), errors);
        }
        device_nodes(device, is_per_device, &path, errors);
        fields::binding_conditions(device, &path, errors);
    }
    duplicates(items(spec, "devices", path).map(|(path, device)| (path, text(device, "name"))), errors);
}

fn device_nodes(device: &Value, is_per_device: bool, path: &FieldPath, errors: &mut Errors) {
    const WAYS: [&str; 3] = ["nodeName", "nodeSelector", "allNodes"];
    const ONE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    if !is_per_device {
        if WAYS.iter().any(|name| is_set(device, name)) {
            errors.push(FieldError::invalid(path, &Value::Null, "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"));
        }
        return;
    }
    if is_set(device, "nodeName") {
        node_name(text(device, "nodeName"), &path.child("nodeName"), "must not be empty", errors);
    }
    if let Some(selector) = device.get("nodeSelector").filter(|selector| !selector.is_null()) {
        crate::builtin::at::at_path(selector, &path.child("nodeSelector"), errors, podspec::node_selector);
    }
    match chosen(device, &WAYS, path, errors)[..] {
        [] => errors.push(FieldError::required(path, ONE)),
        [_] => {}
        ref several => errors.push(FieldError::invalid(path, &shown(several), ONE)),
    }
}

/// Validates a set of counters, or what a device consumes of one.
fn counters(set: &Value, name: &str, most: usize, path: &FieldPath, errors: &mut Errors) {
    let (set_name, name_path, inner) = (text(set, name), path.child(name), path.child("counters"));
    match set_name {
        "" => errors.push(FieldError::required(&name_path, "")),
        _ => fields::label(set_name, &name_path, errors),
    }
    match entries(set, &["counters"]).count() {
        0 => errors.push(FieldError::required(&inner, "")),
        count if count > most => errors.push(FieldError::too_many(&inner, count, most)),
        _ => entries(set, &["counters"]).for_each(|(key, _)| fields::label(key, &inner, errors)),
    }
}

/// Validates the attributes and capacities of a device. Unchanged capacities are not validated again.
fn described(device: &Value, old: Option<&Value>, path: &FieldPath, release: Release, errors: &mut Errors) {
    fields::label(text(device, "name"), &path.child("name"), errors);
    let count = entries(device, &["attributes"]).count() + entries(device, &["capacity"]).count();
    let values = |(_, value): (_, &Value)| LISTS.iter().map(|name| list(value, name).len()).sum::<usize>().max(1);
    let values: usize = entries(device, &["attributes"]).map(values).sum();
    for (count, most, what) in
        [(count, ENTRIES_MAX, "attributes and capacities"), (values, VALUES_MAX, "attribute values")]
    {
        if count > most {
            let why = format!("the total number of {what} must not exceed {most}");
            errors.push(FieldError::invalid(path, &Value::Int(count as i64), why));
        }
    }
    let inner = path.child("attributes");
    for (name, value) in entries(device, &["attributes"]) {
        fields::qualified_name(name, &inner, errors);
        attribute(value, &inner.key(&abbreviated(name)), errors);
    }
    if old.is_some_and(|old| old.get("capacity") == device.get("capacity")) {
        return;
    }
    let is_shared = device.get("allowMultipleAllocations").and_then(Value::as_bool).unwrap_or_default();
    let inner = path.child("capacity");
    for (name, value) in entries(device, &["capacity"]) {
        fields::qualified_name(name, &inner, errors);
        let Some(policy) = value.get("requestPolicy").filter(|policy| !policy.is_null()) else { continue };
        let path = inner.key(&abbreviated(name)).child("requestPolicy");
        match is_shared {
            true => capacity::request_policy(value.get("value"), policy, &path, release, errors),
            false => errors.push(FieldError::forbidden(&path, "allowMultipleAllocations must be true")),
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

fn attribute(value: &Value, path: &FieldPath, errors: &mut Errors) {
    const SINGLE: [&str; 4] = ["bool", "int", "string", "version"];
    if SINGLE.into_iter().chain(LISTS).filter(|name| is_set(value, name)).count() != 1 {
        errors.push(FieldError::invalid(path, &Value::from(""), "exactly one value must be specified"));
    }
    let mut checked = |name: &str, text: &str, path: &FieldPath| {
        if name.starts_with("version") && !is_semantic_version(text) {
            let why = "must be a string compatible with semver.org spec 2.0.0";
            errors.push(FieldError::invalid(path, &Value::from(text), why));
        }
        if text.len() > VALUE_BYTES_MAX {
            errors.push(FieldError::too_long(path, VALUE_BYTES_MAX));
        }
    };
    for name in ["string", "version"].into_iter().filter(|name| is_set(value, name)) {
        checked(name, text(value, name), &path.child(name));
    }
    for name in ["strings", "versions"] {
        items(value, name, path).for_each(|(path, item)| checked(name, item.as_str().unwrap_or_default(), &path));
    }
    for name in LISTS.into_iter().filter(|name| is_set(value, name) && list(value, name).is_empty()) {
        let empty = Value::Array(vec![]);
        errors.push(FieldError::invalid(&path.child(name), &empty, "must not be empty if specified"));
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
