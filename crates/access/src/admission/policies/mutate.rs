//! MutatingAdmissionPolicy: expressions that change writes (KEP-3962).

use std::borrow::Cow;

use cel::{Activation, Configuration, Val, misnamed, to_json};
use machinery::patch::json_patch::{self, JsonPatch, Operation};
use machinery::status::{Cause, Reason};
use machinery::{Status, Text, Value};
use resource::Version;

use super::evaluate::PolicyRun;
use super::program::{Mutation, PatchType};
use super::{Binding, BoundPolicy, Policy, PolicySnapshot, params};
use crate::admission::Attributes;
use crate::admission::expressions::{Budget, EvaluationError, VersionedObjects, WriteVariables};
use crate::admission::matching::FailurePolicy;
use crate::admission::patched::{self, ConversionError, Unknown};
use crate::admission::reinvocation::{Reinvocation, Round};
use crate::admission::sources::EffectiveSources;

/// The key of an invocation: policy, binding, and namespace and name of the parameters.
pub type PolicyKey = (Text, Text, Option<(Text, Text)>);

/// A policy under one of its bindings, with one object of parameters.
struct Invocation<'a> {
    policy: &'a Policy,
    binding: &'a Binding,
    version: &'a Version,
    params: Option<Value>,
}

/// The failures of policies with `failurePolicy: Fail`: the messages, and the reason of the first.
#[derive(Default)]
struct Faults {
    messages: Vec<String>,
    reason: Option<Reason>,
}

impl Faults {
    fn add(&mut self, policy: &Policy, binding: Option<&Binding>, reason: Option<Reason>, why: &str) {
        if policy.on_failure == FailurePolicy::Ignore {
            return;
        }
        if self.messages.is_empty() {
            self.reason = reason;
        }
        self.messages.push(match binding {
            Some(binding) => {
                format!("policy '{}' with binding '{}' denied request: {why}", policy.name, binding.name)
            }
            None => format!("policy {} denied request: {why}", machinery::value::quote(&policy.name)),
        });
    }

    /// A 403 with the message of the first failure, and all failures as its causes; `Ok` without failures.
    fn into_result(self, attributes: &Attributes<'_>) -> Result<(), Status> {
        let Some(first) = self.messages.first() else { return Ok(()) };
        let mut status = attributes.forbidden("");
        status.message.clone_from(first);
        status.reason = self.reason.unwrap_or(status.reason);
        let cause = |message| Cause { reason: Text::default(), message, field: String::new() };
        if let Some(details) = &mut status.details {
            details.causes.extend(self.messages.into_iter().map(cause));
        }
        Err(status)
    }
}

/// The object of a write in one version, and whether a policy has written it.
struct VersionedCopy<'a> {
    version: &'a Version,
    objects: VersionedObjects<'a>,
    written: bool,
}

/// The copies of an object that policies work on, one for each version that they match.
///
/// As in kube-apiserver, each copy is made from the object before the first policy. So a policy sees what others have
/// done in the version that it matches. The copy of the last policy becomes the object, and what policies have done in
/// other versions is lost.
#[derive(Default)]
struct Copies<'a> {
    all: Vec<VersionedCopy<'a>>,
    last: Option<usize>,
}

impl<'a> Copies<'a> {
    /// The index of the copy for a version.
    async fn of(&mut self, attributes: &Attributes<'a>, version: &'a Version) -> Result<usize, Status> {
        let is_for = |copy: &VersionedCopy<'_>| !attributes.is_versioned() || copy.version.name == version.name;
        if let Some(known) = self.all.iter().position(is_for) {
            return Ok(known);
        }
        let objects = VersionedObjects::new(attributes, version).await?;
        self.all.push(VersionedCopy { version, objects, written: false });
        Ok(self.all.len() - 1)
    }

    /// The object after all policies, in the version of the request; `None` if the last one has written none.
    async fn into_result(mut self, attributes: &Attributes<'_>) -> Result<Option<Value>, Status> {
        let last = self.last.map(|last| self.all.swap_remove(last)).filter(|copy| copy.written);
        let Some(VersionedCopy { version, objects, .. }) = last else { return Ok(None) };
        let object = objects.object.into_owned();
        match patched::in_request_version(attributes, object, version).await {
            Ok(object) => Ok(Some(object)),
            Err(ConversionError::Refused(why)) => Err(Status::internal(format!("failed to convert object: {why}"))),
            Err(error) => Err(error.into()),
        }
    }
}

