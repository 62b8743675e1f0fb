//! The content of a workspace: not begun yet, the stores that it is in, or why there is none.

use std::sync::{Arc, Weak};

use futures_util::FutureExt as _;
use machinery::Release;
use objects::{Frozen, Objects};
use store::{Branching, Revision, Store};

use super::unusable::Unusable;

#[derive(Clone)]
pub enum Contents {
    /// An empty API that has not been used yet, and the release that it inherits from its source.
    Empty(Option<Release>),
    Begun(Begun),
    /// A copy in a store that several servers share.
    Copied(Copied),
    /// In a shared store: the copy is not complete yet.
    Awaited,
    /// The workspace cannot begin, for this reason.
    Failed(Unusable),
}

/// The store of a workspace that has begun, and what is needed to read it.
#[derive(Clone)]
pub struct Begun {
    pub store: Arc<dyn Store>,
    /// Whether the store is unchanged since it was forked.
    pub is_fresh: bool,
    /// In memory: the content to which resets return. A branch has it in the log.
    pub origin: Option<Arc<dyn Store>>,
    pub release: Release,
    /// Whether the store may contain Workspace objects. They are removed in forks, because only `default` has them.
    pub has_workspaces: bool,
    /// Whether the store has every object that this version of the server creates at its start.
    pub is_complete: bool,
    /// The objects that the store began with.
    pub decoded: Decoded,
}

/// The decoded objects of a source, as long as they are in memory.
#[derive(Clone, Default)]
pub struct Decoded {
    pub objects: Weak<Objects>,
    /// The revision at which they equal those of the fork; `None` for the revision that the fork's store begins with.
    pub at: Option<Revision>,
}

/// A copy in a store that several servers share.
#[derive(Clone)]
pub struct Copied {
    pub id: String,
    /// The id of the copy to which resets return; `None` if the workspace began empty.
    pub origin: Option<String>,
    /// The release that the copy emulates.
    pub release: Release,
}

/// The store to which a reset returns.
pub enum OriginStore {
    /// A store that is written to like any other.
    Writable(Arc<dyn Store>),
    /// The beginning of a branch, which the log can rewrite.
    Branch(Arc<dyn Store>, Arc<dyn Branching>),
    /// A store in memory, which cannot be rewritten.
    Fixed(Arc<dyn Store>),
}

impl Contents {
    /// Whether a content that was seen earlier is still the same.
    pub fn is_same(&self, earlier: &Contents) -> bool {
        match (self, earlier) {
            (Contents::Begun(now), Contents::Begun(earlier)) => Arc::ptr_eq(&now.store, &earlier.store),
            (Contents::Copied(now), Contents::Copied(earlier)) => now.id == earlier.id,
            _ => false,
        }
    }

    /// What has begun; `None` if the workspace has to begin first.
    pub fn into_begun(self) -> Result<Option<Begun>, Unusable> {
        match self {
            Contents::Empty(_) => Ok(None),
            Contents::Begun(begun) => Ok(Some(begun)),
            Contents::Failed(why) => Err(why),
            Contents::Copied(_) | Contents::Awaited => Err("its content is being replaced".into()),
        }
    }
}

impl Begun {
    /// A store that a server of another version, which creates other objects, may have written.
    pub fn found(store: Arc<dyn Store>, release: Release) -> Begun {
        let (is_fresh, has_workspaces, is_complete, decoded) = Default::default();
        Begun { store, is_fresh, origin: None, release, has_workspaces, is_complete, decoded }
    }

    /// The objects of the store, if the source has them decoded. Forks of `default` decode their own, because those
    /// of `default` include the Workspace objects.
    pub async fn frozen(&self) -> Option<Frozen> {
        let objects = self.decoded.objects.upgrade().filter(|_| self.is_fresh && !self.has_workspaces)?;
        let at = match self.decoded.at {
            Some(at) => at,
            None => self.store.head().await.ok()?,
        };
        objects.frozen_at(at).await
    }
}

/// The newest revision of a store in memory. Such a store responds at once.
pub fn revision_of(store: &dyn Store) -> Revision {
    store.head().now_or_never().and_then(Result::ok).unwrap_or_default()
}
