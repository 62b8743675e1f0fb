//! The history before the start. It is read while the server is serving, and inserted before the events since the start;
//! earlier requests for it wait ([`Objects::reach_back`]).

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use store::{Change, Revision, Snapshot, StoreError};

use super::event::{Event, EventKind};
use super::feed::{Id, Objects};
use super::key::Key;
use super::ring::Ring;
use super::stored::Stored;
use crate::limits;

/// The events that collections keep, and the state after the last of them.
struct KeptHistory<'a> {
    objects: &'a Objects,
    since: Revision,
    /// The objects that later changes may replace, by key in the store.
    there: HashMap<Bytes, Arc<Stored>>,
    rings: HashMap<Id, Ring>,
}

impl KeptHistory<'_> {
    fn begin(objects: &Objects, snapshot: Snapshot) -> Result<KeptHistory<'_>, StoreError> {
        let (since, mut there) = (snapshot.revision, HashMap::new());
        for entry in snapshot.entries {
            let Some(place) = objects.layout.find(&entry.key) else { continue };
            // an object that is still live has not changed since, so no later event needs its previous state
            if live(objects, &place.key, entry.revision).is_none() {
                let stored = objects.opened(&place, entry.revision, &entry.value)?;
                there.insert(entry.key, Arc::new(stored));
            }
        }
        Ok(KeptHistory { objects, since, there, rings: HashMap::new() })
    }

    fn take(&mut self, change: &Change) -> Result<(), StoreError> {
        let Some(place) = self.objects.layout.find(&change.key) else { return Ok(()) };
        let revision = change.revision;
        let previous = self.there.remove(&change.key);
        let (kind, object) = match (&change.value, &previous) {
            (Some(value), _) => {
                let object = match live(self.objects, &place.key, revision) {
                    Some(live) => live,
                    None => Arc::new(self.objects.opened(&place, revision, value)?),
                };
                self.there.insert(change.key.clone(), object.clone());
                (if previous.is_some() { EventKind::Modified } else { EventKind::Added }, object)
            }
            (None, Some(previous)) => (EventKind::Deleted, Arc::new(previous.at(revision))),
            (None, None) => return Ok(()),
        };
        let Key { group, plural, path } = place.key;
        let event = Event { revision, kind, path, object, previous };
        self.rings
            .entry((group, plural))
            .or_insert_with(|| Ring::new(self.since, &self.objects.share))
            .push(Arc::new(event));
        Ok(())
    }
}

/// The live object, if it has this revision, so that no value is in memory twice.
fn live(objects: &Objects, key: &Key, revision: Revision) -> Option<Arc<Stored>> {
    let live = objects.collection(&key.group, &key.plural).get(&key.path);
    live.filter(|live| live.revision == revision)
}

impl Objects {
    /// Reads the changes before `start`, as far back as lists and watches may reach.
    pub(super) async fn load_history(self: Arc<Self>, start: Revision) {
        let mut result = self.try_history(start).await;
        for _ in 1..limits::HISTORY_ATTEMPTS {
            // another server has compacted meanwhile: there is less history
            if matches!(result, Err(StoreError::Compacted(_))) {
                result = self.try_history(start).await;
            }
        }
        if let Err(error) = result {
            tracing::warn!(%error, "history cannot be read: watches start from the present");
        }
        self.unread.send_replace(0);
    }

    async fn try_history(&self, start: Revision) -> Result<(), StoreError> {
        let snapshot = self.store.history(limits::HISTORY_REVISIONS).await?;
        let since = snapshot.revision;
        if since >= start {
            // a store in memory keeps no history, so its snapshot may already contain the first writes of this server
            return Ok(());
        }
        let mut past = base::task::blocking(|| KeptHistory::begin(self, snapshot))?;
        let mut changes = self.store.follow(since).await?;
        let mut seen = since;
        while seen < start {
            let batch = changes.next().await?;
            seen = batch.revision;
            let mut old = batch.changes.iter().take_while(|change| change.revision <= start);
            base::task::blocking(|| old.try_for_each(|change| past.take(change)))?;
            // requests go first
            tokio::task::yield_now().await;
        }
        let rings = past.rings;
        self.put_before(since, start, rings);
        Ok(())
    }

    /// Waits until the history before the start is known, if `revision` is part of it.
    pub async fn reach_back(&self, revision: Revision) {
        let mut unread = self.unread.subscribe();
        // the sender lives as long as self
        let _ = unread.wait_for(|unread| revision >= *unread).await;
    }
}
