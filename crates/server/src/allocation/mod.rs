//! Cluster IPs and node ports of Services: who has which.
//!
//! Both are kept as kube-apiserver keeps them: an address is taken by creating its IPAddress, which fails if another
//! server has taken it; the node ports are one bitmap, which is replaced if it is still the one that was read. So several
//! servers on one etcd, of either kind, give nothing twice. What is taken is reserved before the Service is written, and
//! what it no longer has is released afterwards; [`Allocation::repair`] puts right what a crash left between the two.

mod addresses;
mod ports;
mod ranges;
mod repair;
#[cfg(test)]
mod tests;

use machinery::{FieldError, Release, Status, Value};
use std::sync::Arc;

use objects::Objects;
use resource::builtin::services;

pub use ranges::Ranges;
pub use repair::Suspects;

/// Allocates for the Services of one server.
#[derive(Default)]
pub struct Allocation {
    ranges: Ranges,
}

/// What a Service that is about to be written has been given, and what it gives back.
#[derive(Debug, Default)]
pub struct Reservation {
    taken: Held,
    released: Held,
}

/// Addresses and node ports.
#[derive(Debug, Default)]
struct Held {
    addresses: Vec<std::net::IpAddr>,
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

    /// Completes the linked fields of a Service, and reserves the addresses and node ports that it lacks or asks for.
    /// `old` is the Service that it is to replace. A dry run gets values that are not reserved. The error is the
    /// response; then nothing stays reserved.
    pub async fn begin(
        &self,
        objects: &Arc<Objects>,
        service: &mut Value,
        old: Option<&Value>,
        dry_run: bool,
        release: Release,
    ) -> Result<Reservation, Status> {
        let old_spec = old.and_then(|old| old.get("spec"));
        if service.get("spec").is_none() {
            service.set_at(&["spec"], Value::object());
        }
        let completed = match service.get_mut("spec") {
            Some(spec) => services::addresses::complete(spec, old_spec, self.ranges.families(), release),
            None => Ok(()),
        };
        completed.map_err(|errors| invalid(service, &errors))?;
        let mut reservation = Reservation::default();
        let allocated = self.allocate(objects, service, old_spec, dry_run, &mut reservation).await;
        match allocated {
            Ok(()) => Ok(reservation),
            Err(status) => {
                self.release(objects, reservation.taken).await;
                Err(status)
            }
        }
    }

    async fn allocate(
        &self,
        objects: &Arc<Objects>,
        service: &mut Value,
        old: Option<&Value>,
        dry_run: bool,
        reservation: &mut Reservation,
    ) -> Result<(), Status> {
        self.allocate_addresses(objects, service, old, dry_run, reservation).await?;
        self.allocate_ports(objects, service, old, dry_run, reservation).await
    }

    /// Ends a reservation: the Service was written, or it was not.
    pub async fn finish(&self, objects: &Arc<Objects>, reservation: Reservation, written: bool) {
        self.release(objects, if written { reservation.released } else { reservation.taken }).await;
    }

    /// Releases what a deleted Service had.
    pub async fn release_all(&self, objects: &Arc<Objects>, service: &Value) {
        if let Some(spec) = service.get("spec") {
            let held = Held { addresses: addresses::of(spec), ports: ports::of(spec) };
            self.release(objects, held).await;
        }
    }

    /// Whatever cannot be released now, the next repair releases.
    async fn release(&self, objects: &Arc<Objects>, held: Held) {
        for address in held.addresses {
            addresses::release(objects, address).await;
        }
        if !held.ports.is_empty()
            && let Err(status) = self.release_ports(objects, &held.ports).await
        {
            tracing::warn!(error = %status, "node ports could not be released");
        }
    }
}
