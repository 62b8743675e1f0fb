//! Rules for the spec of Pods and of Pod templates that are neither defaults nor entries of the table of rules.

mod containers;
mod environment;
mod ephemeral;
mod groups;
mod host;
mod mounts;
mod resources;
mod scheduling;
mod security;
mod whole;
mod windows;

pub use super::checks::selector_operators;
pub use containers::image_errors;
pub use resources::{container_resource, is_overcommitted, resource_name};
pub use scheduling::{node_selector, take_label_keys, validate_toleration};
pub use security::PROFILE_BYTES_MAX;
pub use whole::{complete, quality_of_service};

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, json, names};

use super::checks::{invalid_each, invalid_internal, is_set, items, list, named, text};
use super::pod_volumes;
use scheduling::{affinity, spread};
use security::security;

type Errors = Vec<FieldError>;

fn truth(object: &Value, path: &[&str]) -> bool {
    object.at(path).and_then(Value::as_bool).unwrap_or_default()
}

/// Validates the overhead of Pods, whose errors kube-apiserver words as if it were limits.
pub fn overhead(amounts: Option<&Value>, path: &FieldPath, errors: &mut Errors) {
    let limits = json!({"limits": (amounts.cloned().unwrap_or_default())});
    resources::amounts(&limits, path, container_resource, errors);
}

/// Validates the spec of a Pod or of a Pod template.
pub fn validate_spec(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let volumes = pod_volumes::valid_names(spec, path, errors);
    let claims = resources::Claims::of(spec);
    let is_claim = |volume: &&Value| is_set(volume, "persistentVolumeClaim") || is_set(volume, "ephemeral");
    let claim_volumes = list(spec, "volumes").iter().filter(is_claim).map(|volume| text(volume, "name")).collect();
    let targets = ["containers", "initContainers"].into_iter().flat_map(|kind| list(spec, kind));
    let targets = targets.map(|container| text(container, "name")).collect();
    let volume_names = list(spec, "volumes").iter().map(|volume| text(volume, "name")).collect();
    let pod = Pod { spec, volumes, volume_names, claim_volumes, targets, claims };
    pod.containers(path, errors);
    pod.restart_policy(path, errors);
    host::errors(spec, path, errors);
    pod.names(path, errors);
    pod.dns(path, errors);
    pod.claims(path, errors);
    if let Some(system) = spec.get("os").map(|os| text(os, "name")).filter(|name| !name.is_empty()) {
        const SYSTEMS: [&str; 2] = ["linux", "windows"];
        one_of_named(system, &path.child("os"), &SYSTEMS, errors);
    }
    security(spec, path, errors);
    windows::host_processes(spec, path, errors);
    host::user_namespace(spec, path, errors);
    windows::system_errors(spec, path, errors);
    resources::of_pod(spec, path, &pod.claims, errors);
    overhead(spec.get("overhead"), &path.child("overhead"), errors);
    for (path, toleration) in items(spec, "tolerations", path) {
        validate_toleration(toleration, &path, errors);
    }
    affinity(spec, path, errors);
    spread(spec, path, errors);
    groups::scheduling_group(spec, path, errors);
    groups::eviction_responders(spec, path, errors);
}

/// A value of a named Go type must be one of the `known` ones.
fn one_of_named(value: &str, path: &FieldPath, known: &[&str], errors: &mut Errors) {
    if !known.contains(&value) {
        let value = Value::from(value);
        errors.push(named(FieldError::not_supported(path, &value, known), &value));
    }
}

struct Pod<'a> {
    spec: &'a Value,
    /// The names of the valid volumes.
    volumes: HashSet<&'a str>,
    /// The names of all volumes.
    volume_names: HashSet<&'a str>,
    /// The names of the volumes that are PersistentVolumeClaims.
    claim_volumes: HashSet<&'a str>,
    /// The names of the containers that ephemeral containers may target.
    targets: HashSet<&'a str>,
    claims: resources::Claims<'a>,
}

