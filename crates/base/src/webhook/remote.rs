//! Calls to servers that flags configure with a kubeconfig or a URL: authentication and authorization webhooks, the audit
//! webhook, and OpenID Connect issuers.

use std::time::Duration;

use bytes::Bytes;
use machinery::{Value, json};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

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

/// The error of a call: one line, and whether a retry may succeed.
struct Failed {
    is_retryable: bool,
    why: String,
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|error| error.to_string())
}

/// A client certificate and its key.
#[derive(Debug)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Reads PEM. Fails with a one-line message.
    pub fn parse(certificate: &[u8], key: &[u8]) -> Result<Identity, String> {
        let chain = certificates(certificate).map_err(|why| format!("the client certificate: {why}"))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("the client key: {error}"))?;
        Ok(Identity { chain, key })
    }

    pub(super) fn shown(&self) -> connect::ClientIdentity {
        (self.chain.clone(), self.key.clone_key())
    }
}

impl Remote {
    /// Creates a client; it does not connect yet. Returns an error of one line if the configuration is invalid.
    pub fn new(outside: &RemoteEndpoint) -> Result<Remote, String> {
        if !outside.url.starts_with("https://") {
            return Err(format!("the server {:?} is not an https:// URL", outside.url));
        }
        let mut endpoint = Endpoint::parse(&json!({"url": (outside.url.clone())}));
        let shown = match outside.certificate.is_empty() {
            true => None,
            false => Some(Identity::parse(&outside.certificate, &outside.key)?.shown()),
        };
        let roots = certificates(&outside.roots).map_err(|why| format!("the certificate authority: {why}"))?;
        endpoint.tls = Ok(connect::tls(roots, shown)?);
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

    /// Requests the JSON at the URL. Fails with a one-line message.
    pub async fn get(&self) -> Result<Value, String> {
        decoded(&self.call(None).await.map_err(|failed| failed.why)?)
    }

    /// Posts JSON and returns the JSON of a successful response. Retries with backoff after connection errors, timeouts, 429
    /// and 5xx. Fails with a one-line message.
    pub async fn post(&self, body: &Value) -> Result<Value, String> {
        decoded(&self.deliver(body).await?)
    }

    /// Posts JSON to a server whose response body is not used.
    pub async fn deliver(&self, body: &Value) -> Result<Bytes, String> {
        let body = Bytes::from(body.to_json());
        let mut pause = limits::REMOTE_PAUSE;
        for _ in 1..limits::REMOTE_TRIES {
            match self.call(Some(body.clone())).await {
                Err(failed) if failed.is_retryable => tracing::debug!(why = failed.why, "a call is tried again"),
                outcome => return outcome.map_err(|failed| failed.why),
            }
            tokio::time::sleep(pause).await;
            pause = pause * 3 / 2;
        }
        self.call(Some(body)).await.map_err(|failed| failed.why)
    }

    async fn call(&self, body: Option<Bytes>) -> Result<Bytes, Failed> {
        let (verb, query) = match body.is_some() {
            true => ("Post", self.endpoint.query(self.timeout)),
            false => ("Get", String::new()),
        };
        let target = format!("{}{query}", self.endpoint.path);
        let outcome =
            within(self.timeout, self.endpoint.exchange(Connector::network(), &self.address, &target, body)).await;
        let failed =
            |why| Failed { is_retryable: true, why: format!("{verb} \"{}{query}\": {why}", self.endpoint.url) };
        let response = outcome.map_err(failed)?;
        match succeeded(&response) {
            Ok(()) => Ok(response.body),
            Err(why) => Err(Failed { is_retryable: response.status == 429 || response.status >= 500, why }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_webhook_configurations_are_refused_at_start() {
        let of = |outside: RemoteEndpoint| Remote::new(&outside).map(|_| ()).unwrap_err();
        let url = "https://a.io/x".to_owned();
        assert_eq!(
            of(RemoteEndpoint { url: "http://a.io".into(), ..RemoteEndpoint::default() }),
            "the server \"http://a.io\" is not an https:// URL"
        );
        let certificate = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec();
        assert!(of(RemoteEndpoint { url, certificate, ..RemoteEndpoint::default() }).starts_with("the client key: "));
    }
}
