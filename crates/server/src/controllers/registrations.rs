//! APIServices of the groups that this server serves: creates and deletes those of CRDs, restores changed ones and writes
//! their `Available` condition. For APIServices of other servers, `availability` writes the condition.

use std::sync::Arc;

use machinery::Status;
use objects::Key;
use resource::builtin::{API_SERVICES, MANAGED, MANAGED_ALWAYS, REGISTRATION_GROUP};
use resource::defined_by;
use tokio::sync::{Notify, watch};

use super::availability;
use crate::aggregation::Condition;
use crate::limits;
use crate::verbs::{self, Context};

/// The controller; it runs after every change of a CRD or an APIService.
#[derive(Default)]
pub struct Registrations {
    changed: Notify,
}

impl Registrations {
    /// Observes the key of every changed object, after the registry has been updated.
    pub fn observe(&self, key: &Key) {
        if defined_by(key).is_some() || key.group == REGISTRATION_GROUP {
            self.changed.notify_one();
        }
    }

    /// Runs until `stop` becomes true, each time [`limits::REGISTRATION_GRACE`] after the last of several changes in succession.
    pub async fn run(self: Arc<Self>, context: Arc<Context>, mut stop: watch::Receiver<bool>) {
        let mut seen = 0;
        loop {
            let (mut pause, mut again) = (limits::REGISTRATION_GRACE, false);
            match update_all(&context, seen).await {
                Ok(revision) => seen = revision,
                Err(status) => {
                    tracing::warn!(error = %status, "an APIService cannot be written; will retry");
                    (pause, again) = (limits::CONTROLLER_RETRY, true);
                }
            }
            let change = async {
                if !again {
                    self.changed.notified().await;
                }
                let quiet = async { while tokio::time::timeout(pause, self.changed.notified()).await.is_ok() {} };
                let _ = tokio::time::timeout(limits::REGISTRATION_DELAY_MAX, quiet).await;
            };
            tokio::select! {
                () = change => {}
                () = super::stopped(&mut stop) => return,
            }
        }
    }
}

/// Creates missing APIServices, restores those that have changed since the revision `seen`, and deletes those whose group
/// version is no longer served. Returns the revision up to which changes have been handled.
async fn update_all(context: &Context, seen: u64) -> Result<u64, Status> {
    let Some(resource) = context.registry.get(REGISTRATION_GROUP, API_SERVICES) else { return Ok(seen) };
    let services = |custom| resource::api_services(&context.registry, custom);
    let (built_in, mut wanted) = (services(false), services(true));
    let (root, revision) = resource.collection.latest();
    let mut gone = vec![];
    for stored in root.values() {
        let wanted = wanted.remove(&stored.meta.name);
        let managed = stored.meta.label(MANAGED) == Some(MANAGED_ALWAYS);
        if managed && wanted.is_none() && !built_in.contains_key(&stored.meta.name) {
            gone.push(stored.clone());
        } else if stored.revision > seen {
            let object = stored.body.to_value(stored.revision);
            if let Some(wanted) = wanted.filter(|_| managed) {
                verbs::restore_registration(context, &resource, &object, &wanted).await?;
            }
            if object.at(&["spec", "service"]).is_none() {
                availability::report(context, &stored.meta.name, &Condition::served_here()).await?;
            }
        }
    }
    verbs::delete_as_server(context, &resource, gone).await?;
    verbs::create_missing(context, &resource, wanted.into_values()).await?;
    Ok(revision)
}
