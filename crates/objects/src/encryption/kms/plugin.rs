//! Calls of a plugin, over a Unix socket.

use std::time::Duration;

use http::uri::PathAndQuery;
use tokio::runtime::Runtime;
use tonic::client::Grpc;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;

use super::super::error::{CallError, KmsError};
use super::messages::{
    DECRYPT, DecryptRequest, DecryptResponse, ENCRYPT, EncryptRequest, EncryptResponse, STATUS, StatusRequest,
    StatusResponse,
};

/// The calls of a plugin. They block.
pub trait Service: Send {
    fn status(&self) -> Result<StatusResponse, KmsError>;

    fn encrypt(&self, request: EncryptRequest) -> Result<EncryptResponse, KmsError>;

    fn decrypt(&self, request: DecryptRequest) -> Result<DecryptResponse, KmsError>;
}

/// A plugin behind a socket.
pub struct Plugin {
    endpoint: String,
    /// Time limit of a call.
    timeout: Duration,
    runtime: Runtime,
}

impl Service for Plugin {
    fn status(&self) -> Result<StatusResponse, KmsError> {
        self.runtime.block_on(self.call(STATUS, StatusRequest {}))
    }

    fn encrypt(&self, request: EncryptRequest) -> Result<EncryptResponse, KmsError> {
        self.runtime.block_on(self.call(ENCRYPT, request))
    }

    fn decrypt(&self, request: DecryptRequest) -> Result<DecryptResponse, KmsError> {
        self.runtime.block_on(self.call(DECRYPT, request))
    }
}

impl Plugin {
    /// The plugin behind the socket of a URL; `timeout` limits each call.
    pub fn new(endpoint: String, timeout: Duration) -> Result<Plugin, KmsError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Plugin { endpoint, timeout, runtime })
    }

    /// Makes a call on a connection of its own: calls are rare, and a plugin may have restarted since the last one.
    async fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<A, KmsError>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let work = async {
            let endpoint = Endpoint::from_shared(self.endpoint.clone())?;
            let channel = endpoint.connect().await?;
            let mut grpc = Grpc::new(channel);
            grpc.ready().await?;
            let path = PathAndQuery::from_static(path);
            let response = grpc.unary(tonic::Request::new(request), path, ProstCodec::<Q, A>::default()).await;
            response.map(tonic::Response::into_inner).map_err(|status| CallError::Status(Box::new(status)))
        };
        let result = tokio::time::timeout(self.timeout, work).await.unwrap_or(Err(CallError::Late(self.timeout)));
        result.map_err(|source| KmsError::Call { endpoint: self.endpoint.clone(), source })
    }
}
