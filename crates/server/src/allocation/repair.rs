//! Repair: makes the reserved addresses and node ports equal to those of the stored Services.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use machinery::{Result, Value};
use objects::Objects;

use super::pool::{self, Pool};
use super::{AddressObjects, Allocation, Reserved, addresses};

/// Reservations that had no Service at the last repair. Their Services may be about to be written, so a reservation is
/// released only if it has no Service at the next repair either.
#[derive(Debug, Default)]
pub struct UnownedReservations {
    addresses: BTreeSet<IpAddr>,
    ports: BTreeSet<u16>,
}

/// When reservations without a Service are released.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unowned {
    /// By this repair: no Service is being written.
    ReleasedNow,
    /// By the repair that finds them without a Service for the second time.
    ReleasedLater,
}

impl Allocation {
    /// Reserves the addresses and ports of stored Services, and releases reservations without a Service. `suspects`
    /// are the unowned reservations that the last repair found, and are replaced by those that this repair finds.
    pub async fn repair(
        &self,
        server: &dyn AddressObjects,
        suspects: &mut UnownedReservations,
        release: Unowned,
    ) -> Result<()> {
        let services = super::services(server.objects());
        let specs = || services.iter().filter_map(|service| Some((service, service.get("spec")?)));
        let owners: BTreeMap<IpAddr, &Value> =
            specs().flat_map(|(service, spec)| addresses::of(spec).into_iter().map(move |ip| (ip, service))).collect();
        let reserved = reserved(server.objects());
        for (address, service) in owners.iter().filter(|(ip, _)| self.ranges.holds(**ip) && !reserved.contains(*ip)) {
            addresses::restore(server, *address, service).await?;
        }
        let unowned: BTreeSet<IpAddr> = reserved.into_iter().filter(|address| !owners.contains_key(address)).collect();
        let leaked =
            unowned.iter().filter(|address| release == Unowned::ReleasedNow || suspects.addresses.contains(address));
        let released = Reserved { addresses: leaked.copied().collect(), ports: vec![] };
        self.release(server, released).await;
        let known: BTreeSet<u16> = specs().flat_map(|(_, spec)| pool::ports_of(spec)).collect();
        let before = std::mem::take(suspects);
        suspects.addresses = unowned;
        suspects.ports = self.repair_ports(server, &known, &before.ports, release).await?;
        Ok(())
    }

    /// Reserves the ports that stored Services use; returns the reserved ports that no Service uses.
    async fn repair_ports(
        &self,
        server: &dyn AddressObjects,
        known: &BTreeSet<u16>,
        suspects: &BTreeSet<u16>,
        release: Unowned,
    ) -> Result<BTreeSet<u16>> {
        let first = *self.ranges.ports().start();
        let work = |pool: &mut Pool| {
            let ports = (first..).zip(pool.taken.clone()).filter(|(_, taken)| *taken).map(|(port, _)| port);
            let unowned: BTreeSet<u16> = ports.filter(|port| !known.contains(port)).collect();
            known.iter().for_each(|port| pool.add(*port));
            for port in unowned.iter().filter(|port| release == Unowned::ReleasedNow || suspects.contains(port)) {
                pool.remove(*port);
            }
            Ok(unowned)
        };
        self.change_ports(server.objects(), work).await
    }
}

/// The reserved addresses: each has an IPAddress object that Pintle or kube-apiserver manages.
fn reserved(objects: &Arc<Objects>) -> BTreeSet<IpAddr> {
    let (root, _) = addresses::collection(objects).latest();
    let managed =
        root.iter().filter(|(_, stored)| stored.meta.label(addresses::MANAGER_LABEL) == Some(addresses::MANAGER));
    managed.filter_map(|(name, _)| name.parse().ok()).collect()
}
