//! The API server: from connection to store. Start with [`Server::start`], then read `http/chain.rs`.
//!
//! The rooms of this crate and their layers are in ARCHITECTURE.md; a room imports only lower ones. Below this crate are
//! `access`, `resource`, `objects` and `base`.

mod aggregation;
mod allocation;
mod assembly;
mod compression;
mod controllers;
mod discovery;
mod http;
mod in_process;
mod limits;
mod openapi;
mod progress;
#[cfg(test)]
mod test_server;
mod testing;
pub mod transfer;
mod verbs;
mod workspaces;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

pub use access::admission::plugins::Plugins;
pub use access::admission::plugins::{EnabledPlugins, PluginFlags, PodSecurity, Settings as PluginSettings};
pub use access::admission::{ManifestDirectory, ManifestFile, ManifestPlugin, PolicyExpression};
pub use access::audit::{Audit, AuditPolicy, BatchOptions, LogMode, LogOptions};
pub use access::authentication::{
    AccountOptions, Accounts, Algorithm, Anonymous, Authentication, AuthenticationConfiguration, ProxyHeaders,
    ReviewVersion, StaticTokens, TokenReviewer,
};
pub use access::authorization::{
    AccessReviewer, AuthorizationMode, DecisionTtl, modes as authorization_modes,
    parse_configuration as parse_authorization,
};
use base::metrics::{METRICS, Reload};
pub use base::request::{Feature, FeatureGates, User};
pub use base::trace::Configuration as TracingConfiguration;
pub use base::webhook::{Address, Egress, Identity, Remote, RemoteEndpoint};
use base::{clock, task, trace};
use bytes::Bytes;
use futures_util::TryFutureExt as _;
use futures_util::future::BoxFuture;
pub use http::REQUESTS;
pub use kinds::{CustomForm, RuntimeConfig, upstream_storage};
pub use machinery::Release;
use machinery::Value;
pub use objects::{Encryption, Layout, Storage, bound_history};
use objects::{FaultKind, Objects};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tokio::sync::watch;

pub use self::http::{
    Body, CapturedLogs, InFlightMax, InPlaceOfStored, LogOf, LogRun, ProxyAuthority, RequestConfig, Tls, TlsError,
    VerdictOnly,
};
pub use self::in_process::{Caller, InProcess, InProcessConfig, LocalApi, Mapping};
pub use allocation::Ranges as ServiceRanges;
pub use assembly::ApiConfig;
use assembly::{Beginning, Outgoing, StartError};
pub use controllers::{AbsentOwners, CertificateSigner, Controllers};
pub use progress::{Progresses, names as progress_sets, read as read_progress, set as progress_set};
use testing::Testing;
pub use testing::{COMPARED_HEADERS, report_checks, report_meanings};
use verbs::Context;
use verbs::control_plane::ControlPlane;
pub use verbs::{Addition, Provenance, StandIn, is_own};
use workspaces::Workspaces;
pub use workspaces::{WorkspaceConfig, is_pristine, kubeconfig, workspace_of, workspaces_in};

/// Stack of a worker thread: values may nest 10,000 levels deep.
pub const WORKER_STACK_BYTES: usize = base::limits::WORKER_STACK_BYTES;

