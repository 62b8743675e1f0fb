//! Validation of the statuses of a Pod's containers: their transitions, users, and the health of their resources.

use std::collections::{HashMap, HashSet};

use machinery::Value;
use machinery::field::{FieldError, FieldPath};
use machinery::quantity::Quantity;

use super::checks::{entries, is_set, items, list, named, text};

type Errors = Vec<FieldError>;

/// The lists of statuses in the status of a Pod, each with the list of containers in its spec.
const STATUSES: [(&str, &str); 2] = [("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")];
const EPHEMERAL: &str = "ephemeralContainerStatuses";

/// Only a container that restarts may leave the terminated state. Paths have the indexes of the old statuses.
pub fn transitions(status: &Value, before: &Value, spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let restarts_all = STATUSES.iter().flat_map(|(_, kind)| list(spec, kind)).any(restarts_all);
    for (name, kind) in STATUSES.into_iter().filter(|_| !restarts_all) {
        let containers = by_name(list(spec, kind));
        let may_restart = |name: &str, code: i64| {
            containers.get(name).is_some_and(|container| restarts(container, text(spec, "restartPolicy"), code))
        };
        transitions_of(status, before, name, may_restart, path, errors);
    }
    transitions_of(status, before, EPHEMERAL, |_, _| false, path, errors);
}

fn transitions_of(
    status: &Value,
    before: &Value,
    name: &str,
    may_restart: impl Fn(&str, i64) -> bool,
    path: &FieldPath,
    errors: &mut Errors,
) {
    let is_ended = |status: &Value| status.at(&["state", "terminated"]).is_some();
    let statuses = list(status, name).iter().filter(|status| !is_ended(status));
    let running: HashSet<&str> = statuses.map(|status| text(status, "name")).collect();
    for (path, old) in items(before, name, path) {
        let Some(ended) = old.at(&["state", "terminated"]) else { continue };
        let code = ended.get("exitCode").and_then(Value::as_int).unwrap_or_default();
        if running.contains(text(old, "name")) && !may_restart(text(old, "name"), code) {
            errors.push(FieldError::forbidden(&path.child("state"), "may not be transitioned to non-terminated state"));
        }
    }
}

/// The values by name. The first value with a name counts.
fn by_name(given: &[Value]) -> HashMap<&str, &Value> {
    given.iter().rev().map(|value| (text(value, "name"), value)).collect()
}

/// Whether a container has a rule that restarts all containers.
fn restarts_all(container: &Value) -> bool {
    list(container, "restartPolicyRules").iter().any(|rule| text(rule, "action") == "RestartAllContainers")
}

/// Whether a container that has ended with an exit code restarts: by its rules, its own policy, or that of the Pod.
fn restarts(container: &Value, of_pod: &str, code: i64) -> bool {
    let own = text(container, "restartPolicy");
    let has_rule = || list(container, "restartPolicyRules").iter().any(|rule| matches(rule, code));
    match if own.is_empty() { of_pod } else { own } {
        _ if !own.is_empty() && has_rule() => true,
        "Never" => false,
        "OnFailure" => code != 0,
        _ => true,
    }
}

fn matches(rule: &Value, code: i64) -> bool {
    let has_code = || {
        list(rule.get("exitCodes").unwrap_or(&Value::Null), "values").iter().any(|value| value.as_int() == Some(code))
    };
    match rule.str_at(&["exitCodes", "operator"]) {
        "In" => has_code(),
        "NotIn" => !has_code(),
        _ => false,
    }
}

/// The users of containers must fit the operating system of the Pod.
pub fn users(status: &Value, spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let system = spec.str_at(&["os", "name"]);
    let is_linux = !is_set(spec, "os") || system == "linux";
    for (path, container) in [STATUSES[0].0, STATUSES[1].0, EPHEMERAL].iter().flat_map(|name| items(status, name, path))
    {
        let Some(user) = container.at(&["user", "linux"]).filter(|user| !user.is_null()) else { continue };
        let path = path.child("user").child("linux");
        match is_linux {
            true => linux_user(user, &path, errors),
            false if system == "windows" => {
                errors.push(FieldError::forbidden(&path, "cannot be set for a windows pod"))
            }
            false => {}
        }
    }
}

