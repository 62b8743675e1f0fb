//! APIServices, the objects that stand for groups and versions.

use crate::core::config::decoded_len;
use schema::at::At;

use base::clock;
use machinery::{Value, json, names};

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

pub fn validate(at: At) {
    let spec = at.field("spec");
    let wanted = format!("{}.{}", spec.text("version"), spec.text("group"));
    for field in ["metadata.generateName", "metadata.name"] {
        let name = at.text(field);
        if !name.is_empty() && name != wanted && names::path_segment(name).is_empty() {
            let why = format!("must be `spec.version+\".\"+spec.group`: {}", machinery::value::quote(&wanted));
            at.field(field).invalid(why);
        }
    }
}

/// A local APIService has no service to call, so it has no certificates for that.
pub fn no_bundle(bundle: At) {
    let shown = format!("{} bytes", decoded_len(bundle.as_text()));
    bundle.shown_as_text(&shown).invalid("local APIServices may not have a caBundle");
}

pub fn validate_status(at: At) {
    at.items_of("status.conditions")
        .for_each(|one| one.field("status").shown_as_json().one_of(&["True", "False", "Unknown"]));
}

#[cfg(test)]
mod tests {
    use machinery::Release;

    use super::*;
    use crate::catalogue::CATALOGUE;

    #[test]
    fn validates_specs() {
        let object = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
        let of = |more: Value| {
            let mut spec =
                json!({"group": "a.b", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100});
            more.fields().for_each(|(key, value)| {
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
            let row = CATALOGUE.row_of("apiregistration.k8s.io/v1", "APIService").unwrap();
            let found: Vec<String> = row
                .errors(&object, None, Release::NEWEST)
                .iter()
                .map(|e| format!("{}: {}", e.field, e.message()))
                .collect();
            assert_eq!(found.join(", "), want);
        }
    }
}
