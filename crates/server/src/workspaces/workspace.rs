//! A workspace: its specification, its store, and its context while it is used.

use std::sync::{Arc, Weak};
use std::time::Duration;

use base::clock;
use futures_util::FutureExt as _;
use machinery::{Release, Text};
use objects::{Frozen, Layout, Objects};
use parking_lot::Mutex;
use store::{BranchSource, Branching, Revision, Snapshot, Store};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::definition::{Limits, Spec};
use super::label::{Label, WantedRevision, wanted_revision};
use crate::http::{Edge, OpenCount};
use crate::testing::KeptObservations;

/// A store that a workspace can begin from, and what is needed to read it.
#[derive(Clone)]
pub struct Origin {
    pub store: Arc<dyn Store>,
    pub layout: Layout,
    pub release: Release,
    /// Whether the store contains Workspace objects. They are removed in forks, because only `default` has them.
    pub has_workspaces: bool,
    /// Whether the store has every object that this version of the server creates at its start.
    pub is_complete: bool,
    /// The decoded objects of the source, as long as they are in memory. Their state at the revision `at` equals the
    /// store's.
    pub objects: Weak<Objects>,
    /// The revision at which the source was forked; `None` if that is the revision that the store begins with.
    pub at: Option<Revision>,
}

impl Origin {
    /// The objects of the store, if the source has them decoded. Forks of `default` decode their own, because those
    /// of `default` include the Workspace objects.
    pub async fn frozen(&self) -> Option<Frozen> {
        if self.has_workspaces {
            return None;
        }
        let objects = self.objects.upgrade()?;
        let at = match self.at {
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

/// The source of a new workspace.
pub enum Fork {
    /// An empty API that emulates this release, or the server's if there is none.
    Empty(Option<Release>),
    Of(Origin),
    /// A fork that has already been made in the log of the store.
    Kept(Origin),
}

/// Where the content of a workspace is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    Memory,
    /// A branch of the store of `default`, whose id is the uid of the workspace.
    Log,
}

/// The content of a workspace.
pub enum WorkspaceContent {
    /// An empty API that has not been used yet, and the release that it inherits from its source.
    Pristine(Option<Release>),
    Begun {
        store: Arc<dyn Store>,
        /// Whether the store is unchanged since it was forked from the origin's.
        is_fresh: bool,
        /// The content to which resets return. Durable workspaces keep it in a store of its own instead.
        origin: Origin,
        keeping: Keeping,
    },
    /// A copy in a store that several servers share, and the release that it emulates.
    Copied { id: String, release: Release, store: Option<Arc<dyn Store>> },
    /// In a shared store: the copy is not complete yet.
    Awaited,
    /// The workspace cannot begin, for this reason.
    Failed(String),
}

/// The stores of a workspace. Both have the same layout.
pub struct KeptStores {
    /// The current content.
    pub content: Arc<dyn Store>,
    /// The content to which resets return.
    pub origin: Option<OriginStore>,
    pub layout: Layout,
}

/// The store to which a reset returns.
pub enum OriginStore {
    /// A store that is written to like any other.
    Writable(Arc<dyn Store>),
    /// The content of a branch at its beginning, which the log can rewrite.
    Branch(Arc<dyn Store>),
    /// A store in memory, which cannot be rewritten.
    Fixed(Arc<dyn Store>),
}

struct WorkspaceState {
    spec: Spec,
    content: WorkspaceContent,
    opened: Option<Arc<Opened>>,
    /// The usage that was last noted for the status.
    usage: Option<WorkspaceUsage>,
    /// Whether its status says that it was ready, although its content is missing: the object was imported.
    is_imported: bool,
    /// Whether the workspace has been deleted.
    is_gone: bool,
}

/// A workspace.
pub struct Workspace {
    pub name: Text,
    pub uid: Text,
    state: Mutex<WorkspaceState>,
    /// Notified when an awaited copy is complete, or has failed.
    settled: Notify,
    /// Held while the context is being made, so that only one request makes it.
    pub turn: tokio::sync::Mutex<()>,
    /// Observations of the objects of `testing.pintle.dev`.
    pub kept: Arc<KeptObservations>,
}

/// The context of a workspace in use.
pub struct Opened {
    pub edge: Arc<Edge>,
    pub stop: watch::Sender<bool>,
    /// Counts open WebSockets.
    pub open: Arc<OpenCount>,
    pub used: Mutex<Instant>,
    /// Each request and watch holds a clone; without one, the context may be dropped.
    pub requests: Arc<()>,
    /// Each watch holds a clone.
    pub watches: Arc<()>,
    /// Names the workspace in the lines of the log.
    pub span: tracing::Span,
}

/// The content of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkspaceUsage {
    pub objects: usize,
    /// Bytes of the objects as they are stored.
    pub bytes: u64,
}

impl WorkspaceUsage {
    pub fn of(objects: &Objects) -> WorkspaceUsage {
        // a store that does not keep values in memory does not know their size
        let bytes = objects.store().live_bytes().unwrap_or_else(|| objects.bytes());
        WorkspaceUsage { objects: objects.count(), bytes }
    }
}

impl Opened {
    /// Applies the limits of the workspace. Its history may be as large as its objects may be, so it counts at most
    /// as much as they do.
    pub fn limit_to(&self, limits: &Limits) {
        let context = &self.edge.context;
        context.flow.iter().for_each(|flow| flow.limit_to(limits.requests_in_flight));
        context.objects.limit_history((limits.bytes > 0).then_some(limits.bytes as u64));
    }

