//! Connections: TCP, TLS with client certificates, HTTP/1.1 and HTTP/2, timeouts and graceful shutdown.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base::clock;
use base::metrics::METRICS;
use http::header::CONNECTION;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::server::TlsStream;

use super::body::TrackedBody;
use super::connections::{Active, ConnectionExpiry, Connections, Usage};
use super::door::Door;
use super::interceptor::{Dropped, DroppedConnection};
use super::plain;
use super::tls::{Acceptor, Acceptors, Peer, Tls};
use super::window::{Streams, Window};
use crate::limits;

/// A bound socket and what its connections share.
pub struct Listener {
    socket: TcpListener,
    acceptors: Arc<Acceptors>,
    door: Arc<Door>,
    connections: Arc<Connections>,
}

impl Listener {
    /// Serves on a bound socket. At most `connections_max` connections are open at once. Fails if the TLS configuration is
    /// invalid.
    pub fn new(socket: TcpListener, tls: &Tls, door: Arc<Door>, connections_max: usize) -> Result<Listener, String> {
        let acceptors = Arc::new(Acceptors::new(tls).map_err(|error| error.to_string())?);
        let connections = Arc::new(Connections::new(connections_max));
        Ok(Listener { socket, acceptors, door, connections })
    }

    pub fn acceptors(&self) -> Arc<Acceptors> {
        self.acceptors.clone()
    }

    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Accepts connections until `stop` is true, then waits up to `grace` until all open ones have closed.
    pub async fn run(self, mut stop: watch::Receiver<bool>, grace: Duration) {
        loop {
            let accepted = tokio::select! {
                accepted = self.socket.accept() => accepted,
                _ = stop.wait_for(|stop| *stop) => break,
            };
            match accepted {
                Ok((stream, remote)) => self.admit(stream, remote.ip(), &stop),
                Err(error) => {
                    // most likely the process has run out of file descriptors
                    let evicted = self.connections.evict();
                    tracing::warn!(%error, evicted, "failed to accept a connection");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
        drop(self.socket);
        let _ = tokio::time::timeout(grace, self.door.open.emptied()).await;
    }

    /// Serves a new connection in a task, or closes it if there are too many.
    fn admit(&self, stream: TcpStream, address: IpAddr, stop: &watch::Receiver<bool>) {
        let upgraded = self.door.open.count().saturating_sub(self.connections.len());
        let Some(connection) = self.connections.enter(upgraded) else {
            METRICS.connections_refused.inc();
            tracing::debug!(%address, "connection refused: too many open connections");
            return;
        };
        let (acceptors, door, stop) = (self.acceptors.clone(), self.door.clone(), stop.clone());
        let guard = self.door.open.enter();
        base::task::spawn("connection", async move {
            let usage = &connection.usage;
            if let Some(stream) = handshake(stream, &acceptors.current(), usage).await {
                let peer = Peer::of(&stream, address, acceptors);
                serve(stream, peer, door, usage, stop).await;
            }
            drop((guard, connection));
        });
    }
}

/// Performs the TLS handshake; `None` if it fails or takes longer than [`limits::TLS_HANDSHAKE`], or if the connection
/// is evicted.
async fn handshake(stream: TcpStream, acceptor: &Acceptor, usage: &Usage) -> Option<TlsStream<TcpStream>> {
    let _ = stream.set_nodelay(true);
    let handshake = tokio::time::timeout(limits::TLS_HANDSHAKE, async {
        if plain::is_http(&stream).await {
            plain::refuse(stream).await?;
            return Err(std::io::Error::other("the client speaks HTTP without TLS"));
        }
        acceptor.accept(stream).await
    });
    let result = tokio::select! {
        result = handshake => result,
        () = usage.evicted() => return None,
    };
    match result {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => {}
    }
    METRICS.tls_handshake_errors.inc();
    None
}

/// Serves the HTTP version that ALPN has negotiated, until the connection ends.
async fn serve(
    stream: TlsStream<TcpStream>,
    peer: Peer,
    door: Arc<Door>,
    usage: &Arc<Usage>,
    stop: watch::Receiver<bool>,
) {
    if let Some(seconds) = peer.client().certificate.seconds_left() {
        METRICS.client_certificate_expiration_seconds.observe(seconds as f64);
    }
    let (_, session) = stream.get_ref();
    let (is_http2, tls_name) = (session.alpn_protocol() == Some(b"h2"), session.server_name().map(Arc::<str>::from));
    let served = usage.clone();
    let service = hyper::service::service_fn(move |request| {
        let (door, client, tls_name) = (door.clone(), peer.client(), tls_name.clone());
        let (usage, active) = (served.clone(), served.begin());
        async move {
            let response = door.serve(client, tls_name.as_deref(), request).await;
            if response.extensions().get::<Dropped>().is_some() {
                return Err(DroppedConnection);
            }
            Ok(tracked(response, is_http2, &usage, active))
        }
    });
    let stream = TokioIo::new(stream);
    if is_http2 {
        let serving = std::pin::pin!(http2_builder().serve_connection(stream, service));
        supervise(serving, usage, stop).await;
    } else {
        let serving = std::pin::pin!(http1_builder().serve_connection(stream, service).with_upgrades());
        // HTTP/1.1 sends one response at a time, so the connection has a single window
        Window::serve(supervise(serving, usage, stop)).await;
    }
}

/// Keeps the request active until the body of its response has been sent. Over HTTP/2, `Connection: close` is removed
/// and the connection is closed with GOAWAY, as Go's server does.
fn tracked(
    response: super::chain::HttpResponse,
    is_http2: bool,
    usage: &Usage,
    active: Active,
) -> http::Response<TrackedBody> {
    let mut response = response;
    if is_http2 && response.headers_mut().remove(CONNECTION).is_some_and(|value| value == "close") {
        usage.drain();
    }
    response.map(|body| TrackedBody::new(body, active))
}

fn http1_builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    // hyper has a single timeout for the idle time before a request and for reading its header
    builder.timer(TokioTimer::new()).header_read_timeout(limits::IDLE_CONNECTION).max_buf_size(1 << 20);
    builder
}

fn http2_builder() -> http2::Builder<Streams> {
    let mut builder = http2::Builder::new(Streams);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits::HTTP2_STREAMS_MAX)
        .initial_stream_window_size(256 * 1024)
        .initial_connection_window_size(4 << 20)
        .max_header_list_size(1 << 20)
        .keep_alive_interval(Some(Duration::from_secs(30)));
    builder
}

/// A connection that can be closed gracefully: requests in flight still complete.
trait Graceful: Future<Output = hyper::Result<()>> {
    fn shut_down(self: Pin<&mut Self>);
}

type Io = TokioIo<TlsStream<TcpStream>>;

impl<S> Graceful for http2::Connection<Io, S, Streams>
where
    S: Service<http::Request<hyper::body::Incoming>, Response = http::Response<TrackedBody>> + Unpin,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::Future: Send + 'static,
{
    fn shut_down(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<S> Graceful for http1::UpgradeableConnection<Io, S>
where
    S: Service<http::Request<hyper::body::Incoming>, Response = http::Response<TrackedBody>> + Unpin,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::Future: Send,
{
    fn shut_down(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// Serves a connection until the client closes it, the server shuts down, it is evicted, or it expires.
async fn supervise(mut serving: Pin<&mut impl Graceful>, usage: &Usage, mut stop: watch::Receiver<bool>) {
    let mut draining = false;
    loop {
        let now = clock::instant();
        let deadline = if draining { now + limits::DRAIN } else { usage.deadline(now) };
        let expiry = tokio::select! {
            result = serving.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(%error, "connection ended with an error");
                }
                return;
            }
            () = usage.evicted() => return,
            _ = stop.wait_for(|stop| *stop), if !draining => ConnectionExpiry::Idle,
            () = usage.drained(), if !draining => ConnectionExpiry::Idle,
            () = tokio::time::sleep_until(deadline) => usage.expiry(clock::instant()),
        };
        match expiry {
            // the client has not closed the connection after the graceful shutdown
            _ if draining && usage.is_idle() => return,
            ConnectionExpiry::Silent => return,
            ConnectionExpiry::Idle if !draining => {
                draining = true;
                serving.as_mut().shut_down();
            }
            ConnectionExpiry::Idle | ConnectionExpiry::NotYet => {}
        }
    }
}
