//! APIServices of the groups that this server serves: creates and deletes those of CRDs, restores changed ones and writes
//! their `Available` condition. For APIServices of other servers, `availability` writes the condition.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use kinds::{API_SERVICES, MANAGED, MANAGED_ALWAYS, REGISTRATION_GROUP, defined_by};
use machinery::Result;
use objects::{Event, Key};
use tokio::sync::watch;

use super::availability;
use super::reconciler::Reconciler;
use crate::aggregation::Condition;
use crate::limits;
use crate::verbs::{self, Context};

/// The controller; it runs after every change of a CRD or an APIService.
pub struct Registrations;

impl Reconciler for Registrations {
    const NAME: &'static str = "registrations";
    const SETTLED: [Duration; 2] = [limits::REGISTRATION_GRACE, limits::REGISTRATION_DELAY_MAX];
    /// The revision up to which changes have been handled.
    type Memory = u64;

    /// Events come after the registry has been updated.
    fn observe(&self, key: &Key, _: &Event) -> bool {
        defined_by(key).is_some() || key.group == REGISTRATION_GROUP
    }

    async fn reconcile(&self, context: &Arc<Context>, _: &watch::Receiver<bool>, seen: &mut u64) -> Option<Duration> {
        match update_all(context, *seen).await {
            Ok(revision) => {
                *seen = revision;
                None
            }
            Err(status) => {
                tracing::warn!(error = %status, "an APIService cannot be written; will retry");
                Some(limits::CONTROLLER_RETRY)
            }
        }
    }
}

/// Creates missing APIServices, restores those that have changed since the revision `seen`, and deletes those whose group
/// version is no longer served. Returns the revision up to which changes have been handled.
async fn update_all(context: &Context, seen: u64) -> Result<u64> {
    let Some(resource) = context.registry.get(REGISTRATION_GROUP, API_SERVICES) else { return Ok(seen) };
    let built_in = LazyLock::new(|| kinds::built_in_api_services(&context.registry));
    let mut wanted = kinds::custom_api_services(&context.registry);
    let (root, revision) = resource.collection.latest();
    let mut gone = vec![];
    for stored in root.values() {
        let wanted = wanted.remove(&stored.meta.name);
        let managed = stored.meta.label(MANAGED) == Some(MANAGED_ALWAYS);
        if managed && wanted.is_none() && !built_in.contains_key(&stored.meta.name) {
            gone.push(stored.clone());
        } else if stored.revision > seen {
            if let Some(wanted) = wanted.filter(|_| managed) {
                let object = stored.body.to_value(stored.revision);
                verbs::restore_registration(context, &resource, &object, &wanted).await?;
            }
            if !stored.body.has("spec", "service") {
                availability::report(context, &stored.meta.name, &Condition::served_here()).await?;
            }
        }
    }
    verbs::delete_as_server(context, &resource, gone).await?;
    verbs::create_missing(context, &resource, wanted.into_values()).await?;
    Ok(revision)
}
