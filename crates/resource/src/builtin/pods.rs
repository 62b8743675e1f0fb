//! Pods, and the templates of Pods in other kinds.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::{Map, Release, Value, json, names};

use super::Selectable;
use super::checks::{invalid_each, items, text};

/// The lists of containers in a Pod's spec.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

pub const SELECTABLE: &[Selectable] = &[
    ("spec.nodeName", &["spec.nodeName"]),
    ("spec.restartPolicy", &["spec.restartPolicy"]),
    ("spec.schedulerName", &["spec.schedulerName"]),
    ("spec.serviceAccountName", &["spec.serviceAccountName"]),
    ("status.nominatedNodeName", &["status.nominatedNodeName"]),
    ("status.phase", &["status.phase"]),
    ("status.podIP", &["status.podIP"]),
];

pub fn default(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec") else { return };
    default_spec(spec);
    if spec.get("enableServiceLinks").is_none() {
        spec.set_at(&["enableServiceLinks"], Value::Bool(true));
    }
    for list in CONTAINERS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            default_requests(container);
        }
    }
}

/// Requests default to limits.
fn default_requests(container: &mut Value) {
    let limits = container.at(&["resources", "limits"]).and_then(Value::as_object).cloned().unwrap_or_default();
    for (name, limit) in limits.iter() {
        let request = ["resources", "requests", name.as_str()];
        if container.at(&request).is_none() {
            container.set_at(&request, limit.clone());
        }
    }
}

/// Defaults that depend on other fields of a Pod's spec.
pub fn default_spec(spec: &mut Value) {
    for list in CONTAINERS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            default_container(container);
        }
    }
    // two names of one field
    let account = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount"),
        name => name,
    }
    .to_owned();
    if !account.is_empty() {
        spec.set_at(&["serviceAccountName"], Value::from(account.as_str()));
        spec.set_at(&["serviceAccount"], Value::from(account));
    }
    if spec.get("hostNetwork").and_then(Value::as_bool).unwrap_or_default() {
        default_host_ports(spec);
    }
}

fn default_container(container: &mut Value) {
    if text(container, "imagePullPolicy").is_empty() {
        let policy = if is_latest(text(container, "image")) { "Always" } else { "IfNotPresent" };
        container.set_at(&["imagePullPolicy"], Value::from(policy));
    }
}

/// Whether an image has the tag `latest`, which one without tag and digest has.
fn is_latest(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or(image);
    match (name.contains('@'), name.split_once(':')) {
        (true, _) => false,
        (false, None) => true,
        (false, Some((_, tag))) => tag == "latest",
    }
}

fn default_host_ports(spec: &mut Value) {
    for list in CONTAINERS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                if let (None, Some(number)) = (port.get("hostPort"), port.get("containerPort").cloned()) {
                    port.set_at(&["hostPort"], number);
                }
            }
        }
    }
}

/// A new Pod is pending and of a class of service.
pub fn prepare(pod: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        let class = quality_of_service(pod);
        pod.set_at(&["status"], json!({"phase": "Pending", "qosClass": class}));
    }
}

/// Guaranteed if limits and requests of all containers are equal, BestEffort if there are none, else Burstable.
fn quality_of_service(pod: &Value) -> &'static str {
    let containers = ["initContainers", "containers"]
        .into_iter()
        .filter_map(|list| pod.at(&["spec", list]))
        .filter_map(Value::as_array)
        .flatten();
    let (mut any, mut all) = (false, true);
    for container in containers {
        for resource in ["cpu", "memory"] {
            let limit = container.at(&["resources", "limits", resource]);
            let request = container.at(&["resources", "requests", resource]);
            any |= limit.is_some() || request.is_some();
            all &= limit.is_some() && limit == request;
        }
    }
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

pub fn validate(pod: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let path = FieldPath::new("spec");
    let empty = Value::object();
    let spec = pod.get("spec").unwrap_or(&empty);
    validate_spec(spec, &path, &mut errors);
    if let Some(old) = old.and_then(|old| old.get("spec")) {
        validate_change(spec, old, &path, &mut errors);
    }
    errors
}

const CHANGEABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

fn validate_change(spec: &Value, old: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let fixed = |spec: &Value| {
        let mut spec = spec.clone();
        for list in ["containers", "initContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                container.remove_at(&["image"]);
            }
        }
        for name in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
            spec.remove_at(&[name]);
        }
        spec
    };
    if fixed(spec) != fixed(old) {
        errors.push(FieldError::forbidden(path, CHANGEABLE));
    }
}

/// Validates the spec of a Pod or of a template of Pods.
pub fn validate_spec(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut volumes = HashSet::new();
    for (path, volume) in items(spec, "volumes", path) {
        let name = text(volume, "name");
        check_name(name, &path.child("name"), &mut volumes, errors);
    }
    if items(spec, "containers", path).next().is_none() {
        errors.push(FieldError::required(&path.child("containers"), ""));
    }
    let mut known = HashSet::new();
    for list in ["containers", "initContainers"] {
        for (path, container) in items(spec, list, path) {
            check_name(text(container, "name"), &path.child("name"), &mut known, errors);
            if text(container, "image").is_empty() {
                errors.push(FieldError::required(&path.child("image"), ""));
            }
            for (path, mount) in items(container, "volumeMounts", &path) {
                let name = text(mount, "name");
                if name.is_empty() {
                    errors.push(FieldError::required(&path.child("name"), ""));
                } else if !volumes.contains(name) {
                    errors.push(FieldError::not_found(&path.child("name"), &Value::from(name)));
                }
                if text(mount, "mountPath").is_empty() {
                    errors.push(FieldError::required(&path.child("mountPath"), ""));
                }
            }
        }
    }
}

/// Validates a name that is a DNS label and stands once in its list.
fn check_name<'a>(name: &'a str, path: &FieldPath, known: &mut HashSet<&'a str>, errors: &mut Vec<FieldError>) {
    if name.is_empty() {
        // reported as a missing field by the rules of its type
        return;
    }
    invalid_each(path, name, names::dns1123_label(name), errors);
    if !known.insert(name) {
        errors.push(FieldError::duplicate(path, &Value::from(name)));
    }
}

/// The labels of a template of Pods.
pub fn template_labels(template: &Value) -> Option<&Map> {
    template.at(&["metadata", "labels"]).and_then(Value::as_object)
}
