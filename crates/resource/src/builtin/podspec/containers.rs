//! Containers: names, ports, probes and restarts.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, names};

use super::environment::{environment, environment_source};
use super::resources::resources;
use super::{Errors, Pod, one_of_named};
use crate::builtin::checks::{invalid_each, is_set, items, list, named, text};
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
                container_name(container, kind, &path, &mut known, errors);
                self.container(container, &path, errors);
                let grace = self.spec.get("terminationGracePeriodSeconds").and_then(Value::as_int);
                match kind {
                    "initContainers" => init_container(container, grace, &path, errors),
                    "ephemeralContainers" => self.ephemeral_container(container, &path, errors),
                    _ => lifecycle(container, grace, &path, errors),
                }
                if kind == "containers" {
                    host_ports(container, &path, &mut ports, errors);
                }
            }
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
                && !self.volume_names.contains(text(reference, "volumeName"))
            {
                let (path, name) =
                    (path.child("valueFrom").child("fileKeyRef").child("volumeName"), text(reference, "volumeName"));
                errors.push(FieldError::not_found(&path, &Value::from(name)));
            }
        }
        let sources = path.child("envFrom");
        list(container, "envFrom").iter().for_each(|source| environment_source(source, &sources, errors));
        self.mounts(container, path, errors);
        self.devices(container, path, errors);
        ports(container, path, errors);
        resources(container, path, &self.claims, errors);
        self.restart_rules(container, path, errors);
        self.resize_policies(container, path, errors);
    }

    fn restart_rules(&self, container: &Value, path: &FieldPath, errors: &mut Errors) {
        if path.as_str().contains("ephemeralContainers") {
            // these have neither restart policies nor rules
            return;
        }
        if !list(container, "restartPolicyRules").is_empty() && !is_set(container, "restartPolicy") {
            let why = "must specify restartPolicy when restart rules are used";
            errors.push(FieldError::required(&path.child("restartPolicy"), why));
        }
        if !path.as_str().contains("initContainers") || is_set(container, "restartPolicy") {
            restart_rules(container, path, errors);
        }
    }

    fn resize_policies(&self, container: &Value, path: &FieldPath, errors: &mut Errors) {
        let pod_policy = text(self.spec, "restartPolicy");
        let (path, mut known) = (path.child("resizePolicy"), HashSet::new());
        for (i, policy) in list(container, "resizePolicy").iter().enumerate() {
            let (resource, given) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
            if !known.insert(resource) {
                errors.push(FieldError::duplicate(&path.index(i), &Value::from(resource)));
            }
            for (value, choices) in [(resource, ["cpu", "memory"]), (given, ["NotRequired", "RestartContainer"])] {
                match value {
                    "" => errors.push(FieldError::required(&path, "")),
                    value => one_of_named(value, &path, &choices, errors),
                }
            }
            if pod_policy == "Never" && given != "NotRequired" {
                let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
                let given = Value::from(given);
                errors.push(named(FieldError::invalid(&path, &given, why), &given));
            }
        }
    }
}

fn restart_rules(container: &Value, path: &FieldPath, errors: &mut Errors) {
    const ACTIONS: [&str; 2] = ["Restart", "RestartAllContainers"];
    const OPERATORS: [&str; 2] = ["In", "NotIn"];
    const RULES_MAX: usize = 20;
    const CODES_MAX: usize = 255;
    let count = list(container, "restartPolicyRules").len();
    if count > RULES_MAX {
        errors.push(FieldError::too_many(&path.child("restartPolicyRules"), count, RULES_MAX));
    }
    for (path, rule) in items(container, "restartPolicyRules", path) {
        one_of_named(text(rule, "action"), &path.child("action"), &ACTIONS, errors);
        let path = path.child("exitCodes");
        let Some(codes) = rule.get("exitCodes").filter(|codes| !codes.is_null()) else {
            errors.push(FieldError::required(&path, "must be specified"));
            continue;
        };
        one_of_named(text(codes, "operator"), &path.child("operator"), &OPERATORS, errors);
        let count = list(codes, "values").len();
        if count > CODES_MAX {
            errors.push(FieldError::too_many(&path.child("values"), count, CODES_MAX));
        }
    }
}

