//! A server for one test, and a client with a certificate or a token.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A certificate and its private key in PEM format.
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

/// A running `pintle serve`, killed when it goes out of scope.
pub struct Server {
    child: Child,
    address: String,
    directory: PathBuf,
}

impl Server {
    /// Starts a server in memory that accepts the token `token` of the user `ann`.
    pub fn start(directory: &Path) -> Server {
        Server::start_with(directory, "token,ann,1\n", "memory")
    }

    /// Starts a server with the embedded store in `directory` that accepts the token `token` of an administrator.
    pub fn start_embedded(directory: &Path) -> Server {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).unwrap();
        Server::start_with(directory, "token,ann,1,system:masters\n", "embedded")
    }

    fn start_with(directory: &Path, tokens_csv: &str, storage: &str) -> Server {
        let tokens = directory.join("tokens.csv");
        std::fs::write(&tokens, tokens_csv).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_pintle"))
            .args(["serve", "--storage", storage, "--secure-port", "0", "--data-dir"])
            .arg(directory)
            .arg("--token-auth-file")
            .arg(&tokens)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_once("https://").and_then(|(_, rest)| rest.split(' ').next());
        let address = address.unwrap_or_else(|| panic!("no ready line but {line:?}")).to_owned();
        Server { child, address, directory: directory.to_owned() }
    }

    /// The certificate authority that signs the server's own certificates.
    pub fn certificate_authority(&self) -> Pair {
        let read = |name: &str| std::fs::read_to_string(self.directory.join(name)).unwrap();
        Pair { certificate: read("ca.crt"), key: read("ca.key") }
    }

    /// Sends a GET and returns the status code and the body.
    pub fn get(&self, path: &str, client: Option<&Pair>, token: Option<&str>) -> (u16, String) {
        self.exchange("GET", path, "", client, token)
    }

    /// Sends a request with a JSON body and a bearer token; returns the status code and the body.
    pub fn request(&self, method: &str, path: &str, body: &str, token: &str) -> (u16, String) {
        self.exchange(method, path, body, None, Some(token))
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        body: &str,
        client: Option<&Pair>,
        token: Option<&str>,
    ) -> (u16, String) {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.certificate_authority().certificate.as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(roots);
        let config = match client {
            None => config.with_no_client_auth(),
            Some(pair) => {
                let chain = vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()];
                config
                    .with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap())
                    .unwrap()
            }
        };
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(connection, TcpStream::connect(&self.address).unwrap());
        let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: pintle\r\nConnection: close\r\n{authorization}\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
