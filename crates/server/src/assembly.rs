//! Assembles a context: the objects of a store, the state that is derived from them, and its controllers.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use access::admission::Admission;
use access::admission::plugins::Plugins;
use access::authentication::{Authentication, Realm};
use access::authorization::{self, Modes};
use access::flow::{Flow, SeatSupply};
use base::metrics::{KindSeries, METRICS};
use base::request::FeatureGates;
use base::task;
use base::webhook::{self, Address, Egress, Identity};
use kinds::{CATALOGUE, RuntimeConfig};
use machinery::{Result, Status};
use objects::{Event, EventKind, Frozen, Key, Known, Objects, Storage};
use resource::Registry;
use store::StoreError;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::aggregation::Aggregation;
use crate::allocation::{Allocation, Ranges, Unowned, UnownedReservations};
use crate::controllers::{self, Controller, ControllerManager, Controllers, Records};
use crate::limits;
use crate::progress::{self, Engine, Progresses};
use crate::verbs::control_plane::ControlPlane;
use crate::verbs::{self, Context, Image};

/// Called with every event of a context.
pub type Observer = Box<dyn Fn(&Objects, &Key, &Event) + Send + Sync>;

/// Whether webhooks, conversions and aggregated API servers are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outgoing {
    #[default]
    Network,
    /// Nothing is called: the objects come from files whose author may be a stranger.
    None,
    /// As `None`, and the objects of aggregated API servers are served from the store, where they were captured.
    Captured,
}

/// The configuration of an API. All APIs of a server share most of it.
#[derive(Clone, Default)]
pub struct ApiConfig {
    /// The admission plugins of the server itself, and their settings.
    pub plugins: Arc<Plugins>,
    /// Set by the server, from its capture.
    pub outgoing: Outgoing,
    /// Addresses of the services of webhooks and APIServices, by `namespace/name` or `namespace/name:port`.
    pub service_addresses: HashMap<String, Address>,
    /// The networks that webhooks and aggregated API servers may be in, apart from those addresses.
    pub egress: Egress,
    pub authentication: Authentication,
    /// The authorization modes, in order. Without one, all requests of users outside `system:masters` are denied.
    pub modes: Modes,
    /// Client certificate for aggregated API servers.
    pub proxy_identity: Option<Arc<Identity>>,
    /// The ranges of cluster IPs and node ports.
    pub service_ranges: Ranges,
    pub controllers: Controllers,
    /// The seats of API priority and fairness, if it is enabled.
    pub seats: Option<SeatSupply>,
    /// The optional APIs that are served, of the release of the feature gates.
    pub runtime: RuntimeConfig,
    pub gates: FeatureGates,
    /// The identity of the server in the objects of the control plane. Set by the server, from its socket.
    pub control_plane: Option<ControlPlane>,
    /// Interval of compactions of a shared store.
    pub compaction_interval: Duration,
    /// Whether admission manifests are read, whose policies and webhooks may change what controllers write.
    /// Set by the server.
    pub has_manifests: bool,
    /// Whether the API has `testing.pintle.dev`, whose objects can make requests fail.
    pub testing: bool,
    /// Whether there are Progress objects, and which a new API has.
    pub progress: Progresses,
}

/// The parts of a new context.
pub struct Beginning {
    pub storage: Storage,
    /// The objects of the store, if they have been decoded already.
    pub frozen: Option<Frozen>,
    /// A context whose derived state is shared.
    pub base: Option<Base>,
    /// Whether the store has the objects that a new one lacks.
    pub is_complete: bool,
    /// The realm of its ServiceAccounts, unless they are those of the server itself.
    pub realm: Option<Realm>,
    /// Further observers of events, called after all others.
    pub observers: Vec<Observer>,
}

/// A context of the same release without policies and webhooks. What is derived from its objects is shared, and
/// only objects that differ from them are observed.
pub struct Base {
    pub context: Arc<Context>,
    pub objects: Frozen,
}

