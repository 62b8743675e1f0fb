//! The objects of the control plane: the Service `kubernetes` with its Endpoints and EndpointSlice, the Lease of the
//! server, the default ServiceCIDR, and the PriorityClasses of system Pods. They are created at the start, and again
//! when they have been deleted.

use std::net::IpAddr;

use base::clock;
use base::digest::sha256;
use machinery::status::Reason;
use machinery::{Result, Value, json};
use resource::Subresource;

use super::as_server::SERVER;
use super::context::Context;
use super::patch::PatchKind;
use super::upkeep::{PLAIN, create_of};
use crate::limits;

/// The name of the server's Service, its Endpoints and EndpointSlice, and the ServiceCIDR.
const NAME: &str = "kubernetes";
const NAMESPACE: &str = "default";
const LEASE_NAMESPACE: &str = "kube-system";
const CIDR_CONTROLLER: &str = "kubernetes-service-cidr-controller";

/// The identity of a server in the objects of the control plane.
#[derive(Clone, Debug)]
pub struct ControlPlane {
    pub port: u16,
    /// The address of the server for clients; `None` if it is a loopback address, which Endpoints may not contain.
    pub address: Option<IpAddr>,
    pub hostname: String,
    /// Identifies this run of the server; `None` if it has no Lease that announces it.
    pub run: Option<String>,
}

/// Creates the missing objects. Their namespaces must exist.
pub async fn create(context: &Context, plane: &ControlPlane) -> Result<()> {
    tokio::try_join!(
        create_service(context, plane),
        create_of(context, PLAIN, "", "endpoints", plane.endpoints()),
        create_of(context, PLAIN, "discovery.k8s.io", "endpointslices", plane.slice()),
        create_network(context),
        create_of(context, PLAIN, "coordination.k8s.io", "leases", plane.lease()),
    )
    .map(drop)
}

/// Creates the Service if it is missing. Its address may be taken: by another server that is creating the Service, or
/// by an IPAddress of a client. That is no error, because a start that failed for it would always fail; a later check
/// finds the Service, or a free address.
async fn create_service(context: &Context, plane: &ControlPlane) -> Result<()> {
    match create_of(context, PLAIN, "", "services", [plane.service(context)]).await {
        Err(status) if status.reason == Reason::Invalid => {
            tracing::warn!(error = %status, "the Service kubernetes cannot be created; will retry");
            Ok(())
        }
        result => result,
    }
}

/// The PriorityClasses of system Pods.
pub fn classes() -> [Value; 2] {
    let class = |name: &str, value: i64, which: &str| {
        let description = format!("Used for system critical pods that must {which}");
        json!({"metadata": {"name": name}, "value": value, "description": description})
    };
    [
        class("system-node-critical", 2_000_001_000, "not be moved from their current node."),
        class(
            "system-cluster-critical",
            2_000_000_000,
            "run in the cluster, but can be moved to another node if necessary.",
        ),
    ]
}

/// Creates the default ServiceCIDR with its condition, if it is missing.
async fn create_network(context: &Context) -> Result<()> {
    let Some(resource) = context.registry.get("networking.k8s.io", "servicecidrs") else { return Ok(()) };
    let cidrs: Value = context.allocation.networks().into_iter().map(Value::from).collect();
    let network = json!({"metadata": {"name": NAME}, "spec": {"cidrs": cidrs}});
    create_of(context, PLAIN, "networking.k8s.io", "servicecidrs", [network]).await?;
    let Some(stored) = resource.collection.get(NAME) else { return Ok(()) };
    if stored.body.to_value(stored.revision).at(&["status", "conditions"]).is_some() {
        return Ok(());
    }
    let condition = json!({
        "type": "Ready", "status": "True", "lastTransitionTime": (clock::now_rfc3339()),
        "message": "Kubernetes default Service CIDR is ready"
    });
    let status = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": NAME},
        "status": {"conditions": [condition]}
    });
    let own = context.as_server(&resource, "", NAME).through(Subresource::Status);
    own.with_query(format!("fieldManager={CIDR_CONTROLLER}&force=true")).patch(PatchKind::Apply, &status).await
}

pub async fn renew(context: &Context, plane: &ControlPlane) -> Result<()> {
    let Some(resource) = context.registry.get("coordination.k8s.io", "leases") else { return Ok(()) };
    let Some(lease) = plane.lease() else { return Ok(()) };
    let name = lease.str_at(&["metadata", "name"]);
    let renewed = |object: &mut Value| {
        for field in ["holderIdentity", "renewTime"] {
            object.set_at(&["spec", field], Value::from(lease.str_at(&["spec", field])));
        }
    };
    context.as_server(&resource, LEASE_NAMESPACE, name).change(renewed).await
}

/// Takes over the Lease of an earlier run. In an embedded store, also writes this server's port and address to the
/// Service `kubernetes`, its Endpoints and its EndpointSlice.
pub async fn take_over(context: &Context, plane: &ControlPlane) -> Result<()> {
    if !plane.holds_lease(context) {
        renew(context, plane).await?;
    }
    if context.objects.store().is_shared() {
        return Ok(());
    }
    restore(context, [("", "services", Some(plane.service(context)), &["spec", "ports"][..])]).await?;
    restore_endpoints(context, plane).await
}

