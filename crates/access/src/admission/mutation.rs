//! Mutating admission: policies, then webhooks, each in order of their names. Before a second round, the server's own plugins
//! process the object again.

use machinery::{Status, Value};

use super::measure::Step;
use super::plugins::Plugins;
use super::policies::{Policies, PolicyKey};
use super::reinvocation::{Reinvocation, Round};
use super::webhooks::{Place, Webhooks};
use super::{Attributes, World, patched};

/// The mutating plugins of one write.
struct Chain<'a> {
    policies: Option<&'a Policies>,
    webhooks: Option<&'a Webhooks>,
    of_policies: Reinvocation<PolicyKey>,
    of_webhooks: Reinvocation<usize>,
}

/// The object after all mutations.
pub async fn mutate(
    plugins: &Plugins,
    policies: Option<&Policies>,
    webhooks: Option<&Webhooks>,
    world: &World<'_>,
    attributes: &Attributes<'_>,
    object: Option<Value>,
) -> Result<Option<Value>, Status> {
    let (policies, webhooks) = (policies.filter(|it| !it.none_mutate()), webhooks.filter(|it| !it.none_mutate()));
    let mut chain =
        Chain { policies, webhooks, of_policies: Reinvocation::default(), of_webhooks: Reinvocation::default() };
    let mut object = object;
    let mut round = Round::default();
    loop {
        object = chain.run(world, attributes, object, &mut round).await?;
        if round.number > 0 || !round.again {
            return Ok(object);
        }
        round.number += 1;
        if let Some(object) = &mut object {
            plugins.admit(world, attributes, object).await?;
        }
    }
}

impl Chain<'_> {
    async fn run(
        &mut self,
        world: &World<'_>,
        attributes: &Attributes<'_>,
        mut object: Option<Value>,
        round: &mut Round,
    ) -> Result<Option<Value>, Status> {
        // the object after a plugin matters only if another plugin may change it
        let both = self.policies.is_some() && self.webhooks.is_some();
        if let Some(policies) = self.policies {
            let step = Step::begin("MutatingAdmissionPolicy", "admit", attributes.operation);
            let state = &mut self.of_policies;
            if both {
                state.begin(round, object.as_ref());
            }
            object = step.end(policies.mutate(world, attributes, object, round, state).await)?;
            if both {
                state.left.clone_from(&object);
            }
        }
        if let Some(webhooks) = self.webhooks {
            let step = Step::begin("MutatingAdmissionWebhook", "admit", attributes.operation);
            let state = &mut self.of_webhooks;
            if both {
                state.begin(round, object.as_ref());
            }
            object = step.end(ask(webhooks, world, attributes, object, round, state).await)?;
            if both {
                state.left.clone_from(&object);
            }
        }
        Ok(object)
    }
}

/// Calls the webhooks of this round.
async fn ask(
    webhooks: &Webhooks,
    world: &World<'_>,
    attributes: &Attributes<'_>,
    mut object: Option<Value>,
    round: &mut Round,
    state: &mut Reinvocation<usize>,
) -> Result<Option<Value>, Status> {
    let configurations = webhooks.mutating();
    let mut was_changed = false;
    for (i, hook) in configurations.values().flat_map(|hooks| hooks.iter()).enumerate() {
        if !state.is_due(round, &i) {
            continue;
        }
        let attributes = Attributes { object: object.as_ref(), ..*attributes };
        if let Some(changed) =
            webhooks.mutate_by(world, hook, &attributes, Place { round: round.number, index: i }).await?
        {
            object = Some(changed);
            was_changed = true;
            state.changed(round);
        }
        if hook.again {
            state.mark_invoked(i);
        }
    }
    let unconverted = object.as_ref().filter(|_| was_changed).and_then(|it| patched::unconverted(attributes, it));
    unconverted.map_or(Ok(object), |why| Err(Status::untyped(500, why)))
}
