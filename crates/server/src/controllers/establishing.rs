//! Establishes stored CustomResourceDefinitions: writes their accepted names and conditions.
//!
//! A request that writes a definition also establishes it before it returns. This controller completes what such a request
//! could not: its client disconnected, it timed out, the store failed, the server stopped after the commit, or another
//! server wrote the definition.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kinds::defined_by;
use machinery::{Result, Text};
use objects::{Event, EventKind, Key};
use parking_lot::Mutex;
use resource::builtin::DEFINITION_GROUP;
use tokio::sync::watch;

use super::reconciler::Reconciler;
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

/// The CRDs that have changed, by group and plural. The plural is empty if something other than a CRD has freed names
/// of the group.
type Changes = BTreeMap<(Text, Text), DefinitionChange>;

#[derive(Default)]
pub struct Establishing {
    pending: Mutex<Changes>,
}

impl Reconciler for Establishing {
    const NAME: &'static str = "establishing";
    type Memory = ();

    fn observe(&self, key: &Key, event: &Event) -> bool {
        let Some((group, plural)) = defined_by(key) else { return false };
        let (plural, change) = match event.kind {
            _ if key.group != DEFINITION_GROUP => (Text::new_static(""), DefinitionChange::Deleted),
            EventKind::Added => (plural, DefinitionChange::Added),
            EventKind::Modified => (plural, DefinitionChange::Modified),
            EventKind::Deleted => (plural, DefinitionChange::Deleted),
        };
        self.pending.lock().insert((group, plural), change);
        true
    }

    async fn reconcile(&self, context: &Arc<Context>, _: &watch::Receiver<bool>, _: &mut ()) -> Option<Duration> {
        let mut failed = Changes::new();
        loop {
            let Some(((group, plural), change)) = self.pending.lock().pop_first() else { break };
            if let Err(status) = establish(context, &group, &plural, change).await {
                tracing::warn!(%group, %plural, error = %status, "the status of a CustomResourceDefinition cannot be written; will retry");
                failed.insert((group, plural), change);
            }
        }
        let again = (!failed.is_empty()).then_some(limits::CONTROLLER_RETRY);
        let mut pending = self.pending.lock();
        // a change that was observed meanwhile is newer and takes precedence
        for (place, change) in failed {
            pending.entry(place).or_insert(change);
        }
        again
    }
}

async fn establish(context: &Context, group: &str, plural: &str, change: DefinitionChange) -> Result<()> {
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