/// Says in one line why an API, or the server, cannot start. Its source, if it has one, is for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An object of the server itself was not written.
    #[error("{}", .0.message)]
    Refused(#[from] Status),
    /// The configuration is wrong, or a value that is stored.
    #[error("{0}")]
    Invalid(String),
}

impl From<String> for StartError {
    fn from(why: String) -> StartError {
        StartError::Invalid(why)
    }
}

impl Beginning {
    pub fn of(storage: Storage) -> Beginning {
        Beginning { storage, frozen: None, base: None, is_complete: false, realm: None, observers: vec![] }
    }
}

/// A context, and its controllers, which are not running yet.
pub struct Assembled {
    pub context: Arc<Context>,
    pub controllers: Arc<ControllerManager>,
}

impl ApiConfig {
    /// Loads a store, registers its resources and creates the objects that a new store lacks.
    pub async fn assemble(&self, beginning: Beginning) -> Result<Assembled, StartError> {
        let is_complete = beginning.is_complete;
        let assembled = self.load(beginning).await?;
        if !is_complete {
            self.create_missing(&assembled).await?;
        }
        self.complete(&assembled.context).await?;
        Ok(assembled)
    }

    /// Loads a store and registers its resources, see [`ApiConfig::assemble`].
    pub async fn load(&self, beginning: Beginning) -> Result<Assembled, StartError> {
        let Beginning { storage, frozen, base, realm, observers: also, .. } = beginning;
        let (base, observed) = base.map(|base| (base.context, base.objects)).unzip();
        let fairness = self.seats.is_some();
        let further = self.progress.is_on.then(|| Arc::<Engine>::default() as Arc<dyn Controller>);
        let derived = Arc::new(ControllerManager::new(&self.controllers, fairness, further));
        let loaded_objects: Arc<OnceLock<Weak<Objects>>> = Arc::default();
        let client = Arc::new(self.webhook_client(loaded_objects.clone()));
        let aggregation = Arc::new(Aggregation::new(client.clone(), self.proxy_identity.clone()));
        let admission = Arc::new(Admission::new(self.plugins.clone(), client));
        let fork = |base: &Context| base.flow.as_ref().map(|flow| flow.fork());
        let flow = base.as_deref().and_then(fork).or_else(|| self.seats.clone().map(Flow::new)).map(Arc::new);
        let registry = Arc::new(Registry::new(&CATALOGUE, self.gates.clone()));
        let rbac = base.as_ref().map(|base| base.authorizer.rbac().fork());
        let rbac = Arc::new(rbac.unwrap_or_else(|| authorization::Rbac::new(derived.aggregates())));
        let (authorizer, loopback) =
            authorization::Authorizer::new(rbac.clone(), self.modes.clone(), self.runtime.release);
        let authorization = (authorizer.in_realm(realm.clone()), loopback);
        let followers = Followers {
            registry: registry.clone(),
            rbac,
            admission: admission.clone(),
            flow: flow.clone(),
            aggregation: aggregation.clone(),
            derived: derived.clone(),
            runtime: self.runtime.clone(),
            outgoing: self.outgoing,
        };
        let series = if realm.is_some() { KindSeries::Workspaces } else { KindSeries::Each };
        let observer = move |objects: &Objects, key: &Key, event: &Event| {
            followers.observe(objects, key, event);
            also.iter().for_each(|also| also(objects, key, event));
        };
        let known = Known { objects: frozen, observed };
        let objects = Objects::open_measured(storage, known, series, Box::new(observer)).await?;
        let _ = loaded_objects.set(Arc::downgrade(&objects));
        match base {
            Some(base) => self.share(&base, &objects, &registry, &admission),
            None => self.register(&objects, &registry),
        }
        let mut authentication = self.authentication.clone();
        if let Some(realm) = realm {
            authentication.accounts = authentication.accounts.in_realm(realm);
        }
        let allocation = Allocation::new(self.service_ranges.clone());
        let context =
            Context::new(objects, registry, admission, authentication, authorization, flow, aggregation, allocation);
        if self.progress.is_on {
            observe_shared(&context, &derived);
        }
        Ok(Assembled { context: Arc::new(context), controllers: derived })
    }

