//! A server in this process, from its start to its end.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use machinery::{Release, Value};
use parking_lot::Mutex;
use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use server::Accounts;
use tokio::net::TcpListener;
use tokio::sync::OnceCell;

use crate::captures;
use crate::configuration::{PortCredentials, Wanted, configuration};
use crate::error::Error;
use crate::service::{Api, Port, Running};
use crate::workspace::{DEFAULT, MANAGER, Workspace};

/// The settings of a server. [`Builder::start`] starts it.
#[derive(Clone, Debug, Default)]
#[must_use = "a server is started with `start`"]
pub struct Builder {
    wanted: Wanted,
    version: Option<String>,
    port: Option<u16>,
}

impl Builder {
    /// Serves connections on a port of 127.0.0.1 as well, with TLS; 0 picks a free port. [`Server::kubeconfig`] has
    /// its address.
    pub fn port(mut self, port: u16) -> Builder {
        self.port = Some(port);
        self
    }

    /// Serves the objects of `testing.pintle.dev`, with which [`Workspace::fault`] and [`Workspace::settle`] work.
    pub fn testing(mut self) -> Builder {
        self.wanted.testing = true;
        self
    }

    /// The release of Kubernetes to emulate: `1.35`, `1.36` or `1.37`.
    pub fn kubernetes_version(mut self, version: &str) -> Builder {
        self.version = Some(version.to_owned());
        self
    }

    /// Switches a feature gate, as in `MutatingAdmissionPolicy=true`.
    pub fn feature_gate(mut self, gate: &str) -> Builder {
        self.wanted.feature_gates.push(gate.to_owned());
        self
    }

    /// Switches an API on or off, as in `resource.k8s.io/v1beta1=true`.
    pub fn runtime_config(mut self, api: &str) -> Builder {
        self.wanted.runtime_config.push(api.to_owned());
        self
    }

    /// Begins with the objects of a source: a file, a directory, an archive, a capture of a cluster such as a support bundle, a snapshot
    /// of etcd, or `kubeconfig:FILE` for a cluster. They are served as they are, in the workspace `default` and its forks, at the time of
    /// the capture, and no controller runs without [`Builder::controllers`]. May be repeated; later ones win.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let bundle = directory.path().join("bundle.yaml");
    /// # std::fs::write(&bundle, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n")?;
    /// let server = embed::Server::ephemeral().source(&bundle.to_string_lossy()).start().await?;
    /// let workspace = server.default_workspace().fork().await?;
    /// workspace.get("/api/v1/namespaces/shop/configmaps/a").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn source(mut self, source: &str) -> Builder {
        self.wanted.sources.push(source.to_owned());
        self
    }

    /// With sources, runs the controllers that complete what clients change: garbage collection, deletion of namespaces, aggregation of
    /// ClusterRoles, and quotas. An object whose owner was not captured stays. Manifests that no server has seen count as applied with
    /// [`Workspace::apply`], so that applying them again removes the fields that are gone.
    pub fn controllers(mut self) -> Builder {
        self.wanted.controllers = true;
        self
    }

    /// Gives every workspace Progress objects, which move other objects on as kubelets and controllers would.
    pub fn progress(mut self, objects: Vec<Value>) -> Builder {
        self.wanted.progress = objects;
        self
    }

    /// Starts the server. It serves when this returns.
    ///
    /// # Errors
    ///
    /// A setting is invalid, the port is in use, or a source has no objects.
    pub async fn start(mut self) -> Result<Server, Error> {
        if let Some(version) = &self.version {
            let unknown = |_| Error::new(format!("{version:?} is not a release that can be served"));
            self.wanted.release = version.parse::<Release>().map_err(unknown)?;
        }
        let threads = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_name("pintle")
            .thread_stack_size(server::WORKER_STACK_BYTES)
            .build()
            .map_err(|error| Error::new(format!("cannot start threads: {error}")))?;
        let handle = threads.handle().clone();
        let started = handle.spawn(start(self.wanted, self.port)).await;
        let failed = |error: tokio::task::JoinError| Error::new(format!("the start has failed: {error}"));
        let Started { server, port, manifests } = match started.map_err(failed) {
            Ok(Ok(started)) => started,
            Ok(Err(why)) => return Err(abandoned(threads, Error::new(why))),
            Err(error) => return Err(abandoned(threads, error)),
        };
        let server = Server { running: Arc::new(Running::new(server, port, threads)), templates: Arc::default() };
        server.default_workspace().own(&manifests).await;
        Ok(server)
    }
}

