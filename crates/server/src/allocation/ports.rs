//! Node ports: the RangeAllocation object with the bitmap of allocated ports.

use base::clock;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::{FieldError, FieldPath, Status, Value, json};
use objects::{Encoded, Key, Objects, Stored};
use resource::builtin::services::{needs_health_check, node_ports};
use std::sync::Arc;
use store::Refused;

use super::ranges::low_part;
use super::{Allocation, Reservation, invalid};
use crate::limits;

const PLURAL: &str = "ranges";
const NAME: &str = "servicenodeports";
const TAKEN: &str = "provided port is already allocated";
const FULL: &str = "range is full";

/// The node ports that a `spec` has.
pub(super) fn of(spec: &Value) -> Vec<u16> {
    let health = needs_health_check(spec).then(|| spec.get("healthCheckNodePort").and_then(Value::as_int)).flatten();
    node_ports(spec).into_iter().chain(health).filter_map(|port| u16::try_from(port).ok()).collect()
}

/// The node ports during the allocation for one Service.
pub(super) struct Pool {
    first: u16,
    /// Whether each port is allocated, by its offset in the range.
    pub taken: Vec<bool>,
    changed: bool,
    /// Ports allocated to this Service.
    own: Vec<u16>,
    dry_run: bool,
}

impl Pool {
    fn index(&self, port: i64) -> Option<usize> {
        usize::try_from(port - i64::from(self.first)).ok().filter(|index| *index < self.taken.len())
    }

    pub fn set(&mut self, port: u16, taken: bool) {
        if let Some(slot) = self.index(i64::from(port)).and_then(|index| self.taken.get_mut(index)) {
            self.changed |= *slot != taken;
            *slot = taken;
        }
    }

    fn text(&self) -> String {
        let last = usize::from(self.first) + self.taken.len() - 1;
        format!("{}-{last}", self.first)
    }

    /// Allocates the given port. The error has kube-apiserver's text.
    fn take(&mut self, port: i64) -> Result<(), String> {
        let number = u16::try_from(port).unwrap_or_default();
        match self.index(port) {
            None if self.dry_run && !self.own.contains(&number) => {}
            None if self.dry_run => return Err(TAKEN.to_owned()),
            None => {
                let valid = self.text();
                return Err(format!("provided port is not in the valid range. The range of valid ports is {valid}"));
            }
            Some(index) if self.taken.get(index) == Some(&true) => return Err(TAKEN.to_owned()),
            Some(_) => self.set(number, true),
        }
        self.own.push(number);
        Ok(())
    }

    /// Allocates any free port; from the low part of the range only if the rest is exhausted.
    fn take_any(&mut self) -> Result<u16, String> {
        if self.dry_run {
            // not reserved, so it only has to differ from the others
            const DUMMY: u16 = 32_768;
            let port = self.own.iter().max().map_or(DUMMY, |port| *port).saturating_add(1);
            self.own.push(port);
            return Ok(port);
        }
        let low = low_part(self.taken.len() as u64, 32, 16, 128) as usize;
        let free = |part: std::ops::Range<usize>| -> Vec<usize> {
            part.filter(|index| self.taken.get(*index) == Some(&false)).collect()
        };
        let mut choice = free(low..self.taken.len());
        if choice.is_empty() {
            choice = free(0..low);
        }
        let index = choice.get(clock::random_below(choice.len() as u64) as usize).ok_or(FULL)?;
        let port = self.first.saturating_add(u16::try_from(*index).unwrap_or(u16::MAX));
        self.set(port, true);
        self.own.push(port);
        Ok(port)
    }
}

/// The bitmap as kube-apiserver stores it: a number whose bits are the ports, highest byte first, without leading zeros.
fn encode(taken: &[bool]) -> String {
    let mut bytes: Vec<u8> = taken
        .chunks(8)
        .map(|bits| bits.iter().enumerate().fold(0, |byte, (i, bit)| byte | u8::from(*bit) << i))
        .collect();
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes.reverse();
    STANDARD.encode(bytes)
}

fn decode(data: &str, size: usize) -> Vec<bool> {
    let bytes = STANDARD.decode(data).unwrap_or_default();
    let bit = |i: usize| bytes.iter().rev().nth(i / 8).is_some_and(|byte| byte >> (i % 8) & 1 == 1);
    (0..size).map(bit).collect()
}

fn key() -> Key {
    Key::new(&"".into(), &PLURAL.into(), "", NAME)
}

fn wrong_port(service: &Value, index: usize, port: i64, why: String) -> Status {
    let path = FieldPath::new("spec").child("ports").index(index).child("nodePort");
    invalid(service, &[FieldError::invalid(&path, &Value::Int(port), why)])
}

