//! A client of a running server, configured by a kubeconfig.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use machinery::Value;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use server::Outside;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A connection that carries one request after the other.
pub struct Client {
    sender: SendRequest<Full<Bytes>>,
    authority: String,
    token: String,
}

/// A response: its status code, and its body if that is JSON.
pub struct Response {
    pub code: u16,
    pub body: Value,
}

impl Response {
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// The body of a success. The error is the message of the server.
    pub fn ok(self) -> Result<Value, String> {
        match self.is_ok() {
            true => Ok(self.body),
            false => Err(self.message()),
        }
    }

    pub fn message(&self) -> String {
        match self.body.str_at(&["message"]) {
            "" => format!("the server responded with status {}", self.code),
            message => message.to_owned(),
        }
    }
}

impl Client {
    /// Connects to the server of a kubeconfig's current context. The error is one line.
    pub async fn connect(kubeconfig: &Path) -> Result<Client, String> {
        let access = crate::kubeconfig::read(kubeconfig)?;
        let authority = authority(&access.url).map_err(|why| format!("{}: {why}", kubeconfig.display()))?;
        let refused = |error: std::io::Error| format!("cannot connect to {authority}: {error}");
        let host = authority.rsplit_once(':').map_or("", |(host, _)| host).trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned()).map_err(|error| format!("{host}: {error}"))?;
        let tls = TlsConnector::from(Arc::new(tls(&access)?));
        let stream = TcpStream::connect(&authority).await.map_err(refused)?;
        let stream = TokioIo::new(tls.connect(name, stream).await.map_err(refused)?);
        let (sender, connection) = handshake(stream).await.map_err(|error| error.to_string())?;
        // it ends with the sender
        drop(tokio::task::spawn_local(connection));
        Ok(Client { sender, authority, token: access.token })
    }

    pub async fn get(&mut self, path: &str) -> Result<Response, String> {
        self.call("GET", path, "application/json", None).await
    }

    /// Sends a request with a JSON body, a merge patch for PATCH; `accept` is the media type of the response.
    pub async fn call(
        &mut self,
        method: &str,
        path: &str,
        accept: &str,
        body: Option<&Value>,
    ) -> Result<Response, String> {
        let mut request = Request::builder().method(method).uri(path).header("host", &self.authority);
        request = request.header("accept", accept).header("user-agent", "pintle");
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        if body.is_some() {
            let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
            request = request.header("content-type", media);
        }
        let body = Full::new(Bytes::from(body.map(Value::to_json).unwrap_or_default()));
        let request = request.body(body).map_err(|error| error.to_string())?;
        let broken = |error: hyper::Error| format!("the connection to {} broke: {error}", self.authority);
        self.sender.ready().await.map_err(broken)?;
        let response = self.sender.send_request(request).await.map_err(broken)?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.map_err(broken)?.to_bytes();
        Ok(Response { code, body: machinery::value::decode(&bytes).unwrap_or_default() })
    }
}

/// `host:port` of a server.
fn authority(server: &str) -> Result<String, String> {
    let authority = server.strip_prefix("https://").ok_or_else(|| format!("server {server:?} is no https:// URL"))?;
    let authority = authority.trim_end_matches('/');
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    Ok(if has_port { authority.to_owned() } else { format!("{authority}:443") })
}

fn tls(access: &Outside) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&access.roots) {
        let certificate = certificate.map_err(|error| format!("the certificate authority: {error}"))?;
        roots.add(certificate).map_err(|error| format!("the certificate authority: {error}"))?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    if access.certificate.is_empty() {
        return Ok(builder.with_no_client_auth());
    }
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&access.certificate).collect();
    let chain = chain.map_err(|error| format!("the client certificate: {error}"))?;
    let key = PrivateKeyDer::from_pem_slice(&access.key).map_err(|error| format!("the client key: {error}"))?;
    builder.with_client_auth_cert(chain, key).map_err(|error| format!("the client certificate: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_443_unless_it_is_named() {
        assert_eq!(authority("https://x").unwrap(), "x:443");
        assert_eq!(authority("https://[::1]:1/").unwrap(), "[::1]:1");
        assert_eq!(authority("http://x").unwrap_err(), "server \"http://x\" is no https:// URL");
    }
}
