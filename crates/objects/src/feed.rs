//! The feed: the task that applies the changes of the store to the watch cache. Also the path of writes to the store.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use base::metrics::{GroupResource, KindSeries, METRICS, StoreOperation};
use base::notice::Notices;
use base::{clock, task};
use bytes::Bytes;
use machinery::Text;
use parking_lot::Mutex;
use store::{Batch, Change, Changes, Entry, Expected, Refused, Revision, Snapshot, Store, StoreError, Write};
use tokio::sync::watch;

use super::budget::{self, Share};
use super::collection::Collection;
use super::event::Event;
use super::faults::Faults;
use super::frozen::{self, Frozen, Known};
use super::key::Key;
use super::layout::{Layout, Place, Storage};
use super::ring::Ring;
use super::stored::{Encoded, Meta, Stored};
use crate::limits;

pub(super) type Id = (Text, Text);
/// A change that was read: its key, and the object unless it was deleted.
type Read = (Key, Option<Arc<Stored>>);
/// Changes of a collection by path.
type Changed = Vec<(Text, Option<Arc<Stored>>)>;
/// The objects of a collection by path.
type Found = Vec<(Text, Arc<Stored>)>;

/// Treatment of values that cannot be decoded: at the start they are an error, later they are logged and skipped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unreadable {
    Refused,
    Logged,
}

/// Called with every event before its revision becomes visible, to keep state derived from objects up to date.
type Observer = Box<dyn Fn(&Objects, &Key, &Event) + Send + Sync>;

/// An object on its way from its writer to the feed.
struct InFlight {
    /// The bytes that the store holds.
    sealed: Bytes,
    object: Encoded,
    /// The mark of the layout, taken before the bytes were encoded.
    mark: u64,
}

/// All collections, and the store.
pub struct Objects {
    pub(super) store: Arc<dyn Store>,
    pub(super) layout: Layout,
    collections: Mutex<HashMap<Id, Arc<Collection>>>,
    /// The collection of namespaces, which almost every write reads.
    namespaces: OnceLock<Arc<Collection>>,
    /// Objects between their writers and the feed, so that bytes that were just encoded are not decoded again.
    in_flight: Mutex<HashMap<Bytes, InFlight>>,
    applied: watch::Sender<Revision>,
    /// The history after this revision is known.
    base: Mutex<Revision>,
    /// The history before this revision has not been read yet.
    pub(super) unread: watch::Sender<Revision>,
    observer: OnceLock<Observer>,
    /// The memory of events.
    pub(super) share: Arc<Share>,
    pub faults: Arc<Faults>,
    /// Which kinds have series of their own in metrics.
    pub series: KindSeries,
    /// Set when the warning about foreign keys has been logged.
    foreign_keys: OnceLock<()>,
    /// The task that follows the store.
    feed: OnceLock<tokio::task::AbortHandle>,
}

impl Drop for Objects {
    fn drop(&mut self) {
        self.feed.get().iter().for_each(|feed| feed.abort());
    }
}

impl Objects {
    /// Loads the store. `observer` is called for each existing object that it does not know, then for each event.
    pub async fn open(storage: Storage, known: Known, observer: Observer) -> Result<Arc<Objects>, StoreError> {
        Self::open_measured(storage, known, KindSeries::Each, observer).await
    }

    /// As [`Objects::open`], with the kinds that have series of their own.
    pub async fn open_measured(
        storage: Storage,
        known: Known,
        series: KindSeries,
        observer: Observer,
    ) -> Result<Arc<Objects>, StoreError> {
        let Storage { store, layout } = storage;
        let objects = Objects {
            store,
            layout,
            collections: Mutex::default(),
            namespaces: OnceLock::new(),
            in_flight: Mutex::default(),
            applied: watch::Sender::new(0),
            base: Mutex::new(0),
            unread: watch::Sender::new(0),
            observer: OnceLock::new(),
            share: Share::new(),
            faults: Arc::default(),
            series,
            foreign_keys: OnceLock::new(),
            feed: OnceLock::new(),
        };
        let start = match known.objects {
            Some(frozen) => objects.load_frozen(frozen).await?,
            None => objects.load().await?,
        };
        objects.unread.send_replace(start);
        objects.applied.send_replace(start);
        let _ = objects.observer.set(observer);
        objects.notify_all(known.observed);
        let objects = Arc::new(objects);
        let changes = objects.follow_store(start).await?;
        let following = base::task::spawn("feed", Self::follow(Arc::downgrade(&objects), changes));
        let _ = objects.feed.set(following.abort_handle());
        let faults = objects.faults.clone();
        base::task::spawn("feed supervisor", async move {
            if following.await.is_err_and(|error| error.is_panic()) {
                faults.lasting("the task that follows the store has panicked".to_owned());
            }
        });
        base::task::spawn("history", objects.clone().load_history(start));
        Ok(objects)
    }

