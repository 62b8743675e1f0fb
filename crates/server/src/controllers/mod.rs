//! Loops that keep what is stored in order (layer 7): cleaning up behind definitions and namespaces, compaction.
//!
//! Invariant: no back door; controllers write through the verbs, under a name of their own.

mod namespaces;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::limits;
use crate::verbs::{self, Context};

/// Starts every controller; they end when `stop` becomes true.
pub fn start(context: &Arc<Context>, stop: &watch::Receiver<bool>) {
    crate::task::spawn("cleanup", cleanup(context.clone(), stop.clone()));
    crate::task::spawn("compaction", compaction(context.clone(), stop.clone()));
}

/// Deletes the instances of definitions, and the content of namespaces, that are being deleted.
async fn cleanup(context: Arc<Context>, mut stop: watch::Receiver<bool>) {
    context.wake_deletions();
    loop {
        tokio::select! {
            () = context.deletion() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        verbs::finalize(&context).await;
        namespaces::finalize(&context).await;
    }
}

/// Forgets old history, so that memory and disk stay flat.
async fn compaction(context: Arc<Context>, mut stop: watch::Receiver<bool>) {
    let mut tick = tokio::time::interval(Duration::from_secs(limits::COMPACTION_SECONDS));
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let before = context.objects.revision().saturating_sub(limits::HISTORY_REVISIONS);
        if before > 0
            && let Err(error) = context.objects.store().compact(before).await
        {
            tracing::warn!(%error, "the store could not be compacted");
        }
    }
}
