//! Connections to webhooks: TCP, TLS with the CA bundle of the configuration, HTTP/1.1.

use std::io;
use std::sync::{Arc, OnceLock};

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::crypto::CryptoProvider;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::drive;
use super::service::Address;
use super::trust::Trust;

/// A connection that carries one request at a time.
#[derive(Debug)]
pub struct Connection<B>(SendRequest<B>);

impl<B: Body + 'static> Connection<B> {
    /// Whether the connection is still open, as far as is known.
    pub async fn is_alive(&mut self) -> bool {
        self.0.ready().await.is_ok()
    }

    /// Whether another request may be sent now.
    pub fn is_ready(&self) -> bool {
        self.0.is_ready()
    }

    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Sends a request and returns the response once its headers have arrived; its body is a stream.
    pub async fn send(&mut self, request: Request<B>) -> Result<Response<Incoming>, SendError<B>> {
        self.0.try_send_request(request).await.map_err(|mut failed| {
            let unsent = failed.take_message();
            let error = failed.into_error();
            let closed = error.is_incomplete_message() || is_end_of_stream(&error);
            let why = if closed { "EOF".to_owned() } else { error.to_string() };
            SendError { why, closed, unsent }
        })
    }
}

/// Whether a connection ended in place of a response. Over TLS, as in Go, an end without a close_notify alert counts
/// too.
fn is_end_of_stream(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|source| source.kind() == io::ErrorKind::UnexpectedEof)
}

/// Why a request has no response.
pub struct SendError<B> {
    /// One line, in the wording of Go's HTTP client.
    pub why: String,
    /// The peer closed the connection before it responded.
    pub closed: bool,
    /// The request, if no byte of it was sent: only then is it certain that the peer has not acted on it.
    pub unsent: Option<Request<B>>,
}

/// The client certificate chain and the private key of its first certificate.
pub type ClientIdentity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// The CA bundle to trust, or the system's, and the client certificate, if there is one.
pub fn tls(bundle: Vec<CertificateDer<'static>>, shown: Option<ClientIdentity>) -> Result<TlsConnector, String> {
    let roots = if bundle.is_empty() { system_roots() } else { Arc::new(roots_of(&bundle)) };
    connector(Trust::new(roots, bundle)?, shown)
}

/// Accepts any server certificate.
pub fn unverified_tls(shown: Option<ClientIdentity>) -> Result<TlsConnector, String> {
    connector(Trust::any(), shown)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn connector(trust: Trust, shown: Option<ClientIdentity>) -> Result<TlsConnector, String> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust));
    let mut config = match shown {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(|error| error.to_string())?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn roots_of(bundle: &[CertificateDer<'static>]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(bundle.iter().cloned());
    roots
}

fn system_roots() -> Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let load = || {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    };
    ROOTS.get_or_init(load).clone()
}

/// Permits opening connections. A client that was made without one cannot reach the network, whatever the objects
/// say that it serves.
#[derive(Clone, Copy, Debug)]
pub struct Connector(());

impl Connector {
    pub(super) fn network() -> Connector {
        Connector(())
    }

    /// Opens a connection to an address, whose certificate must be valid for a host.
    pub async fn open<B>(
        self,
        tls: &Result<TlsConnector, String>,
        host: &str,
        address: &Address,
    ) -> Result<Connection<B>, String>
    where
        B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        let tls = tls.as_ref().map_err(Clone::clone)?;
        let stream = dial(address).await?;
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let stream = tls.connect(name, stream).await.map_err(|error| tls_error(&error, host))?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        drive(connection.with_upgrades());
        Ok(Connection(sender))
    }
}

async fn dial(address: &Address) -> Result<TcpStream, String> {
    let Address { host, port, egress } = address;
    let mut last = format!("dial tcp: lookup {host}: no such host");
    let found = tokio::net::lookup_host((host.as_str(), *port)).await;
    for target in found.map_err(|_| last.clone())? {
        if !egress.allows(target) {
            last = format!("dial tcp {target}: workspaces may not call this network (--workspace-egress)");
            continue;
        }
        match TcpStream::connect(target).await {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => last = format!("dial tcp {target}: connect: {}", dial_error(&error)),
        }
    }
    Err(last)
}

/// The text of a system error in Go's spelling.
fn dial_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        io::ErrorKind::TimedOut => "connection timed out".to_owned(),
        _ => error.to_string(),
    }
}

fn tls_error(error: &io::Error, host: &str) -> String {
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
