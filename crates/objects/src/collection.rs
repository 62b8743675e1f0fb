//! The watch cache of one resource: a persistent ordered map of its objects, and a ring of the newest events.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use machinery::Text;
use parking_lot::Mutex;
use store::Revision;
use tokio::sync::Notify;

use super::budget::Share;
use super::event::{Event, EventKind};
use super::ring::Ring;
use super::state::{CollectionState, IndexKey, LabelIndex, Root};
use super::stored::Stored;
use crate::limits;

/// The part of a collection that a reader selects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    All,
    Namespace(Text),
    /// One object, by `namespace/name` or `name`.
    Path(Text),
}

impl Scope {
    pub fn contains(&self, path: &str) -> bool {
        match self {
            Scope::All => true,
            Scope::Namespace(namespace) => path.strip_prefix(namespace.as_str()).is_some_and(|p| p.starts_with('/')),
            Scope::Path(one) => one == path,
        }
    }

    /// The scopes that a change under `path` belongs to.
    fn of(path: &Text) -> [Option<Scope>; 3] {
        let namespace = path.split_once('/').map(|(namespace, _)| Scope::Namespace(namespace.into()));
        [Some(Scope::All), namespace, Some(Scope::Path(path.clone()))]
    }
}

/// The requested history is compacted; holds the oldest revision that a watch can start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    pub oldest: Revision,
}

struct Inner {
    state: CollectionState,
    /// The number of events of all changes.
    changes: usize,
    /// Whether an index is being built.
    is_indexing: bool,
    /// The newest change of this collection.
    revision: Revision,
    ring: Ring,
    wakers: HashMap<Scope, Arc<Notify>>,
    /// States at recently requested revisions, for the next pages of lists.
    past: VecDeque<(Revision, CollectionState)>,
    /// Number of objects in a scope after a path at a revision, for `remainingItemCount` of the next page.
    left: VecDeque<((Revision, Scope, Text), usize)>,
    /// Number of objects in a scope at a revision, if all of them are known to have a rendition in a version.
    surveyed: VecDeque<((Revision, Scope, u64), usize)>,
}

/// The live objects of one resource.
pub struct Collection {
    inner: Mutex<Inner>,
    largest_bytes: AtomicUsize,
}

impl Collection {
    /// An empty collection whose history is known from `since` on, with a share of its own.
    pub fn new(since: Revision) -> Collection {
        Collection::in_share(since, &Share::new())
    }

    /// An empty collection whose history is known from `since` on, and counts in a share.
    pub(super) fn in_share(since: Revision, share: &Arc<Share>) -> Collection {
        let inner = Inner {
            state: CollectionState::default(),
            changes: 0,
            is_indexing: false,
            revision: since,
            ring: Ring::new(since, share),
            wakers: HashMap::new(),
            past: VecDeque::new(),
            left: VecDeque::new(),
            surveyed: VecDeque::new(),
        };
        Collection { inner: Mutex::new(inner), largest_bytes: AtomicUsize::new(0) }
    }

    /// The size in bytes of the largest object that the collection has ever had.
    pub fn largest_bytes(&self) -> usize {
        self.largest_bytes.load(Ordering::Relaxed)
    }

    fn measure(&self, object: &Stored) {
        self.largest_bytes.fetch_max(object.body.bytes.len(), Ordering::Relaxed);
    }

    pub fn get(&self, path: &str) -> Option<Arc<Stored>> {
        self.inner.lock().state.root.get(path).cloned()
    }

    /// The newest objects and the revision of the newest change among them.
    pub fn latest(&self) -> (Root, Revision) {
        let inner = self.inner.lock();
        (inner.state.root.clone(), inner.revision)
    }

    /// The newest state and the revision of the newest change of it.
    pub fn state(&self) -> (CollectionState, Revision) {
        let inner = self.inner.lock();
        (inner.state.clone(), inner.revision)
    }

