//! Why a value cannot be encrypted or decrypted, and why a configuration cannot be used. The texts are kube-apiserver's
//! where it has the same error, and contain no secrets.

use std::io;
use std::time::Duration;

use thiserror::Error;

use crate::limits;

#[derive(Clone, Copy, Debug, Error)]
pub enum CipherError {
    #[error("it cannot be encrypted")]
    NotEncrypted,
    #[error("failed to derive a key")]
    NotDerived,
    #[error("the stored data was shorter than the required size")]
    Short,
    #[error("the stored data is not a multiple of the block size")]
    NotBlocks,
    #[error("invalid padding on input")]
    Padding,
    #[error("cipher: message authentication failed")]
    GcmTag,
    #[error("message authentication failed")]
    SecretboxTag,
}

/// Why a key management service, or a value that one of its keys encrypts, cannot be used.
#[derive(Debug, Error)]
pub enum KmsError {
    #[error("{endpoint}: {source}")]
    Call { endpoint: String, source: CallError },
    #[error("expected KMSv2 API version v2, got {0}")]
    Version(String),
    #[error("got unexpected healthz status: {0}")]
    Unhealthy(String),
    #[error("got an empty key id")]
    NoKeyId,
    #[error("failed to decrypt DEK, error: {0}")]
    Decrypt(#[source] Box<KmsError>),
    /// The thread of the provider, or its runtime, cannot be started.
    #[error(transparent)]
    Start(#[from] io::Error),
    #[error("its thread has ended")]
    Ended,
    #[error("there is no seed")]
    NoSeed,
    #[error("{prefix}the plugin has not been healthy for too long: {fault}")]
    Expired { prefix: String, fault: String },
    #[error(transparent)]
    Object(#[from] prost::DecodeError),
    #[error("unknown encryptedDEKSourceType: {0}")]
    SourceType(i32),
    #[error("invalid key size {0}")]
    KeySize(usize),
    #[error("invalid seed length {0} used for key generation")]
    SeedSize(usize),
    #[error("encrypted data is empty")]
    NoData,
    #[error("failed to validate {part}: {name} is empty")]
    Empty { part: &'static str, name: &'static str },
    #[error("failed to validate {part}: {name} is {size} bytes, which exceeds the max size of {most}")]
    Long { part: &'static str, name: &'static str, size: usize, most: usize },
    #[error("total size of annotations is {0}, which exceeds the max size of {most}", most = limits::KMS_ANNOTATIONS_BYTES_MAX)]
    Annotations(usize),
    #[error(transparent)]
    Cipher(#[from] CipherError),
}

/// Why a plugin has not responded.
#[derive(Debug, Error)]
pub enum CallError {
    #[error("{}", deepest(.0))]
    Transport(#[from] tonic::transport::Error),
    #[error("{}", .0.message())]
    Status(#[source] Box<tonic::Status>),
    #[error("no response within {0:?}")]
    Late(Duration),
}

/// The innermost cause of an error, which is the most specific.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Why the providers of a resource cannot encrypt or decrypt a value.
#[derive(Debug, Error)]
pub enum EncryptionError {
    #[error("there is no key")]
    NoKey,
    #[error(transparent)]
    Cipher(#[from] CipherError),
    #[error(transparent)]
    Kms(#[from] KmsError),
    #[error("{prefix}: {source}")]
    Key { prefix: String, source: CipherError },
    #[error("{prefix} {source}")]
    Service { prefix: String, source: KmsError },
    #[error("no matching key was found for the provided {noun} transformer ({prefix})")]
    NoMatchingKey { noun: &'static str, prefix: String },
    /// Each of several providers has failed.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Providers(Vec<EncryptionError>),
    #[error("it is encrypted, and no provider reads it ({0})")]
    NoProvider(String),
    /// In upstream's words.
    #[error("no matching prefix found: it is not encrypted, and identity is not among the providers")]
    NotEncrypted,
}

impl From<EncryptionError> for String {
    fn from(error: EncryptionError) -> String {
        error.to_string()
    }
}

/// Why an EncryptionConfiguration cannot be used.
#[derive(Debug, Error)]
pub enum ConfigurationError {
    /// It is not valid.
    #[error("{0}")]
    Invalid(String),
    #[error("resource \"{resource}\" is masked by earlier rule {by:?}")]
    Masked { resource: String, by: String },
    #[error("error while creating cipher for named key {0}")]
    Key(String),
    #[error("kms provider {name}: {source}")]
    Kms { name: String, source: KmsError },
}

impl From<String> for ConfigurationError {
    fn from(why: String) -> ConfigurationError {
        ConfigurationError::Invalid(why)
    }
}

impl From<ConfigurationError> for String {
    fn from(error: ConfigurationError) -> String {
        error.to_string()
    }
}
