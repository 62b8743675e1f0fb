//! Connections: TCP, TLS with client certificates, HTTP/1.1 and HTTP/2, and their end.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use super::door::Door;
use super::tls::{Acceptor, Tls};
use crate::authentication::ClientCertificate;
use crate::limits;
use crate::metrics::METRICS;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A bound socket.
pub struct Listener {
    socket: TcpListener,
    acceptor: Acceptor,
    door: Arc<Door>,
}

impl Listener {
    pub async fn bind(address: SocketAddr, tls: &Tls, door: Arc<Door>) -> Result<Listener, String> {
        let acceptor = tls.acceptor().map_err(|error| error.to_string())?;
        let socket =
            TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
        Ok(Listener { socket, acceptor, door })
    }

    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Accepts connections until `stop`, then waits up to `grace` for those that are open.
    pub async fn run(self, mut stop: watch::Receiver<bool>, grace: Duration) {
        loop {
            let accepted = tokio::select! {
                accepted = self.socket.accept() => accepted,
                _ = stop.wait_for(|stop| *stop) => break,
            };
            match accepted {
                Ok((stream, remote)) => {
                    let (acceptor, door, stop) = (self.acceptor.clone(), self.door.clone(), stop.clone());
                    let place = self.door.open.enter();
                    crate::task::spawn("connection", async move {
                        connection(stream, remote.ip(), acceptor, door, stop).await;
                        drop(place);
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
        let _ = tokio::time::timeout(grace, self.door.open.emptied()).await;
    }
}

/// Seconds a client has for its handshake, and a connection to be idle.
const HANDSHAKE_SECONDS: u64 = 10;

/// Who is at the other end of a connection.
pub struct Client {
    pub certificate: ClientCertificate,
    pub address: IpAddr,
}

async fn connection(
    stream: TcpStream,
    address: IpAddr,
    acceptor: Acceptor,
    door: Arc<Door>,
    mut stop: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let handshake = tokio::time::timeout(Duration::from_secs(HANDSHAKE_SECONDS), acceptor.accept(stream));
    let stream = match handshake.await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            METRICS.tls_handshake_errors.inc();
            tracing::debug!(%error, "a TLS handshake failed");
            return;
        }
        Err(_) => {
            METRICS.tls_handshake_errors.inc();
            return;
        }
    };
    let client = Arc::new(Client { certificate: acceptor.certificate(&stream), address });
    if let Some(seconds) = client.certificate.seconds_left() {
        METRICS.client_certificate_expiration_seconds.observe(seconds as f64);
    }
    let service = hyper::service::service_fn(move |request| {
        let (door, client) = (door.clone(), client.clone());
        async move { Ok::<_, std::convert::Infallible>(door.serve(client, request).await) }
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