    /// Counts a list that would use an index. Returns whether it is to be built by [`Collection::index`].
    pub fn lacks_index(&self, key: &IndexKey) -> bool {
        let mut inner = self.inner.lock();
        let is_lacking = inner.state.lacks(key);
        is_lacking && !std::mem::replace(&mut inner.is_indexing, true)
    }

    /// Builds an index, which the states have from then on. Writes go on meanwhile; if they are more than the ring has, there is
    /// no index.
    pub fn index(&self, key: IndexKey) {
        let (root, before) = {
            let inner = self.inner.lock();
            (inner.state.root.clone(), inner.changes)
        };
        let mut index = LabelIndex::new(key, &root);
        let mut guard = self.inner.lock();
        let inner = &mut *guard;
        inner.is_indexing = false;
        let Some(later) = inner.ring.newest(inner.changes - before) else { return };
        for event in later {
            let object = Some(&event.object).filter(|_| event.kind != EventKind::Deleted);
            index.change(&event.path, event.previous.as_ref(), object);
        }
        inner.state.add(index);
    }

    /// The current objects of a namespace, in order of their names.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<Stored>> {
        let (root, _) = self.latest();
        // paths in a namespace begin with its name and a slash; "0" is the character after "/"
        let paths = Text::from(format!("{namespace}/"))..Text::from(format!("{namespace}0"));
        root.range(paths).map(|(_, stored)| stored.clone()).collect()
    }

    pub fn len(&self) -> usize {
        self.inner.lock().state.root.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects as they were at `revision`: the newest ones with the later events undone.
    pub fn at(&self, revision: Revision) -> Result<CollectionState, Expired> {
        let inner = self.inner.lock();
        inner.reaches(revision)?;
        if let Some((_, state)) = inner.past.iter().find(|(past, _)| *past == revision) {
            return Ok(state.clone());
        }
        let mut state = inner.state.clone();
        let later: Vec<Arc<Event>> = inner.ring.later_than(revision).rev().cloned().collect();
        drop(inner);
        let is_past = !later.is_empty();
        for event in later {
            state.change(&event.path, event.previous.as_ref());
        }
        if !is_past {
            return Ok(state);
        }
        let mut inner = self.inner.lock();
        let oldest = inner.ring.after();
        inner.past.retain(|(past, _)| *past >= oldest && *past != revision);
        inner.past.truncate(limits::LIST_ROOTS - 1);
        inner.past.push_front((revision, state.clone()));
        Ok(state)
    }

    /// The revision before the newest `changes`, or the oldest that is known.
    pub fn revision_before(&self, changes: usize) -> Revision {
        let inner = self.inner.lock();
        let first = inner.ring.newest(changes).and_then(|mut later| later.next().map(|event| event.revision - 1));
        first.unwrap_or(if changes == 0 { inner.revision } else { inner.ring.after() })
    }

    /// Number of objects in `scope` after `path` at `revision`, if it has been counted recently.
    pub fn left_after(&self, revision: Revision, scope: &Scope, path: &str) -> Option<usize> {
        let inner = self.inner.lock();
        let is_it = |(at, of, behind): &(Revision, Scope, Text)| *at == revision && of == scope && behind == path;
        inner.left.iter().find(|(key, _)| is_it(key)).map(|(_, left)| *left)
    }

    /// Number of objects in `scope` at `revision`, if all of them are known to have a rendition in a version.
    pub fn surveyed(&self, revision: Revision, scope: &Scope, version: u64) -> Option<usize> {
        let inner = self.inner.lock();
        let is_it = |(at, of, shown): &(Revision, Scope, u64)| *at == revision && of == scope && *shown == version;
        inner.surveyed.iter().find(|(key, _)| is_it(key)).map(|(_, count)| *count)
    }

    pub fn remember_survey(&self, revision: Revision, scope: Scope, version: u64, count: usize) {
        let mut inner = self.inner.lock();
        inner.surveyed.truncate(limits::LIST_ROOTS - 1);
        inner.surveyed.push_front(((revision, scope, version), count));
    }

    pub fn remember_left(&self, revision: Revision, scope: Scope, path: Text, left: usize) {
        let mut inner = self.inner.lock();
        inner.left.truncate(limits::LIST_POSITIONS - 1);
        inner.left.push_front(((revision, scope, path), left));
    }

    /// Inserts objects without events.
    pub fn load(&self, objects: Vec<(Text, Arc<Stored>)>) {
        objects.iter().for_each(|(_, object)| self.measure(object));
        let mut inner = self.inner.lock();
        for (path, object) in objects {
            inner.revision = inner.revision.max(object.revision);
            inner.state.change(&path, Some(&object));
        }
    }

    /// Begins with the objects of a state, without events.
    pub(super) fn load_state(&self, state: CollectionState) {
        let mut inner = self.inner.lock();
        for object in state.root.values() {
            self.measure(object);
            inner.revision = inner.revision.max(object.revision);
        }
        inner.state = state;
    }

    /// Inserts the events up to `start` before the events since the start; does nothing if some of the later events
    /// have been dropped already.
    pub(super) fn put_before(&self, start: Revision, earlier: Ring) {
        let mut inner = self.inner.lock();
        if inner.ring.after() == start {
            inner.ring.put_before(earlier);
        }
    }

    /// Applies the changes of one transaction and returns their events; `None` stands for a deletion. The deletion of an
    /// absent object causes no event.
    ///
    /// # Panics
    ///
    /// If the revision is older than the collection's: readers would see an older state after a newer one.
    pub fn apply(&self, revision: Revision, changes: Vec<(Text, Option<Arc<Stored>>)>) -> Vec<Arc<Event>> {
        changes.iter().filter_map(|(_, object)| object.as_ref()).for_each(|object| self.measure(object));
        let mut inner = self.inner.lock();
        assert!(revision >= inner.revision, "revision {revision} is applied after {}", inner.revision);
        let events: Vec<Arc<Event>> =
            changes.into_iter().filter_map(|(path, object)| inner.change(revision, path, object)).collect();
        inner.revision = revision;
        events.iter().for_each(|event| inner.ring.push(event.clone()));
        let scopes = events.iter().flat_map(|event| Scope::of(&event.path)).flatten();
        let wakers: Vec<Arc<Notify>> = scopes.filter_map(|scope| inner.wakers.get(&scope).cloned()).collect();
        drop(inner);
        wakers.iter().for_each(|waker| waker.notify_waiters());
        events
    }

    /// Replaces all objects; history is lost, so that watches have to start again. Returns the differences as events.
    pub fn replace(&self, revision: Revision, objects: Vec<(Text, Arc<Stored>)>) -> Vec<Arc<Event>> {
        objects.iter().for_each(|(_, object)| self.measure(object));
        let mut inner = self.inner.lock();
        let root: Root = objects.into_iter().collect();
        let gone: Vec<Text> = inner.state.root.keys().filter(|path| !root.contains_key(*path)).cloned().collect();
        let mut changes: Vec<(Text, Option<Arc<Stored>>)> = gone.into_iter().map(|path| (path, None)).collect();
        for (path, object) in root {
            if inner.state.root.get(&path).is_none_or(|known| known.revision != object.revision) {
                changes.push((path, Some(object)));
            }
        }
        let events = changes.into_iter().filter_map(|(path, object)| inner.change(revision, path, object)).collect();
        inner.revision = revision;
        inner.ring = inner.ring.anew(revision);
        inner.past.clear();
        inner.wakers.values().for_each(|waker| waker.notify_waiters());
        events
    }

    pub(super) fn oldest_event(&self) -> Option<Revision> {
        self.inner.lock().ring.oldest()
    }

    /// Drops events up to a revision while `more` returns true, and returns the revision of the oldest one that is left.
    pub(super) fn forget(&self, until: Revision, more: impl Fn() -> bool) -> Option<Revision> {
        let mut inner = self.inner.lock();
        let oldest = inner.ring.forget(until, more);
        let after = inner.ring.after();
        inner.past.retain(|(revision, _)| *revision >= after);
        oldest
    }

    /// A cursor after revision `after`; an error (410) if the ring has dropped events since then.
    pub fn subscribe(self: &Arc<Self>, scope: Scope, after: Revision) -> Result<Cursor, Expired> {
        let mut inner = self.inner.lock();
        inner.reaches(after)?;
        if inner.wakers.len() > limits::WAKERS_SWEEP {
            inner.wakers.retain(|_, waker| Arc::strong_count(waker) > 1);
        }
        let waker = inner.wakers.entry(scope.clone()).or_default().clone();
        drop(inner);
        Ok(Cursor { collection: self.clone(), scope, after, waker })
    }

    /// Events after `after` within `scope`, and the revision up to which they are complete.
    fn events(&self, scope: &Scope, after: Revision) -> Result<(Vec<Arc<Event>>, Revision), Expired> {
        let inner = self.inner.lock();
        inner.reaches(after)?;
        let mut events = vec![];
        for event in inner.ring.later_than(after) {
            // changes of one transaction are delivered together
            let full = events.len() >= limits::EVENTS_PER_BATCH;
            if let Some(last) = events.last().filter(|last: &&Arc<Event>| full && last.revision != event.revision) {
                let revision = last.revision;
                return Ok((events, revision));
            }
            if scope.contains(&event.path) {
                events.push(event.clone());
            }
        }
        Ok((events, inner.revision.max(after)))
    }
}