    /// Reads the current state of the store and returns its revision.
    async fn load(&self) -> Result<Revision, StoreError> {
        let snapshot = self.store.snapshot().await?;
        let start = snapshot.revision;
        self.begin_at(start);
        for ((group, plural), found) in self.read_snapshot(snapshot, Unreadable::Refused)? {
            self.collection(&group, &plural).load(found);
        }
        Ok(start)
    }

    /// Begins with the objects of a fork, whose store has the same ones, instead of reading them from it.
    async fn load_frozen(&self, frozen: Frozen) -> Result<Revision, StoreError> {
        let start = self.store.head().await?;
        self.begin_at(start);
        for ((group, plural), state) in frozen.0 {
            self.collection(&group, &plural).load_state(state);
        }
        Ok(start)
    }

    /// The objects at a revision, once that is visible. `None` if the events since then are not known any more.
    pub async fn frozen_at(&self, revision: Revision) -> Option<Frozen> {
        self.wait_for(revision).await;
        let states = self.all().into_iter().map(|(id, collection)| Some((id, collection.at(revision).ok()?)));
        states.collect::<Option<_>>().map(Frozen)
    }

    /// The content of a store at an earlier revision, encoded as in the store. `None` if the events since then are not known any more,
    /// or a value cannot be sealed.
    pub fn snapshot_at(&self, revision: Revision) -> Option<Snapshot> {
        let mut entries = vec![];
        for ((group, plural), collection) in self.all() {
            for (path, stored) in &collection.at(revision).ok()?.root {
                let key = Key { group: group.clone(), plural: plural.clone(), path: path.clone() };
                let place = self.layout.place(&key);
                let value = self.layout.seal(&place, stored.body.bytes.clone()).ok()?;
                entries.push(Entry { key: place.bytes, value, revision: stored.revision });
            }
        }
        Some(Snapshot { revision, entries })
    }

    /// Records that the history is known from `since` on instead of `start`.
    pub(super) fn put_before(&self, since: Revision, start: Revision, mut rings: HashMap<Id, Ring>) {
        let collections = self.collections.lock();
        let mut base = self.base.lock();
        if *base == start {
            *base = since;
            for (id, collection) in collections.iter() {
                collection.put_before(start, rings.remove(id).unwrap_or_else(|| Ring::new(since, &self.share)));
            }
        }
    }

    /// Records that the history is known from a revision on.
    fn begin_at(&self, revision: Revision) {
        *self.base.lock() = revision;
    }

    /// Applies changes until the objects are dropped, which the task must not prevent.
    async fn follow(objects: Weak<Self>, mut changes: Box<dyn Changes>) {
        let mut pause = limits::FEED_RETRY;
        loop {
            let next = changes.next().await;
            let Some(objects) = objects.upgrade() else { return };
            match next {
                Ok(batch) => {
                    objects.follow_one(batch);
                    objects.faults.passed();
                    pause = limits::FEED_RETRY;
                }
                Err(error) => changes = objects.follow_again(error, &mut pause).await,
            }
        }
    }

    /// Resumes after an error, as soon as possible: after the last change, or with all objects read again if changes
    /// were lost.
    async fn follow_again(&self, mut error: StoreError, pause: &mut Duration) -> Box<dyn Changes> {
        loop {
            let followed = match error {
                StoreError::Compacted(revision) => {
                    tracing::warn!(
                        revision,
                        "changes of the store were compacted before they were read; reading all objects again"
                    );
                    self.reload().await
                }
                error => {
                    tracing::error!(%error, "cannot read changes of the store; retrying");
                    self.faults.passing(format!("changes of the store cannot be read: {error}"));
                    tokio::time::sleep(*pause).await;
                    *pause = (*pause * 2).min(limits::FEED_RETRY_MAX);
                    self.follow_store(self.revision()).await
                }
            };
            match followed {
                Ok(changes) => return changes,
                Err(next) => error = next,
            }
        }
    }

