//! Allocation of the cluster IPs and node ports of Services.
//!
//! Both are stored as kube-apiserver stores them: an address is reserved by creating its IPAddress object, which fails if
//! it exists; the node ports are one bitmap, updated with its revision as a precondition. So servers that share an etcd,
//! Pintle or kube-apiserver, never allocate the same value twice. Values are reserved before the Service is written and
//! released after it no longer uses them; [`Allocation::repair`] cleans up after a crash between the two.

mod addresses;
mod plan;
mod pool;
mod ports;
mod ranges;
mod repair;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use kinds::core::services;
use machinery::{FieldError, Release, Result, Status, Value};
use objects::{Objects, Stored};

pub use addresses::RESOURCE as ADDRESSES;
pub use ranges::Ranges;
pub use repair::{Unowned, UnownedReservations};

/// The allocator of cluster IPs and node ports.
#[derive(Default)]
pub struct Allocation {
    ranges: Ranges,
}

/// The objects of a server, and its writes of IPAddresses, which go through the verbs like all others.
pub trait AddressObjects: Sync {
    fn objects(&self) -> &Arc<Objects>;
    /// Creates an IPAddress; the reason of the error is `AlreadyExists` if the address is reserved.
    fn create(&self, address: Value) -> BoxFuture<'_, Result<()>>;
    /// Deletes an IPAddress unless it has changed meanwhile.
    fn delete(&self, address: Arc<Stored>) -> BoxFuture<'_, Result<()>>;
}

/// The values that are reserved for a Service that is about to be written, and those that it releases once it is.
#[derive(Debug, Default)]
pub struct Reservation {
    taken: Reserved,
    released: Reserved,
    /// Nothing is reserved or released.
    dry_run: bool,
}

/// Addresses and node ports.
#[derive(Debug, Default)]
struct Reserved {
    addresses: Vec<IpAddr>,
    ports: Vec<u16>,
}

/// All stored Services.
fn services(objects: &Arc<Objects>) -> Vec<Value> {
    let (root, _) = objects.collection(&"".into(), &"services".into()).latest();
    root.iter().map(|(_, stored)| stored.body.to_value(stored.revision)).collect()
}

fn invalid(service: &Value, errors: &[FieldError]) -> Status {
    Status::invalid("", "Service", service.str_at(&["metadata", "name"]), errors)
}

impl Allocation {
    pub fn new(ranges: Ranges) -> Allocation {
        Allocation { ranges }
    }

    /// The address of the Service `default/kubernetes`.
    pub fn own_address(&self) -> Option<IpAddr> {
        self.ranges.own_address()
    }

    /// The networks of cluster IPs, such as `10.0.0.0/24`.
    pub fn networks(&self) -> Vec<String> {
        self.ranges.networks()
    }

    /// Fills in the dependent fields of a Service, and reserves the addresses and node ports that it needs or requests. `old`
    /// is the Service that it replaces. A dry run gets values that are not reserved. On an error, which is the response,
    /// nothing stays reserved.
    pub async fn begin(
        &self,
        server: &dyn AddressObjects,
        service: &mut Value,
        old: Option<&Value>,
        dry_run: bool,
        release: Release,
    ) -> Result<Reservation> {
        let old_spec = old.and_then(|old| old.get("spec"));
        if service.get("spec").is_none() {
            service.set_at(&["spec"], Value::object());
        }
        let completed = match service.get_mut("spec") {
            Some(spec) => services::addresses::complete(spec, old_spec, self.ranges.families(), release),
            None => Ok(()),
        };
        completed.map_err(|errors| invalid(service, &errors))?;
        let mut reservation = Reservation { dry_run, ..Reservation::default() };
        let allocated = self.allocate(server, service, old_spec, &mut reservation).await;
        match allocated {
            Ok(()) => Ok(reservation),
            Err(status) => {
                self.cancel(server, reservation).await;
                Err(status)
            }
        }
    }

    async fn allocate(
        &self,
        server: &dyn AddressObjects,
        service: &mut Value,
        old: Option<&Value>,
        reservation: &mut Reservation,
    ) -> Result<()> {
        self.allocate_addresses(server, service, old, reservation).await?;
        self.allocate_ports(server.objects(), service, old, reservation).await
    }

    /// Completes a reservation after its Service was written: releases what the Service no longer uses.
    pub async fn complete(&self, server: &dyn AddressObjects, reservation: Reservation) {
        self.release(server, reservation.released).await;
    }

    /// Cancels a reservation whose Service was not written.
    pub async fn cancel(&self, server: &dyn AddressObjects, reservation: Reservation) {
        self.release(server, reservation.taken).await;
    }

    pub async fn release_all(&self, server: &dyn AddressObjects, service: &Value) {
        if let Some(spec) = service.get("spec") {
            let held = Reserved { addresses: addresses::of(spec), ports: pool::ports_of(spec) };
            self.release(server, held).await;
        }
    }

    /// Releases values; those that cannot be released now are released by the next repair.
    async fn release(&self, server: &dyn AddressObjects, held: Reserved) {
        for address in held.addresses {
            addresses::release(server, address).await;
        }
        if !held.ports.is_empty()
            && let Err(status) = self.release_ports(server.objects(), &held.ports).await
        {
            tracing::warn!(error = %status, "node ports cannot be released; the next repair will do so");
        }
    }
}
