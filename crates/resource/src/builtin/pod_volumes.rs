//! The volumes of Pods, and the sources that they share with PersistentVolumes.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, names};

use super::checks::{entries, invalid_each, is_set, items, list, text};
use super::projections::{downward_files, projected};
use super::rules::{self, Pass};
use super::{claims, iscsi, rule_checks};
use crate::limits::REPEATED_BYTES_MAX;

type Errors = Vec<FieldError>;

/// Validates the volumes and returns the names of the valid ones.
pub fn valid_names<'a>(spec: &'a Value, path: &FieldPath, errors: &mut Errors) -> HashSet<&'a str> {
    let mut known = HashSet::new();
    for (path, volume) in items(spec, "volumes", path) {
        let name = text(volume, "name");
        let own = volume_errors(volume, &path);
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else {
            let problems = names::dns1123_label(name);
            let is_name = problems.is_empty();
            invalid_each(&path.child("name"), name, problems, errors);
            if known.contains(name) {
                errors.push(FieldError::duplicate(&path.child("name"), &Value::from(name)));
            } else if is_name && own.is_empty() && is_valid(volume, "core.v1.Volume") {
                known.insert(name);
            }
        }
        errors.extend(own);
    }
    known
}

/// Whether an object meets all rules of its type.
fn is_valid(object: &Value, go: &'static str) -> bool {
    let mut errors = vec![];
    rule_errors(object, go, &FieldPath::new("spec"), &mut errors);
    errors.is_empty()
}

/// Reports violations of the rules of an object's type.
pub fn rule_errors(object: &Value, go: &'static str, path: &FieldPath, errors: &mut Errors) {
    super::at::at_path(object, path, errors, |at| rules::check(Pass::Written { of_status: false }, at, rules::of(go)));
}

/// The errors of a volume that involve several of its fields.
fn volume_errors(volume: &Value, path: &FieldPath) -> Errors {
    let mut errors = vec![];
    if let Some(source) = volume.get("emptyDir")
        && source.str_at(&["sizeLimit"]).starts_with('-')
    {
        let why = "SizeLimit field must be a valid resource quantity";
        errors.push(FieldError::forbidden(&path.child("emptyDir").child("sizeLimit"), why));
    }
    source_errors(volume, "core.v1.VolumeSource", path, &mut errors);
    let source = first_source(volume, "core.v1.VolumeSource").unwrap_or_default();
    let fields = volume.get(source).unwrap_or(&Value::Null);
    if source == "iscsi" && iscsi::is_session_too_long(text(volume, "name"), fields) {
        let name = Value::from(text(volume, "name"));
        errors.push(FieldError::invalid(&path.child("name"), &name, iscsi::SESSION_TOO_LONG));
    }
    let path = path.child(source);
    match source {
        "cinder" => required(fields, "secretRef", &["name"], &path, &mut errors),
        "csi" => {
            required(fields, "nodePublishSecretRef", &["name"], &path, &mut errors);
            let secret = fields.str_at(&["nodePublishSecretRef", "name"]);
            if !secret.is_empty() {
                invalid_each(&path.child("name"), secret, names::dns1123_subdomain(secret), &mut errors);
            }
        }
        "ephemeral" => claims::template(fields, &path, &mut errors),
        "iscsi" => iscsi_errors(fields, &path, &mut errors),
        _ => {}
    }
    errors
}

/// Validates the names of the claims of ephemeral volumes, which contain the name of the Pod. Errors repeat that name,
/// and their total size is bounded.
pub fn claim_names(pod: &Value, path: &FieldPath, errors: &mut Errors) {
    let (name, none) = (pod.str_at(&["metadata", "name"]), Value::object());
    let mut bytes_left = REPEATED_BYTES_MAX;
    for (path, volume) in items(pod.get("spec").unwrap_or(&none), "volumes", path) {
        let own = text(volume, "name");
        if name.is_empty() || own.is_empty() || first_source(volume, "core.v1.VolumeSource") != Some("ephemeral") {
            continue;
        }
        let claim = format!("{name}-{own}");
        let problems = names::dns1123_subdomain(&claim).into_iter();
        let shown = problems.map(|problem| format!("PVC name {}: {problem}", machinery::value::quote(&claim)));
        let shown: Vec<String> = shown.collect();
        let bytes = shown.iter().map(String::len).sum();
        invalid_each(&path.child("name"), own, shown, errors);
        let Some(left) = bytes_left.checked_sub(bytes) else { return };
        bytes_left = left;
    }
}

/// If the source has the object `name`, these fields of the object are required.
pub fn required(source: &Value, name: &str, fields: &[&str], path: &FieldPath, errors: &mut Errors) {
    let Some(object) = source.get(name).filter(|object| !object.is_null()) else { return };
    for field in fields.iter().filter(|field| text(object, field).is_empty()) {
        errors.push(FieldError::required(&path.child(name).child(field), ""));
    }
}

fn iscsi_errors(target: &Value, path: &FieldPath, errors: &mut Errors) {
    let name = text(target, "iqn");
    if !name.is_empty() {
        iscsi::name_errors(name, &path.child("iqn"), errors);
    }
    if is_set(target, "initiatorName") {
        iscsi::name_errors(text(target, "initiatorName"), &path.child("initiatorname"), errors);
    }
    iscsi::credentials(target, path, errors);
}

