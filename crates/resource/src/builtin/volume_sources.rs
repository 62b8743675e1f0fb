//! Rules of the sources of PersistentVolumes.

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, names};

use super::checks::{invalid_each, is_set, text};
use super::iscsi;
use super::pod_volumes::{self, required};

type Errors = Vec<FieldError>;

/// The references to Secrets of a CSI driver.
const SECRETS: [&str; 4] =
    ["controllerExpandSecretRef", "controllerPublishSecretRef", "nodeExpandSecretRef", "nodePublishSecretRef"];
const TYPE: &str = "core.v1.PersistentVolumeSource";

/// The errors of the source of the volume `name` that depend on several fields.
pub fn errors(name: &str, spec: &Value, path: &FieldPath, errors: &mut Errors) {
    pod_volumes::source_errors(spec, TYPE, path, errors);
    if let Some(flexible) = spec.get("flexVolume") {
        pod_volumes::own_options(flexible, &path.child("flexVolume"), errors);
    }
    let Some(kind) = pod_volumes::first_source(spec, TYPE) else { return };
    let (source, at) = (spec.get(kind).unwrap_or(&Value::Null), path.child(kind));
    match kind {
        "csi" => SECRETS.iter().for_each(|secret| secret_errors(source, secret, &at, errors)),
        "iscsi" => portal_errors(name, source, &at, errors),
        "local" if !is_set(spec, "nodeAffinity") => {
            errors.push(FieldError::required(&path.child("nodeAffinity"), "Local volume requires node affinity"));
        }
        "cinder" | "storageos" => required(source, "secretRef", &["name", "namespace"], &at, errors),
        _ => {}
    }
}

fn secret_errors(source: &Value, name: &str, path: &FieldPath, errors: &mut Errors) {
    required(source, name, &["name", "namespace"], path, errors);
    let Some(secret) = source.get(name).filter(|secret| !secret.is_null()) else { return };
    let (own, namespace) = (text(secret, "name"), text(secret, "namespace"));
    if !own.is_empty() {
        invalid_each(&path.child(name).child("name"), own, names::dns1123_subdomain(own), errors);
    }
    if !namespace.is_empty() {
        invalid_each(&path.child(name).child("namespace"), namespace, names::dns1123_label(namespace), errors);
    }
}

fn portal_errors(name: &str, source: &Value, path: &FieldPath, errors: &mut Errors) {
    if iscsi::is_session_too_long(name, source) {
        let portal = Value::from(text(source, "targetPortal"));
        errors.push(FieldError::invalid(&path.child("targetportal"), &portal, iscsi::SESSION_TOO_LONG));
    }
    iscsi::credentials(source, path, errors);
    required(source, "secretRef", &["name"], path, errors);
    let initiator = text(source, "initiatorName");
    if is_set(source, "initiatorName") && !iscsi::is_qualified(initiator) {
        let path = path.child("initiatorname");
        errors.push(FieldError::invalid(&path, &Value::from(initiator), "must be valid format"));
    }
}
