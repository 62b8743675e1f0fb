//! TaintNodesByCondition, PodTopologyLabels, PodResizeValidator.

use machinery::quantity::Quantity;
use machinery::status::Cause;
use machinery::{Value, json};

use super::pod_resources::{Amounts, Field, total};
use super::{Decision, PluginRequest, push};

/// Adds the taint "not ready" to a new Node.
pub fn taint(_call: &PluginRequest<'_>, node: &mut Value) -> Decision {
    const KEY: &str = "node.kubernetes.io/not-ready";
    let is_there = |taint: &Value| taint.str_at(&["key"]) == KEY && taint.str_at(&["effect"]) == "NoSchedule";
    if !node.items_at(&["spec", "taints"]).iter().any(is_there) {
        push(node, &["spec", "taints"], json!({"key": KEY, "effect": "NoSchedule"}));
    }
    Ok(())
}

/// Copies the zone and region labels of a Node to a Pod that is assigned to it, or to a Binding.
pub fn copy_topology(call: &PluginRequest<'_>, object: &mut Value) -> Decision {
    const LABELS: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];
    let name = match call.attributes.subresource {
        "" => object.str_at(&["spec", "nodeName"]),
        _ if object.str_at(&["target", "kind"]) == "Node" => object.str_at(&["target", "name"]),
        _ => "",
    };
    let Some(node) = Some(name).filter(|name| !name.is_empty()).and_then(|name| call.get("", "nodes", name)) else {
        return Ok(());
    };
    for key in LABELS {
        if let Some(value) = node.at(&["metadata", "labels", key]) {
            object.set_at(&["metadata", "labels", key], value.clone());
        }
    }
    Ok(())
}

/// Rejects a resize of a Pod beyond the allocatable resources of its Node, or on a Node without Linux.
pub fn resize(call: &PluginRequest<'_>) -> Decision {
    let (pod, old) = (call.object(), call.old());
    let name = pod.str_at(&["spec", "nodeName"]);
    let generation = ["metadata", "generation"];
    if name.is_empty() || pod.at(&generation) == old.at(&generation) {
        return Ok(());
    }
    let Some(node) = call.get("", "nodes", name) else { return Err(format!("node {name:?} not found").into()) };
    let system = node.str_at(&["metadata", "labels", "kubernetes.io/os"]);
    if !["", "linux"].contains(&system) {
        let why = format!("pod resize is only supported on linux nodes, node {name:?} is {system:?}");
        return refuse(call, &why, "UnsupportedPlatform");
    }
    let allocatable = node.at(&["status", "allocatable"]);
    let requests: Amounts = total(pod, Field::Requests);
    for resource in ["cpu", "memory"] {
        let amount = allocatable.and_then(|map| map.get(resource)).and_then(|amount| Quantity::of(amount).ok());
        let most = amount.unwrap_or_else(|| Quantity::from_int(0));
        if let Some(request) = requests.get(resource).filter(|request| request.compare(&most).is_gt()) {
            let why =
                format!("Node didn't have enough capacity: {resource}, requested: {request}, allocatable: {most}");
            return refuse(call, &why, "NodeCapacity");
        }
    }
    Ok(())
}

fn refuse(call: &PluginRequest<'_>, why: &str, reason: &str) -> Decision {
    let mut status = call.attributes.forbidden(why);
    if let Some(details) = &mut status.details {
        details.causes.push(Cause { reason: reason.into(), message: why.to_owned(), field: String::new() });
    }
    Err(status.into())
}
