//! APIServices, the objects that stand for groups and versions.

use super::config::decoded_len;

use base::clock;
use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, json, names};

use super::checks::{invalid_each, items, one_of, text};

/// The label that says when the server maintains an APIService: at its start (`onstart`) or always (`true`).
pub const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
pub const MANAGED_AT_START: &str = "onstart";
pub const MANAGED_ALWAYS: &str = "true";

/// API group of APIService.
pub const REGISTRATION_GROUP: &str = "apiregistration.k8s.io";
/// Plural name of APIService.
pub const API_SERVICES: &str = "apiservices";

/// A local APIService is available as soon as it is created.
pub fn prepare(object: &mut Value, old: Option<&Value>) {
    if old.is_some() {
        return;
    }
    object.set_at(&["status"], Value::object());
    if object.at(&["spec", "service"]).is_none() {
        object.set_at(&["status", "conditions"], json!([(local(&clock::now_rfc3339()))]));
    }
}

/// Reason and message of the `Available` condition of local APIServices.
pub const SERVED_HERE: (&str, &str) = ("Local", "Local APIServices are always available");

/// The `Available` condition of a local APIService.
fn local(now: &str) -> Value {
    let (reason, message) = SERVED_HERE;
    json!({"type": "Available", "status": "True", "lastTransitionTime": now, "reason": reason, "message": message})
}

pub fn validate(new: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (path, spec) = (FieldPath::new("spec"), new.get("spec").unwrap_or(&Value::Null));
    let mut errors = vec![];
    let (group, version) = (text(spec, "group"), text(spec, "version"));
    let wanted = format!("{version}.{group}");
    for field in ["generateName", "name"] {
        let name = new.str_at(&["metadata", field]);
        if !name.is_empty() && name != wanted && names::path_segment(name).is_empty() {
            let why = format!("must be `spec.version+\".\"+spec.group`: {}", machinery::value::quote(&wanted));
            errors.push(FieldError::invalid(&FieldPath::new("metadata").child(field), &Value::from(name), why));
        }
    }
    if !group.is_empty() {
        invalid_each(&path.child("group"), group, names::dns1123_subdomain(group), &mut errors);
    } else if version != "v1" {
        let why = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required(&path.child("group"), why));
    }
    invalid_each(&path.child("version"), version, names::dns1035_label(version), &mut errors);
    for (field, max) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let value = spec.get(field).cloned().unwrap_or(Value::Int(0));
        if !value.as_int().is_some_and(|number| (1..=max).contains(&number)) {
            let why = format!("must be positive and less than {max}");
            errors.push(FieldError::invalid(&path.child(field), &value, why));
        }
    }
    match spec.get("service") {
        Some(service) => service_errors(service, &path.child("service"), &mut errors),
        None => local_errors(spec, &path, &mut errors),
    }
    if spec.get("service").is_some() && spec.get("caBundle").is_some() && is_unverified(spec) {
        let why = "may not be true if caBundle is present";
        errors.push(FieldError::invalid(&path.child("insecureSkipTLSVerify"), &Value::from(true), why));
    }
    errors
}

pub fn validate_status(new: &Value, _old: &Value, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    for (path, condition) in items(new.get("status").unwrap_or(&Value::Null), "conditions", &FieldPath::new("status")) {
        one_of(condition, "status", &path, &["True", "False", "Unknown"], &mut errors);
    }
    errors
}

fn is_unverified(spec: &Value) -> bool {
    spec.get("insecureSkipTLSVerify") == Some(&Value::Bool(true))
}

fn service_errors(service: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for field in ["namespace", "name"] {
        if text(service, field).is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
    let port = service.get("port").cloned().unwrap_or(Value::Int(443));
    if !port.as_int().is_some_and(|number| (1..=65535).contains(&number)) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&path.child("port"), &port, why));
    }
}

/// Validates a local APIService: it has no service to call, so nothing about calling one may be set.
fn local_errors(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if let Some(bundle) = spec.get("caBundle").and_then(Value::as_str) {
        let bytes = decoded_len(bundle);
        let why = "local APIServices may not have a caBundle";
        errors.push(FieldError::invalid(&path.child("caBundle"), &Value::from(format!("{bytes} bytes")), why));
    }
    if is_unverified(spec) {
        let why = "local APIServices may not have insecureSkipTLSVerify";
        errors.push(FieldError::invalid(&path.child("insecureSkipTLSVerify"), &Value::from(true), why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validates_specs() {
        let object = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
        let of = |more: Value| {
            let mut spec =
                json!({"group": "a.b", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100});
            more.as_object().into_iter().flat_map(machinery::Map::iter).for_each(|(key, value)| {
                spec.set_at(&[key], value.clone());
            });
            object("v1.a.b", spec)
        };
        let service = || json!({"name": "s", "namespace": "n"});
        let cases = [
            (of(json!({})), ""),
            (of(json!({"service": (service())})), ""),
            (
                of(json!({"groupPriorityMinimum": 20001, "versionPriority": 0})),
                "spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000, \
                 spec.versionPriority: Invalid value: 0: must be positive and less than 1000",
            ),
            (
                of(json!({"service": {"name": "s", "port": 0}})),
                "spec.service.namespace: Required value, \
                 spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
            ),
            (
                of(json!({"caBundle": "YQ=="})),
                "spec.caBundle: Invalid value: \"1 bytes\": local APIServices may not have a caBundle",
            ),
            (
                of(json!({"insecureSkipTLSVerify": true})),
                "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
            ),
            (
                of(json!({"service": (service()), "caBundle": "YQ==", "insecureSkipTLSVerify": true})),
                "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
            ),
            (
                object("v2.", json!({"version": "v2", "groupPriorityMinimum": 1, "versionPriority": 1})),
                "spec.group: Required value: only v1 may have an empty group and it better be legacy kube",
            ),
            (
                object("x", json!({"group": "b", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1})),
                "metadata.name: Invalid value: \"x\": must be `spec.version+\".\"+spec.group`: \"v1.b\"",
            ),
            (
                json!({"metadata": {"name": "v1.b", "generateName": "x"},
                       "spec": {"group": "b", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}}),
                "metadata.generateName: Invalid value: \"x\": must be `spec.version+\".\"+spec.group`: \"v1.b\"",
            ),
        ];
        for (object, want) in cases {
            let found: Vec<String> = validate(&object, None, Release::NEWEST)
                .iter()
                .map(|e| format!("{}: {}", e.field, e.message()))
                .collect();
            assert_eq!(found.join(", "), want);
        }
    }
}
