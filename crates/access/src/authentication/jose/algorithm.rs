//! Algorithms of signatures (RFC 7518). All are asymmetric, so that a public key cannot be used as an HMAC secret.

use aws_lc_rs::signature::{self, VerificationAlgorithm};

/// The algorithm family of a key: RSA, or a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Rsa,
    P256,
    P384,
    P521,
}

impl Family {
    /// The algorithm with which keys of this family sign.
    pub fn algorithm(self) -> Algorithm {
        match self {
            Family::Rsa => Algorithm::Rs256,
            Family::P256 => Algorithm::Es256,
            Family::P384 => Algorithm::Es384,
            Family::P521 => Algorithm::Es512,
        }
    }

    /// The name of the curve.
    pub fn curve(self) -> &'static str {
        match self {
            Family::Rsa => "",
            Family::P256 => "P-256",
            Family::P384 => "P-384",
            Family::P521 => "P-521",
        }
    }

    pub fn of_curve(oid: &str) -> Option<Family> {
        match oid {
            "1.2.840.10045.3.1.7" => Some(Family::P256),
            "1.3.132.0.34" => Some(Family::P384),
            "1.3.132.0.35" => Some(Family::P521),
            _ => None,
        }
    }
}

machinery::text_enum! {
    /// An algorithm of signatures.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Algorithm {
        Rs256 = "RS256",
        Rs384 = "RS384",
        Rs512 = "RS512",
        Ps256 = "PS256",
        Ps384 = "PS384",
        Ps512 = "PS512",
        Es256 = "ES256",
        Es384 = "ES384",
        Es512 = "ES512",
    }
}

impl Algorithm {
    /// The keys that it requires.
    pub(super) fn family(self) -> Family {
        match self {
            Algorithm::Es256 => Family::P256,
            Algorithm::Es384 => Family::P384,
            Algorithm::Es512 => Family::P521,
            _ => Family::Rsa,
        }
    }

    pub(super) fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Algorithm::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
            Algorithm::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
            Algorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
            Algorithm::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
            Algorithm::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
            Algorithm::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Algorithm::Es384 => &signature::ECDSA_P384_SHA384_FIXED,
            Algorithm::Es512 => &signature::ECDSA_P521_SHA512_FIXED,
        }
    }
}
