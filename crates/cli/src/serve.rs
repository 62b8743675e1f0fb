//! `pintle serve`: from flags to a running server, and its shutdown.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Weak};
use std::time::Instant;

use base::metrics::METRICS;
use client::{Context as _, Result, fail};
use machinery::Value;
use offline::validate::Settings;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use server::{
    Address, ApiConfig, Config, Controllers, CustomForm, Egress, FeatureGates, Progresses, Release, RequestConfig,
    RuntimeConfig, Server, ServiceRanges, WorkspaceConfig,
};

use crate::accounts::KeyToMake;
use crate::backups::BackupPlan;
use crate::certificates::{hostname, write_private};
use crate::count::{are, counted};
use crate::credentials::Credentials;
use crate::encryption::Configured;
use crate::ending::{Signal, Signals, watched};
use crate::first_start::FirstStart;
use crate::flags::{Engine, GivenFlags, Serve};
use crate::followed::Earlier;
use crate::identity::Configuration;
use crate::listening::{advertised, bind, url};
use crate::ready::notify;
use crate::reload::Files;
use crate::sharing::{Role, Shared};
use crate::{accounts, captures, etcd, limits, logs, memory, scrub};

/// Serves until a signal. Fails with a one-line message.
#[allow(clippy::disallowed_methods, reason = "the ready line reports how long the start took")]
pub fn run(flags: &Serve, given: GivenFlags) -> Result<()> {
    let started = Instant::now();
    logs::start(flags.v, flags.logging_format);
    check_testing(flags)?;
    flags.follow.check()?;
    let (reasons, ends) = watched(flags.exit_with_parent, flags.exit_with_stdin);
    let Role::Serves(mut shared) = flags.sharing.role(&reasons)? else { return Ok(()) };
    let (release, compatible_minor) = flags.emulation.releases()?;
    let plan = planned_capture(flags, release)?;
    let mut controllers = controllers(flags)?;
    let (runtime, feature_gates) = features(&flags.feature_gates, &flags.runtime_config, release)?;
    let admission = flags.admission.admission(&feature_gates, controllers.creates_accounts())?;
    warn_of_ignored(flags, &given, admission.without_effect, &feature_gates, release);
    let service_addresses = service_addresses(flags)?;
    let (mut authentication, authentication_file) = flags.identity.authentication()?;
    let Configuration { value: authorization, file: authorization_file } = flags.identity.authorization()?;
    let encryption = flags.encryption.open()?;
    let Taken { threads, socket, is_new } = take_place(flags, shared.as_mut())?;
    let (storage, credentials) = open(flags, &feature_gates, &encryption, is_new)?;
    let upkeep = Upkeep::plan(flags, &credentials, &storage)?;
    credentials.equip(&mut controllers)?;
    let files = Files::of(flags, &credentials);
    authentication.tokens = files.tokens()?;
    let (accounts, mut key) = accounts::load(flags, credentials.directory())?;
    authentication.accounts = accounts;
    let requests = requests(flags, compatible_minor)?;
    let api = ApiConfig {
        plugins: Arc::new(admission.plugins),
        service_addresses,
        authentication,
        modes: server::authorization_modes(authorization),
        proxy_identity: flags.identity.proxy_identity()?.map(Arc::new),
        service_ranges: service_ranges(flags)?,
        controllers,
        // without the default FlowSchemas, which a capture need not have, nothing would be shared in a sensible way
        seats: (flags.enable_priority_and_fairness && flags.from.is_empty()).then(|| requests.inflight_max.seats()),
        runtime,
        gates: feature_gates,
        compaction_interval: flags.etcd_compaction_interval,
        progress: Progresses::new(flags.testing, embed::sets::objects(&flags.progress)?),
        testing: flags.testing,
        ..ApiConfig::default()
    };
    let config = Config {
        api,
        requests,
        descriptors: raise_descriptor_limit(),
        tls: files.tls()?,
        replacements: files.replacements(),
        authentication_file,
        authorization_file,
        manifests: admission.manifests,
        advertise_address: advertised(flags.advertise_address, flags.bind_address),
        hostname: hostname(),
        flags: given.shown,
        workspaces: workspaces(flags, &socket)?,
        capture: threads.block_on(captures::load(plan, flags.clock, &storage))?,
        tracing: flags.tracing.configuration()?,
        shutdown_delay: flags.shutdown_delay_duration,
        grace: flags.shutdown_grace_period,
    };
    let ended = threads.block_on(async {
        let mut signals = Signals::listen(ends)?;
        let Some(server) = begin(flags, storage, socket, config, &mut signals).await? else { return Ok(()) };
        let ready = announce(flags, &given.changed, &server, &credentials, started)?;
        shared.iter().try_for_each(|shared| shared.ready(&ready, reasons.clone()))?;
        upkeep.begin(flags, encryption, threads.metrics().num_workers())?;
        make_shared(flags, &mut key);
        until_end(server, &credentials, &mut signals, &mut key).await
    });
    end_threads(threads, key);
    ended
}

