//! The one task that follows the store, and the one way to write.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use machinery::Text;
use store::{Change, Expected, Refused, Revision, Store, StoreError, Write};
use tokio::sync::watch;

use super::collection::Collection;
use super::event::Event;
use super::key::Key;
use super::stored::{Body, Meta, Stored};
use crate::clock;
use crate::limits;
use crate::metrics::{METRICS, StoreOperation};

type Id = (Text, Text);
/// A change that was read: its key, and the object unless that was deleted.
type Read = (Key, Option<Arc<Stored>>);
/// Hears of every event before its revision is visible: keeps what is derived from objects up to date.
type Observer = Box<dyn Fn(&Objects, &Key, &Event) + Send + Sync>;

/// Every collection, and the store below them.
pub struct Objects {
    store: Arc<dyn Store>,
    collections: Mutex<HashMap<Id, Arc<Collection>>>,
    /// Objects on their way from the writer to the feed, so that bytes just encoded are not parsed again.
    in_flight: Mutex<HashMap<Bytes, (Bytes, Body, Meta, u64)>>,
    applied: watch::Sender<Revision>,
    observer: OnceLock<Observer>,
}

impl Objects {
    /// Loads everything the store holds. `observer` is called for each object that is there, then for each event.
    pub async fn open(store: Arc<dyn Store>, observer: Observer) -> Result<Arc<Objects>, StoreError> {
        let snapshot = store.snapshot().await?;
        let objects = Objects {
            store: store.clone(),
            collections: Mutex::default(),
            in_flight: Mutex::default(),
            applied: watch::Sender::new(snapshot.revision),
            observer: OnceLock::new(),
        };
        for entry in snapshot.entries {
            let (Some(key), Some(stored)) = (Key::parse(&entry.key), Stored::parse(entry.revision, &entry.value))
            else {
                return Err(StoreError::Damaged(format!("the value of {} is no object", entry.key.escape_ascii())));
            };
            objects.collection(&key.group, &key.plural).load(key.path.clone(), Arc::new(stored));
        }
        let head = store.head().await?;
        let mut changes = store.follow(snapshot.revision).await?;
        let mut seen = snapshot.revision;
        while seen < head {
            for (revision, read) in objects.read_all(&changes.next().await?) {
                seen = revision;
                let (key, object) = read?;
                objects.take(revision, &key, object);
            }
        }
        objects.applied.send_replace(seen);
        let _ = objects.observer.set(observer);
        objects.tell_all();
        let objects = Arc::new(objects);
        crate::task::spawn("feed", objects.clone().follow(changes));
        Ok(objects)
    }

    async fn follow(self: Arc<Self>, mut changes: Box<dyn store::Changes>) {
        loop {
            let batch = match changes.next().await {
                Ok(batch) => batch,
                Err(error) => {
                    tracing::error!(%error, "the server no longer follows its store");
                    return;
                }
            };
            let mut revision = 0;
            for change in batch {
                revision = change.revision;
                match self.read(&change) {
                    Ok((key, object)) => self.take(revision, &key, object),
                    Err(error) => tracing::error!(%error, revision, "a change of the store cannot be read"),
                }
            }
            self.applied.send_replace(revision);
        }
    }

