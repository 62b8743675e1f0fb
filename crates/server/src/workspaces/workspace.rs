//! A workspace: what it is to be, its store, and its context while it is used.

use std::sync::{Arc, Weak};
use std::time::Duration;

use base::clock;
use futures_util::FutureExt as _;
use machinery::{Release, Text};
use objects::{Frozen, Layout, Objects};
use parking_lot::Mutex;
use store::{Revision, Store};
use tokio::sync::watch;
use tokio::time::Instant;

use super::definition::Spec;
use crate::http::{Edge, OpenCount};

/// The store that a workspace begins from, and how it is to be read.
#[derive(Clone)]
pub struct Origin {
    pub store: Arc<dyn Store>,
    pub layout: Layout,
    pub release: Release,
    /// Whether the store has the objects of workspaces, which are to be seen in `default` only.
    pub has_workspaces: bool,
    /// The objects of the source, which has those of the store at its revision, as long as they are in memory.
    pub objects: Weak<Objects>,
    /// The revision of the source at which it was forked.
    pub at: Revision,
}

impl Origin {
    /// The objects of the store, if they need not be decoded. `default` shows its workspaces, so its forks decode their own.
    pub async fn frozen(&self) -> Option<Frozen> {
        if self.has_workspaces {
            return None;
        }
        self.objects.upgrade()?.frozen_at(self.at).await
    }
}

/// The newest revision of a store in memory, which responds at once.
pub fn revision_of(store: &dyn Store) -> Revision {
    store.head().now_or_never().and_then(Result::ok).unwrap_or_default()
}

/// What a workspace begins from.
pub enum Fork {
    /// An API without objects of users, which emulates this release, or that of the server.
    Empty(Option<Release>),
    Of(Origin),
}

/// The content of a workspace.
enum WorkspaceContent {
    /// An API without objects of users, which has not been used yet, and the release of its source.
    Pristine(Option<Release>),
    Begun {
        store: Arc<dyn Store>,
        /// Whether the store has not changed since it was forked from that of the origin.
        is_fresh: bool,
        /// What the workspace began from, for resets.
        origin: Origin,
    },
    /// It cannot begin, for this reason.
    Failed(String),
}

struct WorkspaceState {
    spec: Spec,
    content: WorkspaceContent,
    opened: Option<Arc<Opened>>,
    /// Whether the workspace has been deleted.
    is_gone: bool,
}

/// A workspace.
pub struct Workspace {
    pub name: Text,
    pub uid: Text,
    state: Mutex<WorkspaceState>,
    /// Held while the context is being made.
    pub turn: tokio::sync::Mutex<()>,
}

/// The context of a workspace that is used.
pub struct Opened {
    pub edge: Arc<Edge>,
    pub stop: watch::Sender<bool>,
    /// WebSockets.
    pub open: Arc<OpenCount>,
    pub used: Mutex<Instant>,
    /// Cloned by each request and watch.
    pub requests: Arc<()>,
    /// Cloned by each watch.
    pub watches: Arc<()>,
}

impl Opened {
    /// The number of watches.
    pub fn watches(&self) -> usize {
        Arc::strong_count(&self.watches) - 1
    }

    /// Whether it has not been used for some time, and no response is being sent.
    fn is_idle(&self, after: Duration) -> bool {
        Arc::strong_count(&self.requests) == 1 && self.open.count() == 0 && self.used.lock().elapsed() >= after
    }
}

impl Workspace {
    /// A workspace begins: `fork` forks its source.
    pub fn new(name: &Text, uid: &Text, spec: Spec, fork: impl FnOnce(&Spec) -> Result<Fork, String>) -> Workspace {
        let content = match fork(&spec) {
            Ok(Fork::Empty(release)) => WorkspaceContent::Pristine(release),
            Ok(Fork::Of(origin)) => WorkspaceContent::of(origin),
            Err(why) => WorkspaceContent::Failed(why),
        };
        let state = WorkspaceState { spec, content, opened: None, is_gone: false };
        Workspace { name: name.clone(), uid: uid.clone(), state: Mutex::new(state), turn: Default::default() }
    }

    /// Takes another specification: seals a template, or resets the workspace if its text asks for it.
    pub fn change(&self, spec: Spec) {
        let mut state = self.state.lock();
        let is_reset = spec.reset != state.spec.reset;
        let is_sealed = spec.template && !state.spec.template;
        state.spec = spec;
        if is_reset {
            state.content.reset();
        }
        // a template has no controllers
        let closed = if is_reset || is_sealed { state.opened.take() } else { None };
        drop(state);
        close(closed);
    }

