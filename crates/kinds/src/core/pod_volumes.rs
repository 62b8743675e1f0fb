//! The volumes of Pods, and the sources that they share with PersistentVolumes.

use std::collections::HashSet;

use machinery::field::FieldPath;
use machinery::names;

use crate::core::projections::{downward_files, projected};
use crate::core::{claims, iscsi};
use crate::limits::REPEATED_BYTES_MAX;
use crate::rule_checks;
use schema::at::At;

/// Validates the volumes and returns the names of the valid ones.
pub fn valid_names<'v>(spec: At<'_, 'v>) -> HashSet<&'v str> {
    let mut known = HashSet::new();
    for volume in spec.items_of("volumes") {
        let name = volume.field("name");
        let own = volume.apart(of_pod);
        if name.as_text().is_empty() {
            name.required("");
        } else {
            let before = name.count();
            name.check_text(names::dns1123_label);
            let is_name = name.count() == before;
            if known.contains(name.as_text()) {
                name.duplicate();
            } else if is_name && own.is_empty() && volume.apart(|at| at.check_type("core.v1.Volume")).is_empty() {
                known.insert(name.as_text());
            }
        }
        volume.extend(own);
    }
    known
}

/// Validates a volume, as far as several of its fields are involved.
fn of_pod(volume: At) {
    if volume.text("emptyDir.sizeLimit").starts_with('-') {
        volume.field("emptyDir.sizeLimit").forbidden("SizeLimit field must be a valid resource quantity");
    }
    source(volume, "core.v1.VolumeSource");
    let kind = first_source(volume, "core.v1.VolumeSource").unwrap_or_default();
    let source = volume.field(kind);
    if kind == "iscsi" && iscsi::is_session_too_long(volume.text("name"), source) {
        volume.field_or_empty("name").invalid(iscsi::SESSION_TOO_LONG);
    }
    match kind {
        "cinder" => required(source.field("secretRef"), &["name"]),
        "csi" => {
            required(source.field("nodePublishSecretRef"), &["name"]);
            let secret = source.text("nodePublishSecretRef.name");
            if !secret.is_empty() {
                source.field("name").shown_as_text(secret).invalid_each(names::dns1123_subdomain(secret));
            }
        }
        "ephemeral" => claims::template(source),
        "iscsi" => iscsi_target(source),
        _ => {}
    }
}

/// Validates the names of the claims of ephemeral volumes, which contain the name of the Pod. Errors repeat that name,
/// and their total size is bounded.
pub fn claim_names(pod: At) {
    let (name, spec) = (pod.text("metadata.name"), pod.field("spec"));
    let mut bytes_left = REPEATED_BYTES_MAX;
    for volume in spec.items_of("volumes") {
        let own = volume.field("name");
        let is_ephemeral = first_source(volume, "core.v1.VolumeSource") == Some("ephemeral");
        if name.is_empty() || own.as_text().is_empty() || !is_ephemeral {
            continue;
        }
        let claim = format!("{name}-{}", own.as_text());
        let problems = names::dns1123_subdomain(&claim).into_iter();
        let shown = problems.map(|problem| format!("PVC name {}: {problem}", machinery::value::quote(&claim)));
        let shown: Vec<String> = shown.collect();
        let bytes = shown.iter().map(String::len).sum();
        own.check_text(|_| shown);
        let Some(left) = bytes_left.checked_sub(bytes) else { return };
        bytes_left = left;
    }
}

/// If the object is given, these fields of it are required.
pub fn required(object: At, fields: &[&str]) {
    fields.iter().filter(|_| object.is_given()).for_each(|name| object.field(name).require_text(""));
}

fn iscsi_target(target: At) {
    if !target.text("iqn").is_empty() {
        iscsi::name(target.field("iqn"));
    }
    if target.has("initiatorName") {
        iscsi::name(target.field("initiatorName").with_name("initiatorname"));
    }
    iscsi::credentials(target);
}

