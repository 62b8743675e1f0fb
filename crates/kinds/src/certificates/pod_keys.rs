//! Public keys in PodCertificateRequests of `v1beta1`, and the proofs that their senders have the private keys.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA256_ASN1, ECDSA_P521_SHA256_ASN1, ED25519, RSA_PSS_2048_8192_SHA256,
    UnparsedPublicKey, VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::SubjectPublicKeyInfo;

use crate::certificates::request_pem::RequestKey;
use schema::at::At;

const BYTES_MAX: usize = 10 * 1024;

/// A key in DER, with nothing behind it.
pub fn parse(der: &[u8]) -> Option<SubjectPublicKeyInfo<'_>> {
    SubjectPublicKeyInfo::from_der(der).ok().filter(|(rest, _)| rest.is_empty()).map(|(_, info)| info)
}

/// Validates the key and its proof in a spec, both in Base64. The first error ends the checks.
pub fn check(spec: At) {
    let (key_at, proof_at) = (spec.field("pkixPublicKey"), spec.field("proofOfPossession"));
    let [der, proof] = [key_at, proof_at].map(|at| STANDARD.decode(at.as_text()).unwrap_or_default());
    for (bytes, at) in [(&der, key_at), (&proof, proof_at)] {
        if bytes.len() > BYTES_MAX {
            return at.too_long(BYTES_MAX);
        }
    }
    let found = parse(&der).and_then(|info| Some((RequestKey::of_info(&info).ok()?, info)));
    let Some((key, info)) = found else { return key_at.invalid("must be a valid PKIX-serialized public key") };
    let algorithm: &'static dyn VerificationAlgorithm = match key {
        RequestKey::Ed25519 => &ED25519,
        RequestKey::Ecdsa("P-256") => &ECDSA_P256_SHA256_ASN1,
        RequestKey::Ecdsa("P-384") => &ECDSA_P384_SHA256_ASN1,
        RequestKey::Ecdsa("P-521") => &ECDSA_P521_SHA256_ASN1,
        RequestKey::Ecdsa(curve) => {
            // upstream's text, which leaves out P-521
            let why = "elliptic public keys must use curve P256 or P384";
            return key_at.shown_as_text(&format!("curve {curve}")).invalid(why);
        }
        RequestKey::Rsa(3072 | 4096) => &RSA_PSS_2048_8192_SHA256,
        RequestKey::Rsa(bits) => {
            let why = "RSA keys must have modulus size 3072 or 4096";
            return key_at.shown_as_text(&format!("{bits}-bit modulus")).invalid(why);
        }
        RequestKey::Other => {
            return key_at.invalid("unknown public key type; supported types are Ed25519, ECDSA, and RSA");
        }
    };
    let key = UnparsedPublicKey::new(algorithm, &*info.subject_public_key.data);
    if key.verify(spec.text("podUID").as_bytes(), &proof).is_err() {
        proof_at.shown_verbatim("").invalid("could not verify proof-of-possession signature");
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
    use machinery::field::FieldPath;
    use machinery::{Release, json};
    use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, PublicKeyData as _};

    use super::*;
    use schema::at::errors_at;

    #[test]
    fn proofs_are_verified() {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let key = STANDARD.encode(pair.subject_public_key_info());
        let signing = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &pair.serialize_der()).unwrap();
        let proof = STANDARD.encode(signing.sign(&SystemRandom::new(), b"uid").unwrap());
        let found = |key: &str, uid: &str| {
            let spec = json!({"podUID": (uid), "pkixPublicKey": (key), "proofOfPossession": (proof.as_str())});
            let errors = errors_at(&FieldPath::new("spec"), &spec, None, Release::NEWEST, check);
            errors.first().map(ToString::to_string)
        };
        assert_eq!(found(&key, "uid"), None);
        let why = "spec.proofOfPossession: Invalid value: could not verify proof-of-possession signature";
        assert_eq!(found(&key, "other").as_deref(), Some(why));
        let why = "spec.pkixPublicKey: Invalid value: \"AQID\": must be a valid PKIX-serialized public key";
        assert_eq!(found("AQID", "uid").as_deref(), Some(why));
        let rsa = STANDARD.encode(KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap().subject_public_key_info());
        let why =
            "spec.pkixPublicKey: Invalid value: \"2048-bit modulus\": RSA keys must have modulus size 3072 or 4096";
        assert_eq!(found(&rsa, "uid").as_deref(), Some(why));
    }
}
