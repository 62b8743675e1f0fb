//! Requests to an embedded server, as function calls.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, Uri};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use server::Caller;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tower_service::Service;

use crate::configuration::PortCredentials;
use crate::error::Error;

/// The body of a response, which may be a stream, such as that of a watch.
pub type ResponseBody = server::Body;

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The credentials and the URL for clients of a port.
pub struct Port {
    pub credentials: PortCredentials,
    pub url: String,
}

/// A server, and the threads that it runs on: values may nest deeper than the stacks of other threads allow.
pub struct Running {
    server: Mutex<Option<server::Server>>,
    port: Option<Port>,
    /// Makes names unique.
    numbers: AtomicU64,
    /// `None` once this is being dropped.
    threads: Option<Runtime>,
}

impl Running {
    pub fn new(server: server::Server, port: Option<Port>, threads: Runtime) -> Running {
        Running { server: Mutex::new(Some(server)), port, numbers: AtomicU64::new(0), threads: Some(threads) }
    }

    /// A number that no other name has.
    pub fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A kubeconfig for programs outside of this process, for a path that precedes those of an API.
    pub fn kubeconfig(&self, name: &str, prefix: &str) -> Result<String, Error> {
        let none =
            || Error::new("the server has no port, so that other programs cannot reach it: start it with `port`");
        let Port { credentials, url } = self.port.as_ref().ok_or_else(none)?;
        Ok(credentials.kubeconfig(name, &format!("{url}{prefix}")).to_json())
    }

    /// Runs a future on the threads of the server. It is aborted when the returned future is dropped.
    async fn on_threads<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, BoxError> {
        let threads = self.threads.as_ref().ok_or(STOPPED)?;
        Aborting(threads.spawn(work)).await.map_err(BoxError::from)
    }

    async fn call(&self, caller: &Caller, request: Request<Bytes>) -> Result<Response<ResponseBody>, BoxError> {
        let response = self.server.lock().as_ref().map(|server| server.call(caller, request)).ok_or(STOPPED)?;
        self.on_threads(response).await
    }

    /// Stops the server: watches end, and later requests fail.
    pub async fn stop(&self) {
        let server = self.server.lock().take();
        if let Some(server) = server {
            let _ = self.on_threads(server.stop()).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // waiting for the threads would block those of the program
        self.threads.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

const STOPPED: &str = "the server has been stopped";

/// A task that is aborted when it is no longer awaited.
struct Aborting<T>(JoinHandle<T>);

impl<T> Future for Aborting<T> {
    type Output = Result<T, tokio::task::JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for Aborting<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An API as a `tower::Service`, for `kube::Client::new` and for other HTTP clients. It keeps the server running.
///
/// URIs are those of the API server, such as `/api/v1/namespaces`; a scheme and an authority are ignored.
#[derive(Clone)]
pub struct Api {
    running: Arc<Running>,
    caller: Caller,
    /// The prefix of all paths.
    prefix: Arc<str>,
}

impl Api {
    pub(crate) fn new(running: Arc<Running>, caller: Caller, prefix: &str) -> Api {
        Api { running, caller, prefix: prefix.into() }
    }

    fn uri(&self, given: &Uri) -> Result<Uri, BoxError> {
        let path = given.path_and_query().map_or("/", |path| path.as_str());
        Ok(format!("{}{path}", self.prefix).parse()?)
    }

    /// Sends a request whose body has been read.
    pub(crate) async fn send(&self, mut request: Request<Bytes>) -> Result<Response<ResponseBody>, BoxError> {
        *request.uri_mut() = self.uri(request.uri())?;
        self.running.call(&self.caller, request).await
    }
}

impl<B> Service<Request<B>> for Api
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<ResponseBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let api = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            api.send(Request::from_parts(parts, body)).await
        })
    }
}
