//! The status of a ResourceClaim: the devices that were allocated, their consumers, and their state.

use std::collections::HashSet;
use std::net::IpAddr;

use machinery::Value;
use machinery::field::FieldPath;

use crate::core::podspec;
use crate::devices::claims::{self, RequestNames};
use crate::devices::fields::{self, Novelty};
use resource::builtin::checks::{conditions, go_struct, text};
use resource::builtin::formats::is_uuid;
use schema::at::At;

const RESERVED_FOR_MAX: usize = 256;
const RESULTS_MAX: usize = 32;
/// The maximum for the configurations of the class and those of the claim together.
const CONFIGURATIONS_MAX: usize = 64;
const CONDITIONS_MAX: usize = 8;
const DATA_BYTES_MAX: usize = 10 * 1024;
const INTERFACE_BYTES_MAX: usize = 256;
const HARDWARE_BYTES_MAX: usize = 128;
const ADDRESSES_MAX: usize = 16;

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
        results?.iter().position(|result| result.is_true_at(&["adminAccess"]))
    };
    let index = place(claim).filter(|_| place(old).is_none())?;
    Some(FieldPath::new(format!("status.allocation.devices.results[{index}].adminAccess")))
}

pub fn validate_status(at: At) {
    let status = at.field("status");
    let names = RequestNames::of(at.field("spec.devices"));
    let reserved = status.field("reservedFor");
    if reserved.max_items(RESERVED_FOR_MAX) {
        consumers(reserved);
    }
    let allocated = allocated(at.value);
    let mut seen = HashSet::new();
    status.items_of("devices").for_each(|device| device_state(device, &allocated));
    for device in status.items_of("devices").filter(|device| !seen.insert(device_id(device.value))) {
        device.shown_verbatim(&shown_id(device.value)).duplicate();
    }
    reservations(at, reserved);
    let allocation = status.field("allocation");
    match (allocation.is_given(), allocation.old.is_some_and(|old| !old.is_null())) {
        (true, true) => allocation.shown_as_go("resource.AllocationResult").immutable(),
        (true, false) => allocation_result(allocation, &names),
        _ => {}
    }
}

/// The names by which a device is identified, as Go prints them.
fn shown_id(device: &Value) -> String {
    let names = ["Driver", "Pool", "Device", "ShareID"].into_iter().zip(device_id(device));
    go_struct(&names.map(|(name, text)| (name, Value::from(text))).collect::<Vec<_>>())
}

fn consumers(list: At) {
    let mut known = HashSet::new();
    for consumer in list.items() {
        ["resource", "name", "uid"].iter().for_each(|name| consumer.field(name).require_text(""));
    }
    list.items().for_each(|consumer| consumer.with_value(consumer.field_or_empty("uid").value).unique(&mut known));
}

/// Only an allocated claim can be reserved. Once it is being deleted, no further consumers can reserve it.
fn reservations(claim: At, reserved: At) {
    if reserved.items().len() == 0 {
        return;
    }
    if !claim.has("status.allocation") {
        reserved.forbidden("may not be specified when `allocated` is not set");
    } else if claim.has("metadata.deletionTimestamp") {
        let before = reserved.old_items();
        let before: HashSet<String> = before.iter().map(Value::to_json).collect();
        if reserved.items().any(|consumer| !before.contains(&consumer.value.to_json())) {
            let why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            reserved.forbidden(why);
        }
    }
}

fn allocation_result(allocation: At, names: &RequestNames<'_>) {
    let (results, config) = (allocation.field("devices.results"), allocation.field("devices.config"));
    if results.max_items(RESULTS_MAX) {
        results.items().for_each(|result| device_result(result, names));
    }
    if config.max_items(CONFIGURATIONS_MAX) {
        for config in config.items() {
            let source = config.field("source");
            source.require_one_of(&["FromClaim", "FromClass"]);
            names.check_all(config);
            claims::configuration(config, Novelty::New);
        }
    }
    podspec::node_selector(allocation.field("nodeSelector"));
}

fn device_result(result: At, names: &RequestNames<'_>) {
    names.check(result.field("request"));
    identifiers(result);
    fields::binding_conditions(result);
    fields::tolerations(result);
    share(result);
}

fn identifiers(device: At) {
    fields::driver(device.field("driver"));
    fields::pool(device.field("pool"));
    fields::label(device.field("device"));
}

/// Validates the identifier of a share of a device.
fn share(device: At) {
    let share = device.field("shareID");
    if share.is_given() && !is_uuid(share.as_text()) {
        share.invalid("uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters");
    }
}

/// Validates what a driver reports about an allocated device.
fn device_state(device: At, allocated: &HashSet<DeviceId<'_>>) {
    identifiers(device);
    share(device);
    if !allocated.contains(&device_id(device.value)) {
        device.shown_verbatim(&shown_id(device.value)).invalid("must be an allocated device in the claim");
    }
    device.field("conditions").max_items(CONDITIONS_MAX);
    conditions(device);
    device.field_if_given("data").into_iter().for_each(|data| fields::raw_object(data, Some(DATA_BYTES_MAX)));
    device.field_if_given("networkData").into_iter().for_each(network_data);
}

fn network_data(network: At) {
    network.field("interfaceName").max_bytes(INTERFACE_BYTES_MAX);
    network.field("hardwareAddress").max_bytes(HARDWARE_BYTES_MAX);
    if network.field("ips").max_items(ADDRESSES_MAX) {
        let mut known = HashSet::new();
        network.items_of("ips").for_each(interface_address);
        network.items_of("ips").for_each(|address| address.unique(&mut known));
    }
}

/// An address of an interface must be in canonical CIDR form.
fn interface_address(at: At) {
    let parsed = at.as_text().split_once('/').and_then(|(address, bits)| {
        let address = sloppy_address(address)?;
        let is_decimal = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits: u8 = if is_decimal { bits.parse().ok()? } else { return None };
        (bits <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, bits))
    });
    let Some((address, bits)) = parsed else {
        return at.invalid("must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)");
    };
    let canonical = match address.to_canonical() {
        unmapped if unmapped.is_ipv4() && bits > 32 => format!("{unmapped}/{}", i16::from(bits) - 96),
        unmapped if unmapped.is_ipv4() => format!("{unmapped}/{bits}"),
        _ => format!("{address}/{bits}"),
    };
    if canonical != at.as_text() {
        at.invalid(format!("must be in canonical form ({canonical:?})"));
    }
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
    use machinery::Release;

    use super::*;
    use schema::at::errors_of;

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
            let errors = errors_of(&Value::from(text), None, Release::NEWEST, interface_address);
            let found = errors.first().map_or("", |error| error.detail.as_str());
            assert!(found.starts_with(want), "{text}");
        }
    }
}
