//! Admission policies: expressions that reject writes (ValidatingAdmissionPolicy), and expressions that change them
//! (MutatingAdmissionPolicy, KEP-3962).
//!
//! Policies and bindings are kept in parsed form; expressions are compiled at their first use.

mod evaluate;
mod mutate;
mod params;
mod program;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use imbl::OrdMap;
use machinery::status::{Cause, Reason};
use machinery::{Status, Text, Value};
use objects::{Event, EventKind, Key};

use self::evaluate::{Evaluation, PolicyRun};
use super::Attributes;
use super::attributes::in_order;
use super::expressions::{VersionedObjects, WriteVariables};
use super::manifests::{ManifestPlugin, Manifests};
use super::matching::{FailurePolicy, Matching};
use super::reinvocation::{Reinvocation, Round};
use super::sources::{EffectiveSources, SourceScope, Sources};
pub use mutate::PolicyKey;
use params::{ParamKind, ParamRef};
use program::Programs;

/// An expression of a policy, and what it has evaluated to, for the coverage of test suites. A value that is not a
/// boolean counts as both true and false.
#[derive(Clone, Debug)]
pub struct PolicyExpression {
    pub kind: &'static str,
    pub policy: Text,
    /// The place in its specification, such as `validations[0]` or `variables.NAME`.
    pub place: String,
    pub expression: Text,
    pub was_true: bool,
    /// Whether it was false or has failed.
    pub was_false: bool,
}

/// A parsed policy of either kind.
pub struct Policy {
    name: Text,
    matching: Matching,
    on_failure: FailurePolicy,
    /// `reinvocationPolicy: IfNeeded`: it runs again if the object is changed after it has run.
    again: bool,
    param_kind: Option<ParamKind>,
    spec: Value,
    programs: OnceLock<Programs>,
}

/// A binding: the writes and parameters that a policy is applied to, and its validation actions.
pub struct Binding {
    name: Text,
    policy: Text,
    matching: Matching,
    params: Option<ParamRef>,
    denies: bool,
    warns: bool,
    /// All `validationActions`, if `Audit` is one of them: audit annotations contain the list.
    audited_actions: Option<Value>,
}

/// The policies and bindings of one source: of the API, or of manifests.
#[derive(Default)]
pub struct PolicySnapshot {
    policies: OrdMap<Text, Arc<Policy>>,
    bindings: OrdMap<Text, Arc<Binding>>,
    /// The policies that have bindings, in the order of their names.
    bound: Vec<BoundPolicy>,
}

/// All policies and bindings. Events update those of the API, and files those of manifests.
#[derive(Default)]
pub struct Policies {
    validating: Sources<PolicySnapshot>,
    mutating: Sources<PolicySnapshot>,
}

/// A policy and its bindings.
pub struct BoundPolicy {
    policy: Arc<Policy>,
    bindings: Vec<Arc<Binding>>,
}

impl PolicySnapshot {
    fn new(policies: OrdMap<Text, Arc<Policy>>, bindings: OrdMap<Text, Arc<Binding>>) -> PolicySnapshot {
        let mut by_policy: HashMap<&Text, Vec<Arc<Binding>>> = HashMap::new();
        for binding in bindings.values() {
            by_policy.entry(&binding.policy).or_default().push(binding.clone());
        }
        let bind = |policy: &Arc<Policy>| {
            Some(BoundPolicy { policy: policy.clone(), bindings: by_policy.remove(&policy.name)? })
        };
        let bound = policies.values().filter_map(bind).collect();
        PolicySnapshot { policies, bindings, bound }
    }
}

