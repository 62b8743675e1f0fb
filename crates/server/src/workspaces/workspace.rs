//! A workspace: its specification, its store, and its context while it is used.

use std::sync::Arc;
use std::time::Duration;

use base::clock;
use machinery::{Release, Text, Value};
use objects::Objects;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::backing::{Backing, BegunSource, Declared, ForkSource, Forking, SourceUse, Sources};
use super::content::{Begun, Contents};
use super::definition::{Limits, Spec};
use super::unusable::Unusable;
use crate::http::{Edge, OpenCount};
use crate::testing::KeptObservations;

struct WorkspaceState {
    spec: Spec,
    content: Contents,
    opened: Option<Arc<Opened>>,
    /// The usage that was last noted for the status.
    usage: Option<WorkspaceUsage>,
    /// Whether its status says that it was ready, although its content is missing: the object was imported.
    is_imported: bool,
    /// Whether the workspace has been deleted.
    is_gone: bool,
}

pub struct Workspace {
    pub name: Text,
    pub uid: Text,
    pub backing: Arc<dyn Backing>,
    /// Requests, the observer of `default` and the controller take this lock for a moment. A fork is made while its
    /// source is locked, so that the source cannot be opened, and changed, meanwhile. No lock of the manager or of
    /// another workspace is taken inside.
    state: Mutex<WorkspaceState>,
    /// Notified when an awaited copy is complete, or has failed.
    settled: watch::Sender<()>,
    /// Held while the context is being made, so that only one request makes it.
    pub turn: tokio::sync::Mutex<()>,
    /// Observations of the objects of `testing.pintle.dev`.
    pub observations: Arc<KeptObservations>,
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

/// A context that is entered: it is not dropped while the guard exists.
pub struct Entered {
    pub opened: Arc<Opened>,
    pub guard: Arc<()>,
}

impl Entered {
    pub fn of(opened: Arc<Opened>) -> Entered {
        Entered { guard: opened.requests.clone(), opened }
    }
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

impl Workspace {
    pub fn new(name: &Text, uid: &Text, spec: Spec, backing: Arc<dyn Backing>, content: Contents) -> Workspace {
        let state = WorkspaceState { spec, content, opened: None, usage: None, is_imported: false, is_gone: false };
        Workspace {
            name: name.clone(),
            uid: uid.clone(),
            backing,
            state: Mutex::new(state),
            settled: watch::Sender::new(()),
            turn: Default::default(),
            observations: Arc::default(),
        }
    }

    /// Adopts a changed object: seals the workspace if it is a template now, resets it if the text of `reset` differs,
    /// and adopts the copy that the status names.
    pub fn change(&self, spec: Spec, object: &Value) {
        let mut state = self.state.lock();
        let is_sealed = spec.template && !state.spec.template;
        state.opened.iter().for_each(|opened| opened.limit_to(&spec.limits));
        let former = std::mem::replace(&mut state.spec, spec);
        let WorkspaceState { spec, content, .. } = &mut *state;
        let is_reset = spec.reset != former.reset;
        let is_replaced = self.backing.follow(&Declared { uid: &self.uid, spec, object }, &former, content);
        // a copy may be served by other servers as well, whose observations remain
        if is_reset && matches!(content, Contents::Empty(_) | Contents::Begun(_)) {
            self.observations.reset();
        }
        // a template has no controllers
        let closed = if is_replaced || is_sealed { state.opened.take() } else { None };
        drop(state);
        self.settled.send_replace(());
        close(closed);
    }

    /// Whether the copy of the workspace is not complete yet.
    pub fn is_awaited(&self) -> bool {
        let state = self.state.lock();
        matches!(state.content, Contents::Awaited) && !state.is_gone
    }

    /// Waits until the copy of the workspace is complete or has failed. Returns false if that takes longer than
    /// `within`.
    pub async fn settled(&self, within: Duration) -> bool {
        let mut settled = self.settled.subscribe();
        !self.is_awaited() || tokio::time::timeout(within, settled.wait_for(|()| !self.is_awaited())).await.is_ok()
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
            Contents::Empty(release) => state.spec.release.or(release),
            _ => state.spec.release,
        }
    }

    /// Why the workspace cannot be used, if it cannot.
    pub fn failure(&self) -> Option<String> {
        match &self.state.lock().content {
            Contents::Failed(why) => Some(why.to_string()),
            _ => None,
        }
    }

