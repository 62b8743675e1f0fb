//! Node ports: the RangeAllocation object with the bitmap of allocated ports.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::{Result, Status, Value, json};
use objects::{Encoded, Key, Objects, Stored};
use store::Refused;

use super::plan::{self, has_node_ports};
use super::pool::{self, Pool};
use super::{Allocation, Reservation};
use crate::limits;

const PLURAL: &str = "ranges";
const NAME: &str = "servicenodeports";

/// The node ports that a write of a Service allocates, and those that it frees.
struct Ports {
    taken: Vec<u16>,
    released: Vec<u16>,
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
    fn pool(&self, objects: &Arc<Objects>, current: Option<&Stored>) -> Pool {
        let mut pool = Pool::new(&self.ranges.ports());
        let stored = current.map(|current| current.body.to_value(current.revision));
        match stored.filter(|stored| stored.str_at(&["range"]) == pool.text()) {
            Some(stored) => pool.taken = decode(stored.str_at(&["data"]), pool.taken.len()),
            None => {
                let services = super::services(objects);
                let ports = services.iter().filter_map(|service| service.get("spec")).flat_map(pool::ports_of);
                ports.for_each(|port| pool.add(port));
                pool.changed = true;
            }
        }
        pool
    }

    /// Updates the stored bitmap; on a conflict with another server, `work` runs again.
    pub(super) async fn change_ports<T>(
        &self,
        objects: &Arc<Objects>,
        mut work: impl FnMut(&mut Pool) -> Result<T>,
    ) -> Result<T> {
        let key = key();
        let collection = objects.collection(&key.group, &key.plural);
        for _ in 0..limits::WRITE_RETRIES {
            let current = collection.get(&key.path);
            let mut pool = self.pool(objects, current.as_deref());
            let outcome = work(&mut pool)?;
            if !pool.changed {
                return Ok(outcome);
            }
            let object = json!({"apiVersion": "v1", "kind": "RangeAllocation", "metadata": {"name": NAME},
                "range": (pool.text()), "data": (encode(&pool.taken))});
            let revision = current.map(|current| current.revision);
            match objects.put(&key, Encoded::of(&object), revision).await {
                Ok(_) => return Ok(outcome),
                Err(Refused::Conflict(_)) => {
                    objects.catch_up().await.map_err(|error| objects::failure(&error))?;
                }
                Err(Refused::Failed(error)) => return Err(objects::failure(&error)),
            }
        }
        Err(Status::internal("the node ports change all the time"))
    }

    /// The result of `work` on the ports of a dry run, which are not stored.
    pub(super) fn try_ports<T>(&self, objects: &Arc<Objects>, work: impl FnOnce(&mut Pool) -> T) -> T {
        let key = key();
        let current = objects.collection(&key.group, &key.plural).get(&key.path);
        work(&mut self.pool(objects, current.as_deref()).dry())
    }

    pub(super) async fn allocate_ports(
        &self,
        objects: &Arc<Objects>,
        service: &mut Value,
        old: Option<&Value>,
        reservation: &mut Reservation,
    ) -> Result<()> {
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
        if reservation.dry_run {
            (*service, _) = self.try_ports(objects, work)?;
            return Ok(());
        }
        let (planned, ports) = self.change_ports(objects, work).await?;
        *service = planned;
        reservation.taken.ports = ports.taken;
        reservation.released.ports = ports.released;
        Ok(())
    }

    pub(super) async fn release_ports(&self, objects: &Arc<Objects>, ports: &[u16]) -> Result<()> {
        let release = |pool: &mut Pool| {
            ports.iter().for_each(|port| pool.remove(*port));
            Ok(())
        };
        self.change_ports(objects, release).await
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
}