    /// Registers the built-in kinds.
    fn register(&self, objects: &Arc<Objects>, registry: &Registry) {
        for versions in kinds::served(&self.runtime) {
            let Some((newest, older)) = versions.split_first() else { continue };
            let resource = resource::from_row(newest, older, objects, registry.gates());
            let (group, plural) = (resource.group.clone(), resource.plural.clone());
            registry.replace(&group, &plural, Some(resource));
        }
    }

    /// Registers the resources of another context.
    fn share(&self, base: &Context, objects: &Arc<Objects>, registry: &Registry, admission: &Admission) {
        registry.share_built_in(&base.registry, objects);
        // CRDs that are the same in both cause no event
        for resource in base.registry.snapshot().values().filter(|resource| resource.is_custom()) {
            let (group, plural) = (&resource.group, &resource.plural);
            let client = admission.client();
            let defined = kinds::defined(objects, client, &self.runtime, registry.gates(), group, plural);
            registry.define(group, plural, defined);
        }
    }

    /// Creates the objects that a new store lacks.
    async fn create_missing(&self, Assembled { context, controllers }: &Assembled) -> Result<(), StartError> {
        let image = self.is_as_recorded().then(|| {
            let aggregation = controllers.aggregates() && !self.has_manifests;
            Image::of(self.gates.release(), context.flow.is_some(), aggregation)
        });
        // no client learns of a write before the start has ended, and one sync is faster than one for each write
        context.objects.store().defer_sync().await?;
        while let Err(status) = verbs::bootstrap(context, self.control_plane.as_ref(), image.as_ref()).await {
            let store = context.objects.store();
            if !store.is_shared() || store.health().is_ok() {
                return Err(status.into());
            }
            // the store may become writable again
            tokio::time::sleep(limits::LEASE_RETRY).await;
        }
        Ok(())
    }

    /// Whether feature gates and APIs are the defaults, with which images of default objects are recorded.
    fn is_as_recorded(&self) -> bool {
        let gates = FeatureGates::of(self.gates.release());
        self.gates == gates && RuntimeConfig::parse(&[], &gates).as_ref() == Ok(&self.runtime)
    }

    /// Completes what an earlier run has begun.
    async fn complete(&self, context: &Arc<Context>) -> Result<()> {
        verbs::establish_all(context).await;
        if !context.objects.store().is_shared() {
            // no request is served yet, so no Service is being written
            let mut suspects = UnownedReservations::default();
            context.allocation.repair(context.as_ref(), &mut suspects, Unowned::ReleasedNow).await?;
        }
        Ok(())
    }

    /// The client of webhooks, which resolves services from stored objects once they are loaded. Cluster IPs are not used if
    /// they cannot be reached.
    fn webhook_client(&self, objects: Arc<OnceLock<Weak<Objects>>>) -> webhook::Client {
        if self.outgoing != Outgoing::Network {
            return webhook::Client::default();
        }
        let routed = self.service_ranges.are_routed();
        let lookup = move |namespace: &str, name: &str| {
            let objects = objects.get()?.upgrade()?;
            let services = objects.collection(&"".into(), &"services".into());
            let stored = services.get(&format!("{namespace}/{name}"))?;
            let mut service = stored.body.to_value(stored.revision);
            if !routed {
                service.remove_at(&["spec", "clusterIP"]);
            }
            Some(service)
        };
        let services = webhook::Services::new(self.service_addresses.clone(), Box::new(lookup));
        webhook::Client::new(services.within(self.egress.clone()))
    }
}

impl Assembled {
    /// Starts the controllers and the other tasks of the context, until `stop` becomes true. The returned task ends when it has
    /// released the Lease of the leader.
    pub fn start(&self, api: &ApiConfig, stop: &watch::Receiver<bool>) -> Option<JoinHandle<()>> {
        let context = &self.context;
        task::spawn("remote discovery", context.aggregation.clone().follow(stop.clone()));
        let records = if api.outgoing == Outgoing::Captured { Records::None } else { Records::Kept };
        let candidate = controllers::start(context, &self.controllers, api.compaction_interval, records, stop);
        if let Some(plane) = &api.control_plane {
            let keeping = controllers::keep_control_plane(context.clone(), plane.clone(), stop.clone());
            task::spawn("control plane", keeping);
        }
        candidate
    }
}

