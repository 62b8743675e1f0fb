//! Proxied requests to the server behind a Service, for APIServices.

use bytes::Bytes;
use http::header::UPGRADE;
use http::{Request, Response};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use machinery::{Text, Value};
use parking_lot::Mutex;
use tokio_rustls::TlsConnector;

use super::connect::{Connection, Connector};
use super::error::{TlsError, TransportError, Unresolved};
use super::remote::Identity;
use super::{Address, Client, bundle, connect};
use crate::limits;

/// A server behind a service.
pub struct Backend {
    pub namespace: Text,
    pub name: Text,
    pub port: u16,
    /// The name for which the server's certificate must be valid.
    host: String,
    tls: Result<TlsConnector, TlsError>,
    unverified: Result<TlsConnector, TlsError>,
    /// Pooled connections; some still carry a request.
    idle: Mutex<Vec<(Address, Connection<StreamedBody>)>>,
}

type StreamedBody = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

impl Backend {
    /// Reads the spec of an APIService: `service`, `caBundle` and `insecureSkipTLSVerify`.
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
            idle: Mutex::default(),
        }
    }

    fn take_idle(&self, address: &Address) -> Option<Connection<StreamedBody>> {
        let mut idle = self.idle.lock();
        idle.retain(|(at, connection)| at == address && !connection.is_closed());
        let ready = idle.iter().position(|(_, connection)| connection.is_ready())?;
        Some(idle.swap_remove(ready).1)
    }

    fn keep(&self, address: &Address, connection: Connection<StreamedBody>) {
        let mut idle = self.idle.lock();
        if idle.len() < limits::WEBHOOK_IDLE_CONNECTIONS {
            idle.push((address.clone(), connection));
        } else if let Some(busy) = idle.iter_mut().find(|(_, connection)| !connection.is_ready()) {
            // this one still has a running request, such as a watch, and closes when that ends
            *busy = (address.clone(), connection);
        }
    }
}

impl Client {
    /// The address of the server.
    pub fn locate(&self, backend: &Backend) -> Result<Address, Unresolved> {
        self.services.locate(&backend.namespace, &backend.name, backend.port)
    }

    /// Sends a request and returns when the headers of the response have arrived; bodies are streamed, and a response 101
    /// can be upgraded.
    pub async fn forward<B>(
        &self,
        backend: &Backend,
        address: &Address,
        request: Request<B>,
    ) -> Result<Response<Incoming>, TransportError>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        let connector = self.connector()?;
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        // an idle connection may break at once, and not every request can be sent twice; an upgraded connection carries
        // no other request
        let upgrades = request.headers().contains_key(UPGRADE);
        if upgrades || !request.method().is_safe() || !request.body().is_end_stream() {
            return once(connector, &backend.tls, backend, address, request).await;
        }
        while let Some(mut connection) = backend.take_idle(address) {
            match connection.send(again(&request)).await {
                Ok(response) => {
                    backend.keep(address, connection);
                    return Ok(response);
                }
                // tries another connection, as Go's client does for safe methods
                Err(error) if error.unsent.is_some() || matches!(error.why, TransportError::Closed(_)) => {}
                Err(error) => return Err(error.why),
            }
        }
        let mut connection = connector.open(&backend.tls, &backend.host, address).await?;
        let response = connection.send(request).await.map_err(|error| error.why)?;
        backend.keep(address, connection);
        Ok(response)
    }

    /// As [`Client::forward`], without verifying the server's certificate, on a connection of its own.
    pub async fn forward_unverified(
        &self,
        backend: &Backend,
        address: &Address,
        request: Request<Empty<Bytes>>,
    ) -> Result<Response<Incoming>, TransportError> {
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        once(self.connector()?, &backend.unverified, backend, address, request).await
    }
}

/// Sends a request on a connection that carries no other.
async fn once(
    connector: Connector,
    tls: &Result<TlsConnector, TlsError>,
    backend: &Backend,
    address: &Address,
    request: Request<StreamedBody>,
) -> Result<Response<Incoming>, TransportError> {
    let mut connection = connector.open(tls, &backend.host, address).await?;
    connection.send(request).await.map_err(|error| error.why)
}

/// A copy of a request without a body.
fn again(request: &Request<StreamedBody>) -> Request<StreamedBody> {
    let mut copy = Request::new(Empty::new().map_err(|never| match never {}).boxed_unsync());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    copy
}
