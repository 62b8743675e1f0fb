//! The objects of a list, read from a snapshot while they are sent. The snapshot shares its memory with other lists, so a
//! list needs little memory, however many objects it has and however slowly its client reads.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use machinery::{Status, Text};
use objects::{Root, Scope, Stored};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::selection::Selection;
use super::{Request, ResponseObject};
use crate::limits;

/// Iterates over the objects of a snapshot in the order of their paths.
#[derive(Clone)]
pub struct Scan {
    root: Root,
    /// Whether the next object is the first one of the scope.
    at_start: bool,
    /// The lower bound of the remaining paths.
    from: Bound<Text>,
    /// The upper bound of the paths of the scope.
    until: Bound<Text>,
}

impl Scan {
    /// The objects within `scope` after the path `after`.
    pub fn new(root: Root, scope: &Scope, after: Option<&str>) -> Scan {
        let from = match (scope, after) {
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
        Scan { root, at_start: after.is_none(), from, until }
    }

    /// Visits the next objects, at most `count`, until `visit` returns false. Returns the number of visited objects.
    pub fn each<E>(
        &mut self,
        count: usize,
        mut visit: impl FnMut(&Arc<Stored>) -> Result<bool, E>,
    ) -> Result<usize, E> {
        // collected first, so that the CPU can load several objects from memory at once
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

    /// The next objects, at most `count`, without advancing.
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

    /// The number of remaining objects.
    pub fn count(&self) -> usize {
        match (&self.from, &self.until) {
            (Bound::Unbounded, Bound::Unbounded) => self.root.len(),
            _ => self.rest().count(),
        }
    }
}

/// A long scan holds this during each batch after its first. So only one long scan computes at a time, and the other
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
    /// Objects that are few or do not come from a snapshot.
    ResponseObject(VecDeque<ResponseObject>),
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
    pub fn shown(items: Vec<ResponseObject>) -> Items {
        Items { left: items.len(), source: ItemSource::ResponseObject(items.into()) }
    }

    /// The first `count` selected objects of a scan.
    pub fn selected(scan: Scan, selection: Selection, count: usize) -> Items {
        Items { left: count, source: ItemSource::Snapshot { scan, selection: Box::new(selection) } }
    }

    /// Size of the remaining objects as JSON in bytes; `None` if they are still to be selected.
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
    pub async fn next(&mut self, request: &Request) -> Result<Vec<ResponseObject>, Status> {
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
) -> Result<Vec<ResponseObject>, Status> {
    let mut found = vec![];
    let batch = selection.batch(limits::LIST_BATCH);
    while found.is_empty() && left > 0 {
        // they were converted before the list began, but their renditions may have been evicted since
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