impl Inner {
    fn change(&mut self, revision: Revision, path: Text, object: Option<Arc<Stored>>) -> Option<Arc<Event>> {
        let previous = self.state.change(&path, object.as_ref());
        let (kind, object, previous) = match object {
            Some(object) => {
                let kind = if previous.is_some() { EventKind::Modified } else { EventKind::Added };
                (kind, object, previous)
            }
            None => {
                let previous = previous?;
                (EventKind::Deleted, Arc::new(previous.at(revision)), Some(previous))
            }
        };
        self.changes += 1;
        Some(Arc::new(Event { revision, kind, path, object, previous }))
    }

    fn reaches(&self, revision: Revision) -> Result<(), Expired> {
        let oldest = self.ring.after();
        if revision < oldest { Err(Expired { oldest }) } else { Ok(()) }
    }
}

/// The position of a watcher in the ring: a revision and a waker, no queue.
pub struct Cursor {
    collection: Arc<Collection>,
    scope: Scope,
    after: Revision,
    waker: Arc<Notify>,
}

/// The collection that a watcher follows, to find out whether it is behind.
#[derive(Clone)]
pub struct Position {
    collection: Arc<Collection>,
    scope: Scope,
}

impl Position {
    /// The number of events after a revision that a watcher would still take; those that the ring has dropped count as one.
    pub fn outstanding(&self, after: Revision) -> usize {
        let inner = self.collection.inner.lock();
        let dropped = usize::from(inner.reaches(after).is_err());
        dropped + inner.ring.later_than(after).filter(|event| self.scope.contains(&event.path)).count()
    }
}