/// The source of a volume that counts: the first one of the union that is set.
pub fn first_source(volume: At, go: &'static str) -> Option<&'static str> {
    volume.union_of(go).iter().find(|name| volume.has(name)).copied()
}

/// Validates the source of a volume, as far as several of its fields are involved.
pub fn source(volume: At, go: &'static str) {
    let Some(name) = first_source(volume, go) else { return };
    let source = volume.field(name);
    match name {
        "fc" => fibre_channel(source),
        "flocker" => flocker(source),
        // upstream's name of the field
        "gcePersistentDisk" if source.text("pdName").is_empty() => {
            let path = FieldPath::new(source.path().as_str().replace(name, "persistentDisk"));
            source.with_path(&path).field("pdName").required("");
        }
        "storageos" => {
            source.field("volumeName").require_text("");
            for field in ["volumeName", "volumeNamespace"].into_iter().filter(|field| !source.text(field).is_empty()) {
                source.field(field).check_text(names::dns1123_label);
            }
        }
        "azureDisk" => disk_address(source),
        "flexVolume" => own_options(source),
        "quobyte" => registry(source),
        "downwardAPI" => downward_files(source),
        "projected" => projected(source),
        _ => {}
    }
}

fn fibre_channel(source: At) {
    let (targets, lun) = (source.field("targetWWNs"), source.field("lun"));
    match (targets.items().len() > 0, source.list("wwids").is_empty()) {
        (true, false) => targets.invalid("targetWWNs and wwids can not be specified simultaneously"),
        (false, true) => targets.required("must specify either targetWWNs or wwids, but not both"),
        _ => {}
    }
    if targets.items().len() > 0 {
        lun.within(0..=255);
        lun.require("lun is required if targetWWNs is specified");
    }
}

fn flocker(source: At) {
    let name = source.field("datasetName");
    match (name.as_text().is_empty(), source.text("datasetUUID").is_empty()) {
        (true, true) => source.required("one of datasetName and datasetUUID is required"),
        (false, false) => {
            source.shown_as_text("resource").invalid("datasetName and datasetUUID can not be specified simultaneously");
        }
        _ => {}
    }
    name.invalid_if(name.as_text().contains('/'), "must not contain '/'");
}

/// The options of a flexVolume belong to its driver and must not use the domains of Kubernetes.
pub fn own_options(source: At) {
    for (key, option) in source.entries_of("options").filter(|(key, _)| is_reserved(key)) {
        option.shown_as_text(key).invalid("kubernetes.io and k8s.io namespaces are reserved");
    }
}

/// Whether the domain of an option belongs to Kubernetes.
fn is_reserved(key: &str) -> bool {
    let domain = format!(".{}", key.split('/').next().unwrap_or_default().to_lowercase());
    [".kubernetes.io", ".k8s.io"].iter().any(|reserved| domain.ends_with(reserved))
}

/// Validates the `HOST:PORT` pairs of a registry. If the name of the tenant is too long, only that is reported.
fn registry(source: At) {
    const TENANT_BYTES_MAX: usize = 64;
    if source.text("registry").is_empty() {
        return;
    }
    if source.text("tenant").len() > TENANT_BYTES_MAX {
        let why = "must be a UUID and may not exceed a length of 64 characters";
        return source.field("tenant").required(why);
    }
    rule_checks::host_ports(source.field("registry"));
}

/// The form of the URI of a disk depends on the kind of the disk.
fn disk_address(source: At) {
    const MANAGED: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    let is_managed = source.text("kind") == "Managed";
    let (prefix, wanted) = if is_managed { ("/subscriptions/", MANAGED) } else { ("https://", BLOB) };
    if !source.text("diskURI").starts_with(prefix) {
        source.field_or_empty("diskURI").unsupported(&[wanted]);
    }
}

#[cfg(test)]
mod tests {
    use machinery::{Release, Value, json};

    use super::*;
    use crate::catalogue::CATALOGUE;
    use schema::at::found_in;

    #[test]
    fn errors_of_claims_of_a_long_name_stay_small() {
        let volumes = (0..2_000).map(|i| json!({"name": (format!("v{i}")), "ephemeral": {}})).collect();
        let pod = json!({"metadata": {"name": ("a".repeat(20_000))}, "spec": {"volumes": (Value::Array(volumes))}});
        let errors = found_in(CATALOGUE.rules(), &pod, None, Release::NEWEST, claim_names);
        let bytes: usize = errors.iter().map(|found| found.error.to_string().len()).sum();
        assert!(!errors.is_empty() && bytes < 2 * REPEATED_BYTES_MAX, "{bytes}");
    }
}
