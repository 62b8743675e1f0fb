//! Outgoing calls: admission and conversion webhooks, by URL or Service, and servers configured by flags.
//!
//! Invariants: a call returns a response or an error within its timeout. The text of an error is one line. Idle
//! connections are kept until the configuration that refers to them is removed.

mod backend;
mod connect;
mod egress;
mod error;
mod remote;
mod response_cache;
mod service;
mod trust;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::Response;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use machinery::url::Url;
use machinery::{Text, Value};
use parking_lot::Mutex;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use crate::{limits, task};
pub use backend::Backend;
use connect::{Connection, Connector, SendError};
pub use egress::Egress;
pub use error::{CallError, ResponseError, SettingsError, TlsError, TransportError, Unresolved};
pub use remote::{Identity, Remote, RemoteEndpoint};
pub use response_cache::ResponseCache;
pub use service::{Address, Services};

type WebhookConnection = Connection<Full<Bytes>>;

/// The `clientConfig` of a webhook.
pub struct Endpoint {
    /// The URL without the query, for error messages.
    url: String,
    /// The name for which the server's certificate must be valid.
    host: Text,
    port: u16,
    /// Host, port and path, as in the request line and its headers.
    authority: String,
    path: String,
    service: Option<(Text, Text)>,
    /// The header Authorization; empty for none.
    authorization: String,
    tls: Result<tokio_rustls::TlsConnector, TlsError>,
    idle: Mutex<Vec<WebhookConnection>>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "webhook at {}", self.url)
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.url)
    }
}

impl Endpoint {
    /// Reads a `clientConfig`: `url`, or `service` with namespace, name, path and port, and `caBundle`.
    pub fn parse(config: &Value) -> Endpoint {
        let service = config.get("service").filter(|service| !service.is_null());
        let mut invalid_port = None;
        let (host, port, path, url, service) = match service {
            Some(service) => {
                let (namespace, name) = (service.str_at(&["namespace"]), service.str_at(&["name"]));
                let port = service.get("port").and_then(Value::as_int).and_then(|port| u16::try_from(port).ok());
                let port = port.unwrap_or(443);
                let path = service.str_at(&["path"]);
                let path = clean(path);
                let host = format!("{name}.{namespace}.svc");
                let url = format!("https://{host}:{port}{path}");
                (host, port, path, url, Some((Text::from(namespace), Text::from(name))))
            }
            None => {
                let text = config.str_at(&["url"]);
                let url = Url::parse(text).unwrap_or_default();
                let path = url.path_and_query();
                let shown = match path.as_str() {
                    "" => text.to_owned(),
                    path => format!("{}://{}{}", url.scheme, url.host, clean(path)),
                };
                let port = url.port();
                let number = if port.is_empty() { Ok(443) } else { port.parse::<u16>() };
                invalid_port = number.is_err().then(|| port.to_owned());
                (url.hostname().to_owned(), number.unwrap_or(443), clean(&path), shown, None)
            }
        };
        let shown = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let authority = if port == 443 { shown } else { format!("{shown}:{port}") };
        let tls = match invalid_port {
            Some(port) => Err(TlsError::Port(port)),
            None => bundle(config).and_then(|bundle| connect::tls(bundle, None)),
        };
        let (idle, authorization) = (Mutex::default(), String::new());
        Endpoint { url, host: host.into(), port, authority, path, service, authorization, tls, idle }
    }
}

/// Normalizes a path like Go's `path.Join`: without empty, `.` and `..` segments and without a trailing slash.
fn clean(path: &str) -> String {
    let mut segments: Vec<&str> = vec![];
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

/// The certificates of `caBundle`; `None` for the system's.
fn bundle(config: &Value) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = config.str_at(&["caBundle"]);
    let pem = base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default();
    let found: Vec<_> = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect();
    if found.is_empty() && !pem.trim_ascii().is_empty() {
        return Err(TlsError::NoCertificate);
    }
    Ok(found)
}

/// The client of webhooks. It has one endpoint per configuration, so that equal ones share connections.
///
/// The default client has no connector: its calls fail before anything is sent.
#[derive(Default)]
pub struct Client {
    connector: Option<Connector>,
    services: Services,
    endpoints: Mutex<HashMap<String, Weak<Endpoint>>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("webhook client")
    }
}

impl Client {
    pub fn new(services: Services) -> Client {
        Client { connector: Some(Connector::network()), services, endpoints: Mutex::default() }
    }

    /// The right to open connections.
    fn connector(&self) -> Result<Connector, TransportError> {
        self.connector.ok_or(TransportError::NoNetwork)
    }

    pub fn endpoint(&self, config: &Value) -> Arc<Endpoint> {
        let mut known = self.endpoints.lock();
        known.retain(|_, endpoint| endpoint.strong_count() > 0);
        let key = config.to_json();
        if let Some(endpoint) = known.get(&key).and_then(Weak::upgrade) {
            return endpoint;
        }
        let endpoint = Arc::new(Endpoint::parse(config));
        known.insert(key, Arc::downgrade(&endpoint));
        endpoint
    }

