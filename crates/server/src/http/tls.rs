//! TLS: the server's certificate, and those of clients, which are asked for and judged after the handshake.
//!
//! A client whose certificate has expired or comes from elsewhere is let in and answered 401, unless it shows a token
//!. That it holds the certificate's key is always proven in the handshake.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::authentication::{ClientCertificate, Verified};
use crate::clock;

/// The server's certificate and the authority of its clients, as PEM.
pub struct Tls {
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
    pub client_ca: Vec<u8>,
    /// Who may say in headers who asks.
    pub proxy: Option<ProxyAuthority>,
}

/// The authority of proxies that authenticate, PEM, and the common names that such a proxy may have; none for any.
#[derive(Clone, Debug, Default)]
pub struct ProxyAuthority {
    pub ca: Vec<u8>,
    pub names: Vec<String>,
}

/// Why certificates can't be used; one line.
#[derive(Debug)]
pub struct TlsError(pub String);

impl std::fmt::Display for TlsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(TlsError(format!("{what} holds no certificate"))),
        Err(error) => Err(TlsError(format!("{what}: {error}"))),
    }
}

impl Tls {
    pub fn acceptor(&self) -> Result<Acceptor, TlsError> {
        let chain = certificates(&self.certificate, "the serving certificate")?;
        let key =
            PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| TlsError(format!("the serving key: {error}")))?;
        let authorities = verifier(&self.client_ca, "the client certificate authority")?;
        let proxy = self.proxy.clone().unwrap_or_default();
        let proxies = match proxy.ca.is_empty() {
            true => None,
            false => Some(verifier(&proxy.ca, "the authority of proxies")?),
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError(error.to_string()))?
            .with_client_cert_verifier(Arc::new(KeyPossession::new(authorities.clone(), proxies.as_ref())))
            .with_single_cert(chain, key)
            .map_err(|error| TlsError(format!("the serving certificate: {error}")))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let names = proxy.names.into();
        Ok(Acceptor { tls: TlsAcceptor::from(Arc::new(config)), authorities, proxies, names })
    }
}

/// Verifies the chains of clients up to the authorities of a PEM file.
fn verifier(pem: &[u8], what: &str) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let wrong = |error: &dyn std::fmt::Display| TlsError(format!("{what}: {error}"));
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, what)? {
        roots.add(certificate).map_err(|error| wrong(&error))?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    builder.allow_unauthenticated().build().map_err(|error| wrong(&error))
}

/// The acceptor of the next connection, which can be replaced while those before go on.
pub struct Acceptors(ArcSwap<Acceptor>);

impl Acceptors {
    pub fn new(tls: &Tls) -> Result<Acceptors, TlsError> {
        Ok(Acceptors(ArcSwap::from_pointee(tls.acceptor()?)))
    }

    pub fn replace(&self, tls: &Tls) -> Result<(), TlsError> {
        self.0.store(Arc::new(tls.acceptor()?));
        Ok(())
    }

    pub fn current(&self) -> Arc<Acceptor> {
        self.0.load_full()
    }
}

/// Makes TLS connections and judges the certificates of their clients.
#[derive(Clone)]
pub struct Acceptor {
    tls: TlsAcceptor,
    authorities: Arc<dyn ClientCertVerifier>,
    proxies: Option<Arc<dyn ClientCertVerifier>>,
    /// The common names of proxies.
    names: Arc<[String]>,
}

impl Acceptor {
    pub fn accept(&self, stream: TcpStream) -> tokio_rustls::Accept<TcpStream> {
        self.tls.accept(stream)
    }

    /// What the client of a connection has shown.
    pub fn certificate(&self, stream: &TlsStream<TcpStream>) -> ClientCertificate {
        let (_, session) = stream.get_ref();
        let Some((first, others)) = session.peer_certificates().and_then(<[_]>::split_first) else {
            return ClientCertificate::None;
        };
        let seconds = u64::try_from(clock::now_seconds()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        let signed_by = |verifier: &Arc<dyn ClientCertVerifier>| verifier.verify_client_cert(first, others, now);
        let verified = Verified {
            client: signed_by(&self.authorities)
                .inspect_err(|error| tracing::debug!(%error, "a client certificate is not accepted"))
                .is_ok(),
            proxy: self.proxies.as_ref().is_some_and(|proxies| signed_by(proxies).is_ok()),
        };
        ClientCertificate::verified(first, verified, &self.names)
    }
}

/// Requests certificates of the authorities and accepts every certificate whose key the client holds.
#[derive(Debug)]
struct KeyPossession {
    signatures: Arc<dyn ClientCertVerifier>,
    /// The subjects of all authorities. A client sends no certificate of an authority that is not named here.
    subjects: Vec<DistinguishedName>,
}

impl KeyPossession {
    /// Requests certificates of the authority of clients, and of that of proxies if there is one.
    fn new(clients: Arc<dyn ClientCertVerifier>, proxies: Option<&Arc<dyn ClientCertVerifier>>) -> KeyPossession {
        let of_proxies = proxies.map(|proxies| proxies.root_hint_subjects()).unwrap_or_default();
        let subjects = [clients.root_hint_subjects(), of_proxies].concat();
        KeyPossession { signatures: clients, subjects }
    }
}

impl ClientCertVerifier for KeyPossession {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.subjects
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.supported_verify_schemes()
    }
}