/// The configuration of a server.
#[derive(Default)]
pub struct Config {
    pub api: ApiConfig,
    pub requests: RequestConfig,
    /// Descriptors that the process may have open (`RLIMIT_NOFILE`).
    pub descriptors: u64,
    pub tls: Tls,
    /// The files of `tls` and of the static tokens, for reloads.
    pub replacements: Replacements,
    /// The file of `--authentication-config`, and its `anonymous` section.
    pub authentication_file: Option<(Followed<AuthenticationConfiguration>, Option<Anonymous>)>,
    pub authorization_file: Option<Followed<Vec<AuthorizationMode>>>,
    pub manifests: Vec<ManifestDirectory>,
    /// The address under which clients and other servers reach this one (`--advertise-address`).
    pub advertise_address: Option<IpAddr>,
    /// The host name, which identifies the server among those that share the store.
    pub hostname: String,
    /// The flags with which the server was started, for `/flagz`.
    pub flags: BTreeMap<String, String>,
    /// Whether workspaces are served, and how.
    pub workspaces: Option<WorkspaceConfig>,
    /// The capture whose objects the storage has, if it was loaded from one.
    pub capture: Option<ServedCapture>,
    /// The export of traces.
    pub tracing: Option<TracingConfiguration>,
    /// Time between the signal to stop and the end of serving, during which the server is not ready.
    pub shutdown_delay: Duration,
    /// Time limit of requests that are in flight when the server stops.
    pub grace: Duration,
}

/// A capture of a cluster that is served. Nothing changes its objects but clients: the server adds none of its own, calls nothing,
/// and does not publish itself.
pub struct ServedCapture {
    /// The time at which the clock stands, in seconds since the Unix epoch. `None` for the clock of the machine.
    pub moment: Option<i64>,
    pub logs: Arc<dyn CapturedLogs>,
}

impl Config {
    /// Sets what follows from other parts of the configuration. `port` is that of the server's socket, if it has one.
    fn complete(&mut self, port: Option<u16>) {
        self.api.has_manifests = !self.manifests.is_empty();
        if self.capture.is_some() {
            self.api.outgoing = Outgoing::Captured;
            return;
        }
        let hostname = std::mem::take(&mut self.hostname);
        let run = Some(clock::uuid());
        // clients of other processes cannot reach a server without a socket
        self.api.control_plane = port.map(|port| ControlPlane { port, address: self.advertise_address, hostname, run });
    }

    /// The CA bundles that the server publishes.
    fn trust(&self) -> Option<Vec<(&'static str, String)>> {
        self.capture.is_none().then(|| trust(&self.tls, &self.api.authentication.proxy))
    }

    /// The workspaces besides `default`, if they are served.
    fn workspaces(
        &mut self,
        api: &Arc<ApiConfig>,
        health: &Arc<http::Health>,
        storage: &Storage,
    ) -> Option<Arc<Workspaces>> {
        Some(Workspaces::new(workspaces::Parts {
            config: self.workspaces.take()?,
            api: api.clone(),
            requests: self.requests.clone(),
            health: health.clone(),
            watches_max: limits::workspace_watches_max(self.descriptors),
            storage: Storage { store: storage.store.clone(), layout: storage.layout.clone() },
        }))
    }
}

/// Reloaded certificates, keys and tokens, for new connections and requests.
pub struct Replacement {
    pub tls: Tls,
    pub tokens: StaticTokens,
    /// The certificate authority of the serving certificate, in PEM.
    pub root_authority: String,
}

