//! Establishes stored CustomResourceDefinitions: writes their accepted names and conditions.
//!
//! A request that writes a definition also establishes it before it returns. This controller completes what such a request
//! could not: its client disconnected, it timed out, the store failed, the server stopped after the commit, or another
//! server wrote the definition.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use machinery::{Status, Text};
use objects::{Event, EventKind, Key};
use resource::builtin::DEFINITION_GROUP;
use resource::defined_by;
use tokio::sync::{Notify, watch};

use crate::limits;
use crate::verbs::{self, Context};

/// The known state of a CRD that has changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DefinitionChange {
    /// It was read at the start or created. Nothing is to be done if it is already established.
    Added,
    /// Any part of it may have changed.
    Modified,
    /// It was deleted. Its names are free for other CRDs of its group.
    Deleted,
}

/// The controller, with the CRDs that have changed, by group and plural. The plural is empty if names of the group have
/// become free otherwise.
#[derive(Default)]
pub struct Establishing {
    pending: Mutex<BTreeMap<(Text, Text), DefinitionChange>>,
    changed: Notify,
}

impl Establishing {
    /// Receives every event, in order.
    pub fn observe(&self, key: &Key, event: &Event) {
        let Some((group, plural)) = defined_by(key) else { return };
        let (plural, change) = match event.kind {
            _ if key.group != DEFINITION_GROUP => (Text::new_static(""), DefinitionChange::Deleted),
            EventKind::Added => (plural, DefinitionChange::Added),
            EventKind::Modified => (plural, DefinitionChange::Modified),
            EventKind::Deleted => (plural, DefinitionChange::Deleted),
        };
        self.pending().insert((group, plural), change);
        self.changed.notify_one();
    }

    fn pending(&self) -> MutexGuard<'_, BTreeMap<(Text, Text), DefinitionChange>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Establishes CRDs until `stop` becomes true. If a status cannot be written, it is retried.
    pub async fn run(self: Arc<Self>, context: Arc<Context>, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = self.establish_pending(&context) => {}
                () = super::stopped(&mut stop) => return,
            }
        }
    }

    async fn establish_pending(&self, context: &Context) {
        self.changed.notified().await;
        loop {
            let Some(((group, plural), change)) = self.pending().pop_first() else { return };
            if let Err(status) = establish(context, &group, &plural, change).await {
                tracing::warn!(%group, %plural, error = %status, "the status of a CustomResourceDefinition cannot be written; will retry");
                self.pending().entry((group, plural)).or_insert(change);
                tokio::time::sleep(limits::CONTROLLER_RETRY).await;
            }
        }
    }
}

async fn establish(context: &Context, group: &str, plural: &str, change: DefinitionChange) -> Result<(), Status> {
    let is_established = || context.registry.get(group, plural).is_some_and(|served| served.names_accepted);
    match change {
        DefinitionChange::Added if is_established() => Ok(()),
        DefinitionChange::Added | DefinitionChange::Modified => {
            let name = format!("{plural}.{group}");
            verbs::establish(context, &name).await?;
            verbs::establish_peers(context, group, &name).await
        }
        DefinitionChange::Deleted => verbs::establish_peers(context, group, "").await,
    }
}