impl Policy {
    fn parse(object: &Value) -> Policy {
        let spec = object.get("spec").cloned().unwrap_or_default();
        Policy {
            name: object.str_at(&["metadata", "name"]).into(),
            matching: spec.get("matchConstraints").map(Matching::of_resources).unwrap_or_default(),
            on_failure: FailurePolicy::of(&spec),
            again: spec.str_at(&["reinvocationPolicy"]) == "IfNeeded",
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
        let actions = spec.items_at(&["validationActions"]);
        let has = |name: &str| actions.iter().any(|action| action.as_str() == Some(name));
        Binding {
            name: object.str_at(&["metadata", "name"]).into(),
            policy: spec.str_at(&["policyName"]).into(),
            matching: Matching::of_resources(spec.get("matchResources").unwrap_or(&Value::Null)),
            params: spec.get("paramRef").map(ParamRef::parse),
            denies: has("Deny"),
            warns: has("Warn"),
            audited_actions: has("Audit").then(|| Value::from(actions.to_vec())),
        }
    }
}

/// The rejection of a write.
struct Denial {
    message: String,
    reason: Reason,
    /// The index of the validation that failed.
    index: usize,
}

impl Denial {
    fn new(message: impl Into<String>) -> Denial {
        Denial { message: message.into(), reason: Reason::Invalid, index: 0 }
    }
}

/// The results of validating one write.
#[derive(Default)]
struct Findings {
    /// The only denial that the response contains.
    first: Option<Denial>,
    /// The audit annotations: keys, each with the different values that bindings and parameters have led to.
    annotations: BTreeMap<String, BTreeSet<String>>,
}

impl Findings {
    fn deny(&mut self, policy: &Policy, binding: Option<&Binding>, denial: Denial) {
        let with = binding.map(|binding| format!(" with binding '{}'", binding.name)).unwrap_or_default();
        let message = format!("ValidatingAdmissionPolicy '{}'{with} denied request: {}", policy.name, denial.message);
        self.first.get_or_insert(Denial { message, ..denial });
    }

    /// An invalid configuration rejects the write, unless failures are ignored.
    fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, why: &str) {
        let kind = if binding.is_some() { "binding" } else { "policy" };
        if policy.on_failure == FailurePolicy::Fail {
            self.deny(policy, binding, Denial::new(format!("failed to configure {kind}: {why}")));
        }
    }

    fn add(&mut self, attributes: &Attributes<'_>, policy: &Policy, binding: &Binding, denial: Denial) {
        if binding.warns {
            let of = format!("ValidatingAdmissionPolicy '{}' with binding '{}'", policy.name, binding.name);
            (attributes.warn)(format!("Validation failed for {of}: {}", denial.message));
        }
        if let Some(actions) = &binding.audited_actions {
            attributes.annotate("validation.policy.admission.k8s.io/validation_failure", || {
                let index = i64::try_from(denial.index).unwrap_or_default();
                let failure = in_order([
                    ("message", denial.message.as_str().into()),
                    ("policy", policy.name.clone().into()),
                    ("binding", binding.name.clone().into()),
                    ("expressionIndex", index.into()),
                    ("validationActions", actions.clone()),
                ]);
                format!("[{failure}]")
            });
        }
        if binding.denies {
            self.deny(policy, Some(binding), denial);
        }
    }
}

impl Policies {
    /// Follows an event of the API, of any resource.
    pub fn observe(&self, key: &Key, event: &Event) {
        let (snapshot, is_policy) = match key.plural.as_str() {
            "validatingadmissionpolicies" => (&self.validating.api, true),
            "validatingadmissionpolicybindings" => (&self.validating.api, false),
            "mutatingadmissionpolicies" => (&self.mutating.api, true),
            "mutatingadmissionpolicybindings" => (&self.mutating.api, false),
            _ => return,
        };
        let object = (event.kind != EventKind::Deleted).then(|| event.object.body.to_value(0));
        let previous = snapshot.load();
        let (mut policies, mut bindings) = (previous.policies.clone(), previous.bindings.clone());
        let name = key.path.clone();
        match (is_policy, object) {
            (true, Some(object)) => drop(policies.insert(name, Arc::new(Policy::parse(&object)))),
            (true, None) => drop(policies.remove(&name)),
            (false, Some(object)) => drop(bindings.insert(name, Arc::new(Binding::parse(&object)))),
            (false, None) => drop(bindings.remove(&name)),
        }
        snapshot.store(Arc::new(PolicySnapshot::new(policies, bindings)));
    }

    /// Replaces the policies and bindings that come from manifests.
    pub fn apply(&self, manifests: &Manifests) {
        let policies =
            manifests.objects.iter().map(Policy::parse).map(|policy| (policy.name.clone(), Arc::new(policy)));
        let bindings = manifests.bindings.iter().map(Binding::parse);
        let bindings = bindings.map(|binding| (binding.name.clone(), Arc::new(binding)));
        let snapshot = PolicySnapshot::new(policies.collect(), bindings.collect());
        let mutating = manifests.plugin == ManifestPlugin::MutatingPolicies;
        let sources = if mutating { &self.mutating } else { &self.validating };
        sources.manifests.store(Arc::new(snapshot));
    }

