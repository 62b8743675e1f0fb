//! The flags of authentication and authorization, under kube-apiserver's names, and the configuration that they describe.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use machinery::{Value, json};
use server::{
    AccessReviewer, Algorithm, Anonymous, Authentication, AuthenticationConfiguration, AuthorizationMode, DecisionTtl,
    Followed, Identity, ProxyHeaders, Remote, ReviewVersion, TokenReviewer,
};

use crate::files::{decode, read, read_text, read_yaml};
use crate::kubeconfig;
use crate::values::duration;

/// An authorization mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    #[value(name = "RBAC")]
    Rbac,
    #[value(name = "Webhook")]
    Webhook,
    #[value(name = "AlwaysAllow")]
    AlwaysAllow,
    #[value(name = "AlwaysDeny")]
    AlwaysDeny,
    /// kube-apiserver's mode for kubelets, without effect: no request has the rights of a kubelet.
    #[value(name = "Node")]
    Node,
    /// kube-apiserver's mode with a policy file, without effect: it allows nothing.
    #[value(name = "ABAC")]
    Abac,
}

#[derive(Args)]
#[command(next_help_heading = "Authentication")]
pub struct IdentityFlags {
    /// Additional CA bundle for client certificates, PEM.
    #[arg(long, value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,

    /// File of bearer tokens, with lines of the form token,user,uid,"group1,group2".
    #[arg(long, value_name = "FILE")]
    pub token_auth_file: Option<PathBuf>,

