//! Service: its shape, its defaults, and the fields that a change of its type drops. The room `allocation` of the
//! server allocates addresses and node ports.

pub mod addresses;
mod validate;

pub use validate::{validate, validate_status, warnings};

use std::collections::HashSet;

use machinery::{Release, Value, json, names};

use resource::builtin::checks::{list, text};
use resource::builtin::defaults::set_default;

pub fn name(name: &str, release: Release) -> Vec<String> {
    if release >= Release::V1_36 { names::dns1123_label(name) } else { names::dns1035_label(name) }
}

pub fn default(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    // an empty list asks for an allocation like an absent one
    for name in ["clusterIPs", "ipFamilies"] {
        if spec.get(name).is_some() && list(spec, name).is_empty() {
            spec.remove_at(&[name]);
        }
    }
    default_affinity(spec);
    if is_external(spec) {
        set_default(spec, &["externalTrafficPolicy"], Value::from("Cluster"));
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let number = port.get("port").cloned().unwrap_or_default();
        let unset = match port.get("targetPort") {
            Some(Value::String(name)) => name.is_empty(),
            target => target == Some(&Value::Int(0)),
        };
        if unset {
            port.remove_at(&["targetPort"]);
        }
        set_default(port, &["targetPort"], number);
    }
    default_ingress(object);
}

const SECONDS_OF_AFFINITY: i64 = 3 * 60 * 60;

fn default_affinity(spec: &mut Value) {
    match text(spec, "sessionAffinity") {
        "None" => drop(spec.remove_at(&["sessionAffinityConfig"])),
        "ClientIP" if spec.at(&["sessionAffinityConfig", "clientIP", "timeoutSeconds"]).is_none() => {
            let config = json!({"clientIP": {"timeoutSeconds": (SECONDS_OF_AFFINITY)}});
            spec.set_at(&["sessionAffinityConfig"], config);
        }
        _ => {}
    }
}

fn default_ingress(service: &mut Value) {
    let balanced = service.str_at(&["spec", "type"]) == "LoadBalancer";
    let ingress = service.get_mut("status").and_then(|status| status.get_mut("loadBalancer"));
    let ingress = ingress.and_then(|balancer| balancer.get_mut("ingress")).and_then(Value::as_array_mut);
    for point in ingress.into_iter().flatten().filter(|point| balanced && !text(point, "ip").is_empty()) {
        set_default(point, &["ipMode"], Value::from("VIP"));
    }
}

/// The value of `clusterIP` of a Service without addresses of its own.
const HEADLESS: &str = "None";

/// Whether the type of a `spec` is `ExternalName`.
pub fn is_external_name(spec: &Value) -> bool {
    text(spec, "type") == "ExternalName"
}

/// Whether a `spec` is headless, regardless of its type.
fn headless(spec: &Value) -> bool {
    matches!(list(spec, "clusterIPs"), [only] if only.as_str() == Some(HEADLESS))
}

/// Whether a `spec` has external traffic.
fn is_external(spec: &Value) -> bool {
    match text(spec, "type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !list(spec, "externalIPs").is_empty(),
        _ => false,
    }
}

/// Whether a `spec` has a node port for the health checks of a load balancer.
pub fn needs_health_check(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

/// Keeps the status, and drops fields that the new type does not use, unless the same update changes them.
pub fn prepare(object: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        object.set_at(&["status"], json!({"loadBalancer": {}}));
    }
    let Some(spec) = object.get_mut("spec") else { return };
    if let Some(old) = old.and_then(|old| old.get("spec")) {
        drop_fields_of_other_types(spec, old);
    }
    // such a Service has no traffic of its own; an invalid policy is still refused
    if is_external_name(spec) && matches!(text(spec, "internalTrafficPolicy"), "Cluster" | "Local") {
        spec.remove_at(&["internalTrafficPolicy"]);
    }
    if old.is_some() && text(spec, "type") != "LoadBalancer" {
        object.set_at(&["status", "loadBalancer"], Value::object());
    }
}

fn drop_fields_of_other_types(spec: &mut Value, old: &Value) {
    let same = |spec: &Value, name: &str| spec.get(name) == old.get(name);
    if !is_external_name(old) && is_external_name(spec) {
        if same(spec, "clusterIP") && same(spec, "clusterIPs") {
            spec.remove_at(&["clusterIP"]);
            spec.remove_at(&["clusterIPs"]);
        }
        for name in ["ipFamilies", "ipFamilyPolicy"].into_iter().filter(|name| same(spec, name)).collect::<Vec<_>>() {
            spec.remove_at(&[name]);
        }
    }
    let has_node_ports = |spec: &Value| matches!(text(spec, "type"), "LoadBalancer" | "NodePort");
    let old_ports: HashSet<i64> = node_ports(old).into_iter().collect();
    if has_node_ports(old) && !has_node_ports(spec) && node_ports(spec).iter().all(|port| old_ports.contains(port)) {
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            port.remove_at(&["nodePort"]);
        }
    }
    let balanced = |spec: &Value| text(spec, "type") == "LoadBalancer";
    type Fits = fn(&Value) -> bool;
    let gone: [(&str, Fits); 4] = [
        ("healthCheckNodePort", needs_health_check),
        ("allocateLoadBalancerNodePorts", balanced),
        ("loadBalancerClass", balanced),
        ("externalTrafficPolicy", is_external),
    ];
    let gone = gone.into_iter().filter(|(name, fits)| fits(old) && !fits(spec) && same(spec, name));
    for (name, _) in gone.collect::<Vec<_>>() {
        spec.remove_at(&[name]);
    }
}

pub fn node_ports(spec: &Value) -> Vec<i64> {
    list(spec, "ports").iter().filter_map(|port| port.get("nodePort").and_then(Value::as_int)).collect()
}
