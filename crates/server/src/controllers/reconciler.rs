//! The loop that all controllers share: wait for an event or a time, then bring the state to what objects declare.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use base::clock::Follower;
use futures_util::future::BoxFuture;
use objects::{Event, Key};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::verbs::Context;

/// The interface of a controller.
pub trait Controller: Send + Sync {
    /// The name of its task.
    fn name(&self) -> &'static str;

    /// Receives every event, in order, whether or not the controller runs on this server. Returns whether there is work.
    fn observe(&self, key: &Key, event: &Event) -> bool;

    /// Runs until `stop` becomes true.
    fn run(self: Arc<Self>, context: Arc<Context>, stop: watch::Receiver<bool>) -> BoxFuture<'static, ()>;

    /// Whether the controller, which runs, has work that it has observed and not finished, such as a retry or the end
    /// of a grace period. What a timer makes due much later, such as an expiry, is no work yet.
    fn is_busy(&self) -> bool;

    /// Ends a pause that only lets events in quick succession be handled together.
    fn hurry(&self) {}

    /// Does the work that there is, instead of running.
    fn work<'a>(&'a self, context: &'a Arc<Context>) -> BoxFuture<'a, ()>;

    /// Receives another CA bundle of the server (PEM), for controllers that publish it. Returns whether there is work.
    fn set_root_authority(&self, _authority: &str) -> bool {
        false
    }
}

/// A controller whose work consists of passes.
pub trait Reconciler: Send + Sync + 'static {
    const NAME: &'static str;
    /// A pass begins when no event has come for the first of these times, and at the latest after the second, so that events
    /// in quick succession are handled together.
    const SETTLED: [Duration; 2] = [Duration::ZERO; 2];
    /// Whether the pass that a pass asks for finishes its work, as a retry does, and is not what a timer makes due.
    const RESUMES: bool = true;

    /// State of one run, kept from pass to pass.
    type Memory: Default + Send;

    /// Receives every event, in order, and returns whether it calls for a pass.
    fn observe(&self, key: &Key, event: &Event) -> bool;

    /// Makes a pass. Returns the time after which the next one is due even if no event calls for it.
    fn reconcile(
        &self,
        context: &Arc<Context>,
        stop: &watch::Receiver<bool>,
        memory: &mut Self::Memory,
    ) -> impl Future<Output = Option<Duration>> + Send;

    /// Receives another CA bundle of the server (PEM), and returns whether it calls for a pass.
    fn set_root_authority(&self, _authority: &str) -> bool {
        false
    }
}

struct Reconciling<R> {
    reconciler: R,
    wake: Notify,
    /// Ends [`Reconciling::settled`].
    hurry: Notify,
    /// The number of events that called for a pass, and how many of them passes have handled.
    calls: AtomicU64,
    handled: AtomicU64,
    /// Whether a pass is being made, or finishes its work in the next one.
    passes: AtomicBool,
}

pub fn controller(reconciler: impl Reconciler) -> Arc<dyn Controller> {
    let (calls, handled, passes) = Default::default();
    Arc::new(Reconciling { reconciler, wake: Notify::new(), hurry: Notify::new(), calls, handled, passes })
}

impl<R: Reconciler> Reconciling<R> {
    async fn settled(&self) {
        let [quiet, most] = R::SETTLED;
        if most > Duration::ZERO {
            let settled = async { while tokio::time::timeout(quiet, self.wake.notified()).await.is_ok() {} };
            tokio::select! {
                _ = tokio::time::timeout(most, settled) => {}
                () = self.hurry.notified() => {}
            }
        }
    }

    fn call(&self) {
        self.calls.fetch_add(1, Ordering::AcqRel);
        self.wake.notify_one();
    }

    async fn pass(
        &self,
        context: &Arc<Context>,
        stop: &watch::Receiver<bool>,
        memory: &mut R::Memory,
    ) -> Option<Duration> {
        let calls = self.calls.load(Ordering::Acquire);
        self.passes.store(true, Ordering::Release);
        let again = self.reconciler.reconcile(context, stop, memory).await;
        self.passes.store(R::RESUMES && again.is_some(), Ordering::Release);
        self.handled.store(calls, Ordering::Release);
        again
    }
}

impl<R: Reconciler> Controller for Reconciling<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn observe(&self, key: &Key, event: &Event) -> bool {
        let has_work = self.reconciler.observe(key, event);
        if has_work {
            self.call();
        }
        has_work
    }

    fn is_busy(&self) -> bool {
        self.passes.load(Ordering::Acquire) || self.handled.load(Ordering::Acquire) < self.calls.load(Ordering::Acquire)
    }

    fn hurry(&self) {
        self.hurry.notify_waiters();
    }

    fn work<'a>(&'a self, context: &'a Arc<Context>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let (_, stop) = watch::channel(false);
            self.reconciler.reconcile(context, &stop, &mut R::Memory::default()).await;
        })
    }

    fn run(self: Arc<Self>, context: Arc<Context>, mut stop: watch::Receiver<bool>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let (mut memory, mut follower) = (R::Memory::default(), Follower::new());
            loop {
                let again = self.pass(&context, &stop, &mut memory).await;
                let due = async {
                    tokio::select! {
                        biased;
                        () = self.wake.notified() => self.settled().await,
                        () = after(again) => {}
                        () = follower.changed() => {}
                    }
                };
                tokio::select! {
                    biased;
                    () = super::stopped(&mut stop) => return,
                    () = due => {}
                }
            }
        })
    }

    fn set_root_authority(&self, authority: &str) -> bool {
        let has_work = self.reconciler.set_root_authority(authority);
        if has_work {
            self.call();
        }
        has_work
    }
}

/// Waits for a time, or for ever if there is none.
pub async fn after(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// Waits until a time, or for ever if there is none.
pub async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
