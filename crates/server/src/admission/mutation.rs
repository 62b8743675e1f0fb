//! What changes a write, one after the other: policies, then webhooks, each by their names (api-machinery 24.1).

use std::collections::BTreeSet;

use machinery::{Status, Value};

use super::measure;
use super::policies::{BoundPolicy, Policies};
use super::webhooks::{Hook, Webhooks};
use super::{Attributes, World};

/// One that may change a write.
enum Step<'a> {
    Policy(&'a BoundPolicy),
    /// With its place among the webhooks.
    Hook(usize, &'a Hook),
}

impl Step<'_> {
    fn name(&self) -> &'static str {
        match self {
            Step::Policy(_) => "MutatingAdmissionPolicy",
            Step::Hook(..) => "MutatingAdmissionWebhook",
        }
    }

    /// Whether it is asked again when others changed the object after it.
    fn again(&self) -> bool {
        match self {
            Step::Policy(bound) => bound.policy.again,
            Step::Hook(_, hook) => hook.again,
        }
    }
}

/// The object after everything that changes it; those that wish so are asked again about changes of later ones.
pub async fn mutate(
    (policies, webhooks): (Option<&Policies>, Option<&Webhooks>),
    world: &World<'_>,
    attributes: &Attributes<'_>,
    object: Option<Value>,
) -> Result<Option<Value>, Status> {
    let bound = policies.map(Policies::mutating).unwrap_or_default();
    let configurations = webhooks.map(Webhooks::mutating).unwrap_or_default();
    let hooks = configurations.values().flat_map(|hooks| hooks.iter()).enumerate();
    let steps: Vec<Step<'_>> =
        bound.iter().map(Step::Policy).chain(hooks.map(|(i, hook)| Step::Hook(i, hook))).collect();
    let mut object = object;
    let mut asked: BTreeSet<usize> = BTreeSet::new();
    let mut again: BTreeSet<usize> = BTreeSet::new();
    for round in 0..2 {
        for (i, step) in steps.iter().enumerate() {
            // a step of the second round may be due only because of another one of that round
            if round > 0 && !again.remove(&i) {
                continue;
            }
            let attributes = Attributes { object: object.as_ref(), ..*attributes };
            let measured = measure::Step::begin(step.name(), "admit", attributes.operation);
            let changed = measured.end(match (step, webhooks) {
                (Step::Policy(bound), _) => bound.mutate(world, &attributes).await,
                (Step::Hook(place, hook), Some(webhooks)) => {
                    webhooks.mutate_by(world, hook, &attributes, (round, *place)).await
                }
                (Step::Hook(..), None) => Ok(None),
            })?;
            if let Some(changed) = changed {
                object = Some(changed);
                again.append(&mut asked);
            }
            if step.again() {
                asked.insert(i);
            }
        }
    }
    Ok(object)
}
