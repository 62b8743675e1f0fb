//! The PEM request in a CertificateSigningRequest: one block with a valid signature. The errors are Go's.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA384_ASN1, ECDSA_P256_SHA512_ASN1, ECDSA_P384_SHA256_ASN1,
    ECDSA_P384_SHA384_ASN1, ECDSA_P384_SHA512_ASN1, ECDSA_P521_SHA256_ASN1, ECDSA_P521_SHA384_ASN1,
    ECDSA_P521_SHA512_ASN1, ED25519, RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
    RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, RSA_PKCS1_2048_8192_SHA384, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, UnparsedPublicKey, VerificationAlgorithm,
};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::SubjectPublicKeyInfo;

use crate::certificates::pem;

const NO_REQUEST: &str = "PEM block type must be CERTIFICATE REQUEST";
const UNKNOWN_ALGORITHM: &str = "x509: cannot verify signature: algorithm unimplemented";
const RSA_FAILURE: &str = "crypto/rsa: verification error";
const ECDSA_FAILURE: &str = "x509: ECDSA verification failure";
const ED25519_FAILURE: &str = "x509: Ed25519 verification failure";

type Algorithms = &'static [&'static dyn VerificationAlgorithm];

/// The signature algorithms: the object identifier, the algorithms that it may stand for, and the error of a wrong
/// signature.
const ALGORITHMS: [(&str, Algorithms, &str); 8] = [
    ("1.2.840.113549.1.1.11", &[&RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY], RSA_FAILURE),
    ("1.2.840.113549.1.1.12", &[&RSA_PKCS1_2048_8192_SHA384], RSA_FAILURE),
    ("1.2.840.113549.1.1.13", &[&RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY], RSA_FAILURE),
    (
        "1.2.840.113549.1.1.10",
        &[&RSA_PSS_2048_8192_SHA256, &RSA_PSS_2048_8192_SHA384, &RSA_PSS_2048_8192_SHA512],
        RSA_FAILURE,
    ),
    (
        "1.2.840.10045.4.3.2",
        &[&ECDSA_P256_SHA256_ASN1, &ECDSA_P384_SHA256_ASN1, &ECDSA_P521_SHA256_ASN1],
        ECDSA_FAILURE,
    ),
    (
        "1.2.840.10045.4.3.3",
        &[&ECDSA_P256_SHA384_ASN1, &ECDSA_P384_SHA384_ASN1, &ECDSA_P521_SHA384_ASN1],
        ECDSA_FAILURE,
    ),
    (
        "1.2.840.10045.4.3.4",
        &[&ECDSA_P256_SHA512_ASN1, &ECDSA_P384_SHA512_ASN1, &ECDSA_P521_SHA512_ASN1],
        ECDSA_FAILURE,
    ),
    ("1.3.101.112", &[&ED25519], ED25519_FAILURE),
];

pub fn check(text: &[u8]) -> Result<(), String> {
    let block = pem::blocks(text).into_iter().next().filter(|block| block.label == "CERTIFICATE REQUEST");
    verify(&parse(&block.ok_or(NO_REQUEST)?.bytes)?)
}

pub fn parse(der: &[u8]) -> Result<X509CertificationRequest<'_>, String> {
    check_frame(der)?;
    let parsed = X509CertificationRequest::from_der(der);
    parsed.map(|(_, request)| request).map_err(|_| "asn1: syntax error: truncated sequence".to_owned())
}

pub fn verify(request: &X509CertificationRequest<'_>) -> Result<(), String> {
    let algorithm = request.signature_algorithm.algorithm.to_id_string();
    let known = ALGORITHMS.into_iter().find(|(identifier, ..)| *identifier == algorithm);
    let (_, algorithms, failure) = known.ok_or(UNKNOWN_ALGORITHM)?;
    let info = &request.certification_request_info;
    let key = &*info.subject_pki.subject_public_key.data;
    let is_valid = |algorithm: &&'static dyn VerificationAlgorithm| {
        UnparsedPublicKey::new(*algorithm, key).verify(info.raw, &request.signature_value.data).is_ok()
    };
    if algorithms.iter().any(is_valid) { Ok(()) } else { Err(failure.to_owned()) }
}

/// The public key of a request, as far as the rules depend on it.
pub enum RequestKey {
    Ed25519,
    /// An ECDSA key on the curve of this name.
    Ecdsa(&'static str),
    /// An RSA key whose modulus has this many bits, counted in whole bytes.
    Rsa(usize),
    /// A key of another algorithm.
    Other,
}

/// The ECDSA curves that Go knows: object identifier, name, and the number of bytes of a point.
const CURVES: [(&str, &str, usize); 4] = [
    ("1.3.132.0.33", "P-224", 57),
    ("1.2.840.10045.3.1.7", "P-256", 65),
    ("1.3.132.0.34", "P-384", 97),
    ("1.3.132.0.35", "P-521", 133),
];

impl RequestKey {
    /// The key of a request. Fails if the key is not valid for its algorithm.
    pub fn of(request: &X509CertificationRequest<'_>) -> Result<RequestKey, String> {
        RequestKey::of_info(&request.certification_request_info.subject_pki)
    }

