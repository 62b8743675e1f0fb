//! The configuration of a server that is embedded: everything on, nothing on disk.

use std::sync::Arc;

use base::clock;
use machinery::{Release, Value, json};
use server::{
    AbsentOwners, AccountOptions, Accounts, Anonymous, ApiConfig, Authentication, AuthorizationMode, Config,
    Controllers, Egress, EnabledPlugins, FeatureGates, PluginFlags, PluginSettings, Plugins, Progresses, RequestConfig,
    RuntimeConfig, StaticTokens, Tls, WorkspaceConfig,
};

use crate::limits;

/// The controllers that [`crate::Builder::controllers`] runs on the objects of sources: they act on what clients change.
const OF_CAPTURES: [&str; 4] = ["clusterrole-aggregation", "garbagecollector", "namespace", "resourcequota"];

/// The settings of a server.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub release: Release,
    pub feature_gates: Vec<String>,
    pub runtime_config: Vec<String>,
    pub testing: bool,
    /// Whether controllers run although the objects are those of sources.
    pub controllers: bool,
    /// The sources whose objects are served.
    pub sources: Vec<String>,
    /// Progress objects that every workspace has.
    pub progress: Vec<Value>,
}

/// The credentials with which clients use a port, and the certificate that they trust.
#[derive(Clone, Debug)]
pub struct PortCredentials {
    /// The serving certificate, which is its own authority, and its key, in PEM.
    certificate: String,
    key: String,
    token: String,
}

impl PortCredentials {
    /// Makes a certificate for this machine, and a token. Fails with a one-line message.
    pub fn make() -> Result<PortCredentials, String> {
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names).map_err(|error| error.to_string())?;
        let key = made.signing_key.serialize_pem();
        Ok(PortCredentials { certificate: made.cert.pem(), key, token: clock::uuid() })
    }

    /// A kubeconfig of the user who may do everything.
    pub fn kubeconfig(&self, name: &str, url: &str) -> Value {
        use base64::Engine as _;
        let authority = base64::engine::general_purpose::STANDARD.encode(&self.certificate);
        let cluster = json!({"server": url, "certificate-authority-data": authority});
        server::kubeconfig(name, cluster, json!({"token": (self.token.as_str())}))
    }

    fn tls(&self) -> Tls {
        let certificate = self.certificate.clone().into_bytes();
        Tls { client_ca: certificate.clone(), certificate, key: self.key.clone().into_bytes(), proxy: None }
    }
}

/// The configuration of a server, with the URL of its port if it has one, and its accounts. Fails with a one-line message.
pub fn configuration(wanted: &Wanted, port: Option<(&PortCredentials, String)>) -> Result<(Config, Accounts), String> {
    let (runtime, gates) = features(wanted, wanted.release)?;
    // as with `pintle serve`: no controller creates the accounts without which this plugin rejects Pods
    let selection = EnabledPlugins::parse(&PluginFlags::default())?.without("ServiceAccount");
    let mut controllers = match (wanted.sources.is_empty(), wanted.controllers) {
        (true, _) => Controllers::parse(&[])?,
        // nothing may collect or expire what was captured
        (false, false) => Controllers::none(),
        (false, true) => {
            let mut controllers = Controllers::parse(&OF_CAPTURES.map(str::to_owned))?;
            controllers.absent_owners = AbsentOwners::Ignore;
            controllers
        }
    };
    (controllers.event_ttl, controllers.alone) = (limits::EVENT_TTL, true);
    let accounts = Accounts::new(AccountOptions::default())?;
    let mut authentication = Authentication {
        accounts: accounts.clone(),
        anonymous: Anonymous { enabled: true, paths: vec![] },
        ..Authentication::default()
    };
    let mut tls = Tls::default();
    if let Some((credentials, _)) = &port {
        tls = credentials.tls();
        controllers.root_authority.clone_from(&credentials.certificate);
        let line = format!("{},kubernetes-admin,,\"system:masters\"", credentials.token);
        authentication.tokens = StaticTokens::parse(&line)?;
    }
    let of_workspaces = wanted.clone();
    let settings = PluginSettings { release: wanted.release, ..PluginSettings::default() };
    // the program that embeds the server is its only user, whose requests need no limits
    let requests = RequestConfig { compatible_minor: gates.release().minor() - 1, ..RequestConfig::default() };
    let config = Config {
        api: ApiConfig {
            plugins: Arc::new(Plugins { selection, settings }),
            authentication,
            modes: server::authorization_modes(vec![AuthorizationMode::Rbac]),
            controllers,
            runtime,
            gates,
            compaction_interval: limits::COMPACTION,
            progress: Progresses::new(wanted.testing, wanted.progress.clone()),
            testing: wanted.testing,
            ..ApiConfig::default()
        },
        requests,
        descriptors: limits::DESCRIPTORS,
        tls,
        hostname: "embedded".to_owned(),
        workspaces: Some(WorkspaceConfig {
            features: Box::new(move |release| features(&of_workspaces, release)),
            url: port.map(|(_, url)| url).unwrap_or_default(),
            domain: "workspaces.localhost".to_owned(),
            names_hosts: false,
            egress: Egress::All,
        }),
        grace: limits::GRACE,
        ..Config::default()
    };
    Ok((config, accounts))
}

/// The optional APIs and the feature gates of a release.
fn features(wanted: &Wanted, release: Release) -> Result<(RuntimeConfig, FeatureGates), String> {
    let gates = FeatureGates::parse(&wanted.feature_gates, release)?;
    let runtime = RuntimeConfig::parse(&wanted.runtime_config, &gates)?;
    Ok((runtime, gates))
}
