//! Client certificates of X.509 version 1, which `openssl x509 -req` writes unless it is given extensions. Go accepts
//! them, but rustls supports only version 3. They have no extensions, so a chain is a single signature, by a trusted
//! authority.

use rustls_pki_types::{SignatureVerificationAlgorithm, TrustAnchor};
use x509_parser::asn1_rs::{Any, FromDer as _, Tag};
use x509_parser::prelude::{X509Certificate, X509Version};

/// The algorithms that may verify a signature, of which keys and certificates name one.
pub type Algorithms<'a> = &'a [&'a dyn SignatureVerificationAlgorithm];

/// A certificate of version 1, in parts of its DER encoding.
pub struct CertificateV1<'a> {
    parsed: X509Certificate<'a>,
    /// The identifier of the algorithm of its signature.
    algorithm: &'a [u8],
}

impl<'a> CertificateV1<'a> {
    /// Parses a certificate; `None` if it is invalid or has another version.
    pub fn parse(der: &'a [u8]) -> Option<CertificateV1<'a>> {
        let (_, parsed) = X509Certificate::from_der(der).ok().filter(|(rest, _)| rest.is_empty())?;
        let (signed, _) = split(der, Tag::Sequence)?;
        let (_, rest) = split(signed, Tag::Sequence)?;
        let (algorithm, _) = split(rest, Tag::Sequence)?;
        (parsed.version() == X509Version::V1).then_some(CertificateV1 { parsed, algorithm })
    }

    /// Whether the key of the certificate has signed a message, as in a handshake.
    pub fn has_signed(&self, message: &[u8], signature: &[u8], algorithms: Algorithms<'_>) -> bool {
        let info = split(self.parsed.public_key().raw, Tag::Sequence);
        info.is_some_and(|(info, _)| verifies(info, message, signature, algorithms.iter().copied()))
    }

    /// Whether one of the authorities has signed the certificate, and it is valid at `now`, in seconds since 1970.
    /// Authorities with name constraints are not accepted.
    pub fn is_signed_by(&self, authorities: &[TrustAnchor<'_>], algorithms: Algorithms<'_>, now: i64) -> bool {
        let validity = self.parsed.validity();
        let is_valid = (validity.not_before.timestamp()..=validity.not_after.timestamp()).contains(&now);
        let issuer = split(self.parsed.issuer().as_raw(), Tag::Sequence).map(|(issuer, _)| issuer);
        let (message, signature) = (self.parsed.tbs_certificate.as_ref(), &*self.parsed.signature_value.data);
        let signed_by = |authority: &TrustAnchor<'_>| {
            let named = algorithms.iter().copied().filter(|known| *known.signature_alg_id() == *self.algorithm);
            issuer == Some(&*authority.subject)
                && authority.name_constraints.is_none()
                && verifies(&authority.subject_public_key_info, message, signature, named)
        };
        is_valid && authorities.iter().any(signed_by)
    }
}

/// The content of a value with this tag at the head of `der`, and what follows the value.
fn split(der: &[u8], tag: Tag) -> Option<(&[u8], &[u8])> {
    let (rest, value) = Any::from_der(der).ok().filter(|(_, value)| value.tag() == tag)?;
    Some((value.data, rest))
}

/// Whether the key in the content of a SubjectPublicKeyInfo verifies a signature with one of the algorithms.
fn verifies<'a>(
    info: &[u8],
    message: &[u8],
    signature: &[u8],
    algorithms: impl Iterator<Item = &'a dyn SignatureVerificationAlgorithm>,
) -> bool {
    let key = split(info, Tag::Sequence).and_then(|(algorithm, rest)| {
        let (bits, _) = split(rest, Tag::BitString)?;
        // a key consists of whole bytes, so no bits of the last one are unused
        Some((algorithm, bits.strip_prefix(&[0])?))
    });
    let Some((algorithm, bits)) = key else { return false };
    let mut fitting = algorithms.filter(|known| *known.public_key_alg_id() == *algorithm);
    fitting.any(|known| known.verify_signature(bits, message, signature).is_ok())
}
