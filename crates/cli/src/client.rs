//! A client of a running server, by its kubeconfig.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use machinery::Value;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How to reach a server, and as whom. Certificates and keys are PEM.
#[derive(Debug, Default, PartialEq, Eq)]
struct Access {
    /// `host:port`.
    authority: String,
    roots: Vec<u8>,
    certificate: Vec<u8>,
    key: Vec<u8>,
    token: String,
}

/// A connection that carries one request after the other.
pub struct Client {
    sender: SendRequest<Full<Bytes>>,
    authority: String,
    token: String,
}

/// What was answered: the code, and the body if that is JSON.
pub struct Answer {
    pub code: u16,
    pub body: Value,
}

impl Answer {
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
            "" => format!("the server answered {}", self.code),
            message => message.to_owned(),
        }
    }
}

impl Client {
    /// Connects to the server of a kubeconfig's current context. The error is one line.
    pub async fn connect(kubeconfig: &Path) -> Result<Client, String> {
        let wrong = |why: String| format!("{}: {why}", kubeconfig.display());
        let text =
            std::fs::read(kubeconfig).map_err(|error| format!("cannot read {}: {error}", kubeconfig.display()))?;
        let value = machinery::yaml::decode(&text).map_err(|error| wrong(error.to_string()))?.value;
        let access = access(&value, kubeconfig.parent().unwrap_or(Path::new("."))).map_err(wrong)?;
        let refused = |error: std::io::Error| format!("cannot connect to {}: {error}", access.authority);
        let host = access.authority.rsplit_once(':').map_or("", |(host, _)| host).trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned()).map_err(|error| format!("{host}: {error}"))?;
        let tls = TlsConnector::from(Arc::new(tls(&access)?));
        let stream = TcpStream::connect(&access.authority).await.map_err(refused)?;
        let stream = TokioIo::new(tls.connect(name, stream).await.map_err(refused)?);
        let (sender, connection) = handshake(stream).await.map_err(|error| error.to_string())?;
        // it ends with the sender
        drop(tokio::task::spawn_local(connection));
        Ok(Client { sender, authority: access.authority, token: access.token })
    }

    pub async fn get(&mut self, path: &str) -> Result<Answer, String> {
        self.call("GET", path, "application/json", None).await
    }

    /// Sends a request with the media type of its answer and a JSON body.
    pub async fn call(
        &mut self,
        method: &str,
        path: &str,
        accept: &str,
        body: Option<&Value>,
    ) -> Result<Answer, String> {
        let mut request = Request::builder().method(method).uri(path).header("host", &self.authority);
        request = request.header("accept", accept).header("user-agent", "pintle");
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = Full::new(Bytes::from(body.map(Value::to_json).unwrap_or_default()));
        let request = request.body(body).map_err(|error| error.to_string())?;
        let broken = |error: hyper::Error| format!("the connection to {} broke: {error}", self.authority);
        self.sender.ready().await.map_err(broken)?;
        let response = self.sender.send_request(request).await.map_err(broken)?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.map_err(broken)?.to_bytes();
        Ok(Answer { code, body: machinery::value::decode(&bytes).unwrap_or_default() })
    }
}

/// The member of a list that has a name.
fn named<'a>(config: &'a Value, list: &str, name: &str, member: &str) -> Result<&'a Value, String> {
    let items = config.get(list).and_then(Value::as_array).unwrap_or_default();
    let found = items.iter().find(|item| item.str_at(&["name"]) == name).and_then(|item| item.get(member));
    found.ok_or_else(|| format!("there is no {member} {name:?}"))
}

/// PEM that stands there as base64, or in a file beside the kubeconfig.
fn pem(value: &Value, key: &str, directory: &Path) -> Result<Vec<u8>, String> {
    let data = value.str_at(&[&format!("{key}-data")]);
    if !data.is_empty() {
        return STANDARD.decode(data).map_err(|error| format!("{key}-data: {error}"));
    }
    match value.str_at(&[key]) {
        "" => Ok(vec![]),
        file => {
            let path = directory.join(file);
            std::fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
        }
    }
}

fn access(config: &Value, directory: &Path) -> Result<Access, String> {
    let context = named(config, "contexts", config.str_at(&["current-context"]), "context")?;
    let cluster = named(config, "clusters", context.str_at(&["cluster"]), "cluster")?;
    let user = named(config, "users", context.str_at(&["user"]), "user")?;
    let server = cluster.str_at(&["server"]);
    let authority = server.strip_prefix("https://").ok_or_else(|| format!("server {server:?} is no https:// URL"))?;
    let authority = authority.trim_end_matches('/');
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    Ok(Access {
        authority: if has_port { authority.to_owned() } else { format!("{authority}:443") },
        roots: pem(cluster, "certificate-authority", directory)?,
        certificate: pem(user, "client-certificate", directory)?,
        key: pem(user, "client-key", directory)?,
        token: user.str_at(&["token"]).to_owned(),
    })
}

fn tls(access: &Access) -> Result<ClientConfig, String> {
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
    fn the_current_context_says_where_and_who() {
        let read = |text: &str| access(&machinery::yaml::decode(text.as_bytes()).unwrap().value, Path::new("."));
        let ours = crate::kubeconfig::render("https://127.0.0.1:6443", "ca", "c", "k");
        let found = read(&ours).unwrap();
        assert_eq!(found.authority, "127.0.0.1:6443");
        assert_eq!((&*found.roots, &*found.certificate, &*found.key), (&b"ca"[..], &b"c"[..], &b"k"[..]));
        let two = "contexts: [{name: a, context: {cluster: x, user: u}}, {name: b, context: {cluster: y, user: v}}]\n\
                   clusters: [{name: x, cluster: {server: 'https://x'}}, {name: y, cluster: {server: 'https://[::1]:1/'}}]\n\
                   users: [{name: u, user: {token: t}}, {name: v, user: {token: s}}]\ncurrent-context: ";
        let of = |context: &str| read(&format!("{two}{context}\n")).map(|found| (found.authority, found.token));
        assert_eq!(of("a"), Ok(("x:443".to_owned(), "t".to_owned())));
        assert_eq!(of("b"), Ok(("[::1]:1".to_owned(), "s".to_owned())));
        assert_eq!(of("c"), Err("there is no context \"c\"".to_owned()));
    }
}
