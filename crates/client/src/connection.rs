//! Connections over TLS, and requests and responses as bytes.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{Method, Request as HttpRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use machinery::url::Url;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tokio_rustls::client::TlsStream;

use crate::access::Access;
use crate::error::{Error, SettingsError};
use crate::tls;

/// A request.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Media type of the response.
    pub accept: &'static str,
    /// Media type of the body; empty if there is none.
    pub content_type: &'static str,
    pub body: Bytes,
    /// The user to impersonate; empty for none.
    pub user: &'static str,
}

impl Call {
    pub fn get(path: impl Into<String>) -> Call {
        Call {
            method: Method::GET,
            path: path.into(),
            accept: "application/json",
            content_type: "",
            body: Bytes::new(),
            user: "",
        }
    }

    pub fn post(path: impl Into<String>, body: impl Into<Bytes>) -> Call {
        Call { method: Method::POST, content_type: "application/json", body: body.into(), ..Call::get(path) }
    }

    pub fn delete(path: impl Into<String>) -> Call {
        Call { method: Method::DELETE, ..Call::get(path) }
    }

    pub fn patch(path: impl Into<String>, content_type: &'static str, body: impl Into<Bytes>) -> Call {
        Call { method: Method::PATCH, content_type, body: body.into(), ..Call::get(path) }
    }
}

/// A response, read to its end.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    /// Bytes of the body.
    pub size: usize,
    /// The beginning of the body.
    pub body: Vec<u8>,
}

impl Response {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The response itself unless it is an error; `call` names the request.
    pub fn ok(self, call: &str) -> Result<Response, Error> {
        if self.is_success() {
            return Ok(self);
        }
        let text: String = String::from_utf8_lossy(&self.body).chars().take(300).collect();
        Err(Error::Status { call: call.to_owned(), status: self.status, body: text.trim().to_owned() })
    }
}

/// The version of HTTP that a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http2,
}

/// How a client connects and reads.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub protocol: Protocol,
    /// Value of the header `User-Agent`.
    pub user_agent: &'static str,
    /// Bytes of a response's body that are kept; of larger bodies only the beginning and the size are returned.
    pub body_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { protocol: Protocol::Http1, user_agent: "pintle", body_bytes_max: usize::MAX }
    }
}

/// Opens connections to one server with one identity.
pub struct Client {
    /// `host:port`.
    authority: String,
    /// The prefix of the paths of requests, such as `/clusters/NAME`.
    base: String,
    name: ServerName<'static>,
    tls: TlsConnector,
    token: String,
    options: Options,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// An open HTTP/1.1 connection, or a handle of an HTTP/2 connection.
pub struct Connection {
    sender: Sender,
    client: Arc<Client>,
}

impl Client {
    /// Creates a client; it does not connect yet. Fails if the URL or a certificate is invalid.
    pub fn new(access: &Access, options: Options) -> Result<Arc<Client>, SettingsError> {
        let (authority, base) = place(&access.server)?;
        let host = match access.server_name.as_str() {
            "" => authority.rsplit_once(':').map_or("", |(host, _)| host).trim_matches(['[', ']']),
            name => name,
        };
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|source| SettingsError::ServerName { host: host.to_owned(), source })?;
        let protocol: &[u8] = match options.protocol {
            Protocol::Http1 => b"http/1.1",
            Protocol::Http2 => b"h2",
        };
        let tls = TlsConnector::from(Arc::new(tls::config(access, protocol)?));
        Ok(Arc::new(Client { authority, base, name, tls, token: access.token.clone(), options }))
    }

    /// Opens a TLS connection without speaking HTTP on it.
    pub async fn stream(&self) -> Result<TlsStream<TcpStream>, Error> {
        let refused = |source| Error::Connect { authority: self.authority.clone(), source };
        let stream = TcpStream::connect(&self.authority).await.map_err(refused)?;
        stream.set_nodelay(true).map_err(refused)?;
        self.tls.connect(self.name.clone(), stream).await.map_err(refused)
    }

    /// Opens a connection. Its driver runs in a task of the current runtime and ends with the connection.
    #[allow(clippy::disallowed_methods, reason = "the driver ends with its connection")]
    pub async fn connect(self: &Arc<Client>) -> Result<Connection, Error> {
        let stream = TokioIo::new(self.stream().await?);
        let broken = |source| Error::NotHttp { authority: self.authority.clone(), source };
        let sender = match self.options.protocol {
            Protocol::Http2 => {
                let mut builder = http2::Builder::new(TokioExecutor::new());
                let (sender, driver) = builder.adaptive_window(true).handshake(stream).await.map_err(broken)?;
                drop(tokio::task::spawn(driver));
                Sender::Http2(sender)
            }
            Protocol::Http1 => {
                let (sender, driver) = http1::handshake(stream).await.map_err(broken)?;
                drop(tokio::task::spawn(driver));
                Sender::Http1(sender)
            }
        };
        Ok(Connection { sender, client: self.clone() })
    }

    /// Connections for `count` users: one each over HTTP/1.1, handles of one connection over HTTP/2.
    pub async fn connections(self: &Arc<Client>, count: usize) -> Result<Vec<Connection>, Error> {
        let mut all: Vec<Connection> = Vec::with_capacity(count);
        for _ in 0..count {
            let shared = all.first().and_then(Connection::share);
            all.push(match shared {
                Some(handle) => handle,
                None => self.connect().await?,
            });
        }
        Ok(all)
    }

