//! Whole requests to a server behind a service, as APIServices name them.

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use machinery::{Text, Value};
use tokio_rustls::TlsConnector;

use super::remote::Identity;
use super::service::Unresolved;
use super::{Address, Client, bundle, connect};

/// A server behind a service.
pub struct Backend {
    pub namespace: Text,
    pub name: Text,
    pub port: u16,
    /// What its certificate must be for.
    host: String,
    tls: Result<TlsConnector, String>,
    unverified: Result<TlsConnector, String>,
}

impl Backend {
    /// From the spec of an APIService: `service`, `caBundle` and `insecureSkipTLSVerify`.
    pub fn parse(spec: &Value, identity: Option<&Identity>) -> Backend {
        let part = |key: &str| spec.str_at(&["service", key]);
        let port = spec.at(&["service", "port"]).and_then(Value::as_int).and_then(|port| u16::try_from(port).ok());
        let shown = || identity.map(Identity::shown);
        let unverified = connect::unverified_tls(shown());
        let tls = match spec.get("insecureSkipTLSVerify").and_then(Value::as_bool) {
            Some(true) => unverified.clone(),
            _ => bundle(spec).and_then(|bundle| connect::tls(bundle, shown())),
        };
        let host = format!("{}.{}.svc", part("name"), part("namespace"));
        Backend {
            namespace: part("namespace").into(),
            name: part("name").into(),
            port: port.unwrap_or(443),
            host,
            tls,
            unverified,
        }
    }
}

impl Client {
    /// Where the server is.
    pub fn locate(&self, backend: &Backend) -> Result<Address, Unresolved> {
        self.services.locate(&backend.namespace, &backend.name, backend.port)
    }

    /// Sends a request over a connection of its own and answers when the headers of the answer are there; the bodies are
    /// streams. Whether it is the right server is asked only where `verified`. The error is one line, as Go's.
    pub async fn pass_on<B>(
        &self,
        backend: &Backend,
        address: &Address,
        verified: bool,
        request: Request<B>,
    ) -> Result<Response<Incoming>, String>
    where
        B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        let tls = if verified { &backend.tls } else { &backend.unverified };
        let mut sender = connect::open(tls, &backend.host, address).await?;
        sender.send_request(request).await.map_err(|error| match error.is_incomplete_message() {
            true => "EOF".to_owned(),
            false => error.to_string(),
        })
    }
}
