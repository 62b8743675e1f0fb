//! Tables of kinds without a stable version.

use machinery::{Value, jsonpath};

use super::super::columns::AGE;
use super::{BuiltInColumn, NONE, at, integer, number, text, text_column, text_or, wide};

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

/// The condition of a type, if it is true.
fn condition<'a>(request: &'a Value, kind: &str) -> Option<&'a Value> {
    let is = |condition: &&Value| text(condition, "type") == kind && text(condition, "status") == "True";
    at(request, &["status", "conditions"]).iter().find(is)
}

fn pool_count(request: &Value) -> i64 {
    request.at(&["status", "poolCount"]).and_then(Value::as_int).unwrap_or_default()
}

/// The sum of a field over all pools, or a dash while the status has no pools.
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

pub const POD_GROUP: &[BuiltInColumn] = &[
    text_column("Policy", "How the Pods are scheduled.", |o, _| Value::from(scheduling_policy(o))),
    text_column("Workload", "The Workload of the group.", |o, _| {
        text_or(o, &["spec", "workloadRef", "workloadName"], NONE)
    }),
    text_column("Status", "The state of the group.", |o, _| Value::from(group_state(o))),
    AGE,
];

pub const COMPOSITE_POD_GROUP: &[BuiltInColumn] = &[
    text_column("Policy", "How the groups are scheduled.", |o, _| Value::from(scheduling_policy(o))),
    text_column("Workload", "The Workload of the group.", |o, _| {
        text_or(o, &["spec", "workloadRef", "workloadName"], NONE)
    }),
    AGE,
];

fn scheduling_policy(group: &Value) -> &'static str {
    let is_gang = group.at(&["spec", "schedulingPolicy", "gang"]).is_some_and(|gang| !gang.is_null());
    if is_gang { "Gang" } else { "Basic" }
}

fn group_state(group: &Value) -> &str {
    let find = |kind: &str| at(group, &["status", "conditions"]).iter().rfind(|one| text(one, "type") == kind);
    match (find("DisruptionTarget"), find("PodGroupInitiallyScheduled")) {
        (Some(disrupted), _) => text(disrupted, "reason"),
        (None, Some(scheduled)) if text(scheduled, "status") == "True" => "Scheduled",
        (None, Some(_)) => "Unschedulable",
        (None, None) => "Pending",
    }
}

const UNSET: &str = "<unset>";
const TARGET: BuiltInColumn =
    text_column("Target", "What is evicted.", |o, _| text_or(o, &["spec", "target", "pod", "name"], UNSET));
const TARGET_KIND: BuiltInColumn = text_column("Target Type", "The kind of what is evicted.", |o, _| {
    let is_pod = o.at(&["spec", "target", "pod"]).is_some_and(|pod| !pod.is_null());
    Value::from(if is_pod { "Pod" } else { UNSET })
});
const EVICTION_STATE: BuiltInColumn =
    text_column("Status", "The state of the eviction.", |o, _| Value::from(eviction_state(o)));

pub const EVICTION_REQUEST: &[BuiltInColumn] = &[
    TARGET,
    TARGET_KIND,
    EVICTION_STATE,
    text_column("Requester", "Who requests the eviction.", |o, _| text_or(o, &["spec", "requester"], "")),
    text_column("Intent", "What is requested.", |o, _| text_or(o, &["spec", "intent"], "")),
    AGE,
];

pub const EVICTION: &[BuiltInColumn] = &[
    TARGET,
    TARGET_KIND,
    EVICTION_STATE,
    text_column("Active Responder", "The responder whose turn it is.", |o, _| Value::from(active_responder(o))),
    text_column("Responder Status", "The state of that responder.", |o, now| Value::from(responder_state(o, now))),
    text_column("Responder Expected Finish", "When that responder expects to finish.", |o, now| {
        Value::from(expected_finish(o, now))
    }),
    text_column("Requesters", "Who requests the eviction.", |o, _| Value::from(requesters(o))),
    AGE,
    wide(text_column("Responder Heartbeat", "When that responder was heard last.", |o, now| {
        let heartbeat = responder(o).map_or("", |(_, status)| text(status, "heartbeatTime"));
        Value::from(if heartbeat.is_empty() { UNSET.to_owned() } else { format!("{} ago", since(heartbeat, now)) })
    })),
    wide(text_column("Responder Status Message", "What that responder reports.", |o, _| {
        let message = responder(o).map_or("", |(_, status)| text(status, "message").trim());
        Value::from(if message.is_empty() { UNSET } else { message })
    })),
];