impl Allocation {
    /// The stored bitmap of node ports; built from all Services if none is stored for this range.
    fn pool(&self, objects: &Arc<Objects>, current: Option<&Stored>, dry_run: bool) -> Pool {
        let range = self.ranges.ports();
        let taken = vec![false; range.len()];
        let mut pool = Pool { first: *range.start(), taken, changed: false, own: vec![], dry_run };
        let stored = current.map(|current| current.body.to_value(current.revision));
        match stored.filter(|stored| stored.str_at(&["range"]) == pool.text()) {
            Some(stored) => pool.taken = decode(stored.str_at(&["data"]), pool.taken.len()),
            None => {
                let services = super::services(objects);
                let ports = services.iter().filter_map(|service| service.get("spec")).flat_map(of);
                ports.for_each(|port| pool.set(port, true));
                pool.changed = true;
            }
        }
        pool
    }

    /// Updates the stored bitmap; on a conflict with another server, `work` runs again.
    pub(super) async fn change_ports<T>(
        &self,
        objects: &Arc<Objects>,
        dry_run: bool,
        mut work: impl FnMut(&mut Pool) -> Result<T, Status>,
    ) -> Result<T, Status> {
        let key = key();
        let collection = objects.collection(&key.group, &key.plural);
        for _ in 0..limits::WRITE_RETRIES {
            let current = collection.get(&key.path);
            let mut pool = self.pool(objects, current.as_deref(), dry_run);
            let outcome = work(&mut pool)?;
            if dry_run || !pool.changed {
                return Ok(outcome);
            }
            let object = json!({"apiVersion": "v1", "kind": "RangeAllocation", "metadata": {"name": NAME},
                "range": (pool.text()), "data": (encode(&pool.taken))});
            let revision = current.map(|current| current.revision);
            match objects.put(&key, Encoded::of(&object), revision).await {
                Ok(_) => return Ok(outcome),
                Err(Refused::Conflict(_)) => {
                    objects.catch_up().await.map_err(|error| Status::internal(error.to_string()))?;
                }
                Err(Refused::Failed(error)) => return Err(Status::internal(error.to_string())),
            }
        }
        Err(Status::internal("the node ports change all the time"))
    }

    pub(super) async fn allocate_ports(
        &self,
        objects: &Arc<Objects>,
        service: &mut Value,
        old: Option<&Value>,
        dry_run: bool,
        reservation: &mut Reservation,
    ) -> Result<(), Status> {
        let spec = service.get("spec").cloned().unwrap_or_default();
        if !has_node_ports(&spec) && !old.is_some_and(has_node_ports) {
            return Ok(());
        }
        let work = |pool: &mut Pool| {
            let mut planned = service.clone();
            let released = match old {
                None => plan_create(&mut planned, pool).map(|()| vec![]),
                Some(old) => plan_update(&mut planned, old, pool),
            };
            released.map(|released| (planned, std::mem::take(&mut pool.own), released))
        };
        let (planned, taken, released) = self.change_ports(objects, dry_run, work).await?;
        *service = planned;
        if !dry_run {
            reservation.taken.ports = taken;
            reservation.released.ports = released;
        }
        Ok(())
    }

    pub(super) async fn release_ports(&self, objects: &Arc<Objects>, ports: &[u16]) -> Result<(), Status> {
        let release = |pool: &mut Pool| {
            ports.iter().for_each(|port| pool.set(*port, false));
            Ok(())
        };
        self.change_ports(objects, false, release).await
    }
}

fn has_node_ports(spec: &Value) -> bool {
    matches!(spec.str_at(&["type"]), "LoadBalancer" | "NodePort")
}

fn gets_node_ports(spec: &Value) -> bool {
    has_node_ports(spec)
        && (spec.str_at(&["type"]) == "NodePort"
            || spec.get("allocateLoadBalancerNodePorts") == Some(&Value::Bool(true)))
}

/// The `port`, the protocol and the node port of each port.
fn numbers(spec: &Value) -> Vec<(i64, String, i64)> {
    let number = |port: &Value, name: &str| port.get(name).and_then(Value::as_int).unwrap_or_default();
    let ports = spec.get("ports").and_then(Value::as_array).unwrap_or_default();
    let of = |port: &Value| (number(port, "port"), port.str_at(&["protocol"]).to_owned(), number(port, "nodePort"));
    ports.iter().map(of).collect()
}

fn set_node_port(service: &mut Value, index: usize, port: i64) {
    let ports = service.get_mut("spec").and_then(|spec| spec.get_mut("ports")).and_then(Value::as_array_mut);
    if let Some(entry) = ports.and_then(|ports| ports.get_mut(index)) {
        entry.set_at(&["nodePort"], Value::Int(port));
    }
}

fn full(why: String) -> Status {
    Status::internal(format!("failed to allocate a nodePort: {why}"))
}

