//! TLS: the serving certificate, and client certificates, which are requested in the handshake and verified after it.
//!
//! A client whose certificate has expired or is not signed by the CA bundle can still connect. Its requests return 401
//! unless they have a bearer token. Possession of the certificate's key is always proven in the handshake.

use std::net::IpAddr;
use std::sync::Arc;

use access::authentication::x509_v1::CertificateV1;
use access::authentication::{ClientCertificate, Verified};
use arc_swap::ArcSwap;
use base::clock;
use base::notice::Notices;
use parking_lot::Mutex;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::client::Client;

/// The serving certificate with its key, and the CA bundle of clients, in PEM.
#[derive(Default)]
pub struct Tls {
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
    pub client_ca: Vec<u8>,
    /// The CA bundle and names of authenticating proxies, which pass the user in headers.
    pub proxy: Option<ProxyAuthority>,
}

/// The CA bundle of authenticating proxies in PEM, and the common names that their certificates may have; any if empty.
#[derive(Clone, Debug, Default)]
pub struct ProxyAuthority {
    pub ca: Vec<u8>,
    pub names: Vec<String>,
}

/// Error of a certificate, key or CA bundle that cannot be used, in one line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(pub String);

/// Parses PEM certificates, at least one. `file_name` is its name in errors.
fn certificates(pem: &[u8], file_name: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(TlsError(format!("{file_name} contains no certificate"))),
        Err(error) => Err(TlsError(format!("{file_name}: {error}"))),
    }
}

impl Tls {
    /// Builds the acceptor of connections; fails if a certificate, key or CA bundle is invalid.
    pub fn acceptor(&self) -> Result<Acceptor, TlsError> {
        let chain = certificates(&self.certificate, "the serving certificate")?;
        let key =
            PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| TlsError(format!("the serving key: {error}")))?;
        let authorities = Authorities::new(&self.client_ca, "the client CA bundle")?;
        let proxy = self.proxy.clone().unwrap_or_default();
        let proxies = if proxy.ca.is_empty() {
            None
        } else {
            Some(Authorities::new(&proxy.ca, "the CA bundle of authenticating proxies")?)
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError(error.to_string()))?
            .with_client_cert_verifier(Arc::new(KeyPossession::new(&authorities, proxies.as_ref())))
            .with_single_cert(chain, key)
            .map_err(|error| TlsError(format!("the serving certificate: {error}")))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let names = proxy.names.into();
        Ok(Acceptor { tls: TlsAcceptor::from(Arc::new(config)), authorities, proxies, names })
    }
}

/// A CA bundle, which verifies client certificates.
#[derive(Clone, Debug)]
struct Authorities {
    roots: Arc<RootCertStore>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Authorities {
    /// Parses a bundle in PEM; `file_name` is its name in errors.
    fn new(pem: &[u8], file_name: &str) -> Result<Authorities, TlsError> {
        let invalid = |error: &dyn std::fmt::Display| TlsError(format!("{file_name}: {error}"));
        let mut roots = RootCertStore::empty();
        for certificate in certificates(pem, file_name)? {
            roots.add(certificate).map_err(|error| invalid(&error))?;
        }
        let roots = Arc::new(roots);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider);
        let verifier = builder.allow_unauthenticated().build().map_err(|error| invalid(&error))?;
        Ok(Authorities { roots, verifier })
    }

    /// Verifies the chain of a client certificate.
    fn verify(&self, certificate: &CertificateDer<'_>, others: &[CertificateDer<'_>], now: i64) -> Result<(), Error> {
        if let Some(old) = CertificateV1::parse(certificate) {
            let is_signed = old.is_signed_by(&self.roots.roots, supported_algorithms().all, now);
            return if is_signed { Ok(()) } else { Err(CertificateError::UnknownIssuer.into()) };
        }
        let seconds = u64::try_from(now).unwrap_or_default();
        let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        self.verifier.verify_client_cert(certificate, others, time).map(drop)
    }
}

fn supported_algorithms() -> WebPkiSupportedAlgorithms {
    rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms
}

/// The acceptor of new connections. When it is replaced, the clients of established ones are verified again.
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

/// Performs TLS handshakes and verifies client certificates.
#[derive(Clone)]
pub struct Acceptor {
    tls: TlsAcceptor,
    authorities: Authorities,
    proxies: Option<Authorities>,
    /// The allowed common names of authenticating proxies.
    names: Arc<[String]>,
}

