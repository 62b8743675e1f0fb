//! MutatingAdmissionPolicy: expressions that change writes (KEP-3962; api-machinery 26.2).

use std::borrow::Cow;
use std::sync::Arc;

use cel::Activation;
use cel::value::{Val, misnamed, to_json};
use machinery::patch::{Unknown, json_patch};
use machinery::{Status, Value};

use super::evaluate::activation;
use super::program::{Mutation, PatchType, Programs};
use super::{Binding, Denial, Policy, params, refusal};
use crate::admission::expressions::{Budget, Failed, Shown, Subject, all_hold};
use crate::admission::{Attributes, World};
use crate::resource::Version;

/// The object as a policy changes it under each of its bindings, in the version of the request; `None` if it does not.
pub async fn apply(
    world: &World<'_>,
    attributes: &Attributes<'_>,
    policy: &Policy,
    bindings: &[Arc<Binding>],
) -> Result<Option<Value>, Status> {
    let Some(version) = policy.matching.version(world, attributes) else { return Ok(None) };
    let judge = |binding: Option<&Binding>, why: String| match policy.fails {
        true => Err(refusal(attributes, &denial(policy, binding, &why))),
        false => Ok(()),
    };
    let source = match policy.param_kind.as_ref().map(|kind| kind.find(world)).transpose() {
        Ok(source) => source,
        Err(why) => return judge(None, format!("failed to configure policy: {why}")).map(|()| None),
    };
    let mut shown = Shown::new(attributes, version).await?;
    let before = shown.object.clone();
    for binding in bindings.iter().filter(|binding| binding.matching.is_meant(world, attributes)) {
        let params = match params::collect(source.as_ref(), binding.params.as_ref(), attributes.namespace).await {
            Ok(params) => params,
            Err(why) => {
                judge(Some(binding), format!("failed to configure binding: {why}"))?;
                continue;
            }
        };
        for params in params {
            match mutated(world, attributes, version, &shown, policy.programs(), params.as_ref()) {
                Ok(object) => shown.object = object,
                Err(why) => judge(Some(binding), why)?,
            }
        }
    }
    if shown.object == before {
        return Ok(None);
    }
    let object = shown.object.into_owned();
    match attributes.is_versioned() {
        true => attributes.resource.convert(object, version, attributes.version).await.map(Some),
        false => Ok(Some(object)),
    }
}

fn denial(policy: &Policy, binding: Option<&Binding>, why: &str) -> Denial {
    let with = binding.map(|binding| format!(" with binding '{}'", binding.name)).unwrap_or_default();
    Denial::new(format!("policy '{}'{with} denied request: {why}", policy.name))
}

/// The object after all mutations of a policy, each of which sees what the one before made. The error is what is
/// wrong with the policy.
fn mutated<'a>(
    world: &World<'_>,
    attributes: &Attributes<'_>,
    version: &Version,
    shown: &Shown<'a>,
    programs: &Programs,
    params: Option<&Value>,
) -> Result<Cow<'a, Value>, String> {
    let mut current = shown.clone();
    let mut budget = Budget(cel::rules::OBJECT_COST_MAX);
    let held = {
        let subject = Subject::new(world, attributes, version, &current);
        all_hold(&programs.conditions, &mut activation(&subject, programs, params, true))
    };
    if !held? {
        return Ok(current.object);
    }
    for mutation in &programs.mutations {
        let object = {
            let subject = Subject::new(world, attributes, version, &current);
            let mut variables = activation(&subject, programs, params, true);
            patched(mutation, &mut variables, &mut budget, version, &current.object)
        };
        current.object = Cow::Owned(object?);
    }
    Ok(current.object)
}

/// The object as one mutation changes it.
fn patched<'p>(
    mutation: &'p Mutation,
    variables: &mut Activation<'p>,
    budget: &mut Budget,
    version: &Version,
    object: &Value,
) -> Result<Value, String> {
    let found = mutation.expression.evaluate(variables, budget);
    let found = found.map_err(|failed| match failed {
        Failed::One(why) | Failed::All(why) => why,
    })?;
    let unsuitable = || format!("expression '{}' does not evaluate to JSON", mutation.expression.text);
    match mutation.patch_type {
        PatchType::ApplyConfiguration => {
            if let Some(why) = misnamed(&found) {
                return Err(format!("type mismatch: {why}"));
            }
            let configuration = to_json(&found).ok_or_else(unsuitable)?;
            schema::apply::merge_configuration(&version.program().types, object, &configuration)
        }
        PatchType::JsonPatch => {
            let Val::List(_) = &found else { return Err(unsuitable()) };
            let operations = to_json(&found).ok_or_else(unsuitable)?.to_json();
            let patch = json_patch::decode_patch(operations.as_bytes(), Unknown::Ignored);
            let patch = patch.map_err(|status| format!("JSON Patch: {}", status.message))?;
            json_patch::apply(object.clone(), &patch).map_err(|status| format!("JSON Patch: {}", status.message))
        }
    }
}
