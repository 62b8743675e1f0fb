//! The API server: from connection to store. Start with [`Server::start`], then read `http/chain.rs`.
//!
//! The rooms of this crate and their layers are in ARCHITECTURE.md; a room imports only lower ones. Below this crate are
//! `access`, `resource`, `objects` and `base`.

mod aggregation;
mod allocation;
mod controllers;
mod discovery;
mod http;
mod limits;
mod openapi;
pub mod transfer;
mod verbs;

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use access::admission::Admission;
pub use access::admission::plugins::Plugins;
pub use access::admission::plugins::{EnabledPlugins, PluginFlags, PodSecurity, Settings as PluginSettings};
pub use access::admission::{ManifestDirectory, ManifestFile, ManifestPlugin};
pub use access::audit::{Audit, AuditPolicy, BatchOptions, LogMode, LogOptions};
pub use access::authentication::{
    AccountOptions, Accounts, Algorithm, Anonymous, Authentication, AuthenticationConfiguration, ProxyHeaders,
    ReviewVersion, StaticTokens, TokenReviewer,
};
use access::authorization;
pub use access::authorization::{
    AccessReviewer, AuthorizationMode, DecisionTtl, parse_configuration as parse_authorization,
};
use access::flow::Flow;
use base::metrics::{METRICS, Reload};
pub use base::request::FeatureGates;
pub use base::trace::Configuration as TracingConfiguration;
pub use base::webhook::{Address, Identity, Remote, RemoteEndpoint};
use base::{clock, task, trace, webhook};
pub use http::REQUESTS;
pub use machinery::Release;
use machinery::Value;
pub use objects::{Encryption, Layout, Storage};
use objects::{Event, Key, Objects};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
pub use resource::{CustomForm, RuntimeConfig, upstream_storage};
use resource::{Registry, builtin};
use tokio::sync::watch;

pub use self::http::{InFlightMax, ProxyAuthority, Tls, TlsError};
use aggregation::Aggregation;
pub use allocation::Ranges as ServiceRanges;
use allocation::{Allocation, Unowned, UnownedReservations};
pub use controllers::{CertificateSigner, Controllers};
use verbs::Context;
use verbs::control_plane::ControlPlane;

/// Stack of a worker thread: values may nest 10,000 levels deep.
pub const WORKER_STACK_BYTES: usize = base::limits::WORKER_STACK_BYTES;

/// The configuration of a server.
pub struct Config {
    /// The socket to serve on, which is bound before anything is created.
    pub socket: tokio::net::TcpListener,
    /// Descriptors that the process may have open (`RLIMIT_NOFILE`).
    pub descriptors: u64,
    pub tls: Tls,
    /// The files of `tls` and of the static tokens, for reloads.
    pub replacements: Replacements,
    pub authentication: Authentication,
    /// The file of `--authentication-config`, and its `anonymous` section.
    pub authentication_file: Option<(Followed<AuthenticationConfiguration>, Option<Anonymous>)>,
    /// The authorization modes, in order.
    pub authorization: Vec<AuthorizationMode>,
    /// The file of `--authorization-config`.
    pub authorization_file: Option<Followed<Vec<AuthorizationMode>>>,
    /// The admission plugins of the server itself, and their settings.
    pub plugins: Plugins,
    /// The directories of admission manifests.
    pub manifests: Vec<ManifestDirectory>,
    /// Client certificate for aggregated API servers.
    pub proxy_identity: Option<Identity>,
    /// Addresses of the services of webhooks and APIServices, by `namespace/name` or `namespace/name:port`.
    pub service_addresses: HashMap<String, Address>,
    /// The address under which clients and other servers reach this one (`--advertise-address`).
    pub advertise_address: Option<IpAddr>,
    /// The host name, which identifies the server among those that share the store.
    pub hostname: String,
    /// The ranges of cluster IPs and node ports.
    pub service_ranges: ServiceRanges,
    pub controllers: Controllers,
    pub feature_gates: FeatureGates,
    /// The flags with which the server was started, for `/flagz`.
    pub flags: BTreeMap<String, String>,
    /// The minor version of the oldest release to be compatible with.
    pub compatible_minor: u32,
    /// The legacy and beta APIs that are served.
    pub runtime: RuntimeConfig,
    /// Interval of compactions of a shared store.
    pub compaction_interval: Duration,
    pub request_timeout: Duration,
    pub inflight_max: InFlightMax,
    /// Whether API priority and fairness is enabled, which shares the sum of those limits among priority levels.
    pub priority_and_fairness: bool,
    /// The audit policy and backends.
    pub audit: Audit,
    /// The export of traces.
    pub tracing: Option<TracingConfiguration>,
    /// Time between the signal to stop and the end of serving, during which the server is not ready.
    pub shutdown_delay: Duration,
    /// Time limit of requests that are in flight when the server stops.
    pub grace: Duration,
}

