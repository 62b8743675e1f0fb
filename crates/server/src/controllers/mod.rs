//! Controllers, those of kube-controller-manager among them that clients of a bare API server rely on, and compaction.
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
mod keeper;
mod leader;
mod migrator;
mod namespaces;
mod pending;
mod quotas;
mod registrations;
mod signing;
mod switch;
#[cfg(test)]
mod tests;
mod token_secrets;
mod token_tracking;
mod type_check;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use objects::{Event, Key};

use crate::limits;
use crate::verbs::Context;

pub use control_plane::keep_control_plane;
pub use signing::CertificateSigner;
pub use switch::Controllers;

/// The enabled controllers, with the state that they derive from events whether or not they run on this server.
pub struct Derived {
    /// Whether they run on this server without leader election.
    alone: bool,
    establishing: Arc<establishing::Establishing>,
    cleanup: Arc<cleanup::Cleanup>,
    owners: Option<Arc<garbage::Graph>>,
    expiry: Option<Arc<expiry::EventExpiry>>,
    aggregation: Option<Arc<aggregation::RoleAggregation>>,
    quotas: Option<Arc<quotas::Quotas>>,
    migrator: Option<Arc<migrator::Migrator>>,
    flow: Option<Arc<flow::FlowKeeper>>,
    registrations: Arc<registrations::Registrations>,
    types: Option<Arc<type_check::TypeChecker>>,
    keepers: Vec<Arc<keeper::Keeper>>,
    tokens: Option<Arc<token_secrets::TokenSecrets>>,
    tracking: Arc<token_tracking::TokenTracking>,
    signing: Option<Arc<signing::Signing>>,
}

impl Derived {
    /// `fairness` is whether API priority and fairness is enabled.
    pub fn new(controllers: &Controllers, fairness: bool) -> Derived {
        let accounts = controllers.run(switch::SERVICE_ACCOUNT).then(keeper::Keeper::of_accounts);
        let authority = controllers.run(switch::ROOT_AUTHORITY);
        let authority = authority.then(|| keeper::Keeper::of_root_authority(&controllers.root_authority));
        let tokens = || Arc::new(token_secrets::TokenSecrets::new(&controllers.root_authority));
        let signer = controllers.signer.clone().filter(|_| controllers.run(switch::SIGNING));
        let expires = !controllers.event_ttl.is_zero();
        Derived {
            alone: controllers.alone,
            establishing: Default::default(),
            cleanup: Arc::new(cleanup::Cleanup::new(controllers.run(switch::NAMESPACE))),
            owners: controllers.run(switch::GARBAGE_COLLECTOR).then(Default::default),
            expiry: expires.then(|| Arc::new(expiry::EventExpiry::new(controllers.event_ttl))),
            aggregation: controllers.run(switch::AGGREGATION).then(Default::default),
            quotas: controllers.run(switch::QUOTAS).then(Default::default),
            migrator: controllers.run(switch::MIGRATOR).then(Default::default),
            flow: fairness.then(Default::default),
            registrations: Default::default(),
            types: controllers.run(switch::POLICY_STATUS).then(Default::default),
            tokens: controllers.run(switch::TOKEN_SECRETS).then(tokens),
            tracking: Default::default(),
            signing: signer.map(|signer| Arc::new(signing::Signing::new(signer))),
            keepers: accounts.into_iter().chain(authority).map(Arc::new).collect(),
        }
    }

    /// Whether ClusterRoles are aggregated.
    pub fn aggregates(&self) -> bool {
        self.aggregation.is_some()
    }

    /// Publishes another authority of the server's certificate.
    pub fn set_root_authority(&self, authority: &str) {
        self.keepers.iter().for_each(|keeper| keeper.set_authority(authority));
        self.tokens.iter().for_each(|tokens| tokens.set_authority(authority));
    }

    /// Observes events, which are passed in order.
    pub fn observe(&self, key: &Key, event: &Event) {
        self.establishing.observe(key, event);
        self.cleanup.observe(key, event);
        self.owners.iter().for_each(|owners| owners.observe(key, event));
        self.expiry.iter().for_each(|expiry| expiry.observe(key, event));
        self.aggregation.iter().for_each(|aggregation| aggregation.observe(key));
        self.quotas.iter().for_each(|quotas| quotas.observe(key, event));
        self.migrator.iter().for_each(|migrator| migrator.observe(key));
        self.flow.iter().for_each(|flow| flow.observe(key));
        self.registrations.observe(key);
        self.types.iter().for_each(|types| types.observe(key));
        self.keepers.iter().for_each(|keeper| keeper.observe(key, event));
        self.tokens.iter().for_each(|tokens| tokens.observe(key, event));
        self.tracking.observe(key);
        self.signing.iter().for_each(|signing| signing.observe(key, event));
    }
}

