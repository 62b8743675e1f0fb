//! Pods and what concerns them, and Nodes.

use super::pod_cells::PodCells;
use super::{NONE, at, boolean, flag, int, integer, joined, selector_at, text_column, text_or, wide};
use crate::builtin::BuiltInColumn;
use crate::builtin::checks::text;
use crate::builtin::columns::AGE;
use machinery::{Map, Value, json, jsonpath};

pub const POD: &[BuiltInColumn] = &[
    text_column("Ready", "Ready and all containers.", |pod, _| Value::from(PodCells::of(pod).ready())),
    text_column("Status", "Phase of the Pod, or why it is not running.", |pod, _| {
        Value::from(PodCells::of(pod).status())
    }),
    text_column("Restarts", "How often containers were started again.", |pod, now| {
        Value::from(PodCells::of(pod).restarts(now))
    }),
    AGE,
    wide(text_column("IP", "Address of the Pod.", |pod, _| text_or(pod, &["status", "podIP"], NONE))),
    wide(text_column("Node", "Node that runs the Pod.", |pod, _| text_or(pod, &["spec", "nodeName"], NONE))),
    wide(text_column("Nominated Node", "Node on which room is made for the Pod.", |pod, _| {
        text_or(pod, &["status", "nominatedNodeName"], NONE)
    })),
    wide(text_column("Readiness Gates", "Conditions that are met, of those that are awaited.", |pod, _| {
        let gates = at(pod, &["spec", "readinessGates"]);
        let conditions = at(pod, &["status", "conditions"]);
        let is_met = |gate: &&Value| {
            let of_gate = conditions.iter().find(|c| text(c, "type") == text(gate, "conditionType"));
            of_gate.is_some_and(|c| text(c, "status") == "True")
        };
        match gates.len() {
            0 => Value::from(NONE),
            all => Value::from(format!("{}/{all}", gates.iter().filter(is_met).count())),
        }
    })),
];