    pub fn spec(&self) -> Spec {
        self.state.lock().spec.clone()
    }

    /// The release that the workspace emulates, unless it is that of the server, before it has begun.
    pub fn release(&self) -> Option<Release> {
        let state = self.state.lock();
        match state.content {
            WorkspaceContent::Pristine(release) => state.spec.release.or(release),
            _ => state.spec.release,
        }
    }

    /// Why the workspace cannot be used, if so.
    pub fn failure(&self) -> Option<String> {
        match &self.state.lock().content {
            WorkspaceContent::Failed(why) => Some(why.clone()),
            _ => None,
        }
    }

    /// What another workspace begins from.
    pub fn fork(&self) -> Result<Fork, String> {
        let state = self.state.lock();
        match &state.content {
            WorkspaceContent::Pristine(release) => Ok(Fork::Empty(state.spec.release.or(*release))),
            WorkspaceContent::Begun { store, is_fresh, origin } => {
                let objects = match &state.opened {
                    Some(opened) => Arc::downgrade(&opened.edge.context.objects),
                    None if *is_fresh => origin.objects.clone(),
                    None => Weak::new(),
                };
                let store = store.fork(0).ok_or("its store cannot be forked")?;
                let at = if state.opened.is_some() { revision_of(&*store) } else { origin.at };
                let release = state.spec.release.unwrap_or(origin.release);
                Ok(Fork::Of(Origin { store, objects, at, release, ..origin.clone() }))
            }
            WorkspaceContent::Failed(_) => Err(format!("workspace {:?} is not ready", self.name.as_str())),
        }
    }

    /// The store, and how it is read; `None` if the workspace has to [begin](Self::begin). Objects that are in memory already are
    /// returned once, since the store changes afterwards.
    pub fn content(&self) -> Result<Option<Origin>, String> {
        match &mut self.state.lock().content {
            WorkspaceContent::Pristine(_) => Ok(None),
            WorkspaceContent::Begun { store, is_fresh, origin } => {
                let objects = if std::mem::take(is_fresh) { origin.objects.clone() } else { Weak::new() };
                Ok(Some(Origin { store: store.clone(), objects, ..origin.clone() }))
            }
            WorkspaceContent::Failed(why) => Err(why.clone()),
        }
    }

    /// Begins as a fork.
    pub fn begin(&self, origin: Origin) {
        let mut state = self.state.lock();
        if let WorkspaceContent::Pristine(_) = state.content {
            state.content = WorkspaceContent::of(origin);
        }
    }

    /// The context, if there is one, with a guard for the time that it is used.
    pub fn enter(&self) -> Option<(Arc<Opened>, Arc<()>)> {
        let opened = self.state.lock().opened.clone()?;
        *opened.used.lock() = clock::instant();
        let guard = opened.requests.clone();
        Some((opened, guard))
    }

    /// Sets the context, unless the workspace has been deleted meanwhile, or reset: then `store` is not its own any more.
    pub fn set_opened(&self, opened: Arc<Opened>, store: &Arc<dyn Store>) {
        let mut state = self.state.lock();
        let is_current =
            matches!(&state.content, WorkspaceContent::Begun { store: own, .. } if Arc::ptr_eq(own, store));
        if is_current && !state.is_gone {
            state.opened = Some(opened);
        } else {
            drop(state);
            close(Some(opened));
        }
    }

    /// Ends the workspace.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.is_gone = true;
        let opened = state.opened.take();
        drop(state);
        close(opened);
    }

    /// Drops the context if no request uses it.
    pub fn rest(&self, after: Duration) {
        let idle = self.state.lock().opened.take_if(|opened| opened.is_idle(after));
        close(idle);
    }
}

/// Ends watches and controllers.
fn close(opened: Option<Arc<Opened>>) {
    if let Some(opened) = opened {
        opened.stop.send_replace(true);
    }
}

impl WorkspaceContent {
    fn of(origin: Origin) -> WorkspaceContent {
        match origin.store.fork(0) {
            Some(store) => WorkspaceContent::Begun { store, is_fresh: true, origin },
            None => WorkspaceContent::Failed("the store of the source cannot be forked".to_owned()),
        }
    }

    /// Goes back to the origin. Its revision is later than any that clients have seen, so that watches and continue tokens from
    /// before have expired.
    fn reset(&mut self) {
        if let WorkspaceContent::Begun { store, is_fresh, origin } = self {
            let head = revision_of(&**store);
            if let Some(fresh) = origin.store.fork(head + 1) {
                (*store, *is_fresh) = (fresh, true);
            }
        }
    }
}
