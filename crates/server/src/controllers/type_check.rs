//! Type errors of ValidatingAdmissionPolicies, reported in their status
//! (`validatingadmissionpolicy-status-controller` of kube-controller-manager).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cel::{Decl, Type};
use kinds::Scope;
use machinery::status::Reason;
use machinery::{Result, Text, Value, json};
use objects::{Event, Key};
use resource::builtin::DEFINITION_GROUP;
use resource::{Resource, Version};
use schema::shape::{declared_schema, object_meta};
use tokio::sync::watch;

use super::reconciler::Reconciler;
use crate::limits;
use crate::verbs::{self, Context, PatchKind, Subresource};

const GROUP: &str = "admissionregistration.k8s.io";
const POLICIES: &str = "validatingadmissionpolicies";
const USER: &str = "system:serviceaccount:kube-system:validatingadmissionpolicy-status-controller";
const MANAGER: &str = "validatingadmissionpolicy-status";

/// The controller; it runs after every change of a policy or a CRD.
pub struct TypeChecker;

impl Reconciler for TypeChecker {
    const NAME: &'static str = "policy status";
    type Memory = ();

    fn observe(&self, key: &Key, _: &Event) -> bool {
        (key.group == GROUP && key.plural == POLICIES) || key.group == DEFINITION_GROUP
    }

    async fn reconcile(&self, context: &Arc<Context>, _: &watch::Receiver<bool>, _: &mut ()) -> Option<Duration> {
        let status = check_all(context).await.err()?;
        tracing::warn!(error = %status, "the status of a ValidatingAdmissionPolicy cannot be written; will retry");
        Some(limits::CONTROLLER_RETRY)
    }
}

async fn check_all(context: &Context) -> Result<()> {
    let Some(policies) = context.registry.get(GROUP, POLICIES) else { return Ok(()) };
    let (all, _) = policies.collection.latest();
    for stored in all.values() {
        let policy = stored.body.to_value(0);
        let wanted = status_of(context, &policy);
        let same = ["typeChecking", "observedGeneration"]
            .iter()
            .all(|field| policy.at(&["status", field]) == wanted.get(field));
        if !same {
            apply_status(context, &policies, &stored.meta.name, wanted).await?;
        }
    }
    Ok(())
}

async fn apply_status(context: &Context, policies: &Arc<Resource>, name: &str, status: Value) -> Result<()> {
    let applied = json!({
        "apiVersion": (policies.api_version(policies.storage_version())), "kind": (policies.kind.clone()),
        "metadata": {"name": name}, "status": status
    });
    let own = context.as_user(USER, policies, "", name).through(Subresource::Status);
    let own = own.with_query(format!("fieldManager={MANAGER}&force=true"));
    // not found if the policy has been deleted meanwhile
    verbs::tolerating(&[Reason::NotFound], own.patch(PatchKind::Apply, &applied).await)
}

