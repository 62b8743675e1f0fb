//! Cells of single kinds that paths cannot express.

use machinery::{Text, Value};

use resource::builtin::checks::{list, text};
use resource::builtin::columns::parts::{NONE, condition, shortened, since};
use resource::builtin::columns::selectors::go_selector_text;

/// The state of an APIService, with the reason if it is not available.
pub fn availability(service: &Value) -> String {
    let found = service.items_at(&["status", "conditions"]).iter().find(|one| text(one, "type") == "Available");
    let said = |condition: &Value| match (text(condition, "status"), text(condition, "reason")) {
        ("True", _) | (_, "") => text(condition, "status").to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    };
    found.map_or("Unknown".to_owned(), said)
}

pub fn claim_state(claim: &Value) -> String {
    let allocated = claim.at(&["status", "allocation"]).is_some();
    let reserved = !claim.items_at(&["status", "reservedFor"]).is_empty();
    let deleted = !claim.str_at(&["metadata", "deletionTimestamp"]).is_empty();
    let states = [("deleted", deleted), ("allocated", allocated), ("reserved", reserved)];
    let states: Vec<&str> = states.into_iter().filter(|(_, holds)| *holds).map(|(name, _)| name).collect();
    if states.is_empty() { "pending".to_owned() } else { states.join(",") }
}

pub fn served_versions(definition: &Value) -> String {
    let is = |version: &Value, key: &str| version.is_true_at(&[key]);
    let served = definition.items_at(&["spec", "versions"]).iter().filter(|version| is(version, "served"));
    let shown =
        |version: &Value| format!("{}{}", text(version, "name"), if is(version, "storage") { "(storage)" } else { "" });
    let mut names: Vec<String> = served.map(shown).collect();
    names.sort_unstable();
    names.join(",")
}

pub fn endpoints(endpoints: &Value) -> String {
    let subsets = list(endpoints, "subsets");
    let mut shown = vec![];
    for subset in subsets {
        for ip in list(subset, "addresses").iter().map(|address| text(address, "ip")) {
            match list(subset, "ports") {
                [] => shown.push(ip.to_owned()),
                ports => shown.extend(ports.iter().map(|port| format!("{ip}:{}", port.int_at(&["port"])))),
            }
        }
    }
    if subsets.is_empty() { NONE.to_owned() } else { shortened(&shown.iter().map(String::as_str).collect::<Vec<_>>()) }
}

pub fn job_duration(job: &Value, now: i64) -> String {
    let (start, end) = (job.str_at(&["status", "startTime"]), job.str_at(&["status", "completionTime"]));
    let end = machinery::time::parse_rfc3339(end).map_or(now, |(seconds, _)| seconds.saturating_mul(1_000_000));
    if start.is_empty() { String::new() } else { since(start, end) }
}

pub fn job_status(job: &Value) -> &'static str {
    let states = ["Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"];
    match states.into_iter().find(|kind| condition(job, kind).is_some()) {
        Some(state) => state,
        None if !job.str_at(&["metadata", "deletionTimestamp"]).is_empty() => "Terminating",
        None => "Running",
    }
}

pub fn migration_status(migration: &Value) -> &str {
    let current = migration.items_at(&["status", "conditions"]).iter().filter(|one| text(one, "status") == "True");
    let mut kinds = current.map(|condition| text(condition, "type"));
    kinds.rfind(|kind| matches!(*kind, "Running" | "Failed" | "Succeeded")).unwrap_or("Unknown")
}

