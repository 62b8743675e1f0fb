//! What ValidatingAdmissionPolicies get wrong about the types that they are for, told in their status
//! (`validatingadmissionpolicy-status-controller` of kube-controller-manager; api-machinery 26.1).

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::decl::{self, Decl};
use machinery::{Status, Text, Value, json};
use tokio::sync::{Notify, watch};

use crate::objects::Key;
use crate::resource::builtin::{DEFINITION_GROUP, Scope};
use crate::resource::group_version;
use crate::verbs::{self, Context};

const GROUP: &str = "admissionregistration.k8s.io";
const POLICIES: &str = "validatingadmissionpolicies";
/// Types that a policy is checked against, at most; upstream's.
const TYPES_MAX: usize = 10;

/// Wakes with every change of a policy, and of what defines types.
#[derive(Default)]
pub struct TypeChecker {
    changed: Notify,
}

impl TypeChecker {
    /// Hears of every change of an object.
    pub fn observe(&self, key: &Key) {
        if (key.group == GROUP && key.plural == POLICIES) || key.group == DEFINITION_GROUP {
            self.changed.notify_one();
        }
    }

    /// Checks until `stop` becomes true.
    pub async fn run(self: Arc<Self>, context: Arc<Context>, mut stop: watch::Receiver<bool>) {
        loop {
            if let Err(status) = check_all(&context).await {
                tracing::warn!(error = %status, "the status of a policy cannot be written yet");
            }
            tokio::select! {
                () = self.changed.notified() => {}
                () = super::stopped(&mut stop) => return,
            }
        }
    }
}

async fn check_all(context: &Context) -> Result<(), Status> {
    let Some(policies) = context.registry.get(GROUP, POLICIES) else { return Ok(()) };
    let (all, _) = policies.collection.latest();
    for stored in all.values() {
        let policy = stored.body.to_value(0);
        let wanted = status_of(context, &policy);
        let same = ["typeChecking", "observedGeneration"]
            .iter()
            .all(|member| policy.at(&["status", member]) == wanted.get(member));
        if !same {
            verbs::change_as_server(context, &policies, &stored.meta.name, "status", |object| {
                for member in ["typeChecking", "observedGeneration"] {
                    object.set_at(&["status", member], wanted.get(member).cloned().unwrap_or_default());
                }
            })
            .await?;
        }
    }
    Ok(())
}

/// The status of a policy, as far as it is about types.
fn status_of(context: &Context, policy: &Value) -> Value {
    let spec = policy.get("spec").cloned().unwrap_or_default();
    let types = types_of(context, &spec);
    let mut warnings: Vec<Value> = vec![];
    for (i, validation) in list(&spec, "validations").iter().enumerate() {
        for member in ["expression", "messageExpression"] {
            let text = validation.str_at(&[member]);
            let found = if text.is_empty() { vec![] } else { warnings_of(&spec, text, &types) };
            if !found.is_empty() {
                let place = format!("spec.validations[{i}].{member}");
                warnings.push(json!({"fieldRef": place, "warning": (found.join("\n"))}));
            }
        }
    }
    let generation = policy.at(&["metadata", "generation"]).cloned().unwrap_or(Value::Int(1));
    let mut checking = Value::object();
    if !warnings.is_empty() {
        checking.set_at(&["expressionWarnings"], Value::Array(warnings));
    }
    json!({"typeChecking": checking, "observedGeneration": generation})
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).unwrap_or_default()
}

/// The types that a policy is for, by `group/version, Kind=Kind`; rules with a star are for too many to be checked.
fn types_of(context: &Context, spec: &Value) -> BTreeMap<String, Arc<Decl>> {
    let mut out = BTreeMap::new();
    for rule in spec.get("matchConstraints").into_iter().flat_map(|it| list(it, "resourceRules")) {
        let texts =
            |name: &str| -> Vec<Text> { list(rule, name).iter().filter_map(Value::as_str).map(Text::from).collect() };
        let (groups, versions, resources) = (texts("apiGroups"), texts("apiVersions"), texts("resources"));
        if groups.iter().chain(&versions).chain(&resources).any(|name| name.contains('*')) {
            continue;
        }
        for (group, plural) in groups.iter().flat_map(|group| resources.iter().map(move |plural| (group, plural))) {
            let Some(resource) = context.registry.get(group, plural) else { continue };
            for version in versions.iter().filter_map(|version| resource.served(version)) {
                let name = format!("{}, Kind={}", group_version(group, &version.name), resource.kind);
                if out.len() < TYPES_MAX {
                    out.insert(name, decl::from_schema(&version.openapi(), true));
                }
            }
        }
    }
    out
}

/// What is wrong with an expression, type by type.
fn warnings_of(spec: &Value, text: &str, types: &BTreeMap<String, Arc<Decl>>) -> Vec<String> {
    let params = spec.get("paramKind").is_some();
    let known: Vec<(Text, cel::types::Type)> =
        list(spec, "variables").iter().map(|it| (it.str_at(&["name"]).into(), cel::types::Type::Dyn)).collect();
    let scope = Scope { params, authorizer: true, variables: Some(&known), mutations: false };
    let wrong = |(name, decl): (&String, &Arc<Decl>)| {
        let error = scope.environment_for(decl).check(text).err()?;
        Some(format!("{name}: {error}\n"))
    };
    types.iter().filter_map(wrong).collect()
}
