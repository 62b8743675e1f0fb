//! PodSecurity: enforces the Pod Security Standards that the labels of a namespace name.

mod checks;
mod configuration;
mod containers;
mod existing;
mod policy;

use machinery::status::aggregate;
use machinery::{FieldError, Status, Value};

use super::{Decision, Handled, PluginRequest};
pub use configuration::PodSecurity;
use policy::{LevelVersion, SecurityLevel, SecurityPolicy};

/// The resources that are checked: Pods, kinds with a Pod template, and namespaces.
pub const RESOURCES: &[Handled] = &[
    ("", "namespaces", ""),
    ("", "pods", ""),
    ("", "pods", "ephemeralcontainers"),
    ("", "pods", "resize"),
    ("", "podtemplates", ""),
    ("", "replicationcontrollers", ""),
    ("apps", "daemonsets", ""),
    ("apps", "deployments", ""),
    ("apps", "replicasets", ""),
    ("apps", "statefulsets", ""),
    ("batch", "cronjobs", ""),
    ("batch", "jobs", ""),
];

/// A Pod or a Pod template.
#[derive(Clone, Copy)]
struct Pod<'a> {
    annotations: &'a Value,
    spec: &'a Value,
}

impl<'a> Pod<'a> {
    fn of(object: &'a Value) -> Pod<'a> {
        let null = &Value::Null;
        let annotations = object.at(&["metadata", "annotations"]).unwrap_or(null);
        Pod { annotations, spec: object.get("spec").unwrap_or(null) }
    }
}

pub fn validate(call: &PluginRequest<'_>) -> Decision {
    match call.attributes.plural().as_str() {
        "namespaces" => validate_namespace(call),
        "pods" => validate_pod(call),
        _ => validate_template(call),
    }
}

fn policy_of(call: &PluginRequest<'_>, namespace: &Value) -> (SecurityPolicy, Vec<FieldError>) {
    let labels = namespace.at(&["metadata", "labels"]).unwrap_or(&Value::Null);
    call.settings.pod_security.defaults.with(labels)
}

fn validate_namespace(call: &PluginRequest<'_>) -> Decision {
    let namespace = call.object();
    let (new, errors) = policy_of(call, namespace);
    let name = namespace.str_at(&["metadata", "name"]);
    let invalid = || Status::invalid("", "Namespace", name, &errors);
    let exempt = call.settings.pod_security.exempts_namespace(name);
    if call.is_create() {
        if !errors.is_empty() {
            return Err(invalid().into());
        }
        if exempt {
            warn_of_exemption(call, name, &new, namespace);
        }
        return Ok(());
    }
    let (old, old_errors) = policy_of(call, call.old());
    if !errors.is_empty() && errors != old_errors {
        return Err(invalid().into());
    }
    let (new_level, old_level) = (new.enforce.level, old.enforce.level);
    let is_relaxed = new.enforce.version == old.enforce.version && new_level <= old_level;
    if new.enforce == old.enforce || new_level == SecurityLevel::Privileged || is_relaxed {
        return Ok(());
    }
    if exempt {
        warn_of_exemption(call, name, &new, namespace);
    } else {
        existing::warnings(call, name, new.enforce).into_iter().for_each(|warning| (call.attributes.warn)(warning));
    }
    Ok(())
}

/// Warns that the labels of an exempt namespace have no effect.
fn warn_of_exemption(call: &PluginRequest<'_>, name: &str, policy: &SecurityPolicy, namespace: &Value) {
    let defaults = &call.settings.pod_security.defaults;
    if policy.is_privileged() || policy.is_equivalent(defaults) {
        return;
    }
    let has = |label: &str| namespace.at(&["metadata", "labels", &format!("{}{label}", policy::PREFIX)]).is_some();
    let modes = [("enforce", policy.enforce), ("audit", policy.audit), ("warn", policy.warn)];
    let ignored = modes.iter().filter(|(mode, level)| {
        level.level != SecurityLevel::Privileged && (has(mode) || has(&format!("{mode}-version")))
    });
    let ignored: Vec<String> = ignored.map(|(mode, level)| format!("{mode}={level}")).collect();
    if !ignored.is_empty() {
        (call.attributes.warn)(format!(
            "namespace {name:?} is exempt from Pod Security, and the policy ({}) will be ignored",
            ignored.join(", ")
        ));
    }
}

fn annotate(call: &PluginRequest<'_>, key: &str, text: impl FnOnce() -> String) {
    call.attributes.annotate(&format!("{}{key}", policy::PREFIX), text);
}

/// Whether the namespace or the user of a write is exempt.
fn is_exempt(call: &PluginRequest<'_>) -> bool {
    let configuration = &call.settings.pod_security;
    let exemption = if configuration.exempts_namespace(call.attributes.namespace) {
        "namespace"
    } else if configuration.exempts_user(&call.attributes.user.name) {
        "user"
    } else {
        return false;
    };
    annotate(call, "exempt", || exemption.to_owned());
    true
}

fn validate_pod(call: &PluginRequest<'_>) -> Decision {
    if is_exempt(call) {
        return Ok(());
    }
    let (policy, errors) = policy_of_namespace(call)?;
    if errors.is_empty() && policy.is_privileged() {
        annotate(call, "enforce-policy", || LevelVersion::PRIVILEGED.to_string());
        return Ok(());
    }
    let pod = call.object();
    if !call.is_create() && !containers::images_differ(pod, call.old()) {
        return Ok(());
    }
    evaluate(call, &policy, &errors, Pod::of(pod), Enforcement::Enforced)
}

fn validate_template(call: &PluginRequest<'_>) -> Decision {
    if is_exempt(call) {
        return Ok(());
    }
    let (policy, errors) = policy_of_namespace(call)?;
    let allows_all = policy.warn.level == SecurityLevel::Privileged && policy.audit.level == SecurityLevel::Privileged;
    if errors.is_empty() && allows_all {
        return Ok(());
    }
    let object = call.object();
    let template = match call.attributes.plural().as_str() {
        "podtemplates" => object.get("template"),
        "cronjobs" => object.at(&["spec", "jobTemplate", "spec", "template"]),
        _ => object.at(&["spec", "template"]),
    };
    match template {
        Some(template) => evaluate(call, &policy, &errors, Pod::of(template), Enforcement::Advisory),
        None => Ok(()),
    }
}

fn policy_of_namespace(call: &PluginRequest<'_>) -> Result<(SecurityPolicy, Vec<FieldError>), Status> {
    let name = call.attributes.namespace.as_str();
    let namespace = call.get("", "namespaces", name);
    let namespace = namespace.ok_or_else(|| Status::internal(format!("failed to lookup namespace {name:?}")))?;
    Ok(policy_of(call, &namespace))
}

/// Whether a violation rejects the write: only a Pod is rejected, an object with a Pod template is not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Enforcement {
    Enforced,
    Advisory,
}