/// Reloaded certificates, keys and tokens, for new connections and requests.
pub struct Replacement {
    pub tls: Tls,
    pub tokens: StaticTokens,
    /// The certificate authority of the serving certificate, in PEM.
    pub root_authority: String,
}

/// Certificates, keys and tokens, which are reloaded when one of their files changes.
pub struct Replacements {
    pub paths: Vec<PathBuf>,
    /// Reads all files. On an error, which is one line, the previous content stays in use.
    pub read: Box<dyn Fn() -> Result<Replacement, String> + Send + Sync>,
    /// Called when the replacement is in force. The error is one line.
    pub applied: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl Replacements {
    fn follow(
        self,
        acceptor: Arc<http::Acceptors>,
        context: Weak<Context>,
        derived: Arc<controllers::ControllerManager>,
    ) {
        if self.paths.is_empty() {
            return;
        }
        task::follow_files(self.paths, limits::CONFIGURATION_LOOK, move || {
            let Some(context) = context.upgrade() else { return false };
            let replaced = (self.read)().and_then(|Replacement { tls, tokens, root_authority }| {
                acceptor.replace(&tls).map_err(|error| error.to_string())?;
                context.authentication.tokens.replace(tokens);
                derived.set_root_authority(&root_authority);
                let trust = trust(&tls, &context.authentication.proxy);
                task::spawn("trust", publish_trust(context.clone(), trust));
                (self.applied)()
            });
            match replaced {
                Ok(()) => tracing::info!("certificates, keys and tokens have been reloaded"),
                Err(why) => tracing::error!(
                    why,
                    "certificates, keys and tokens cannot be reloaded; the previous ones stay in use"
                ),
            }
            true
        });
    }
}

/// Decodes the content of a file.
pub type Reading<T> = Box<dyn Fn(&[u8]) -> Result<T, String> + Send + Sync>;

/// A configuration file that is reloaded when it changes.
pub struct Followed<T> {
    pub path: PathBuf,
    /// Its content at the start.
    pub content: Vec<u8>,
    /// Reads it; the error is one line.
    pub read: Reading<T>,
}

impl<T: 'static> Followed<T> {
    /// Applies every valid change, until `apply` returns `None`.
    fn follow(
        self,
        reloads: &'static Family<Reload, Counter>,
        apply: impl Fn(T) -> Option<Result<(), String>> + Send + 'static,
    ) {
        let Followed { path, content, read } = self;
        let file = path.display().to_string();
        task::follow_file(path, limits::CONFIGURATION_LOOK, content, move |content| {
            let outcome = match content.and_then(&read).map(&apply) {
                Ok(None) => return false,
                Ok(Some(outcome)) => outcome,
                Err(why) => Err(why),
            };
            match &outcome {
                Ok(()) => tracing::info!(file, "the configuration has been reloaded"),
                Err(why) => {
                    tracing::error!(file, why, "the configuration cannot be reloaded; the previous one stays in use")
                }
            }
            reloads.get_or_create(&Reload::of(&outcome)).inc();
            true
        });
    }
}

/// A running server.
pub struct Server {
    pub address: SocketAddr,
    /// The revision of the store at the start.
    pub revision: u64,
    stop: watch::Sender<bool>,
    /// The reason for which the process has to exit.
    fault: watch::Sender<Option<String>>,
    health: Arc<http::Health>,
    audit: Arc<Audit>,
    delay: Duration,
    serving: tokio::task::JoinHandle<()>,
    /// The task of leader election.
    candidate: Option<tokio::task::JoinHandle<()>>,
}

