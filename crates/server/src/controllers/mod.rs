//! Controllers, including those of kube-controller-manager that clients of a bare API server rely on, and compaction.
//!
//! Invariant: controllers write objects only through the verbs, as their own user.

mod aggregation;
mod allocations;
mod availability;
mod cleanup;
mod control_plane;
mod establishing;
mod expiry;
mod flow;
mod garbage;
mod history;
mod leader;
mod migrator;
mod namespace_objects;
mod namespaces;
mod pending;
mod quotas;
mod reconciler;
mod registrations;
mod signing;
mod switch;
#[cfg(test)]
mod tests;
mod token_secrets;
mod token_tracking;
mod type_check;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use objects::{Event, Key};
use reconciler::controller;

use crate::verbs::Context;

pub use control_plane::keep_control_plane;
pub use leader::{Membership, is_lease};
pub use namespace_objects::published_authority;
pub use reconciler::{Controller, after, until};
pub use signing::CertificateSigner;
pub use switch::{AbsentOwners, Controllers};

/// A controller, and whether it has ever had work.
struct EnabledController {
    controller: Arc<dyn Controller>,
    has_work: AtomicBool,
}

/// The context and the signal with which tasks of controllers are started, and which controllers have been started.
struct Runner {
    context: Weak<Context>,
    stop: watch::Receiver<bool>,
    started: Vec<bool>,
}

/// The enabled controllers, with the state that they derive from events whether or not they run on this server.
///
/// The task of a controller starts with its first work, so that a context whose objects need no controller has no such task.
pub struct ControllerManager {
    /// Whether the controllers run on this server without leader election.
    alone: bool,
    /// In a workspace: this server among those that run controllers.
    membership: Option<Arc<Membership>>,
    /// Whether ClusterRoles are aggregated.
    aggregates: bool,
    all: Vec<EnabledController>,
    /// Set while the controllers run on this server.
    runner: Mutex<Option<Runner>>,
    /// Whether they run on this server.
    leads: watch::Sender<bool>,
    /// The graph of the garbage collector, whose tests call it step by step.
    #[cfg(test)]
    owners: Option<Arc<garbage::Graph>>,
    tracking: Arc<token_tracking::TokenTracking>,
}

impl ControllerManager {
    /// `fairness` is whether API priority and fairness is enabled; `further` is a controller of a higher layer.
    pub fn new(controllers: &Controllers, fairness: bool, further: Option<Arc<dyn Controller>>) -> ControllerManager {
        let (on, authority) = (|name| controllers.run(name), &controllers.root_authority);
        let signer = controllers.signer.clone().filter(|_| on(switch::SIGNING));
        let owners: Option<Arc<garbage::Graph>> =
            on(switch::GARBAGE_COLLECTOR).then(|| Arc::new(garbage::Graph::new(controllers.absent_owners)));
        let all = [
            Some(controller(establishing::Establishing::default())),
            Some(controller(cleanup::Cleanup::new(on(switch::NAMESPACE)))),
            Some(controller(registrations::Registrations)),
            owners.clone().map(|owners| owners as Arc<dyn Controller>),
            (!controllers.event_ttl.is_zero()).then(|| controller(expiry::EventExpiry::new(controllers.event_ttl))),
            on(switch::AGGREGATION).then(|| controller(aggregation::RoleAggregation)),
            on(switch::QUOTAS).then(|| controller(quotas::Quotas::default())),
            on(switch::MIGRATOR).then(|| controller(migrator::Migrator)),
            fairness.then(|| controller(flow::FlowController)),
            on(switch::POLICY_STATUS).then(|| controller(type_check::TypeChecker)),
            on(switch::TOKEN_SECRETS).then(|| controller(token_secrets::TokenSecrets::new(authority))),
            signer.map(|signer| controller(signing::Signing::new(signer))),
            on(switch::SERVICE_ACCOUNT).then(|| controller(namespace_objects::NamespaceObjects::of_accounts())),
            on(switch::ROOT_AUTHORITY)
                .then(|| controller(namespace_objects::NamespaceObjects::of_root_authority(authority))),
            further,
        ];
        ControllerManager {
            alone: controllers.alone,
            membership: controllers.membership.clone(),
            aggregates: on(switch::AGGREGATION),
            all: all
                .into_iter()
                .flatten()
                .map(|controller| EnabledController { controller, has_work: false.into() })
                .collect(),
            runner: Mutex::default(),
            leads: watch::Sender::new(false),
            #[cfg(test)]
            owners,
            tracking: Default::default(),
        }
    }

    /// Whether the controllers run on this server.
    pub fn leads(&self) -> watch::Receiver<bool> {
        self.leads.subscribe()
    }

