//! Workspaces in a store that several servers share. Each is a copy in that store, which every server finds by the
//! Workspace object.
//!
//! Invariant: the Workspace object alone determines what a server serves, see docs/src/design/etcd.md.

use std::sync::{Arc, Weak};

use machinery::{Release, Text, Value};
use objects::{Event, EventKind, Objects, Stored};
use store::Store;

use super::Workspaces;
use super::definition::Spec;
use super::workspace::{Origin, Workspace, WorkspaceContent};

/// The copies that the status of a workspace names. The names lack the uid, which [`id_of`] adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyStatus {
    pub phase: String,
    pub message: String,
    /// The `spec.reset` for which `content` was made.
    pub reset: String,
    /// The copy that is served.
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

/// The id of a copy of a workspace.
pub fn id_of(uid: &str, copy: &str) -> String {
    format!("{uid}/{copy}")
}

impl Workspaces {
    /// The content to serve for a workspace with this status.
    fn content_of(&self, uid: &str, spec: &Spec, status: &CopyStatus) -> WorkspaceContent {
        if status.has_failed() {
            return WorkspaceContent::Failed(status.message.clone());
        }
        if !status.is_current(spec) {
            return WorkspaceContent::Awaited;
        }
        let release = status.release.unwrap_or(self.parts.blueprint.runtime.release);
        WorkspaceContent::Copied { id: id_of(uid, &status.content), release, store: None }
    }

    /// In a shared store: follows the Workspace objects in `default`.
    pub(super) fn observe_copied(&self, name: &Text, event: &Event) {
        let uid = &event.object.meta.uid;
        if event.kind == EventKind::Deleted {
            self.remove(name, uid);
            self.gone.lock().push(uid.clone());
            self.wake_forks(name);
        } else {
            let object = event.object.body.to_managed_value(event.revision);
            let spec = Spec::read(&object);
            if let Some(end) = spec.end {
                self.ends.lock().insert((end, name.clone()));
            }
            let content = self.content_of(uid, &spec, &CopyStatus::read(&object));
            match self.workspace(name).filter(|workspace| workspace.uid == *uid) {
                Some(workspace) => workspace.follow(spec, content),
                None => {
                    // if the deletion of the former workspace was compacted, no event says so
                    self.workspace(name).iter().for_each(|former| self.remove(name, &former.uid));
                    self.insert(name, Workspace::with_content(name, uid, spec, content));
                }
            }
        }
        self.changed.lock().insert(name.clone());
        self.has_changed.notify_one();
    }

    /// Opens the copy that a workspace consists of. Fails with a one-line message.
    pub(super) async fn open_copy(&self, workspace: &Workspace, id: &str, release: Release) -> Result<Origin, String> {
        let home = self.home().ok_or("the server is stopping")?;
        let copying = home.context.objects.store().copying().ok_or("the store has no copies")?;
        let opened = copying.open(id).await.map_err(|error| error.summary().to_owned())?;
        let store: Arc<dyn Store> = opened.ok_or("it is being reset or deleted")?;
        workspace.set_copy(id, &store);
        Ok(Origin {
            store,
            layout: self.layout(),
            release,
            has_workspaces: false,
            // a server of another version, which creates other objects, may have written the copy
            is_complete: false,
            objects: Weak::<Objects>::new(),
            at: None,
        })
    }
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