fn linux_user(user: &Value, path: &FieldPath, errors: &mut Errors) {
    let groups = items(user, "supplementalGroups", path);
    let group = user.get("gid").map(|gid| (path.child("gid"), gid));
    let own = user.get("uid").map(|uid| (path.child("uid"), uid, i64::from(u32::MAX)));
    let groups = group.into_iter().chain(groups).map(|(path, id)| (path, id, i64::from(i32::MAX)));
    for (path, id, max) in own.into_iter().chain(groups) {
        if !(0..=max).contains(&id.as_int().unwrap_or_default()) {
            errors.push(FieldError::invalid(&path, id, format!("must be between 0 and {max}, inclusive")));
        }
    }
}

/// Validates the health of the resources of containers. Ephemeral containers have no resources.
pub fn allocated_resources(status: &Value, spec: &Value, path: &FieldPath, errors: &mut Errors) {
    const FIELD: &str = "allocatedResourcesStatus";
    let extended = status.get("extendedResourceClaimStatus").unwrap_or(&Value::Null);
    let mut mappings: HashMap<&str, Vec<&Value>> = HashMap::new();
    for mapping in list(extended, "requestMappings") {
        mappings.entry(text(mapping, "containerName")).or_default().push(mapping);
    }
    let claim = text(extended, "resourceClaimName");
    for (name, kind) in STATUSES {
        let mut containers = HashMap::new();
        for (name, container) in by_name(list(spec, kind)) {
            let mut known = resources(container);
            let mappings = mappings.get(name).into_iter().flatten();
            known.extend(mappings.filter_map(|mapping| extended_name(container, claim, mapping)));
            containers.insert(name, known);
        }
        for (path, container) in items(status, name, path) {
            for (path, resource) in items(container, FIELD, &path) {
                if let Some(known) = containers.get(text(container, "name")) {
                    resource_name(resource, known, &path.child("name"), errors);
                }
                health(resource, &path, errors);
            }
        }
    }
    for (path, container) in items(status, EPHEMERAL, path) {
        if !list(container, FIELD).is_empty() {
            let why = "must not be specified in container status";
            errors.push(FieldError::forbidden(&path.child(FIELD), why));
        }
    }
}

const CLAIM: &str = "claim:";

fn resource_name(resource: &Value, known: &HashSet<String>, path: &FieldPath, errors: &mut Errors) {
    let name = text(resource, "name");
    if known.contains(name) {
        return;
    }
    let why = match name.starts_with(CLAIM) {
        true => {
            "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty"
        }
        false => "must match one of the container's resource requests",
    };
    let value = Value::from(name);
    errors.push(named(FieldError::invalid(path, &value, why), &value));
}

/// The names of the resources of a container: what it requests, and its claims.
fn resources(container: &Value) -> HashSet<String> {
    let names = entries(container, &["resources", "requests"]).map(|(name, _)| name.to_string());
    let mut known: HashSet<String> = names.filter(|name| !name.starts_with(CLAIM)).collect();
    for claim in list(container.get("resources").unwrap_or(&Value::Null), "claims") {
        let (name, request) = (text(claim, "name"), text(claim, "request"));
        let separator = if request.is_empty() { "" } else { "/" };
        known.insert(format!("{CLAIM}{name}{separator}{request}"));
    }
    known
}

/// The name of an extended resource of a container in the claim that was made for extended resources.
fn extended_name(container: &Value, claim: &str, mapping: &Value) -> Option<String> {
    let request = text(mapping, "requestName");
    let amount = container.at(&["resources", "requests", text(mapping, "resourceName")])?;
    let is_known = !claim.is_empty() && !request.is_empty() && Quantity::of(amount).ok()?.signum() != 0;
    is_known.then(|| format!("{CLAIM}{claim}/{request}"))
}

