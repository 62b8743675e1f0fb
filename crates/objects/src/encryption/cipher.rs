//! Ciphers: AES in CBC and GCM mode, and NaCl's secretbox (XSalsa20 and Poly1305).
//!
//! The encoding is kube-apiserver's: a random nonce, then the ciphertext. Only GCM authenticates the key under which a
//! value is stored, so a value of another cipher could be moved to another key.

use aws_lc_rs::aead::{AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    self, AES_128, AES_192, AES_256, DecryptionContext, EncryptionContext, PaddedBlockDecryptingKey,
    PaddedBlockEncryptingKey, UnboundCipherKey,
};
use base::clock;
use crypto_secretbox::aead::{Aead as _, KeyInit as _};
use crypto_secretbox::{Nonce as SecretboxNonce, XSalsa20Poly1305};

use super::error::CipherError;

const BLOCK: usize = 16;
const GCM_NONCE: usize = 12;
const GCM_TAG: usize = 16;
const SECRETBOX_NONCE: usize = 24;
const SECRETBOX_TAG: usize = 16;

/// A cipher with its key.
pub enum Cipher {
    Cbc(Box<(PaddedBlockEncryptingKey, PaddedBlockDecryptingKey)>),
    Gcm(LessSafeKey),
    Secretbox(XSalsa20Poly1305),
}

impl Cipher {
    /// `None` if the key has another length than 16, 24 or 32 bytes.
    pub fn cbc(key: &[u8]) -> Option<Cipher> {
        let algorithm: &cipher::Algorithm = match key.len() {
            16 => &AES_128,
            24 => &AES_192,
            32 => &AES_256,
            _ => return None,
        };
        let unbound = || UnboundCipherKey::new(algorithm, key).ok();
        let writing = PaddedBlockEncryptingKey::cbc_pkcs7(unbound()?).ok()?;
        Some(Cipher::Cbc(Box::new((writing, PaddedBlockDecryptingKey::cbc_pkcs7(unbound()?).ok()?))))
    }

    /// `None` if the key has another length than 16, 24 or 32 bytes.
    pub fn gcm(key: &[u8]) -> Option<Cipher> {
        let algorithm = match key.len() {
            16 => &AES_128_GCM,
            24 => &AES_192_GCM,
            32 => &AES_256_GCM,
            _ => return None,
        };
        Some(Cipher::Gcm(LessSafeKey::new(UnboundKey::new(algorithm, key).ok()?)))
    }

    /// `None` if the key has another length than 32 bytes.
    pub fn secretbox(key: &[u8]) -> Option<Cipher> {
        XSalsa20Poly1305::new_from_slice(key).ok().map(Cipher::Secretbox)
    }

    pub fn seal(&self, plain: &[u8], authenticated: &[u8]) -> Result<Vec<u8>, CipherError> {
        match self {
            Cipher::Cbc(_) => self.seal_from(&clock::random_bytes::<BLOCK>(), plain, authenticated),
            Cipher::Gcm(_) => self.seal_from(&clock::random_bytes::<GCM_NONCE>(), plain, authenticated),
            Cipher::Secretbox(_) => self.seal_from(&clock::random_bytes::<SECRETBOX_NONCE>(), plain, authenticated),
        }
    }

    /// Encrypts with a nonce, which must never be used twice with a key.
    pub fn seal_from(&self, start: &[u8], plain: &[u8], authenticated: &[u8]) -> Result<Vec<u8>, CipherError> {
        let failed = |_| CipherError::NotEncrypted;
        let sealed = match self {
            Cipher::Cbc(keys) => {
                let mut bytes = plain.to_vec();
                let start: [u8; BLOCK] = start.try_into().map_err(|_| CipherError::Short)?;
                keys.0.less_safe_encrypt(&mut bytes, EncryptionContext::Iv128(start.into())).map_err(failed)?;
                bytes
            }
            Cipher::Gcm(key) => {
                let mut bytes = plain.to_vec();
                let nonce = Nonce::try_assume_unique_for_key(start).map_err(failed)?;
                key.seal_in_place_append_tag(nonce, Aad::from(authenticated), &mut bytes).map_err(failed)?;
                bytes
            }
            Cipher::Secretbox(key) => {
                let start: [u8; SECRETBOX_NONCE] = start.try_into().map_err(|_| CipherError::Short)?;
                key.encrypt(&SecretboxNonce::from(start), plain).map_err(|_| CipherError::NotEncrypted)?
            }
        };
        Ok([start, &sealed].concat())
    }

    pub fn open(&self, sealed: &[u8], authenticated: &[u8]) -> Result<Vec<u8>, CipherError> {
        let (start, least) = match self {
            Cipher::Cbc(_) => (BLOCK, BLOCK),
            Cipher::Gcm(_) => (GCM_NONCE, GCM_NONCE + GCM_TAG),
            Cipher::Secretbox(_) => (SECRETBOX_NONCE, SECRETBOX_NONCE + SECRETBOX_TAG),
        };
        if sealed.len() < least {
            return Err(CipherError::Short);
        }
        let (start, sealed) = sealed.split_at(start);
        match self {
            Cipher::Cbc(keys) => {
                if !sealed.len().is_multiple_of(BLOCK) {
                    return Err(CipherError::NotBlocks);
                }
                let start: [u8; BLOCK] = start.try_into().map_err(|_| CipherError::Short)?;
                let mut bytes = sealed.to_vec();
                let plain = keys.1.decrypt(&mut bytes, DecryptionContext::Iv128(start.into()));
                plain.map(|plain| plain.to_vec()).map_err(|_| CipherError::Padding)
            }
            Cipher::Gcm(key) => {
                let nonce = Nonce::try_assume_unique_for_key(start).map_err(|_| CipherError::Short)?;
                let mut bytes = sealed.to_vec();
                let plain = key.open_in_place(nonce, Aad::from(authenticated), &mut bytes);
                plain.map(|plain| plain.to_vec()).map_err(|_| CipherError::GcmTag)
            }
            Cipher::Secretbox(key) => {
                let start: [u8; SECRETBOX_NONCE] = start.try_into().map_err(|_| CipherError::Short)?;
                let plain = key.decrypt(&SecretboxNonce::from(start), sealed);
                plain.map_err(|_| CipherError::SecretboxTag)
            }
        }
    }
}
