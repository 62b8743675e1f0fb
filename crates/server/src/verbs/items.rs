//! The objects of a list, read from one snapshot when they are wanted: a list takes the memory of its snapshot, which all
//! lists share, however many objects it has and however slowly its client reads.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use machinery::{Status, Text};
use objects::{Root, Scope, Stored};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::selection::Selection;
use super::{Request, Shown};
use crate::limits;

/// Walks over the objects of a snapshot in the order of their paths.
#[derive(Clone)]
pub struct Scan {
    root: Root,
    /// Whether it began with the first object of the scope, and has not moved.
    at_start: bool,
    /// The next object is the first one from here on.
    from: Bound<Text>,
    /// The paths of the scope end here.
    until: Bound<Text>,
}

impl Scan {
    /// The objects within `scope`, behind the path `after`.
    pub fn new(root: Root, scope: &Scope, after: Option<&str>) -> Scan {
        let from = match (scope, after) {
            (Scope::Path(path), _) => Bound::Included(path.clone()),
            (_, Some(after)) => Bound::Excluded(after.into()),
            (Scope::Namespace(namespace), None) => Bound::Included(format!("{namespace}/").into()),
            (Scope::All, None) => Bound::Unbounded,
        };
        let until = match scope {
            Scope::Path(path) => Bound::Included(path.clone()),
            // the first text behind all that begin with the namespace and a slash
            Scope::Namespace(namespace) => Bound::Excluded(format!("{namespace}0").into()),
            Scope::All => Bound::Unbounded,
        };
        Scan { root, at_start: after.is_none(), from, until }
    }

    /// Visits the next objects, at most `count`, until `visit` returns false. Returns how many were visited.
    pub fn each<E>(
        &mut self,
        count: usize,
        mut visit: impl FnMut(&Arc<Stored>) -> Result<bool, E>,
    ) -> Result<usize, E> {
        // gathered first: loading the objects from memory then overlaps, which a walk over the tree would prevent
        let batch: Vec<(&Text, &Arc<Stored>)> = self.rest().take(count).collect();
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

    /// The next objects, at most `count`, without moving.
    pub fn ahead(&self, count: usize) -> impl Iterator<Item = &Arc<Stored>> {
        self.rest().take(count).map(|(_, stored)| stored)
    }

    pub fn is_at_start(&self) -> bool {
        self.at_start
    }

    pub fn is_at_end(&self) -> bool {
        self.rest().next().is_none()
    }

    fn rest(&self) -> impl Iterator<Item = (&Text, &Arc<Stored>)> {
        let range: (Bound<&Text>, Bound<&Text>) = (self.from.as_ref(), self.until.as_ref());
        self.root.range::<_, Text>(range)
    }

    /// How many objects are left.
    pub fn count(&self) -> usize {
        match (&self.from, &self.until) {
            (Bound::Unbounded, Bound::Unbounded) => self.root.len(),
            _ => self.rest().count(),
        }
    }
}

/// Long scans take turns, so that any number of them leaves the other workers to short requests.
static TURN: Semaphore = Semaphore::const_new(1);

/// Lets other tasks run in the middle of a long scan.
#[derive(Default)]
pub struct Pace(Option<SemaphorePermit<'static>>);

impl Pace {
    /// Lets other tasks run; called after each batch.
    pub async fn next(&mut self) {
        if self.0.is_none() {
            self.0 = TURN.acquire().await.ok();
        }
        tokio::task::yield_now().await;
    }
}

#[derive(Clone)]
enum ItemSource {
    /// They are few, or are not in a snapshot.
    Shown(VecDeque<Shown>),
    Snapshot {
        scan: Scan,
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
    pub fn shown(items: Vec<Shown>) -> Items {
        Items { left: items.len(), source: ItemSource::Shown(items.into()) }
    }

    /// The first `count` objects of a scan that are selected.
    pub fn selected(scan: Scan, selection: Selection, count: usize) -> Items {
        Items { left: count, source: ItemSource::Snapshot { scan, selection: Box::new(selection) } }
    }

    /// Bytes of the objects that are left, as JSON; `None` if they are many.
    pub fn bytes(&self) -> Option<usize> {
        match &self.source {
            ItemSource::Shown(items) => Some(items.iter().map(Shown::stored_bytes).sum()),
            ItemSource::Snapshot { .. } => None,
        }
    }

    /// How many are left.
    pub fn len(&self) -> usize {
        self.left
    }

    /// The next objects, a few at a time; none at the end.
    pub async fn next(&mut self, request: &Request) -> Result<Vec<Shown>, Status> {
        let found = match &mut self.source {
            ItemSource::Shown(items) => items.drain(..items.len().min(limits::LIST_BATCH)).collect(),
            ItemSource::Snapshot { scan, selection } => next_selected(scan, selection, self.left, request).await?,
        };
        self.left = if found.is_empty() { 0 } else { self.left.saturating_sub(found.len()) };
        Ok(found)
    }
}

/// The next selected objects of a scan, at most `left`; none at its end.
async fn next_selected(
    scan: &mut Scan,
    selection: &Selection,
    left: usize,
    request: &Request,
) -> Result<Vec<Shown>, Status> {
    let mut found = vec![];
    while found.is_empty() && left > 0 {
        // they have been converted before, but their renditions may have been replaced since
        selection.convert_ahead(request, scan, limits::LIST_BATCH, left).await?;
        let visited = scan.each(limits::LIST_BATCH, |stored| {
            if selection.matches(request, stored)? {
                found.push(Shown::stored(&request.resource, &request.version, stored.clone())?);
            }
            Ok::<_, Status>(found.len() < left)
        })?;
        if visited == 0 {
            break;
        }
    }
    Ok(found)
}