/// The health of each unit of a resource.
fn health(resource: &Value, path: &FieldPath, errors: &mut Errors) {
    const STATES: [&str; 3] = ["Healthy", "Unhealthy", "Unknown"];
    const MESSAGE_BYTES_MAX: usize = 1024;
    let mut known = HashSet::new();
    for (path, unit) in items(resource, "resources", path) {
        let (state, id) = (Value::from(text(unit, "health")), Value::from(text(unit, "resourceID")));
        if !STATES.contains(&text(unit, "health")) {
            errors.push(named(FieldError::not_supported(&path.child("health"), &state, &STATES), &state));
        }
        let length = unit.get("message").and_then(Value::as_str).map(str::len);
        if length == Some(0) {
            errors.push(FieldError::required(&path.child("message"), "must be non-empty if specified"));
        }
        if length > Some(MESSAGE_BYTES_MAX) {
            errors.push(FieldError::too_long(&path.child("message"), MESSAGE_BYTES_MAX));
        }
        if !known.insert(text(unit, "resourceID")) {
            errors.push(named(FieldError::duplicate(&path.child("resourceID"), &id), &id));
        }
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    fn texts(check: impl Fn(&FieldPath, &mut Errors)) -> Vec<String> {
        let mut errors = vec![];
        check(&FieldPath::new("status"), &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn containers_that_have_ended_restart_by_their_policies_and_rules() {
        let rule = json!({"action": "Restart", "exitCodes": {"operator": "In", "values": [7]}});
        let cases = [
            ("Always", json!({"name": "c"}), 0, true),
            ("OnFailure", json!({"name": "c"}), 0, false),
            ("OnFailure", json!({"name": "c"}), 1, true),
            ("Always", json!({"name": "c", "restartPolicy": "Never"}), 1, false),
            ("Never", json!({"name": "c", "restartPolicy": "Never", "restartPolicyRules": [(rule.clone())]}), 7, true),
            ("Never", json!({"name": "c", "restartPolicy": "Never", "restartPolicyRules": [rule]}), 8, false),
            ("Always", json!({"name": "d"}), 0, false),
        ];
        for (policy, container, code, restarts) in cases {
            let spec = json!({"restartPolicy": policy, "containers": [(container.clone())]});
            let before = json!({"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": code}}}]});
            let status = json!({"containerStatuses": [{"name": "c", "state": {"running": {}}}]});
            let errors = texts(|path, errors| transitions(&status, &before, &spec, path, errors));
            let want = "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state";
            let want = if restarts { vec![] } else { vec![want] };
            assert_eq!(errors, want, "{policy} {} {code}", container.to_json());
        }
    }

    #[test]
    fn resources_are_those_that_the_container_has() {
        let resources =
            json!({"requests": {"cpu": "1", "example.com/a": "1"}, "claims": [{"name": "k", "request": "r"}]});
        let spec = json!({"containers": [{"name": "c", "resources": resources}]});
        let extended = json!({
            "resourceClaimName": "e",
            "requestMappings": [{"containerName": "c", "resourceName": "example.com/a", "requestName": "x"}]
        });
        let of = |name: &str| {
            let allocated = json!([{"name": name, "resources": [{"resourceID": "u", "health": "Healthy"}]}]);
            let status = json!({
                "containerStatuses": [{"name": "c", "allocatedResourcesStatus": allocated}],
                "extendedResourceClaimStatus": (extended.clone())
            });
            texts(|path, errors| allocated_resources(&status, &spec, path, errors)).len()
        };
        for (name, errors) in
            [("cpu", 0), ("memory", 1), ("claim:k/r", 0), ("claim:k", 1), ("claim:e/x", 0), ("claim:e", 1)]
        {
            assert_eq!(of(name), errors, "{name}");
        }
    }
}