/// Applies all policies to an object, one after the other. Matching is decided before the first policy is applied; failures
/// reject the write after the last one.
pub async fn apply(
    policies: &EffectiveSources<PolicySnapshot>,
    attributes: &Attributes<'_>,
    given: Option<Value>,
    round: &mut Round,
    reinvocation: &mut Reinvocation<PolicyKey>,
) -> Result<Option<Value>, Status> {
    let mut faults = Faults::default();
    let attributes = Attributes { object: given.as_ref(), ..*attributes };
    let invocations = invocations(policies, &attributes, &mut faults).await;
    let mut copies = Copies::default();
    for invocation in &invocations {
        let at = copies.of(&attributes, invocation.version).await?;
        let copy = &mut copies.all[at];
        if !invocation.conditions_hold(&attributes, &copy.objects, &mut faults).await {
            continue;
        }
        let key = invocation.key();
        if !reinvocation.is_due(round, &key) {
            continue;
        }
        if let Some(after) = invocation.mutated(&attributes, &copy.objects, &mut faults).await? {
            if after != *copy.objects.object {
                reinvocation.changed(round);
            }
            (copy.objects.object, copy.written) = (Cow::Owned(after), true);
        }
        copies.last = Some(at);
        if invocation.policy.again {
            reinvocation.mark_invoked(key);
        }
    }
    let changed = copies.into_result(&attributes).await?;
    // as in kube-apiserver, an object counts as changed even if the mutations left it as it was
    if changed.is_some() {
        reinvocation.changed(round);
    }
    faults.into_result(&attributes)?;
    Ok(changed.or(given))
}

/// The invocations of all policies that match a write.
async fn invocations<'a>(
    policies: &'a EffectiveSources<PolicySnapshot>,
    attributes: &Attributes<'a>,
    faults: &mut Faults,
) -> Vec<Invocation<'a>> {
    let mut invocations = vec![];
    for BoundPolicy { policy, bindings } in policies.bound() {
        let Some(version) = policy.matching.version(attributes) else { continue };
        let source = match policy.param_kind.as_ref().map(|kind| kind.find(&attributes.cluster)).transpose() {
            Ok(source) => source,
            Err(why) => {
                faults.add(policy, None, None, &format!("failed to configure policy: {why}"));
                continue;
            }
        };
        for binding in bindings.iter().filter(|binding| binding.matching.matches(attributes)) {
            match params::collect(source.as_ref(), binding.params.as_ref(), attributes.namespace).await {
                Ok(all) => {
                    invocations.extend(all.into_iter().map(|params| Invocation { policy, binding, version, params }))
                }
                Err(why) => {
                    faults.add(policy, Some(binding), None, &format!("failed to configure binding: {why}"));
                }
            }
        }
    }
    invocations
}

impl Invocation<'_> {
    fn key(&self) -> PolicyKey {
        let field = |object: &Value, key| Text::from(object.str_at(&["metadata", key]));
        let params = self.params.as_ref().map(|object| (field(object, "namespace"), field(object, "name")));
        (self.policy.name.clone(), self.binding.name.clone(), params)
    }

    /// Whether the policy's match conditions hold.
    async fn conditions_hold(
        &self,
        attributes: &Attributes<'_>,
        objects: &VersionedObjects<'_>,
        faults: &mut Faults,
    ) -> bool {
        let programs = self.policy.programs();
        if programs.conditions.is_empty() {
            return true;
        }
        let subject = WriteVariables::new(attributes, self.version, objects);
        let run = PolicyRun { subject: &subject, programs, params: self.params.as_ref() };
        let hold = subject.evaluate(|| run.conditions_hold()).await;
        hold.unwrap_or_else(|why| {
            self.fault(&why, faults);
            false
        })
    }

    fn fault(&self, why: &str, faults: &mut Faults) {
        faults.add(self.policy, Some(self.binding), Some(Reason::Invalid), why);
    }

    /// The object after all mutations of the policy, each applied to the result of the previous one. A failed mutation
    /// changes nothing. `None` if there is no object, or if all mutations failed.
    async fn mutated(
        &self,
        attributes: &Attributes<'_>,
        objects: &VersionedObjects<'_>,
        faults: &mut Faults,
    ) -> Result<Option<Value>, Status> {
        if attributes.object.is_none() {
            return Ok(None);
        }
        let programs = self.policy.programs();
        let (mut current, mut written) = (objects.clone(), false);
        for mutation in &programs.mutations {
            let after = {
                let subject = WriteVariables::new(attributes, self.version, &current);
                let policy = PolicyRun { subject: &subject, programs, params: self.params.as_ref() };
                let run = || {
                    let mut values = policy.activation();
                    let written = Written { attributes, version: self.version, object: &current.object };
                    let applied = written.mutated(mutation, &mut values);
                    programs.note_variables(&values);
                    applied
                };
                subject.evaluate(run).await
            };
            match after {
                Ok(mut after) => {
                    if attributes.resource.is_custom() {
                        let defaulted = self.version.program().schema.default(&mut after);
                        defaulted.map_err(|why| Status::untyped(500, why.to_string()))?;
                    }
                    (current.object, written) = (Cow::Owned(after), true);
                }
                Err(Fault::Policy(why)) => self.fault(&why, faults),
                Err(Fault::Write(status)) => return Err(status),
            }
        }
        Ok(written.then(|| current.object.into_owned()))
    }
}