/// Certificates, keys and tokens, which are reloaded when one of their files changes. By default, there are no files.
pub struct Replacements {
    pub paths: Vec<PathBuf>,
    /// Reads all files. On an error, which is one line, the previous content stays in use.
    pub read: Box<dyn Fn() -> Result<Replacement, String> + Send + Sync>,
    /// Called when the replacement is in use. Fails with a one-line message.
    pub applied: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl Default for Replacements {
    fn default() -> Replacements {
        let read = || Err("there are no files".to_owned());
        Replacements { paths: vec![], read: Box::new(read), applied: Box::new(|| Ok(())) }
    }
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

/// The clock of the API, unless it is that of the machine: a test has it in hand, or it stands at the moment of a capture.
fn clock_of(testing: Option<&Arc<Testing>>, capture: Option<&ServedCapture>) -> Option<Arc<clock::WorkspaceClock>> {
    let moment = capture.and_then(|capture| capture.moment);
    let clock = testing.map(|testing| testing.clock().clone()).or_else(|| moment.map(|_| Arc::default()))?;
    if let Some(moment) = moment {
        clock.set(Some(clock::Reading { shown: moment.saturating_mul(1_000_000), since: None }));
    }
    Some(clock)
}

/// A server with a socket.
struct Listening {
    address: SocketAddr,
    acceptors: Arc<http::Acceptors>,
    serving: tokio::task::JoinHandle<()>,
}

impl Listening {
    /// Serves the connections of a socket until `stop` becomes true.
    fn begin(
        socket: tokio::net::TcpListener,
        config: &Config,
        door: Arc<http::Door>,
        stop: watch::Receiver<bool>,
    ) -> Result<Listening, String> {
        let max = limits::connections_max(config.descriptors);
        let listener = http::Listener::new(socket, &config.tls, door, max)?;
        let address = listener.address().map_err(|error| error.to_string())?;
        let acceptors = listener.acceptors();
        let serving = task::spawn("listener", listener.run(stop, config.grace));
        config.api.authentication.accounts.set_address(address);
        Ok(Listening { address, acceptors, serving })
    }
}

/// A running server.
pub struct Server {
    /// `None` without a socket.
    pub address: Option<SocketAddr>,
    /// The revision of the store at the start.
    pub revision: u64,
    stop: watch::Sender<bool>,
    /// The reason for which the process has to exit.
    fault: watch::Sender<Option<String>>,
    health: Arc<http::Health>,
    audit: Arc<Audit>,
    delay: Duration,
    door: Arc<http::Door>,
    serving: Option<tokio::task::JoinHandle<()>>,
    /// The task of leader election.
    candidate: Option<tokio::task::JoinHandle<()>>,
}

impl Server {
    /// Loads the store and starts to serve. Until the store is loaded, only `/livez`, `/readyz` and `/healthz` are
    /// served. `socket` has to be bound before anything is created. Fails with a one-line message.
    ///
    /// The future is boxed here, so that this crate compiles the code of all requests, once and with its own
    /// optimizations: an async function would be compiled, with everything that it spawns, by each crate that calls
    /// it.
    pub fn start(
        storage: Storage,
        socket: tokio::net::TcpListener,
        config: Config,
    ) -> BoxFuture<'static, Result<Server, String>> {
        Box::pin(Self::start_on(storage, Some(socket), config).map_err(reported))
    }

    /// As [`Server::start`], without a socket: all requests come from this process, see [`Server::call`].
    pub fn start_in_process(storage: Storage, config: Config) -> BoxFuture<'static, Result<Server, String>> {
        Box::pin(Self::start_on(storage, None, config).map_err(reported))
    }

