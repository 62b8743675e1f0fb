//! Durable workspaces: each is a branch in the log of the store. Finds them again when the server starts.

use std::collections::{HashMap, HashSet};
use std::sync::Weak;

use bytes::Bytes;
use futures_util::FutureExt as _;
use machinery::{Release, Text, Value};
use objects::{Key, Layout};
use store::{BranchSource, Branching, Content, Snapshot, Store};

use super::definition::{GROUP, PLURAL, Spec};
use super::label::{Label, WantedRevision, pristine_id, wanted_revision};
use super::workspace::{Fork, Keeping, Origin, Workspace, WorkspaceContent, later_earlier};
use super::{DEFAULT, Workspaces};

/// A workspace that the server finds when it starts.
pub struct FoundWorkspace {
    pub name: Text,
    pub uid: Text,
    pub spec: Spec,
    pub status: Value,
    /// Whether its branch was missing, so that it was forked again.
    pub is_forked_again: bool,
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
pub fn workspace_of(content: &Content, layout: &Layout, name: &str) -> Result<Snapshot, String> {
    let found = workspaces_in(&content.snapshot, layout).find(|(known, _)| known == name);
    let (_, uid) = found.ok_or_else(|| format!("there is no workspace {name:?}"))?;
    let branch = content.branch(uid?.as_bytes());
    branch
        .ok_or_else(|| format!("workspace {name:?} has no objects on the disk: it is ephemeral, or has not been used"))
}

impl Workspaces {
    /// The layout of durable workspaces. It is `default`'s, so that both encrypt values alike.
    pub(super) fn layout(&self) -> Layout {
        self.home().map_or_else(Layout::own, |home| home.context.objects.layout().clone())
    }

    /// Forks `default` in the log.
    pub(super) fn fork_home_in_log(&self, home: &dyn Store, uid: &Text, spec: &Spec) -> Result<Fork, String> {
        let log = home.branching().ok_or("the store has no branches")?;
        let not_forked = "the store of the workspace \"default\" cannot be forked";
        let wanted = wanted_revision(DEFAULT, home, spec)?;
        let release = self.parts.blueprint.runtime.release;
        let label = Label { release: Some(release), has_workspaces: true, has_begun: true, reset: spec.reset.clone() };
        let begin = |source| log.begin(uid.as_bytes(), source, &label.encode()).ok_or(not_forked);
        let store = match wanted {
            WantedRevision::Newest(at) => begin(BranchSource::Store(at))?,
            WantedRevision::Earlier(revision) => {
                let objects = self.home().map(|home| home.context.objects.clone());
                let earlier = later_earlier(DEFAULT, objects, revision);
                log.begin_earlier(uid.as_bytes(), None, earlier, &label.encode()).ok_or(not_forked)?
            }
        };
        let layout = self.layout();
        let objects = Weak::new();
        Ok(Fork::Kept(Origin { store, layout, release, has_workspaces: true, is_complete: true, objects, at: None }))
    }

    /// Finds the content of durable workspaces. If a branch is missing, its workspace was forked just before a crash
    /// and not written to since, so it is forked again. Branches without a workspace are deleted.
    pub(super) fn restore(&self, home: &dyn Store, log: &dyn Branching) {
        let found = std::mem::take(&mut *self.found.lock());
        let mut branches: HashMap<Bytes, Bytes> =
            log.branches().into_iter().map(|branch| (branch.id, branch.label)).collect();
        let mut missing: HashMap<Text, FoundWorkspace> = HashMap::new();
        for one in found {
            let failure = one.status.str_at(&["message"]).to_owned();
            let content = match branches.remove(one.uid.as_bytes()) {
                _ if one.status.str_at(&["phase"]) == "Failed" => WorkspaceContent::Failed(failure),
                Some(label) => self.kept(log, &one, &label),
                None if one.spec.from.is_none() => WorkspaceContent::Pristine(None),
                None => {
                    missing.insert(one.name.clone(), one);
                    continue;
                }
            };
            self.put_restored(one, content);
        }
        while let Some(name) = missing.keys().next().cloned() {
            self.fork_again(home, &name, &mut missing);
        }
        let pristine: HashSet<Bytes> = Release::ALL.iter().map(|release| pristine_id(*release).into()).collect();
        branches.keys().filter(|id| !pristine.contains(*id)).for_each(|id| log.end(id));
    }

    /// Forks a workspace again. If its source is missing too, the source is forked first.
    fn fork_again(&self, home: &dyn Store, name: &Text, missing: &mut HashMap<Text, FoundWorkspace>) {
        let mut chain = vec![name.clone()];
        while let Some(source) = chain.last().and_then(|last| missing.get(last)?.spec.from.clone())
            && missing.contains_key(source.as_str())
            && !chain.iter().any(|known| *known == source)
        {
            chain.push(source.into());
        }
        for name in chain.iter().rev() {
            let Some(one) = missing.remove(name) else { continue };
            let one = FoundWorkspace { is_forked_again: true, ..one };
            let content = WorkspaceContent::begin(self.begin(home, &one.uid, &one.spec));
            self.put_restored(one, content);
        }
    }

    fn put_restored(&self, found: FoundWorkspace, content: WorkspaceContent) {
        let FoundWorkspace { name, uid, spec, status, is_forked_again } = found;
        self.ends.lock().extend(spec.end.map(|end| (end, name.clone())));
        let is_reset = status.str_at(&["reset"]) == spec.reset;
        let workspace = Workspace::with_content(&name, &uid, spec, content);
        if is_forked_again && status.str_at(&["phase"]) == "Ready" {
            // the status was written after the fork, so a crash cannot lose the fork alone: the object was imported
            workspace.note_import();
        }
        let is_begun = workspace.begun().now_or_never().is_some();
        let is_failed = workspace.failure().is_some();
        let is_reported = match status.str_at(&["phase"]) {
            "Failed" => is_failed,
            _ if workspace.is_hollow() => false,
            _ => is_begun && !is_failed && status.str_at(&["url"]) == self.url_of(&name),
        };
        if !is_reported || !is_reset {
            self.changed.lock().insert(name.clone());
            self.has_changed.notify_one();
        }
        self.insert(&name, workspace);
    }

    /// The content of a workspace whose branch exists. Repeats a reset that the label does not know of.
    fn kept(&self, log: &dyn Branching, found: &FoundWorkspace, label: &[u8]) -> WorkspaceContent {
        let Some(label) = Label::decode(label) else {
            return WorkspaceContent::Failed("it was written by a later version of the server".to_owned());
        };
        if !label.has_begun {
            return WorkspaceContent::Pristine(label.release);
        }
        let id = found.uid.as_bytes();
        let is_reset = label.reset != found.spec.reset;
        let release = label.release.unwrap_or(self.parts.blueprint.runtime.release);
        let has_workspaces = label.has_workspaces;
        let label = Label { reset: found.spec.reset.clone(), ..label };
        let store = if is_reset { log.reset(id, &label.encode()) } else { log.branch(id) };
        let Some(store) = store else { return WorkspaceContent::Failed("its content is gone".to_owned()) };
        let origin = Origin {
            store: store.clone(),
            layout: self.layout(),
            release,
            has_workspaces,
            // a server of another version, which creates other objects, may have written the branch
            is_complete: false,
            objects: Weak::new(),
            at: None,
        };
        WorkspaceContent::Begun { store, is_fresh: false, origin, keeping: Keeping::Log }
    }
}