    /// As [`RequestKey::of`], for a key with its algorithm.
    pub fn of_info(info: &SubjectPublicKeyInfo<'_>) -> Result<RequestKey, String> {
        let (parameters, key) = (info.algorithm.parameters.as_ref(), &*info.subject_public_key.data);
        match &*info.algorithm.algorithm.to_id_string() {
            "1.3.101.112" if parameters.is_none() && key.len() == 32 => Ok(RequestKey::Ed25519),
            "1.3.101.112" => Err("x509: wrong Ed25519 public key size".to_owned()),
            "1.2.840.10045.2.1" => {
                let curve = parameters.and_then(|parameters| parameters.as_oid().ok()).map(|oid| oid.to_id_string());
                let curve = CURVES.into_iter().find(|(identifier, ..)| curve.as_deref() == Some(*identifier));
                let (_, name, bytes) = curve.ok_or("x509: unsupported elliptic curve")?;
                let is_point = key.len() == bytes && key[0] == 4;
                if is_point {
                    Ok(RequestKey::Ecdsa(name))
                } else {
                    Err("x509: failed to unmarshal elliptic curve point".to_owned())
                }
            }
            "1.2.840.113549.1.1.1" => match info.parsed() {
                Ok(x509_parser::public_key::PublicKey::RSA(key)) => {
                    Ok(RequestKey::Rsa(key.modulus.iter().skip_while(|byte| **byte == 0).count() * 8))
                }
                _ => Err("x509: invalid RSA public key".to_owned()),
            },
            _ => Ok(RequestKey::Other),
        }
    }
}

/// Checks that the block consists of exactly one DER sequence.
fn check_frame(der: &[u8]) -> Result<(), String> {
    let syntax = |why: &str| Err(format!("asn1: syntax error: {why}"));
    let [tag, rest @ ..] = der else { return syntax("sequence truncated") };
    let Some((length, content)) = length(rest)? else { return syntax("truncated tag or length") };
    let (class, number, is_compound) = (tag >> 6, tag & 0x1f, tag & 0x20 != 0);
    if (class, number, is_compound) != (0, 16, true) {
        let at = der.len() - content.len();
        let found = format!("{{class:{class} tag:{number} length:{length} isCompound:{is_compound}}}");
        return Err(format!(
            "asn1: structure error: tags don't match (16 vs {found}) {{optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 timeType:0 set:false omitEmpty:false}} certificateRequest @{at}"
        ));
    }
    match content.len() {
        given if given < length => syntax("data truncated"),
        given if given > length => syntax("trailing data"),
        _ => Ok(()),
    }
}

/// The length at the beginning of a DER value, and the bytes after it; `None` if they are cut off.
fn length(rest: &[u8]) -> Result<Option<(usize, &[u8])>, String> {
    let Some((first, rest)) = rest.split_first() else { return Ok(None) };
    let count = usize::from(first & 0x7f);
    if first & 0x80 == 0 {
        return Ok(Some((count, rest)));
    }
    if count == 0 {
        return Err("asn1: syntax error: indefinite length found (not DER)".to_owned());
    }
    if count > 4 {
        return Err("asn1: structure error: length too large".to_owned());
    }
    let Some((digits, rest)) = rest.split_at_checked(count) else { return Ok(None) };
    let length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
    match length {
        _ if digits[0] == 0 => Err("asn1: structure error: superfluous leading zeros in length".to_owned()),
        0..0x80 => Err("asn1: structure error: non-minimal length".to_owned()),
        _ => Ok(Some((length, rest))),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use rcgen::{
        CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_RSA_SHA256, SignatureAlgorithm,
    };

    use super::*;

    fn request(algorithm: &'static SignatureAlgorithm) -> Vec<u8> {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let params = CertificateParams::new(vec!["a".to_owned()]).unwrap();
        params.serialize_request(&key).unwrap().der().to_vec()
    }

    fn pem(label: &str, der: &[u8]) -> String {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
    }

    #[test]
    fn signatures_are_verified() {
        let cases = [
            (&PKCS_RSA_SHA256, RSA_FAILURE),
            (&PKCS_ECDSA_P256_SHA256, ECDSA_FAILURE),
            (&PKCS_ED25519, ED25519_FAILURE),
        ];
        for (algorithm, why) in cases {
            let mut der = request(algorithm);
            assert_eq!(check(pem("CERTIFICATE REQUEST", &der).as_bytes()), Ok(()));
            *der.last_mut().unwrap() ^= 1;
            assert_eq!(check(pem("CERTIFICATE REQUEST", &der).as_bytes()), Err(why.to_owned()));
        }
    }

    #[test]
    fn texts_that_are_no_requests() {
        let der = request(&PKCS_ED25519);
        let more = [&der[..], &[0]].concat();
        let whole = pem("CERTIFICATE REQUEST", &der);
        let cases = [
            (String::new(), NO_REQUEST),
            (pem("NEW CERTIFICATE REQUEST", &der), NO_REQUEST),
            (whole.replace("END", "XND"), NO_REQUEST),
            (pem("CERTIFICATE", &der) + &whole, NO_REQUEST),
            (pem("CERTIFICATE REQUEST", &der[..der.len() - 1]), "asn1: syntax error: data truncated"),
            (pem("CERTIFICATE REQUEST", &more), "asn1: syntax error: trailing data"),
            (pem("CERTIFICATE REQUEST", &[]), "asn1: syntax error: sequence truncated"),
            (pem("CERTIFICATE REQUEST", &[0, 0, 0]), "asn1: structure error: tags don't match (16 vs {class:0 tag:0"),
        ];
        for (text, want) in cases {
            let found = check(text.as_bytes()).unwrap_err();
            assert!(found.starts_with(want), "{text}: {found}");
        }
        assert_eq!(check(format!("hello\n{whole}").as_bytes()), Ok(()));
    }
}
