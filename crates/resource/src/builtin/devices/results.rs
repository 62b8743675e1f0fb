//! The status of a ResourceClaim: the devices that were allocated, their consumers, and their state.

use std::collections::HashSet;
use std::net::IpAddr;

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value};

use super::super::checks::{condition_errors, duplicates, invalid_internal, is_oversized, is_set, items, list, text};
use super::super::formats::is_uuid;
use super::super::podspec;
use super::claims::{self, RequestNames};
use super::fields::{self, Errors};

const RESERVED_FOR_MAX: usize = 256;
const RESULTS_MAX: usize = 32;
/// The maximum for the configurations of the class and those of the claim together.
const CONFIGURATIONS_MAX: usize = 64;
const CONDITIONS_MAX: usize = 8;
const DATA_BYTES_MAX: usize = 10 * 1024;
const INTERFACE_BYTES_MAX: usize = 256;
const HARDWARE_BYTES_MAX: usize = 128;
const ADDRESSES_MAX: usize = 16;
const SOURCES: [&str; 2] = ["FromClaim", "FromClass"];

/// Identifies a device or a share of one.
type DeviceId<'a> = [&'a str; 4];

fn device_id(device: &Value) -> DeviceId<'_> {
    ["driver", "pool", "device", "shareID"].map(|name| text(device, name))
}

fn allocated(claim: &Value) -> HashSet<DeviceId<'_>> {
    let results = claim.at(&["status", "allocation", "devices", "results"]).and_then(Value::as_array);
    results.unwrap_or_default().iter().map(device_id).collect()
}

/// Drops the reported state of devices that the write deallocates.
pub fn keep_allocated(claim: &mut Value, old: &Value) {
    let kept = allocated(claim);
    let gone: HashSet<DeviceId<'_>> = allocated(old).difference(&kept).copied().collect();
    let Some(devices) = claim.at(&["status", "devices"]).and_then(Value::as_array) else { return };
    let left: Vec<Value> = devices.iter().filter(|device| !gone.contains(&device_id(device))).cloned().collect();
    if left.is_empty() {
        drop(claim.remove_at(&["status", "devices"]));
    } else {
        claim.set_at(&["status", "devices"], Value::Array(left));
    }
}

/// The path of a new allocation that has admin access.
pub fn admin_results(claim: &Value, old: &Value) -> Option<FieldPath> {
    let place = |claim: &Value| {
        let results = claim.at(&["status", "allocation", "devices", "results"]).and_then(Value::as_array);
        results?.iter().position(|result| result.get("adminAccess") == Some(&Value::Bool(true)))
    };
    let index = place(claim).filter(|_| place(old).is_none())?;
    Some(FieldPath::new(format!("status.allocation.devices.results[{index}].adminAccess")))
}

pub fn validate_status(claim: &Value, old: &Value, release: Release) -> Vec<FieldError> {
    let (mut errors, path) = (vec![], FieldPath::new("status"));
    let status = claim.get("status").unwrap_or(&Value::Null);
    let names = RequestNames::of(claim.at(&["spec", "devices"]).unwrap_or(&Value::Null));
    if !is_oversized(status, "reservedFor", RESERVED_FOR_MAX, &path, &mut errors) {
        consumers(status, &path, &mut errors);
    }
    let allocated = allocated(claim);
    let mut seen = HashSet::new();
    for (path, device) in items(status, "devices", &path) {
        device_state(device, &allocated, &path, release, &mut errors);
    }
    for (path, device) in items(status, "devices", &path) {
        if !seen.insert(device_id(device)) {
            errors.push(shown_id(FieldError::duplicate(&path, &Value::Null), device));
        }
    }
    reservations(claim, old, status, &path, &mut errors);
    let allocation = |claim: &Value| claim.at(&["status", "allocation"]).filter(|found| !found.is_null()).cloned();
    let path = path.child("allocation");
    match (allocation(claim), allocation(old)) {
        (Some(new), Some(old)) if new != old => {
            errors.push(invalid_internal(&path, &new, "resource.AllocationResult", "field is immutable"));
        }
        (Some(new), None) => allocation_result(&new, &names, &path, &mut errors),
        _ => {}
    }
    errors
}