/// The status of a policy with its type errors.
fn status_of(context: &Context, policy: &Value) -> Value {
    let spec = policy.get("spec").cloned().unwrap_or_default();
    let checks = Checks::of(context, &spec);
    let mut warnings: Vec<Value> = vec![];
    for (i, validation) in spec.items_at(&["validations"]).iter().enumerate() {
        for field in ["expression", "messageExpression"] {
            let text = validation.str_at(&[field]);
            let found = if text.is_empty() { vec![] } else { checks.warnings(text) };
            if !found.is_empty() {
                let place = format!("spec.validations[{i}].{field}");
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

/// A kind by group, version and name; kinds are reported in this order.
type KindName = (Text, Text, Text);

/// The kinds that a policy matches. Rules with a wildcard for group or version are ignored, as by kube-controller-manager.
fn kinds_of(context: &Context, spec: &Value) -> BTreeSet<KindName> {
    let mut out = BTreeSet::new();
    let served = context.registry.snapshot();
    for rule in spec.get("matchConstraints").into_iter().flat_map(|it| it.items_at(&["resourceRules"])) {
        let texts = |name: &str| -> BTreeSet<&str> { rule.texts_at(&[name]).collect() };
        let (groups, versions) = (texts("apiGroups"), texts("apiVersions"));
        if groups.iter().chain(&versions).any(|name| name.contains('*')) {
            continue;
        }
        let resources = texts("resources").into_iter().filter(|name| !name.contains(['*', '/']));
        let resources: Vec<&str> = resources.collect();
        for (group, version) in groups.iter().flat_map(|group| versions.iter().map(move |version| (group, version))) {
            let named = |resource: &&Arc<Resource>| {
                // as in kube-controller-manager, the empty group matches kinds of any group
                (group.is_empty() || resource.group == *group) && resources.contains(&resource.plural.as_str())
            };
            for resource in served.values().filter(named).filter(|resource| resource.served(version).is_some()) {
                if out.len() < limits::CHECKED_TYPES_MAX {
                    out.insert((resource.group.clone(), Text::from(*version), resource.kind.clone()));
                }
            }
        }
    }
    out
}

/// A kind with the declaration of its objects and the types of the variables for them.
struct CheckedKind {
    kind: KindName,
    object: Arc<Decl>,
    variables: Vec<(Text, Type)>,
}

/// The types against which the expressions of a policy are checked: those of its kinds and of its parameters.
struct Checks {
    kinds: Vec<CheckedKind>,
    params: Option<Arc<Decl>>,
}

impl Checks {
    fn of(context: &Context, spec: &Value) -> Checks {
        let declared_kind = |(group, version, kind): &KindName| {
            let resource = context.registry.of_kind(group, version, kind)?;
            Some(declared(resource.served(version)?))
        };
        let params = spec.get("paramKind").and_then(|params| {
            let api_version = params.str_at(&["apiVersion"]);
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            declared_kind(&(group.into(), version.into(), params.str_at(&["kind"]).into()))
        });
        let mut checks = Checks { kinds: vec![], params };
        for kind in kinds_of(context, spec) {
            if let Some(object) = declared_kind(&kind) {
                let variables = checks.variables(spec, &object);
                checks.kinds.push(CheckedKind { kind, object, variables });
            }
        }
        checks
    }

    /// The type errors of an expression, one for each kind.
    fn warnings(&self, text: &str) -> Vec<String> {
        let wrong = |CheckedKind { kind: (group, version, kind), object, variables }: &CheckedKind| {
            let error = self.checked(text, object, variables).err()?;
            Some(format!("{group}/{version}, Kind={kind}: {error}\n"))
        };
        self.kinds.iter().filter_map(wrong).collect()
    }

    /// The types of the variables. Each may refer to those before it; the type of one with an error is `dyn`.
    fn variables(&self, spec: &Value, object: &Arc<Decl>) -> Vec<(Text, Type)> {
        let mut known: Vec<(Text, Type)> = vec![];
        for variable in spec.items_at(&["variables"]) {
            let found = self.checked(variable.str_at(&["expression"]), object, &known);
            known.push((variable.str_at(&["name"]).into(), found.map_or(Type::Dyn, |found| plain(&found))));
        }
        known
    }

    fn checked(&self, text: &str, object: &Arc<Decl>, known: &[(Text, Type)]) -> Result<Type, String> {
        let scope = Scope { params: false, authorizer: true, variables: Some(known), mutations: false };
        let env = scope.environment_for(object, self.params.as_ref());
        env.check(text).map(|checked| checked.output_type().clone()).map_err(|error| error.to_string())
    }
}

/// The type of a variable for the expressions that use it: object types become `dyn`.
fn plain(found: &Type) -> Type {
    match found {
        Type::List(item) => Type::list(plain(item)),
        Type::Map(entry) => Type::map(plain(&entry.0), plain(&entry.1)),
        Type::Null
        | Type::Bool
        | Type::Int
        | Type::Uint
        | Type::Double
        | Type::String
        | Type::Bytes
        | Type::Duration
        | Type::Timestamp => found.clone(),
        _ => Type::Dyn,
    }
}

/// The declaration of a kind's objects, with all fields of ObjectMeta.
fn declared(version: &Version) -> Arc<Decl> {
    let schema = match version.built_in {
        Some(built_in) => built_in.declared_schema(),
        None => {
            let mut schema = version.openapi();
            schema.set_at(&["type"], Value::from("object"));
            schema.set_at(&["properties", "metadata"], declared_schema(object_meta()));
            for field in ["apiVersion", "kind"] {
                schema.set_at(&["properties", field], json!({"type": "string"}));
            }
            schema
        }
    };
    Decl::from_schema(&schema)
}
