//! Durable workspaces: each is a branch in the log of the store, with the uid of the workspace as its id.

use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};
use machinery::Text;
use store::{BranchSource, Branching, Store};

use super::backing::{Backing, BegunSource, Declared, ForkSource, Sources, earlier_revision};
use super::content::{Begun, Contents, OriginStore};
use super::definition::ForkPoint;
use super::label::Label;
use super::unusable::Unusable;

/// Keeps contents in the log, which has what each began with beside it.
pub struct InLog {
    pub log: Arc<dyn Branching>,
}

impl Backing for InLog {
    fn begin(&self, declared: &Declared<'_>, sources: &dyn Sources) -> Result<Contents, Unusable> {
        let reset = || declared.spec.reset.clone();
        sources.fork(declared.spec, &mut |source| match source {
            ForkSource::Empty(release) => {
                // the label records the release, because after a restart the source may have begun, or may not exist
                // any more
                let label = Label { release, has_workspaces: false, has_begun: false, reset: reset() };
                let begun = self.log.begin(declared.uid.as_bytes(), BranchSource::Nothing, &label.encode());
                begun.map(|_| Contents::Empty(release)).ok_or(Unusable::NotForked)
            }
            ForkSource::Begun(source) => self.fork(declared.uid.as_bytes(), reset(), &source).map(Contents::Begun),
        })
    }

    fn reset(&self, declared: &Declared<'_>, begun: &Begun) -> Option<Arc<dyn Store>> {
        let label = begun.label(declared.spec.reset.clone());
        self.log.reset(declared.uid.as_bytes(), &label.encode())
    }

    fn origin<'a>(&'a self, uid: &'a Text, _content: Contents) -> BoxFuture<'a, Result<Option<OriginStore>, Unusable>> {
        let origin = self.log.origin(uid.as_bytes());
        Box::pin(ready(Ok(origin.map(|origin| OriginStore::Branch(origin, self.log.clone())))))
    }

    fn end(&self, uid: &Text) {
        self.log.end(uid.as_bytes());
    }
}

impl Begun {
    /// The label of a branch with this content.
    fn label(&self, reset: String) -> Label {
        Label { release: Some(self.release), has_workspaces: self.has_workspaces, has_begun: true, reset }
    }
}

impl InLog {
    fn fork(&self, uid: &[u8], reset: String, source: &BegunSource<'_>) -> Result<Begun, Unusable> {
        if source.begun.origin.is_some() {
            return Err(Unusable::Ephemeral(source.name.to_owned()));
        }
        let label = source.begun.label(reset).encode();
        let earlier = earlier_revision(source.name, &*source.begun.store, source.point)?;
        let at = if let ForkPoint::At(at) = source.point { Some(at) } else { None };
        let store = match (earlier, source.branch, source.point) {
            (Some(revision), id, _) => self.log.begin_earlier(uid, id, source.earlier(revision), &label),
            (_, None, _) => self.log.begin(uid, BranchSource::Store(at), &label),
            (_, Some(id), ForkPoint::Origin(_)) => self.log.begin(uid, BranchSource::Origin(id), &label),
            (_, Some(id), _) => self.log.begin(uid, BranchSource::Branch(id, at), &label),
        };
        let mut begun = source.forked(store.ok_or_else(|| source.not_forked())?);
        if earlier.is_some() {
            begun.decoded.at = earlier;
        }
        Ok(begun)
    }
}