    /// Notes that the status says that the workspace was ready, although its content is missing: the object was
    /// imported.
    pub fn note_import(&self) {
        self.state.lock().is_imported = true;
    }

    /// Whether it is a template into which nothing was written before it was sealed.
    pub fn is_empty_template(&self) -> bool {
        let state = self.state.lock();
        state.spec.template && (state.is_imported || matches!(state.content, Contents::Empty(_)))
    }

    /// Waits until the store of the workspace has begun. If the store cannot begin, the workspace fails.
    pub async fn begun(&self) {
        let content = self.state.lock().content.clone();
        let Contents::Begun(begun) = &content else { return };
        let Err(error) = begun.store.head().await else { return };
        let why = match error {
            store::StoreError::Unavailable(why) => why,
            other => other.to_string(),
        };
        let now = &mut self.state.lock().content;
        if now.is_same(&content) {
            *now = Contents::Failed(why.into());
        }
    }

    /// Calls `fork` with the workspace as the source of another one.
    pub fn fork(&self, spec: &Spec, fork: &mut Forking<'_>) -> Result<Contents, Unusable> {
        let state = self.state.lock();
        match &state.content {
            Contents::Empty(release) => fork(ForkSource::Empty(state.spec.release.or(*release))),
            Contents::Begun(begun) => {
                let release = state.spec.release.unwrap_or(begun.release);
                let begun = Begun { release, ..begun.clone() };
                let (name, branch, point) = (self.name.as_str(), Some(self.uid.as_bytes()), spec.fork_point);
                let in_use = |opened: &Arc<Opened>| SourceUse::InUse(opened.edge.context.objects.clone());
                let activity = state.opened.as_ref().map_or(SourceUse::Idle, in_use);
                fork(ForkSource::Begun(BegunSource { name, branch, begun, activity, point }))
            }
            _ => Err(Unusable::NotReady(self.name.to_string())),
        }
    }

    /// The content, for a caller that may change it: only the first one gets a content that is unchanged.
    pub fn content(&self) -> Contents {
        let mut state = self.state.lock();
        let content = state.content.clone();
        if let Contents::Begun(begun) = &mut state.content {
            begun.is_fresh = false;
        }
        content
    }

    /// Begins with what the source holds, unless the workspace has begun or been deleted.
    pub fn begin(&self, source: &dyn Sources) {
        let mut state = self.state.lock();
        if let Contents::Empty(_) = state.content
            && !state.is_gone
        {
            let declared = Declared { uid: &self.uid, spec: &state.spec, object: &Value::Null };
            state.content = self.backing.begin(&declared, source).unwrap_or_else(Contents::Failed);
        }
    }

    /// Enters the context, if there is one.
    pub fn enter(&self) -> Option<Entered> {
        let opened = self.state.lock().opened.clone()?;
        *opened.used.lock() = clock::instant();
        Some(Entered::of(opened))
    }

    /// Sets the context that was made for `content`. If the workspace has been deleted or reset meanwhile, closes the
    /// context instead.
    pub fn set_opened(&self, opened: Arc<Opened>, content: &Contents) {
        let mut state = self.state.lock();
        if state.content.is_same(content) && !state.is_gone {
            state.opened = Some(opened);
            if let Contents::Begun(begun) = &mut state.content {
                begun.is_complete = true;
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
        self.settled.send_replace(());
        close(opened);
    }

    /// Notes the usage of the workspace, if it is in use. Returns whether the usage has changed.
    pub fn note_usage(&self) -> bool {
        let mut state = self.state.lock();
        let usage = state.opened.as_ref().map(|opened| WorkspaceUsage::of(&opened.edge.context.objects));
        let Some(usage) = usage else {
            return false;
        };
        state.usage.replace(usage) != Some(usage)
    }

    pub fn usage(&self) -> Option<WorkspaceUsage> {
        self.state.lock().usage
    }

    /// Drops the context if it has been idle for the time `after`.
    pub fn drop_idle(&self, after: Duration) {
        let idle = self.state.lock().opened.take_if(|opened| opened.is_idle(after));
        close(idle);
    }
}

/// Ends the watches and controllers of a context.
fn close(opened: Option<Arc<Opened>>) {
    if let Some(opened) = opened {
        opened.stop.send_replace(true);
    }
}
