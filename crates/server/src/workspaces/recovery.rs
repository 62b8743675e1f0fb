//! Finds the workspaces of an earlier run of the server, in its store and in the data directories of others.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use machinery::{Release, Text, Value};
use objects::{Key, Layout, Objects, Stored};
use store::{Branching, Snapshot};

use super::content::{Begun, Contents};
use super::definition::{GROUP, PLURAL, Spec};
use super::label::{Label, pristine_id};
use super::manager::Workspaces;
use super::workspace::Workspace;

/// A durable workspace that was there when the server started.
pub struct FoundWorkspace {
    pub name: Text,
    pub uid: Text,
    spec: Spec,
    object: Value,
}

/// The workspaces that an earlier run of the server had.
pub struct FoundWorkspaces {
    pub kept: Vec<FoundWorkspace>,
    /// The objects of those whose content was in its memory.
    pub lost: Vec<Arc<Stored>>,
}

impl FoundWorkspace {
    fn status(&self, field: &str) -> &str {
        self.object.str_at(&["status", field])
    }
}

/// The names and uids of the workspaces whose objects a store holds. The uid is the id of the branch. Each error is a
/// one-line message.
pub fn workspaces_in<'a>(
    snapshot: &'a Snapshot,
    layout: &'a Layout,
) -> impl Iterator<Item = (Text, Result<String, String>)> + 'a {
    let is_it = |key: &Key| key.group == GROUP && key.plural == PLURAL;
    let places = snapshot.entries.iter().map(|entry| (layout.find(&entry.key), entry));
    places.filter_map(move |(place, entry)| {
        let place = place.filter(|place| is_it(&place.key))?;
        let name = place.key.path.clone();
        let uid = layout.open(&place, entry.value.clone()).and_then(|opened| {
            let object = machinery::value::decode(&opened.value);
            let object = object.map_err(|error| format!("workspace {:?}: {error}", name.as_str()))?;
            Ok(object.str_at(&["metadata", "uid"]).to_owned())
        });
        Some((name, uid))
    })
}

/// The objects of a workspace in the content of a data directory. Fails with a one-line message.
pub fn workspace_of(content: &store::Content, layout: &Layout, name: &str) -> Result<Snapshot, String> {
    let found = workspaces_in(&content.snapshot, layout).find(|(known, _)| known == name);
    let (_, uid) = found.ok_or_else(|| format!("there is no workspace {name:?}"))?;
    let branch = content.branch(uid?.as_bytes());
    branch
        .ok_or_else(|| format!("workspace {name:?} has no objects on the disk: it is ephemeral, or has not been used"))
}

impl Workspaces {
    /// The workspaces whose objects were there when the server started.
    pub(super) fn found(&self, objects: &Objects) -> FoundWorkspaces {
        let (mut kept, mut lost) = (vec![], vec![]);
        for (name, stored) in &objects.collection(&GROUP.into(), &PLURAL.into()).latest().0 {
            let object = stored.body.to_managed_value(stored.revision);
            let spec = Spec::read(&object);
            if spec.ephemeral || self.log.is_none() {
                lost.push(stored.clone());
                continue;
            }
            let (name, uid) = (name.clone(), stored.meta.uid.clone());
            kept.push(FoundWorkspace { name, uid, spec, object });
        }
        FoundWorkspaces { kept, lost }
    }

    /// Finds the content of durable workspaces. If a branch is missing, its workspace was forked just before a crash
    /// and not written to since, so it is forked again. Branches without a workspace are deleted.
    pub(super) fn restore(&self, log: &dyn Branching, found: Vec<FoundWorkspace>) {
        let mut branches: HashMap<Bytes, Bytes> =
            log.branches().into_iter().map(|branch| (branch.id, branch.label)).collect();
        let mut missing: HashMap<Text, FoundWorkspace> = HashMap::new();
        for one in found {
            let content = match branches.remove(one.uid.as_bytes()) {
                _ if one.status("phase") == "Failed" => Contents::Failed(one.status("message").to_owned().into()),
                Some(label) => self.recovered(log, &one, &label),
                None if one.spec.from.is_none() => Contents::Empty(None),
                None => {
                    missing.insert(one.name.clone(), one);
                    continue;
                }
            };
            let backing = self.backing(&one.spec);
            self.put_restored(&one, Workspace::new(&one.name, &one.uid, one.spec.clone(), backing, content));
        }
        while let Some(name) = missing.keys().next().cloned() {
            self.fork_again(&name, &mut missing);
        }
        let empty_apis: HashSet<Bytes> = Release::ALL.iter().map(|release| pristine_id(*release).into()).collect();
        branches.keys().filter(|id| !empty_apis.contains(*id)).for_each(|id| log.end(id));
    }

    /// Forks a workspace again. If its source is missing too, the source is forked first.
    fn fork_again(&self, name: &Text, missing: &mut HashMap<Text, FoundWorkspace>) {
        let mut chain = vec![name.clone()];
        while let Some(source) = chain.last().and_then(|last| missing.get(last)?.spec.from.clone())
            && missing.contains_key(source.as_str())
            && !chain.iter().any(|known| *known == source)
        {
            chain.push(source.into());
        }
        for one in chain.iter().rev().filter_map(|name| missing.remove(name)) {
            let workspace = self.begin(&one.name, &one.uid, one.spec.clone(), &one.object);
            if one.status("phase") == "Ready" {
                // the status was written after the fork, so a crash cannot lose the fork alone: the object was imported
                workspace.note_import();
            }
            self.put_restored(&one, workspace);
        }
    }

    /// Adds a workspace, and marks it as changed unless its status is that of its content.
    fn put_restored(&self, found: &FoundWorkspace, workspace: Workspace) {
        let is_reset = found.status("reset") == found.spec.reset;
        let is_begun = workspace.begun().now_or_never().is_some();
        let is_failed = workspace.failure().is_some();
        let is_reported = match found.status("phase") {
            "Failed" => is_failed,
            _ if workspace.is_empty_template() => false,
            _ => is_begun && !is_failed && found.status("url") == self.url_of(&found.name),
        };
        self.insert(workspace);
        if !is_reported || !is_reset {
            self.mark([found.name.clone()]);
        }
    }

    /// The content of a workspace whose branch exists. Repeats a reset that the label does not know of.
    fn recovered(&self, log: &dyn Branching, found: &FoundWorkspace, label: &[u8]) -> Contents {
        let Some(label) = Label::decode(label) else {
            return Contents::Failed("it was written by a later version of the server".into());
        };
        if !label.has_begun {
            return Contents::Empty(label.release);
        }
        let id = found.uid.as_bytes();
        let is_reset = label.reset != found.spec.reset;
        let release = label.release.unwrap_or(self.parts.api.runtime.release);
        let has_workspaces = label.has_workspaces;
        let label = Label { reset: found.spec.reset.clone(), ..label };
        let store = if is_reset { log.reset(id, &label.encode()) } else { log.branch(id) };
        let Some(store) = store else { return Contents::Failed("its content is gone".into()) };
        Contents::Begun(Begun { has_workspaces, ..Begun::found(store, release) })
    }
}