/// The condition of the row of a Pod that has ended.
pub fn ended(pod: &Value) -> Option<Value> {
    let message = match pod.str_at(&["status", "phase"]) {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    let reason = pod.str_at(&["status", "phase"]);
    Some(json!([{"type": "Completed", "status": "True", "reason": (reason), "message": (message)}]))
}

pub const POD_TEMPLATE: &[BuiltInColumn] = &[
    text_column("Containers", "Names of the containers.", |o, _| {
        joined(at(o, &["template", "spec", "containers"]), "name")
    }),
    text_column("Images", "Images of the containers.", |o, _| {
        joined(at(o, &["template", "spec", "containers"]), "image")
    }),
    text_column("Pod Labels", "Labels of the Pods.", |o, _| selector_at(o, &["template", "metadata", "labels"])),
];

pub const DISRUPTION_BUDGET: &[BuiltInColumn] = &[
    text_column("Min Available", "Pods that stay available.", |o, _| count_or_share(o, "minAvailable")),
    text_column("Max Unavailable", "Pods that may be unavailable.", |o, _| count_or_share(o, "maxUnavailable")),
    integer("Allowed Disruptions", "Pods that may be evicted now.", |o, _| int(o, &["status", "disruptionsAllowed"])),
    AGE,
];

fn count_or_share(budget: &Value, name: &str) -> Value {
    match budget.at(&["spec", name]) {
        Some(Value::Int(count)) => Value::from(count.to_string()),
        Some(Value::String(share)) => Value::String(share.clone()),
        _ => Value::from("N/A"),
    }
}

pub const PRIORITY_CLASS: &[BuiltInColumn] = &[
    integer("Value", "Priority of Pods of the class.", |o, _| int(o, &["value"])),
    boolean("Global-Default", "Whether Pods without a class have this one.", |o, _| flag(o, &["globalDefault"])),
    AGE,
    text_column("PreemptionPolicy", "Whether Pods of the class preempt others.", |o, _| {
        text_or(o, &["preemptionPolicy"], "")
    }),
];

pub const RUNTIME_CLASS: &[BuiltInColumn] = &[text_column("Handler", "", |o, _| text_or(o, &["handler"], "")), AGE];

pub const NODE: &[BuiltInColumn] = &[
    text_column("Status", "Whether the Node is ready, and takes Pods.", |node, _| Value::from(node_status(node))),
    text_column("Roles", "Roles by labels.", |node, _| Value::from(node_roles(node))),
    AGE,
    text_column("Version", "Version of the kubelet.", |node, _| {
        text_or(node, &["status", "nodeInfo", "kubeletVersion"], "")
    }),
    wide(text_column("Internal-IP", "Address in the cluster.", |node, _| node_address(node, "InternalIP"))),
    wide(text_column("External-IP", "Address outside of the cluster.", |node, _| node_address(node, "ExternalIP"))),
    wide(text_column("OS-Image", "Operating system.", |node, _| {
        text_or(node, &["status", "nodeInfo", "osImage"], "<unknown>")
    })),
    wide(text_column("Kernel-Version", "Version of the kernel.", |node, _| {
        let version = text_or(node, &["status", "nodeInfo", "kernelVersion"], "<unknown>");
        match node.str_at(&["status", "nodeInfo", "architecture"]) {
            "" => version,
            architecture => Value::from(format!("{} ({architecture})", version.as_str().unwrap_or_default())),
        }
    })),
    wide(text_column("Container-Runtime", "Runtime of containers and its version.", |node, _| {
        text_or(node, &["status", "nodeInfo", "containerRuntimeVersion"], "<unknown>")
    })),
];

fn node_status(node: &Value) -> String {
    let ready = at(node, &["status", "conditions"]).iter().find(|condition| text(condition, "type") == "Ready");
    let mut status = match ready.map(|condition| text(condition, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if flag(node, &["spec", "unschedulable"]) == Value::Bool(true) {
        status += ",SchedulingDisabled";
    }
    status
}

fn node_roles(node: &Value) -> String {
    const PREFIX: &str = "node-role.kubernetes.io/";
    let labels = node.at(&["metadata", "labels"]).and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let role = |(key, value): (&machinery::Text, &Value)| match (key.strip_prefix(PREFIX), key.as_str()) {
        (Some(role), _) if !role.is_empty() => Some(role.to_owned()),
        (None, "kubernetes.io/role") => value.as_str().filter(|role| !role.is_empty()).map(str::to_owned),
        _ => None,
    };
    let mut roles: Vec<String> = labels.filter_map(role).collect();
    roles.sort();
    if roles.is_empty() { NONE.to_owned() } else { roles.join(",") }
}

fn node_address(node: &Value, kind: &str) -> Value {
    let found = at(node, &["status", "addresses"]).iter().find(|address| text(address, "type") == kind);
    found.map_or_else(|| Value::from(NONE), |address| Value::from(text(address, "address")))
}

pub const TAINT_RULE: &[BuiltInColumn] = &[
    text_column("Key", "Key of the taint.", |o, _| text_or(o, &["spec", "taint", "key"], "")),
    text_column("Value", "Value of the taint.", |o, _| text_or(o, &["spec", "taint", "value"], "")),
    text_column("Effect", "Effect of the taint.", |o, _| text_or(o, &["spec", "taint", "effect"], "")),
    text_column("TimeAdded", "Time of the taint.", |o, now| {
        Value::from(jsonpath::columns::age(o.str_at(&["spec", "taint", "timeAdded"]), now))
    }),
    AGE,
];

pub const COMPONENT: &[BuiltInColumn] = &[
    text_column("Status", "Whether the component is healthy.", |o, _| {
        let status = at(o, &["conditions"]).first().map(|condition| text(condition, "status")).unwrap_or_default();
        Value::from(match status {
            "True" => "Healthy",
            "False" => "Unhealthy",
            _ => "Unknown",
        })
    }),
    text_column("Message", "What the component reports.", |o, _| {
        Value::from(at(o, &["conditions"]).first().map(|condition| text(condition, "message")).unwrap_or_default())
    }),
    text_column("Error", "Why it cannot be asked.", |o, _| {
        Value::from(at(o, &["conditions"]).first().map(|condition| text(condition, "error")).unwrap_or_default())
    }),
];