/// Starts the server, and applies the files that it follows. Both may take long, so a signal must be able to interrupt them: then
/// there is no server.
async fn begin(
    flags: &Serve,
    storage: server::Storage,
    socket: tokio::net::TcpListener,
    config: Config,
    signals: &mut Signals,
) -> Result<Option<Server>> {
    let server = tokio::select! {
        server = Server::start(storage, socket, config) => server?,
        () = signals.end() => return Ok(None),
    };
    let wrong = tokio::select! {
        wrong = flags.follow.start(&server, earlier(flags)) => wrong?,
        () = signals.end() => {
            stop(server).await;
            return Ok(None);
        }
    };
    if wrong > 0 && flags.require_applied {
        stop(server).await;
        return fail(format!("{} of -f {} not applied", counted(wrong, "file"), are(wrong)));
    }
    Ok(Some(server))
}

/// The work besides requests: free memory, scrubs, scheduled backups, and reloads of the encryption configuration.
struct Upkeep {
    backups: Option<BackupPlan>,
    /// Not owned: the store is closed when the server stops.
    scrubbed: Weak<dyn store::Store>,
}

impl Upkeep {
    fn plan(flags: &Serve, credentials: &Credentials, storage: &server::Storage) -> Result<Upkeep> {
        let backups = planned_backups(flags, credentials, storage)?;
        Ok(Upkeep { backups, scrubbed: Arc::downgrade(&storage.store) })
    }

    fn begin(self, flags: &Serve, encryption: Configured, threads: usize) -> Result<()> {
        memory::start(threads);
        scrub::start(self.scrubbed, flags.scrub_interval)?;
        self.backups.into_iter().for_each(BackupPlan::start);
        if flags.encryption_provider_config_automatic_reload {
            encryption.follow();
        }
        Ok(())
    }
}

/// Makes the signing key at the start: servers that share a store may share the directory too, and each must accept the tokens of
/// the others.
fn make_shared(flags: &Serve, key: &mut Option<KeyToMake>) {
    if flags.engine() == Engine::Etcd {
        key.iter_mut().for_each(KeyToMake::make);
    }
}

#[allow(clippy::disallowed_methods, reason = "the log reports how long the end took")]
async fn stop(server: Server) {
    let began = Instant::now();
    notify("STOPPING=1\n");
    server.stop().await;
    tracing::info!(seconds = began.elapsed().as_secs_f64(), "stopped");
}

/// The parts of a server that come before its store.
struct Taken {
    threads: tokio::runtime::Runtime,
    socket: tokio::net::TcpListener,
    /// Whether the data directory is new.
    is_new: bool,
}

/// Starts the threads, binds the socket, and only then creates the data directory.
fn take_place(flags: &Serve, shared: Option<&mut Shared>) -> Result<Taken> {
    flags.ready.forget()?;
    let threads = threads()?;
    let socket = threads.block_on(bind(SocketAddr::new(flags.bind_address, flags.secure_port)))?;
    let is_new = !flags.data_dir.exists();
    store::create_directory(&flags.data_dir)?;
    if std::fs::metadata(&flags.data_dir).is_ok_and(|metadata| metadata.permissions().mode() & 0o005 != 0) {
        let directory = flags.data_dir.display();
        tracing::warn!(%directory, "every user can enter the data directory; take that permission away (chmod o-rx)");
    }
    if let Some(shared) = shared.filter(|_| is_new && flags.engine() == Engine::Memory) {
        shared.remove(&flags.data_dir);
    }
    METRICS.operation.observe_directory(flags.data_dir.clone());
    Ok(Taken { threads, socket, is_new })
}