    fn follow_one(&self, batch: Batch) {
        let mut changes = batch.changes.as_slice();
        while let Some(first) = changes.first() {
            let together = changes.iter().take_while(|change| change.revision == first.revision).count();
            let mut read = vec![];
            for change in &changes[..together] {
                match self.read(change) {
                    Ok(found) => read.extend(found),
                    Err(error) => tracing::error!(%error, "a change of the store cannot be read"),
                }
            }
            self.take(first.revision, read);
            changes = &changes[together..];
        }
        debug_assert!(batch.revision >= *self.applied.borrow(), "clients have seen a later revision");
        self.applied.send_replace(batch.revision);
    }

    /// Reads all objects again, since changes were lost; watches have to start again too.
    async fn reload(&self) -> Result<Box<dyn Changes>, StoreError> {
        let snapshot = self.store.snapshot().await?;
        let revision = snapshot.revision;
        let mut found = self.read_snapshot(snapshot, Unreadable::Logged)?;
        self.begin_at(revision);
        found.keys().for_each(|(group, plural)| drop(self.collection(group, plural)));
        for (id, collection) in self.all() {
            for event in collection.replace(revision, found.remove(&id).unwrap_or_default()) {
                let (group, plural) = id.clone();
                self.notify(&Key { group, plural, path: event.path.clone() }, &event);
            }
        }
        self.applied.send_replace(revision);
        self.follow_store(revision).await
    }

    /// A reader whose changes are applied before their writers learn of them, if the store can arrange it.
    async fn follow_store(&self, after: Revision) -> Result<Box<dyn Changes>, StoreError> {
        let mut changes = self.store.follow(after).await?;
        changes.precede_writers();
        Ok(changes)
    }