    pub fn usage(&self) -> WorkspaceUsage {
        WorkspaceUsage::of(&self.edge.context.objects)
    }

    /// The number of watches. Open WebSockets are added, because the request of a watch over a WebSocket ends when
    /// the WebSocket opens.
    pub fn watches(&self) -> usize {
        Arc::strong_count(&self.watches) - 1 + self.open.count()
    }

    /// Whether the context has not been used for the time `after`, and no response is being sent.
    fn is_idle(&self, after: Duration) -> bool {
        Arc::strong_count(&self.requests) == 1 && self.open.count() == 0 && self.used.lock().elapsed() >= after
    }
}

impl WorkspaceState {
    /// The origin of a fork of this workspace into `store`.
    fn fork_of(&self, origin: &Origin, store: Arc<dyn Store>, at: Option<Revision>) -> Origin {
        let objects = match (&self.opened, &self.content) {
            (Some(opened), _) => Arc::downgrade(&opened.edge.context.objects),
            (None, WorkspaceContent::Begun { is_fresh: true, .. }) => origin.objects.clone(),
            _ => Weak::new(),
        };
        Origin { store, objects, at, release: self.spec.release.unwrap_or(origin.release), ..origin.clone() }
    }
}

impl Workspace {
    pub fn with_content(name: &Text, uid: &Text, spec: Spec, content: WorkspaceContent) -> Workspace {
        let state = WorkspaceState { spec, content, opened: None, usage: None, is_imported: false, is_gone: false };
        Workspace {
            name: name.clone(),
            uid: uid.clone(),
            state: Mutex::new(state),
            settled: Notify::new(),
            turn: Default::default(),
            kept: Arc::default(),
        }
    }

    /// Adopts a changed specification: seals the workspace if it is a template now, and resets it if the text of
    /// `reset` differs.
    pub fn change(&self, spec: Spec, log: Option<&dyn Branching>) {
        let mut state = self.state.lock();
        let is_reset = spec.reset != state.spec.reset;
        let is_sealed = spec.template && !state.spec.template;
        state.opened.iter().for_each(|opened| opened.limit_to(&spec.limits));
        state.spec = spec;
        if is_reset {
            let reset = state.spec.reset.clone();
            state.content.reset(&self.uid, reset, log);
            self.kept.reset();
        }
        // a template has no controllers
        let closed = if is_reset || is_sealed { state.opened.take() } else { None };
        drop(state);
        close(closed);
    }