/// The name of a container must be a label that no container before it has. Missing names count as equal, except those
/// of init containers.
fn container_name<'a>(
    container: &'a Value,
    kind: &str,
    path: &FieldPath,
    known: &mut HashSet<&'a str>,
    errors: &mut Errors,
) {
    let (name, path) = (text(container, "name"), path.child("name"));
    if name.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else {
        invalid_each(&path, name, names::dns1123_label(name), errors);
    }
    let is_counted = !name.is_empty() || kind != "initContainers";
    if known.contains(name) || is_counted && !known.insert(name) {
        errors.push(FieldError::duplicate(&path, &Value::from(name)));
    }
}

fn init_container(container: &Value, grace: Option<i64>, path: &FieldPath, errors: &mut Errors) {
    let is_sidecar = text(container, "restartPolicy") == "Always";
    if is_sidecar {
        return lifecycle(container, grace, path, errors);
    }
    for name in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if is_set(container, name) {
            errors.push(FieldError::forbidden(
                &path.child(name),
                "may not be set for init containers without restartPolicy=Always",
            ));
        }
    }
}

/// Checks handlers that sleep, and the rules of probes that come before all others. `grace` is the grace period of the
/// Pod in seconds.
fn lifecycle(container: &Value, grace: Option<i64>, path: &FieldPath, errors: &mut Errors) {
    sleeps(container, grace, &path.child("lifecycle"), errors);
    const GRACE: &str = "terminationGracePeriodSeconds";
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get(name).filter(|probe| !probe.is_null()) else { continue };
        let path = path.child(name);
        let grace = probe.get(GRACE).filter(|seconds| !seconds.is_null());
        if let Some(seconds) = grace.filter(|seconds| seconds.as_int().is_some_and(|seconds| seconds < 1)) {
            errors.push(FieldError::invalid(&path.child(GRACE), seconds, "must be greater than 0"));
        }
        if name == "readinessProbe" {
            let why = "must not be set for readinessProbes";
            errors.extend(grace.map(|seconds| FieldError::invalid(&path.child(GRACE), seconds, why)));
            continue;
        }
        if let Some(threshold) = probe.get("successThreshold").filter(|number| number.as_int() != Some(1)) {
            errors.push(FieldError::invalid(&path.child("successThreshold"), threshold, "must be 1"));
        }
    }
}

/// Handlers must not sleep longer than the grace period of the Pod.
fn sleeps(container: &Value, grace: Option<i64>, path: &FieldPath, errors: &mut Errors) {
    const DEFAULT_SECONDS: i64 = 30;
    // a negative grace period counts as one second
    let most = grace.map_or(DEFAULT_SECONDS, |grace| if grace < 0 { 1 } else { grace });
    for hook in ["postStart", "preStop"] {
        let Some(handler) = container.at(&["lifecycle", hook]).filter(|handler| is_set(handler, "sleep")) else {
            continue;
        };
        let is_other = ["exec", "httpGet", "tcpSocket"].iter().any(|other| is_set(handler, other));
        let seconds = handler.at(&["sleep", "seconds"]).and_then(Value::as_int).unwrap_or_default();
        if !is_other && !(0..=most).contains(&seconds) {
            let why = format!("must be non-negative and less than terminationGracePeriodSeconds ({most})");
            errors.push(FieldError::invalid(&path.child(hook).child("sleep"), &Value::Int(seconds), why));
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

/// The images of containers in Pods, and of ephemeral containers, must not have whitespace around them. Those in
/// templates may.
pub fn image_errors(container: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let image = text(container, "image");
    if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        errors.push(FieldError::invalid(&path.child("image"), &Value::from(image), why));
    }
}
