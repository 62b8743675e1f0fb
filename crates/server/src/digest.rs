//! Names for bytes (layer 0).

use sha2::Digest as _;

/// A short name: the first half of the SHA-256, in hexadecimal.
pub fn short(bytes: &[u8]) -> String {
    sha2::Sha256::digest(bytes).iter().take(16).map(|b| format!("{b:02x}")).collect()
}

/// Upper-case hexadecimal SHA-512, as ETags have it.
pub fn sha512_hex(bytes: &[u8]) -> String {
    sha2::Sha512::digest(bytes).iter().map(|b| format!("{b:02X}")).collect()
}