    /// The objects of a snapshot. Foreign keys of a shared store are ignored.
    fn read_snapshot(&self, snapshot: Snapshot, unreadable: Unreadable) -> Result<HashMap<Id, Found>, StoreError> {
        let mut found: HashMap<Id, Found> = HashMap::new();
        for read in on_all_cores(&snapshot.entries, |entry| self.read_entry(entry)) {
            match read {
                Ok(Some((Key { group, plural, path }, stored))) => {
                    found.entry((group, plural)).or_default().push((path, stored));
                }
                Ok(None) => {}
                Err(error) if unreadable == Unreadable::Logged => {
                    tracing::error!(%error, "an object of the store cannot be read");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    fn read_entry(&self, entry: &Entry) -> Result<Option<(Key, Arc<Stored>)>, StoreError> {
        let Some(place) = self.layout.find(&entry.key) else {
            return self.ignore_foreign(&entry.key).map(|()| None);
        };
        let stored = self.stored(&place, entry.revision, &entry.value)?;
        Ok(Some((place.key, Arc::new(stored))))
    }

    fn ignore_foreign(&self, key: &Bytes) -> Result<(), StoreError> {
        let shown = key.escape_ascii();
        if !self.store.is_shared() {
            return Err(StoreError::Corrupt(format!("{shown} is not the key of an object")));
        }
        if self.foreign_keys.set(()).is_ok() {
            tracing::warn!("the store has keys of other programs, such as {shown}, which are ignored");
        }
        Ok(())
    }

    /// The object of a change; `None` for a foreign key.
    fn read(&self, change: &Change) -> Result<Option<Read>, StoreError> {
        let Some(place) = self.layout.find(&change.key) else {
            return self.ignore_foreign(&change.key).map(|()| None);
        };
        let object = match &change.value {
            None => None,
            Some(value) => Some(Arc::new(self.stored(&place, change.revision, value)?)),
        };
        Ok(Some((place.key, object)))
    }

    /// Applies the changes of one transaction.
    fn take(&self, revision: Revision, changes: Vec<Read>) {
        let mut by_collection: Vec<(Id, Changed)> = vec![];
        for (Key { group, plural, path }, object) in changes {
            let id = (group, plural);
            match by_collection.iter_mut().find(|(known, _)| *known == id) {
                Some((_, changes)) => changes.push((path, object)),
                None => by_collection.push((id, vec![(path, object)])),
            }
        }
        for ((group, plural), changes) in by_collection {
            let of = self.series.of(&group, &plural);
            for event in self.collection(&group, &plural).apply(revision, changes) {
                METRICS.reads.events_received.get_or_create(&of).inc();
                budget::count_written(event.object.body.bytes.len() as u64);
                let path = event.path.clone();
                self.notify(&Key { group: group.clone(), plural: plural.clone(), path }, &event);
            }
        }
        self.keep_share();
    }

    /// Drops the oldest events, of all collections, while the API has more than its share.
    pub fn keep_share(&self) {
        let Some(bytes) = self.share.excess() else { return };
        let collections: Vec<_> = self.all().into_iter().map(|(_, collection)| collection).collect();
        let oldest = |(at, collection): (usize, &Arc<Collection>)| Some(Reverse((collection.oldest_event()?, at)));
        let mut waiting: BinaryHeap<_> = collections.iter().enumerate().filter_map(oldest).collect();
        let more = || self.share.exceeds(bytes);
        while more() {
            let Some(Reverse((_, at))) = waiting.pop() else { return };
            // up to the oldest event of another collection
            let until = waiting.peek().map_or(Revision::MAX, |Reverse((next, _))| *next);
            waiting.extend(collections[at].forget(until, more).map(|next| Reverse((next, at))));
        }
    }

    /// Drops events up to a revision.
    pub fn forget(&self, until: Revision) {
        self.all().iter().for_each(|(_, collection)| _ = collection.forget(until, || true));
    }

    /// Limits the memory of events of this API, besides the budget of the process.
    pub fn limit_history(&self, bytes: Option<u64>) {
        self.share.limit_to(bytes);
        self.keep_share();
    }

    fn stored(&self, place: &Place, revision: Revision, value: &Bytes) -> Result<Stored, StoreError> {
        let mut in_flight = self.in_flight.lock();
        if let Some(written) = in_flight.get(&place.bytes)
            && written.sealed == value
            && let Some(InFlight { object, mark, .. }) = in_flight.remove(&place.bytes)
        {
            let mut stored = Stored::new(revision, object.body, object.meta);
            stored.mark = mark;
            if let Some(version) = object.shown_in {
                stored.remember(version, None);
            }
            return Ok(stored);
        }
        drop(in_flight);
        self.opened(place, revision, value)
    }

    pub(super) fn opened(&self, place: &Place, revision: Revision, value: &Bytes) -> Result<Stored, StoreError> {
        let unreadable = |why: &str| {
            let key = place.bytes.escape_ascii();
            StoreError::Corrupt(format!("the value of {key} cannot be read, and is left as it is: {why}"))
        };
        // taken first: if the layout changes meanwhile, the object counts as stale
        let mark = self.layout.mark(&place.key);
        let opened = self.layout.open(place, value.clone()).map_err(|why| unreadable(&why))?;
        let mut stored = Stored::parse(revision, &opened.value).ok_or_else(|| unreadable("it has no metadata"))?;
        (stored.stale, stored.mark) = (opened.stale, mark);
        let Meta { namespace, name, .. } = &stored.meta;
        let named = Key::new(&place.key.group, &place.key.plural, namespace, name);
        if named == place.key { Ok(stored) } else { Err(unreadable(&format!("it is the object {}", named.path))) }
    }

    fn notify(&self, key: &Key, event: &Event) {
        let Some(observer) = self.observer.get() else { return };
        // a panic of the observer must not keep later events from readers
        let notified = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| observer(self, key, event)));
        if notified.is_err() {
            self.faults.lasting(format!("an observer has panicked at {}/{} {}", key.group, key.plural, key.path));
        }
    }

    fn all(&self) -> Vec<(Id, Arc<Collection>)> {
        let collections = self.collections.lock();
        collections.iter().map(|(id, collection)| (id.clone(), collection.clone())).collect()
    }

    /// Notifies the observer after loading, of all objects or of what differs from those that it knows.
    fn notify_all(&self, observed: Option<Frozen>) {
        let observed = observed.unwrap_or(Frozen(HashMap::new()));
        for (id, collection) in self.all() {
            for event in frozen::events_between(&observed.root(&id), &collection.latest().0) {
                let (group, plural) = id.clone();
                self.notify(&Key { group, plural, path: event.path.clone() }, &event);
            }
        }
    }

    /// The collection of a resource; created on first use.
    pub fn collection(&self, group: &Text, plural: &Text) -> Arc<Collection> {
        let mut collections = self.collections.lock();
        let since = *self.base.lock();
        collections
            .entry((group.clone(), plural.clone()))
            .or_insert_with(|| Arc::new(Collection::in_share(since, &self.share)))
            .clone()
    }

    /// The number of all objects.
    pub fn count(&self) -> usize {
        self.collections.lock().values().map(|collection| collection.len()).sum()
    }

    /// The bytes of all objects, which are counted by visiting each.
    pub fn bytes(&self) -> u64 {
        let collections = self.all().into_iter().map(|(_, collection)| collection.latest().0);
        collections.map(|root| root.values().map(|stored| stored.body.bytes.len() as u64).sum::<u64>()).sum()
    }

    pub fn namespaces(&self) -> &Arc<Collection> {
        self.namespaces.get_or_init(|| self.collection(&Text::new_static(""), &Text::new_static("namespaces")))
    }

    /// The revision up to which all changes are visible.
    pub fn revision(&self) -> Revision {
        *self.applied.borrow()
    }

    /// Waits until `revision` is visible.
    pub async fn wait_for(&self, revision: Revision) {
        let mut applied = self.applied.subscribe();
        // the sender lives as long as self, so this ends only when the revision is reached
        let _ = applied.wait_for(|applied| *applied >= revision).await;
    }

    /// Whether the stored bytes of an object would be encoded differently now, so that a write without changes is made.
    pub fn is_stale(&self, key: &Key, stored: &Stored) -> bool {
        stored.stale || stored.mark != self.layout.mark(key)
    }

    /// Whether the services that the layout depends on are healthy; `None` if it depends on none.
    pub fn layout_health(&self) -> Option<Result<(), String>> {
        self.layout.health()
    }

    /// Waits until all earlier writes of all servers are visible.
    pub async fn catch_up(&self) -> Result<(), StoreError> {
        if self.store.is_shared() { self.reach_head().await } else { Ok(()) }
    }

    async fn reach_head(&self) -> Result<(), StoreError> {
        let head = self.store.head().await?;
        let behind = |_| StoreError::Unavailable(format!("its changes up to revision {head} have not arrived"));
        tokio::time::timeout(limits::CATCH_UP, self.wait_for(head)).await.map_err(behind)
    }

    /// Writes an object and returns when the write is durable and visible. `expected` is the revision that it replaces.
    /// A caller that stops waiting does not stop the write.
    pub async fn put(
        self: &Arc<Self>,
        key: &Key,
        object: Encoded,
        expected: Option<Revision>,
    ) -> Result<Revision, Refused> {
        let place = self.layout.place(key);
        let mark = self.layout.mark(key);
        let sealed = self.layout.seal(&place, object.body.bytes.clone());
        let sealed = sealed.map_err(|why| Refused::Failed(StoreError::Unavailable(why)))?;
        let written = self.in_flight(&place, sealed.clone(), object, mark).map_err(Refused::Failed)?;
        let place = place.bytes;
        self.in_flight.lock().insert(place.clone(), written);
        let expected = expected.map_or(Expected::Absent, Expected::At);
        let operation = if expected == Expected::Absent { "create" } else { "update" };
        let write = Write { key: place.clone(), expected, value: Some(sealed.clone()) };
        let objects = self.clone();
        let landed = move || {
            let mut in_flight = objects.in_flight.lock();
            if in_flight.get(&place).is_some_and(|written| written.sealed.as_ptr() == sealed.as_ptr()) {
                in_flight.remove(&place);
            }
        };
        self.commit(key, operation, write, landed).await
    }

    /// The object as other readers of the store decode it.
    fn in_flight(&self, place: &Place, sealed: Bytes, object: Encoded, mark: u64) -> Result<InFlight, StoreError> {
        if sealed == object.body.bytes {
            return Ok(InFlight { sealed, object, mark });
        }
        let stored = self.opened(place, 0, &sealed)?;
        if stored.body.bytes == object.body.bytes {
            return Ok(InFlight { sealed, object, mark });
        }
        Ok(InFlight { sealed, object: Encoded { body: stored.body, meta: stored.meta, shown_in: None }, mark })
    }

    /// Deletes an object that was last written at `expected`. A caller that stops waiting does not stop the deletion.
    pub async fn delete(self: &Arc<Self>, key: &Key, expected: Revision) -> Result<Revision, Refused> {
        let write = Write { key: self.layout.place(key).bytes, expected: Expected::At(expected), value: None };
        self.commit(key, "delete", write, || {}).await
    }

    /// Commits a write. It completes, and is measured, even if the request that waits for it is dropped. `landed` runs when the
    /// write is visible or refused.
    async fn commit(
        self: &Arc<Self>,
        key: &Key,
        operation: &'static str,
        write: Write,
        landed: impl FnOnce() + Send + 'static,
    ) -> Result<Revision, Refused> {
        let objects = self.clone();
        let GroupResource { group, resource } = self.series.of(&key.group, &key.plural);
        let operation = StoreOperation { operation, group, resource };
        let committing = async move {
            let began = clock::instant();
            let result = objects.store.commit(write).await;
            let took = began.elapsed();
            METRICS.wrote(&operation, took, result.is_err());
            report(&result, took);
            let result = objects.visible(result).await;
            landed();
            result
        };
        task::finish("commit", committing).await
    }

    /// Waits until the result of a commit is visible: the new object, or the one that it conflicts with.
    async fn visible(&self, result: Result<Revision, Refused>) -> Result<Revision, Refused> {
        match result {
            Ok(revision) | Err(Refused::Conflict(Some(revision))) => self.wait_for(revision).await,
            Err(Refused::Conflict(None)) => self.reach_head().await.map_err(Refused::Failed)?,
            Err(Refused::Failed(_)) => {}
        }
        result
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }
}

/// Logs a commit that failed or was slow, since operators do not see the responses to clients.
fn report(result: &Result<Revision, Refused>, took: Duration) {
    static FAILED: Notices = Notices::new();
    static SLOW: Notices = Notices::new();
    if let Err(Refused::Failed(error)) = result {
        METRICS.failed_commits.inc();
        if let Some(more) = FAILED.due("") {
            tracing::error!(%error, more, "a write cannot be committed");
        }
    } else if took >= limits::SLOW_COMMIT
        && let Some(more) = SLOW.due("")
    {
        tracing::warn!(seconds = took.as_secs_f64(), more, "a commit was slow: the disk, or etcd, is busy");
    }
}

/// Maps items on all cores and returns the results in order; most of a start is spent here.
fn on_all_cores<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (work, mut parts) = (&work, items.chunks(items.len().div_ceil(cores).max(limits::ITEMS_PER_CORE_MIN)));
    let here = parts.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let start = |part| {
            let builder = std::thread::Builder::new().stack_size(base::limits::WORKER_STACK_BYTES);
            (part, builder.spawn_scoped(scope, move || <[T]>::iter(part).map(work).collect::<Vec<_>>()))
        };
        let running: Vec<_> = parts.map(start).collect();
        let mut all: Vec<R> = here.iter().map(work).collect();
        for (part, thread) in running {
            // without a thread, or after its panic, this thread takes over
            let done = thread.ok().and_then(|thread| thread.join().ok());
            all.extend(done.unwrap_or_else(|| part.iter().map(work).collect()));
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use machinery::json;
    use store::{BoxFuture, Memory};

    use super::*;

    /// A store whose followers fail a few times before they deliver changes.
    struct Flaky {
        store: Memory,
        failures: Arc<AtomicUsize>,
    }

    struct FlakyChanges {
        changes: Box<dyn Changes>,
        failures: Arc<AtomicUsize>,
    }

    impl Changes for FlakyChanges {
        fn next(&mut self) -> BoxFuture<'_, Result<Batch, StoreError>> {
            let left = self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            match left {
                Ok(_) => Box::pin(async { Err(StoreError::Unavailable("too many open files".to_owned())) }),
                Err(_) => self.changes.next(),
            }
        }
    }

    impl Store for Flaky {
        fn commit(&self, write: Write) -> BoxFuture<'_, Result<Revision, Refused>> {
            self.store.commit(write)
        }

        fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
            self.store.snapshot()
        }