    /// Allow requests without credentials, as user system:anonymous.
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set)]
    anonymous_auth: bool,

    /// AuthenticationConfiguration (apiserver.config.k8s.io/v1): token issuers, and the paths for which requests without
    /// credentials are allowed. An issuer may have a jwksFile, a file of its keys, instead of discovery.
    #[arg(long, value_name = "FILE", conflicts_with = "oidc_issuer_url")]
    authentication_config: Option<PathBuf>,

    /// URL of an OpenID Connect issuer; requires --oidc-client-id.
    #[arg(long, value_name = "URL", requires = "oidc_client_id")]
    oidc_issuer_url: Option<String>,

    /// Audience that tokens of the issuer must have.
    #[arg(long, value_name = "ID", requires = "oidc_issuer_url")]
    oidc_client_id: Option<String>,

    /// CA bundle for the issuer's certificate, PEM [default: the system's].
    #[arg(long, value_name = "FILE", requires = "oidc_issuer_url")]
    oidc_ca_file: Option<PathBuf>,

    /// Keys of the issuer, a JSON Web Key Set [default: from discovery].
    #[arg(long, value_name = "FILE", requires = "oidc_issuer_url")]
    oidc_jwks_file: Option<PathBuf>,

    /// Claim with the user name.
    #[arg(long, value_name = "CLAIM", default_value = "sub")]
    oidc_username_claim: String,

    /// Prefix of user names; - for none [default: the issuer and #, none for the claim email].
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    oidc_username_prefix: String,

    /// Claim with the groups.
    #[arg(long, value_name = "CLAIM", requires = "oidc_issuer_url")]
    oidc_groups_claim: Option<String>,

    /// Prefix of groups.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    oidc_groups_prefix: String,

    /// Claim and value that tokens must have; may be repeated.
    #[arg(long, value_name = "CLAIM=VALUE", value_delimiter = ',')]
    oidc_required_claim: Vec<String>,

    /// Accepted signature algorithms: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "RS256")]
    oidc_signing_algs: Vec<String>,

    /// Kubeconfig of a webhook that authenticates tokens (TokenReview).
    #[arg(long, value_name = "FILE")]
    authentication_token_webhook_config_file: Option<PathBuf>,

    /// Version of the reviews sent to the webhook: v1 or v1beta1.
    #[arg(long, value_name = "VERSION", default_value = "v1", value_parser = ReviewVersion::parse)]
    authentication_token_webhook_version: ReviewVersion,

    /// Time for which responses of the token webhook are cached.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    authentication_token_webhook_cache_ttl: Duration,

    /// CA bundle for front proxies that pass the user in request headers, PEM; without it the headers are ignored.
    #[arg(long, value_name = "FILE")]
    pub requestheader_client_ca_file: Option<PathBuf>,

    /// Accepted common names of front proxy certificates [default: any].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub requestheader_allowed_names: Vec<String>,

    /// Headers with the user name; the first one present is used.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "X-Remote-User")]
    requestheader_username_headers: Vec<String>,

    /// Headers with the user's uid.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "X-Remote-Uid")]
    requestheader_uid_headers: Vec<String>,

    /// Headers with the user's groups.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "X-Remote-Group")]
    requestheader_group_headers: Vec<String>,

    /// Prefixes of headers with the user's extra attributes.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "X-Remote-Extra-")]
    requestheader_extra_headers_prefix: Vec<String>,

    /// Client certificate for aggregated API servers, PEM, which lets them trust the user headers of proxied requests;
    /// requires --proxy-client-key-file.
    #[arg(long, value_name = "FILE", requires = "proxy_client_key_file")]
    proxy_client_cert_file: Option<PathBuf>,

    /// Private key of the client certificate for aggregated API servers, PEM.
    #[arg(long, value_name = "FILE", requires = "proxy_client_cert_file")]
    proxy_client_key_file: Option<PathBuf>,

    /// AuthorizationConfiguration (apiserver.config.k8s.io/v1): the chain of authorizers, with options of webhooks that
    /// have no flag. The file is reloaded when it changes.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "authorization_mode",
            "authorization_webhook_config_file",
            "authorization_webhook_version",
            "authorization_webhook_cache_authorized_ttl",
            "authorization_webhook_cache_unauthorized_ttl"
        ],
        help_heading = "Authorization"
    )]
    authorization_config: Option<PathBuf>,

    /// Authorization modes, in order; the first one with an opinion decides.
    #[arg(
        long,
        value_enum,
        value_name = "MODE,...",
        value_delimiter = ',',
        default_value = "RBAC",
        help_heading = "Authorization"
    )]
    authorization_mode: Vec<Mode>,

    /// Kubeconfig of the webhook for mode Webhook (SubjectAccessReview).
    #[arg(long, value_name = "FILE", help_heading = "Authorization")]
    authorization_webhook_config_file: Option<PathBuf>,

    /// Version of the reviews sent to the webhook: v1 or v1beta1.
    #[arg(long, value_name = "VERSION", default_value = "v1", value_parser = ReviewVersion::parse, help_heading = "Authorization")]
    authorization_webhook_version: ReviewVersion,

    /// Time for which allowed requests are cached.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration, help_heading = "Authorization")]
    authorization_webhook_cache_authorized_ttl: Duration,

    /// Time for which denied requests are cached.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration, help_heading = "Authorization")]
    authorization_webhook_cache_unauthorized_ttl: Duration,
}

/// A configuration from flags or from a file.
pub struct Configuration<T> {
    pub value: T,
    /// The file, which is read again when it changes.
    pub file: Option<Followed<T>>,
}

/// Reads the configuration file that a flag names. `parse` gets its content, now and whenever the file changes.
fn follow<T>(
    flag: &'static str,
    path: &Path,
    parse: impl Fn(&[u8]) -> Result<T, String> + Send + Sync + 'static,
) -> Result<Configuration<T>, String> {
    let content = read(path).map_err(|why| format!("{flag}: {why}"))?;
    let file = path.display().to_string();
    let parse = move |content: &[u8]| parse(content).map_err(|why| format!("{flag}: {file}: {why}"));
    let value = parse(&content)?;
    Ok(Configuration { value, file: Some(Followed { path: path.to_owned(), content, read: Box::new(parse) }) })
}

