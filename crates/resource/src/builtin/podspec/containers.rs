//! Containers: their names, mounts, ports, probes and restarts.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, names};

use super::environment::{environment, environment_source};
use super::resources::resources;
use super::{Errors, Pod, truth};
use crate::builtin::checks::{NO_SIDECAR, invalid_each, is_set, items, list, text};
use crate::builtin::rule_checks;

impl<'a> Pod<'a> {
    pub(super) fn containers(&self, path: &FieldPath, errors: &mut Errors) {
        if list(self.spec, "containers").is_empty() {
            errors.push(FieldError::required(&path.child("containers"), ""));
        }
        let mut known: HashSet<&str> = HashSet::new();
        let mut ports = HashSet::new();
        for kind in ["containers", "initContainers", "ephemeralContainers"] {
            for (path, container) in items(self.spec, kind, path) {
                self.container_name(container, &path, &mut known, errors);
                self.container(container, &path, errors);
                match kind {
                    "initContainers" => init_container(container, &path, errors),
                    _ => lifecycle(container, &path, errors),
                }
                if kind == "containers" {
                    host_ports(container, &path, &mut ports, errors);
                }
            }
        }
    }

    fn container_name(
        &self,
        container: &'a Value,
        path: &FieldPath,
        known: &mut HashSet<&'a str>,
        errors: &mut Errors,
    ) {
        let name = text(container, "name");
        if name.is_empty() {
            return errors.push(FieldError::required(&path.child("name"), ""));
        }
        invalid_each(&path.child("name"), name, names::dns1123_label(name), errors);
        if !known.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), &Value::from(name)));
        }
    }

    fn container(&self, container: &Value, path: &FieldPath, errors: &mut Errors) {
        if text(container, "image").is_empty() {
            errors.push(FieldError::required(&path.child("image"), ""));
        }
        if text(container, "terminationMessagePolicy").is_empty() {
            errors.push(FieldError::required(&path.child("terminationMessagePolicy"), ""));
        }
        for (path, variable) in items(container, "env", path) {
            environment(variable, &path, errors);
            let reference = variable.at(&["valueFrom", "fileKeyRef"]).filter(|reference| !reference.is_null());
            if let Some(reference) = reference
                && !self.volumes.contains(text(reference, "volumeName"))
            {
                let (path, name) =
                    (path.child("valueFrom").child("fileKeyRef").child("volumeName"), text(reference, "volumeName"));
                errors.push(FieldError::not_found(&path, &Value::from(name)));
            }
        }
        let sources = path.child("envFrom");
        list(container, "envFrom").iter().for_each(|source| environment_source(source, &sources, errors));
        self.mounts(container, path, errors);
        ports(container, path, errors);
        resources(container, path, &self.claims, errors);
        self.restart_rules(container, path, errors);
    }

    fn restart_rules(&self, container: &Value, path: &FieldPath, errors: &mut Errors) {
        if !list(container, "restartPolicyRules").is_empty() && !is_set(container, "restartPolicy") {
            let why = "must specify restartPolicy when restart rules are used";
            errors.push(FieldError::required(&path.child("restartPolicy"), why));
        }
        if !path.as_str().contains("initContainers") || is_set(container, "restartPolicy") {
            restart_rules(container, path, errors);
        }
        let pod_policy = text(self.spec, "restartPolicy");
        let (path, mut known) = (path.child("resizePolicy"), HashSet::new());
        for policy in list(container, "resizePolicy") {
            let (resource, given) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
            if !known.insert(resource) {
                errors.push(FieldError::duplicate(&path, &Value::from(resource)));
            }
            for (value, choices) in [(resource, ["cpu", "memory"]), (given, ["NotRequired", "RestartContainer"])] {
                if value.is_empty() {
                    errors.push(FieldError::required(&path, ""));
                } else if !choices.contains(&value) {
                    errors.push(FieldError::not_supported(&path, &Value::from(value), &choices));
                }
            }
            if pod_policy == "Never" && !given.is_empty() && given != "NotRequired" {
                let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
                errors.push(FieldError::invalid(&path, &Value::from(given), why));
            }
        }
    }

    fn mounts(&self, container: &Value, path: &FieldPath, errors: &mut Errors) {
        let mut places = HashSet::new();
        for (path, mount) in items(container, "volumeMounts", path) {
            let (name, place) = (text(mount, "name"), text(mount, "mountPath"));
            if name.is_empty() {
                errors.push(FieldError::required(&path.child("name"), ""));
            }
            if !self.volumes.contains(name) {
                errors.push(FieldError::not_found(&path.child("name"), &Value::from(name)));
            }
            mount_modes(mount, container, &path, errors);
            if !place.is_empty() && !places.insert(place) {
                let why = "must be unique";
                errors.push(FieldError::invalid(&path.child("mountPath"), &Value::from(place), why));
            }
        }
        for (path, device) in items(container, "volumeDevices", path) {
            let name = text(device, "name");
            if name.is_empty() {
                errors.push(FieldError::required(&path.child("name"), ""));
            }
            if !self.volumes.contains(name) {
                errors.push(FieldError::not_found(&path.child("name"), &Value::from(name)));
            }
        }
    }
}

