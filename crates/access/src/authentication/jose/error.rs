//! Why keys cannot be used, and why signatures are refused.

use thiserror::Error;

/// Why a file has no usable key. The libraries do not say more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    #[error("it is not a PEM file")]
    NotPem,
    #[error("it holds no key")]
    NoKey,
    #[error("it holds no private key")]
    NotPrivate,
    #[error("its private key cannot be used")]
    Unusable,
    #[error("it holds a broken certificate")]
    Certificate,
    #[error("it is not a public key")]
    NotPublic,
    #[error("neither an RSA key nor one of the curves P-256, P-384, P-521")]
    Family,
}

impl From<KeyError> for String {
    fn from(error: KeyError) -> String {
        error.to_string()
    }
}

/// Why a token is not verified, in the words of kube-apiserver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SignatureError {
    #[error("invalid signature, no keys found")]
    NoKeys,
    #[error("go-jose/go-jose: error in cryptographic primitive")]
    Invalid,
}
