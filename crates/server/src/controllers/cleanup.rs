//! Deletes the instances of CustomResourceDefinitions, and the content of namespaces, that are being deleted.
//!
//! A definition is kept for a grace period after the deletion of its last instance. The content of a namespace is deleted
//! after a grace period, as kube-controller-manager does: writes in flight complete before it, and a client that
//! finalizes a namespace itself, as tests against a bare kube-apiserver do, still finds the namespace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::clock;
use objects::{Event, EventKind, Key};
use resource::defined_by;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::namespaces::TerminatingNamespaces;
use crate::limits;
use crate::verbs::{self, Context};

/// The controller; it runs after changes that may make a deletion possible.
pub struct Cleanup {
    /// Whether the content of namespaces is deleted.
    namespaces: bool,
    /// Whether a definition or a namespace was being deleted during the last pass. If so, the deletion of any object starts
    /// another pass.
    pending: AtomicBool,
    changed: Notify,
}

impl Cleanup {
    pub fn new(namespaces: bool) -> Cleanup {
        Cleanup { namespaces, pending: AtomicBool::new(false), changed: Notify::new() }
    }

    /// Receives every event, in order.
    pub fn observe(&self, key: &Key, event: &Event) {
        let is_namespace = key.group.is_empty() && key.plural == "namespaces";
        let begins = event.object.meta.deleting && (is_namespace || defined_by(key).is_some());
        if begins || (event.kind == EventKind::Deleted && self.pending.load(Ordering::SeqCst)) {
            self.changed.notify_one();
        }
    }

    /// Makes passes until `stop` becomes true: one at the start, one after each change that matters, one where a grace
    /// period ends, and one more after a failure.
    pub async fn run(self: Arc<Self>, context: Arc<Context>, mut stop: watch::Receiver<bool>) {
        let (mut leaving, mut outlived) = (TerminatingNamespaces::default(), verbs::PendingCrdDeletions::default());
        let mut next = Some(clock::instant());
        loop {
            tokio::select! {
                () = self.changed.notified() => {}
                () = until(next) => {}
                () = super::stopped(&mut stop) => return,
            }
            // set before the pass, so that no deletion is missed: the pass sees earlier ones, and later ones start another pass
            self.pending.store(true, Ordering::SeqCst);
            let mut pass = verbs::finalize(&context, &mut outlived).await;
            if self.namespaces {
                pass = pass.and(leaving.finalize(&context).await);
            }
            self.pending.store(pass.pending, Ordering::SeqCst);
            let retry = pass.failed.then(|| clock::instant() + limits::CONTROLLER_RETRY);
            next = leaving.next().into_iter().chain(outlived.next()).chain(retry).min();
        }
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
