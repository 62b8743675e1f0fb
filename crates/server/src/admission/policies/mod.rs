//! ValidatingAdmissionPolicy: expressions that refuse writes (api-machinery 26.1).
//!
//! Policies and bindings are kept parsed, and compiled when they are first used; a write runs what matches it.

mod evaluate;
mod params;
mod program;

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use imbl::OrdMap;
use machinery::status::{Cause, Reason};
use machinery::{Status, Text, Value};

use super::expressions::{Shown, Subject};
use super::matching::Matching;
use super::{Attributes, World};
use crate::objects::{Event, EventKind, Key};
use params::{ParamKind, ParamRef};
use program::Programs;

/// A policy, ready to run.
struct Policy {
    name: Text,
    matching: Matching,
    /// Whether what goes wrong refuses the write.
    fails: bool,
    param_kind: Option<ParamKind>,
    spec: Value,
    programs: OnceLock<Programs>,
}

/// What a policy is applied to, and what a failure does.
struct Binding {
    name: Text,
    policy: Text,
    matching: Matching,
    params: Option<ParamRef>,
    denies: bool,
    warns: bool,
}

#[derive(Clone, Default)]
struct Snapshot {
    policies: OrdMap<Text, Arc<Policy>>,
    bindings: OrdMap<Text, Arc<Binding>>,
}

/// The policies there are: follows their objects.
#[derive(Default)]
pub struct Policies {
    snapshot: ArcSwap<Snapshot>,
}

impl Policy {
    fn parse(object: &Value) -> Policy {
        let spec = object.get("spec").cloned().unwrap_or_default();
        Policy {
            name: object.str_at(&["metadata", "name"]).into(),
            matching: spec.get("matchConstraints").map(Matching::of_resources).unwrap_or_default(),
            fails: spec.str_at(&["failurePolicy"]) != "Ignore",
            param_kind: spec.get("paramKind").map(ParamKind::parse),
            spec,
            programs: OnceLock::new(),
        }
    }

    fn programs(&self) -> &Programs {
        self.programs.get_or_init(|| Programs::compile(&self.spec))
    }
}

impl Binding {
    fn parse(object: &Value) -> Binding {
        let spec = object.get("spec").cloned().unwrap_or_default();
        let actions = spec.get("validationActions").and_then(Value::as_array).unwrap_or_default();
        let has = |name: &str| actions.iter().any(|action| action.as_str() == Some(name));
        Binding {
            name: object.str_at(&["metadata", "name"]).into(),
            policy: spec.str_at(&["policyName"]).into(),
            matching: Matching::of_resources(spec.get("matchResources").unwrap_or(&Value::Null)),
            params: spec.get("paramRef").map(ParamRef::parse),
            denies: has("Deny"),
            warns: has("Warn"),
        }
    }
}

/// Why a write is refused.
struct Denial {
    message: String,
    reason: Reason,
}

impl Denial {
    fn new(message: impl Into<String>) -> Denial {
        Denial { message: message.into(), reason: Reason::Invalid }
    }
}

/// What has been found about one write.
#[derive(Default)]
struct Findings {
    first: Option<Denial>,
}

impl Findings {
    fn deny(&mut self, policy: &Policy, binding: Option<&Binding>, denial: Denial) {
        let with = binding.map(|binding| format!(" with binding '{}'", binding.name)).unwrap_or_default();
        let message = format!("ValidatingAdmissionPolicy '{}'{with} denied request: {}", policy.name, denial.message);
        self.first.get_or_insert(Denial { message, ..denial });
    }

    /// What is wrong with the configuration refuses, unless failures are to be ignored.
    fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, why: &str) {
        let what = if binding.is_some() { "binding" } else { "policy" };
        if policy.fails {
            self.deny(policy, binding, Denial::new(format!("failed to configure {what}: {why}")));
        }
    }

    fn add(&mut self, attributes: &Attributes<'_>, policy: &Policy, binding: &Binding, denial: Denial) {
        if binding.warns {
            let of = format!("ValidatingAdmissionPolicy '{}' with binding '{}'", policy.name, binding.name);
            (attributes.warn)(format!("Validation failed for {of}: {}", denial.message));
        }
        if binding.denies {
            self.deny(policy, Some(binding), denial);
        }
    }
}

impl Policies {
    pub fn observe(&self, key: &Key, event: &Event) {
        let mut next = Snapshot::clone(&self.snapshot.load());
        let live = (event.kind != EventKind::Deleted).then(|| event.object.body.to_value(0));
        let name = key.path.clone();
        match (key.plural.as_str(), live) {
            ("validatingadmissionpolicies", Some(object)) => {
                next.policies.insert(name, Arc::new(Policy::parse(&object)));
            }
            ("validatingadmissionpolicies", None) => drop(next.policies.remove(&name)),
            ("validatingadmissionpolicybindings", Some(object)) => {
                next.bindings.insert(name, Arc::new(Binding::parse(&object)));
            }
            ("validatingadmissionpolicybindings", None) => drop(next.bindings.remove(&name)),
            _ => return,
        }
        self.snapshot.store(Arc::new(next));
    }

    /// Whether no policy is bound.
    pub fn is_empty(&self) -> bool {
        let snapshot = self.snapshot.load();
        snapshot.policies.is_empty() || snapshot.bindings.is_empty()
    }

    /// Refuses a write, or warns about it.
    pub async fn validate(&self, world: &World<'_>, attributes: &Attributes<'_>) -> Result<(), Status> {
        let snapshot = self.snapshot.load_full();
        let mut findings = Findings::default();
        for policy in snapshot.policies.values() {
            let bindings: Vec<&Arc<Binding>> = snapshot.bindings.values().filter(|b| b.policy == policy.name).collect();
            if !bindings.is_empty() {
                apply(world, attributes, policy, &bindings, &mut findings).await?;
            }
        }
        match findings.first {
            Some(denial) => Err(refusal(attributes, &denial)),
            None => Ok(()),
        }
    }
}

/// A 403 whose code and reason are those of the denial.
fn refusal(attributes: &Attributes<'_>, denial: &Denial) -> Status {
    let mut status = attributes.forbidden(&denial.message);
    status.reason = denial.reason;
    status.code = denial.reason.code();
    let cause = Cause { reason: Text::default(), message: denial.message.clone(), field: String::new() };
    if let Some(details) = &mut status.details {
        details.causes.push(cause);
    }
    status
}

/// Runs one policy under each of its bindings.
async fn apply(
    world: &World<'_>,
    attributes: &Attributes<'_>,
    policy: &Policy,
    bindings: &[&Arc<Binding>],
    findings: &mut Findings,
) -> Result<(), Status> {
    let Some(version) = policy.matching.version(world, attributes) else { return Ok(()) };
    let source = match policy.param_kind.as_ref().map(|kind| kind.find(world)).transpose() {
        Ok(source) => source,
        Err(why) => {
            findings.misconfigured(policy, None, &why);
            return Ok(());
        }
    };
    let shown = Shown::new(attributes, &version).await?;
    let subject = Subject::new(world, attributes, &version, &shown)?;
    for binding in bindings {
        if binding.matching.version(world, attributes).is_none() {
            continue;
        }
        let params = match params::collect(source.as_ref(), binding.params.as_ref(), attributes.namespace).await {
            Ok(params) => params,
            Err(why) => {
                findings.misconfigured(policy, Some(binding), &why);
                continue;
            }
        };
        for params in params {
            for denial in evaluate::run(&subject, policy.programs(), params.as_ref(), policy.fails) {
                findings.add(attributes, policy, binding, denial);
            }
        }
    }
    Ok(())
}