impl<'a> Pod<'a> {
    fn restart_policy(&self, path: &FieldPath, errors: &mut Errors) {
        let policy = text(self.spec, "restartPolicy");
        if policy.is_empty() {
            errors.push(FieldError::required(&path.child("restartPolicy"), ""));
        }
        if is_set(self.spec, "preemptionPolicy") {
            let path = path.child("preemptionPolicy");
            match text(self.spec, "preemptionPolicy") {
                "" => errors.push(FieldError::required(&path, "")),
                given => one_of_named(given, &path, &["PreemptLowerPriority", "Never"], errors),
            }
        }
        if text(self.spec, "dnsPolicy").is_empty() {
            errors.push(FieldError::required(&path.child("dnsPolicy"), ""));
        }
    }

    fn names(&self, path: &FieldPath, errors: &mut Errors) {
        let mut known = HashSet::new();
        for (path, gate) in items(self.spec, "schedulingGates", path) {
            let name = text(gate, "name");
            invalid_each(&path, name, names::qualified_name(name), errors);
            if !known.insert(name) {
                errors.push(FieldError::duplicate(&path, &Value::from(name)));
            }
        }
    }

    /// Each ResourceClaim must be referred to by name or made from a template.
    fn claims(&self, path: &FieldPath, errors: &mut Errors) {
        let mut known = HashSet::new();
        for (path, claim) in items(self.spec, "resourceClaims", path) {
            let name = text(claim, "name");
            if name.is_empty() {
                errors.push(FieldError::required(&path.child("name"), ""));
            } else if !known.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), &Value::from(name)));
            } else {
                invalid_each(&path.child("name"), name, names::dns1123_label(name), errors);
            }
            const SOURCES: [&str; 2] = ["resourceClaimName", "resourceClaimTemplateName"];
            let why = match SOURCES.iter().filter(|source| is_set(claim, source)).count() {
                0 => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
                1 => "",
                _ => "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            };
            if !why.is_empty() {
                errors.push(invalid_internal(&path, claim, "core.PodResourceClaim", why));
            }
            for source in SOURCES.into_iter().filter(|source| is_set(claim, source)) {
                let name = text(claim, source);
                invalid_each(&path.child(source), name, names::dns1123_subdomain(name), errors);
            }
        }
    }

    fn dns(&self, path: &FieldPath, errors: &mut Errors) {
        let (policy, path) = (text(self.spec, "dnsPolicy"), path.child("dnsConfig"));
        let config = self.spec.get("dnsConfig").unwrap_or(&Value::Null);
        if policy == "None" {
            if !is_set(self.spec, "dnsConfig") {
                let why = "must provide `dnsConfig` when `dnsPolicy` is None";
                errors.push(FieldError::required(&path, why));
            } else if list(config, "nameservers").is_empty() {
                let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
                errors.push(FieldError::required(&path.child("nameservers"), why));
            }
        }
        const SERVERS_MAX: usize = 3;
        const SEARCHES_MAX: usize = 32;
        const SEARCH_CHARACTERS_MAX: usize = 2048;
        if list(config, "nameservers").len() > SERVERS_MAX {
            let (given, why) =
                (config.get("nameservers").cloned().unwrap_or_default(), "must not have more than 3 nameservers");
            errors.push(FieldError::invalid(&path.child("nameservers"), &given, why));
        }
        let searches = list(config, "searches");
        let characters = searches.iter().filter_map(Value::as_str).map(|search| search.len() + 1).sum::<usize>();
        let problems = [
            (searches.len() > SEARCHES_MAX, "must not have more than 32 search paths"),
            (
                characters > SEARCH_CHARACTERS_MAX + 1,
                "must not have more than 2048 characters (including spaces) in the search list",
            ),
        ];
        for (_, why) in problems.into_iter().filter(|(is_given, _)| *is_given) {
            let given = config.get("searches").cloned().unwrap_or_default();
            errors.push(FieldError::invalid(&path.child("searches"), &given, why));
        }
        for (path, option) in items(config, "options", &path) {
            if text(option, "name").is_empty() {
                errors.push(FieldError::required(&path, "must not be empty"));
            }
        }
    }
}