    /// In a shared store: adopts the specification and the content that the Workspace object names.
    pub fn follow(&self, spec: Spec, content: WorkspaceContent) {
        let mut state = self.state.lock();
        let is_sealed = spec.template && !state.spec.template;
        state.opened.iter().for_each(|opened| opened.limit_to(&spec.limits));
        state.spec = spec;
        let is_same = match (&state.content, &content) {
            (WorkspaceContent::Copied { id: old, .. }, WorkspaceContent::Copied { id: new, .. }) => old == new,
            _ => false,
        };
        if !is_same {
            state.content = content;
        }
        let closed = if is_same && !is_sealed { None } else { state.opened.take() };
        drop(state);
        self.settled.notify_waiters();
        close(closed);
    }

    /// Whether the copy of the workspace is not complete yet.
    pub fn is_awaited(&self) -> bool {
        let state = self.state.lock();
        matches!(state.content, WorkspaceContent::Awaited) && !state.is_gone
    }

    /// Waits until the copy of the workspace is complete or has failed. Returns false if that takes longer than
    /// `within`.
    pub async fn settled(&self, within: Duration) -> bool {
        if !self.is_awaited() {
            return true;
        }
        let settled = async {
            loop {
                let mut notified = std::pin::pin!(self.settled.notified());
                // registered before the check, so that no notification is missed
                notified.as_mut().enable();
                if !self.is_awaited() {
                    return;
                }
                notified.await;
            }
        };
        tokio::time::timeout(within, settled).await.is_ok()
    }

    /// In a shared store: the id of the workspace's copy, and the release that it emulates.
    pub fn copy(&self) -> Option<(String, Release)> {
        match &self.state.lock().content {
            WorkspaceContent::Copied { id, release, .. } => Some((id.clone(), *release)),
            _ => None,
        }
    }

    /// Remembers the opened store of a copy, unless another copy has replaced it.
    pub fn set_copy(&self, copy: &str, opened: &Arc<dyn Store>) {
        if let WorkspaceContent::Copied { id, store, .. } = &mut self.state.lock().content
            && id == copy
        {
            *store = Some(opened.clone());
        }
    }

    pub fn limits(&self) -> Limits {
        self.state.lock().spec.limits
    }

    pub fn spec(&self) -> Spec {
        self.state.lock().spec.clone()
    }

    /// The release that the workspace emulates; `None` for the server's, as long as the workspace has not begun.
    pub fn release(&self) -> Option<Release> {
        let state = self.state.lock();
        match state.content {
            WorkspaceContent::Pristine(release) => state.spec.release.or(release),
            _ => state.spec.release,
        }
    }

    /// Why the workspace cannot be used, if it cannot.
    pub fn failure(&self) -> Option<String> {
        match &self.state.lock().content {
            WorkspaceContent::Failed(why) => Some(why.clone()),
            _ => None,
        }
    }

    /// Notes that the status says that the workspace was ready, although its content is missing: the object was
    /// imported.
    pub fn note_import(&self) {
        self.state.lock().is_imported = true;
    }

    /// Whether it is a template into which nothing was written before it was sealed.
    pub fn is_hollow(&self) -> bool {
        let state = self.state.lock();
        state.spec.template && (state.is_imported || matches!(state.content, WorkspaceContent::Pristine(_)))
    }

    /// Waits until the store of the workspace has begun. If the store cannot begin, the workspace fails.
    pub async fn begun(&self) {
        let begins = match &self.state.lock().content {
            WorkspaceContent::Begun { store, .. } => store.clone(),
            _ => return,
        };
        let Err(error) = begins.head().await else { return };
        let why = match error {
            store::StoreError::Unavailable(why) => why,
            other => other.to_string(),
        };
        let content = &mut self.state.lock().content;
        if matches!(content, WorkspaceContent::Begun { store, .. } if Arc::ptr_eq(store, &begins)) {
            *content = WorkspaceContent::Failed(why);
        }
    }