/// Opens the store and makes the certificates, both at once, since both wait for the disk most of their time.
fn open(
    flags: &Serve,
    gates: &FeatureGates,
    encryption: &Configured,
    is_new: bool,
) -> Result<(server::Storage, Credentials)> {
    server::bound_history(flags.history_bytes, flags.history_duration);
    let first_start = FirstStart::begin(&flags.data_dir, flags.engine())?;
    let (storage, credentials) = std::thread::scope(|scope| {
        let credentials = scope.spawn(|| {
            if is_new {
                // the directory will contain keys
                write_private(&flags.data_dir.join(".gitignore"), "*\n")?;
            }
            Credentials::start(flags)
        });
        let storage = open_storage(flags, gates);
        (storage, credentials.join().unwrap_or_else(|_| fail("the certificates cannot be made")))
    });
    let opened = (encryption.apply(storage?), credentials?);
    first_start.complete(flags.engine())?;
    Ok(opened)
}

/// The backups that `--backup-schedule` asks for.
fn planned_backups(flags: &Serve, credentials: &Credentials, storage: &server::Storage) -> Result<Option<BackupPlan>> {
    let plan = flags.backups.plan(credentials.directory(), &storage.store)?;
    match (plan, flags.engine()) {
        (None, _) => Ok(None),
        (plan, Engine::Embedded) => Ok(plan),
        (_, Engine::Memory) => fail("--backup-schedule: --storage memory has nothing to back up"),
        (_, Engine::Etcd) => fail("--backup-schedule: back up etcd itself, with etcdctl snapshot save"),
    }
}

/// Warns that objects can make requests fail, or refuses it where clients on other machines would be affected.
fn check_testing(flags: &Serve) -> Result<()> {
    if !flags.progress.is_empty() && flags.engine() == Engine::Etcd {
        let why = "--progress needs the embedded store; other servers of an etcd would have its objects too";
        return fail(why);
    }
    if !flags.testing {
        return Ok(());
    }
    if flags.engine() == Engine::Etcd {
        return fail("--testing needs the embedded store; other servers of an etcd would have its objects too");
    }
    if !flags.bind_address.is_loopback() && !flags.testing_on_any_address {
        let (address, hint) = (flags.bind_address, "--testing-on-any-address accepts that");
        return fail(format!("--testing with --bind-address {address} lets other machines break this server; {hint}"));
    }
    tracing::warn!("testing is on: objects of testing.pintle.dev can make requests fail");
    Ok(())
}

/// Whether workspaces are served, and how.
fn workspaces(flags: &Serve, socket: &tokio::net::TcpListener) -> Result<Option<WorkspaceConfig>> {
    if !flags.workspaces {
        return Ok(None);
    }
    let address = socket.local_addr()?;
    let (gates, runtime) = (flags.feature_gates.clone(), flags.runtime_config.clone());
    let features = move |release| Ok(self::features(&gates, &runtime, release)?);
    let egress = match flags.workspace_egress.as_slice() {
        [] if flags.bind_address.is_loopback() => Egress::All,
        // others than the users of this machine may own workspaces
        [] => Egress::OtherHosts,
        networks => Egress::Networks(networks.into()),
    };
    Ok(Some(WorkspaceConfig {
        features: Box::new(features),
        url: url(address),
        domain: flags.workspace_domain().to_owned(),
        names_hosts: flags.workspace_domain.is_some(),
        egress,
    }))
}

/// The optional APIs and the feature gates.
fn features(gates: &[String], runtime: &[String], release: Release) -> Result<(RuntimeConfig, FeatureGates)> {
    let gates = FeatureGates::parse(gates, release).context("--feature-gates")?;
    let runtime = RuntimeConfig::parse(runtime, &gates).context("--runtime-config")?;
    Ok((runtime, gates))
}

/// Reports that the server is ready, once its kubeconfigs are written.
fn announce(
    flags: &Serve,
    changed: &[String],
    server: &Server,
    credentials: &Credentials,
    started: Instant,
) -> Result<Value> {
    let address = server.address.ok_or("the server has no socket")?;
    let kubeconfig = credentials.write_kubeconfigs(url(address))?;
    let ready = flags.ready.say(address, &kubeconfig, started.elapsed())?;
    log_start(flags, changed, server, address);
    Ok(ready)
}

