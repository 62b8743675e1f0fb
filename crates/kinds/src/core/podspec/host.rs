//! Checks of what a Pod shares with its host: namespaces, ports and the host name.

use machinery::{Value, names};

use crate::stages;
use schema::at::At;

/// The kinds of containers, in the order in which errors of all of them are reported.
pub(super) const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The namespaces of the host and the ports of its network.
pub(super) fn check(spec: At) {
    if spec.is_true("hostPID") && spec.is_true("shareProcessNamespace") {
        spec.field("shareProcessNamespace").invalid("ShareProcessNamespace and HostPID cannot both be enabled");
    }
    if spec.is_true("hostNetwork") {
        spec.items_of("containers").for_each(ports);
    }
    if spec.has("hostnameOverride") {
        hostname(spec);
    }
}

/// The `hostnameOverride`, which replaces what the Pod's host name is computed from.
fn hostname(spec: At) {
    const BYTES_MAX: usize = 64;
    let name = spec.field("hostnameOverride");
    for other in ["hostNetwork", "setHostnameAsFQDN"].into_iter().filter(|other| spec.is_true(other)) {
        name.forbidden(format!("may not be specified when {other} is true"));
    }
    name.check_text(names::dns1123_subdomain);
    name.max_bytes(BYTES_MAX);
}

/// On the network of the host, a host port must equal the container port.
fn ports(container: At) {
    for port in container.items_of("ports") {
        let number = port.field("hostPort");
        // a template may leave it out
        let is_given = number.value.as_int().is_some_and(|number| number != 0);
        if is_given && port.field("containerPort").value != number.value {
            number.in_stage(stages::HOST_PORTS).invalid("must match `containerPort` when `hostNetwork` is true");
        }
    }
}

/// A Pod with a user namespace of its own has neither the host's other namespaces nor block devices.
pub(super) fn user_namespace(spec: At) {
    const WHY: &str = "when `hostUsers` is false";
    let spec = spec.in_stage(stages::HOST_USERS);
    if *spec.field("hostUsers").value != Value::Bool(false) {
        return;
    }
    // two fields are shown by the names that they have in Go
    for (name, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        spec.field(shown).forbidden_if(spec.is_true(name), WHY);
    }
    for container in CONTAINERS.iter().flat_map(|kind| spec.items_of(kind)) {
        container.field("volumeDevices").forbidden_if(!container.list("volumeDevices").is_empty(), WHY);
    }
}
