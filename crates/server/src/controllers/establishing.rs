//! Establishes CustomResourceDefinitions from what is stored: accepted names and conditions follow every write of a
//! definition, whichever request or server made it and whether or not that request still waits.
//!
//! A request that writes a definition settles it before it returns. This controller does what such a request could not:
//! its client disconnected, its time ran out, the store failed, or the server stopped behind the commit.

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
    /// It was read or created: it needs nothing if it is served by the names of its spec.
    Added,
    /// Any part of it may have changed.
    Modified,
    /// Its names are free, which others of its group may have waited for.
    Deleted,
}

/// Definitions that have changed, by group and plural; the plural is empty where only the names of a group are free.
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

    /// Settles definitions until `stop` becomes true. A definition whose status cannot be written is tried again.
    pub async fn run(self: Arc<Self>, context: Arc<Context>, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = self.settle_pending(&context) => {}
                () = super::stopped(&mut stop) => return,
            }
        }
    }

    async fn settle_pending(&self, context: &Context) {
        self.changed.notified().await;
        loop {
            let Some(((group, plural), change)) = self.pending().pop_first() else { return };
            if let Err(status) = settle(context, &group, &plural, change).await {
                tracing::warn!(%group, %plural, error = %status, "the status of a CustomResourceDefinition cannot be written yet");
                self.pending().entry((group, plural)).or_insert(change);
                tokio::time::sleep(limits::CONTROLLER_RETRY).await;
            }
        }
    }
}

async fn settle(context: &Context, group: &str, plural: &str, change: DefinitionChange) -> Result<(), Status> {
    let is_settled = || context.registry.get(group, plural).is_some_and(|served| served.settled);
    match change {
        DefinitionChange::Added if is_settled() => Ok(()),
        DefinitionChange::Added | DefinitionChange::Modified => {
            let name = format!("{plural}.{group}");
            verbs::settle(context, &name).await?;
            verbs::settle_peers(context, group, &name).await
        }
        DefinitionChange::Deleted => verbs::settle_peers(context, group, "").await,
    }
}