/// The result of a start.
struct Started {
    server: server::Server,
    port: Option<Port>,
    /// The manifests of the sources, if they are to count as applied.
    manifests: Vec<Value>,
}

/// Ends threads without waiting for them: a wait would block the threads of the program.
fn abandoned(threads: tokio::runtime::Runtime, error: Error) -> Error {
    threads.shutdown_background();
    error
}

/// Starts a server on the threads of this task. Fails with a one-line message.
async fn start(wanted: Wanted, port: Option<u16>) -> Result<Started, String> {
    let mut manifests = vec![];
    let storage = server::Storage::own(Arc::new(store::Memory::default()));
    let capture = match wanted.sources.as_slice() {
        [] => None,
        sources => {
            let mut plan = base::task::blocking(|| captures::read(sources, Ok::<_, String>))?;
            if wanted.controllers {
                manifests = captures::manifests(&mut plan, MANAGER);
            }
            Some(captures::load(plan, &storage).await?)
        }
    };
    let Some(port) = port else {
        let (mut config, accounts) = configuration(&wanted, None)?;
        config.capture = capture;
        base::task::spawn("signing key", make_key(accounts));
        let server = server::Server::start_in_process(storage, config).await?;
        return Ok(Started { server, port: None, manifests });
    };
    let credentials = PortCredentials::make()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let socket = TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    let address = socket.local_addr().map_err(|error| error.to_string())?;
    let url = format!("https://{address}");
    let (mut config, accounts) = configuration(&wanted, Some((&credentials, url.clone())))?;
    config.capture = capture;
    base::task::spawn("signing key", make_key(accounts));
    let server = server::Server::start(storage, socket, config).await?;
    Ok(Started { server, port: Some(Port { credentials, url }), manifests })
}

/// Makes the key of ServiceAccount tokens when the first one is asked for: it takes longer than the start.
async fn make_key(accounts: Accounts) {
    accounts.signing_key_wanted().await;
    let made: Result<String, String> = base::task::blocking(|| {
        let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048);
        key.map(|key| key.serialize_pem()).map_err(|error| format!("no key can be generated: {error}"))
    });
    // a failure is the response to requests for tokens
    let _ = accounts.set_signing_key(made.as_ref().map(String::as_bytes).map_err(Clone::clone));
}

/// The name of a template, once the first caller has built it. It is not the [`Workspace`] itself, which would keep the server running.
type Template = Arc<OnceCell<String>>;

/// An API server in this process. It ends with [`Server::stop`], or when it, its workspaces and their [`Api`]s are dropped.
#[derive(Clone)]
pub struct Server {
    running: Arc<Running>,
    templates: Arc<Mutex<HashMap<String, Template>>>,
}

impl Server {
    /// A server that keeps everything in memory.
    pub fn ephemeral() -> Builder {
        Builder::default()
    }

    /// The API at `/`, the workspace `default`, for a user who may do everything.
    pub fn api(&self) -> Api {
        self.default_workspace().api()
    }

    /// The workspace at `/`, which every server has. It can be forked, but not reset or deleted.
    pub fn default_workspace(&self) -> Workspace {
        Workspace::named(self.running.clone(), DEFAULT)
    }

    /// A new workspace, which begins empty.
    ///
    /// # Errors
    ///
    /// The server has been stopped.
    pub async fn workspace(&self) -> Result<Workspace, Error> {
        Workspace::create(&self.running, Value::object()).await
    }

    /// A workspace with everything that `build` has put into it, for forks. It is built once for each key, by the first caller; others
    /// wait for it. It cannot be changed.
    ///
    /// # Errors
    ///
    /// `build` fails, or the server has been stopped. The next caller builds it again.
    pub async fn template<F>(&self, key: &str, build: impl FnOnce(Workspace) -> F) -> Result<Workspace, Error>
    where
        F: Future<Output = Result<(), Error>>,
    {
        let template = self.templates.lock().entry(key.to_owned()).or_default().clone();
        let built = template.get_or_try_init(|| async {
            let workspace = self.workspace().await?;
            build(workspace.clone()).await?;
            workspace.seal().await?;
            Ok(workspace.name().to_owned())
        });
        Ok(Workspace::named(self.running.clone(), built.await?))
    }

    /// A kubeconfig for programs outside of this process, as JSON.
    ///
    /// # Errors
    ///
    /// The server has no port.
    pub fn kubeconfig(&self) -> Result<String, Error> {
        self.running.kubeconfig("pintle", "")
    }

    /// Stops the server: watches end, and later requests fail.
    pub async fn stop(self) {
        self.running.stop().await;
    }
}