impl Cursor {
    pub fn position(&self) -> Position {
        Position { collection: self.collection.clone(), scope: self.scope.clone() }
    }

    /// Revision up to which this cursor has delivered all events.
    pub fn after(&self) -> Revision {
        self.after
    }

    /// Whether there may be more events than were taken.
    pub fn is_behind(&self) -> bool {
        self.collection.inner.lock().revision > self.after
    }

    /// The events since the last call; empty if there are none.
    pub fn take(&mut self) -> Result<Vec<Arc<Event>>, Expired> {
        let (events, seen) = self.collection.events(&self.scope, self.after)?;
        self.after = seen;
        Ok(events)
    }

    /// The next events, at least one.
    pub async fn next(&mut self) -> Result<Vec<Arc<Event>>, Expired> {
        loop {
            let waker = self.waker.clone();
            let mut notified = std::pin::pin!(waker.notified());
            notified.as_mut().enable();
            let events = self.take()?;
            if !events.is_empty() {
                return Ok(events);
            }
            notified.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, Meta};
    use machinery::json;

    fn object(name: &str, revision: Revision) -> Arc<Stored> {
        let value = json!({"metadata": {"name": name}});
        Arc::new(Stored::new(revision, Body::encode(&value), Meta::of(&value)))
    }

    #[test]
    fn history_can_be_rolled_back() {
        let collection = Collection::new(0);
        collection.apply(1, vec![("a".into(), Some(object("a", 1)))]);
        collection.apply(2, vec![("b".into(), Some(object("b", 2)))]);
        collection.apply(3, vec![("a".into(), Some(object("a", 3)))]);
        collection.apply(4, vec![("b".into(), None)]);
        let paths = |revision| -> Vec<(String, u64)> {
            collection.at(revision).unwrap().root.iter().map(|(path, o)| (path.to_string(), o.revision)).collect()
        };
        assert_eq!(paths(0), []);
        assert_eq!(paths(2), [("a".to_owned(), 1), ("b".to_owned(), 2)]);
        assert_eq!(paths(4), [("a".to_owned(), 3)]);
    }

    #[test]
    fn indexes_belong_to_their_revision() {
        let labelled = |label: u64, revision| {
            let value = json!({"metadata": {"name": "x", "labels": {"a": (label.to_string())}}});
            Some(Arc::new(Stored::new(revision, Body::encode(&value), Meta::of(&value))))
        };
        let (collection, key) = (Collection::new(0), IndexKey::Value("a".into()));
        let apply = |revisions: std::ops::Range<u64>| {
            for revision in revisions {
                let object = if revision % 5 == 0 { None } else { labelled(revision % 3, revision) };
                collection.apply(revision, vec![(format!("n/{}", revision % 7).into(), object)]);
            }
        };
        apply(1..20);
        assert!(collection.lacks_index(&key) && !collection.lacks_index(&key), "one builds the index");
        collection.index(key.clone());
        assert!(!collection.lacks_index(&key));
        apply(20..23);
        for revision in [3, 12, 19, 20, 21, 22] {
            let state = collection.at(revision).unwrap();
            let mut new = CollectionState::default();
            new.add(LabelIndex::new(key.clone(), &state.root));
            let entries = |state: &CollectionState| -> Vec<(Text, Text, Revision)> {
                let objects = state.indexed(&key).into_iter().flatten();
                objects.map(|((value, path), object)| (value.clone(), path.clone(), object.revision)).collect()
            };
            // an index that is as old as the changes since then is dropped, as an unused one
            if state.indexed(&key).is_some() {
                assert_eq!(entries(&state), entries(&new), "{revision}");
            }
            assert_eq!(state.indexed(&key).is_some(), revision >= 19, "{revision}");
        }
    }

    #[tokio::test]
    async fn cursors_deliver_scoped_events_in_order() {
        let collection = Arc::new(Collection::new(0));
        let mut one = collection.subscribe(Scope::Path("n/a".into()), 0).unwrap();
        let mut namespace = collection.subscribe(Scope::Namespace("n".into()), 0).unwrap();
        for (revision, path) in [(1, "n/a"), (2, "m/a"), (3, "n/b"), (4, "n/a")] {
            collection.apply(revision, vec![(path.into(), Some(object("x", revision)))]);
        }
        let revisions = |events: Vec<Arc<Event>>| events.iter().map(|e| e.revision).collect::<Vec<_>>();
        assert_eq!(revisions(one.next().await.unwrap()), [1, 4]);
        assert_eq!(revisions(namespace.next().await.unwrap()), [1, 3, 4]);
        assert!(namespace.take().unwrap().is_empty());
        let waiting = base::task::spawn("waiting", async move { one.next().await.unwrap().len() });
        tokio::task::yield_now().await;
        collection.apply(5, vec![("n/a".into(), None)]);
        assert_eq!(waiting.await.unwrap(), 1);
    }

    #[test]
    fn revision_before_ring_is_expired() {
        let collection = Arc::new(Collection::new(0));
        for revision in 1..=(limits::RING_EVENTS_MAX as u64 + 10) {
            collection.apply(revision, vec![("a".into(), Some(object("a", revision)))]);
        }
        assert_eq!(collection.subscribe(Scope::All, 5).err(), Some(Expired { oldest: 10 }));
        assert!(collection.at(9).is_err() && collection.at(10).is_ok());
    }

    #[test]
    fn history_before_start_precedes_live_events() {
        let event = |revision, previous| {
            let (path, object) = (Text::from("a"), object("a", revision));
            Arc::new(Event { revision, kind: EventKind::Modified, path, object, previous: Some(previous) })
        };
        let before = || {
            let mut ring = Ring::new(3, &Share::new());
            [event(4, object("a", 3)), event(7, object("a", 4))].into_iter().for_each(|event| ring.push(event));
            ring
        };
        let collection = Arc::new(Collection::new(8));
        collection.load(vec![("a".into(), object("a", 7))]);
        collection.apply(9, vec![("a".into(), Some(object("a", 9)))]);
        assert_eq!(collection.subscribe(Scope::All, 7).err(), Some(Expired { oldest: 8 }));
        collection.put_before(8, before());
        let mut cursor = collection.subscribe(Scope::All, 4).unwrap();
        assert_eq!(cursor.take().unwrap().iter().map(|event| event.revision).collect::<Vec<_>>(), [7, 9]);
        assert_eq!([3, 5, 8].map(|at| collection.at(at).unwrap().root["a"].revision), [3, 4, 7]);
        assert_eq!(collection.subscribe(Scope::All, 2).err(), Some(Expired { oldest: 3 }));
        let replaced = Collection::new(8);
        replaced.replace(9, vec![]);
        replaced.put_before(8, before());
        assert_eq!(replaced.at(8).map(drop).err(), Some(Expired { oldest: 9 }));
    }

    #[tokio::test]
    async fn changes_of_one_transaction_are_delivered_together() {
        let collection = Arc::new(Collection::new(0));
        let mut cursor = collection.subscribe(Scope::All, 0).unwrap();
        let many = limits::EVENTS_PER_BATCH + 10;
        let changes = |revision| (0..many).map(|i| (Text::from(format!("{i}")), Some(object("x", revision)))).collect();
        collection.apply(7, changes(7));
        collection.apply(9, changes(9));
        for _ in 0..2 {
            assert_eq!(cursor.next().await.unwrap().len(), many);
        }
    }

    #[tokio::test]
    async fn watchers_of_replaced_collections_restart() {
        let collection = Arc::new(Collection::new(0));
        for (revision, name) in [(1, "a"), (2, "b"), (3, "c")] {
            collection.apply(revision, vec![(name.into(), Some(object(name, revision)))]);
        }
        let mut cursor = collection.subscribe(Scope::All, 3).unwrap();
        let now = [("b", 2), ("c", 8), ("d", 9)].map(|(name, revision)| (name.into(), object(name, revision)));
        let events = collection.replace(10, now.to_vec());
        let events: Vec<_> =
            events.iter().map(|event| (event.kind, event.path.as_str(), event.object.revision)).collect();
        let want = [(EventKind::Deleted, "a", 10), (EventKind::Modified, "c", 8), (EventKind::Added, "d", 9)];
        assert_eq!(events, want);
        assert_eq!(cursor.take().err(), Some(Expired { oldest: 10 }));
        assert_eq!((collection.latest().1, collection.len()), (10, 3));
        assert!(collection.subscribe(Scope::All, 10).is_ok());
    }
}