/// Evaluates the three modes of a policy.
fn evaluate(
    call: &PluginRequest<'_>,
    policy: &SecurityPolicy,
    errors: &[FieldError],
    pod: Pod<'_>,
    enforcement: Enforcement,
) -> Decision {
    if call.settings.pod_security.exempts_runtime_class(pod.spec.str_at(&["runtimeClassName"])) {
        annotate(call, "exempt", || "runtimeClass".to_owned());
        return Ok(());
    }
    if !errors.is_empty() {
        let texts: Vec<String> = errors.iter().map(policy::error_text).collect();
        annotate(call, "error", || format!("Failed to parse policy: {}", aggregate(&texts)));
    }
    let violated = |level: LevelVersion| -> Option<String> {
        let violations = checks::evaluate(level, pod, call.settings.release);
        (!violations.is_empty()).then(|| format!("PodSecurity \"{level}\": {}", checks::details(&violations)))
    };
    let mut decision = Ok(());
    if enforcement == Enforcement::Enforced {
        annotate(call, "enforce-policy", || policy.enforce.to_string());
        if let Some(violated) = violated(policy.enforce) {
            decision = Err(format!("violates {violated}").into());
        }
    }
    if let Some(violated) = violated(policy.audit) {
        annotate(call, "audit-violations", || format!("would violate {violated}"));
    }
    if decision.is_ok()
        && let Some(violated) = violated(policy.warn)
    {
        (call.attributes.warn)(format!("would violate {violated}"));
    }
    decision
}
