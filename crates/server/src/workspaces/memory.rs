//! Workspaces in the memory of the server.

use std::sync::Arc;

use base::task;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use machinery::Text;
use store::{Branching, Earlier, Memory, Store};

use super::backing::{Backing, BegunSource, Declared, ForkSource, SourceUse, Sources, earlier_revision};
use super::content::{Begun, Contents, Decoded, OriginStore, revision_of};
use super::definition::ForkPoint;
use super::unusable::Unusable;

/// Keeps contents in memory, where a workspace shares with its source whatever neither has changed.
pub struct InMemory {
    /// The log of durable sources.
    pub log: Option<Arc<dyn Branching>>,
}

impl Backing for InMemory {
    fn begin(&self, declared: &Declared<'_>, sources: &dyn Sources) -> Result<Contents, Unusable> {
        let mut earlier = None;
        let content = sources.fork(declared.spec, &mut |source| match source {
            ForkSource::Empty(release) => Ok(Contents::Empty(release)),
            ForkSource::Begun(source) => self.fork(&source, &mut earlier).map(Contents::Begun),
        })?;
        match (content, earlier) {
            // read only now, because requests to the source wait for the lock under which it is forked
            (Contents::Begun(begun), Some(earlier)) => {
                let origin: Arc<dyn Store> = Arc::new(Memory::with(task::blocking(earlier)?));
                let store = origin.fork(0).ok_or(Unusable::NotForked)?;
                let decoded = Decoded { at: Some(revision_of(&*origin)), ..begun.decoded };
                Ok(Contents::Begun(Begun { store, origin: Some(origin), decoded, ..begun }))
            }
            (content, _) => Ok(content),
        }
    }

    fn reset(&self, _declared: &Declared<'_>, begun: &Begun) -> Option<Arc<dyn Store>> {
        begun.origin.as_ref()?.fork(revision_of(&*begun.store) + 1)
    }

    fn origin<'a>(&'a self, _uid: &'a Text, content: Contents) -> BoxFuture<'a, Result<Option<OriginStore>, Unusable>> {
        let origin = content.into_begun().map(|begun| begun?.origin.map(OriginStore::Fixed));
        Box::pin(ready(origin))
    }

    fn end(&self, _uid: &Text) {}
}

impl InMemory {
    /// Forks a source. If an earlier revision of it is wanted, the caller has to read its content from `earlier`.
    fn fork(&self, source: &BegunSource<'_>, earlier: &mut Option<Earlier>) -> Result<Begun, Unusable> {
        let begun = &source.begun;
        if !matches!(begun.store.head().now_or_never(), Some(Ok(_))) {
            return Err(Unusable::NotReady(source.name.to_owned()));
        }
        let origin = match (source.point, &source.activity) {
            (ForkPoint::Origin(_), _) => {
                let in_log = || self.log.as_ref()?.origin(source.branch.unwrap_or_default());
                begun.origin.clone().or_else(in_log)
            }
            (_, SourceUse::Fixed) => Some(begun.store.clone()),
            _ => begun.store.fork(0),
        };
        let origin = origin.ok_or_else(|| source.not_forked())?;
        // compared with the fork, because the source may be written to meanwhile
        if let Some(revision) = earlier_revision(source.name, &*origin, source.point)? {
            *earlier = Some(source.earlier(revision));
        }
        let mut begun = source.forked(origin.fork(0).ok_or_else(|| source.not_forked())?);
        begun.decoded.at.get_or_insert(revision_of(&*origin));
        Ok(Begun { origin: Some(origin), ..begun })
    }
}