/// Logs the version, the storage and the flags of a server that is ready.
fn log_start(flags: &Serve, changed: &[String], server: &Server, address: SocketAddr) {
    let (storage, data_directory) = (flags.engine(), flags.data_dir.display());
    let (version, flags) = (env!("CARGO_PKG_VERSION"), changed.join(" "));
    let revision = server.revision;
    tracing::info!(version, %address, ?storage, %data_directory, revision, flags, "started");
}

/// Whether the store may have objects that an earlier run has applied from files.
fn earlier(flags: &Serve) -> Earlier {
    match flags.engine() {
        Engine::Memory => Earlier::None,
        Engine::Embedded | Engine::Etcd => Earlier::Kept,
    }
}

/// The objects of `--from`.
fn planned_capture(flags: &Serve, release: Release) -> Result<Option<captures::Read>> {
    let judge = flags.report.then(|| Settings {
        releases: vec![release],
        feature_gates: flags.feature_gates.clone(),
        runtime_config: flags.runtime_config.clone(),
        ..Settings::default()
    });
    match flags.engine() {
        _ if flags.from.is_empty() => Ok(None),
        Engine::Etcd => fail("--from: the objects of a source are kept in memory, not in etcd"),
        _ => captures::read(&flags.from, judge.as_ref()).map(Some).context("--from"),
    }
}

fn service_ranges(flags: &Serve) -> Result<ServiceRanges> {
    Ok(ServiceRanges::parse(flags.service_cluster_ip_range.as_deref(), flags.service_node_port_range.as_deref())?)
}

fn requests(flags: &Serve, compatible_minor: u32) -> Result<RequestConfig> {
    let (read_only, mutating) = (flags.max_requests_inflight, flags.max_mutating_requests_inflight);
    let inflight_max = server::InFlightMax { read_only, mutating };
    let audit = Arc::new(flags.audit.audit()?);
    Ok(RequestConfig { timeout: flags.request_timeout, inflight_max, compatible_minor, audit })
}

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Prints one line with the settings that are accepted but have no effect.
fn warn_of_ignored(flags: &Serve, given: &GivenFlags, unknown: Vec<String>, gates: &FeatureGates, release: Release) {
    let ignored = [
        ("flags", given.without_effect.clone()),
        ("configurations of admission plugins", unknown),
        ("authorization modes", flags.identity.modes_without_effect()),
        ("feature gates", texts(&gates.without_effect(&flags.feature_gates, release))),
        ("admission plugins", texts(&flags.admission.without_effect())),
        ("APIs", texts(&RuntimeConfig::without_effect(&flags.runtime_config, gates))),
    ];
    let ignored = ignored.iter().filter(|(_, names)| !names.is_empty());
    let ignored: Vec<String> = ignored.map(|(kind, names)| format!("{kind}: {}", names.join(", "))).collect();
    if !ignored.is_empty() {
        logs::print_error(&format!("pintle: accepted without effect: {}", ignored.join("; ")));
    }
}

/// Serves until there is a reason to end, and stops the server. The error is the fault for which the process must exit.
async fn until_end(
    server: Server,
    credentials: &Credentials,
    signals: &mut Signals,
    key: &mut Option<KeyToMake>,
) -> Result<()> {
    let ended = wait_for_end(&server, credentials, signals, key).await;
    stop(server).await;
    ended
}

/// Waits for a reason to end the server, and meanwhile reloads files and makes the signing key when it is needed. The error
/// is the fault for which the process must exit.
async fn wait_for_end(
    server: &Server,
    credentials: &Credentials,
    signals: &mut Signals,
    key: &mut Option<KeyToMake>,
) -> Result<()> {
    // the start has read all files
    let mut look = tokio::time::interval(limits::CERTIFICATE_LOOK);
    look.reset();
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                Signal::Reload => {
                    credentials.renew();
                    server.reload();
                }
                Signal::End(reason) => {
                    tracing::info!(reason, "stopping");
                    return Ok(());
                }
            },
            _ = look.tick() => {
                credentials.renew();
                server.reload();
            }
            () = wanted(key.as_ref()) => key.iter_mut().for_each(KeyToMake::make),
            why = server.failed() => {
                tracing::error!(reason = why, "stopping");
                return fail(why);
            }
        }
    }
}