/// The file of `--authentication-config`, and its `anonymous` section.
pub type IssuersFile = Option<(Followed<AuthenticationConfiguration>, Option<Anonymous>)>;

fn remote(flag: &str, path: &Path) -> Result<Remote, String> {
    let named = |why: String| format!("{flag}: {why}");
    Remote::new(&kubeconfig::read(path).map_err(named)?).map_err(|error| named(error.into()))
}

impl IdentityFlags {
    /// All authentication except tokens of ServiceAccounts and of the token file. The error is one line that names the flag.
    pub fn authentication(&self) -> Result<(Authentication, IssuersFile), String> {
        let Configuration { value: configuration, file } = self.configuration()?;
        let file = file.map(|file| (file, configuration.anonymous.clone()));
        let anonymous = configuration.anonymous.unwrap_or(Anonymous { enabled: self.anonymous_auth, paths: vec![] });
        let reviewer = match &self.authentication_token_webhook_config_file {
            Some(path) => Some(TokenReviewer::new(
                remote("--authentication-token-webhook-config-file", path)?,
                self.authentication_token_webhook_version,
                self.authentication_token_webhook_cache_ttl,
            )),
            None => None,
        };
        let lower = |names: &[String]| names.iter().map(|name| name.to_ascii_lowercase()).collect();
        let proxy = ProxyHeaders {
            username: lower(&self.requestheader_username_headers),
            uid: lower(&self.requestheader_uid_headers),
            groups: lower(&self.requestheader_group_headers),
            extra: lower(&self.requestheader_extra_headers_prefix),
        };
        let issuers = Arc::new(Arc::new(configuration.issuers).into());
        let authentication =
            Authentication { proxy, issuers, reviewer: reviewer.map(Arc::new), anonymous, ..Authentication::default() };
        Ok((authentication, file))
    }

    /// The client certificate for aggregated API servers.
    pub fn proxy_identity(&self) -> Result<Option<Identity>, String> {
        let (Some(certificate), Some(key)) = (&self.proxy_client_cert_file, &self.proxy_client_key_file) else {
            return Ok(None);
        };
        let identity = Identity::parse(&read(certificate)?, &read(key)?);
        identity.map(Some).map_err(|why| format!("--proxy-client-cert-file: {why}"))
    }

    /// The AuthenticationConfiguration: that of the file, or the equivalent of the `--oidc-` flags.
    fn configuration(&self) -> Result<Configuration<AuthenticationConfiguration>, String> {
        let algorithm =
            |name: &String| Algorithm::parse(name).ok_or_else(|| format!("--oidc-signing-algs: {name:?} is not known"));
        if let Some(path) = &self.authentication_config {
            let directory = path.parent().unwrap_or(Path::new(".")).to_owned();
            return follow("--authentication-config", path, move |content| {
                let value = with_key_sets(decode(content)?, &directory)?;
                AuthenticationConfiguration::parse(&value, &Algorithm::ALL)
            });
        }
        let algorithms = self.oidc_signing_algs.iter().map(algorithm).collect::<Result<Vec<_>, String>>()?;
        let Some(url) = &self.oidc_issuer_url else {
            return Ok(Configuration { value: AuthenticationConfiguration::default(), file: None });
        };
        let configuration = AuthenticationConfiguration::parse(&self.issuer(url)?, &algorithms)
            .map_err(|why| format!("--oidc-issuer-url: {why}"))?;
        Ok(Configuration { value: configuration, file: None })
    }

