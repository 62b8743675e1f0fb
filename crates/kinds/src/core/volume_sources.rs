//! Rules of the sources of PersistentVolumes.

use machinery::names;

use crate::core::iscsi;
use crate::core::pod_volumes::{self, required};
use schema::at::At;

/// The references to Secrets of a CSI driver.
const SECRETS: [&str; 4] =
    ["controllerExpandSecretRef", "controllerPublishSecretRef", "nodeExpandSecretRef", "nodePublishSecretRef"];
const TYPE: &str = "core.v1.PersistentVolumeSource";

/// Validates the source of the volume `name`, as far as it depends on several fields.
pub fn source(name: &str, spec: At) {
    pod_volumes::source(spec, TYPE);
    spec.field_if_given("flexVolume").into_iter().for_each(pod_volumes::own_options);
    let Some(kind) = pod_volumes::first_source(spec, TYPE) else { return };
    let source = spec.field(kind);
    match kind {
        "csi" => SECRETS.iter().for_each(|secret| secret_of(source, secret)),
        "iscsi" => portal(name, source),
        "local" if !spec.has("nodeAffinity") => {
            spec.field("nodeAffinity").required("Local volume requires node affinity");
        }
        "cinder" | "storageos" => required(source.field("secretRef"), &["name", "namespace"]),
        _ => {}
    }
}

fn secret_of(source: At, name: &str) {
    let secret = source.field(name);
    required(secret, &["name", "namespace"]);
    secret.field("name").check_text_unless_empty(names::dns1123_subdomain);
    secret.field("namespace").check_text_unless_empty(names::dns1123_label);
}

fn portal(name: &str, source: At) {
    if iscsi::is_session_too_long(name, source) {
        source.field_or_empty("targetPortal").with_name("targetportal").invalid(iscsi::SESSION_TOO_LONG);
    }
    iscsi::credentials(source);
    required(source.field("secretRef"), &["name"]);
    let initiator = source.field("initiatorName").with_name("initiatorname");
    initiator.invalid_if(initiator.is_given() && !iscsi::is_qualified(initiator.as_text()), "must be valid format");
}
