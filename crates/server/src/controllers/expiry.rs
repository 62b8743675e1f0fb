//! Expiry of Events: deletes them some time after their last write, by default an hour (`--event-ttl`).
//!
//! The time of the last write is read from the metadata of the Event, so it survives a restart.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use base::clock;
use futures_util::future::join_all;
use machinery::{Text, Value, json};
use objects::{Event, EventKind, Key};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::reconciler::Reconciler;
use crate::limits;
use crate::verbs::Context;

const USER: &str = "kube-apiserver";

#[derive(Default)]
struct Expiring {
    /// Expiry in seconds since the epoch, and the path of the Event.
    by_time: BTreeSet<(i64, Text)>,
    times: HashMap<Text, i64>,
}

impl Expiring {
    fn set(&mut self, path: &Text, due: Option<i64>) {
        if let Some(before) = self.times.remove(path) {
            self.by_time.remove(&(before, path.clone()));
        }
        if let Some(due) = due {
            self.times.insert(path.clone(), due);
            self.by_time.insert((due, path.clone()));
        }
    }

    /// The paths of up to `most` Events that have expired by `now`, and the earliest expiry of all Events.
    fn expired(&self, now: i64, most: usize) -> (Vec<Text>, Option<i64>) {
        let expired = self.by_time.iter().take_while(|(due, _)| *due <= now).take(most);
        (expired.map(|(_, path)| path.clone()).collect(), self.by_time.first().map(|(due, _)| *due))
    }
}

pub struct EventExpiry {
    seconds: i64,
    state: Mutex<Expiring>,
}

/// The time of the last write, in seconds since the epoch. Every write leaves its time in `managedFields`.
fn written(event: &Value) -> Option<i64> {
    let entries = event.items_at(&["metadata", "managedFields"]);
    let times = entries.iter().map(|entry| entry.str_at(&["time"]));
    let times = times.chain([event.str_at(&["metadata", "creationTimestamp"])]);
    times.filter_map(|time| machinery::time::parse_rfc3339(time).map(|(seconds, _)| seconds)).max()
}

impl Reconciler for EventExpiry {
    const NAME: &'static str = "event expiry";
    const RESUMES: bool = false;
    type Memory = ();

    fn observe(&self, key: &Key, change: &Event) -> bool {
        if !key.group.is_empty() || key.plural != "events" {
            return false;
        }
        let live = change.kind != EventKind::Deleted;
        let written = live.then(|| written(&change.object.body.to_value(0)).unwrap_or_else(clock::now_seconds));
        self.state.lock().set(&key.path, written.map(|written| written.saturating_add(self.seconds)));
        true
    }

    async fn reconcile(&self, context: &Arc<Context>, _: &watch::Receiver<bool>, _: &mut ()) -> Option<Duration> {
        let now = clock::now_seconds();
        let (expired, next) = self.state.lock().expired(now, limits::GARBAGE_PARALLEL);
        join_all(expired.iter().map(|path| self.delete(context, path, now))).await;
        let left = u64::try_from(next? - now).unwrap_or(0);
        // at most a minute, since the clock may be set
        Some(Duration::from_secs(left.min(60)))
    }
}

impl EventExpiry {
    pub fn new(after: Duration) -> EventExpiry {
        let seconds = i64::try_from(after.as_secs()).unwrap_or(i64::MAX);
        EventExpiry { seconds, state: Mutex::default() }
    }

    async fn delete(&self, context: &Context, path: &Text, now: i64) {
        let Some(resource) = context.registry.get("", "events") else { return };
        let Some(stored) = resource.collection.get(path) else { return self.state.lock().set(path, None) };
        let options = json!({"preconditions": {"resourceVersion": (stored.revision.to_string())}});
        let own = context.as_user(USER, &resource, &stored.meta.namespace, &stored.meta.name);
        if let Err(status) = own.delete(&options).await {
            tracing::debug!(event = %path, error = %status, "an expired Event cannot be deleted; will retry");
            self.state.lock().set(path, Some(now + 1));
        } else if stored.meta.finalizers {
            // it is marked, and deleted when its last finalizer is removed
            self.state.lock().set(path, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_write_wins() {
        let event = |times: &[&str]| {
            let entries: Value = times.iter().map(|time| json!({"time": (*time)})).collect();
            json!({"metadata": {"creationTimestamp": "1970-01-01T00:00:10Z", "managedFields": entries}})
        };
        assert_eq!(written(&event(&[])), Some(10));
        assert_eq!(written(&event(&["1970-01-01T00:00:20Z", "1970-01-01T00:00:15Z"])), Some(20));
        assert_eq!(written(&json!({})), None);
    }

    #[test]
    fn write_postpones_expiry() {
        let mut state = Expiring::default();
        state.set(&"n/a".into(), Some(10));
        state.set(&"n/b".into(), Some(12));
        assert_eq!(state.expired(9, 8), (vec![], Some(10)));
        state.set(&"n/a".into(), Some(20));
        assert_eq!(state.expired(15, 8), (vec!["n/b".into()], Some(12)));
        state.set(&"n/b".into(), None);
        assert_eq!(state.expired(30, 8), (vec!["n/a".into()], Some(20)));
        assert!(state.times.len() == 1 && state.by_time.len() == 1);
    }
}