    /// Handles a request of a user of this process, as if it had come over a connection. A response is always returned; its body may
    /// be a stream, such as that of a watch.
    pub fn call(&self, caller: &Caller, request: ::http::Request<Bytes>) -> BoxFuture<'static, ::http::Response<Body>> {
        self.local().call(caller, request)
    }

    /// Its API, for tasks of this process.
    pub fn local(&self) -> LocalApi {
        LocalApi::new(self.door.clone())
    }

    async fn start_on(
        storage: Storage,
        socket: Option<tokio::net::TcpListener>,
        mut config: Config,
    ) -> Result<Server, StartError> {
        config.tracing.as_ref().map(trace::start).transpose()?;
        let stop = watch::Sender::new(false);
        let health = Arc::new(http::Health::new(storage.store.clone()));
        let door = Arc::new(http::Door::new(health.clone()));
        let listening =
            socket.map(|socket| Listening::begin(socket, &config, door.clone(), stop.subscribe())).transpose()?;
        let address = listening.as_ref().map(|listening| listening.address);
        let trust = listening.as_ref().and_then(|_| config.trust());
        config.complete(address.map(|address| address.port()));
        let api = Arc::new(std::mem::take(&mut config.api));
        let audit = config.requests.audit.clone();
        let workspaces = config.workspaces(&api, &health, &storage);
        let testing = api.testing.then(|| Testing::new(config.requests.timeout, Arc::default()));
        let observers =
            workspaces.iter().map(Workspaces::observer).chain(testing.iter().map(Testing::observer)).collect();
        let clock = clock_of(testing.as_ref(), config.capture.as_ref());
        let beginning = Beginning { observers, is_complete: config.capture.is_some(), ..Beginning::of(storage) };
        let assembled = clock::within(clock.clone(), api.assemble(beginning)).await?;
        let (context, derived) = (assembled.context.clone(), assembled.controllers.clone());
        let identity = api.control_plane.as_ref().map(ControlPlane::name).unwrap_or_default();
        config.manifests.into_iter().for_each(|directory| directory.follow(&context.admission, &identity));
        health.watch(&context.objects);
        let fault = supervised(&context.objects);
        let revision = context.objects.revision();
        name_foreign_authority(&context, &api.controllers.root_authority);
        if let Some(trust) = trust {
            publish_trust(context.clone(), trust).await;
        }
        follow_files(&context, config.authentication_file, config.authorization_file);
        let serving = listening.map(|Listening { acceptors, serving, .. }| {
            config.replacements.follow(acceptors, Arc::downgrade(&context), derived.clone());
            serving
        });
        audit.start();
        testing::keep_kinds(testing.is_some(), &context).await?;
        api.progress.keep(&context).await?;
        if let Some(testing) = &testing {
            testing::start(testing, &assembled, stop.subscribe());
            health.for_testing();
        }
        let edge = http::Edge::new(http::EdgeParts {
            context,
            health: health.clone(),
            open: door.open.clone(),
            stop: stop.subscribe(),
            config: config.requests,
            flags: config.flags,
            interceptor: testing.map(Testing::interceptor),
            clock: clock.clone(),
            capacity: None,
            logs: config.capture.map(|capture| capture.logs),
            prefix: Default::default(),
        });
        open_door(&door, edge, workspaces, derived.leads(), stop.subscribe()).await?;
        // no request waits for the first work of the controllers
        let candidate = clock::scoped(clock.as_ref(), || assembled.start(&api, &stop.subscribe()));
        let delay = config.shutdown_delay;
        Ok(Server { address, revision, stop, fault, health, audit, delay, door, serving, candidate })
    }

    /// Checks certificates, keys, tokens and configuration files now and reloads those that have changed; opens the audit log again.
    pub fn reload(&self) {
        self.audit.reopen();
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
        if let Some(serving) = self.serving {
            let _ = serving.await;
        }
        self.audit.flush().await;
        trace::flush().await;
        if let Some(candidate) = self.candidate {
            let _ = tokio::time::timeout(limits::LEASE_RETRY, candidate).await;
        }
    }
}

/// The message of an error. The log gets its cause, which may be a path or an error of the operating system.
fn reported(why: StartError) -> String {
    if let Some(cause) = std::error::Error::source(&why) {
        tracing::error!(cause, "the server cannot start");
    }
    why.to_string()
}

/// Records how long the disk takes.
struct DiskMetrics;

impl store::StoreObserver for DiskMetrics {
    fn took(&self, work: store::DiskWork, time: Duration) {
        let histogram = match work {
            store::DiskWork::Commit => &METRICS.operation.store_commit_duration_seconds,
            store::DiskWork::Sync => &METRICS.operation.store_sync_duration_seconds,
        };
        histogram.observe(time.as_secs_f64());
    }
}

/// Logs when the disk begins to hang, and when it works again.
#[derive(Default)]
struct DiskWatch {
    hangs: bool,
}

