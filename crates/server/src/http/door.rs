//! Dispatch of requests before and after the server has loaded its objects: until then only health checks are served.

use std::sync::{Arc, OnceLock};

use base::request::Query;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use hyper::body::Incoming;
use machinery::Status;
use machinery::status::{Details, Reason};

use super::body::Body;
use super::chain::{Edge, HttpResponse};
use super::client::Client;
use super::health::Health;
use super::open::OpenCount;
use super::request_body::RequestBody;
use super::{host, respond};

/// The handler of all connections, which serves health checks only until [`Door::serve_all`] is called.
pub struct Door {
    health: Arc<Health>,
    /// Open connections and WebSockets, which a shutdown waits for.
    pub open: Arc<OpenCount>,
    edge: OnceLock<Arc<Edge>>,
    branches: OnceLock<Arc<dyn Branches>>,
}

/// APIs of their own below [`BRANCHES`].
pub trait Branches: Send + Sync {
    /// The domain whose host names are those of branches.
    fn domain(&self) -> &str;

    /// Responds to a request whose path begins with [`BRANCHES`].
    fn serve(self: Arc<Self>, client: Arc<Client>, request: Request<RequestBody>) -> BoxFuture<'static, HttpResponse>;
}

/// The prefix of the paths of branches.
pub const BRANCHES: &str = "/clusters/";

impl Door {
    pub fn new(health: Arc<Health>) -> Door {
        Door { health, open: Arc::new(OpenCount::new()), edge: OnceLock::new(), branches: OnceLock::new() }
    }

    /// Serves all requests from now on, and reports the server as loaded.
    pub fn serve_all(&self, edge: Arc<Edge>, branches: Option<Arc<dyn Branches>>) {
        self.health.loaded();
        if let Some(branches) = branches {
            let _ = self.branches.set(branches);
        }
        let _ = self.edge.set(edge);
    }

    /// The API at `/`, once it is served.
    pub fn edge(&self) -> Option<&Arc<Edge>> {
        self.edge.get()
    }

    /// Responds to a request of a connection. `tls_name` is the name of the server in the handshake.
    pub async fn serve(
        &self,
        client: Arc<Client>,
        tls_name: Option<&str>,
        mut request: Request<Incoming>,
    ) -> Response<Body> {
        if let Some(refusal) = host::refusal(request.version(), request.method(), request.headers()) {
            return refusal;
        }
        if let Some(branches) = self.branches.get()
            && let Some(name) = host::workspace(request.uri(), request.headers(), tls_name, branches.domain())
        {
            host::put_below(request.uri_mut(), &format!("{BRANCHES}{name}"));
        }
        self.dispatch(client, RequestBody::of(request)).await
    }

    /// Responds to a request of a connection, or of this process.
    pub async fn dispatch(&self, client: Arc<Client>, request: Request<RequestBody>) -> Response<Body> {
        let Some(edge) = self.edge.get() else { return self.loading(request.uri()) };
        match self.branches.get() {
            Some(branches) if request.uri().path().starts_with(BRANCHES) => {
                branches.clone().serve(client, request).await
            }
            _ => edge.clone().serve(client, request).await,
        }
    }

    /// The response while objects are being loaded: health checks, or 503.
    fn loading(&self, uri: &http::Uri) -> Response<Body> {
        if let endpoint @ ("/healthz" | "/livez" | "/readyz") = uri.path() {
            return self.health.respond(endpoint, &Query::parse(uri.query().unwrap_or_default()));
        }
        let status = Status::new(Reason::ServiceUnavailable, "the server is starting: its objects are not loaded yet");
        let status = status.with_details(Details { retry_after_seconds: 1, ..Details::default() });
        respond::status_response(&status)
    }
}