fn since(time: &str, now: i64) -> String {
    jsonpath::columns::age(time, now)
}

fn eviction_state(eviction: &Value) -> String {
    let holding = |kind: &str| condition(eviction, kind).map(|one| format!("{kind} ({})", text(one, "reason")));
    let is_observed = number(eviction, &["status", "observedGeneration"]) > 0;
    let state = holding("TargetEvicted").or_else(|| holding("Failed"));
    state.unwrap_or_else(|| if is_observed { "Progressing" } else { "Pending" }.to_owned())
}

const ENDED: [&str; 3] = ["Canceled", "Completed", "Interrupted"];

/// The last active responder or, without one, the last that has ended.
fn current(eviction: &Value) -> Option<&Value> {
    let targets = at(eviction, &["status", "targetResponders"]);
    let active = targets.iter().rfind(|target| text(target, "state") == "Active");
    active.or_else(|| targets.iter().rfind(|target| ENDED.contains(&text(target, "state"))))
}

/// The state of the current responder, and what it reports.
fn responder(eviction: &Value) -> Option<(&str, &Value)> {
    let target = current(eviction)?;
    let mut statuses = at(eviction, &["status", "responders"]).iter();
    let status = statuses.find(|status| text(status, "name") == text(target, "name"))?;
    Some((text(target, "state"), status))
}

fn active_responder(eviction: &Value) -> String {
    let targets = at(eviction, &["status", "targetResponders"]);
    let has_begun = |target: &&Value| text(target, "state") == "Active" || ENDED.contains(&text(target, "state"));
    let name = current(eviction).map_or(UNSET, |target| text(target, "name"));
    format!("{name} ({}/{})", targets.iter().filter(has_begun).count(), targets.len())
}

fn responder_state(eviction: &Value, now: i64) -> String {
    let Some((state, status)) = responder(eviction) else { return UNSET.to_owned() };
    let at = |name: &str| Some(text(status, name)).filter(|time| !time.is_empty());
    match (state, at("startTime"), at("completionTime")) {
        ("Active", Some(started), _) => format!("Started ({} ago)", since(started, now)),
        ("Completed", _, Some(completed)) => format!("Completed ({} ago)", since(completed, now)),
        _ => state.to_owned(),
    }
}

fn expected_finish(eviction: &Value, now: i64) -> String {
    let Some((state, status)) = responder(eviction) else { return "<unknown>".to_owned() };
    let expected = text(status, "expectedCompletionTime");
    let has_begun = !text(status, "startTime").is_empty();
    match machinery::time::parse_rfc3339(expected) {
        _ if state != "Active" => "-".to_owned(),
        Some((seconds, _)) if has_begun && seconds > now => {
            let until = machinery::time::rfc3339(now - (seconds - now));
            format!("in {}", since(&until, now))
        }
        Some(_) if has_begun => format!("{} ago", since(expected, now)),
        _ => "<unknown>".to_owned(),
    }
}

fn requesters(eviction: &Value) -> String {
    let all = at(eviction, &["status", "requesters"]);
    let mut names: Vec<&str> =
        all.iter().filter(|one| text(one, "intent") != "Withdrawn").map(|one| text(one, "name")).collect();
    names.sort_unstable();
    match names[..] {
        [] if all.is_empty() => NONE.to_owned(),
        [] => "<withdrawn>".to_owned(),
        [one] => one.to_owned(),
        [first, ref others @ ..] => format!("{first} + {} more...", others.len()),
    }
}