    /// Reads changes on every core, in their order: what a restart spends its time on.
    fn read_all<'a>(&'a self, changes: &'a [Change]) -> Vec<(Revision, Result<Read, StoreError>)> {
        let read = |change: &Change| (change.revision, self.read(change));
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let parts: Vec<&[Change]> = changes.chunks(changes.len().div_ceil(cores).max(64)).collect();
        let Some((first, others)) = parts.split_first() else { return vec![] };
        std::thread::scope(|scope| {
            let builder = || std::thread::Builder::new().stack_size(limits::WORKER_STACK_BYTES);
            let start = |part: &'a [Change]| {
                (part, builder().spawn_scoped(scope, move || part.iter().map(read).collect::<Vec<_>>()))
            };
            let running: Vec<_> = others.iter().copied().map(start).collect();
            let mut all: Vec<_> = first.iter().map(read).collect();
            for (part, thread) in running {
                // without a thread, or after a panic in it, this one reads
                let found = thread.ok().and_then(|thread| thread.join().ok());
                all.extend(found.unwrap_or_else(|| part.iter().map(read).collect()));
            }
            all
        })
    }

    fn read(&self, change: &Change) -> Result<Read, StoreError> {
        let unreadable = || StoreError::Damaged(format!("revision {} is no object", change.revision));
        let key = Key::parse(&change.key).ok_or_else(unreadable)?;
        let object = match &change.value {
            None => None,
            Some(value) => Some(Arc::new(self.stored(change, value).ok_or_else(unreadable)?)),
        };
        Ok((key, object))
    }

    fn take(&self, revision: Revision, key: &Key, object: Option<Arc<Stored>>) {
        let collection = self.collection(&key.group, &key.plural);
        if let Some(event) = collection.apply(revision, &key.path, object) {
            self.tell(key, &event);
        }
    }

    fn stored(&self, change: &Change, value: &Bytes) -> Option<Stored> {
        let mut in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((bytes, ..)) = in_flight.get(&change.key)
            && bytes.as_ptr() == value.as_ptr()
            && let Some((_, body, meta, clean)) = in_flight.remove(&change.key)
        {
            let stored = Stored::new(change.revision, body, meta);
            if clean > 0 {
                stored.remember(clean, None);
            }
            return Some(stored);
        }
        drop(in_flight);
        Stored::parse(change.revision, value)
    }

    fn tell(&self, key: &Key, event: &Event) {
        if let Some(observer) = self.observer.get() {
            observer(self, key, event);
        }
    }

    /// Tells of everything that is there after loading.
    fn tell_all(&self) {
        let collections: Vec<(Id, Arc<Collection>)> = {
            let collections = self.collections.lock().unwrap_or_else(PoisonError::into_inner);
            collections.iter().map(|(id, collection)| (id.clone(), collection.clone())).collect()
        };
        for ((group, plural), collection) in collections {
            for (path, object) in collection.latest().0 {
                let key = Key { group: group.clone(), plural: plural.clone(), path: path.clone() };
                let kind = super::EventKind::Added;
                let event = Event { revision: object.revision, kind, path, object, previous: None };
                self.tell(&key, &event);
            }
        }
    }

    /// The collection of a resource, made when it is first asked for.
    pub fn collection(&self, group: &Text, plural: &Text) -> Arc<Collection> {
        let mut collections = self.collections.lock().unwrap_or_else(PoisonError::into_inner);
        let since = *self.applied.borrow();
        collections.entry((group.clone(), plural.clone())).or_insert_with(|| Arc::new(Collection::new(since))).clone()
    }

    /// Everything up to this revision is visible.
    pub fn revision(&self) -> Revision {
        *self.applied.borrow()
    }

    /// Waits until `revision` is visible.
    pub async fn wait_for(&self, revision: Revision) {
        let mut applied = self.applied.subscribe();
        // the sender lives as long as self, so this ends only when the revision is reached
        let _ = applied.wait_for(|applied| *applied >= revision).await;
    }

    /// Writes an object and returns when the write is durable and visible. `expected` is the revision that it replaces;
    /// `clean` names the version program whose rendition these bytes are, 0 for none.
    pub async fn put(
        &self,
        key: &Key,
        body: Body,
        meta: Meta,
        expected: Option<Revision>,
        clean: u64,
    ) -> Result<Revision, Refused> {
        let bytes = body.bytes.clone();
        let place = key.to_bytes();
        let flight = (bytes.clone(), body, meta, clean);
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner).insert(place.clone(), flight);
        let expected = expected.map_or(Expected::Absent, Expected::At);
        let operation = if expected == Expected::Absent { "create" } else { "update" };
        let write = Write { key: place.clone(), expected, value: Some(bytes.clone()) };
        let result = self.commit(key, operation, write).await;
        let mut in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        if in_flight.get(&place).is_some_and(|(b, ..)| b.as_ptr() == bytes.as_ptr()) {
            in_flight.remove(&place);
        }
        result
    }

    /// Deletes an object that was last written at `expected`.
    pub async fn delete(&self, key: &Key, expected: Revision) -> Result<Revision, Refused> {
        let write = Write { key: key.to_bytes(), expected: Expected::At(expected), value: None };
        self.commit(key, "delete", write).await
    }

    async fn commit(&self, key: &Key, operation: &'static str, write: Write) -> Result<Revision, Refused> {
        let began = clock::instant();
        let result = self.store.commit(write).await;
        let operation = StoreOperation { operation, group: (&key.group).into(), resource: (&key.plural).into() };
        METRICS.wrote(&operation, began.elapsed(), result.is_err());
        match result {
            Ok(revision) => {
                self.wait_for(revision).await;
                Ok(revision)
            }
            Err(Refused::Conflict(Some(revision))) => {
                // whoever tries again must see what stood in the way
                self.wait_for(revision).await;
                Err(Refused::Conflict(Some(revision)))
            }
            refused => refused,
        }
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }
}
