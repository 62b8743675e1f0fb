//! What connections find: the server once everything is loaded, before that only its health.

use std::sync::{Arc, OnceLock};

use http::{Request, Response};
use hyper::body::Incoming;
use machinery::Status;
use machinery::status::{Details, Reason};

use super::body::Body;
use super::chain::Edge;
use super::client::Client;
use super::health::Health;
use super::open::Open;
use super::respond;
use crate::request::Query;

pub struct Door {
    health: Arc<Health>,
    /// What has to end before the server has stopped.
    pub open: Arc<Open>,
    edge: OnceLock<Arc<Edge>>,
}

impl Door {
    pub fn new(health: Arc<Health>) -> Door {
        Door { health, open: Arc::new(Open::new()), edge: OnceLock::new() }
    }

    /// From now on everything is served.
    pub fn serve_all(&self, edge: Arc<Edge>) {
        self.health.loaded();
        let _ = self.edge.set(edge);
    }

    pub async fn serve(&self, client: Arc<Client>, request: Request<Incoming>) -> Response<Body> {
        match self.edge.get() {
            Some(edge) => edge.clone().serve(client, request).await,
            None => self.not_yet(request.uri()),
        }
    }

    fn not_yet(&self, uri: &http::Uri) -> Response<Body> {
        if let endpoint @ ("/healthz" | "/livez" | "/readyz") = uri.path() {
            return self.health.answer(endpoint, &Query::parse(uri.query().unwrap_or_default()));
        }
        let status = Status::new(Reason::ServiceUnavailable, "the server is starting: its objects are not loaded yet");
        let status = status.with_details(Details { retry_after_seconds: 1, ..Details::default() });
        let mut response = respond::text(503, &status.to_value().to_json());
        respond::set(response.headers_mut(), "content-type", "application/json");
        respond::set(response.headers_mut(), "retry-after", "1");
        response
    }
}