        fn history(&self, revisions: u64) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
            self.store.history(revisions)
        }

        fn follow(&self, after: Revision) -> BoxFuture<'_, Result<Box<dyn Changes>, StoreError>> {
            Box::pin(async move {
                let changes = self.store.follow(after).await?;
                Ok(Box::new(FlakyChanges { changes, failures: self.failures.clone() }) as Box<dyn Changes>)
            })
        }

        fn head(&self) -> BoxFuture<'_, Result<Revision, StoreError>> {
            self.store.head()
        }

        fn compact(&self, before: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
            self.store.compact(before)
        }
    }

    async fn put(objects: &Arc<Objects>, name: &str) -> Revision {
        let object = json!({"metadata": {"name": (name.to_owned())}});
        let key = Key::new(&"g".into(), &"things".into(), "", name);
        objects.put(&key, Encoded::of(&object), None).await.unwrap()
    }

    #[tokio::test]
    async fn feed_resumes_after_errors() {
        let failures = Arc::new(AtomicUsize::new(2));
        let store = Flaky { store: Memory::default(), failures: failures.clone() };
        let objects =
            Objects::open(Storage::own(Arc::new(store)), Default::default(), Box::new(|_, _, _| {})).await.unwrap();
        while objects.faults.now().is_ok() {
            tokio::task::yield_now().await;
        }
        // ends when the change has come back
        put(&objects, "a").await;
        assert_eq!((failures.load(Ordering::Relaxed), objects.faults.now()), (0, Ok(())));
        assert_eq!(objects.collection(&"g".into(), &"things".into()).len(), 1);
    }

    #[tokio::test]
    async fn history_that_is_read_after_the_first_writes_changes_nothing() {
        let storage = Storage::own(Arc::new(Memory::default()));
        let objects = Objects::open(storage, Default::default(), Box::new(|_, _, _| {})).await.unwrap();
        let first = put(&objects, "a").await;
        put(&objects, "b").await;
        objects.clone().load_history(0).await;
        put(&objects, "c").await;
        let collection = objects.collection(&"g".into(), &"things".into());
        assert_eq!((collection.len(), collection.at(first).unwrap().root.len()), (3, 1));
        assert_eq!(objects.faults.now(), Ok(()));
    }

    /// The oldest events go first, of whichever collection, and a collection without old events keeps its history.
    #[tokio::test]
    async fn events_are_kept_within_the_share() {
        let storage = Storage::own(Arc::new(Memory::default()));
        let objects = Objects::open(storage, Default::default(), Box::new(|_, _, _| {})).await.unwrap();
        let put = async |plural: &str, name: &str| {
            let object = json!({"metadata": {"name": (name.to_owned())}, "text": ("x".repeat(100_000))});
            let key = Key::new(&"g".into(), &plural.into(), "", name);
            objects.put(&key, Encoded::of(&object), None).await.unwrap()
        };
        let first = put("old", "a").await;
        objects.collection(&"g".into(), &"quiet".into());
        for i in 0..100 {
            put(["old", "busy"][i % 2], &i.to_string()).await;
        }
        let last = put("young", "a").await;
        let reaches = |plural: &str, after| objects.collection(&"g".into(), &plural.into()).at(after).is_ok();
        assert!(reaches("old", first));
        objects.limit_history(Some(4_000_000));
        assert!(!objects.share.exceeds(4_000_000) && objects.share.exceeds(3_000_000));
        let want = [("old", false), ("busy", false), ("quiet", true), ("young", true)];
        assert_eq!(want.map(|(plural, _)| (plural, reaches(plural, first))), want);
        assert!(["old", "busy"].iter().all(|plural| reaches(plural, last - 20)));
        objects.limit_history(Some(0));
        assert!(reaches("young", last - 1) && reaches("busy", last - limits::HISTORY_EVENTS_MIN / 2));
        objects.forget(last);
        assert!(!objects.share.exceeds(0) && !reaches("young", last - 1) && reaches("young", last));
    }

    #[tokio::test]
    async fn feed_survives_panicking_observer() {
        let observer: Observer = Box::new(|_, key, _| assert!(key.path != "bad", "an observer panics"));
        let storage = Storage::own(Arc::new(Memory::default()));
        let objects = Objects::open(storage, Default::default(), observer).await.unwrap();
        put(&objects, "good").await;
        assert_eq!(objects.faults.now(), Ok(()));
        put(&objects, "bad").await;
        put(&objects, "later").await;
        assert_eq!(objects.collection(&"g".into(), &"things".into()).len(), 3);
        let why = objects.faults.lasted(std::time::Duration::ZERO, crate::FaultKind::Final).unwrap();
        assert!(why.contains("g/things bad"), "{why}");
    }
}