impl DiskWatch {
    /// `in_flight` is how long the current write has taken.
    fn look(&mut self, in_flight: Option<Duration>) {
        let hangs = in_flight.is_some_and(|taken| taken >= limits::COMMIT_SLOW);
        match (self.hangs, hangs) {
            (false, true) => {
                let seconds = in_flight.unwrap_or_default().as_secs();
                tracing::warn!(seconds, "the disk has not finished a write to the store; later writes wait for it");
            }
            (true, false) => tracing::warn!("the disk has finished the write to the store that took long"),
            _ => {}
        }
        self.hangs = hangs;
    }
}

/// Starts the workspaces, and then lets all requests in: what the start has written is on the disk.
async fn open_door(
    door: &http::Door,
    edge: http::Edge,
    workspaces: Option<Arc<Workspaces>>,
    leads: watch::Receiver<bool>,
    stop: watch::Receiver<bool>,
) -> Result<(), StartError> {
    let edge = Arc::new(edge);
    // workspaces expire by the clock of `default`, where their objects are
    let begun = workspaces::start(workspaces, &edge, leads, stop);
    let branches = clock::within(edge.clock.clone(), begun).await?;
    edge.context.objects.store().sync().await?;
    door.serve_all(edge, branches);
    Ok(())
}

/// Starts the supervision of a store and its watch cache. Returns the fault that it reports.
fn supervised(objects: &Arc<Objects>) -> watch::Sender<Option<String>> {
    let fault = watch::Sender::new(None);
    task::spawn("fault supervisor", supervise(Arc::downgrade(objects), fault.clone()));
    fault
}

/// Reports a fault of the store or of the watch cache that has lasted for the grace period.
async fn supervise(objects: Weak<Objects>, fault: watch::Sender<Option<String>>) {
    let (mut ended_at, mut disk) = (None, DiskWatch::default());
    objects.upgrade().iter().for_each(|objects| objects.store().observe(Arc::new(DiskMetrics)));
    while let Some(objects) = objects.upgrade() {
        let store = objects.store();
        disk.look(store.in_flight());
        // etcd may be unavailable for any time
        let gravest = if store.is_shared() { FaultKind::Final } else { FaultKind::Passing };
        let mut why = objects.faults.lasted(limits::FAULT_GRACE, gravest);
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

/// Logs that clients of the servers that share the store cannot trust all of them.
fn name_foreign_authority(context: &Context, own: &str) {
    if controllers::published_authority(context).is_some_and(|published| is_foreign(&published, own)) {
        tracing::warn!(
            "the servers that share this store have another certificate authority: clients trust either them or this server; start all with the same certificates"
        );
    }
}

/// Whether a published CA bundle and the one of this server have no certificate in common. While an authority is replaced, they share
/// one.
fn is_foreign(published: &str, own: &str) -> bool {
    let certificates = |bundle: &str| -> std::collections::BTreeSet<String> {
        bundle.split("-----BEGIN CERTIFICATE-----").skip(1).map(|one| one.trim().to_owned()).collect()
    };
    let (published, own) = (certificates(published), certificates(own));
    !published.is_empty() && !own.is_empty() && published.is_disjoint(&own)
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

#[cfg(test)]
mod tests {
    use store::Memory;

    use super::*;

    #[test]
    fn an_authority_is_foreign_if_no_certificate_is_shared() {
        let bundle = |names: &[&str]| {
            let certificate = |name: &&str| format!("-----BEGIN CERTIFICATE-----\n{name}\n-----END CERTIFICATE-----\n");
            names.iter().map(certificate).collect::<String>()
        };
        for (published, own, foreign) in [
            (&["a"][..], &["a"][..], false),
            (&["a"], &["b"], true),
            (&["a", "b"], &["b"], false),
            (&[], &["b"], false),
        ] {
            assert_eq!(is_foreign(&bundle(published), &bundle(own)), foreign, "{published:?} {own:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lasting_fault_is_reported_after_grace_period() {
        let storage = Storage::own(Arc::new(Memory::default()));
        let objects = Objects::open(storage, Default::default(), Box::new(|_, _, _| {})).await.unwrap();
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
