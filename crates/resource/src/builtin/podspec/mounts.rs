//! Mounts of volumes and raw block devices in containers.

use std::collections::HashSet;

use machinery::Value;
use machinery::field::{FieldError, FieldPath};

use super::{Errors, Pod, one_of_named, truth};
use crate::builtin::checks::{is_set, items, list, text};
use crate::builtin::rule_checks;

const NOT_UNIQUE: &str = "must be unique";

/// The values of a field of the items of a list.
fn values<'a>(object: &'a Value, list_name: &str, name: &str) -> HashSet<&'a str> {
    list(object, list_name).iter().map(|item| text(item, name)).collect()
}

fn invalid(path: &FieldPath, value: &str, why: &str) -> FieldError {
    FieldError::invalid(path, &Value::from(value), why)
}

impl Pod<'_> {
    pub(super) fn mounts(&self, container: &Value, path: &FieldPath, errors: &mut Errors) {
        let mut places = HashSet::new();
        let names = values(container, "volumeDevices", "name");
        let device_paths = values(container, "volumeDevices", "devicePath");
        for (path, mount) in items(container, "volumeMounts", path) {
            let (name, place) = (text(mount, "name"), text(mount, "mountPath"));
            if name.is_empty() {
                errors.push(FieldError::required(&path.child("name"), ""));
            }
            if !self.volumes.contains(name) {
                errors.push(FieldError::not_found(&path.child("name"), &Value::from(name)));
            }
            if !places.insert(place) {
                errors.push(invalid(&path.child("mountPath"), place, NOT_UNIQUE));
            }
            if names.contains(name) {
                errors.push(invalid(&path.child("name"), name, "must not already exist in volumeDevices"));
            }
            if device_paths.contains(place) {
                let why = "must not already exist as a path in volumeDevices";
                errors.push(invalid(&path.child("mountPath"), place, why));
            }
            mount_modes(mount, container, &path, errors);
        }
    }

    pub(super) fn devices(&self, container: &Value, path: &FieldPath, errors: &mut Errors) {
        let (mut names, mut places) = (HashSet::new(), HashSet::new());
        let mounted_names = values(container, "volumeMounts", "name");
        let mount_paths = values(container, "volumeMounts", "mountPath");
        for (path, device) in items(container, "volumeDevices", path) {
            let (name, place) = (text(device, "name"), text(device, "devicePath"));
            let (name_path, device_path) = (path.child("name"), path.child("devicePath"));
            if name.is_empty() {
                errors.push(FieldError::required(&name_path, ""));
            } else if !names.insert(name) {
                errors.push(invalid(&name_path, name, NOT_UNIQUE));
            }
            if !self.volumes.contains(name) {
                errors.push(FieldError::not_found(&name_path, &Value::from(name)));
            } else if !self.claim_volumes.contains(name) {
                let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.push(invalid(&name_path, name, why));
            }
            if mounted_names.contains(name) {
                errors.push(invalid(&name_path, name, "must not already exist in volumeMounts"));
            }
            if place.split('/').any(|part| part == "..") {
                errors.push(invalid(&device_path, place, "can not contain backsteps ('..')"));
            } else if !places.insert(place) {
                errors.push(invalid(&device_path, place, NOT_UNIQUE));
            }
            if mount_paths.contains(place) {
                errors.push(invalid(&device_path, place, "must not already exist as a path in volumeMounts"));
            }
        }
    }
}

/// The directory of a volume that is mounted, how mounts are seen outside of a container, and whether they are
/// read-only below. Upstream leaves out their index.
fn mount_modes(mount: &Value, container: &Value, path: &FieldPath, errors: &mut Errors) {
    if !text(mount, "subPath").is_empty() && !text(mount, "subPathExpr").is_empty() {
        let (path, given) = (path.child("subPathExpr"), text(mount, "subPathExpr"));
        errors.push(invalid(&path, given, "subPathExpr and subPath are mutually exclusive"));
    }
    let path = FieldPath::new(path.as_str().rsplit_once('[').map_or(path.as_str(), |(list, _)| list));
    for name in ["subPath", "subPathExpr"] {
        crate::builtin::at::at_path(
            mount.get(name).unwrap_or(&Value::Null),
            &path.child(name),
            errors,
            rule_checks::local_path,
        );
    }
    propagation(mount, container, &path.child("mountPropagation"), errors);
    recursive_read_only(mount, &path.child("recursiveReadOnly"), errors);
}

fn propagation(mount: &Value, container: &Value, path: &FieldPath, errors: &mut Errors) {
    const MODES: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
    let mode = text(mount, "mountPropagation");
    if is_set(mount, "mountPropagation") {
        one_of_named(mode, path, &MODES, errors);
    }
    if mode == "Bidirectional" && !truth(container, &["securityContext", "privileged"]) {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(FieldError::forbidden(path, why));
    }
}

fn recursive_read_only(mount: &Value, path: &FieldPath, errors: &mut Errors) {
    const MODES: [&str; 3] = ["Disabled", "Enabled", "IfPossible"];
    let mode = text(mount, "recursiveReadOnly");
    if !is_set(mount, "recursiveReadOnly") || mode == "Disabled" {
        return;
    }
    if !MODES.contains(&mode) {
        return one_of_named(mode, path, &MODES, errors);
    }
    if !truth(mount, &["readOnly"]) {
        let why = "may only be specified when readOnly is true";
        errors.push(FieldError::forbidden(path, why));
    }
    if !["", "None"].contains(&text(mount, "mountPropagation")) {
        let why = "may only be specified when mountPropagation is None or not specified";
        errors.push(FieldError::forbidden(path, why));
    }
}
