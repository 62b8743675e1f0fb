//! Connections as real clients have them: TLS with a client certificate, HTTP/1.1 kept alive or HTTP/2.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{Method, Request};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::access::Access;

/// Bytes of a response that are kept; of longer ones only the size is known.
const KEPT_BYTES: usize = 64 * 1024;

/// One request.
pub struct Call {
    pub method: Method,
    pub path: String,
    pub content_type: &'static str,
    pub body: Bytes,
}

impl Call {
    pub fn get(path: impl Into<String>) -> Call {
        Call { method: Method::GET, path: path.into(), content_type: "", body: Bytes::new() }
    }

    pub fn post(path: impl Into<String>, body: impl Into<Bytes>) -> Call {
        Call { method: Method::POST, path: path.into(), content_type: "application/json", body: body.into() }
    }

    pub fn delete(path: impl Into<String>) -> Call {
        Call { method: Method::DELETE, ..Call::get(path) }
    }

    pub fn patch(path: impl Into<String>, content_type: &'static str, body: impl Into<Bytes>) -> Call {
        Call { method: Method::PATCH, path: path.into(), content_type, body: body.into() }
    }
}

/// One response, read to its end.
pub struct Response {
    pub status: u16,
    pub size: usize,
    /// The beginning of the body.
    pub body: Vec<u8>,
}

impl Response {
    /// An error unless the request succeeded.
    pub fn ok(self, call: &str) -> Result<Response, String> {
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        let text: String = String::from_utf8_lossy(&self.body).chars().take(300).collect();
        Err(format!("{call} was refused with status {}: {}", self.status, text.trim()))
    }
}

/// Address and credentials of connections.
pub struct Client {
    authority: String,
    address: SocketAddr,
    name: ServerName<'static>,
    tls: TlsConnector,
    token: Option<String>,
    http2: bool,
}

enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

/// An open connection, or a share of one.
pub struct Connection {
    sender: Sender,
    client: Arc<Client>,
}

impl Client {
    pub fn new(access: &Access, http2: bool) -> Result<Client, String> {
        let authority = access.server.strip_prefix("https://").ok_or("the server's URL must begin with https://")?;
        let authority = authority.trim_end_matches('/').to_owned();
        let host = authority.rsplit_once(':').map_or(authority.as_str(), |(host, _)| host);
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned());
        Ok(Client {
            address: resolve(&authority)?,
            name: name.map_err(|error| format!("{host}: {error}"))?,
            tls: TlsConnector::from(Arc::new(tls(access, http2)?)),
            token: access.token.clone(),
            authority,
            http2,
        })
    }

    /// Opens a TLS connection.
    pub async fn stream(&self) -> Result<TlsStream<TcpStream>, String> {
        let refused = |error: std::io::Error| format!("cannot connect to {}: {error}", self.authority);
        let stream = TcpStream::connect(self.address).await.map_err(refused)?;
        stream.set_nodelay(true).map_err(refused)?;
        self.tls.connect(self.name.clone(), stream).await.map_err(refused)
    }

    /// Opens a connection.
    pub async fn connect(self: &Arc<Client>) -> Result<Connection, String> {
        let stream = TokioIo::new(self.stream().await?);
        let broken = |error: hyper::Error| format!("{} does not speak HTTP: {error}", self.authority);
        let sender = if self.http2 {
            let (sender, driver) = http2::Builder::new(TokioExecutor::new())
                .adaptive_window(true)
                .handshake(stream)
                .await
                .map_err(broken)?;
            tokio::spawn(driver);
            Sender::Two(sender)
        } else {
            let (sender, driver) = http1::handshake(stream).await.map_err(broken)?;
            tokio::spawn(driver);
            Sender::One(sender)
        };
        Ok(Connection { sender, client: self.clone() })
    }

    /// Connections for `count` clients: one each, or shares of one over HTTP/2.
    pub async fn connections(self: &Arc<Client>, count: usize) -> Result<Vec<Connection>, String> {
        let mut all: Vec<Connection> = Vec::with_capacity(count);
        for _ in 0..count {
            let shared = all.first().and_then(Connection::share);
            all.push(match shared {
                Some(share) => share,
                None => self.connect().await?,
            });
        }
        Ok(all)
    }

    pub fn request(&self, call: Call) -> Result<Request<Full<Bytes>>, String> {
        let uri = if self.http2 { format!("https://{}{}", self.authority, call.path) } else { call.path };
        let mut builder = Request::builder().method(call.method).uri(uri).header("user-agent", "bench/1");
        builder = builder.header("accept", "application/json");
        if !self.http2 {
            builder = builder.header("host", &self.authority);
        }
        if !call.content_type.is_empty() {
            builder = builder.header("content-type", call.content_type);
        }
        if let Some(token) = &self.token {
            builder = builder.header("authorization", format!("Bearer {token}"));
        }
        builder.body(Full::new(call.body)).map_err(|error| error.to_string())
    }
}

impl Connection {
    fn share(&self) -> Option<Connection> {
        match &self.sender {
            Sender::One(_) => None,
            Sender::Two(sender) => {
                Some(Connection { sender: Sender::Two(sender.clone()), client: self.client.clone() })
            }
        }
    }

    /// Sends a request and returns as soon as the head of the response has been received.
    pub async fn open(&mut self, call: Call) -> Result<hyper::Response<Incoming>, String> {
        let request = self.client.request(call)?;
        let broken = |error: hyper::Error| format!("the connection broke: {error}");
        match &mut self.sender {
            Sender::One(sender) => {
                sender.ready().await.map_err(broken)?;
                sender.send_request(request).await.map_err(broken)
            }
            Sender::Two(sender) => {
                sender.ready().await.map_err(broken)?;
                sender.send_request(request).await.map_err(broken)
            }
        }
    }

    /// Sends a request and reads its response.
    pub async fn send(&mut self, call: Call) -> Result<Response, String> {
        let mut incoming = self.open(call).await?;
        let mut response = Response { status: incoming.status().as_u16(), size: 0, body: vec![] };
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(|error| format!("a response ended early: {error}"))?;
            if let Some(data) = frame.data_ref() {
                response.size += data.len();
                let room = KEPT_BYTES - response.body.len();
                response.body.extend_from_slice(&data[..data.len().min(room)]);
            }
        }
        Ok(response)
    }
}

fn resolve(authority: &str) -> Result<SocketAddr, String> {
    use std::net::ToSocketAddrs as _;
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    let place = if has_port { authority.to_owned() } else { format!("{authority}:443") };
    let found = place.to_socket_addrs().map_err(|error| format!("{authority}: {error}"))?.next();
    found.ok_or_else(|| format!("{authority} has no address"))
}

fn tls(access: &Access, http2: bool) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&access.authority) {
        let certificate = certificate.map_err(|error| format!("the certificate authority: {error}"))?;
        roots.add(certificate).map_err(|error| format!("the certificate authority: {error}"))?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let mut config = if access.certificate.is_empty() {
        builder.with_no_client_auth()
    } else {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&access.certificate).collect();
        let chain = chain.map_err(|error| format!("the client certificate: {error}"))?;
        let key = PrivateKeyDer::from_pem_slice(&access.key).map_err(|error| format!("the client key: {error}"))?;
        builder.with_client_auth_cert(chain, key).map_err(|error| format!("the client certificate: {error}"))?
    };
    config.alpn_protocols = vec![if http2 { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
    Ok(config)
}
