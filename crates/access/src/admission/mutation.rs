//! Mutating admission: policies, then webhooks, each in order of their names. Before a second round, the server's own plugins
//! process the object again.

use machinery::{Status, Value};

use super::measure::Step;
use super::plugins::Plugins;
use super::policies::{PolicyKey, PolicySnapshot};
use super::reinvocation::{Reinvocation, Round};
use super::sources::EffectiveSources;
use super::webhooks::{MutatingWebhooks, Place};
use super::{Attributes, patched};

/// The mutating plugins of one write.
struct Chain<'a> {
    policies: Option<EffectiveSources<PolicySnapshot>>,
    webhooks: Option<MutatingWebhooks<'a>>,
    policy_reinvocation: Reinvocation<PolicyKey>,
    webhook_reinvocation: Reinvocation<usize>,
}

/// The object after all mutations.
pub async fn mutate(
    plugins: &Plugins,
    policies: Option<EffectiveSources<PolicySnapshot>>,
    webhooks: Option<MutatingWebhooks<'_>>,
    attributes: &Attributes<'_>,
    object: Option<Value>,
) -> Result<Option<Value>, Status> {
    let mut chain = Chain {
        policies: policies.filter(|policies| policies.bound().next().is_some()),
        webhooks: webhooks.filter(|webhooks| webhooks.hooks().next().is_some()),
        policy_reinvocation: Reinvocation::default(),
        webhook_reinvocation: Reinvocation::default(),
    };
    let mut round = Round::default();
    let mut object = chain.run(attributes, object, &mut round).await?;
    if !round.again {
        return Ok(object);
    }
    round.number += 1;
    if let Some(object) = &mut object {
        plugins.admit(attributes, object).await?;
    }
    chain.run(attributes, object, &mut round).await
}

impl Chain<'_> {
    async fn run(
        &mut self,
        attributes: &Attributes<'_>,
        mut object: Option<Value>,
        round: &mut Round,
    ) -> Result<Option<Value>, Status> {
        // the object after a plugin matters only if another plugin may change it
        let has_both = self.policies.is_some() && self.webhooks.is_some();
        if let Some(policies) = &self.policies {
            let step = Step::begin("MutatingAdmissionPolicy", "admit", attributes.operation);
            let reinvocation = &mut self.policy_reinvocation;
            if has_both {
                reinvocation.begin(round, object.as_ref());
            }
            object = step.end(policies.apply(attributes, object, round, reinvocation).await)?;
            if has_both {
                reinvocation.result.clone_from(&object);
            }
        }
        if let Some(webhooks) = &self.webhooks {
            let step = Step::begin("MutatingAdmissionWebhook", "admit", attributes.operation);
            let reinvocation = &mut self.webhook_reinvocation;
            if has_both {
                reinvocation.begin(round, object.as_ref());
            }
            object = step.end(call_webhooks(webhooks, attributes, object, round, reinvocation).await)?;
            if has_both {
                reinvocation.result.clone_from(&object);
            }
        }
        Ok(object)
    }
}

/// Calls the webhooks of this round.
async fn call_webhooks(
    webhooks: &MutatingWebhooks<'_>,
    attributes: &Attributes<'_>,
    mut object: Option<Value>,
    round: &mut Round,
    reinvocation: &mut Reinvocation<usize>,
) -> Result<Option<Value>, Status> {
    let mut was_changed = false;
    for (i, hook) in webhooks.hooks().enumerate() {
        if !reinvocation.is_due(round, &i) {
            continue;
        }
        let attributes = Attributes { object: object.as_ref(), ..*attributes };
        let place = Place { round: round.number, index: i };
        if let Some(changed) = webhooks.call(hook, &attributes, place).await? {
            object = Some(changed);
            was_changed = true;
            reinvocation.changed(round);
        }
        if hook.again {
            reinvocation.mark_invoked(i);
        }
    }
    match object {
        Some(object) if was_changed => {
            Ok(Some(patched::in_request_version(attributes, object, attributes.version).await?))
        }
        object => Ok(object),
    }
}
