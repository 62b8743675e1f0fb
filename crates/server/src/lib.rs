//! The API server: from connection to store. Start with [`Server::start`], then read `http/chain.rs`.
//!
//! Layers, top to bottom: `http` → `controllers`, `discovery`, `openapi` → `verbs` → `admission` → `authorization` →
//! `authentication` → `resource` → `request`, `objects`, `webhook` → `clock`, `digest`, `limits`, `task`. A room imports only lower ones.

mod admission;
pub mod authentication;
mod authorization;
mod clock;
mod controllers;
mod digest;
mod discovery;
mod http;
mod limits;
mod metrics;
mod objects;
mod openapi;
mod request;
mod resource;
mod task;
mod verbs;
mod webhook;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use tokio::sync::watch;

pub use self::http::{Tls, TlsError, parse_duration};
use admission::Admission;
pub use admission::check_plugins;
pub use authentication::{AccountOptions, Accounts, Authentication};
pub use controllers::Controllers;
use objects::{Event, Key, Objects};
pub use request::FeatureGates;
pub use resource::RuntimeConfig;
use resource::{Registry, builtin};
use verbs::Context;
pub use webhook::Address;

/// Stack of a worker thread: values may nest 10,000 levels deep.
pub const WORKER_STACK_BYTES: usize = limits::WORKER_STACK_BYTES;

/// How a server is to be run.
pub struct Config {
    pub address: SocketAddr,
    pub tls: Tls,
    pub authentication: Authentication,
    /// Steps of admission that don't run.
    pub disabled_admission_plugins: Vec<String>,
    /// Where services are that webhooks name, by `namespace/name` or `namespace/name:port`.
    pub service_addresses: HashMap<String, Address>,
    pub controllers: Controllers,
    pub feature_gates: FeatureGates,
    /// The older generations that are served.
    pub runtime: RuntimeConfig,
    pub request_timeout: Duration,
    /// Requests that may run at once, watches aside; 0 for any number.
    pub inflight_max: usize,
    /// How long the server goes on serving, not ready any more, when it is told to stop.
    pub shutdown_delay: Duration,
    /// How long open requests may take when the server stops.
    pub grace: Duration,
}

/// A server that answers.
pub struct Server {
    pub address: SocketAddr,
    stop: watch::Sender<bool>,
    edge: Arc<http::Edge>,
    delay: Duration,
    serving: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Loads the store, serves what it defines, and listens. The error is one line.
    pub async fn start(store: Arc<dyn store::Store>, config: Config) -> Result<Server, String> {
        let derived = Arc::new(controllers::Derived::new(&config.controllers));
        let accounts = config.authentication.accounts.clone();
        let found: Arc<OnceLock<Weak<Objects>>> = Arc::default();
        let client = Arc::new(webhook_client(config.service_addresses, found.clone()));
        let admission = Arc::new(Admission::without(config.disabled_admission_plugins, client));
        let context = prepare(store, admission, config.authentication, derived.clone(), config.runtime).await?;
        let _ = found.set(Arc::downgrade(&context.objects));
        let stop = watch::Sender::new(false);
        controllers::start(&context, &derived, &stop.subscribe());
        let edge = http::Edge::new(
            context,
            stop.subscribe(),
            config.request_timeout,
            config.inflight_max,
            config.feature_gates,
        );
        let edge = Arc::new(edge);
        let listener = http::Listener::bind(config.address, &config.tls, edge.clone()).await?;
        let address = listener.address().map_err(|error| error.to_string())?;
        accounts.set_address(address);
        let serving = task::spawn("listener", listener.run(stop.subscribe(), config.grace));
        Ok(Server { address, stop, edge, delay: config.shutdown_delay, serving })
    }

    /// Is not ready any more, and after the delay stops accepting, ends watches and lets open requests finish within the
    /// grace period (api-machinery 20.2).
    pub async fn stop(self) {
        self.edge.health.drain();
        tokio::time::sleep(self.delay).await;
        self.stop.send_replace(true);
        let _ = self.serving.await;
    }
}

/// Calls webhooks, and finds their services among the objects once those are open.
fn webhook_client(mapped: HashMap<String, Address>, objects: Arc<OnceLock<Weak<Objects>>>) -> webhook::Client {
    let lookup = move |namespace: &str, name: &str| {
        let objects = objects.get()?.upgrade()?;
        let services = objects.collection(&"".into(), &"services".into());
        let found = services.get(&format!("{namespace}/{name}"))?;
        Some(found.body.to_value(found.revision))
    };
    webhook::Client::new(webhook::Services::new(mapped, Box::new(lookup)))
}

/// Loads the store and serves what it defines, and what a new one has from the start.
async fn prepare(
    store: Arc<dyn store::Store>,
    admission: Arc<Admission>,
    authentication: Authentication,
    derived: Arc<controllers::Derived>,
    runtime: RuntimeConfig,
) -> Result<Arc<Context>, String> {
    let registry = Arc::new(Registry::default());
    let rbac = Arc::new(authorization::Rbac::default());
    let third_party = runtime.third_party_resources;
    let objects = open(store, registry.clone(), rbac.clone(), admission.clone(), derived, third_party).await?;
    for (shipped, older) in builtin::served(runtime) {
        let resource = builtin::resource(shipped, older, &objects);
        let (group, plural) = (resource.group.clone(), resource.plural.clone());
        registry.replace(&group, &plural, Some(resource));
    }
    let context = Arc::new(Context::new(objects, registry, admission, authentication, rbac));
    verbs::bootstrap(&context).await.map_err(|status| status.message.clone())?;
    verbs::settle_all(&context).await;
    Ok(context)
}

/// Opens the objects with a registry that follows their definitions an authorizer that follows roles and bindings,
/// and admission that follows its configuration.
async fn open(
    store: Arc<dyn store::Store>,
    registry: Arc<Registry>,
    rbac: Arc<authorization::Rbac>,
    admission: Arc<Admission>,
    derived: Arc<controllers::Derived>,
    third_party: bool,
) -> Result<Arc<Objects>, String> {
    let client = admission.client().clone();
    let observer = move |objects: &Objects, key: &Key, event: &Event| {
        rbac.observe(key, event);
        admission.observe(key, event);
        if let Some((group, plural)) = resource::defined_by(key)
            && registry.get(&group, &plural).is_none_or(|served| served.is_custom())
        {
            registry.replace(&group, &plural, resource::defined(objects, &client, third_party, &group, &plural));
        }
        // last, since controllers look at what the others have made of the event
        derived.observe(key, event);
    };
    Objects::open(store, Box::new(observer)).await.map_err(|error| error.to_string())
}
