//! One server in process for the tests of all rooms. Its requests go through the handler chain, so that a path and a method reach
//! what they reach over a connection.

use std::sync::Arc;

use base::request::User;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use machinery::Value;
use objects::Storage;
use store::{Memory, Store};
use tokio::sync::watch;

use crate::assembly::{ApiConfig, Assembled, Beginning};
use crate::controllers::ControllerManager;
use crate::http::{Body, Client, Edge, EdgeParts, Health, OpenCount, RequestBody};
use crate::in_process::Caller;
use crate::verbs::Context;

/// A server with what a new one has. Its controllers work when a test starts them or calls `finish_work`.
pub struct TestServer {
    pub context: Arc<Context>,
    pub controllers: Arc<ControllerManager>,
    /// Watches and controllers end when this becomes true.
    pub stop: watch::Sender<bool>,
    edge: Arc<Edge>,
}

impl TestServer {
    pub async fn start() -> TestServer {
        TestServer::on(Arc::new(Memory::default())).await
    }

    pub async fn on(store: Arc<dyn Store>) -> TestServer {
        TestServer::of(ApiConfig::default(), store).await
    }

    /// A server with this configuration.
    pub async fn of(api: ApiConfig, store: Arc<dyn Store>) -> TestServer {
        let health = Arc::new(Health::new(store.clone()));
        let beginning = Beginning::of(Storage::own(store));
        let Assembled { context, controllers } = api.assemble(beginning).await.unwrap();
        controllers.finish_work(&context).await;
        let stop = watch::Sender::new(false);
        let edge = Arc::new(Edge::new(parts(context.clone(), health, &stop)));
        TestServer { context, controllers, stop, edge }
    }

    /// The code and the body of the response to an administrator.
    pub async fn call(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        read(self.send(administrator(), request(method, path, &body)).await).await
    }

    /// The response to a client.
    pub async fn send(&self, client: Arc<Client>, request: Request<RequestBody>) -> http::Response<Body> {
        self.edge.clone().serve(client, request).await
    }

    /// The body of a response that is no refusal.
    pub async fn ok(&self, method: Method, path: &str, body: Value) -> Value {
        let (code, body) = self.call(method, path, body).await;
        assert!((200..300).contains(&code), "{path}: {code} {}", body.to_json());
        body
    }

    /// The body of a response that is a refusal with this code.
    pub async fn refused(&self, method: Method, path: &str, body: Value, code: u16) -> Value {
        let (found, body) = self.call(method, path, body).await;
        assert_eq!(found, code, "{path}: {}", body.to_json());
        body
    }
}

/// The parts of a handler chain that only its context determines.
pub fn parts(context: Arc<Context>, health: Arc<Health>, stop: &watch::Sender<bool>) -> EdgeParts {
    EdgeParts::new(context, health, Arc::new(OpenCount::new()), stop.subscribe())
}

pub fn administrator() -> Arc<Client> {
    Caller::new(User::system("admin")).client()
}

/// A request whose body is JSON; a patch is a merge patch.
pub fn request(method: Method, path: &str, body: &Value) -> Request<RequestBody> {
    let media = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let bytes = if body.is_null() { String::new() } else { body.to_json() };
    let request = Request::builder().method(method).uri(path).header("content-type", media);
    request.body(RequestBody::own(bytes.into())).unwrap()
}

/// The code and the body of a response; the code is 0 if the connection ends before it does.
pub async fn read(response: http::Response<Body>) -> (u16, Value) {
    let code = response.status().as_u16();
    match response.into_body().collect().await {
        Ok(bytes) => (code, machinery::value::decode(&bytes.to_bytes()).unwrap_or_default()),
        Err(_) => (0, Value::Null),
    }
}
