//! Hashes that serve as names: fingerprints, ETags, keys of caches.

use aws_lc_rs::digest::{self, Context};

pub struct Sha256(Context);

impl Default for Sha256 {
    fn default() -> Sha256 {
        Sha256(Context::new(&digest::SHA256))
    }
}

impl Sha256 {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn hex(self) -> String {
        hex(self.0.finish().as_ref())
    }
}

pub struct Sha512(Context);

impl Sha512 {
    /// Starts with `prefix`, which separates the hashes of one purpose from those of others.
    pub fn with_prefix(prefix: &str) -> Sha512 {
        let mut context = Context::new(&digest::SHA512);
        context.update(prefix.as_bytes());
        Sha512(context)
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn upper_hex(self) -> String {
        upper_hex(self.0.finish().as_ref())
    }
}

pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    hash
}

pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&sha256(bytes))
}

/// A short name: the first half of the SHA-256, in hexadecimal.
pub fn short(bytes: &[u8]) -> String {
    hex(&sha256(bytes)[..16])
}

/// Upper-case hexadecimal SHA-512, the format of kube-apiserver's ETags.
pub fn sha512_hex(bytes: &[u8]) -> String {
    upper_hex(digest::digest(&digest::SHA512, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    digits(bytes, b"0123456789abcdef")
}

fn upper_hex(bytes: &[u8]) -> String {
    digits(bytes, b"0123456789ABCDEF")
}

fn digits(bytes: &[u8], digits: &[u8; 16]) -> String {
    bytes.iter().flat_map(|b| [b >> 4, b & 15]).map(|digit| char::from(digits[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_match_published_vectors() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(b"abc"), abc);
        assert_eq!(short(b"abc"), abc[..32]);
        let mut parts = Sha256::default();
        parts.update(b"a");
        parts.update(b"bc");
        assert_eq!(parts.hex(), abc);
        let upper = "DDAF35A193617ABACC417349AE20413112E6FA4E89A97EA20A9EEEE64B55D39A\
                     2192992A274FC1A836BA3C23A3FEEBBD454D4423643CE80E2A9AC94FA54CA49F";
        assert_eq!(sha512_hex(b"abc"), upper);
        let mut parts = Sha512::with_prefix("a");
        parts.update(b"bc");
        assert_eq!(parts.upper_hex(), upper);
    }
}
