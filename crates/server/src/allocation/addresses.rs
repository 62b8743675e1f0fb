//! Cluster IPs: one IPAddress object for each that is reserved.

use std::net::IpAddr;
use std::sync::Arc;

use base::clock;
use kinds::core::services::addresses::{allocates_addresses, keeps_addresses};
use kinds::core::services::is_external_name;
use kinds::ip::{self, Family};
use machinery::status::Reason;
use machinery::{FieldError, FieldPath, Result, Status, Text, Value, json};
use objects::{Collection, Objects};
use schema::definition::is_condition_true;

use super::ranges::Network;
use super::{AddressObjects, Allocation, Reservation, invalid};
use crate::limits;

/// The group and the plural of IPAddresses.
pub const RESOURCE: (&str, &str) = ("networking.k8s.io", "ipaddresses");
/// The plural of ServiceCIDRs, of the same group.
const SERVICE_NETWORKS: &str = "servicecidrs";
pub(super) const FAMILY_LABEL: &str = "ipaddress.kubernetes.io/ip-family";
pub(super) const MANAGER_LABEL: &str = "ipaddress.kubernetes.io/managed-by";
pub(super) const MANAGER: &str = "ipallocator.k8s.io";

/// Why an address could not be reserved.
enum Failure {
    Taken,
    Full,
    /// The IPAddress could not be written.
    Store(Status),
}

pub(super) fn collection(objects: &Arc<Objects>) -> Arc<Collection> {
    let (group, plural) = RESOURCE;
    objects.collection(&group.into(), &plural.into())
}

fn texts(spec: &Value, name: &str) -> Vec<Text> {
    spec.items_at(&[name]).iter().map(|item| Text::from(item.as_str().unwrap_or_default())).collect()
}

pub(super) fn of(spec: &Value) -> Vec<IpAddr> {
    if allocates_addresses(spec) {
        texts(spec, "clusterIPs").iter().filter_map(|text| ip::parse(text)).collect()
    } else {
        vec![]
    }
}

/// Releases an address. It may have been released before, or allocated to another Service since.
pub(super) async fn release(server: &dyn AddressObjects, address: IpAddr) {
    let Some(current) = collection(server.objects()).get(&address.to_string()) else { return };
    if let Err(error) = server.delete(current).await {
        tracing::warn!(%address, %error, "a cluster IP cannot be released; the next repair will do so");
    }
}

impl Allocation {
    pub(super) async fn allocate_addresses(
        &self,
        server: &dyn AddressObjects,
        service: &mut Value,
        old: Option<&Value>,
        reservation: &mut Reservation,
    ) -> Result<()> {
        let Some(spec) = service.get("spec") else { return Ok(()) };
        let Some(old) = old.filter(|old| !is_external_name(old) && !of_any(old)) else {
            return if allocates_addresses(spec) {
                self.take_from(0, server, service, reservation).await
            } else {
                Ok(())
            };
        };
        if keeps_addresses(spec, old) || !allocates_addresses(old) {
            return Ok(());
        }
        let (families, before) = (texts(spec, "ipFamilies").len(), texts(old, "ipFamilies").len());
        if is_external_name(spec) {
            reservation.released.addresses = of(old);
        } else if before == 1 && families == 2 && allocates_addresses(spec) {
            self.take_from(1, server, service, reservation).await?;
        } else if before == 2 && families == 1 {
            reservation.released.addresses = of(old).into_iter().skip(1).collect();
        }
        if reservation.dry_run {
            reservation.released.addresses.clear();
        }
        Ok(())
    }

