//! Tables of kinds without a stable version.

use machinery::{Value, jsonpath};

use super::super::columns::AGE;
use super::{BuiltInColumn, NONE, at, integer, text, text_column, text_or};

pub const LEASE_CANDIDATE: &[BuiltInColumn] = &[
    text_column("LeaseName", "The Lease that the candidate is for.", |o, _| text_or(o, &["spec", "leaseName"], "")),
    text_column("BinaryVersion", "", |o, _| text_or(o, &["spec", "binaryVersion"], "")),
    text_column("EmulationVersion", "", |o, _| text_or(o, &["spec", "emulationVersion"], "")),
    AGE,
];

pub const STORAGE_VERSION: &[BuiltInColumn] = &[
    text_column("CommonEncodingVersion", "The version in which all servers encode.", |o, _| {
        text_or(o, &["status", "commonEncodingVersion"], "<unset>")
    }),
    text_column("StorageVersions", "The version in which each server encodes.", |o, _| storage_versions(o)),
    AGE,
];

fn storage_versions(object: &Value) -> Value {
    const SHOWN: usize = 3;
    let servers = at(object, &["status", "storageVersions"]);
    let each = |server: &Value| format!("{}={}", text(server, "apiServerID"), text(server, "encodingVersion"));
    let shown = servers.iter().take(SHOWN).map(each).collect::<Vec<_>>().join(",");
    Value::from(match servers.len() {
        0 => NONE.to_owned(),
        count if count > SHOWN => format!("{shown} + {} more...", count - SHOWN),
        _ => shown,
    })
}

pub const POOL_REQUEST: &[BuiltInColumn] = &[
    text_column("Driver", "The driver whose pools are requested.", |o, _| text_or(o, &["spec", "driver"], "")),
    text_column("Total", "The devices of all pools.", |o, _| total(o, "totalDevices")),
    text_column("Available", "The devices that are available.", |o, _| total(o, "availableDevices")),
    text_column("Allocated", "The devices that are allocated.", |o, _| total(o, "allocatedDevices")),
    text_column("Unavailable", "The devices that are not available.", |o, _| total(o, "unavailableDevices")),
    text_column("Errors", "The pools with errors.", |o, _| pool_errors(o)),
    integer("Pools", "The pools that match.", |o, _| Value::Int(pool_count(o))),
    text_column("Status", "The state of the request.", |o, _| Value::from(request_state(o))),
    text_column("Completed", "The time since the request is complete.", |o, now| {
        let time = condition(o, "Complete").map_or("", |complete| text(complete, "lastTransitionTime"));
        Value::from(jsonpath::columns::age(time, now))
    }),
];

/// A condition that is true.
fn condition<'a>(request: &'a Value, kind: &str) -> Option<&'a Value> {
    let is = |condition: &&Value| text(condition, "type") == kind && text(condition, "status") == "True";
    at(request, &["status", "conditions"]).iter().find(is)
}

fn pool_count(request: &Value) -> i64 {
    request.at(&["status", "poolCount"]).and_then(Value::as_int).unwrap_or_default()
}

/// The sum of a field of the pools; a dash if there is no state of them.
fn total(request: &Value, field: &str) -> Value {
    if !has_pools(request) {
        return Value::from("-");
    }
    let of = |pool: &Value| pool.get(field).and_then(Value::as_int).unwrap_or_default();
    Value::from(at(request, &["status", "pools"]).iter().map(of).sum::<i64>().to_string())
}

fn pool_errors(request: &Value) -> Value {
    if !has_pools(request) {
        return Value::from("-");
    }
    let has_error = |pool: &&Value| pool.get("validationError").is_some_and(|error| !error.is_null());
    Value::from(at(request, &["status", "pools"]).iter().filter(has_error).count().to_string())
}

fn has_pools(request: &Value) -> bool {
    request.get("status").is_some_and(|status| !status.is_null()) && condition(request, "Failed").is_none()
}

fn request_state(request: &Value) -> String {
    let (count, shown) = (pool_count(request), at(request, &["status", "pools"]).len());
    match (condition(request, "Complete"), condition(request, "Failed")) {
        (Some(_), _) if usize::try_from(count).is_ok_and(|count| count > shown) => {
            format!("Complete ({shown}/{count} pools)")
        }
        (Some(_), _) => "Complete".to_owned(),
        (None, Some(_)) => "Failed".to_owned(),
        (None, None) => "Pending".to_owned(),
    }
}