    /// The expressions of the policies of the API, by kind and name of the policy.
    pub fn expressions(&self) -> Vec<PolicyExpression> {
        let of_kind = [("MutatingAdmissionPolicy", &self.mutating), ("ValidatingAdmissionPolicy", &self.validating)];
        let mut found = vec![];
        for (kind, sources) in of_kind {
            for policy in sources.api.load().policies.values() {
                found.extend(policy.programs().all().map(|(place, expression)| PolicyExpression {
                    kind,
                    policy: policy.name.clone(),
                    place,
                    expression: expression.text.clone(),
                    was_true: expression.outcomes.was_true(),
                    was_false: expression.outcomes.was_false(),
                }));
            }
        }
        found
    }

    /// Whether no validating policy is bound.
    pub fn none_validate(&self) -> bool {
        self.validating.all(|snapshot| snapshot.bound.is_empty())
    }

    /// Whether no mutating policy is bound.
    pub fn none_mutate(&self) -> bool {
        self.mutating.all(|snapshot| snapshot.bound.is_empty())
    }

    pub fn mutating(&self, scope: SourceScope) -> EffectiveSources<PolicySnapshot> {
        self.mutating.in_force(scope)
    }

    /// Applies the validating policies: rejects the write, or adds warnings and audit annotations.
    pub async fn validate(&self, attributes: &Attributes<'_>, scope: SourceScope) -> Result<(), Status> {
        let in_force = self.validating.in_force(scope);
        let mut findings = Findings::default();
        for bound in in_force.bound() {
            apply(attributes, bound, &mut findings).await?;
        }
        for (key, values) in findings.annotations {
            attributes.annotate(&key, || values.into_iter().collect::<Vec<_>>().join(", "));
        }
        match findings.first {
            Some(denial) => Err(refusal(attributes, &denial)),
            None => Ok(()),
        }
    }
}

impl EffectiveSources<PolicySnapshot> {
    /// The policies that are bound, by source and name.
    pub fn bound(&self) -> impl Iterator<Item = &BoundPolicy> {
        self.in_order().flat_map(|snapshot| &snapshot.bound)
    }

    /// Applies the policies to the object. Only for those from [`Policies::mutating`].
    pub async fn apply(
        &self,
        attributes: &Attributes<'_>,
        object: Option<Value>,
        round: &mut Round,
        reinvocation: &mut Reinvocation<PolicyKey>,
    ) -> Result<Option<Value>, Status> {
        mutate::apply(self, attributes, object, round, reinvocation).await
    }
}

/// The response to a denied write: the text of a 403, with the code and reason of the denial.
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

/// Evaluates a policy for each of its bindings that matches the write, and for each of their parameters.
async fn apply(
    attributes: &Attributes<'_>,
    BoundPolicy { policy, bindings }: &BoundPolicy,
    findings: &mut Findings,
) -> Result<(), Status> {
    let Some(version) = policy.matching.version(attributes) else { return Ok(()) };
    let source = match policy.param_kind.as_ref().map(|kind| kind.find(&attributes.cluster)).transpose() {
        Ok(source) => source,
        Err(why) => {
            findings.misconfigured(policy, None, &why);
            return Ok(());
        }
    };
    let objects = VersionedObjects::new(attributes, version).await?;
    let subject = WriteVariables::new(attributes, version, &objects);
    for binding in bindings {
        if !binding.matching.matches(attributes) {
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
            let run = PolicyRun { subject: &subject, programs: policy.programs(), params: params.as_ref() };
            let evaluated = subject.evaluate(|| run.validate(policy.on_failure));
            let Evaluation { denials, faults, annotations } = evaluated.await;
            for (key, value) in annotations {
                findings.annotations.entry(format!("{}/{key}", policy.name)).or_default().insert(value);
            }
            for denial in denials {
                findings.add(attributes, policy, binding, denial);
            }
            faults.into_iter().for_each(|fault| findings.deny(policy, Some(binding), fault));
        }
    }
    Ok(())
}
