//! Mounts of volumes and raw block devices in containers.

use std::collections::HashSet;

use crate::core::podspec::Pod;
use crate::rule_checks;
use schema::at::At;

const NOT_UNIQUE: &str = "must be unique";

impl Pod<'_, '_> {
    pub(super) fn mounts(&self, container: At) {
        let mut places = HashSet::new();
        let device_names: HashSet<_> = container.texts("volumeDevices", "name");
        let device_paths: HashSet<_> = container.texts("volumeDevices", "devicePath");
        for mount in container.items_of("volumeMounts") {
            let (name, place) = (mount.field_or_empty("name"), mount.field_or_empty("mountPath"));
            name.require_text("");
            if !self.volumes.contains(name.as_text()) {
                name.not_found();
            }
            place.invalid_if(!places.insert(place.as_text()), NOT_UNIQUE);
            name.invalid_if(device_names.contains(name.as_text()), "must not already exist in volumeDevices");
            if device_paths.contains(place.as_text()) {
                place.invalid("must not already exist as a path in volumeDevices");
            }
            mount_modes(mount, container);
        }
    }

    pub(super) fn devices(&self, container: At) {
        let (mut names, mut places) = (HashSet::new(), HashSet::new());
        let mounted_names: HashSet<_> = container.texts("volumeMounts", "name");
        let mount_paths: HashSet<_> = container.texts("volumeMounts", "mountPath");
        for device in container.items_of("volumeDevices") {
            let (name, place) = (device.field_or_empty("name"), device.field_or_empty("devicePath"));
            if name.as_text().is_empty() {
                name.required("");
            } else if !names.insert(name.as_text()) {
                name.invalid(NOT_UNIQUE);
            }
            if !self.volumes.contains(name.as_text()) {
                name.not_found();
            } else if !self.claim_volumes.contains(name.as_text()) {
                name.invalid("can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode");
            }
            name.invalid_if(mounted_names.contains(name.as_text()), "must not already exist in volumeMounts");
            if place.as_text().split('/').any(|part| part == "..") {
                place.invalid("can not contain backsteps ('..')");
            } else if !places.insert(place.as_text()) {
                place.invalid(NOT_UNIQUE);
            }
            place.invalid_if(mount_paths.contains(place.as_text()), "must not already exist as a path in volumeMounts");
        }
    }
}

/// Validates the subpaths, the propagation and the recursive read-only mode of a mount. Upstream's errors leave out
/// its index.
fn mount_modes(mount: At, container: At) {
    if !mount.text("subPath").is_empty() && !mount.text("subPathExpr").is_empty() {
        mount.field("subPathExpr").invalid("subPathExpr and subPath are mutually exclusive");
    }
    let mount = container.field("volumeMounts").with_value(mount.value);
    rule_checks::local_path(mount.field("subPath"));
    rule_checks::local_path(mount.field("subPathExpr"));
    propagation(mount.field("mountPropagation"), container);
    recursive_read_only(mount);
}

fn propagation(mode: At, container: At) {
    mode.shown_as_json().one_of(&["Bidirectional", "HostToContainer", "None"]);
    if mode.as_text() == "Bidirectional" && !container.is_true("securityContext.privileged") {
        mode.forbidden("Bidirectional mount propagation is available only to privileged containers");
    }
}

fn recursive_read_only(mount: At) {
    let mode = mount.field("recursiveReadOnly");
    match mode.as_text() {
        _ if !mode.is_given() => {}
        "Disabled" => {}
        "Enabled" | "IfPossible" => {
            mode.forbidden_if(!mount.is_true("readOnly"), "may only be specified when readOnly is true");
            if !["", "None"].contains(&mount.text("mountPropagation")) {
                mode.forbidden("may only be specified when mountPropagation is None or not specified");
            }
        }
        _ => mode.shown_as_json().unsupported(&["Disabled", "Enabled", "IfPossible"]),
    }
}
