//! TLS towards a server: which certificates to trust, and which one to show.

use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::access::{Access, Verification};
use crate::error::SettingsError;

/// The configuration for a server that is spoken to with an application protocol, such as `h2`.
pub fn config(access: &Access, protocol: &[u8]) -> Result<ClientConfig, SettingsError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let builder = match access.verification {
        Verification::Required => {
            let mut roots = RootCertStore::empty();
            let what = "the CA bundle";
            for certificate in CertificateDer::pem_slice_iter(&access.certificate_authority) {
                let certificate = certificate.map_err(|source| SettingsError::Pem { what, source })?;
                roots.add(certificate).map_err(|source| SettingsError::Tls { what, source })?;
            }
            builder.with_root_certificates(roots)
        }
        Verification::Skipped => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer(provider.clone())))
        }
    };
    let mut config = if access.certificate.is_empty() {
        builder.with_no_client_auth()
    } else {
        builder.with_client_cert_resolver(Arc::new(Shown(shown(access, &provider)?)))
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(config)
}

fn shown(access: &Access, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, SettingsError> {
    let what = "the client certificate";
    let failed = |source: Error| SettingsError::Tls { what, source };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&access.certificate).collect();
    let chain = chain.map_err(|source| SettingsError::Pem { what, source })?;
    if chain.is_empty() {
        return Err(SettingsError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(&access.key);
    let key = key.map_err(|source| SettingsError::Pem { what: "the client key", source })?;
    let key = provider.key_provider.load_private_key(key).map_err(failed)?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        // a certificate of X.509 version 1 cannot be compared; whether it is valid is for the server to decide
        Ok(()) | Err(Error::InvalidCertificate(_)) => Ok(Arc::new(certified)),
        // nothing is known of the key
        Err(Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(Arc::new(certified)),
        Err(error) => Err(failed(error)),
    }
}

/// Shows one certificate, whichever the server asks for.
#[derive(Debug)]
struct Shown(Arc<CertifiedKey>);

impl ResolvesClientCert for Shown {
    fn resolve(&self, _authorities: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Accepts any server that has the key of its certificate, as `insecure-skip-tls-verify` wants it.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
