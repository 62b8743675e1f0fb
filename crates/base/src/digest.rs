//! Hashes that serve as names: fingerprints and ETags.

use sha2::Digest as _;

/// Incremental SHA-256.
#[derive(Default)]
pub struct Sha256(sha2::Sha256);

impl Sha256 {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn hex(self) -> String {
        self.0.finalize().iter().map(|b| format!("{b:02x}")).collect()
    }
}

/// A short name: the first half of the SHA-256, in hexadecimal.
pub fn short(bytes: &[u8]) -> String {
    sha2::Sha256::digest(bytes).iter().take(16).map(|b| format!("{b:02x}")).collect()
}

/// Upper-case hexadecimal SHA-512, the format of kube-apiserver's ETags.
pub fn sha512_hex(bytes: &[u8]) -> String {
    sha2::Sha512::digest(bytes).iter().map(|b| format!("{b:02X}")).collect()
}