    /// The source for another workspace.
    pub fn fork(&self) -> Result<Fork, String> {
        let state = self.state.lock();
        match &state.content {
            WorkspaceContent::Pristine(release) => Ok(Fork::Empty(state.spec.release.or(*release))),
            WorkspaceContent::Begun { store, origin, .. } => {
                require_begun(&self.name, &**store)?;
                let store = store.fork(0).ok_or("its store cannot be forked")?;
                let at = if state.opened.is_some() { Some(revision_of(&*store)) } else { origin.at };
                Ok(Fork::Of(state.fork_of(origin, store, at)))
            }
            _ => Err(is_not_ready(self.name.as_str())),
        }
    }

    /// Forks the state in which this workspace began, for another workspace in memory.
    pub fn fork_origin(&self, log: Option<&dyn Branching>) -> Result<Fork, String> {
        let state = self.state.lock();
        let release = |of: Option<Release>| state.spec.release.or(of);
        match &state.content {
            WorkspaceContent::Pristine(of) => Ok(Fork::Empty(release(*of))),
            WorkspaceContent::Begun { store, origin, keeping, .. } => {
                require_begun(&self.name, &**store)?;
                let release = release(None).unwrap_or(origin.release);
                let store = match keeping {
                    Keeping::Memory => Some(origin.store.clone()),
                    Keeping::Log => log.and_then(|log| log.origin(self.uid.as_bytes())),
                };
                let store = store.ok_or("its store cannot be forked")?;
                let objects = if origin.at.is_some() { origin.objects.clone() } else { Weak::new() };
                Ok(Fork::Of(Origin { store, release, objects, ..origin.clone() }))
            }
            _ => Err(is_not_ready(self.name.as_str())),
        }
    }

    /// Forks this workspace in the log, for the durable workspace with the given uid. Fails with a one-line message.
    pub fn fork_in_log(&self, log: &dyn Branching, uid: &Text, spec: &Spec) -> Result<Fork, String> {
        let state = self.state.lock();
        let not_forked = || "its store cannot be forked".to_owned();
        let (name, reset) = (self.name.as_str(), spec.reset.clone());
        match &state.content {
            WorkspaceContent::Pristine(release) => {
                let release = state.spec.release.or(*release);
                // the label records the release, because after a restart the source may have begun, or may not exist
                // any more
                let label = Label { release, has_workspaces: false, has_begun: false, reset };
                log.begin(uid.as_bytes(), BranchSource::Nothing, &label.encode()).ok_or_else(not_forked)?;
                Ok(Fork::Empty(release))
            }
            WorkspaceContent::Begun { keeping: Keeping::Memory, .. } => Err(is_ephemeral(name)),
            WorkspaceContent::Begun { store, origin, .. } => {
                let wanted = wanted_revision(name, &**store, spec)?;
                let release = state.spec.release.unwrap_or(origin.release);
                let has_workspaces = origin.has_workspaces;
                let label = Label { release: Some(release), has_workspaces, has_begun: true, reset }.encode();
                let begin = |source| log.begin(uid.as_bytes(), source, &label).ok_or_else(not_forked);
                let id = self.uid.as_bytes();
                match wanted {
                    _ if spec.of_origin => {
                        let objects = if origin.at.is_some() { origin.objects.clone() } else { Weak::new() };
                        let store = begin(BranchSource::Origin(id))?;
                        Ok(Fork::Kept(Origin { store, release, objects, ..origin.clone() }))
                    }
                    WantedRevision::Newest(at) => {
                        let store = begin(BranchSource::Branch(id, at))?;
                        let at = if state.opened.is_some() { None } else { origin.at };
                        Ok(Fork::Kept(state.fork_of(origin, store, at)))
                    }
                    WantedRevision::Earlier(revision) => {
                        let objects = state.opened.as_ref().map(|opened| opened.edge.context.objects.clone());
                        let earlier = later_earlier(name, objects, revision);
                        let store = log.begin_earlier(uid.as_bytes(), Some(id), earlier, &label);
                        let store = store.ok_or_else(not_forked)?;
                        Ok(Fork::Kept(state.fork_of(origin, store, Some(revision))))
                    }
                }
            }
            _ => Err(is_not_ready(name)),
        }
    }