    /// Posts JSON and returns the body of a successful response.
    pub async fn post(&self, endpoint: &Endpoint, timeout: Duration, body: Bytes) -> Result<Value, CallError> {
        let query = endpoint.query(timeout);
        let failed = |source| CallError::Transport { verb: "Post", url: format!("{}{query}", endpoint.url), source };
        let address = self.services.address(endpoint);
        let call = async {
            let connector = self.connector()?;
            endpoint.exchange(connector, &address?, &format!("{}{query}", endpoint.path), Some(body)).await
        };
        Ok(json_of(&within(timeout, call).await.map_err(failed)?)?)
    }
}

/// Runs a call with a time limit.
async fn within<T>(
    timeout: Duration,
    call: impl Future<Output = Result<T, TransportError>>,
) -> Result<T, TransportError> {
    tokio::time::timeout(timeout, call).await.unwrap_or(Err(TransportError::Late))
}

impl Endpoint {
    /// Sends a request over an idle or a new connection; with a body it is a POST of JSON. Returns the response.
    async fn exchange(
        &self,
        connector: Connector,
        address: &Address,
        target: &str,
        body: Option<Bytes>,
    ) -> Result<CallResponse, TransportError> {
        let mut request = self.request(target, body)?;
        while let Some(mut connection) = self.take_idle() {
            if !connection.is_alive().await {
                continue;
            }
            match connection.send(request).await {
                Ok(response) => return self.receive(connection, response).await,
                // a webhook must not be called twice for one request: only what was never sent goes to another connection
                Err(SendError { unsent: Some(unsent), .. }) => request = unsent,
                Err(error) => return Err(error.why),
            }
        }
        let mut connection = connector.open(&self.tls, &self.host, address).await?;
        let response = connection.send(request).await.map_err(|error| error.why)?;
        self.receive(connection, response).await
    }