    /// Whether ClusterRoles are aggregated.
    pub fn aggregates(&self) -> bool {
        self.aggregates
    }

    /// Replaces the certificate authority of the server's certificate that controllers publish.
    pub fn set_root_authority(&self, authority: &str) {
        for (index, enabled) in self.all.iter().enumerate() {
            if enabled.controller.set_root_authority(authority) {
                self.give_work(index);
            }
        }
    }

    /// Observes events, which are passed in order.
    pub fn observe(&self, key: &Key, event: &Event) {
        for (index, enabled) in self.all.iter().enumerate() {
            if enabled.controller.observe(key, event) {
                self.give_work(index);
            }
        }
        self.tracking.observe(key);
    }

    /// Notes that a controller has work. Starts its task if the controllers run on this server and it has not been
    /// started.
    fn give_work(&self, index: usize) {
        // after its first work, a controller's task is running or is started with the others
        if !self.all[index].has_work.swap(true, Ordering::AcqRel) {
            self.start_busy();
        }
    }

    /// Runs the controllers on this server until `stop` becomes true.
    fn start(&self, context: &Arc<Context>, stop: &watch::Receiver<bool>) {
        let started = vec![false; self.all.len()];
        *self.runner.lock() = Some(Runner { context: Arc::downgrade(context), stop: stop.clone(), started });
        self.start_busy();
    }

    fn start_busy(&self) {
        let mut runner = self.runner.lock();
        let Some(Runner { context, stop, started }) = &mut *runner else { return };
        let Some(context) = context.upgrade() else { return };
        for (enabled, started) in self.all.iter().zip(started) {
            if enabled.has_work.load(Ordering::Acquire) && !std::mem::replace(started, true) {
                let controller = enabled.controller.clone();
                base::task::spawn(controller.name(), controller.run(context.clone(), stop.clone()));
            }
        }
    }

    /// The name of a controller that runs on this server and has not finished its work, if there is one.
    pub fn busy(&self) -> Option<&'static str> {
        let runner = self.runner.lock();
        let mut running = self.all.iter().zip(&runner.as_ref()?.started).filter(|(_, started)| **started);
        running.find(|(enabled, _)| enabled.controller.is_busy()).map(|(enabled, _)| enabled.controller.name())
    }

    /// Ends pauses of controllers that only spare passes.
    pub fn hurry(&self) {
        self.all.iter().for_each(|enabled| enabled.controller.hurry());
    }

    /// The names of the controllers whose tasks have started.
    #[cfg(test)]
    pub fn running(&self) -> Vec<&'static str> {
        let started = self.runner.lock().iter().flat_map(|runner| runner.started.clone()).collect::<Vec<_>>();
        let running = self.all.iter().zip(started).filter(|(_, started)| *started);
        running.map(|(enabled, _)| enabled.controller.name()).collect()
    }

    /// Does the work of all controllers until none is left, on a server where they don't run.
    pub async fn finish_work(&self, context: &Arc<Context>) {
        loop {
            let before = context.objects.revision();
            for enabled in &self.all {
                enabled.controller.work(context).await;
            }
            if context.objects.revision() == before {
                return;
            }
        }
    }
}

/// Whether the server records requests for tokens in objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    Kept,
    None,
}

/// Starts the enabled controllers, or leader election for them, until `stop` becomes true. The returned task ends when it
/// has released the Lease. `interval` is that of [`history::keep`].
pub fn start(
    context: &Arc<Context>,
    controllers: &Arc<ControllerManager>,
    interval: Duration,
    records: Records,
    stop: &watch::Receiver<bool>,
) -> Option<JoinHandle<()>> {
    base::task::spawn("history", history::keep(context.clone(), interval, stop.clone()));
    // these two run on every server, not only on the leader
    if records == Records::Kept {
        base::task::spawn("token tracking", controllers.tracking.clone().run(context.clone(), stop.clone()));
    }
    base::task::spawn("service allocations", allocations::run(context.clone(), stop.clone()));
    let shared = context.objects.store().is_shared();
    if shared && !controllers.alone {
        return Some(base::task::spawn("leader", leader::run(context.clone(), controllers.clone(), stop.clone())));
    }
    start_all(context, controllers, stop);
    if shared {
        base::task::spawn("interrupted writes", leader::complete_writes(context.clone(), stop.clone()));
    }
    None
}

fn start_all(context: &Arc<Context>, controllers: &Arc<ControllerManager>, stop: &watch::Receiver<bool>) {
    controllers.start(context, stop);
    controllers.leads.send_replace(true);
    base::task::spawn("availability", availability::run(context.clone(), stop.clone()));
}

/// Waits until `stop` becomes true.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    // an error means that the sender has been dropped, which stops controllers as well
    let _ = stop.wait_for(|stop| *stop).await;
}