pub fn node_kernel(node: &Value) -> String {
    let info = |name: &str| node.str_at(&["status", "nodeInfo", name]);
    let version = if info("kernelVersion").is_empty() { "<unknown>" } else { info("kernelVersion") };
    match info("architecture") {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}

pub fn node_roles(node: &Value) -> String {
    const PREFIX: &str = "node-role.kubernetes.io/";
    let labels = node.fields_at(&["metadata", "labels"]);
    let role = |(key, value): (&Text, &Value)| match (key.strip_prefix(PREFIX), key.as_str()) {
        (Some(role), _) if !role.is_empty() => Some(role.to_owned()),
        (None, "kubernetes.io/role") => value.as_str().filter(|role| !role.is_empty()).map(str::to_owned),
        _ => None,
    };
    let mut roles: Vec<String> = labels.filter_map(role).collect();
    roles.sort();
    if roles.is_empty() { NONE.to_owned() } else { roles.join(",") }
}

pub fn node_status(node: &Value) -> String {
    let ready = node.items_at(&["status", "conditions"]).iter().find(|condition| text(condition, "type") == "Ready");
    let status = match ready.map(|condition| text(condition, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let is_unschedulable = node.is_true_at(&["spec", "unschedulable"]);
    format!("{status}{}", if is_unschedulable { ",SchedulingDisabled" } else { "" })
}

/// The object with the parameters of a policy, or the selector of such objects.
pub fn param_ref(binding: &Value) -> String {
    let Some(reference) = binding.at(&["spec", "paramRef"]) else { return "<unset>".to_owned() };
    let (namespace, name) = (text(reference, "namespace"), text(reference, "name"));
    match reference.get("selector") {
        Some(selector) if name.is_empty() => go_selector_text(selector),
        _ if namespace.is_empty() => format!("*/{name}"),
        _ => format!("{namespace}/{name}"),
    }
}

pub fn pod_certificate_status(request: &Value) -> &str {
    let mut kinds = request.items_at(&["status", "conditions"]).iter().map(|condition| text(condition, "type"));
    kinds.rfind(|kind| ["Issued", "Denied", "Failed"].contains(kind)).unwrap_or("Pending")
}

/// How many readiness gates are met.
pub fn pod_gates(pod: &Value) -> String {
    let gates = pod.items_at(&["spec", "readinessGates"]);
    let conditions = pod.items_at(&["status", "conditions"]);
    let is_met = |gate: &&Value| {
        let of_gate = conditions.iter().find(|one| text(one, "type") == text(gate, "conditionType"));
        of_gate.is_some_and(|one| text(one, "status") == "True")
    };
    match gates.len() {
        0 => NONE.to_owned(),
        all => format!("{}/{all}", gates.iter().filter(is_met).count()),
    }
}

pub fn group_status(group: &Value) -> &str {
    let find = |kind: &str| group.items_at(&["status", "conditions"]).iter().rfind(|one| text(one, "type") == kind);
    match (find("DisruptionTarget"), find("PodGroupInitiallyScheduled")) {
        (Some(disrupted), _) => text(disrupted, "reason"),
        (None, Some(scheduled)) if text(scheduled, "status") == "True" => "Scheduled",
        (None, Some(_)) => "Unschedulable",
        (None, None) => "Pending",
    }
}

/// The used and the hard amounts of those resources of a quota for which `is_shown` is true.
pub fn usage(quota: &Value, is_shown: fn(&str) -> bool) -> String {
    let hard = quota.fields_at(&["status", "hard"]);
    let shown = hard.filter(|(name, _)| is_shown(name)).map(|(name, hard)| {
        let used = quota.at(&["status", "used", name]).and_then(Value::as_str).unwrap_or("0");
        format!("{name}: {used}/{}", hard.as_str().unwrap_or_default())
    });
    shown.collect::<Vec<_>>().join(", ")
}

pub fn revision_owner(revision: &Value) -> String {
    let is_controller = |owner: &&Value| owner.is_true_at(&["controller"]);
    let Some(owner) = revision.items_at(&["metadata", "ownerReferences"]).iter().find(is_controller) else {
        return NONE.to_owned();
    };
    let group = text(owner, "apiVersion").split_once('/').map(|(group, _)| format!(".{group}")).unwrap_or_default();
    format!("{}{group}/{}", text(owner, "kind").to_lowercase(), text(owner, "name"))
}

pub fn external_address(service: &Value) -> String {
    let outside = service.texts_at(&["spec", "externalIPs"]);
    let or =
        |addresses: Vec<&str>, other: &str| if addresses.is_empty() { other.to_owned() } else { addresses.join(",") };
    match service.str_at(&["spec", "type"]) {
        "ClusterIP" | "NodePort" => or(outside.collect(), NONE),
        "LoadBalancer" => {
            let given = |point| Some(text(point, "ip")).filter(|ip| !ip.is_empty()).unwrap_or(text(point, "hostname"));
            let balanced = service.items_at(&["status", "loadBalancer", "ingress"]).iter().map(given);
            or(balanced.filter(|address| !address.is_empty()).chain(outside).collect(), "<pending>")
        }
        "ExternalName" => service.str_at(&["spec", "externalName"]).to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

pub fn signing_status(request: &Value) -> String {
    let has = |kind: &str| request.items_at(&["status", "conditions"]).iter().any(|c| text(c, "type") == kind);
    let decision = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (_, true) => "Approved",
        _ => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if request.str_at(&["status", "certificate"]).is_empty() { "" } else { ",Issued" };
    format!("{decision}{failed}{issued}")
}