    /// The store, and what is needed to read it; `None` if the workspace has to [begin](Self::begin). Only the first
    /// call returns the decoded objects of the origin, because the store changes afterwards.
    pub fn content(&self) -> Result<Option<Origin>, String> {
        match &mut self.state.lock().content {
            WorkspaceContent::Pristine(_) => Ok(None),
            WorkspaceContent::Begun { store, is_fresh, origin, .. } => {
                let objects = if std::mem::take(is_fresh) { origin.objects.clone() } else { Weak::new() };
                Ok(Some(Origin { store: store.clone(), objects, ..origin.clone() }))
            }
            WorkspaceContent::Failed(why) => Err(why.clone()),
            WorkspaceContent::Copied { .. } | WorkspaceContent::Awaited => {
                Err("its content is being replaced".to_owned())
            }
        }
    }

    /// The stores, for direct writes; `None` if the workspace has not begun or is a copy.
    pub fn kept_stores(&self, log: Option<&dyn Branching>) -> Option<KeptStores> {
        match &mut self.state.lock().content {
            WorkspaceContent::Begun { store, is_fresh, origin, keeping } => {
                *is_fresh = false;
                let kept = match keeping {
                    Keeping::Memory => Some(OriginStore::Fixed(origin.store.clone())),
                    Keeping::Log => log.and_then(|log| log.origin(self.uid.as_bytes())).map(OriginStore::Branch),
                };
                Some(KeptStores { content: store.clone(), origin: kept, layout: origin.layout.clone() })
            }
            _ => None,
        }
    }

    /// Begins as the fork that `fork` makes, unless the workspace has begun or been deleted.
    pub fn begin(&self, fork: impl FnOnce(&Spec) -> Result<Fork, String>) {
        let mut state = self.state.lock();
        if let WorkspaceContent::Pristine(_) = state.content
            && !state.is_gone
        {
            state.content = WorkspaceContent::begin(fork(&state.spec));
        }
    }

    /// The context, if there is one. It is not dropped while the guard exists.
    pub fn enter(&self) -> Option<(Arc<Opened>, Arc<()>)> {
        let opened = self.state.lock().opened.clone()?;
        *opened.used.lock() = clock::instant();
        let guard = opened.requests.clone();
        Some((opened, guard))
    }

    /// The objects, while the workspace is in use.
    pub fn objects(&self) -> Option<Arc<Objects>> {
        self.state.lock().opened.as_ref().map(|opened| opened.edge.context.objects.clone())
    }

    /// Sets the context. If the workspace has been deleted meanwhile, or reset so that `store` is no longer its own,
    /// closes the context instead.
    pub fn set_opened(&self, opened: Arc<Opened>, store: &Arc<dyn Store>) {
        let mut state = self.state.lock();
        let is_current = match &state.content {
            WorkspaceContent::Begun { store: own, .. } | WorkspaceContent::Copied { store: Some(own), .. } => {
                Arc::ptr_eq(own, store)
            }
            _ => false,
        };
        if is_current && !state.is_gone {
            state.opened = Some(opened);
            if let WorkspaceContent::Begun { origin, .. } = &mut state.content {
                origin.is_complete = true;
            }
        } else {
            drop(state);
            close(Some(opened));
        }
    }

    /// Ends the workspace for good, and its context with it.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.is_gone = true;
        let opened = state.opened.take();
        drop(state);
        self.settled.notify_waiters();
        close(opened);
    }

    /// Notes the usage of the workspace, if it is in use. Returns whether the usage has changed.
    pub fn note_usage(&self) -> bool {
        let mut state = self.state.lock();
        let Some(usage) = state.opened.as_ref().map(|opened| opened.usage()) else { return false };
        state.usage.replace(usage) != Some(usage)
    }

