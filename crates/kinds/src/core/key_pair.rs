//! Checks that a certificate matches a private key, with the errors of Go's `tls.X509KeyPair`.

use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING, EcdsaKeyPair,
    Ed25519KeyPair, KeyPair as _,
};
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// A public key: the object identifier of its algorithm, and its bits as certificates have them.
#[derive(PartialEq)]
struct PublicKey {
    algorithm: &'static str,
    bits: Vec<u8>,
}

const RSA: &str = "1.2.840.113549.1.1.1";
const ECDSA: &str = "1.2.840.10045.2.1";
const ED25519: &str = "1.3.101.112";

/// Checks that the first certificate in a PEM text matches the first private key in another. The error is Go's.
pub fn check(certificate: &[u8], key: &[u8]) -> Result<(), String> {
    let certificate = certificate_of(certificate)?;
    let key = key_of(key)?;
    let shown = match X509Certificate::from_der(&certificate) {
        Ok((_, certificate)) => public_key(&certificate)?,
        Err(_) => return Err("x509: malformed certificate".to_owned()),
    };
    let own = parse_key(&key).ok_or("tls: failed to parse private key")?;
    if own.algorithm != shown.algorithm {
        return Err("tls: private key type does not match public key type".to_owned());
    }
    if own == shown { Ok(()) } else { Err("tls: private key does not match public key".to_owned()) }
}

/// The first wanted block in a PEM text, and the types of the blocks before it.
fn find(text: &[u8], wanted: impl Fn(&str) -> bool) -> (Option<Vec<u8>>, Vec<String>) {
    let mut skipped = vec![];
    for block in Pem::iter_from_buffer(text).map_while(Result::ok) {
        if wanted(&block.label) {
            return (Some(block.contents), skipped);
        }
        skipped.push(block.label);
    }
    (None, skipped)
}

fn certificate_of(text: &[u8]) -> Result<Vec<u8>, String> {
    let (found, skipped) = find(text, |label| label == "CERTIFICATE");
    found.ok_or_else(|| match skipped.as_slice() {
        [] => "tls: failed to find any PEM data in certificate input".to_owned(),
        [one] if one.ends_with("PRIVATE KEY") => {
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched".to_owned()
        }
        _ => format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{}]",
            skipped.join(" ")
        ),
    })
}

fn key_of(text: &[u8]) -> Result<Vec<u8>, String> {
    let (found, skipped) = find(text, |label| label == "PRIVATE KEY" || label.ends_with(" PRIVATE KEY"));
    found.ok_or_else(|| match skipped.as_slice() {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [one] if one == "CERTIFICATE" => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        _ => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the following types: [{}]",
            skipped.join(" ")
        ),
    })
}

fn public_key(certificate: &X509Certificate<'_>) -> Result<PublicKey, String> {
    let key = certificate.public_key();
    let algorithm = key.algorithm.algorithm.to_id_string();
    let known = [RSA, ECDSA, ED25519].into_iter().find(|known| *known == algorithm);
    let algorithm = known.ok_or("tls: unknown public key algorithm")?;
    Ok(PublicKey { algorithm, bits: key.subject_public_key.data.to_vec() })
}

/// The public key that belongs to a private key in PKCS #8, PKCS #1 or SEC 1.
fn parse_key(der: &[u8]) -> Option<PublicKey> {
    let public = |algorithm, bits: &[u8]| Some(PublicKey { algorithm, bits: bits.to_vec() });
    if let Ok(pair) = rsa::KeyPair::from_pkcs8(der).or_else(|_| rsa::KeyPair::from_der(der)) {
        return public(RSA, pair.public_key().as_ref());
    }
    for curve in [&ECDSA_P256_SHA256_ASN1_SIGNING, &ECDSA_P384_SHA384_ASN1_SIGNING, &ECDSA_P521_SHA512_ASN1_SIGNING] {
        if let Ok(pair) = EcdsaKeyPair::from_private_key_der(curve, der) {
            return public(ECDSA, pair.public_key().as_ref());
        }
    }
    let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).ok()?;
    public(ED25519, pair.public_key().as_ref())
}

#[cfg(test)]
mod tests {
    use rcgen::{
        CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256,
    };

    use super::*;

    /// A certificate and its key.
    fn made(algorithm: &'static rcgen::SignatureAlgorithm) -> (String, String) {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let certificate = CertificateParams::new(vec!["a".to_owned()]).unwrap().self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    #[test]
    fn accepts_pairs_of_every_algorithm() {
        for algorithm in [&PKCS_RSA_SHA256, &PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
            let (certificate, key) = made(algorithm);
            assert_eq!(check(certificate.as_bytes(), key.as_bytes()), Ok(()), "{algorithm:?}");
            let others = made(&PKCS_ECDSA_P256_SHA256).0 + &certificate;
            assert!(check(others.as_bytes(), key.as_bytes()).is_err(), "the first certificate counts");
        }
    }

    /// The warnings of kube-apiserver 1.35.3.
    #[test]
    fn reports_mismatches_as_go() {
        let block = |label: &str| format!("-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n");
        let (certificate, key) = made(&PKCS_ECDSA_P256_SHA256);
        let (other, ed) = (made(&PKCS_ECDSA_P256_SHA256).1, made(&PKCS_ED25519).1);
        let (junk, foo) = (block("CERTIFICATE"), block("FOO"));
        let skipped = |what: &str| format!("after skipping PEM blocks of the following types: [{what}]");
        for (certificate, key, why) in [
            ("", "", "tls: failed to find any PEM data in certificate input".to_owned()),
            ("x", key.as_str(), "tls: failed to find any PEM data in certificate input".to_owned()),
            ("-----BEGIN CERTIFICATE-----\n", &key, "tls: failed to find any PEM data in certificate input".to_owned()),
            (&certificate, "", "tls: failed to find any PEM data in key input".to_owned()),
            (&key, &certificate, "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched".to_owned()),
            (&foo, &key, format!("tls: failed to find \"CERTIFICATE\" PEM block in certificate input {}", skipped("FOO"))),
            (&certificate, &certificate, "tls: found a certificate rather than a key in the PEM for the private key".to_owned()),
            (&certificate, &foo, format!("tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input {}", skipped("FOO"))),
            (&junk, &key, "x509: malformed certificate".to_owned()),
            (&certificate, &block("PRIVATE KEY"), "tls: failed to parse private key".to_owned()),
            (&certificate, &block("EC PRIVATE KEY"), "tls: failed to parse private key".to_owned()),
            (&certificate, &ed, "tls: private key type does not match public key type".to_owned()),
            (&certificate, &other, "tls: private key does not match public key".to_owned()),
        ] {
            assert_eq!(check(certificate.as_bytes(), key.as_bytes()), Err(why));
        }
    }
}
