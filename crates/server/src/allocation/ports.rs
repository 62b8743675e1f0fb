//! Node ports: the RangeAllocation object with the bitmap of allocated ports.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use base::clock;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::{Status, Value, json};
use objects::{Encoded, Key, Objects, Stored};
use resource::builtin::services::{needs_health_check, node_ports};
use store::Refused;

use super::plan::{self, has_node_ports};
use super::ranges::low_part;
use super::{Allocation, Reservation};
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

/// The node ports that a write of a Service allocates and no longer needs.
struct Ports {
    taken: Vec<u16>,
    released: Vec<u16>,
}

/// The node ports during the allocation for one Service.
pub(super) struct Pool {
    first: u16,
    /// Whether each port is allocated, by its offset in the range.
    pub taken: Vec<bool>,
    changed: bool,
    /// Ports allocated to this Service.
    allocated: BTreeSet<u16>,
    dry_run: bool,
}

impl Pool {
    /// A range without allocated ports, for tests.
    #[cfg(test)]
    pub fn free(first: u16, size: usize) -> Pool {
        Pool { first, taken: vec![false; size], changed: false, allocated: BTreeSet::new(), dry_run: false }
    }

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
    pub fn take(&mut self, port: i64) -> Result<(), String> {
        let number = u16::try_from(port).unwrap_or_default();
        match self.index(port) {
            // a dry run allows any port once
            None if self.dry_run && !self.allocated.contains(&number) => {}
            None if self.dry_run => return Err(TAKEN.to_owned()),
            None => {
                let valid = self.text();
                return Err(format!("provided port is not in the valid range. The range of valid ports is {valid}"));
            }
            Some(index) if self.taken.get(index) == Some(&true) => return Err(TAKEN.to_owned()),
            Some(_) => self.set(number, true),
        }
        self.allocated.insert(number);
        Ok(())
    }

    /// Allocates any free port; from the low part of the range only if the rest is exhausted.
    pub fn take_any(&mut self) -> Result<u16, String> {
        if self.dry_run {
            // not reserved, so it only has to differ from the others
            const DUMMY: u16 = 32_768;
            let port = self.allocated.last().map_or(DUMMY, |port| *port).saturating_add(1);
            self.allocated.insert(port);
            return Ok(port);
        }
        let low = low_part(self.taken.len() as u64, 32, 16, 128) as usize;
        let found = self.free_in(low..self.taken.len()).or_else(|| self.free_in(0..low));
        let index = found.ok_or(FULL)?;
        let port = self.first.saturating_add(u16::try_from(index).unwrap_or(u16::MAX));
        self.set(port, true);
        self.allocated.insert(port);
        Ok(port)
    }

    /// The first free index at or after a random one, within a part of the range and from its end to its start.
    fn free_in(&self, part: Range<usize>) -> Option<usize> {
        let start = part.start + clock::random_below(part.len() as u64) as usize;
        (start..part.end).chain(part.start..start).find(|index| self.taken.get(*index) == Some(&false))
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

impl Allocation {
    /// The stored bitmap of node ports; built from all Services if none is stored for this range.
    fn pool(&self, objects: &Arc<Objects>, current: Option<&Stored>, dry_run: bool) -> Pool {
        let range = self.ranges.ports();
        let taken = vec![false; range.len()];
        let mut pool = Pool { first: *range.start(), taken, changed: false, allocated: BTreeSet::new(), dry_run };
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
                None => plan::create(&mut planned, pool).map(|()| vec![])?,
                Some(old) => plan::update(&mut planned, old, pool)?,
            };
            let taken = std::mem::take(&mut pool.allocated).into_iter().collect();
            Ok((planned, Ports { taken, released }))
        };
        let (planned, ports) = self.change_ports(objects, dry_run, work).await?;
        *service = planned;
        if !dry_run {
            reservation.taken.ports = ports.taken;
            reservation.released.ports = ports.released;
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
        let mut one = Pool::free(30_000, 4);
        assert_eq!(one.take(30_001), Ok(()));
        assert_eq!(one.take(30_001), Err(TAKEN.to_owned()));
        assert!(one.take(30_004).unwrap_err().ends_with("30000-30003"));
        let mut rest: Vec<u16> = (0..3).map(|_| one.take_any().unwrap()).collect();
        rest.sort_unstable();
        assert_eq!((rest, one.take_any()), (vec![30_000, 30_002, 30_003], Err(FULL.to_owned())));
    }
}