impl Server {
    /// Loads the store and starts to serve. Until the store is loaded, only `/livez`, `/readyz` and `/healthz` are
    /// served. The error is one line.
    pub async fn start(storage: Storage, config: Config) -> Result<Server, String> {
        if let Some(tracing) = &config.tracing {
            trace::start(tracing)?;
        }
        let stop = watch::Sender::new(false);
        let health = Arc::new(http::Health::new(storage.store.clone()));
        let door = Arc::new(http::Door::new(health.clone()));
        let listener = {
            let max = limits::connections_max(config.descriptors);
            http::Listener::new(config.socket, &config.tls, door.clone(), max)?
        };
        let address = listener.address().map_err(|error| error.to_string())?;
        let acceptors = listener.acceptors();
        let serving = task::spawn("listener", listener.run(stop.subscribe(), config.grace));
        let derived = Arc::new(controllers::ControllerManager::new(&config.controllers, config.priority_and_fairness));
        config.authentication.accounts.set_address(address);
        let loaded_objects: Arc<OnceLock<Weak<Objects>>> = Arc::default();
        let routed = config.service_ranges.are_routed();
        let client = Arc::new(webhook_client(config.service_addresses, routed, loaded_objects.clone()));
        let aggregation = Arc::new(Aggregation::new(client.clone(), config.proxy_identity));
        let admission = Arc::new(Admission::new(config.plugins, client));
        let InFlightMax { read_only, mutating } = config.inflight_max;
        let is_unlimited = read_only == 0 || mutating == 0;
        let seats = if is_unlimited { 0 } else { read_only.saturating_add(mutating) };
        let trust = trust(&config.tls, &config.authentication.proxy);
        let control_plane = ControlPlane {
            port: address.port(),
            address: config.advertise_address,
            hostname: config.hostname,
            run: clock::uuid(),
        };
        config.manifests.into_iter().for_each(|directory| directory.follow(&admission, &control_plane.name()));
        let components = Components {
            authentication: config.authentication,
            modes: config.authorization,
            flow: config.priority_and_fairness.then(|| Arc::new(Flow::new(seats))),
            aggregation: aggregation.clone(),
            allocation: Allocation::new(config.service_ranges),
            control_plane: Some(control_plane.clone()),
        };
        let context =
            prepare(storage, admission, components, derived.clone(), config.runtime, config.feature_gates).await?;
        health.watch(&context.objects);
        let fault = watch::Sender::new(None);
        task::spawn("fault supervisor", supervise(Arc::downgrade(&context.objects), fault.clone()));
        let _ = loaded_objects.set(Arc::downgrade(&context.objects));
        let revision = context.objects.revision();
        publish_trust(context.clone(), trust).await;
        follow_files(&context, config.authentication_file, config.authorization_file);
        config.replacements.follow(acceptors, Arc::downgrade(&context), derived.clone());
        let audit = Arc::new(config.audit);
        audit.start();
        task::spawn("remote discovery", aggregation.follow(stop.subscribe()));
        let candidate = controllers::start(&context, &derived, config.compaction_interval, &stop.subscribe());
        task::spawn("control plane", controllers::keep_control_plane(context.clone(), control_plane, stop.subscribe()));
        let edge = http::Edge::new(http::EdgeParts {
            context,
            health: health.clone(),
            open: door.open.clone(),
            stop: stop.subscribe(),
            request_timeout: config.request_timeout,
            inflight_max: config.inflight_max,
            flags: config.flags,
            compatible_minor: config.compatible_minor,
            audit: audit.clone(),
        });
        edge.context.objects.store().sync().await.map_err(|error| error.to_string())?;
        door.serve_all(Arc::new(edge));
        Ok(Server { address, revision, stop, fault, health, audit, delay: config.shutdown_delay, serving, candidate })
    }

    /// Checks certificates, keys, tokens and configuration files now and reloads those that have changed.
    pub fn reload(&self) {
        task::reload_files();
    }

    /// Waits until the process has to exit because of a fault, and returns the reason.
    pub async fn failed(&self) -> String {
        let mut fault = self.fault.subscribe();
        let why = fault.wait_for(Option::is_some).await.map(|why| why.clone().unwrap_or_default());
        why.unwrap_or_default()
    }

    /// Becomes not ready, and after the delay stops accepting, ends watches and lets requests in flight finish within the
    /// grace period.
    pub async fn stop(self) {
        self.health.drain();
        tokio::time::sleep(self.delay).await;
        self.stop.send_replace(true);
        let _ = self.serving.await;
        self.audit.flush().await;
        trace::flush().await;
        if let Some(candidate) = self.candidate {
            let _ = tokio::time::timeout(limits::LEASE_RETRY, candidate).await;
        }
    }
}

/// Reports a fault of the store or of the watch cache that has lasted for the grace period.
async fn supervise(objects: Weak<Objects>, fault: watch::Sender<Option<String>>) {
    let mut ended_at = None;
    while let Some(objects) = objects.upgrade() {
        let store = objects.store();
        // etcd may be unavailable for any time
        let mut why = objects.faults.lasted(limits::FAULT_GRACE, !store.is_shared());
        if let Some(ended_by) = store.ended() {
            let ended_at = *ended_at.get_or_insert_with(clock::instant);
            why = why.or((ended_at.elapsed() >= limits::FAULT_GRACE).then_some(ended_by));
        }
        if why.is_some() {
            fault.send_replace(why);
            return;
        }
        drop(objects);
        tokio::time::sleep(limits::FAULT_LOOK).await;
    }
}

