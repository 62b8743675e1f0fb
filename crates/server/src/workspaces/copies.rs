//! Workspaces in a store that several servers share. Each is a copy in that store, which every server finds by the
//! Workspace object.
//!
//! Invariant: the Workspace object alone determines what a server serves, see docs/src/design/etcd.md.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use machinery::{Release, Text, Value};
use objects::Stored;
use parking_lot::Mutex;
use store::{Copying, Store};

use super::backing::{Backing, Declared, Sources};
use super::content::{Begun, Contents, Copied, OriginStore};
use super::definition::Spec;
use super::unusable::Unusable;

/// Finds copies, which the leader makes and removes.
pub struct Copies {
    pub copying: Arc<dyn Copying>,
    /// The release of copies whose status names none.
    pub release: Release,
    /// Identifies this run of the server in claims of copies.
    pub run: String,
    /// The uids of workspaces that have been deleted, whose copies the leader has to remove.
    pub deleted: Mutex<Vec<Text>>,
}

impl Backing for Copies {
    fn begin(&self, declared: &Declared<'_>, _sources: &dyn Sources) -> Result<Contents, Unusable> {
        Ok(self.content(declared))
    }

    /// The leader makes another copy.
    fn reset(&self, _declared: &Declared<'_>, _begun: &Begun) -> Option<Arc<dyn Store>> {
        None
    }

    fn open(&self, content: Contents) -> BoxFuture<'_, Result<Option<Begun>, Unusable>> {
        Box::pin(async move {
            let Contents::Copied(Copied { id, release, .. }) = content else { return content.into_begun() };
            let store = self.store(&id).await?.ok_or("it is being reset or deleted")?;
            Ok(Some(Begun::found(store, release)))
        })
    }

    fn origin<'a>(&'a self, _uid: &'a Text, content: Contents) -> BoxFuture<'a, Result<Option<OriginStore>, Unusable>> {
        Box::pin(async move {
            let Contents::Copied(Copied { origin: Some(id), .. }) = content else { return Ok(None) };
            Ok(self.store(&id).await?.map(OriginStore::Writable))
        })
    }

    fn end(&self, uid: &Text) {
        self.deleted.lock().push(uid.clone());
    }

    fn follow(&self, declared: &Declared<'_>, _former: &Spec, content: &mut Contents) -> bool {
        let former = std::mem::replace(content, self.content(declared));
        !content.is_same(&former)
    }
}

impl Copies {
    fn content(&self, declared: &Declared<'_>) -> Contents {
        let status = CopyStatus::read(declared.object);
        if status.has_failed() {
            return Contents::Failed(status.message.into());
        }
        if !status.is_current(declared.spec) {
            return Contents::Awaited;
        }
        let id = |copy: &String| id_of(declared.uid, copy);
        Contents::Copied(Copied {
            id: id(&status.content),
            origin: Some(&status.origin).filter(|origin| !origin.is_empty()).map(id),
            release: status.release.unwrap_or(self.release),
        })
    }

    async fn store(&self, id: &str) -> Result<Option<Arc<dyn Store>>, Unusable> {
        Ok(self.copying.open(id).await?)
    }
}

/// The copies that the status of a workspace names. The names lack the uid, which [`id_of`] adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyStatus {
    pub phase: String,
    pub message: String,
    /// The `spec.reset` for which `content` was made.
    pub reset: String,
    pub content: String,
    /// The copy of the state that a reset returns to; empty if the workspace began empty.
    pub origin: String,
    /// The copy that is being made.
    pub copying: String,
    /// The server run that is making `copying`, or that made the last copy.
    pub copier: String,
    /// The release that the content emulates.
    pub release: Option<Release>,
}

impl CopyStatus {
    pub fn read(object: &Value) -> CopyStatus {
        let text = |name: &str| object.str_at(&["status", name]).to_owned();
        CopyStatus {
            phase: text("phase"),
            message: text("message"),
            reset: text("reset"),
            content: text("content"),
            origin: text("origin"),
            copying: text("copying"),
            copier: text("copier"),
            release: text("kubernetesVersion").parse().ok(),
        }
    }

    pub fn of(stored: &Stored) -> CopyStatus {
        CopyStatus::read(&stored.body.to_managed_value(stored.revision))
    }

    pub fn has_failed(&self) -> bool {
        self.phase == "Failed"
    }

    /// Whether the workspace is ready, and `content` was made after the last reset.
    pub fn is_current(&self, spec: &Spec) -> bool {
        self.phase == "Ready" && !self.content.is_empty() && self.reset == spec.reset
    }

    /// Whether the status names a copy, so that it must not be removed.
    pub fn names(&self, copy: &str) -> bool {
        let known = [self.content.as_str(), &self.origin, &self.copying, &origin_of(&self.copying)];
        !copy.is_empty() && known.contains(&copy)
    }
}

/// The name of the copy to which resets return. It is made together with `copy`, the first copy of a workspace.
pub fn origin_of(copy: &str) -> String {
    if copy.is_empty() { String::new() } else { format!("{copy}-origin") }
}

pub fn id_of(uid: &str, copy: &str) -> String {
    format!("{uid}/{copy}")
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn only_a_whole_copy_of_the_last_reset_is_current() {
        let cases = [
            (json!({}), "", false),
            (json!({"phase": "Ready", "content": "a"}), "", true),
            (json!({"phase": "Ready", "content": "a"}), "1", false),
            (json!({"phase": "Ready", "content": "a", "reset": "1"}), "1", true),
            (json!({"phase": "Ready", "content": "a", "reset": "1"}), "2", false),
            (json!({"copying": "a"}), "", false),
            (json!({"phase": "Ready"}), "", false),
            (json!({"phase": "Failed", "content": "a"}), "", false),
        ];
        for (status, reset, current) in cases {
            let object = json!({"status": (status.clone())});
            let spec = Spec { reset: reset.to_owned(), ..Spec::default() };
            assert_eq!(CopyStatus::read(&object).is_current(&spec), current, "{status:?} {reset}");
        }
    }

    #[test]
    fn copies_that_the_status_does_not_name_are_of_no_use() {
        let object = json!({"status": {"content": "a", "origin": "b-origin", "copying": "c"}});
        let status = CopyStatus::read(&object);
        for (copy, named) in [
            ("a", true),
            ("a-origin", false),
            ("b-origin", true),
            ("b", false),
            ("c", true),
            ("c-origin", true),
            ("", false),
        ] {
            assert_eq!(status.names(copy), named, "{copy}");
        }
        assert!(!CopyStatus::default().names("-origin"));
    }
}
