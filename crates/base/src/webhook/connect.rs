//! Connections to webhooks: TCP, TLS with the CA bundle of the configuration, HTTP/1.1.

use std::io;
use std::sync::{Arc, OnceLock};

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::drive;
use super::error::{TlsError, TransportError};
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
            let is_closed = error.is_incomplete_message() || is_end_of_stream(&error);
            let why = if is_closed { TransportError::Closed(error) } else { error.into() };
            SendError { why, unsent }
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
    pub why: TransportError,
    /// The request, if no byte of it was sent: only then is it certain that the peer has not acted on it.
    pub unsent: Option<Request<B>>,
}

/// The client certificate chain and the private key of its first certificate.
pub type ClientIdentity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// The CA bundle to trust, or the system's, and the client certificate, if there is one.
pub fn tls(bundle: Vec<CertificateDer<'static>>, shown: Option<ClientIdentity>) -> Result<TlsConnector, TlsError> {
    let roots = if bundle.is_empty() { system_roots() } else { Arc::new(roots_of(&bundle)) };
    connector(Trust::new(roots, bundle)?, shown)
}

/// Accepts any server certificate.
pub fn unverified_tls(shown: Option<ClientIdentity>) -> Result<TlsConnector, TlsError> {
    connector(Trust::any(), shown)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn connector(trust: Trust, shown: Option<ClientIdentity>) -> Result<TlsConnector, TlsError> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust));
    let mut config = match shown {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key)?,
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
        tls: &Result<TlsConnector, TlsError>,
        host: &str,
        address: &Address,
    ) -> Result<Connection<B>, TransportError>
    where
        B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        let tls = tls.as_ref().map_err(Clone::clone)?;
        let stream = dial(address).await?;
        let name = ServerName::try_from(host.to_owned())?;
        let failed = |source| TransportError::Handshake { host: host.to_owned(), source };
        let stream = tls.connect(name, stream).await.map_err(failed)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        drive(connection.with_upgrades());
        Ok(Connection(sender))
    }
}

async fn dial(address: &Address) -> Result<TcpStream, TransportError> {
    let Address { host, port, egress } = address;
    let unknown = |source| TransportError::NoSuchHost { host: host.clone(), source };
    let found = tokio::net::lookup_host((host.as_str(), *port)).await;
    let mut last = unknown(None);
    for target in found.map_err(|error| unknown(Some(error)))? {
        if !egress.allows(target) {
            last = TransportError::Egress(target);
            continue;
        }
        match TcpStream::connect(target).await {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(source) => last = TransportError::Dial { target, source },
        }
    }
    Err(last)
}
