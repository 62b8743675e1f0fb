//! Validation of the statuses of a Pod's containers: their transitions, users, and the health of their resources.

use std::collections::{HashMap, HashSet};

use machinery::Value;
use machinery::quantity::Quantity;

use resource::builtin::checks::{list, text};
use schema::at::At;

/// The lists of statuses in the status of a Pod, each with the list of containers in its spec.
const STATUSES: [(&str, &str); 2] = [("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")];
const EPHEMERAL: &str = "ephemeralContainerStatuses";

/// Only a container that restarts may leave the terminated state. Paths have the indexes of the old statuses.
pub fn transitions(status: At, spec: At) {
    let restarts_all = STATUSES.iter().flat_map(|(_, kind)| spec.list(kind)).any(restarts_all);
    for (name, kind) in STATUSES.into_iter().filter(|_| !restarts_all) {
        let containers = by_name(spec.list(kind));
        transitions_of(status, name, |name, code| {
            containers.get(name).is_some_and(|container| restarts(container, spec.text("restartPolicy"), code))
        });
    }
    transitions_of(status, EPHEMERAL, |_, _| false);
}

fn transitions_of(status: At, name: &str, may_restart: impl Fn(&str, i64) -> bool) {
    let is_ended = |status: &Value| status.at(&["state", "terminated"]).is_some();
    let statuses = status.list(name).iter().filter(|status| !is_ended(status));
    let running: HashSet<&str> = statuses.map(|status| text(status, "name")).collect();
    let all = status.field(name);
    for (i, old) in all.old_items().iter().enumerate() {
        let Some(ended) = old.at(&["state", "terminated"]) else { continue };
        let code = ended.int_at(&["exitCode"]);
        if running.contains(text(old, "name")) && !may_restart(text(old, "name"), code) {
            all.item(i).field("state").forbidden("may not be transitioned to non-terminated state");
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
pub fn users(status: At, spec: At) {
    let system = spec.text("os.name");
    let is_linux = !spec.has("os") || system == "linux";
    for container in [STATUSES[0].0, STATUSES[1].0, EPHEMERAL].iter().flat_map(|name| status.items_of(name)) {
        let Some(user) = container.field_if_given("user.linux") else { continue };
        if is_linux {
            user.field("uid").within(0..=i64::from(u32::MAX));
            user.field("gid").within(0..=i64::from(i32::MAX));
            user.items_of("supplementalGroups").for_each(|group| group.within(0..=i64::from(i32::MAX)));
        } else if system == "windows" {
            user.forbidden("cannot be set for a windows pod");
        }
    }
}

/// Validates the health of the resources of containers. Ephemeral containers have no resources.
pub fn allocated_resources(status: At, spec: At) {
    const FIELD: &str = "allocatedResourcesStatus";
    let extended = status.field("extendedResourceClaimStatus");
    let mut mappings: HashMap<&str, Vec<&Value>> = HashMap::new();
    for mapping in extended.list("requestMappings") {
        mappings.entry(text(mapping, "containerName")).or_default().push(mapping);
    }
    let claim = extended.text("resourceClaimName");
    for (name, kind) in STATUSES {
        let mut containers = HashMap::new();
        for (name, container) in by_name(spec.list(kind)) {
            let mut known = resources(container);
            let mappings = mappings.get(name).into_iter().flatten();
            known.extend(mappings.filter_map(|mapping| extended_name(container, claim, mapping)));
            containers.insert(name, known);
        }
        for container in status.items_of(name) {
            for resource in container.items_of(FIELD) {
                if let Some(known) = containers.get(container.text("name")) {
                    resource_name(resource.field_or_empty("name"), known);
                }
                health(resource);
            }
        }
    }
    for container in status.items_of(EPHEMERAL).filter(|container| !container.list(FIELD).is_empty()) {
        container.field(FIELD).forbidden("must not be specified in container status");
    }
}

const CLAIM: &str = "claim:";

fn resource_name(at: At, known: &HashSet<String>) {
    match at.as_text() {
        name if known.contains(name) => {}
        name if name.starts_with(CLAIM) => at.shown_as_json().invalid(
            "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty",
        ),
        _ => at.shown_as_json().invalid("must match one of the container's resource requests"),
    }
}

/// The names of the resources of a container: what it requests, and its claims.
fn resources(container: &Value) -> HashSet<String> {
    let names = container.fields_at(&["resources", "requests"]).map(|(name, _)| name.to_string());
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
fn health(resource: At) {
    const MESSAGE_BYTES_MAX: usize = 1024;
    let mut known = HashSet::new();
    for unit in resource.items_of("resources") {
        unit.field_or_empty("health").shown_as_json().one_of(&["Healthy", "Unhealthy", "Unknown"]);
        let message = unit.field("message");
        message.required_if(message.value.as_str() == Some(""), "must be non-empty if specified");
        message.max_bytes(MESSAGE_BYTES_MAX);
        unit.field_or_empty("resourceID").shown_as_json().unique(&mut known);
    }
}

#[cfg(test)]
mod tests {
    use machinery::{Release, json};

    use super::*;
    use schema::at::errors_of;

    fn texts(pod: Value, old: Value, check: fn(At, At)) -> Vec<String> {
        let errors = errors_of(&pod, Some(&old), Release::NEWEST, |pod| check(pod.field("status"), pod.field("spec")));
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
            let pod = json!({"spec": spec, "status": status});
            let errors = texts(pod, json!({"status": before}), transitions);
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
            let pod = json!({"spec": (spec.clone()), "status": status});
            texts(pod, json!({}), allocated_resources).len()
        };
        for (name, errors) in
            [("cpu", 0), ("memory", 1), ("claim:k/r", 0), ("claim:k", 1), ("claim:e/x", 0), ("claim:e", 1)]
        {
            assert_eq!(of(name), errors, "{name}");
        }
    }
}