    /// The request for a target, with this endpoint's credentials and the trace of the running task.
    fn request(&self, target: &str, body: Option<Bytes>) -> Result<http::Request<Full<Bytes>>, http::Error> {
        let mut request = http::Request::builder()
            .method(if body.is_some() { http::Method::POST } else { http::Method::GET })
            .uri(target)
            .header(HOST, &self.authority)
            .header(USER_AGENT, concat!("pintle/", env!("CARGO_PKG_VERSION")));
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json").header(ACCEPT, "application/json, */*");
        }
        if let Some(trace) = task::trace() {
            request = request.header(task::TRACE_HEADER, trace.header());
        }
        if !self.authorization.is_empty() {
            request = request.header(AUTHORIZATION, &self.authorization);
        }
        request.body(Full::new(body.unwrap_or_default()))
    }

    /// Reads the body of a response and keeps the connection for the next request.
    async fn receive(
        &self,
        connection: WebhookConnection,
        response: Response<Incoming>,
    ) -> Result<CallResponse, TransportError> {
        let status = response.status().as_u16();
        let media = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media = media.unwrap_or_default().to_owned();
        let body = Limited::new(response.into_body(), limits::WEBHOOK_RESPONSE_BYTES_MAX).collect().await;
        let body = body.map_err(TransportError::Body)?.to_bytes();
        self.keep(connection);
        Ok(CallResponse { status, media, body })
    }

    /// The `timeout` parameter of a call, in seconds.
    fn query(&self, timeout: Duration) -> String {
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        let separator = if self.path.contains('?') { '&' } else { '?' };
        format!("{separator}timeout={seconds}s")
    }

    fn take_idle(&self) -> Option<WebhookConnection> {
        self.idle.lock().pop()
    }

    fn keep(&self, connection: WebhookConnection) {
        let mut idle = self.idle.lock();
        if idle.len() < limits::WEBHOOK_IDLE_CONNECTIONS {
            idle.push(connection);
        }
    }
}

struct CallResponse {
    status: u16,
    /// Media type of the body.
    media: String,
    body: Bytes,
}

/// The JSON of a successful response.
fn json_of(response: &CallResponse) -> Result<Value, ResponseError> {
    succeeded(response)?;
    let CallResponse { status, media, body } = response;
    if body.is_empty() {
        // what the client has asked for, if the server does not say what it sends
        let media = if media.is_empty() { "application/json" } else { media };
        return Err(ResponseError::Empty { status: *status, media: media.to_owned() });
    }
    if body.len() > limits::WEBHOOK_INLINE_BYTES_MAX { task::blocking(|| decoded(body)) } else { decoded(body) }
}

fn decoded(body: &[u8]) -> Result<Value, ResponseError> {
    let decoded = machinery::value::decode(body);
    match decoded.or_else(|error| yaml_of(body).ok_or(ResponseError::NotJson(error)))? {
        value @ (Value::Object(_) | Value::Null) => Ok(value),
        other => Err(ResponseError::NotAnObject(other.json_type())),
    }
}

/// Decodes a body that is not JSON as YAML, as kube-apiserver does whatever the type of the body is, unless it begins as
/// JSON.
fn yaml_of(body: &[u8]) -> Option<Value> {
    let is_json = body.trim_ascii_start().starts_with(b"{");
    let is_readable = !is_json && body.len() <= limits::WEBHOOK_INLINE_BYTES_MAX;
    is_readable.then(|| machinery::yaml::decode(body).ok()).flatten().map(|decoded| decoded.value)
}

/// An error unless the response is a success.
fn succeeded(CallResponse { status, media, body }: &CallResponse) -> Result<(), ResponseError> {
    let status = *status;
    if (200..=206).contains(&status) {
        return Ok(());
    }
    let failure = machinery::value::decode(body).ok().filter(|value| value.str_at(&["kind"]) == "Status");
    let message = failure.map(|value| value.str_at(&["message"]).to_owned()).filter(|text| !text.is_empty());
    let message = message.unwrap_or_else(|| error::failure_text(status, media, body));
    Err(ResponseError::Failure { status, message })
}

/// Drives a connection in a task of its own.
fn drive(connection: impl Future<Output = Result<(), hyper::Error>> + Send + 'static) {
    drop(task::spawn("webhook connection", async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a webhook ended");
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn webhook_endpoints_follow_configuration() {
        let cases = [
            (json!({"url": "https://a.io"}), "https://a.io", "a.io", 443, "/", "a.io"),
            (json!({"url": "https://a.io:8443/x/y"}), "https://a.io:8443/x/y", "a.io", 8443, "/x/y", "a.io:8443"),
            (json!({"url": "https://a.io//x/./y/../z/"}), "https://a.io/x/z", "a.io", 443, "/x/z", "a.io"),
            (json!({"url": "https://[::1]:1/x"}), "https://[::1]:1/x", "::1", 1, "/x", "[::1]:1"),
            (
                json!({"service": {"namespace": "n", "name": "s"}}),
                "https://s.n.svc:443/",
                "s.n.svc",
                443,
                "/",
                "s.n.svc",
            ),
            (
                json!({"service": {"namespace": "n", "name": "s", "path": "/p", "port": 9443}}),
                "https://s.n.svc:9443/p",
                "s.n.svc",
                9443,
                "/p",
                "s.n.svc:9443",
            ),
        ];
        for (config, url, host, port, path, authority) in cases {
            let found = Endpoint::parse(&config);
            assert_eq!((found.url.as_str(), found.host.as_str(), found.port), (url, host, port));
            assert_eq!((found.path.as_str(), found.authority.as_str()), (path, authority));
        }
        let beyond = Endpoint::parse(&json!({"url": "https://a.io:65536/x"}));
        assert_eq!(beyond.url, "https://a.io:65536/x");
        assert_eq!(beyond.tls.err().unwrap().to_string(), "dial tcp: address 65536: invalid port");
    }

    #[test]
    fn failure_messages_match_upstream() {
        let cases: [(u16, &str, &str); 5] = [
            (404, "x", "the server could not find the requested resource"),
            (500, " boom\n", "an error on the server (\"boom\") has prevented the request from succeeding"),
            (302, "", "the server responded with the status code 302 but did not return more information"),
            (403, r#"{"kind":"Status","message":"no"}"#, "no"),
            (503, "", "the server is currently unable to handle the request"),
        ];
        let of_media = |status: u16, media: &str, body: &str| {
            let body = Bytes::copy_from_slice(body.as_bytes());
            json_of(&CallResponse { status, media: media.to_owned(), body }).map_err(|error| error.to_string())
        };
        let of = |status: u16, body: &str| of_media(status, "text/plain; charset=utf-8", body);
        for (status, body, want) in cases {
            assert_eq!(of(status, body).unwrap_err(), want);
        }
        assert!(of(200, "{}").is_ok());
        assert_eq!(
            of_media(500, "application/json", "{}").unwrap_err(),
            "an error on the server (\"unknown\") has prevented the request from succeeding"
        );
        for (media, shown) in [("a/b", "a/b"), ("", "application/json")] {
            let want = format!("0-length response with status code: 200 and content type: {shown}");
            assert_eq!(of_media(200, media, "").unwrap_err(), want);
        }
        assert_eq!(of(200, "a: [b]").unwrap(), json!({"a": ["b"]}));
        assert!(of(200, "{}{}").unwrap_err().ends_with("invalid character '{' after top-level value"));
        assert!(of(200, "hello").unwrap_err().starts_with("couldn't get version/kind; json parse error: "));
    }
}