/// Allocates node ports for a new Service. Ports with the same number (of different protocols) share one node port.
fn plan_create(service: &mut Value, pool: &mut Pool) -> Result<(), Status> {
    let spec = service.get("spec").cloned().unwrap_or_default();
    let (ports, all) = (numbers(&spec), gets_node_ports(&spec));
    let mut shared = std::collections::HashMap::new();
    for (i, (port, _, wanted)) in ports.iter().enumerate().filter(|_| has_node_ports(&spec)) {
        if *wanted == 0 && !all {
            continue;
        }
        let known = shared.get(port).copied();
        let given = match known {
            Some(known) if *wanted == 0 || *wanted == known => known,
            Some(_) => {
                pool.take(*wanted).map_err(|why| wrong_port(service, i, *wanted, why))?;
                *wanted
            }
            None => {
                let asked =
                    ports.iter().find(|(other, _, wanted)| other == port && *wanted != 0).map(|(.., wanted)| *wanted);
                let given = match asked {
                    Some(asked) => {
                        pool.take(asked).map(|()| asked).map_err(|why| wrong_port(service, i, asked, why))?
                    }
                    None => i64::from(pool.take_any().map_err(full)?),
                };
                shared.insert(*port, given);
                given
            }
        };
        set_node_port(service, i, given);
    }
    if needs_health_check(&spec) {
        take_health_port(service, pool)?;
    }
    Ok(())
}

fn take_health_port(service: &mut Value, pool: &mut Pool) -> Result<(), Status> {
    let path = ["spec", "healthCheckNodePort"];
    match service.at(&path).and_then(Value::as_int) {
        Some(port) => pool.take(port).map_err(|why| {
            Status::internal(format!("failed to allocate requested HealthCheck NodePort {port}: {why}"))
        }),
        None => {
            let port = pool
                .take_any()
                .map_err(|why| Status::internal(format!("failed to allocate a HealthCheck NodePort 0: {why}")))?;
            service.set_at(&path, Value::Int(i64::from(port)));
            Ok(())
        }
    }
}

/// Allocates node ports for an updated Service, and returns those of the old one that it no longer uses.
fn plan_update(service: &mut Value, old: &Value, pool: &mut Pool) -> Result<Vec<u16>, Status> {
    let spec = service.get("spec").cloned().unwrap_or_default();
    let (before, mut given) = (node_ports(old), vec![]);
    for (i, (_, protocol, wanted)) in numbers(&spec).into_iter().enumerate().filter(|_| has_node_ports(&spec)) {
        let port = match wanted {
            0 if !gets_node_ports(&spec) => continue,
            0 => i64::from(pool.take_any().map_err(full)?),
            wanted => {
                let own = given.iter().any(|(_, known)| *known == wanted);
                if !before.contains(&wanted) && !own {
                    pool.take(wanted).map_err(|why| wrong_port(service, i, wanted, why))?;
                }
                wanted
            }
        };
        set_node_port(service, i, port);
        if given.contains(&(protocol.clone(), port)) {
            return Err(Status::untyped(500, format!("duplicate nodePort: {{{protocol} {port}}}")));
        }
        given.push((protocol, port));
    }
    if needs_health_check(&spec) && !needs_health_check(old) {
        take_health_port(service, pool)?;
    }
    let kept = service.get("spec").map(|spec| if has_node_ports(spec) { of(spec) } else { vec![] }).unwrap_or_default();
    Ok(of(old).into_iter().filter(|port| !kept.contains(port)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_bitmaps_match_kube_apiserver() {
        let mut taken = vec![false; 20];
        for (port, want) in [(0, "AQ=="), (9, "AgE="), (16, "AQIB")] {
            taken[port] = true;
            assert_eq!(encode(&taken), want);
            assert_eq!(decode(want, taken.len()), taken);
        }
    }

    #[test]
    fn each_port_is_allocated_once() {
        let pool = || Pool { first: 30_000, taken: vec![false; 4], changed: false, own: vec![], dry_run: false };
        let mut one = pool();
        assert_eq!(one.take(30_001), Ok(()));
        assert_eq!(one.take(30_001), Err(TAKEN.to_owned()));
        assert!(one.take(30_004).unwrap_err().ends_with("30000-30003"));
        let mut rest: Vec<u16> = (0..3).map(|_| one.take_any().unwrap()).collect();
        rest.sort_unstable();
        assert_eq!((rest, one.take_any()), (vec![30_000, 30_002, 30_003], Err(FULL.to_owned())));
        let spec = json!({"type": "NodePort", "ports": [{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP", "nodePort": 30002}]});
        let mut service = json!({"metadata": {"name": "s"}, "spec": spec});
        plan_create(&mut service, &mut pool()).unwrap();
        assert_eq!(node_ports(service.get("spec").unwrap()), [30_002, 30_002]);
        let old = service.get("spec").cloned().unwrap();
        let mut next = json!({"metadata": {"name": "s"}, "spec": {"type": "ClusterIP", "ports": [{"port": 80}]}});
        assert_eq!(plan_update(&mut next, &old, &mut pool()).unwrap(), [30_002, 30_002]);
    }
}