/// Starts the enabled controllers, or leader election for them, until `stop` becomes true. The returned task ends when it
/// has released the Lease. `interval` is that of [`compaction`].
pub fn start(
    context: &Arc<Context>,
    derived: &Arc<Derived>,
    interval: Duration,
    stop: &watch::Receiver<bool>,
) -> Option<JoinHandle<()>> {
    base::task::spawn("compaction", compaction(context.clone(), interval, stop.clone()));
    // these two run on every server, not only on the leader
    base::task::spawn("token tracking", derived.tracking.clone().run(context.clone(), stop.clone()));
    base::task::spawn("service allocations", allocations::run(context.clone(), stop.clone()));
    let shared = context.objects.store().is_shared();
    if shared && !derived.alone {
        return Some(base::task::spawn("leader", leader::run(context.clone(), derived.clone(), stop.clone())));
    }
    start_all(context, derived, stop);
    if shared {
        base::task::spawn("interrupted writes", leader::complete_writes(context.clone(), stop.clone()));
    }
    None
}

fn start_all(context: &Arc<Context>, derived: &Arc<Derived>, stop: &watch::Receiver<bool>) {
    let (context, stop) = (|| context.clone(), || stop.clone());
    base::task::spawn("establishing", derived.establishing.clone().run(context(), stop()));
    base::task::spawn("cleanup", derived.cleanup.clone().run(context(), stop()));
    if let Some(owners) = &derived.owners {
        base::task::spawn("garbage collector", garbage::collect(context(), owners.clone(), stop()));
    }
    if let Some(expiry) = &derived.expiry {
        base::task::spawn("event expiry", expiry.clone().run(context(), stop()));
    }
    if let Some(aggregation) = &derived.aggregation {
        base::task::spawn("role aggregation", aggregation.clone().run(context(), stop()));
    }
    if let Some(quotas) = &derived.quotas {
        base::task::spawn("quota usage", quotas.clone().run(context(), stop()));
    }
    if let Some(migrator) = &derived.migrator {
        base::task::spawn("storage version migrator", migrator.clone().run(context(), stop()));
    }
    if let Some(flow) = &derived.flow {
        base::task::spawn("flow control", flow.clone().run(context(), stop()));
    }
    base::task::spawn("availability", availability::run(context(), stop()));
    base::task::spawn("registrations", derived.registrations.clone().run(context(), stop()));
    if let Some(types) = &derived.types {
        base::task::spawn("policy status", types.clone().run(context(), stop()));
    }
    if let Some(tokens) = &derived.tokens {
        base::task::spawn("token secrets", tokens.clone().run(context(), stop()));
    }
    if let Some(signing) = &derived.signing {
        base::task::spawn("certificate signing", signing.clone().run(context(), stop()));
    }
    for keeper in &derived.keepers {
        base::task::spawn("keeper", keeper.clone().run(context(), stop()));
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // an error means that the sender has been dropped, which stops controllers as well
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Compacts the store until `stop` becomes true. In a shared store, history of `interval` is kept, as by kube-apiserver;
/// with an `interval` of zero it is left to other servers. In an embedded store, a fixed number of revisions is kept.
async fn compaction(context: Arc<Context>, interval: Duration, mut stop: watch::Receiver<bool>) {
    let shared = context.objects.store().is_shared();
    if shared && interval.is_zero() {
        return;
    }
    // the history since the start must have been loaded before it is compacted
    context.objects.reach_back(0).await;
    let mut last = 0;
    let every = if shared { interval } else { Duration::from_secs(limits::COMPACTION_SECONDS) };
    let mut tick = tokio::time::interval(every);
    loop {
        // the history of an embedded store is also bounded by its length, so that the next start is fast
        let much = async {
            if shared {
                std::future::pending().await
            } else {
                context.objects.wait_for(last + objects::limits::HISTORY_REVISIONS / 2).await
            }
        };
        tokio::select! {
            _ = tick.tick() => {}
            () = much => {}
            () = stopped(&mut stop) => return,
        }
        let revision = context.objects.revision();
        let before = if shared { last } else { revision.saturating_sub(objects::limits::HISTORY_REVISIONS) };
        last = revision;
        if before > 0
            && let Err(error) = context.objects.store().compact(before).await
        {
            tracing::warn!(%error, "the store cannot be compacted; will retry");
        }
    }
}
