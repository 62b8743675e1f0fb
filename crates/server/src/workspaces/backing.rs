//! Where the content of a workspace is kept, and how another workspace is forked from it.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use machinery::{Release, Text, Value};
use objects::Objects;
use store::{Revision, Snapshot, Store};

use super::content::{Begun, Contents, Decoded, OriginStore};
use super::definition::{ForkPoint, Spec};
use super::unusable::Unusable;

/// A place where contents of workspaces are kept: the memory of the server, branches in the log of its store, or copies
/// in a store that several servers share.
pub trait Backing: Send + Sync {
    fn begin(&self, declared: &Declared<'_>, sources: &dyn Sources) -> Result<Contents, Unusable>;

    /// A store with what a workspace began with. Its revision is later than any that clients have seen, so that earlier
    /// watches and continue tokens expire.
    fn reset(&self, declared: &Declared<'_>, begun: &Begun) -> Option<Arc<dyn Store>>;

    /// The store that a content is in; `None` if the workspace has to begin first.
    fn open(&self, content: Contents) -> BoxFuture<'_, Result<Option<Begun>, Unusable>> {
        Box::pin(ready(content.into_begun()))
    }

    /// The store that resets of a content return to, to encrypt its values again.
    fn origin<'a>(&'a self, uid: &'a Text, content: Contents) -> BoxFuture<'a, Result<Option<OriginStore>, Unusable>>;

    /// Removes the content of a deleted workspace.
    fn end(&self, uid: &Text);

    /// Makes the content what the changed object says, where `former` is the specification until now. Returns whether
    /// it has been replaced.
    fn follow(&self, declared: &Declared<'_>, former: &Spec, content: &mut Contents) -> bool {
        let is_reset = declared.spec.reset != former.reset;
        if is_reset
            && let Contents::Begun(begun) = content
            && let Some(store) = self.reset(declared, begun)
        {
            begun.store = store;
            begun.is_fresh = true;
            if begun.decoded.at.is_none() {
                // the revisions of the objects in memory differ from the store's, which begins at a later one
                begun.decoded = Decoded::default();
            }
        }
        is_reset
    }
}

/// A Workspace object.
pub struct Declared<'a> {
    pub uid: &'a Text,
    pub spec: &'a Spec,
    pub object: &'a Value,
}

/// Finds what a workspace begins with.
pub trait Sources {
    /// Calls `fork` with the source that a specification names. The source does not change meanwhile.
    fn fork(&self, spec: &Spec, fork: &mut Forking<'_>) -> Result<Contents, Unusable>;
}

pub type Forking<'a> = dyn FnMut(ForkSource<'_>) -> Result<Contents, Unusable> + 'a;

pub enum ForkSource<'a> {
    /// A workspace that has not been used yet, and the release that its forks emulate.
    Empty(Option<Release>),
    Begun(BegunSource<'a>),
}

pub struct BegunSource<'a> {
    pub name: &'a str,
    /// The id of its branch, if its backing is the log; `None` for `default`.
    pub branch: Option<&'a [u8]>,
    /// Its content. The release is the one that its forks emulate.
    pub begun: Begun,
    pub activity: SourceUse,
    pub point: ForkPoint,
}

/// Whether a source changes.
pub enum SourceUse {
    /// It never changes, so forks share its store.
    Fixed,
    /// It has no context.
    Idle,
    /// The objects of its context.
    InUse(Arc<Objects>),
}

impl BegunSource<'_> {
    /// A fork in `store`, which has been made.
    pub fn forked(&self, store: Arc<dyn Store>) -> Begun {
        let known = || self.begun.decoded.clone();
        let decoded = match (self.point, &self.activity) {
            // after a reset, the store begins at another revision
            (ForkPoint::Origin(_), _) => Some(known()).filter(|known| known.at.is_some()).unwrap_or_default(),
            (_, SourceUse::InUse(objects)) => Decoded { objects: Arc::downgrade(objects), at: None },
            _ if self.begun.is_fresh => known(),
            _ => Decoded::default(),
        };
        Begun { store, is_fresh: true, origin: None, decoded, ..self.begun.clone() }
    }

    /// Reads what the source held at an earlier revision, in the thread of the caller, if it still has that history.
    pub fn earlier(&self, revision: Revision) -> store::Earlier {
        // the history is lost when an idle workspace drops its context
        let objects = if let SourceUse::InUse(objects) = &self.activity { Some(objects.clone()) } else { None };
        let not_kept = Unusable::NotKept { name: self.name.to_owned(), revision };
        Box::new(move || -> Result<Snapshot, String> {
            objects.and_then(|objects| objects.snapshot_at(revision)).ok_or_else(|| not_kept.to_string())
        })
    }

    /// The error if its store is in no state to be forked.
    pub fn not_forked(&self) -> Unusable {
        if self.branch.is_none() { Unusable::DefaultNotForked } else { Unusable::NotForked }
    }
}

/// The revision to fork of the store of a source, unless it is the newest one.
pub fn earlier_revision(name: &str, store: &dyn Store, point: ForkPoint) -> Result<Option<Revision>, Unusable> {
    match (store.head().now_or_never(), point) {
        (Some(Ok(head)), ForkPoint::At(wanted)) if wanted < head => Ok(Some(wanted)),
        (Some(Ok(head)), ForkPoint::At(wanted) | ForkPoint::Origin(Some(wanted))) if wanted != head => {
            Err(Unusable::NotAt { name: name.to_owned(), head, wanted })
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_begins_at_the_newest_revision_or_an_earlier_one() {
        let source = store::Memory::with(Snapshot { revision: 7, entries: vec![] });
        use ForkPoint::{At, Newest, Origin};
        for (point, earlier) in [
            (Newest, Ok(None)),
            (Origin(None), Ok(None)),
            (At(7), Ok(None)),
            (Origin(Some(7)), Ok(None)),
            (At(6), Ok(Some(6))),
            (Origin(Some(6)), Err("workspace \"a\" is at resourceVersion 7, not at 6")),
            (At(8), Err("workspace \"a\" is at resourceVersion 7, not at 8")),
            (Origin(Some(8)), Err("workspace \"a\" is at resourceVersion 7, not at 8")),
        ] {
            let found = earlier_revision("a", &source, point).map_err(|why| why.to_string());
            assert_eq!(found, earlier.map_err(str::to_owned), "{point:?}");
        }
    }
}
