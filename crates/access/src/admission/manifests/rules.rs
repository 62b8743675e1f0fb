//! Rules for manifests in addition to the validation of their kinds: their names, and references to other objects.

use std::collections::{HashMap, HashSet};

use machinery::Value;
use machinery::value::quote;
use resource::builtin::STATIC_SUFFIX;

use super::{Manifests, name};

/// Names must have the reserved suffix, and must be unique among the objects of a kind.
pub fn check_name(
    kind: &'static str,
    name: &str,
    path: &str,
    known: &mut HashMap<(&'static str, String), String>,
) -> Result<(), String> {
    if name.is_empty() {
        return Err(format!("resource in file {} must have a name", quote(path)));
    }
    if !name.ends_with(STATIC_SUFFIX) {
        let (name, path, suffix) = (quote(name), quote(path), quote(STATIC_SUFFIX));
        return Err(format!("{name} in file {path} must have a name ending with {suffix}"));
    }
    match known.insert((kind, name.to_owned()), path.to_owned()) {
        None => Ok(()),
        Some(other) => {
            let (name, path, other) = (quote(name), quote(path), quote(&other));
            Err(format!("duplicate name {name} found in file {path} (previously seen in {other})"))
        }
    }
}

/// Webhooks must have URLs: objects of the API, such as Services, may not exist yet.
pub fn check_webhooks(configuration: &Value, path: &str) -> Result<(), String> {
    for hook in configuration.items_at(&["webhooks"]) {
        let why = match hook.get("clientConfig") {
            Some(client) if client.get("service").is_some() => {
                "clientConfig.service is not supported for static manifests; use clientConfig.url instead"
            }
            Some(client) if !client.str_at(&["url"]).is_empty() => continue,
            _ => "clientConfig.url is required for static manifests",
        };
        let (hook, configuration) = (quote(hook.str_at(&["name"])), quote(name(configuration)));
        return Err(format!("webhook {hook} in {configuration} (file {}): {why}", quote(path)));
    }
    Ok(())
}

/// Policies must not have parameters, which are objects of the API.
pub fn check_policy(kind: &str, policy: &Value) -> Result<(), String> {
    match policy.at(&["spec", "paramKind"]) {
        Some(_) => Err(format!("{kind} {}: spec.paramKind is not supported for static manifests", quote(name(policy)))),
        None => Ok(()),
    }
}

/// Bindings must not have parameters either, and must name policies of manifests.
pub fn check_binding(binding: &Value) -> Result<(), String> {
    let policy = binding.str_at(&["spec", "policyName"]);
    let why = if policy.is_empty() {
        return Err(format!("binding {} must reference a policy (spec.policyName)", quote(name(binding))));
    } else if !policy.ends_with(STATIC_SUFFIX) {
        format!("spec.policyName {} must end with {}", quote(policy), quote(STATIC_SUFFIX))
    } else if binding.at(&["spec", "paramRef"]).is_some() {
        "spec.paramRef is not supported for static manifests".to_owned()
    } else {
        return Ok(());
    };
    Err(format!("binding {}: {why}", quote(name(binding))))
}

/// The policies of bindings must be in the same directory.
pub fn check_references(manifests: &Manifests) -> Result<(), String> {
    let policies: HashSet<&str> = manifests.objects.iter().map(name).collect();
    let policy_of = |binding: &Value| binding.str_at(&["spec", "policyName"]).to_owned();
    match manifests.bindings.iter().find(|binding| !policies.contains(policy_of(binding).as_str())) {
        Some(binding) => {
            let (binding, policy) = (quote(name(binding)), quote(&policy_of(binding)));
            Err(format!("binding {binding} references policy {policy} which does not exist in the manifest directory"))
        }
        None => Ok(()),
    }
}
