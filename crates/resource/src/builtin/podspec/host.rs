//! What a Pod shares with its host: namespaces, ports and the host name.

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, names};

use super::{Errors, truth};
use crate::builtin::checks::{invalid_each, is_set, items, list, text};

/// The kinds of containers, in the order in which errors of all of them are reported.
pub(super) const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The namespaces of the host and the ports of its network.
pub(super) fn errors(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    if truth(spec, &["hostPID"]) && truth(spec, &["shareProcessNamespace"]) {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(&path.child("shareProcessNamespace"), &Value::Bool(true), why));
    }
    if truth(spec, &["hostNetwork"]) {
        ports(spec, path, errors);
    }
    if is_set(spec, "hostnameOverride") {
        hostname(spec, &path.child("hostnameOverride"), errors);
    }
}

/// The `hostnameOverride`, which replaces what the Pod's host name is computed from.
fn hostname(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    const BYTES_MAX: usize = 64;
    for (other, is_given) in ["hostNetwork", "setHostnameAsFQDN"].map(|name| (name, truth(spec, &[name]))) {
        if is_given {
            errors.push(FieldError::forbidden(path, format!("may not be specified when {other} is true")));
        }
    }
    let name = text(spec, "hostnameOverride");
    invalid_each(path, name, names::dns1123_subdomain(name), errors);
    if name.len() > BYTES_MAX {
        errors.push(FieldError::too_long(path, BYTES_MAX));
    }
}

/// On the network of the host, a host port must equal the container port.
fn ports(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    for (path, container) in items(spec, "containers", path) {
        for (path, port) in items(container, "ports", &path) {
            let number = port.get("hostPort").unwrap_or(&Value::Null);
            // a template may leave it out
            if number.as_int().is_some_and(|number| number != 0) && port.get("containerPort") != Some(number) {
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(&path.child("hostPort"), number, why));
            }
        }
    }
}

/// What a Pod with a user namespace of its own cannot have: other namespaces of the host, and block devices.
pub(super) fn user_namespace(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    if spec.get("hostUsers").and_then(Value::as_bool) != Some(false) {
        return;
    }
    let mut forbid = |path: FieldPath| errors.push(FieldError::forbidden(&path, "when `hostUsers` is false"));
    // two fields are shown by the names that they have in Go
    for (name, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if truth(spec, &[name]) {
            forbid(path.child(shown));
        }
    }
    for (path, container) in CONTAINERS.into_iter().flat_map(|kind| items(spec, kind, path)) {
        if !list(container, "volumeDevices").is_empty() {
            forbid(path.child("volumeDevices"));
        }
    }
}