/// The source of a volume that counts: the first one of the union that is set.
pub fn first_source(volume: &Value, go: &'static str) -> Option<&'static str> {
    rules::of(go)?.union()?.names.iter().find(|name| is_set(volume, name)).copied()
}

/// The errors of the source of a volume that involve several of its fields.
pub fn source_errors(volume: &Value, go: &'static str, path: &FieldPath, errors: &mut Errors) {
    let Some(name) = first_source(volume, go) else { return };
    let (source, path) = (volume.get(name).unwrap_or(&Value::Null), path.child(name));
    match name {
        "fc" => {
            let (names, ids) = (!list(source, "targetWWNs").is_empty(), !list(source, "wwids").is_empty());
            let own = path.child("targetWWNs");
            if names && ids {
                let shown = source.get("targetWWNs").unwrap_or(&Value::Null);
                let why = "targetWWNs and wwids can not be specified simultaneously";
                errors.push(FieldError::invalid(&own, shown, why));
            } else if !names && !ids {
                errors.push(FieldError::required(&own, "must specify either targetWWNs or wwids, but not both"));
            }
            if let Some(number) = source.get("lun").filter(|lun| names && !lun.is_null())
                && !number.as_int().is_some_and(|lun| (0..=255).contains(&lun))
            {
                errors.push(FieldError::invalid(&path.child("lun"), number, "must be between 0 and 255, inclusive"));
            }
            if names && !is_set(source, "lun") {
                let why = "lun is required if targetWWNs is specified";
                errors.push(FieldError::required(&path.child("lun"), why));
            }
        }
        "flocker" => {
            let (name, uuid) = (text(source, "datasetName"), text(source, "datasetUUID"));
            if name.is_empty() && uuid.is_empty() {
                errors.push(FieldError::required(&path, "one of datasetName and datasetUUID is required"));
            } else if !name.is_empty() && !uuid.is_empty() {
                let why = "datasetName and datasetUUID can not be specified simultaneously";
                errors.push(FieldError::invalid(&path, &Value::from("resource"), why));
            }
            if name.contains('/') {
                let why = "must not contain '/'";
                errors.push(FieldError::invalid(&path.child("datasetName"), &Value::from(name), why));
            }
        }
        // upstream's name of the field
        "gcePersistentDisk" if text(source, "pdName").is_empty() => {
            let path = FieldPath::new(path.as_str().replace(name, "persistentDisk"));
            errors.push(FieldError::required(&path.child("pdName"), ""));
        }
        "storageos" => {
            if text(source, "volumeName").is_empty() {
                errors.push(FieldError::required(&path.child("volumeName"), ""));
            }
            for field in ["volumeName", "volumeNamespace"].into_iter().filter(|field| !text(source, field).is_empty()) {
                let problems = names::dns1123_label(text(source, field));
                invalid_each(&path.child(field), text(source, field), problems, errors);
            }
        }
        "azureDisk" => disk_address(source, &path, errors),
        "flexVolume" => own_options(source, &path, errors),
        "quobyte" => registry_errors(source, &path, errors),
        "downwardAPI" => downward_files(source, &path, errors),
        "projected" => projected(source, &path, errors),
        _ => {}
    }
}

/// The options of a flexVolume belong to its driver and must not use the domains of Kubernetes.
pub fn own_options(source: &Value, path: &FieldPath, errors: &mut Errors) {
    for (key, _) in entries(source, &["options"]).filter(|(key, _)| is_reserved(key)) {
        let why = "kubernetes.io and k8s.io namespaces are reserved";
        errors.push(FieldError::invalid(&path.child("options").key(key), &Value::from(key.as_str()), why));
    }
}

/// Whether the domain of an option belongs to Kubernetes.
fn is_reserved(key: &str) -> bool {
    let domain = format!(".{}", key.split('/').next().unwrap_or_default().to_lowercase());
    [".kubernetes.io", ".k8s.io"].iter().any(|reserved| domain.ends_with(reserved))
}

/// Validates the `HOST:PORT` pairs of a registry. If the name of the tenant is too long, only that is reported.
fn registry_errors(source: &Value, path: &FieldPath, errors: &mut Errors) {
    const TENANT_BYTES_MAX: usize = 64;
    let registry = source.get("registry").unwrap_or(&Value::Null);
    if registry.as_str().is_none_or(str::is_empty) {
        return;
    }
    if text(source, "tenant").len() > TENANT_BYTES_MAX {
        let why = "must be a UUID and may not exceed a length of 64 characters";
        return errors.push(FieldError::required(&path.child("tenant"), why));
    }
    crate::builtin::at::at_path(registry, &path.child("registry"), errors, rule_checks::host_ports);
}

/// The form of the URI of a disk depends on the kind of the disk.
fn disk_address(source: &Value, path: &FieldPath, errors: &mut Errors) {
    const MANAGED: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    let (uri, is_managed) = (text(source, "diskURI"), text(source, "kind") == "Managed");
    let (prefix, wanted) = if is_managed { ("/subscriptions/", MANAGED) } else { ("https://", BLOB) };
    if !uri.starts_with(prefix) {
        errors.push(FieldError::not_supported(&path.child("diskURI"), &Value::from(uri), &[wanted]));
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn errors_of_claims_of_a_long_name_stay_small() {
        let volumes = (0..2_000).map(|i| json!({"name": (format!("v{i}")), "ephemeral": {}})).collect();
        let pod = json!({"metadata": {"name": ("a".repeat(20_000))}, "spec": {"volumes": (Value::Array(volumes))}});
        let mut errors = vec![];
        claim_names(&pod, &FieldPath::new("spec"), &mut errors);
        let bytes: usize = errors.iter().map(|error| error.to_string().len()).sum();
        assert!(!errors.is_empty() && bytes < 2 * REPEATED_BYTES_MAX, "{bytes}");
    }
}
