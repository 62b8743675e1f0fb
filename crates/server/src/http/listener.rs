//! Connections: TCP, TLS with client certificates, HTTP/1.1 and HTTP/2, and their end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::chain::Edge;
use crate::authentication::certificate_user;
use crate::limits;
use crate::request::User;

/// The server's certificate and the authority of its clients, as PEM.
pub struct Tls {
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
    pub client_ca: Vec<u8>,
}

/// Why certificates can't be used; one line.
#[derive(Debug)]
pub struct TlsError(pub String);

impl std::fmt::Display for TlsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(TlsError(format!("{what} holds no certificate"))),
        Err(error) => Err(TlsError(format!("{what}: {error}"))),
    }
}

impl Tls {
    fn acceptor(&self) -> Result<TlsAcceptor, TlsError> {
        let chain = certificates(&self.certificate, "the serving certificate")?;
        let key =
            PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| TlsError(format!("the serving key: {error}")))?;
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.client_ca, "the client certificate authority")? {
            roots.add(certificate).map_err(|error| TlsError(format!("the client certificate authority: {error}")))?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .allow_unauthenticated()
            .build()
            .map_err(|error| TlsError(format!("the client certificate authority: {error}")))?;
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError(error.to_string()))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(|error| TlsError(format!("the serving certificate: {error}")))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// A bound socket.
pub struct Listener {
    socket: TcpListener,
    acceptor: TlsAcceptor,
    edge: Arc<Edge>,
}

impl Listener {
    pub async fn bind(address: SocketAddr, tls: &Tls, edge: Arc<Edge>) -> Result<Listener, String> {
        let acceptor = tls.acceptor().map_err(|error| error.to_string())?;
        let socket =
            TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
        Ok(Listener { socket, acceptor, edge })
    }

    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Accepts connections until `stop`, then waits up to `grace` for those that are open.
    pub async fn run(self, mut stop: watch::Receiver<bool>, grace: Duration) {
        let open = watch::Sender::new(0usize);
        loop {
            let accepted = tokio::select! {
                accepted = self.socket.accept() => accepted,
                _ = stop.wait_for(|stop| *stop) => break,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (acceptor, edge, stop) = (self.acceptor.clone(), self.edge.clone(), stop.clone());
                    let open = open.clone();
                    open.send_modify(|n| *n += 1);
                    crate::task::spawn("connection", async move {
                        connection(stream, acceptor, edge, stop).await;
                        open.send_modify(|n| *n -= 1);
                    });
                }
                Err(error) => {
                    // out of file descriptors, most likely: let some go
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
        drop(self.socket);
        let mut open = open.subscribe();
        let _ = tokio::time::timeout(grace, open.wait_for(|n| *n == 0)).await;
    }
}

/// Seconds a client has for its handshake, and a connection to be idle.
const HANDSHAKE_SECONDS: u64 = 10;

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, edge: Arc<Edge>, mut stop: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let handshake = tokio::time::timeout(Duration::from_secs(HANDSHAKE_SECONDS), acceptor.accept(stream));
    let stream = match handshake.await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a TLS handshake failed");
            return;
        }
        Err(_) => return,
    };
    let user: Option<Arc<User>> = {
        let (_, session) = stream.get_ref();
        let certificate = session.peer_certificates().and_then(<[CertificateDer<'_>]>::first);
        certificate.and_then(|der| certificate_user(der)).map(Arc::new)
    };
    let service = hyper::service::service_fn(move |request| {
        let (edge, user) = (edge.clone(), user.clone());
        async move { Ok::<_, std::convert::Infallible>(edge.serve(user, request).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(60)).max_buf_size(1 << 20);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits::HTTP2_STREAMS_MAX)
        .initial_stream_window_size(256 * 1024)
        .initial_connection_window_size(4 << 20)
        .max_header_list_size(1 << 20)
        .keep_alive_interval(Some(Duration::from_secs(30)));
    let serving = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        result = serving.as_mut() => {
            if let Err(error) = result {
                tracing::debug!(error = %error, "a connection ended");
            }
            return;
        }
        _ = stop.wait_for(|stop| *stop) => {}
    }
    serving.as_mut().graceful_shutdown();
    let _ = serving.await;
}
