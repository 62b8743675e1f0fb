//! Calls of a plugin, over a Unix socket.

use std::time::Duration;

use http::uri::PathAndQuery;
use tokio::runtime::Runtime;
use tonic::client::Grpc;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;

use super::messages::{
    DECRYPT, DecryptRequest, DecryptResponse, ENCRYPT, EncryptRequest, EncryptResponse, STATUS, StatusRequest,
    StatusResponse,
};

/// The calls of a plugin. They block; errors are one line.
pub trait Service: Send {
    fn status(&self) -> Result<StatusResponse, String>;

    fn encrypt(&self, request: EncryptRequest) -> Result<EncryptResponse, String>;

    fn decrypt(&self, request: DecryptRequest) -> Result<DecryptResponse, String>;
}

/// A plugin behind a socket.
pub struct Plugin {
    endpoint: String,
    /// Time limit of a call.
    timeout: Duration,
    runtime: Runtime,
}

impl Service for Plugin {
    fn status(&self) -> Result<StatusResponse, String> {
        self.runtime.block_on(self.call(STATUS, StatusRequest {}))
    }

    fn encrypt(&self, request: EncryptRequest) -> Result<EncryptResponse, String> {
        self.runtime.block_on(self.call(ENCRYPT, request))
    }

    fn decrypt(&self, request: DecryptRequest) -> Result<DecryptResponse, String> {
        self.runtime.block_on(self.call(DECRYPT, request))
    }
}

impl Plugin {
    /// The plugin behind the socket of a URL; `timeout` limits each call.
    pub fn new(endpoint: String, timeout: Duration) -> Result<Plugin, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Plugin { endpoint, timeout, runtime: runtime.map_err(|error| error.to_string())? })
    }

    /// Makes a call on a connection of its own: calls are rare, and a plugin may have restarted since the last one.
    async fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<A, String>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let work = async {
            let endpoint = Endpoint::from_shared(self.endpoint.clone()).map_err(|error| deepest(&error))?;
            let channel = endpoint.connect().await.map_err(|error| deepest(&error))?;
            let mut grpc = Grpc::new(channel);
            grpc.ready().await.map_err(|error| deepest(&error))?;
            let path = PathAndQuery::from_static(path);
            let response = grpc.unary(tonic::Request::new(request), path, ProstCodec::<Q, A>::default()).await;
            response.map(tonic::Response::into_inner).map_err(|status| status.message().to_owned())
        };
        let timed_out = |_| Err(format!("no response within {:?}", self.timeout));
        let result = tokio::time::timeout(self.timeout, work).await.unwrap_or_else(timed_out);
        result.map_err(|why| format!("{}: {why}", self.endpoint))
    }
}

/// The innermost cause of an error, which is the most specific.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