    fn issuer(&self, url: &str) -> Result<Value, String> {
        let mut configuration =
            json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"});
        let audience = self.oidc_client_id.clone().unwrap_or_default();
        let mut issuer = json!({"url": url, "audiences": [audience]});
        if let Some(path) = &self.oidc_ca_file {
            issuer.set_at(&["certificateAuthority"], Value::from(read_text(path)?));
        }
        if let Some(path) = &self.oidc_jwks_file {
            issuer.set_at(&["jwks"], read_yaml(path)?);
        }
        let claim = &self.oidc_username_claim;
        let prefix = match self.oidc_username_prefix.as_str() {
            "-" => String::new(),
            "" if claim != "email" => format!("{url}#"),
            prefix => prefix.to_owned(),
        };
        let mut mappings = json!({"username": {"claim": (claim.clone()), "prefix": prefix}});
        if let Some(claim) = &self.oidc_groups_claim {
            let prefix = self.oidc_groups_prefix.clone();
            mappings.set_at(&["groups"], json!({"claim": (claim.clone()), "prefix": prefix}));
        }
        let rule = |text: &String| {
            let (claim, value) = text.split_once('=').ok_or("--oidc-required-claim: wanted CLAIM=VALUE")?;
            Ok(json!({"claim": (claim.to_owned()), "requiredValue": (value.to_owned())}))
        };
        let rules: Value = self.oidc_required_claim.iter().map(rule).collect::<Result<Vec<_>, String>>()?.into();
        let entry = json!({"issuer": issuer, "claimMappings": mappings, "claimValidationRules": rules});
        configuration.set_at(&["jwt"], json!([entry]));
        Ok(configuration)
    }

    /// The authorization modes. The error is one line that names the flag.
    pub fn authorization(&self) -> Result<Configuration<Vec<AuthorizationMode>>, String> {
        if let Some(path) = &self.authorization_config {
            return follow("--authorization-config", path, |content| {
                let connect = |path: &Path| Ok(Remote::new(&kubeconfig::read(path)?)?);
                server::parse_authorization(&decode(content)?, &connect)
            });
        }
        let modes = self.authorization_mode.iter().filter_map(|mode| self.mode(*mode).transpose());
        let modes = modes.collect::<Result<Vec<_>, String>>()?;
        if modes.is_empty() {
            return Err("--authorization-mode: Node and ABAC have no effect, and there is no other mode".to_owned());
        }
        Ok(Configuration { value: modes, file: None })
    }

    /// The authorization modes that have no effect.
    pub fn modes_without_effect(&self) -> Vec<String> {
        let names = [(Mode::Node, "Node"), (Mode::Abac, "ABAC")];
        let given = names.iter().filter(|(mode, _)| self.authorization_mode.contains(mode));
        given.map(|(_, name)| (*name).to_owned()).collect()
    }

    fn mode(&self, mode: Mode) -> Result<Option<AuthorizationMode>, String> {
        Ok(Some(match mode {
            Mode::Node | Mode::Abac => return Ok(None),
            Mode::Rbac => AuthorizationMode::Rbac,
            Mode::AlwaysAllow => AuthorizationMode::AlwaysAllow,
            Mode::AlwaysDeny => AuthorizationMode::AlwaysDeny,
            Mode::Webhook => {
                let flag = "--authorization-webhook-config-file";
                let path = self.authorization_webhook_config_file.as_deref();
                let path = path.ok_or_else(|| format!("--authorization-mode: Webhook needs {flag}"))?;
                let ttl = DecisionTtl {
                    allowed: self.authorization_webhook_cache_authorized_ttl,
                    refused: self.authorization_webhook_cache_unauthorized_ttl,
                };
                let version = self.authorization_webhook_version;
                AuthorizationMode::Webhook(Box::new(AccessReviewer::new(remote(flag, path)?, version, ttl)))
            }
        }))
    }
}

/// Replaces the `jwksFile` of each issuer by the key set of that file.
fn with_key_sets(mut configuration: Value, directory: &Path) -> Result<Value, String> {
    let issuers = configuration.get_mut("jwt").and_then(Value::as_array_mut);
    for entry in issuers.into_iter().flatten() {
        if let Some(file) = entry.remove_at(&["issuer", "jwksFile"]) {
            let set = read_yaml(&directory.join(file.as_str().unwrap_or_default()))?;
            entry.set_at(&["issuer", "jwks"], set);
        }
    }
    Ok(configuration)
}
