//! Objects of `testing.pintle.dev`, with which the API of a workspace misbehaves as real ones do (faults, gates of
//! watches), waits until nothing happens any more, shows another time, reports what its clients have done, and
//! records their requests.
//!
//! Only a server with `--testing` has them. Lower rooms know only an [`Interceptor`] and the [`Deliveries`] of a
//! watch. While no object needs more, a request costs an atomic load, two additions and its entry in the counters
//! of the report, and a watch costs its entry in a list.

mod checking;
mod choice;
mod clock;
mod controller;
mod definition;
mod deliveries;
mod fault;
mod gate;
mod intercept;
mod matching;
mod queue;
mod record;
mod repeats;
mod report;
mod settle;
mod state;
#[cfg(test)]
mod tests;
mod trigger;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use base::clock::WorkspaceClock;
use base::task;
use machinery::{Result, Value};
use objects::{Event, EventKind, Key, Objects};
use parking_lot::Mutex;
use store::Revision;
use tokio::sync::{Notify, watch};

use crate::assembly::{Assembled, Observer};
use crate::controllers::ControllerManager;
use crate::http::Interceptor;
use crate::verbs::{self, Context};

use definition::{CLOCKS, FAULTS, GATES, GROUP, definitions};
use intercept::Hook;
pub use record::COMPARED_HEADERS;
use record::RunningRecording;
use report::Tally;
pub use report::{report_checks, report_meanings};
use state::TestState;

/// The objects of `testing.pintle.dev` of one workspace, and their effects.
#[derive(Default)]
pub struct Testing {
    /// The time limit of requests, which waits must stay below.
    request_timeout: Duration,
    context: OnceLock<Weak<Context>>,
    controllers: OnceLock<Weak<ControllerManager>>,
    /// Whether any object may concern a request.
    active: AtomicBool,
    /// Requests in flight, except watches and requests of this group.
    in_flight: AtomicUsize,
    state: Arc<Mutex<TestState>>,
    kept: Arc<KeptObservations>,
    /// Whether anything is being recorded.
    records: AtomicBool,
    recorder: Mutex<Option<Arc<RunningRecording>>>,
    clock: Arc<WorkspaceClock>,
    /// Whether a Clock has existed.
    had_clock: AtomicBool,
    /// Notified when the status of an object has changed.
    has_changed: Notify,
    /// Held while statuses are being written.
    reporting: tokio::sync::Mutex<()>,
}

/// Outlives the context of a workspace, which is dropped while no request uses it.
#[derive(Default)]
pub struct KeptObservations {
    /// The counters for the report.
    tally: Mutex<Tally>,
    /// The faults of the last context, with what they have counted.
    state: Mutex<Arc<Mutex<TestState>>>,
}

impl KeptObservations {
    /// Forgets the faults, since the workspace begins with other objects.
    pub fn reset(&self) {
        *self.state.lock() = Arc::default();
    }
}

impl Testing {
    pub fn new(request_timeout: Duration, kept: Arc<KeptObservations>) -> Arc<Testing> {
        let clock: Arc<WorkspaceClock> = Arc::default();
        let mut state = TestState::new(clock.clone());
        // a lock of its own, since the earlier context may still be ending
        state.earlier = std::mem::take(&mut kept.state.lock().lock().faults);
        let state = Arc::new(Mutex::new(state));
        *kept.state.lock() = state.clone();
        Arc::new(Testing { request_timeout, state, kept, clock, ..Testing::default() })
    }

    /// The observer of the workspace.
    pub fn observer(self: &Arc<Self>) -> Observer {
        let testing = Arc::downgrade(self);
        Box::new(move |objects: &Objects, key, event| {
            if let Some(testing) = testing.upgrade() {
                testing.observe(objects, key, event);
            }
        })
    }

    /// The interceptor of the workspace.
    pub fn interceptor(self: Arc<Self>) -> Arc<dyn Interceptor> {
        Arc::new(Hook(self))
    }

    pub fn clock(&self) -> &Arc<WorkspaceClock> {
        &self.clock
    }

    fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    fn context(&self) -> Option<Arc<Context>> {
        self.context.get()?.upgrade()
    }

    /// Changes the state, and updates what is derived from it.
    fn change<T>(&self, change: impl FnOnce(&mut TestState) -> T) -> T {
        let mut state = self.state.lock();
        let changed = change(&mut state);
        state.pump();
        self.active.store(state.is_active(), Ordering::Release);
        if state.has_changed() {
            self.has_changed.notify_one();
        }
        changed
    }

    /// Follows the objects of the workspace. An object is in effect before the request that created it returns.
    fn observe(&self, objects: &Objects, key: &Key, event: &Event) {
        if key.group != GROUP {
            if self.is_active() {
                self.change(|state| state.written(key, event));
            }
            return;
        }
        let (name, is_gone) = (&key.path, event.kind == EventKind::Deleted);
        let object = event.object.body.to_value(event.revision);
        match key.plural.as_str() {
            FAULTS if is_gone => self.change(|state| state.remove_fault(name)),
            FAULTS => self.change(|state| state.set_fault(name, &object, event.revision)),
            GATES if is_gone => self.change(|state| state.remove_gate(name)),
            GATES => self.change(|state| state.set_gate(name, &object)),
            CLOCKS => self.observe_clock((!is_gone).then_some(&object), objects.revision()),
            _ => {}
        }
    }
}

impl Testing {
    /// Follows the Clock, if there is one.
    fn observe_clock(&self, object: Option<&Value>, revision: Revision) {
        // resets the uids when clients create their first Clock, so that they are the same as in any other
        // workspace
        let is_first = !self.had_clock.swap(true, Ordering::AcqRel) && self.context.get().is_some();
        self.clock.seed(object.and_then(clock::seed_of), if is_first { 0 } else { revision });
        let reading = object.and_then(clock::reading_of);
        if reading != self.clock.reading() {
            self.clock.set(reading);
        }
    }
}

/// Puts the objects of this group into effect in a context, until `stop` becomes true.
pub fn start(testing: &Arc<Testing>, assembled: &Assembled, stop: watch::Receiver<bool>) {
    let _ = testing.context.set(Arc::downgrade(&assembled.context));
    let _ = testing.controllers.set(Arc::downgrade(&assembled.controllers));
    base::clock::scoped(Some(&testing.clock), || task::spawn("testing", controller::run(testing.clone(), stop)));
}

/// Creates the kinds of this group with `--testing`; without it, removes those of an earlier run.
pub async fn keep_kinds(is_on: bool, context: &Context) -> Result<()> {
    if is_on {
        return verbs::keep_definitions(context, definitions()?).await;
    }
    if context.registry.get(GROUP, FAULTS).is_none() {
        return Ok(());
    }
    tracing::warn!("testing is off: the objects of testing.pintle.dev that an earlier run has left are removed");
    verbs::remove_definitions(context, &definitions()?).await
}