impl Acceptor {
    pub fn accept(&self, stream: TcpStream) -> tokio_rustls::Accept<TcpStream> {
        self.tls.accept(stream)
    }

    /// Verifies the certificate that a client has presented, with its chain; there may be none.
    fn certificate(&self, chain: &[CertificateDer<'_>]) -> ClientCertificate {
        let Some((first, others)) = chain.split_first() else { return ClientCertificate::None };
        let now = clock::machine_seconds();
        let signed_by = |authorities: &Authorities| authorities.verify(first, others, now);
        let verified = Verified {
            client: signed_by(&self.authorities).inspect_err(report_refused).is_ok(),
            proxy: self.proxies.as_ref().is_some_and(|proxies| signed_by(proxies).is_ok()),
        };
        ClientCertificate::verified(first, verified, &self.names)
    }
}

/// The client of a connection. Its certificate is verified again once the CA bundle has changed, so that a connection does not
/// outlive the trust in an authority.
pub struct Peer {
    acceptors: Arc<Acceptors>,
    chain: Vec<CertificateDer<'static>>,
    address: IpAddr,
    verified: Mutex<(Arc<Acceptor>, Arc<Client>)>,
}

impl Peer {
    pub fn of(stream: &TlsStream<TcpStream>, address: IpAddr, acceptors: Arc<Acceptors>) -> Peer {
        let (_, session) = stream.get_ref();
        let chain: Vec<_> =
            session.peer_certificates().unwrap_or_default().iter().map(|c| c.clone().into_owned()).collect();
        let acceptor = acceptors.current();
        let client = Arc::new(Client { certificate: acceptor.certificate(&chain), address });
        Peer { acceptors, chain, address, verified: Mutex::new((acceptor, client)) }
    }

    /// The client, as the CA bundle verifies it now.
    pub fn client(&self) -> Arc<Client> {
        let acceptor = self.acceptors.current();
        let mut verified = self.verified.lock();
        if !Arc::ptr_eq(&verified.0, &acceptor) {
            let client = Client { certificate: acceptor.certificate(&self.chain), address: self.address };
            *verified = (acceptor, Arc::new(client));
        }
        verified.1.clone()
    }
}

/// Logs that a client certificate is not accepted.
fn report_refused(error: &Error) {
    static REFUSED: Notices = Notices::new();
    if let Some(more) = REFUSED.due("") {
        tracing::warn!(%error, more, "a client certificate was refused");
    }
}

/// Requests client certificates and accepts every certificate whose key the client possesses; the chain is verified
/// later by [`Peer`].
#[derive(Debug)]
struct KeyPossession {
    signatures: Arc<dyn ClientCertVerifier>,
    /// The subjects of all trusted certificate authorities. Clients send only certificates issued by one of them.
    subjects: Vec<DistinguishedName>,
}

impl KeyPossession {
    /// Requests certificates that are signed by the CA bundle of clients or, if there is one, by the CA bundle of
    /// authenticating proxies.
    fn new(clients: &Authorities, proxies: Option<&Authorities>) -> KeyPossession {
        let of_proxies = proxies.map(|proxies| proxies.verifier.root_hint_subjects()).unwrap_or_default();
        let subjects = [clients.verifier.root_hint_subjects(), of_proxies].concat();
        KeyPossession { signatures: clients.verifier.clone(), subjects }
    }
}

/// Verifies the signature of a handshake with the key of an X.509 version 1 certificate, by the first `most` algorithms
/// of the scheme; `None` for other certificates.
fn signature_v1(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    most: usize,
) -> Option<Result<HandshakeSignatureValid, Error>> {
    let old = CertificateV1::parse(certificate)?;
    let mut schemes = supported_algorithms().mapping.iter();
    let algorithms = schemes.find(|(scheme, _)| *scheme == signature.scheme).map(|(_, algorithms)| *algorithms);
    let algorithms = algorithms.unwrap_or_default();
    let has_signed = old.has_signed(message, signature.signature(), &algorithms[..most.min(algorithms.len())]);
    Some(if has_signed { Ok(HandshakeSignatureValid::assertion()) } else { Err(CertificateError::BadSignature.into()) })
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
        // in TLS 1.2, a scheme does not fix the curve, so all of its algorithms are tried
        signature_v1(message, certificate, signature, usize::MAX)
            .unwrap_or_else(|| self.signatures.verify_tls12_signature(message, certificate, signature))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        signature_v1(message, certificate, signature, 1)
            .unwrap_or_else(|| self.signatures.verify_tls13_signature(message, certificate, signature))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.supported_verify_schemes()
    }
}
