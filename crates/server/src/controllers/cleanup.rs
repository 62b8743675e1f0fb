//! Deletes the instances of CustomResourceDefinitions, and the content of namespaces, that are being deleted.
//!
//! A definition is kept for a grace period after the deletion of its last instance. The content of a namespace is deleted
//! when the writes that were in flight have ended, so that none of them creates an object in a namespace that is gone.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use base::clock;
use kinds::defined_by;
use machinery::Text;
use objects::{Event, EventKind, Key};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::namespaces::TerminatingNamespaces;
use super::reconciler::Reconciler;
use crate::limits;
use crate::verbs::{self, Context};

/// The controller. It makes a pass at the start, after each change that may make a deletion possible, at the end of a
/// grace period, and after a failure.
pub struct Cleanup {
    /// Whether the content of namespaces is deleted.
    namespaces: bool,
    state: Mutex<State>,
}

/// Deletions that a run has begun.
#[derive(Default)]
pub struct Deletions {
    /// Whether the run has made a pass.
    begun: bool,
    namespaces: TerminatingNamespaces,
    definitions: verbs::PendingCrdDeletions,
    /// When definitions are to be looked at again after a failure.
    retry: Option<Instant>,
}

/// The objects that are being deleted. Each is looked at only when something in its namespace or of its resource
/// changes, so one that waits for finalizers costs nothing while others are deleted.
#[derive(Default)]
struct State {
    namespaces: HashSet<Text>,
    /// The namespaces to look at, since they or their content have changed.
    changed_namespaces: HashSet<Text>,
    /// The group and the plural that each definition defines.
    definitions: HashMap<Key, (Text, Text)>,
    /// Whether definitions are to be looked at.
    definitions_changed: bool,
}

impl State {
    /// Returns whether something is to be done.
    fn observe(&mut self, key: &Key, event: &Event) -> bool {
        let (is_deleted, is_deleting) = (event.kind == EventKind::Deleted, event.object.meta.deleting);
        if key.group.is_empty() && key.plural == "namespaces" {
            if is_deleted {
                self.namespaces.remove(&key.path);
                self.changed_namespaces.remove(&key.path);
            } else if is_deleting {
                self.namespaces.insert(key.path.clone());
                self.changed_namespaces.insert(key.path.clone());
            }
            return is_deleting && !is_deleted;
        }
        if let Some(resource) = defined_by(key)
            && is_deleting
        {
            if is_deleted {
                self.definitions.remove(key);
            } else {
                self.definitions.insert(key.clone(), resource);
            }
            self.definitions_changed = true;
            return true;
        }
        is_deleted && self.observe_deleted(key)
    }

    fn observe_deleted(&mut self, key: &Key) -> bool {
        let concerns_definition =
            self.definitions.values().any(|(group, plural)| *group == key.group && *plural == key.plural);
        self.definitions_changed |= concerns_definition;
        let namespace = key.path.split_once('/').and_then(|(namespace, _)| self.namespaces.get(namespace));
        let concerns_namespace = namespace.is_some();
        self.changed_namespaces.extend(namespace.cloned());
        concerns_definition || concerns_namespace
    }
}

impl Cleanup {
    pub fn new(namespaces: bool) -> Cleanup {
        Cleanup { namespaces, state: Mutex::default() }
    }
}

impl Reconciler for Cleanup {
    const NAME: &'static str = "cleanup";
    type Memory = Deletions;

    fn observe(&self, key: &Key, event: &Event) -> bool {
        self.state.lock().observe(key, event)
    }

    async fn reconcile(
        &self,
        context: &Arc<Context>,
        _: &watch::Receiver<bool>,
        known: &mut Deletions,
    ) -> Option<Duration> {
        let (namespaces, definitions_changed) = {
            let mut state = self.state.lock();
            if !std::mem::replace(&mut known.begun, true) {
                state.changed_namespaces = state.namespaces.clone();
                state.definitions_changed = true;
            }
            (std::mem::take(&mut state.changed_namespaces), std::mem::take(&mut state.definitions_changed))
        };
        let due = known.definitions.next().into_iter().chain(known.retry).min();
        if definitions_changed || due.is_some_and(|due| due <= clock::moment()) {
            let pass = verbs::finalize(context, &mut known.definitions).await;
            known.retry = pass.failed.then(|| clock::moment() + limits::CONTROLLER_RETRY);
        }
        if self.namespaces {
            known.namespaces.finalize(context, namespaces).await;
        }
        let next = [known.namespaces.next(), known.definitions.next(), known.retry].into_iter().flatten().min()?;
        Some(next.saturating_duration_since(clock::moment()))
    }
}

#[cfg(test)]
mod tests {
    use machinery::{Value, json};
    use objects::{Encoded, Stored};

    use super::*;

    fn event(kind: EventKind, metadata: Value) -> Event {
        let Encoded { body, meta, .. } = Encoded::of(&[("metadata", metadata)].into());
        let path = meta.name.clone();
        Event { revision: 1, kind, path, object: Arc::new(Stored::new(1, body, meta)), previous: None }
    }

    #[test]
    fn deletions_concern_their_own_namespace_and_resource() {
        let mut state = State::default();
        let key = |group: &str, plural: &str, path: &str| Key {
            group: group.into(),
            plural: plural.into(),
            path: path.into(),
        };
        let deleting = |name: &str| event(EventKind::Modified, json!({"name": name, "deletionTimestamp": "t"}));
        let deleted = || event(EventKind::Deleted, json!({"name": "x"}));
        assert!(!state.observe(&key("", "configmaps", "n/x"), &deleted()));
        assert!(state.observe(&key("", "namespaces", "n"), &deleting("n")));
        assert!(
            state.observe(
                &key("apiextensions.k8s.io", "customresourcedefinitions", "boats.g.io"),
                &deleting("boats.g.io")
            )
        );
        state.changed_namespaces.clear();
        state.definitions_changed = false;
        assert!(!state.observe(&key("", "configmaps", "other/x"), &deleted()));
        assert!(!state.observe(&key("g.io", "ships", "x"), &deleted()));
        assert!(!state.observe(&key("", "configmaps", "n/x"), &event(EventKind::Added, json!({"name": "x"}))));
        assert!(state.observe(&key("", "configmaps", "n/x"), &deleted()));
        assert_eq!(state.changed_namespaces, HashSet::from(["n".into()]));
        assert!(state.observe(&key("g.io", "boats", "m/x"), &deleted()) && state.definitions_changed);
        assert!(!state.observe(
            &key("", "namespaces", "n"),
            &event(EventKind::Deleted, json!({"name": "n", "deletionTimestamp": "t"}))
        ));
        assert!(!state.observe(&key("", "configmaps", "n/x"), &deleted()));
    }
}