/// An error that shows the names by which a device is identified.
fn shown_id(error: FieldError, device: &Value) -> FieldError {
    let names = ["Driver", "Pool", "Device", "ShareID"].iter().zip(device_id(device));
    let names: Vec<String> = names.map(|(name, text)| format!("\"{name}\":{}", Value::from(text).to_json())).collect();
    FieldError { value: format!("{{{}}}", names.join(",")), ..error }
}

fn consumers(status: &Value, path: &FieldPath, errors: &mut Errors) {
    let all = || items(status, "reservedFor", path);
    for (path, consumer) in all() {
        for name in ["resource", "name", "uid"].into_iter().filter(|name| text(consumer, name).is_empty()) {
            errors.push(FieldError::required(&path.child(name), ""));
        }
    }
    duplicates(all().map(|(path, consumer)| (path, text(consumer, "uid"))), errors);
}

/// Only an allocated claim can be reserved. Once it is being deleted, no further consumers can reserve it.
fn reservations(claim: &Value, old: &Value, status: &Value, path: &FieldPath, errors: &mut Errors) {
    let reserved = list(status, "reservedFor");
    if reserved.is_empty() {
        return;
    }
    let path = path.child("reservedFor");
    if !is_set(status, "allocation") {
        errors.push(FieldError::forbidden(&path, "may not be specified when `allocated` is not set"));
    } else if claim.at(&["metadata", "deletionTimestamp"]).is_some() {
        let before = old.at(&["status", "reservedFor"]).and_then(Value::as_array).unwrap_or_default();
        let before: HashSet<String> = before.iter().map(Value::to_json).collect();
        if reserved.iter().any(|consumer| !before.contains(&consumer.to_json())) {
            let why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            errors.push(FieldError::forbidden(&path, why));
        }
    }
}

fn allocation_result(allocation: &Value, names: &RequestNames<'_>, path: &FieldPath, errors: &mut Errors) {
    let (devices, inner) = (allocation.get("devices").unwrap_or(&Value::Null), path.child("devices"));
    if !is_oversized(devices, "results", RESULTS_MAX, &inner, errors) {
        items(devices, "results", &inner).for_each(|(path, result)| device_result(result, names, &path, errors));
    }
    if !is_oversized(devices, "config", CONFIGURATIONS_MAX, &inner, errors) {
        for (path, config) in items(devices, "config", &inner) {
            match text(config, "source") {
                "" => errors.push(FieldError::required(&path.child("source"), "")),
                known if SOURCES.contains(&known) => {}
                other => errors.push(FieldError::not_supported(&path.child("source"), &Value::from(other), &SOURCES)),
            }
            names.check_all(config, &path, errors);
            claims::configuration(config, false, &path, errors);
        }
    }
    if let Some(selector) = allocation.get("nodeSelector").filter(|selector| !selector.is_null()) {
        crate::builtin::at::at_path(selector, &path.child("nodeSelector"), errors, podspec::node_selector);
    }
}

fn device_result(result: &Value, names: &RequestNames<'_>, path: &FieldPath, errors: &mut Errors) {
    names.check(text(result, "request"), &path.child("request"), errors);
    fields::driver(text(result, "driver"), &path.child("driver"), errors);
    fields::pool(text(result, "pool"), &path.child("pool"), errors);
    fields::label(text(result, "device"), &path.child("device"), errors);
    fields::binding_conditions(result, path, errors);
    fields::tolerations(result, path, errors);
    share(result, path, errors);
}

/// Validates the identifier of a share of a device.
fn share(device: &Value, path: &FieldPath, errors: &mut Errors) {
    if is_set(device, "shareID") && !is_uuid(text(device, "shareID")) {
        let why = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters";
        errors.push(FieldError::invalid(&path.child("shareID"), &Value::from(text(device, "shareID")), why));
    }
}