    /// The usage of the workspace when it was last noted.
    pub fn usage(&self) -> Option<WorkspaceUsage> {
        self.state.lock().usage
    }

    /// Drops the context if it has been idle for the time `after`.
    pub fn rest(&self, after: Duration) {
        let idle = self.state.lock().opened.take_if(|opened| opened.is_idle(after));
        close(idle);
    }
}

/// The content of a workspace at an earlier revision, if it still has that history. Fails with a one-line message.
pub fn earlier(name: &str, objects: Option<&Arc<Objects>>, revision: Revision) -> Result<Snapshot, String> {
    // the history is lost when an idle workspace drops its context
    let snapshot = objects.and_then(|objects| objects.snapshot_at(revision));
    snapshot.ok_or_else(|| not_kept(name, &revision.to_string()))
}

/// Defers [`earlier`] until it is called, in the thread of the caller.
pub fn later_earlier(name: &str, objects: Option<Arc<Objects>>, revision: Revision) -> store::Earlier {
    let name = name.to_owned();
    Box::new(move || earlier(&name, objects.as_ref(), revision))
}

/// The message if an earlier revision is no longer in the history.
pub fn not_kept(name: &str, revision: &str) -> String {
    format!("workspace {name:?} does not keep what it held at resourceVersion {revision}")
}

/// Fails with a one-line message unless the store has begun.
fn require_begun(name: &str, store: &dyn Store) -> Result<(), String> {
    match store.head().now_or_never() {
        Some(Ok(_)) => Ok(()),
        _ => Err(is_not_ready(name)),
    }
}

fn is_not_ready(name: &str) -> String {
    format!("workspace {name:?} is not ready")
}

/// The message if a durable fork of an ephemeral workspace is asked for.
pub fn is_ephemeral(name: &str) -> String {
    format!("workspace {name:?} is ephemeral, so a fork of it has to be ephemeral too: set spec.ephemeral to true")
}

/// Ends the watches and controllers of a context.
fn close(opened: Option<Arc<Opened>>) {
    if let Some(opened) = opened {
        opened.stop.send_replace(true);
    }
}

impl WorkspaceContent {
    /// The content of a workspace that begins as a fork, or the reason why it cannot begin.
    pub fn begin(fork: Result<Fork, String>) -> WorkspaceContent {
        let (store, origin, keeping) = match fork {
            Ok(Fork::Empty(release)) => return WorkspaceContent::Pristine(release),
            Ok(Fork::Of(origin)) => match origin.store.fork(0) {
                Some(store) => (store, origin, Keeping::Memory),
                None => return WorkspaceContent::Failed("the store of the source cannot be forked".to_owned()),
            },
            Ok(Fork::Kept(origin)) => (origin.store.clone(), origin, Keeping::Log),
            Err(why) => return WorkspaceContent::Failed(why),
        };
        WorkspaceContent::Begun { store, is_fresh: true, origin, keeping }
    }

    /// Returns to the origin. The next revision is later than any that clients have seen, so earlier watches and
    /// continue tokens expire.
    fn reset(&mut self, uid: &Text, reset: String, log: Option<&dyn Branching>) {
        let WorkspaceContent::Begun { store, is_fresh, origin, keeping } = self else { return };
        let fresh = match keeping {
            Keeping::Memory => origin.store.fork(revision_of(&**store) + 1),
            Keeping::Log => {
                let Origin { release, has_workspaces, .. } = *origin;
                let label = Label { release: Some(release), has_workspaces, has_begun: true, reset };
                log.and_then(|log| log.reset(uid.as_bytes(), &label.encode()))
            }
        };
        let Some(fresh) = fresh else { return };
        *store = fresh;
        *is_fresh = true;
        if *keeping == Keeping::Log {
            origin.store = store.clone();
            if origin.at.is_none() {
                // the revisions of the objects in memory differ from the store's, which begins at a later one
                origin.objects = Weak::new();
            }
        }
    }
}