    /// Reserves an address for each family of the Service from index `first` on: the requested one, or any.
    async fn take_from(
        &self,
        first: usize,
        server: &dyn AddressObjects,
        service: &mut Value,
        reservation: &mut Reservation,
    ) -> Result<()> {
        let spec = service.get("spec").cloned().unwrap_or_default();
        let mut all = texts(&spec, "clusterIPs");
        let families = texts(&spec, "ipFamilies");
        all.resize(families.len().max(all.len()), Text::default());
        for (i, family) in families.iter().enumerate().skip(first) {
            let Some(network) = Family::parse(family).and_then(|family| self.ranges.of_family(family)) else {
                continue;
            };
            let networks = networks(server, network);
            let taken = match reservation.dry_run {
                true => dry(&networks, &all[i]),
                false => self.take(server, &networks, service, &all[i]).await,
            };
            let address = taken.map_err(|why| refused(service, &all, why))?;
            // no other Service can have the server's own address, and another server may have created the Service with it
            if !reservation.dry_run && !self.is_of_server(address, service) {
                reservation.taken.addresses.push(address);
            }
            if all[i].is_empty() {
                all[i] = Text::from(address.to_string());
            }
        }
        if let Some(first) = all.first() {
            service.set_at(&["spec", "clusterIP"], Value::String(first.clone()));
            service.set_at(&["spec", "clusterIPs"], all.into_iter().map(Value::String).collect());
        }
        Ok(())
    }

    async fn take(
        &self,
        server: &dyn AddressObjects,
        networks: &[Network],
        service: &Value,
        wanted: &str,
    ) -> Result<IpAddr, Refusal> {
        if wanted.is_empty() {
            for network in networks {
                match self.take_any(server, network, service).await {
                    Ok(address) => return Ok(address),
                    Err(Failure::Full | Failure::Taken) => {}
                    Err(Failure::Store(status)) => return Err(unwritten("failed to allocate IP", status)),
                }
            }
            let name = service.str_at(&["metadata", "name"]);
            return Err(Refusal::Internal(format!(
                "failed to allocate a serviceIP for Service {name:?}: range is full"
            )));
        }
        let address =
            ip::parse(wanted).ok_or_else(|| Refusal::Internal(format!("failed to parse service IP {wanted:?}")))?;
        let why = if networks.iter().any(|network| network.holds(address)) {
            match self.reserve(server, address, service).await {
                Ok(()) => return Ok(address),
                // a server has ended between the writes of the IPAddress and of its Service, in this order or the other
                Err(Failure::Taken)
                    if self.is_of_server(address, service) && is_reserved_for(server, address, service) =>
                {
                    return Ok(address);
                }
                Err(Failure::Store(status)) => {
                    return Err(unwritten(&format!("failed to allocate IP {wanted}"), status));
                }
                Err(_) => "provided IP is already allocated".to_owned(),
            }
        } else {
            "the provided network does not match the current range".to_owned()
        };
        Err(Refusal::Invalid(format!("failed to allocate IP {wanted}: {why}")))
    }

    /// Reserves a free address; from the low part of the network only if the rest is exhausted. The search starts at a random
    /// address, so that servers rarely conflict.
    async fn take_any(
        &self,
        server: &dyn AddressObjects,
        network: &Network,
        service: &Value,
    ) -> Result<IpAddr, Failure> {
        let known = collection(server.objects());
        let (low, size) = (network.low(), network.size());
        for (first, count) in [(low + 1, size - low), (1, low)] {
            let start = clock::shown_below(count, || {
                format!("{}/{}", service.str_at(&["metadata", "namespace"]), service.str_at(&["metadata", "name"]))
            });
            for step in 0..count.min(limits::ALLOCATION_LOOKUPS) {
                let address = network.nth(first + start.wrapping_add(step) % count);
                if known.get(&address.to_string()).is_some() {
                    continue;
                }
                match self.reserve(server, address, service).await {
                    Err(Failure::Taken) => {}
                    other => return other.map(|()| address),
                }
            }
        }
        Err(Failure::Full)
    }

    async fn reserve(&self, server: &dyn AddressObjects, address: IpAddr, service: &Value) -> Result<(), Failure> {
        if self.ranges.own_address() == Some(address) && !self.is_of_server(address, service) {
            return Err(Failure::Taken);
        }
        create(server, address, service).await
    }

    /// Whether this is the Service of the server itself with the address that is kept for it.
    fn is_of_server(&self, address: IpAddr, service: &Value) -> bool {
        self.ranges.own_address() == Some(address) && name_of(service) == ["default", "kubernetes"]
    }
}

fn name_of(service: &Value) -> [&str; 2] {
    ["namespace", "name"].map(|key| service.str_at(&["metadata", key]))
}