/// Validates what a driver reports about an allocated device.
fn device_state(
    device: &Value,
    allocated: &HashSet<DeviceId<'_>>,
    path: &FieldPath,
    release: Release,
    errors: &mut Errors,
) {
    fields::driver(text(device, "driver"), &path.child("driver"), errors);
    fields::pool(text(device, "pool"), &path.child("pool"), errors);
    fields::label(text(device, "device"), &path.child("device"), errors);
    share(device, path, errors);
    if !allocated.contains(&device_id(device)) {
        let why = "must be an allocated device in the claim";
        errors.push(shown_id(FieldError::invalid(path, &Value::Null, why), device));
    }
    let conditions = list(device, "conditions").len();
    if conditions > CONDITIONS_MAX {
        errors.push(FieldError::too_many(&path.child("conditions"), conditions, CONDITIONS_MAX));
    }
    errors.extend(condition_errors(device, path, release));
    if is_set(device, "data") {
        fields::raw_object(device.get("data"), Some(DATA_BYTES_MAX), &path.child("data"), errors);
    }
    if let Some(network) = device.get("networkData").filter(|network| !network.is_null()) {
        network_data(network, &path.child("networkData"), errors);
    }
}

fn network_data(network: &Value, path: &FieldPath, errors: &mut Errors) {
    for (name, most) in [("interfaceName", INTERFACE_BYTES_MAX), ("hardwareAddress", HARDWARE_BYTES_MAX)] {
        if text(network, name).len() > most {
            errors.push(FieldError::too_long(&path.child(name), most));
        }
    }
    if is_oversized(network, "ips", ADDRESSES_MAX, path, errors) {
        return;
    }
    let all = || items(network, "ips", path).map(|(path, address)| (path, address.as_str().unwrap_or_default()));
    for (path, address) in all() {
        errors.extend(interface_address_error(address, &path));
    }
    duplicates(all(), errors);
}

/// An address of an interface must be in canonical CIDR form.
fn interface_address_error(text: &str, path: &FieldPath) -> Option<FieldError> {
    const FORM: &str = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
    let invalid = |why: String| FieldError::invalid(path, &Value::from(text), why);
    let parsed = text.split_once('/').and_then(|(address, bits)| {
        let address = sloppy_address(address)?;
        let is_decimal = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits: u8 = if is_decimal { bits.parse().ok()? } else { return None };
        (bits <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, bits))
    });
    let Some((address, bits)) = parsed else { return Some(invalid(FORM.to_owned())) };
    let canonical = match address.to_canonical() {
        unmapped if unmapped.is_ipv4() && bits > 32 => format!("{unmapped}/{}", i16::from(bits) - 96),
        unmapped if unmapped.is_ipv4() => format!("{unmapped}/{bits}"),
        _ => format!("{address}/{bits}"),
    };
    (canonical != text).then(|| invalid(format!("must be in canonical form ({canonical:?})")))
}

/// Parses an address whose parts may have leading zeros.
fn sloppy_address(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse().ok();
    }
    let part = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    text.split('.').map(part).collect::<Vec<_>>().join(".").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_one_form() {
        let cases = [
            ("10.9.8.7/24", ""),
            ("2001:db8::1/64", ""),
            ("2001:DB8::1/64", "must be in canonical form (\"2001:db8::1/64\")"),
            ("::ffff:10.9.8.7/120", "must be in canonical form (\"10.9.8.7/24\")"),
            ("010.9.8.007/24", "must be in canonical form (\"10.9.8.7/24\")"),
            ("10.9.8.7", "must be a valid address in CIDR form"),
            ("10.9.8.7/33", "must be a valid address in CIDR form"),
            ("10.9.8.7/+4", "must be a valid address in CIDR form"),
        ];
        for (text, want) in cases {
            let found = interface_address_error(text, &FieldPath::new("ip")).map(|error| error.detail);
            assert!(found.unwrap_or_default().starts_with(want), "{text}");
        }
    }
}