/// The directory of a volume that is mounted, how mounts are seen outside of a container, and whether they are read-only below.
/// Upstream leaves out their index.
fn mount_modes(mount: &Value, container: &Value, path: &FieldPath, errors: &mut Errors) {
    if !text(mount, "subPath").is_empty() && !text(mount, "subPathExpr").is_empty() {
        let (path, given) = (path.child("subPathExpr"), Value::from(text(mount, "subPathExpr")));
        errors.push(FieldError::invalid(&path, &given, "subPathExpr and subPath are mutually exclusive"));
    }
    let path = FieldPath::new(path.as_str().rsplit_once('[').map_or(path.as_str(), |(list, _)| list));
    for name in ["subPath", "subPathExpr"] {
        rule_checks::local_path(mount.get(name).unwrap_or(&Value::Null), &path.child(name), errors);
    }
    if text(mount, "mountPropagation") == "Bidirectional" && !truth(container, &["securityContext", "privileged"]) {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(FieldError::forbidden(&path.child("mountPropagation"), why));
    }
    const MODES: [&str; 3] = ["Disabled", "Enabled", "IfPossible"];
    let (mode, path) = (text(mount, "recursiveReadOnly"), path.child("recursiveReadOnly"));
    if !is_set(mount, "recursiveReadOnly") {
        return;
    }
    if !MODES.contains(&mode) {
        return errors.push(FieldError::not_supported(&path, &Value::from(mode), &MODES));
    }
    if mode == "Disabled" {
        return;
    }
    if !truth(mount, &["readOnly"]) {
        let why = "may only be specified when readOnly is true";
        errors.push(FieldError::forbidden(&path, why));
    }
    if !["", "None"].contains(&text(mount, "mountPropagation")) {
        let why = "may only be specified when mountPropagation is None or not specified";
        errors.push(FieldError::forbidden(&path, why));
    }
}

fn restart_rules(container: &Value, path: &FieldPath, errors: &mut Errors) {
    const ACTIONS: [&str; 2] = ["Restart", "RestartAllContainers"];
    for (path, rule) in items(container, "restartPolicyRules", path) {
        let action = text(rule, "action");
        if action.is_empty() {
            errors.push(FieldError::required(&path.child("action"), ""));
        } else if !ACTIONS.contains(&action) {
            errors.push(FieldError::not_supported(&path.child("action"), &Value::from(action), &ACTIONS));
        }
        if !is_set(rule, "exitCodes") {
            errors.push(FieldError::required(&path.child("exitCodes"), "must be specified"));
        }
    }
}

fn init_container(container: &Value, path: &FieldPath, errors: &mut Errors) {
    let is_sidecar = text(container, "restartPolicy") == "Always";
    if is_sidecar {
        return lifecycle(container, path, errors);
    }
    for name in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if is_set(container, name) {
            errors.push(FieldError::forbidden(&path.child(name), NO_SIDECAR));
        }
    }
}

fn lifecycle(container: &Value, path: &FieldPath, errors: &mut Errors) {
    let grace = ["readinessProbe", "terminationGracePeriodSeconds"];
    if let Some(seconds) = container.at(&grace).filter(|seconds| !seconds.is_null()) {
        let path = path.child(grace[0]).child(grace[1]);
        errors.push(FieldError::invalid(&path, seconds, "must not be set for readinessProbes"));
    }
    for name in ["livenessProbe", "startupProbe"] {
        let seconds = container.at(&[name, grace[1]]).filter(|seconds| seconds.as_int().is_some_and(|it| it < 1));
        if let Some(seconds) = seconds {
            let path = path.child(name).child(grace[1]);
            errors.push(FieldError::invalid(&path, seconds, "must be greater than 0"));
        }
    }
    for name in ["livenessProbe", "startupProbe"] {
        let threshold = container.at(&[name, "successThreshold"]).filter(|number| number.as_int() != Some(1));
        if let Some(threshold) = threshold {
            errors.push(FieldError::invalid(&path.child(name).child("successThreshold"), threshold, "must be 1"));
        }
    }
}

fn ports(container: &Value, path: &FieldPath, errors: &mut Errors) {
    let mut known = HashSet::new();
    for (path, port) in items(container, "ports", path) {
        let name = text(port, "name");
        if !name.is_empty() && rule_checks::port_name_problems(name).is_empty() && !known.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), &Value::from(name)));
        }
        if text(port, "protocol").is_empty() {
            errors.push(FieldError::required(&path.child("protocol"), ""));
        }
    }
}

fn host_ports<'a>(
    container: &'a Value,
    path: &FieldPath,
    known: &mut HashSet<(i64, &'a str, &'a str)>,
    errors: &mut Errors,
) {
    for (path, port) in items(container, "ports", path) {
        let Some(number) = port.get("hostPort").and_then(Value::as_int).filter(|number| *number != 0) else { continue };
        let (protocol, address) = (text(port, "protocol"), text(port, "hostIP"));
        if !known.insert((number, protocol, address)) {
            let shown = format!("{protocol}/{address}/{number}");
            errors.push(FieldError::duplicate(&path.child("hostPort"), &Value::from(shown)));
        }
    }
}