    /// The HTTP request of a call, with the client's credentials.
    pub fn request(&self, call: Call) -> Result<HttpRequest<Full<Bytes>>, Error> {
        let mut builder = HttpRequest::builder().method(call.method).header("user-agent", self.options.user_agent);
        builder = builder.header("accept", call.accept);
        builder = match self.options.protocol {
            Protocol::Http1 if self.base.is_empty() => builder.uri(call.path).header("host", &self.authority),
            Protocol::Http1 => builder.uri(format!("{}{}", self.base, call.path)).header("host", &self.authority),
            Protocol::Http2 => builder.uri(format!("https://{}{}{}", self.authority, self.base, call.path)),
        };
        if !call.content_type.is_empty() {
            builder = builder.header("content-type", call.content_type);
        }
        if !call.user.is_empty() {
            builder = builder.header("impersonate-user", call.user);
        }
        if !self.token.is_empty() {
            builder = builder.header("authorization", format!("Bearer {}", self.token));
        }
        Ok(builder.body(Full::new(call.body))?)
    }
}

/// A connection to a server of a kubeconfig.
pub async fn connect(access: &Access) -> Result<Connection, Error> {
    Client::new(access, Options::default())?.connect().await
}

/// A request with any headers.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    /// Path and query.
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// A response whose body is read piece by piece.
pub struct Streamed {
    response: hyper::Response<Incoming>,
}

impl Streamed {
    pub fn code(&self) -> i64 {
        i64::from(self.response.status().as_u16())
    }

    /// The values of a header, read as ISO 8859-1, as clients in most languages do.
    pub fn headers(&self, name: &str) -> Vec<String> {
        let values = self.response.headers().get_all(name).iter();
        values.map(|value| value.as_bytes().iter().map(|byte| char::from(*byte)).collect()).collect()
    }

    /// Whether the server closes the connection after this response.
    pub fn closes(&self) -> bool {
        self.headers("connection").iter().any(|value| value.eq_ignore_ascii_case("close"))
    }

    /// The next piece of the body; `None` at its end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        while let Some(frame) = self.response.body_mut().frame().await {
            let frame = frame.map_err(Error::EndedEarly)?;
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// The rest of the body.
    pub async fn rest(&mut self) -> Result<Vec<u8>, Error> {
        let mut all = vec![];
        while let Some(bytes) = self.next().await? {
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }
}

impl Connection {
    /// Sends a request. The next one may be sent when the response has been read.
    pub async fn exchange(&mut self, request: Request) -> Result<Streamed, Error> {
        let mut call =
            self.client.request(Call { method: request.method, body: request.body, ..Call::get(request.path) })?;
        let mut headers = HeaderMap::new();
        for (name, value) in request.headers {
            let wrong = |part| Error::Header { part, name: name.clone() };
            let value = value.parse::<HeaderValue>().map_err(|_| wrong("value"))?;
            headers.append(name.parse::<HeaderName>().map_err(|_| wrong("name"))?, value);
        }
        call.headers_mut().remove("accept");
        // replaces those of the client
        call.headers_mut().extend(headers);
        Ok(Streamed { response: self.request(call).await? })
    }

    /// Another handle of an HTTP/2 connection.
    fn share(&self) -> Option<Connection> {
        let Sender::Http2(sender) = &self.sender else { return None };
        Some(Connection { sender: Sender::Http2(sender.clone()), client: self.client.clone() })
    }

    /// Sends a request and returns as soon as the head of the response has been received.
    pub async fn open(&mut self, call: Call) -> Result<hyper::Response<Incoming>, Error> {
        let request = self.client.request(call)?;
        self.request(request).await
    }

    async fn request(&mut self, request: HttpRequest<Full<Bytes>>) -> Result<hyper::Response<Incoming>, Error> {
        let broken = |source| Error::Broken { authority: self.client.authority.clone(), source };
        match &mut self.sender {
            Sender::Http1(sender) => {
                sender.ready().await.map_err(broken)?;
                sender.send_request(request).await.map_err(broken)
            }
            Sender::Http2(sender) => {
                sender.ready().await.map_err(broken)?;
                sender.send_request(request).await.map_err(broken)
            }
        }
    }

    /// Sends a request and reads its response.
    pub async fn send(&mut self, call: Call) -> Result<Response, Error> {
        let mut incoming = self.open(call).await?;
        let mut response = Response { status: incoming.status().as_u16(), size: 0, body: vec![] };
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(Error::EndedEarly)?;
            if let Some(data) = frame.data_ref() {
                response.size += data.len();
                let room = self.client.options.body_bytes_max.saturating_sub(response.body.len());
                response.body.extend_from_slice(&data[..data.len().min(room)]);
            }
        }
        Ok(response)
    }
}

/// `host:port` of an `https://` URL, and its path without a slash at the end; the default port is 443.
fn place(server: &str) -> Result<(String, String), SettingsError> {
    let named = || server.to_owned();
    let url = Url::parse(server).map_err(|why| SettingsError::Url { server: named(), why })?;
    if url.scheme != "https" {
        return Err(SettingsError::NotHttps { server: named() });
    }
    let base = url.path.trim_end_matches('/').to_owned();
    let is_default = url.port().is_empty();
    Ok((if is_default { format!("{}:443", url.host.trim_end_matches(':')) } else { url.host }, base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_an_authority_and_a_path() {
        let found = |server: &str| place(server).map(|(authority, base)| format!("{authority} {base}"));
        assert_eq!(found("https://x").unwrap(), "x:443 ");
        assert_eq!(found("https://[::1]:1/").unwrap(), "[::1]:1 ");
        assert_eq!(found("https://x/clusters/a/").unwrap(), "x:443 /clusters/a");
        assert_eq!(found("http://x").unwrap_err().to_string(), "server \"http://x\" is not an https:// URL");
    }
}
