//! Why a kubeconfig, a connection or a request fails, in one line each.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use machinery::value::JsonError;
use machinery::yaml::YamlError;
use rustls::pki_types::{InvalidDnsNameError, pem};

/// Why a kubeconfig does not give access to a server.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("cannot read {path}: {source}", path = .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{path}: {source}", path = .path.display())]
    NotYaml { path: PathBuf, source: YamlError },
    /// The files can be read, but have no whole context.
    #[error("{files}: {source}")]
    Context { files: String, source: Box<AccessError> },
    #[error("the kubeconfig has no current-context")]
    NoCurrentContext,
    #[error("there is no {field} {name:?}")]
    Missing { field: &'static str, name: String },
    #[error("{key}-data: {source}")]
    NotBase64 { key: &'static str, source: base64::DecodeError },
    /// A program for credentials cannot be started.
    #[error("cannot run {program}: {source}{}", hint.as_ref().map(|hint| format!(": {hint}")).unwrap_or_default())]
    NotRun { program: String, source: io::Error, hint: Option<String> },
    #[error("{program}, which the kubeconfig names for credentials, failed: {status}")]
    Failed { program: String, status: ExitStatus },
    #[error("the output of {program}: {source}")]
    Output { program: String, source: JsonError },
    #[error("{program} has printed no credentials")]
    NoCredentials { program: String },
}

/// Why a server cannot be reached, or a request fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("the kubeconfig: {0}")]
    Kubeconfig(#[from] SettingsError),
    #[error("cannot connect to {authority}: {source}")]
    Connect { authority: String, source: io::Error },
    #[error("{authority} does not speak HTTP: {source}")]
    NotHttp { authority: String, source: hyper::Error },
    #[error("the connection to {authority} broke: {source}")]
    Broken { authority: String, source: hyper::Error },
    #[error("a response ended early: {0}")]
    EndedEarly(#[source] hyper::Error),
    #[error("the {part} of the header {name:?} is wrong")]
    Header { part: &'static str, name: String },
    #[error(transparent)]
    Request(#[from] hyper::http::Error),
    #[error("GET {path}: the server is too busy")]
    Busy { path: String },
    #[error("{call} failed with status {status}: {body}")]
    Status { call: String, status: u16, body: String },
    /// The server has refused a request; the text is its own.
    #[error("{message}")]
    Refused { code: u16, message: String },
}

/// Why a client cannot be made for an [`Access`](crate::Access).
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("server {server:?}: {why}")]
    Url { server: String, why: String },
    #[error("server {server:?} is not an https:// URL")]
    NotHttps { server: String },
    #[error("{host}: {source}")]
    ServerName { host: String, source: InvalidDnsNameError },
    #[error("{what}: {source}")]
    Pem { what: &'static str, source: pem::Error },
    #[error("{what}: {source}")]
    Tls { what: &'static str, source: rustls::Error },
    #[error("the client certificate: there is none in the PEM")]
    NoCertificate,
    #[error(transparent)]
    Versions(#[from] rustls::Error),
}