/// Publishes the CA bundles and user headers that aggregated API servers are to trust.
async fn publish_trust(context: Arc<Context>, trust: Vec<(&'static str, String)>) {
    if let Err(status) = verbs::publish_trust(&context, &trust).await {
        tracing::warn!(error = %status, "extension-apiserver-authentication cannot be published");
    }
}

/// The content of `extension-apiserver-authentication`, from which aggregated API servers read the CA bundles and, with
/// `--requestheader-client-ca-file`, the user headers to trust.
fn trust(tls: &Tls, headers: &ProxyHeaders) -> Vec<(&'static str, String)> {
    let text = |pem: &[u8]| String::from_utf8_lossy(pem).into_owned();
    let Some(proxy) = &tls.proxy else { return vec![("client-ca-file", text(&tls.client_ca))] };
    let list = |names: &[String]| names.iter().map(|name| Value::from(name.as_str())).collect::<Value>().to_json();
    let headers_of = |names: &[String]| list(&names.iter().map(|name| canonical_header(name)).collect::<Vec<_>>());
    vec![
        ("client-ca-file", text(&tls.client_ca)),
        ("requestheader-client-ca-file", text(&proxy.ca)),
        ("requestheader-allowed-names", list(&proxy.names)),
        ("requestheader-username-headers", headers_of(&headers.username)),
        ("requestheader-group-headers", headers_of(&headers.groups)),
        ("requestheader-extra-headers-prefix", headers_of(&headers.extra)),
    ]
}

/// The canonical form of a header name in Go, such as `X-Remote-User`.
fn canonical_header(name: &str) -> String {
    let mut starts_word = true;
    let capitalize = |letter: char| {
        let capitalized = if starts_word { letter.to_ascii_uppercase() } else { letter };
        starts_word = letter == '-';
        capitalized
    };
    name.chars().map(capitalize).collect()
}

/// Reloads configuration files when they change.
fn follow_files(
    context: &Arc<Context>,
    authentication: Option<(Followed<AuthenticationConfiguration>, Option<Anonymous>)>,
    authorization: Option<Followed<Vec<AuthorizationMode>>>,
) {
    if let Some((file, initial)) = authentication {
        let context = Arc::downgrade(context);
        file.follow(&METRICS.authentication_config_controller_automatic_reloads, move |configuration| {
            context.upgrade().map(|context| context.authentication.reconfigure(configuration, &initial))
        });
    }
    if let Some(file) = authorization {
        let context = Arc::downgrade(context);
        file.follow(&METRICS.authorization_config_controller_automatic_reloads, move |modes| {
            context.upgrade().map(|context| {
                context.authorizer.set_modes(modes);
                Ok(())
            })
        });
    }
}

/// The client of webhooks, which resolves services from stored objects once they are loaded. `routed` is whether
/// cluster IPs can be reached; otherwise they are not used.
fn webhook_client(
    mapped: HashMap<String, Address>,
    routed: bool,
    objects: Arc<OnceLock<Weak<Objects>>>,
) -> webhook::Client {
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
    webhook::Client::new(webhook::Services::new(mapped, Box::new(lookup)))
}

/// State derived from objects, updated by their events.
struct Followers {
    registry: Arc<Registry>,
    rbac: Arc<authorization::Rbac>,
    admission: Arc<Admission>,
    flow: Option<Arc<Flow>>,
    aggregation: Arc<Aggregation>,
    derived: Arc<controllers::ControllerManager>,
    runtime: RuntimeConfig,
}

impl Followers {
    fn observe(&self, objects: &Objects, key: &Key, event: &Event) {
        self.rbac.observe(key, event);
        self.admission.observe(key, event);
        self.flow.iter().for_each(|flow| flow.observe(key, event));
        self.aggregation.observe(key, event);
        if let Some((group, plural)) = resource::defined_by(key) {
            let client = self.admission.client();
            let defined = resource::defined(objects, client, &self.runtime, self.registry.gates(), &group, &plural);
            self.registry.define(&group, &plural, defined);
        }
        // controllers come last, since they read the state that the others derive from the event
        self.derived.observe(key, event);
    }
}

/// The components of the server that configuration creates: authentication, authorization, fairness, aggregation, allocation.
#[derive(Default)]
struct Components {
    authentication: Authentication,
    modes: Vec<AuthorizationMode>,
    flow: Option<Arc<Flow>>,
    aggregation: Arc<Aggregation>,
    allocation: Allocation,
    /// The identity of the server in the objects of the control plane.
    control_plane: Option<ControlPlane>,
}

/// Loads the store, registers its resources and creates the objects of a new store.
async fn prepare(
    storage: Storage,
    admission: Arc<Admission>,
    components: Components,
    derived: Arc<controllers::ControllerManager>,
    runtime: RuntimeConfig,
    gates: FeatureGates,
) -> Result<Arc<Context>, String> {
    let registry = Arc::new(Registry::new(gates));
    let rbac = Arc::new(authorization::Rbac::new(derived.aggregates()));
    let authorization = authorization::Authorizer::new(rbac.clone(), components.modes, runtime.release);
    let flow = components.flow;
    let followers = Followers {
        registry: registry.clone(),
        rbac,
        admission: admission.clone(),
        flow: flow.clone(),
        aggregation: components.aggregation.clone(),
        derived,
        runtime: runtime.clone(),
    };
    let observer = move |objects: &Objects, key: &Key, event: &Event| followers.observe(objects, key, event);
    let objects = Objects::open(storage, Box::new(observer)).await.map_err(|error| error.to_string())?;
    for versions in builtin::served(&runtime) {
        let Some((newest, older)) = versions.split_first() else { continue };
        let resource = resource::from_row(newest, older, &objects, registry.gates());
        let (group, plural) = (resource.group.clone(), resource.plural.clone());
        registry.replace(&group, &plural, Some(resource));
    }
    let Components { authentication, aggregation, allocation, control_plane, .. } = components;
    let context =
        Context::new(objects, registry, admission, authentication, authorization, flow, aggregation, allocation);
    let context = Arc::new(context);
    // no client learns of a write before the start has ended, and one sync is faster than one for each write
    context.objects.store().defer_sync().await.map_err(|error| error.to_string())?;
    while let Err(status) = verbs::bootstrap(&context, control_plane.as_ref()).await {
        let store = context.objects.store();
        if !store.is_shared() || store.health().is_ok() {
            return Err(status.message.clone());
        }
        // the store may become writable again
        tokio::time::sleep(limits::LEASE_RETRY).await;
    }
    verbs::establish_all(&context).await;
    if !context.objects.store().is_shared() {
        // no request is served yet, so no Service is being written
        let repaired = context
            .allocation
            .repair(context.as_ref(), &mut UnownedReservations::default(), Unowned::ReleasedNow)
            .await;
        repaired.map_err(|status| status.message.clone())?;
    }
    Ok(context)
}

#[cfg(test)]
mod tests {
    use store::Memory;

    use super::*;
    use crate::controllers::{ControllerManager, Controllers};

    /// A server with the default configuration on a store, and the state of its controllers, which are not running.
    pub async fn server(store: Arc<dyn store::Store>) -> (Arc<Context>, Arc<ControllerManager>) {
        let derived = Arc::new(ControllerManager::new(&Controllers::default(), false));
        let (admission, components) = Default::default();
        let (runtime, gates) = Default::default();
        let prepared = prepare(Storage::own(store), admission, components, derived.clone(), runtime, gates);
        (prepared.await.unwrap(), derived)
    }

    /// [`server`] on an empty store in memory.
    pub async fn empty_server() -> (Arc<Context>, Arc<ControllerManager>) {
        server(Arc::new(Memory::default())).await
    }

    #[tokio::test(start_paused = true)]
    async fn lasting_fault_is_reported_after_grace_period() {
        let storage = Storage::own(Arc::new(Memory::default()));
        let objects = Objects::open(storage, Box::new(|_, _, _| {})).await.unwrap();
        let (fault, begun) = (watch::Sender::new(None), clock::instant());
        let supervisor = task::spawn("supervisor", supervise(Arc::downgrade(&objects), fault.clone()));
        tokio::time::sleep(limits::FAULT_GRACE).await;
        objects.faults.passing("the store is away".to_owned());
        tokio::time::sleep(limits::FAULT_GRACE / 2).await;
        objects.faults.passed();
        tokio::time::sleep(limits::FAULT_GRACE).await;
        assert_eq!(*fault.borrow(), None, "a fault that passes does not end the process");
        objects.faults.lasting("an observer has panicked".to_owned());
        supervisor.await.unwrap();
        assert_eq!(fault.borrow().as_deref(), Some("an observer has panicked"));
        let most = limits::FAULT_GRACE * 7 / 2 + limits::FAULT_LOOK * 2;
        assert!(begun.elapsed() >= limits::FAULT_GRACE * 7 / 2 && begun.elapsed() <= most, "{:?}", begun.elapsed());
    }
}
