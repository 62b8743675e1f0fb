//! The objects of a list. They are read from a snapshot while they are sent. Lists share the memory of snapshots, so
//! a list needs little memory, however many objects it has and however slowly its client reads.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use machinery::{Result, Status, Text};
use objects::{Indexed, Root, Scope, Stored};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::request::Request;
use super::response::ResponseObject;
use super::selection::Selection;
use crate::limits;

/// Iterates over the objects of a snapshot in the order of their paths.
#[derive(Clone)]
pub struct Scan {
    root: Root,
    /// If set, only objects that have one of these values in the index are visited.
    index: Option<(Indexed, Vec<Text>)>,
    /// Whether the next object is the first one of the scope.
    at_start: bool,
    /// The lower bound of the remaining paths.
    from: Bound<Text>,
    /// The upper bound of the paths of the scope.
    until: Bound<Text>,
}

impl Scan {
    /// Visits the objects within `scope` that come after the path `after`.
    pub fn new(root: Root, scope: &Scope, after: Option<&str>) -> Scan {
        let from = match (scope, after) {
            (Scope::Path(path), Some(after)) if path.as_str() <= after => Bound::Excluded(path.clone()),
            (Scope::Path(path), _) => Bound::Included(path.clone()),
            (_, Some(after)) => Bound::Excluded(after.into()),
            (Scope::Namespace(namespace), None) => Bound::Included(format!("{namespace}/").into()),
            (Scope::All, None) => Bound::Unbounded,
        };
        let until = match scope {
            Scope::Path(path) => Bound::Included(path.clone()),
            // "0" is the character after "/", so this is the upper bound of the paths in the namespace
            Scope::Namespace(namespace) => Bound::Excluded(format!("{namespace}0").into()),
            Scope::All => Bound::Unbounded,
        };
        Scan { root, index: None, at_start: after.is_none(), from, until }
    }

    /// The same scan, restricted to objects that have one of these values in an index. The index must be of the same
    /// state.
    pub fn with_index(&self, index: Indexed, values: Vec<Text>) -> Scan {
        Scan { index: Some((index, values)), ..self.clone() }
    }

    /// Visits the next objects, at most `count`, until `visit` returns false. Returns the number of visited objects.
    pub fn each<E>(
        &mut self,
        count: usize,
        mut visit: impl FnMut(&Arc<Stored>) -> Result<bool, E>,
    ) -> Result<usize, E> {
        // collected before they are visited, so that the CPU can load several objects from memory at once
        let batch = self.next(count);
        let mut visited = 0;
        for (_, stored) in &batch {
            visited += 1;
            if !visit(stored)? {
                break;
            }
        }
        if let Some((last, _)) = batch[..visited].last() {
            self.from = Bound::Excluded((*last).clone());
            self.at_start = false;
        }
        Ok(visited)
    }

    /// Returns the next objects, at most `count`, without advancing.
    pub fn ahead(&self, count: usize) -> impl Iterator<Item = &Arc<Stored>> {
        self.next(count).into_iter().map(|(_, stored)| stored)
    }

    /// The paths and objects that are visited next, at most `count`.
    fn next(&self, count: usize) -> Vec<(&Text, &Arc<Stored>)> {
        let Some((index, values)) = &self.index else { return self.rest().take(count).collect() };
        let mut by_value: Vec<_> = values.iter().map(|value| self.rest_of(index, value).peekable()).collect();
        let first = || {
            let firsts = by_value.iter_mut().filter_map(|rest| Some((rest.peek()?.0, rest)));
            firsts.min_by_key(|(path, _)| *path)?.1.next()
        };
        std::iter::from_fn(first).take(count).collect()
    }

    /// The remaining objects that have this value in the index.
    fn rest_of<'a>(&self, index: &'a Indexed, value: &Text) -> impl Iterator<Item = (&'a Text, &'a Arc<Stored>)> {
        let at = |path: Text| (value.clone(), path);
        let from = match self.from.clone() {
            Bound::Unbounded => Bound::Included(at(Text::default())),
            from => from.map(at),
        };
        let until = match self.until.clone() {
            // the upper bound is the smallest text after the value
            Bound::Unbounded => Bound::Excluded((format!("{value}\0").into(), Text::default())),
            until => until.map(at),
        };
        index.range((from, until)).map(|((_, path), stored)| (path, stored))
    }

    pub fn is_at_start(&self) -> bool {
        self.at_start
    }

    /// Whether no objects remain, including those that the index would skip: a page has to end as it does without an
    /// index.
    pub fn is_at_end(&self) -> bool {
        self.rest().next().is_none()
    }

    /// The remaining objects. The index is ignored.
    fn rest(&self) -> impl Iterator<Item = (&Text, &Arc<Stored>)> {
        let range: (Bound<&Text>, Bound<&Text>) = (self.from.as_ref(), self.until.as_ref());
        self.root.range::<_, Text>(range)
    }

    /// The number of remaining objects.
    pub fn count(&self) -> usize {
        match (&self.from, &self.until) {
            (Bound::Unbounded, Bound::Unbounded) => self.root.len(),
            _ => self.rest().count(),
        }
    }
}

/// Held by a long scan during each batch after its first. So only one long scan computes at a time, and the other
/// workers serve short requests.
static TURN: Semaphore = Semaphore::const_new(1);

