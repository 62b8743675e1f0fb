//! A workspace: what it is to be, its store, and its context while it is used.

use std::sync::Arc;
use std::time::Duration;

use base::clock;
use futures_util::FutureExt as _;
use machinery::{Release, Text};
use objects::Layout;
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
}

impl Origin {
    /// The newest revision.
    pub fn revision(&self) -> Revision {
        // stores in memory respond at once
        self.store.head().now_or_never().and_then(Result::ok).unwrap_or_default()
    }
}

/// The content of a workspace.
enum Beginning {
    /// An API without objects of users, which has not been used yet.
    Pristine,
    Begun {
        store: Arc<dyn Store>,
        /// What the workspace began from, for resets.
        origin: Origin,
    },
    /// It cannot begin, for this reason.
    Failed(String),
}

struct WorkspaceState {
    spec: Spec,
    content: Beginning,
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
    pub fn new(
        name: &Text,
        uid: &Text,
        spec: Spec,
        fork: impl FnOnce(&Spec) -> Result<Option<Origin>, String>,
    ) -> Workspace {
        let content = match fork(&spec) {
            Ok(None) => Beginning::Pristine,
            Ok(Some(origin)) => Beginning::of(origin),
            Err(why) => Beginning::Failed(why),
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

    /// Why the workspace cannot be used, if so.
    pub fn failure(&self) -> Option<String> {
        match &self.state.lock().content {
            Beginning::Failed(why) => Some(why.clone()),
            _ => None,
        }
    }

    /// What another workspace begins from; `None` if that is an empty API.
    pub fn fork(&self) -> Result<Option<Origin>, String> {
        match &self.state.lock().content {
            Beginning::Pristine => Ok(None),
            Beginning::Begun { store, origin } => {
                let store = store.fork(0).ok_or("its store cannot be forked")?;
                Ok(Some(Origin { store, ..origin.clone() }))
            }
            Beginning::Failed(_) => Err(format!("workspace {:?} is not ready", self.name.as_str())),
        }
    }

    /// The store, and how it is read; `None` if the workspace has to [begin](Self::begin).
    pub fn content(&self) -> Result<Option<Origin>, String> {
        match &self.state.lock().content {
            Beginning::Pristine => Ok(None),
            Beginning::Begun { store, origin } => Ok(Some(Origin { store: store.clone(), ..origin.clone() })),
            Beginning::Failed(why) => Err(why.clone()),
        }
    }

    /// Begins as a fork.
    pub fn begin(&self, origin: Origin) {
        let mut state = self.state.lock();
        if let Beginning::Pristine = state.content {
            state.content = Beginning::of(origin);
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
        let is_current = matches!(&state.content, Beginning::Begun { store: own, .. } if Arc::ptr_eq(own, store));
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

impl Beginning {
    fn of(origin: Origin) -> Beginning {
        match origin.store.fork(0) {
            Some(store) => Beginning::Begun { store, origin },
            None => Beginning::Failed("the store of the source cannot be forked".to_owned()),
        }
    }

    /// Goes back to the origin. Its revision is later than any that clients have seen, so that watches and continue tokens from
    /// before have expired.
    fn reset(&mut self) {
        if let Beginning::Begun { store, origin } = self {
            let head = Origin { store: store.clone(), ..origin.clone() }.revision();
            if let Some(fresh) = origin.store.fork(head + 1) {
                *store = fresh;
            }
        }
    }
}
