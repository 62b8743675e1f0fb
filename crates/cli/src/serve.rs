//! `pintle serve`: a checklist from flags to a running server and back.

use std::collections::HashMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use server::{Address, Authentication, Config, Controllers, FeatureGates, RuntimeConfig, Server, Tls};

use crate::certificates::{self, Certificates, write_private};
use crate::flags::{Serve, Storage};
use crate::{accounts, kubeconfig, logs};

const KUBECONFIG: &str = "admin.kubeconfig";

/// Serves until a signal. The error is one line.
#[allow(clippy::disallowed_methods, reason = "the ready line tells how long the start took")]
pub fn run(flags: &Serve) -> Result<(), String> {
    let started = Instant::now();
    logs::start(flags.v, flags.logging_format);
    server::check_plugins(&flags.disable_admission_plugins)
        .map_err(|error| format!("--disable-admission-plugins: {error}"))?;
    let runtime = RuntimeConfig::parse(&flags.runtime_config).map_err(|error| format!("--runtime-config: {error}"))?;
    let service_addresses = service_addresses(flags)?;
    let mut authentication = authentication(flags)?;
    let store = open_store(flags)?;
    let certificates = certificates::load_or_make(&certificate_directory(flags), flags.bind_address)?;
    let (accounts, key_to_make) = accounts::load(flags, &certificate_directory(flags))?;
    authentication.accounts = accounts.clone();
    let config = Config {
        address: SocketAddr::new(flags.bind_address, flags.secure_port),
        tls: tls(flags, &certificates)?,
        authentication,
        disabled_admission_plugins: flags.disable_admission_plugins.clone(),
        service_addresses,
        controllers: controllers(flags, &certificates)?,
        feature_gates: FeatureGates::parse(&flags.feature_gates)
            .map_err(|error| format!("--feature-gates: {error}"))?,
        runtime,
        request_timeout: flags.request_timeout,
        inflight_max: flags.max_requests_inflight,
        shutdown_delay: flags.shutdown_delay_duration,
        grace: flags.shutdown_grace_period,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(server::WORKER_STACK_BYTES)
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))?;
    runtime.block_on(async {
        let signals = Signals::listen()?;
        let server = Server::start(store, config).await?;
        let path = write_kubeconfig(flags, &certificates, server.address)?;
        let (url, milliseconds) = (url(server.address), started.elapsed().as_millis());
        let ready = format!("pintle is ready on {url} in {milliseconds} ms; kubeconfig: {}", path.display());
        // whoever started us may not listen
        let _ = writeln!(std::io::stdout(), "{ready}");
        if let Some(path) = key_to_make {
            accounts::make_signing_key(accounts, path);
        }
        signals.wait().await;
        server.stop().await;
        Ok(())
    })
}

struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> Result<Signals, String> {
        use tokio::signal::unix::{SignalKind, signal};
        let failed = |error: std::io::Error| format!("cannot listen for signals: {error}");
        Ok(Signals {
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
        })
    }

    async fn wait(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn service_addresses(flags: &Serve) -> Result<HashMap<String, Address>, String> {
    let parse = |text: &String| {
        let wrong = |why: &str| format!("--service-address: {text:?}: {why}");
        let (service, address) = text.split_once('=').ok_or_else(|| wrong("wanted NAMESPACE/NAME[:PORT]=HOST:PORT"))?;
        if service.matches('/').count() != 1 {
            return Err(wrong("wanted NAMESPACE/NAME[:PORT] before the ="));
        }
        Ok((service.to_owned(), Address::parse(address).map_err(|why| wrong(&why))?))
    };
    flags.service_address.iter().map(parse).collect()
}

fn authentication(flags: &Serve) -> Result<Authentication, String> {
    let text = match &flags.token_auth_file {
        Some(path) => {
            std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?
        }
        None => String::new(),
    };
    Authentication::with_tokens(&text).map_err(|error| format!("--token-auth-file: {error}"))
}

fn controllers(flags: &Serve, own: &Certificates) -> Result<Controllers, String> {
    let mut controllers = Controllers::parse(&flags.controllers).map_err(|error| format!("--controllers: {error}"))?;
    controllers.event_ttl = flags.event_ttl;
    controllers.root_authority = match flags.root_ca_file.as_ref().or(flags.tls_cert_file.as_ref()) {
        Some(path) => {
            std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?
        }
        None => own.authority.clone(),
    };
    Ok(controllers)
}

fn open_store(flags: &Serve) -> Result<Arc<dyn store::Store>, String> {
    match flags.storage {
        Storage::Memory => Ok(Arc::new(store::Embedded::in_memory())),
        Storage::Embedded => {
            let address = SocketAddr::new(flags.bind_address, flags.secure_port);
            let holder = format!("pintle with process id {} ({})", std::process::id(), url(address));
            let options = store::Options { durability: flags.durability, ..store::Options::default() };
            let store = store::Embedded::open(&flags.data_dir, &holder, options).map_err(|error| error.to_string())?;
            Ok(Arc::new(store))
        }
        Storage::Etcd => Err(format!(
            "--storage etcd is not part of this version yet (servers {:?}, prefix {})",
            flags.etcd_servers, flags.etcd_prefix
        )),
    }
}

fn certificate_directory(flags: &Serve) -> PathBuf {
    flags.cert_dir.clone().unwrap_or_else(|| flags.data_dir.clone())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// A file of one or more certificates, PEM.
fn read_certificates(path: &Path) -> Result<Vec<u8>, String> {
    use rustls::pki_types::{CertificateDer, pem::PemObject as _};
    let pem = read(path)?;
    match CertificateDer::pem_slice_iter(&pem).next() {
        Some(Ok(_)) => Ok(pem),
        Some(Err(error)) => Err(format!("{}: {error}", path.display())),
        None => Err(format!("{} holds no certificate", path.display())),
    }
}

fn tls(flags: &Serve, own: &Certificates) -> Result<Tls, String> {
    let (certificate, key) = match (&flags.tls_cert_file, &flags.tls_private_key_file) {
        (Some(certificate), Some(key)) => (read_certificates(certificate)?, read(key)?),
        _ => (own.serving.certificate.clone().into_bytes(), own.serving.key.clone().into_bytes()),
    };
    let mut client_ca = own.authority.clone().into_bytes();
    if let Some(path) = &flags.client_ca_file {
        client_ca.extend(read_certificates(path)?);
    }
    Ok(Tls { certificate, key, client_ca })
}

/// The address as clients use it.
fn url(address: SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => format!("https://127.0.0.1:{}", address.port()),
        false => format!("https://{address}"),
    }
}

fn write_kubeconfig(flags: &Serve, own: &Certificates, address: SocketAddr) -> Result<PathBuf, String> {
    let authority = match &flags.tls_cert_file {
        Some(path) => {
            std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?
        }
        None => own.authority.clone(),
    };
    let path = flags.data_dir.join(KUBECONFIG);
    let text = kubeconfig::render(&url(address), &authority, &own.admin.certificate, &own.admin.key);
    write_private(&path, &text)?;
    Ok(path)
}
