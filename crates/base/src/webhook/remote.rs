//! Calls to servers that flags configure with a kubeconfig or a URL: authentication and authorization webhooks, the audit
//! webhook, and OpenID Connect issuers.

use std::time::Duration;

use bytes::Bytes;
use machinery::{Value, json};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::error::{CallError, SettingsError};
use super::{Address, Connector, Egress, Endpoint, connect, decoded, succeeded, within};
use crate::limits;

/// URL and credentials of a server. PEM fields may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteEndpoint {
    /// `https://host[:port][/path]`.
    pub url: String,
    /// CA bundle for its certificate; empty for the system's.
    pub roots: Vec<u8>,
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
    /// A bearer token; empty for none.
    pub token: String,
}

/// A client of a configured server.
#[derive(Debug)]
pub struct Remote {
    endpoint: Endpoint,
    address: Address,
    timeout: Duration,
}

fn certificates(pem: &[u8], what: &'static str) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>();
    found.map_err(|source| SettingsError::Pem { what, source })
}

/// A client certificate and its key.
#[derive(Debug)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Reads PEM.
    pub fn parse(certificate: &[u8], key: &[u8]) -> Result<Identity, SettingsError> {
        let chain = certificates(certificate, "the client certificate")?;
        let key = PrivateKeyDer::from_pem_slice(key);
        Ok(Identity { chain, key: key.map_err(|source| SettingsError::Pem { what: "the client key", source })? })
    }

    pub(super) fn shown(&self) -> connect::ClientIdentity {
        (self.chain.clone(), self.key.clone_key())
    }
}

impl Remote {
    /// Creates a client; it does not connect yet.
    pub fn new(outside: &RemoteEndpoint) -> Result<Remote, SettingsError> {
        if !outside.url.starts_with("https://") {
            return Err(SettingsError::NotHttps(outside.url.clone()));
        }
        let mut endpoint = Endpoint::parse(&json!({"url": (outside.url.clone())}));
        let shown = match outside.certificate.is_empty() {
            true => None,
            false => Some(Identity::parse(&outside.certificate, &outside.key)?.shown()),
        };
        endpoint.tls = Ok(connect::tls(certificates(&outside.roots, "the certificate authority")?, shown)?);
        if !outside.token.is_empty() {
            endpoint.authorization = format!("Bearer {}", outside.token);
        }
        let address = Address { host: endpoint.host.to_string(), port: endpoint.port, egress: Egress::All };
        Ok(Remote { endpoint, address, timeout: limits::REMOTE_TIMEOUT })
    }

    /// Sets the time limit of calls.
    pub fn with_timeout(self, timeout: Duration) -> Remote {
        Remote { timeout, ..self }
    }

    /// Requests the JSON at the URL.
    pub async fn get(&self) -> Result<Value, CallError> {
        Ok(decoded(&self.call(None).await?)?)
    }

    /// Posts JSON and returns the JSON of a successful response. Retries with backoff after connection errors, timeouts, 429
    /// and 5xx.
    pub async fn post(&self, body: &Value) -> Result<Value, CallError> {
        Ok(decoded(&self.deliver(body).await?)?)
    }

    /// Posts JSON to a server whose response body is not used.
    pub async fn deliver(&self, body: &Value) -> Result<Bytes, CallError> {
        let body = Bytes::from(body.to_json());
        let mut pause = limits::REMOTE_PAUSE;
        for _ in 1..limits::REMOTE_TRIES {
            match self.call(Some(body.clone())).await {
                Err(error) if error.code() == 429 || error.code() >= 500 => {
                    tracing::debug!(why = error.to_string(), "a call is tried again");
                }
                outcome => return outcome,
            }
            tokio::time::sleep(pause).await;
            pause = pause * 3 / 2;
        }
        self.call(Some(body)).await
    }

    async fn call(&self, body: Option<Bytes>) -> Result<Bytes, CallError> {
        let (verb, query) = match body.is_some() {
            true => ("Post", self.endpoint.query(self.timeout)),
            false => ("Get", String::new()),
        };
        let target = format!("{}{query}", self.endpoint.path);
        let exchange = self.endpoint.exchange(Connector::network(), &self.address, &target, body);
        let url = || format!("{}{query}", self.endpoint.url);
        let failed = |source| CallError::Transport { verb, url: url(), source };
        let response = within(self.timeout, exchange).await.map_err(failed)?;
        succeeded(&response)?;
        Ok(response.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_webhook_configurations_are_refused_at_start() {
        let of = |outside: RemoteEndpoint| Remote::new(&outside).map(|_| ()).unwrap_err().to_string();
        let url = "https://a.io/x".to_owned();
        assert_eq!(
            of(RemoteEndpoint { url: "http://a.io".into(), ..RemoteEndpoint::default() }),
            "the server \"http://a.io\" is not an https:// URL"
        );
        let certificate = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec();
        assert!(of(RemoteEndpoint { url, certificate, ..RemoteEndpoint::default() }).starts_with("the client key: "));
    }
}