/// Waits until the signing key is needed; for ever if there is none to make.
async fn wanted(key: Option<&KeyToMake>) {
    match key {
        Some(key) => key.wanted().await,
        None => std::future::pending().await,
    }
}

/// Ends every thread that may use a random number generator. Otherwise the exit of the process could destroy the state of a
/// generator that is in use, and abort.
fn end_threads(runtime: tokio::runtime::Runtime, key: Option<KeyToMake>) {
    // a request whose work takes longer than the end panics, since it finds no timer; its client has been closed
    std::panic::set_hook(Box::new(|_| {}));
    // tasks are dropped; blocking threads, for example in a DNS lookup, are only waited for up to the time limit
    runtime.shutdown_timeout(limits::THREADS_END);
    key.into_iter().for_each(KeyToMake::join);
}

/// The runtime of the server: a worker thread per core, with stacks for deeply nested values.
fn threads() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(server::WORKER_STACK_BYTES)
        .build()
        .context("cannot start threads")
}

/// Raises `RLIMIT_NOFILE` to its hard limit, as Go's runtime does. Returns the new limit.
fn raise_descriptor_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let set = |current| setrlimit(Resource::Nofile, Rlimit { current, maximum }).map(|()| current);
    let raised = match maximum {
        _ if current == maximum => Ok(current),
        // macOS reports no hard limit, but refuses such a soft limit
        None if cfg!(target_os = "macos") => set(current.max(Some(limits::MACOS_DESCRIPTORS))),
        _ => set(maximum),
    };
    let limit = raised.unwrap_or_else(|error| {
        tracing::warn!(%error, "the limit of open files cannot be raised");
        current
    });
    limit.unwrap_or(u64::MAX)
}

fn service_addresses(flags: &Serve) -> Result<HashMap<String, Address>> {
    let parse = |text: &String| {
        let (service, address) = text.split_once('=').ok_or("wanted NAMESPACE/NAME[:PORT]=HOST:PORT")?;
        if service.matches('/').count() != 1 {
            return fail("wanted NAMESPACE/NAME[:PORT] before the =");
        }
        Ok((service.to_owned(), Address::parse(address)?))
    };
    let about = |text: &String| format!("--service-address: {text:?}");
    flags.service_address.iter().map(|text| parse(text).context(about(text))).collect()
}

fn controllers(flags: &Serve) -> Result<Controllers> {
    let mut controllers = Controllers::parse(&flags.controllers).context("--controllers")?;
    // nothing may collect or expire what was captured, unless it is asked for
    match flags.from.is_empty() {
        true => controllers.event_ttl = flags.event_ttl,
        false if flags.controllers.is_empty() => controllers = Controllers::none(),
        false => {}
    }
    controllers.alone = !flags.leader_elect;
    Ok(controllers)
}

fn open_storage(flags: &Serve, gates: &FeatureGates) -> Result<server::Storage> {
    if flags.encryption_provider_config_automatic_reload && !flags.encryption.is_given() {
        return fail("--encryption-provider-config-automatic-reload: needs --encryption-provider-config");
    }
    let etcd = || {
        let form = if gates.has(server::Feature::Cbor) { CustomForm::Cbor } else { CustomForm::Json };
        let server = etcd::Server { directory: &flags.data_dir, event_ttl: flags.event_ttl, form };
        etcd::storage(&flags.etcd, Some(&server))
    };
    match flags.engine() {
        Engine::Etcd => etcd(),
        Engine::Memory => Ok(server::Storage::own(Arc::new(store::Memory::default()))),
        Engine::Embedded => {
            let id = std::process::id();
            let holder = match flags.secure_port {
                // the port is not known before the store has been opened
                0 => format!("pintle with process id {id}"),
                port => format!("pintle with process id {id} ({})", url(SocketAddr::new(flags.bind_address, port))),
            };
            let (durability, history_bytes) = (flags.durability, flags.history_bytes);
            let options = store::Options { durability, history_bytes, ..store::Options::default() };
            let store = store::Embedded::open(&flags.data_dir, &holder, options)?;
            Ok(server::Storage::own(Arc::new(store)))
        }
    }
}
