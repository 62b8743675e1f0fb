//! The node ports that a Service gets: requested ones, any free ones, and those that it keeps.

use std::collections::{HashMap, HashSet};

use kinds::core::services::{needs_health_check, node_ports};
use machinery::{FieldError, FieldPath, Result, Status, Value};

use super::invalid;
use super::pool::{Pool, ports_of};

pub(super) fn has_node_ports(spec: &Value) -> bool {
    matches!(spec.str_at(&["type"]), "LoadBalancer" | "NodePort")
}

/// Whether ports that request no node port get one.
fn gets_node_ports(spec: &Value) -> bool {
    has_node_ports(spec)
        && (spec.str_at(&["type"]) == "NodePort" || spec.is_true_at(&["allocateLoadBalancerNodePorts"]))
}

/// An item of `spec.ports`.
struct ServicePort {
    port: i64,
    protocol: String,
    /// The requested node port.
    requested: Option<i64>,
}

fn service_ports(spec: &Value) -> Vec<ServicePort> {
    let number = |port: &Value, name: &str| port.int_at(&[name]);
    let ports = spec.items_at(&["ports"]);
    let read = |port: &Value| ServicePort {
        port: number(port, "port"),
        protocol: port.str_at(&["protocol"]).to_owned(),
        requested: Some(number(port, "nodePort")).filter(|node_port| *node_port != 0),
    };
    ports.iter().map(read).collect()
}

fn set_node_port(service: &mut Value, index: usize, port: i64) {
    let ports = service.get_mut("spec").and_then(|spec| spec.get_mut("ports")).and_then(Value::as_array_mut);
    if let Some(entry) = ports.and_then(|ports| ports.get_mut(index)) {
        entry.set_at(&["nodePort"], Value::Int(port));
    }
}

fn take_any(pool: &mut Pool) -> Result<i64> {
    pool.take_any().map_err(|why| Status::internal(format!("failed to allocate a nodePort: {why}")))
}

/// Takes the node port that the port at `index` requests.
fn take_requested(pool: &mut Pool, service: &Value, index: usize, requested: i64) -> Result<i64> {
    pool.take(requested).map(|()| requested).map_err(|why| {
        let path = FieldPath::new("spec").child("ports").index(index).child("nodePort");
        invalid(service, &[FieldError::invalid(&path, &Value::Int(requested), why)])
    })
}

fn take_health_port(service: &mut Value, pool: &mut Pool) -> Result<()> {
    let path = ["spec", "healthCheckNodePort"];
    match service.at(&path).and_then(Value::as_int) {
        Some(port) => pool.take(port).map_err(|why| {
            Status::internal(format!("failed to allocate requested HealthCheck NodePort {port}: {why}"))
        }),
        None => {
            let port = pool
                .take_any()
                .map_err(|why| Status::internal(format!("failed to allocate a HealthCheck NodePort 0: {why}")))?;
            service.set_at(&path, Value::Int(port));
            Ok(())
        }
    }
}

/// Allocates node ports for a new Service. Ports with the same number (of different protocols) share one node port.
pub(super) fn create(service: &mut Value, pool: &mut Pool) -> Result<()> {
    let spec = service.get("spec").cloned().unwrap_or_default();
    let ports = if has_node_ports(&spec) { service_ports(&spec) } else { vec![] };
    // the first request for each port
    let mut requests = HashMap::new();
    for ServicePort { port, requested, .. } in &ports {
        if let Some(requested) = requested {
            requests.entry(*port).or_insert(*requested);
        }
    }
    let mut shared = HashMap::new();
    for (i, ServicePort { port, requested, .. }) in ports.iter().enumerate() {
        if requested.is_none() && !gets_node_ports(&spec) {
            continue;
        }
        let node_port = match (shared.get(port), requested) {
            (Some(known), None) => *known,
            (Some(known), Some(requested)) if requested == known => *known,
            (Some(_), Some(requested)) => take_requested(pool, service, i, *requested)?,
            (None, _) => {
                let taken = match requests.get(port) {
                    Some(requested) => take_requested(pool, service, i, *requested)?,
                    None => take_any(pool)?,
                };
                shared.insert(*port, taken);
                taken
            }
        };
        set_node_port(service, i, node_port);
    }
    if needs_health_check(&spec) {
        take_health_port(service, pool)?;
    }
    Ok(())
}

/// Allocates node ports for an updated Service, and returns those of the old one that it no longer uses.
pub(super) fn update(service: &mut Value, old: &Value, pool: &mut Pool) -> Result<Vec<u16>> {
    let spec = service.get("spec").cloned().unwrap_or_default();
    let ports = if has_node_ports(&spec) { service_ports(&spec) } else { vec![] };
    // those that the Service has already, and those that it is given
    let mut held: HashSet<i64> = node_ports(old).into_iter().collect();
    let mut given = HashSet::new();
    for (i, ServicePort { protocol, requested, .. }) in ports.into_iter().enumerate() {
        let port = match requested {
            None if !gets_node_ports(&spec) => continue,
            None => take_any(pool)?,
            Some(requested) if held.contains(&requested) => requested,
            Some(requested) => take_requested(pool, service, i, requested)?,
        };
        set_node_port(service, i, port);
        held.insert(port);
        if !given.insert((protocol.clone(), port)) {
            return Err(Status::untyped(500, format!("duplicate nodePort: {{{protocol} {port}}}")));
        }
    }
    if needs_health_check(&spec) && !needs_health_check(old) {
        take_health_port(service, pool)?;
    }
    let kept: HashSet<u16> = match service.get("spec").filter(|spec| has_node_ports(spec)) {
        Some(spec) => ports_of(spec).into_iter().collect(),
        None => HashSet::new(),
    };
    Ok(ports_of(old).into_iter().filter(|port| !kept.contains(port)).collect())
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn ports_of_equal_number_share_a_node_port() {
        let spec = json!({"type": "NodePort", "ports": [{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP", "nodePort": 30002}]});
        let mut service = json!({"metadata": {"name": "s"}, "spec": spec});
        create(&mut service, &mut Pool::new(&(30_000..=30_003))).unwrap();
        assert_eq!(node_ports(service.get("spec").unwrap()), [30_002, 30_002]);
        let old = service.get("spec").cloned().unwrap();
        let mut next = json!({"metadata": {"name": "s"}, "spec": {"type": "ClusterIP", "ports": [{"port": 80}]}});
        assert_eq!(update(&mut next, &old, &mut Pool::new(&(30_000..=30_003))).unwrap(), [30_002, 30_002]);
    }

    #[test]
    fn an_update_keeps_node_ports_and_refuses_duplicates() {
        let ports = |ports: Value| json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports}});
        let old = ports(json!([{"port": 1, "protocol": "TCP", "nodePort": 30001}])).get("spec").cloned().unwrap();
        let mut pool = Pool::new(&(30_000..=30_003));
        pool.add(30_001);
        let mut next = ports(json!([
            {"port": 1, "protocol": "TCP", "nodePort": 30001}, {"port": 1, "protocol": "UDP", "nodePort": 30001}, {"port": 2, "protocol": "TCP", "nodePort": 30002}
        ]));
        assert_eq!(update(&mut next, &old, &mut pool).unwrap(), [0; 0]);
        let twice = json!([{"port": 1, "protocol": "TCP", "nodePort": 30003}, {"port": 2, "protocol": "TCP", "nodePort": 30003}]);
        let refused = update(&mut ports(twice), &old, &mut pool).unwrap_err();
        assert_eq!(refused.message, "duplicate nodePort: {TCP 30003}");
    }
}
