//! Why calls fail, in the wording of Go's HTTP client and of client-go.

use std::io;
use std::net::SocketAddr;

use machinery::Text;
use machinery::value::JsonError;
use rustls::CertificateError;
use rustls::client::VerifierBuilderError;
use rustls_pki_types::{InvalidDnsNameError, pem};
use thiserror::Error;

use crate::{limits, wording};

/// Why a configuration allows no TLS connection. It is kept with its endpoint, of which every call then fails.
#[derive(Clone, Debug, Error)]
pub enum TlsError {
    #[error("dial tcp: address {0}: invalid port")]
    Port(String),
    #[error("unable to load root certificates: unable to parse bytes as PEM block")]
    NoCertificate,
    #[error(transparent)]
    Verifier(#[from] VerifierBuilderError),
    #[error(transparent)]
    Settings(#[from] rustls::Error),
}

/// Why the client of a configured server cannot be made.
#[derive(Debug, Error)]
pub enum SettingsError {
    #[error("the server {0:?} is not an https:// URL")]
    NotHttps(String),
    #[error("{what}: {source}")]
    Pem { what: &'static str, source: pem::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl From<SettingsError> for String {
    fn from(error: SettingsError) -> String {
        error.to_string()
    }
}

/// Why a Service cannot be resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresolved {
    NotFound,
    /// The Service does not have the port.
    NoPort,
    NoAddress,
}

impl Unresolved {
    /// The words of upstream's resolver.
    fn text(self, name: &str, port: u16) -> String {
        match self {
            Unresolved::NotFound => format!("service \"{name}\" not found"),
            Unresolved::NoPort => format!("no service port {port} found for service \"{name}\""),
            Unresolved::NoAddress => {
                format!("service \"{name}\" has no address here: give one with --service-address")
            }
        }
    }
}

/// Why a request has no response.
#[derive(Debug, Error)]
pub enum TransportError {
    #[error("nothing is called without a server")]
    NoNetwork,
    #[error("{}", why.text(name, *port))]
    Service { name: Text, port: u16, why: Unresolved },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("dial tcp: lookup {host}: no such host")]
    NoSuchHost { host: String, source: Option<io::Error> },
    #[error("dial tcp {0}: workspaces may not call this network (--workspace-egress)")]
    Egress(SocketAddr),
    #[error("dial tcp {target}: connect: {}", dial_text(source))]
    Dial { target: SocketAddr, source: io::Error },
    #[error(transparent)]
    ServerName(#[from] InvalidDnsNameError),
    #[error("{}", handshake_text(source, host))]
    Handshake { host: String, source: io::Error },
    /// The peer closed the connection before it responded.
    #[error("EOF")]
    Closed(#[source] hyper::Error),
    #[error(transparent)]
    Connection(#[from] hyper::Error),
    #[error(transparent)]
    Request(#[from] http::Error),
    #[error(transparent)]
    Body(Box<dyn std::error::Error + Send + Sync>),
    #[error("context deadline exceeded")]
    Late,
}

/// Why a response is not the object that the client wants.
#[derive(Debug, Error)]
pub enum ResponseError {
    #[error("{message}")]
    Failure { status: u16, message: String },
    #[error("0-length response with status code: {status} and content type: {media}")]
    Empty { status: u16, media: String },
    #[error("couldn't get version/kind; json parse error: {}", wording::json_error(.0))]
    NotJson(#[source] JsonError),
    #[error("{}", wording::not_an_object(.0))]
    NotAnObject(&'static str),
}

/// Why a call failed.
#[derive(Debug, Error)]
pub enum CallError {
    #[error("{verb} \"{url}\": {source}")]
    Transport { verb: &'static str, url: String, source: TransportError },
    #[error(transparent)]
    Response(#[from] ResponseError),
}

impl CallError {
    /// Returns the HTTP status code that metrics show: that of the response, or 503 if there is none.
    pub fn code(&self) -> u16 {
        match self {
            CallError::Response(ResponseError::Failure { status, .. }) => *status,
            _ => 503,
        }
    }
}

/// The text of a system error in Go's spelling.
fn dial_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        io::ErrorKind::TimedOut => "connection timed out".to_owned(),
        _ => error.to_string(),
    }
}

fn handshake_text(error: &io::Error, host: &str) -> String {
    let of_tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let why = match of_tls {
        Some(rustls::Error::InvalidCertificate(why)) => match why {
            CertificateError::UnknownIssuer | CertificateError::BadSignature | CertificateError::Other(_) => {
                "certificate signed by unknown authority".to_owned()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "certificate has expired or is not yet valid".to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!("certificate is not valid for {host}")
            }
            other => other.to_string(),
        },
        Some(rustls::Error::InvalidMessage(_)) => return "http: server gave HTTP response to HTTPS client".to_owned(),
        Some(other) => return format!("tls: {other}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => return "EOF".to_owned(),
        None => return error.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}

/// The message of client-go for a failure whose response has none.
pub(super) fn failure_text(status: u16, media: &str, body: &[u8]) -> String {
    let known = match status {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 => "the server does not allow access to the requested resource",
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 => "the server was unable to respond with a content type that the client supports",
        409 => "the server reported a conflict",
        413 => "the server could not handle the request because it was too large",
        415 => "the body of the request was in an unknown format - accepted media types include: application/json",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500..=599 => {
            let text = String::from_utf8_lossy(body);
            // Go's client shows texts only
            let is_text = media.is_empty() || media.trim_start().to_ascii_lowercase().starts_with("text/");
            let shown: String = match text.trim() {
                text if is_text => text.chars().take(limits::WEBHOOK_ERROR_RUNES_MAX).collect(),
                _ => "unknown".to_owned(),
            };
            let shown = machinery::value::quote(&shown);
            return format!("an error on the server ({shown}) has prevented the request from succeeding");
        }
        _ => return format!("the server responded with the status code {status} but did not return more information"),
    };
    known.to_owned()
}
