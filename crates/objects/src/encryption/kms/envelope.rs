//! Sources of keys. A plugin encrypts the source, and keys derived from it encrypt values.

use aws_lc_rs::{digest, hkdf};
use base::clock;

use super::messages::{EncryptedObject, SOURCE_KEY, SOURCE_SEED};
use crate::encryption::cipher::Cipher;
use crate::encryption::error::{CipherError, KmsError};
use crate::limits;

/// The block of SHA-256, in bytes.
const BLOCK: usize = 64;

/// Bytes of a seed, of the input of a derivation, and of a derived key.
const SIZE: usize = 32;

/// A decrypted source.
pub enum Source {
    Key(Cipher),
    Seed(hkdf::Prk),
}

impl Source {
    /// A new random seed, and its bytes.
    pub fn random() -> (Source, [u8; SIZE]) {
        let seed = clock::random_bytes::<SIZE>();
        (Source::Seed(hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, &seed)), seed)
    }

    /// The source of a type of [`EncryptedObject`].
    pub fn of(source_type: i32, bytes: &[u8]) -> Result<Source, KmsError> {
        match source_type {
            SOURCE_KEY => Cipher::gcm(bytes).map(Source::Key).ok_or(KmsError::KeySize(bytes.len())),
            // HMAC replaces a key that is longer than its block by its digest, but the library does not accept such
            // keys
            SOURCE_SEED if bytes.len() > BLOCK => {
                let hashed = digest::digest(&digest::SHA256, bytes);
                Ok(Source::Seed(hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, hashed.as_ref())))
            }
            SOURCE_SEED if bytes.len() >= SIZE => Ok(Source::Seed(hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, bytes))),
            SOURCE_SEED => Err(KmsError::SeedSize(bytes.len())),
            other => Err(KmsError::SourceType(other)),
        }
    }

    pub fn seal(&self, plain: &[u8], authenticated: &[u8]) -> Result<Vec<u8>, CipherError> {
        match self {
            Source::Key(cipher) => cipher.seal(plain, authenticated),
            Source::Seed(seed) => {
                let info = clock::random_bytes::<SIZE>();
                Ok([&info, &derived(seed, &info)?.seal(plain, authenticated)?[..]].concat())
            }
        }
    }

    pub fn open(&self, sealed: &[u8], authenticated: &[u8]) -> Result<Vec<u8>, CipherError> {
        match self {
            Source::Key(cipher) => cipher.open(sealed, authenticated),
            Source::Seed(seed) => {
                let (info, sealed) = sealed.split_at_checked(SIZE).ok_or(CipherError::Short)?;
                derived(seed, info)?.open(sealed, authenticated)
            }
        }
    }
}

/// The cipher of one value.
fn derived(seed: &hkdf::Prk, info: &[u8]) -> Result<Cipher, CipherError> {
    let mut key = [0; SIZE];
    let info = [info];
    let filled = seed.expand(&info, hkdf::HKDF_SHA256).and_then(|material| material.fill(&mut key));
    filled.map_err(|_| CipherError::NotDerived)?;
    Cipher::gcm(&key).ok_or(CipherError::NotDerived)
}

/// Checks the bounds that kube-apiserver sets.
pub fn validate(object: &EncryptedObject) -> Result<(), KmsError> {
    let EncryptedObject { data, key_id, source, annotations, source_type } = object;
    if ![SOURCE_KEY, SOURCE_SEED].contains(source_type) {
        return Err(KmsError::SourceType(*source_type));
    }
    if data.is_empty() {
        return Err(KmsError::NoData);
    }
    bounded("encrypted DEK source", "encrypted DEK source", source.len(), limits::KMS_SOURCE_BYTES_MAX)?;
    bounded("key id", "keyID", key_id.len(), limits::KMS_KEY_ID_BYTES_MAX)?;
    let size: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    if size > limits::KMS_ANNOTATIONS_BYTES_MAX { Err(KmsError::Annotations(size)) } else { Ok(()) }
}

fn bounded(part: &'static str, name: &'static str, size: usize, most: usize) -> Result<(), KmsError> {
    match size {
        0 => Err(KmsError::Empty { part, name }),
        _ if size > most => Err(KmsError::Long { part, name, size, most }),
        _ => Ok(()),
    }
}