/// Lets other tasks run in the middle of a long scan.
#[derive(Default)]
pub struct Pace(Option<SemaphorePermit<'static>>);

impl Pace {
    /// Lets other tasks run, then waits for the turn of this scan, in order of arrival. Called after each batch.
    pub async fn next(&mut self) {
        self.0 = None;
        tokio::task::yield_now().await;
        self.0 = TURN.acquire().await.ok();
    }
}

#[derive(Clone)]
enum ItemSource {
    /// Objects that are few, or do not come from a snapshot.
    ResponseObject(VecDeque<ResponseObject>),
    Snapshot {
        scan: Box<Scan>,
        selection: Box<Selection>,
    },
}

/// The objects of a list.
#[derive(Clone)]
pub struct Items {
    source: ItemSource,
    left: usize,
}

impl Items {
    pub fn shown(items: Vec<ResponseObject>) -> Items {
        Items { left: items.len(), source: ItemSource::ResponseObject(items.into()) }
    }

    /// The first `count` selected objects of a scan.
    pub fn selected(scan: Scan, selection: Selection, count: usize) -> Items {
        Items { left: count, source: ItemSource::Snapshot { scan: Box::new(scan), selection: Box::new(selection) } }
    }

    /// The size of the remaining objects as JSON, in bytes; `None` if they have not been selected yet.
    pub fn bytes(&self) -> Option<usize> {
        match &self.source {
            ItemSource::ResponseObject(items) => Some(items.iter().map(ResponseObject::stored_bytes).sum()),
            ItemSource::Snapshot { .. } => None,
        }
    }

    /// The number of remaining objects.
    pub fn len(&self) -> usize {
        self.left
    }

    /// The next batch of objects; empty at the end.
    pub async fn next(&mut self, request: &Request) -> Result<Vec<ResponseObject>> {
        let found = match &mut self.source {
            ItemSource::ResponseObject(items) => items.drain(..items.len().min(limits::LIST_BATCH)).collect(),
            ItemSource::Snapshot { scan, selection } => next_selected(scan, selection, self.left, request).await?,
        };
        self.left = if found.is_empty() { 0 } else { self.left.saturating_sub(found.len()) };
        Ok(found)
    }
}

/// The next batch of selected objects of a scan, at most `left`; empty at its end.
async fn next_selected(
    scan: &mut Scan,
    selection: &Selection,
    left: usize,
    request: &Request,
) -> Result<Vec<ResponseObject>> {
    let mut found = vec![];
    let batch = selection.batch(limits::LIST_BATCH);
    while found.is_empty() && left > 0 {
        // the objects were converted before the list began, but the results may have been evicted since
        selection.convert_ahead(request, scan, batch, left).await?;
        let visited = scan.each(batch, |stored| {
            if selection.matches(request, stored)? {
                found.push(ResponseObject::stored(&request.resource, &request.version, stored.clone())?);
            }
            Ok::<_, Status>(found.len() < left)
        })?;
        if visited == 0 {
            break;
        }
        if found.is_empty() {
            tokio::task::yield_now().await;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use machinery::json;
    use objects::{Body, Collection, IndexKey, Meta};

    use super::*;

    /// The paths that a scan visits in batches of two, and whether it is at its end after each batch.
    fn visited(mut scan: Scan) -> Vec<(String, bool)> {
        let mut all = vec![];
        loop {
            let mut batch = vec![];
            let count = scan.each(2, |stored| {
                batch.push(format!("{}/{}", stored.meta.namespace, stored.meta.name));
                Ok::<_, ()>(true)
            });
            if count == Ok(0) {
                return all;
            }
            all.push((batch.join(" "), scan.is_at_end()));
        }
    }

    #[test]
    fn indexes_keep_order_and_ends() {
        let collection = Collection::new(0);
        for (revision, path) in (1..).zip(["m/a", "n/a", "n/b", "n/c", "n/d", "n/e", "o/a"]) {
            let (namespace, name) = path.split_once('/').unwrap();
            let labels = json!({"l": (["x", "y", "", "xx"][revision as usize % 4])});
            let value = json!({"metadata": {"name": name, "namespace": namespace, "labels": labels}});
            let stored = Arc::new(Stored::new(revision, Body::encode(&value), Meta::of(&value)));
            collection.apply(revision, vec![(path.into(), Some(stored))]);
        }
        // m/a y, n/a "", n/b xx, n/c x, n/d y, n/e "", o/a xx
        let [all, n] = [Scope::All, Scope::Namespace("n".into())];
        let cases = [
            (&all, None, &["y"][..], vec![("m/a n/d", false)]),
            (&all, None, &["x"], vec![("n/c", false)]),
            (&all, None, &["xx", "y"], vec![("m/a n/b", false), ("n/d o/a", true)]),
            (&all, Some("n/b"), &["xx", "y"], vec![("n/d o/a", true)]),
            (&n, None, &["", "x"], vec![("n/a n/c", false), ("n/e", true)]),
            (&n, Some("n/a"), &["", "x"], vec![("n/c n/e", true)]),
            (&n, Some("n/d"), &["x"], vec![]),
            (&all, None, &["z"], vec![]),
        ];
        let key = IndexKey::Value("l".into());
        collection.index(key.clone());
        let (state, _) = collection.state();
        for (scope, after, values, want) in cases {
            let values: Vec<Text> = values.iter().map(|value| Text::from(*value)).collect();
            let whole = Scan::new(state.root.clone(), scope, after);
            let scan = whole.with_index(state.indexed(&key).unwrap().clone(), values.clone());
            let want: Vec<(String, bool)> =
                want.into_iter().map(|(paths, at_end)| (paths.to_owned(), at_end)).collect();
            assert_eq!(visited(scan), want, "{scope:?} {after:?} {values:?}");
        }
    }
}