/// Whether the IPAddress of an address names this Service as its parent.
fn is_reserved_for(server: &dyn AddressObjects, address: IpAddr, service: &Value) -> bool {
    let Some(stored) = collection(server.objects()).get(&address.to_string()) else { return false };
    let stored = stored.body.to_value(stored.revision);
    let parent = |field| stored.str_at(&["spec", "parentRef", field]);
    parent("resource") == "services" && ["namespace", "name"].map(parent) == name_of(service)
}

/// The networks of a family: that of the server, and those of the ServiceCIDRs that are ready.
fn networks(server: &dyn AddressObjects, own: &Network) -> Vec<Network> {
    let (all, _) = server.objects().collection(&RESOURCE.0.into(), &SERVICE_NETWORKS.into()).latest();
    let mut networks = vec![*own];
    for stored in all.values().filter(|stored| !stored.meta.deleting) {
        let object = stored.body.to_value(stored.revision);
        if is_condition_true(&object, "Ready") {
            let found = object.texts_at(&["spec", "cidrs"]).filter_map(Network::of_object);
            networks.extend(found.filter(|network| network.family() == own.family()));
        }
    }
    networks
}

/// Whether a stored `spec` has no address although it should: it was written before Pintle allocated addresses.
fn of_any(old: &Value) -> bool {
    allocates_addresses(old) && old.get("clusterIPs").is_none()
}

/// The response to a Service whose address cannot be reserved.
enum Refusal {
    Invalid(String),
    Internal(String),
    /// As `Invalid`, with a cause for the log.
    Unwritten(String, String),
}

/// The refusal for an IPAddress that could not be written.
fn unwritten(what: &str, status: Status) -> Refusal {
    let details = status.details.as_ref().filter(|_| status.reason == Reason::InternalError);
    // the cause of an internal error is its message without the words that introduce it
    let why = details.and_then(|details| details.causes.first()).map_or(&status.message, |cause| &cause.message);
    Refusal::Unwritten(format!("{what}: {why}"), status.cause.clone())
}

fn refused(service: &Value, all: &[Text], refusal: Refusal) -> Status {
    let invalid = |why| {
        let all: Value = all.iter().cloned().map(Value::String).collect();
        invalid(service, &[FieldError::invalid(&FieldPath::new("spec").child("clusterIPs"), &all, why)])
    };
    match refusal {
        Refusal::Internal(why) => Status::internal(why),
        Refusal::Invalid(why) => invalid(why),
        Refusal::Unwritten(why, cause) => invalid(why).caused_by(cause),
    }
}

/// The address in a dry run: the requested one, or else the address of the network itself.
fn dry(networks: &[Network], wanted: &str) -> Result<IpAddr, Refusal> {
    let Some(network) = networks.first() else { return Err(Refusal::Internal("there is no network".to_owned())) };
    match ip::parse(wanted) {
        None => Ok(network.nth(0)),
        Some(address) if networks.iter().any(|network| network.holds(address)) => Ok(address),
        Some(address) => Err(Refusal::Invalid(format!(
            "failed to allocate IP {wanted}: the provided IP ({address}) is not in the valid range. The range of valid IPs is {}",
            network.0
        ))),
    }
}

async fn create(server: &dyn AddressObjects, address: IpAddr, service: &Value) -> Result<(), Failure> {
    let [namespace, name] = name_of(service);
    let mut labels = Value::object();
    labels.set_at(&[FAMILY_LABEL], Value::from(Family::of(address).as_str()));
    labels.set_at(&[MANAGER_LABEL], Value::from(MANAGER));
    let object = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
        "metadata": {"name": (address.to_string()), "labels": labels},
        "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": name}}
    });
    match server.create(object).await {
        Ok(()) => Ok(()),
        Err(status) if status.reason == Reason::AlreadyExists => Err(Failure::Taken),
        Err(status) => Err(Failure::Store(status)),
    }
}

/// Reserves an address that a stored Service uses.
pub(super) async fn restore(server: &dyn AddressObjects, address: IpAddr, service: &Value) -> Result<()> {
    match create(server, address, service).await {
        Ok(()) | Err(Failure::Taken | Failure::Full) => Ok(()),
        Err(Failure::Store(status)) => Err(status),
    }
}