/// Lets controllers observe the Progress objects that the context shares with its base, of which there are no events.
fn observe_shared(context: &Context, derived: &ControllerManager) {
    let Some(resource) = context.registry.get(progress::GROUP, progress::PROGRESSES) else { return };
    for (path, object) in resource.collection.latest().0 {
        let key = Key { group: resource.group.clone(), plural: resource.plural.clone(), path: path.clone() };
        let event = Event { revision: object.revision, kind: EventKind::Added, path, object, previous: None };
        derived.observe(&key, &event);
    }
}

/// State derived from objects, updated by their events.
struct Followers {
    registry: Arc<Registry>,
    rbac: Arc<authorization::Rbac>,
    admission: Arc<Admission>,
    flow: Option<Arc<Flow>>,
    aggregation: Arc<Aggregation>,
    derived: Arc<ControllerManager>,
    runtime: RuntimeConfig,
    outgoing: Outgoing,
}

impl Followers {
    fn observe(&self, objects: &Objects, key: &Key, event: &Event) {
        self.rbac.observe(key, event);
        self.admission.observe(key, event);
        self.flow.iter().for_each(|flow| flow.observe(key, event));
        if self.outgoing != Outgoing::Captured {
            self.aggregation.observe(key, event);
        }
        if let Some((group, plural)) = kinds::defined_by(key) {
            let client = self.admission.client();
            let defined = kinds::defined(objects, client, &self.runtime, self.registry.gates(), &group, &plural);
            let is_served = || self.registry.get(&group, &plural).is_some();
            // a new kind has no series yet, and looking for them takes longer the more kinds there are
            let may_end = objects.series == KindSeries::Each && is_served();
            self.registry.define(&group, &plural, defined);
            if may_end && !is_served() {
                METRICS.forget_kind(&group, &plural);
            }
        }
        // controllers come last, since they read the state that the others derive from the event
        self.derived.observe(key, event);
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;
    use store::{Memory, Store as _};

    use super::*;

    #[tokio::test]
    async fn a_fork_shares_what_is_derived_and_runs_no_idle_controller() {
        let (store, api) = (Arc::new(Memory::default()), ApiConfig::default());
        let source = api.assemble(Beginning::of(Storage::own(store.clone()))).await.unwrap();
        source.controllers.finish_work(&source.context).await;
        let objects = async || source.context.objects.frozen_at(source.context.objects.revision()).await;
        let base = Base { context: source.context.clone(), objects: objects().await.unwrap() };
        let storage = Storage::own(store.fork(0).unwrap());
        let beginning =
            Beginning { frozen: objects().await, base: Some(base), is_complete: true, ..Beginning::of(storage) };
        let fork = api.assemble(beginning).await.unwrap();
        let (_keep, stop) = watch::channel(false);
        fork.start(&api, &stop);
        assert_eq!(fork.controllers.running(), [""; 0]);

        let names = |context: &Context| -> Vec<String> {
            context.registry.snapshot().values().map(|resource| format!("{resource:?}")).collect()
        };
        assert_eq!(names(&fork.context), names(&source.context));
        let context = &fork.context;
        let roles = context.registry.get("rbac.authorization.k8s.io", "clusterroles").unwrap();
        let role = json!({"metadata": {"name": "r"}, "rules": []});
        verbs::create_missing(context, &roles, [role]).await.unwrap();
        assert_eq!(fork.controllers.running(), ["role aggregation"]);
        let rules = |context: &Context| context.authorizer.rbac().rules_of_role("ClusterRole", "", "r");
        assert!(rules(context).is_some() && rules(&source.context).is_none());
    }
}