/// Restores the addresses and ports of the Endpoints and the EndpointSlice. Does nothing in a shared store, where
/// other servers may have added their own.
pub async fn restore_endpoints(context: &Context, plane: &ControlPlane) -> Result<()> {
    if context.objects.store().is_shared() {
        return Ok(());
    }
    let kinds = [
        ("", "endpoints", plane.endpoints(), &["subsets"][..]),
        ("discovery.k8s.io", "endpointslices", plane.slice(), &["endpoints"]),
        ("discovery.k8s.io", "endpointslices", plane.slice(), &["ports"]),
    ];
    restore(context, kinds).await
}

/// Sets fields of those objects of the control plane that exist.
async fn restore<const N: usize>(context: &Context, fields: [(&str, &str, Option<Value>, &[&str]); N]) -> Result<()> {
    for (group, plural, wanted, field) in fields {
        let Some(resource) = context.registry.get(group, plural) else { continue };
        let stored = resource.collection.get(&resource.key(NAMESPACE, NAME).path);
        let (Some(stored), Some(wanted)) = (stored, wanted) else { continue };
        let value = wanted.at(field).cloned().unwrap_or_default();
        if stored.body.to_value(stored.revision).at(field) == Some(&value) {
            continue;
        }
        let set = |object: &mut Value| object.set_at(field, value.clone());
        context.as_server(&resource, NAMESPACE, NAME).change(set).await?;
    }
    Ok(())
}

impl ControlPlane {
    fn service(&self, context: &Context) -> Value {
        let mut service = json!({
            "metadata": {
                "name": NAME, "namespace": NAMESPACE, "labels": {"component": "apiserver", "provider": "kubernetes"}
            },
            "spec": {
                "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": (i64::from(self.port))}],
                "type": "ClusterIP", "sessionAffinity": "None", "ipFamilyPolicy": "SingleStack"
            }
        });
        if let Some(address) = context.allocation.own_address() {
            service.set_at(&["spec", "clusterIP"], Value::from(address.to_string()));
        }
        service
    }

    fn port(&self) -> Value {
        json!({"name": "https", "port": (i64::from(self.port)), "protocol": "TCP"})
    }

    fn endpoints(&self) -> Option<Value> {
        let address = json!({"ip": (self.address?.to_string())});
        Some(json!({
            "metadata": {
                "name": NAME, "namespace": NAMESPACE, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}
            },
            "subsets": [{"addresses": [address], "ports": [(self.port())]}]
        }))
    }

    fn slice(&self) -> Option<Value> {
        let address = self.address?;
        let kind = if address.is_ipv4() { "IPv4" } else { "IPv6" };
        Some(json!({
            "metadata": {
                "name": NAME, "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": NAME}
            },
            "addressType": kind,
            "endpoints": [{"addresses": [(address.to_string())], "conditions": {"ready": true}}],
            "ports": [{"name": "https", "protocol": "TCP", "port": (i64::from(self.port))}]
        }))
    }

    /// The name of the server's Lease, which is the same after a restart.
    pub fn name(&self) -> String {
        // the hash is over both texts, each with its length as a 16-bit number before it
        let texts = [self.hostname.as_str(), SERVER].into_iter();
        let named = texts.flat_map(|text| [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat());
        format!("apiserver-{}", base32(&sha256(&named.collect::<Vec<_>>())[..16]))
    }

    fn holds_lease(&self, context: &Context) -> bool {
        let leases = context.objects.collection(&"coordination.k8s.io".into(), &"leases".into());
        let lease = leases.get(&format!("{LEASE_NAMESPACE}/{}", self.name()));
        let holder = lease.map(|lease| lease.body.to_value(0).str_at(&["spec", "holderIdentity"]).to_owned());
        holder.zip(self.run.as_ref()).is_some_and(|(holder, run)| holder.ends_with(run))
    }

    fn lease(&self) -> Option<Value> {
        let name = self.name();
        let holder = format!("{name}_{}", self.run.as_ref()?);
        let mut lease = json!({
            "metadata": {
                "name": name, "namespace": LEASE_NAMESPACE,
                "labels": {"apiserver.kubernetes.io/identity": SERVER, "kubernetes.io/hostname": (self.hostname.clone())}
            },
            "spec": {
                "holderIdentity": holder, "leaseDurationSeconds": (limits::IDENTITY_LEASE_SECONDS),
                "renewTime": (machinery::time::rfc3339_micro(clock::now_micros()))
            }
        });
        if let Some(address) = self.address {
            let address = std::net::SocketAddr::new(address, self.port).to_string();
            lease.set_at(&["metadata", "annotations", "kubernetes.io/peer-advertise-address"], Value::from(address));
        }
        Some(lease)
    }
}

/// Base 32 in lower case, without padding.
fn base32(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bit = |at: usize| bytes.get(at / 8).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1);
    let digit = |i: usize| (0..5).fold(0, |digit, j| digit << 1 | usize::from(bit(i * 5 + j)));
    (0..(bytes.len() * 8).div_ceil(5)).map(|i| char::from(DIGITS[digit(i)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_name_depends_on_hostname() {
        let plane = ControlPlane { port: 6443, address: None, hostname: "vm".to_owned(), run: Some("1".to_owned()) };
        assert_eq!(plane.name(), "apiserver-wlv32tlttr4jl3gtroqexyxapa");
        assert!(plane.endpoints().is_none() && plane.slice().is_none());
        assert_eq!(
            plane.lease().unwrap().str_at(&["spec", "holderIdentity"]),
            "apiserver-wlv32tlttr4jl3gtroqexyxapa_1"
        );
    }
}