/// The ways in which a mutation can fail.
enum Fault {
    /// An error of the policy, which rejects the write or is ignored (`failurePolicy`).
    Policy(String),
    /// An error that rejects the write in any case.
    Write(Status),
}

/// Applies mutations to an object.
struct Written<'a> {
    attributes: &'a Attributes<'a>,
    version: &'a Version,
    object: &'a Value,
}

impl Written<'_> {
    fn mutated<'p>(&self, mutation: &'p Mutation, variables: &mut Activation<'p>) -> Result<Value, Fault> {
        let found = mutation.expression.evaluate(variables, &mut Budget(cel::rules::OBJECT_COST_MAX));
        let found = found.map_err(|failed| match failed {
            EvaluationError::Expression(why) | EvaluationError::OutOfBudget(why) => Fault::Policy(why),
        })?;
        match mutation.patch_type {
            PatchType::ApplyConfiguration => self.configured(&found).map_err(Fault::Policy),
            PatchType::JsonPatch => self.patched(&found),
        }
    }

    /// Applies the ApplyConfiguration that an expression returned.
    fn configured(&self, found: &Val<'_>) -> Result<Value, String> {
        if let Some(why) = misnamed(found) {
            return Err(format!("type mismatch: {why}"));
        }
        let mut configuration = Configuration::new(found)?;
        let [api_version, kind] = ["apiVersion", "kind"].map(|key| self.object.str_at(&[key]));
        if self.attributes.subresource == "scale" {
            // kube-apiserver's types for applies are those of OpenAPI's group version, which lack the Scale
            return Err(format!(
                "error applying patch: failed to convert patch object to typed object: no corresponding type for {api_version}, Kind={kind}"
            ));
        }
        for (key, text) in [("apiVersion", api_version), ("kind", kind)] {
            configuration.value.set_at(&[key], Value::from(text));
        }
        schema::apply::merge_configuration(&self.version.program().types, self.object, &configuration)
            .map_err(|why| format!("error applying patch: {why}"))
    }

    /// Applies the JSON patch that an expression returned. A `test` that fails leaves the object unchanged.
    fn patched(&self, found: &Val<'_>) -> Result<Value, Fault> {
        let Written { attributes, version, object } = *self;
        let patch = patch_of(found).map_err(Fault::Policy)?;
        // kube-apiserver encodes the typed object before each patch, which omits what is empty
        let printed = match version.built_in.filter(|_| attributes.is_versioned() && object.has_empty()) {
            Some(row) => row.printed(object),
            None => object.clone(),
        };
        let after = json_patch::apply_if_tested(printed, &patch);
        let after = after.map_err(|why| Fault::Policy(format!("JSON Patch: {why}")))?;
        let Some(after) = after else { return Ok(object.clone()) };
        if attributes.resource.is_custom() && attributes.subresource == "scale" {
            // kube-apiserver decodes the patched Scale as an object of the resource, which does not have that version
            let api_version = object.str_at(&["apiVersion"]);
            return Err(Fault::Policy(format!("request to convert CR to an invalid group/version: {api_version}")));
        }
        let decoded = patched::decoded(attributes, version, object, after, Unknown::Refused);
        decoded.map_err(|why| Fault::Write(Status::internal(why)))
    }
}

/// The JSON patch of an expression's result.
fn patch_of(found: &Val<'_>) -> Result<JsonPatch, String> {
    let Val::List(list) = found else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    let operations: Result<Vec<Operation>, String> = list.iter().flatten().map(|item| operation_of(&item)).collect();
    Ok(JsonPatch { operations: operations?, strict_errors: vec![] })
}

fn operation_of(item: &Val<'_>) -> Result<Operation, String> {
    let Val::Map(fields) = item else { return Ok(Operation::default()) };
    let field = |name: &str| fields.get_str(name).and_then(Result::ok);
    let text = |name: &str| match field(name) {
        Some(Val::String(text)) => Text::from(&*text),
        Some(Val::Type(of)) => of.runtime_name(),
        _ => Text::default(),
    };
    let value = field("value").map(|value| {
        if let Some(why) = misnamed(&value) {
            return Err(format!("type mismatch: {why}"));
        }
        let unmarshalled = "JSONPath valueExpression evaluated to a type that could not marshal to JSON";
        to_json(&value).map_err(|why| format!("{unmarshalled}: {why}"))
    });
    let from = Some(text("from")).filter(|from| !from.is_empty());
    Ok(Operation { op: Some(text("op")), path: Some(text("path")), from, value: value.transpose()? })
}
