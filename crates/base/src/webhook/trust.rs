//! Verification of server certificates: as in Go, a certificate that is itself part of the CA bundle is valid.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// A verifier that accepts a self-signed certificate of the CA bundle as server certificate, even if it is a CA.
#[derive(Debug)]
pub struct Trust {
    /// `None` if every certificate is accepted for which the server proves possession of the key.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    bundle: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Trust {
    pub fn new(roots: Arc<RootCertStore>, bundle: Vec<CertificateDer<'static>>) -> Result<Trust, VerifierBuilderError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let authorities = WebPkiServerVerifier::builder_with_provider(roots, provider).build()?;
        Ok(Trust { authorities: Some(authorities), bundle, ..Trust::any() })
    }

    /// Accepts every certificate.
    pub fn any() -> Trust {
        let algorithms = rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms;
        Trust { authorities: None, bundle: vec![], algorithms }
    }
}

/// Whether the current time is within the validity of a certificate.
fn check_time(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = parsed.validity();
    if now < validity.not_before.timestamp() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > validity.not_after.timestamp() { Err(CertificateError::Expired.into()) } else { Ok(()) }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authorities) = &self.authorities else { return Ok(ServerCertVerified::assertion()) };
        let verdict = authorities.verify_server_cert(certificate, intermediates, name, ocsp_response, now);
        if verdict.is_ok() || !self.bundle.contains(certificate) {
            return verdict;
        }
        check_time(certificate, now)?;
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
