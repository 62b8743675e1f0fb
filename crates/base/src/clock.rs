//! Time and randomness. No other module reads a clock or a random generator.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since the Unix epoch.
#[allow(clippy::disallowed_methods, reason = "this is the one place")]
pub fn now_micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_micros()).unwrap_or(i64::MAX))
}

/// Seconds since the Unix epoch.
pub fn now_seconds() -> i64 {
    now_micros().div_euclid(1_000_000)
}

/// The current time in the format of object metadata (RFC 3339, whole seconds).
pub fn now_rfc3339() -> String {
    machinery::time::rfc3339(now_seconds())
}

/// The monotonic clock, for timeouts.
#[allow(clippy::disallowed_methods, reason = "this is the one place")]
pub fn instant() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// Bytes from the operating system's cryptographic random generator.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // without randomness, uids could repeat: the server cannot continue
    getrandom::fill(&mut bytes).expect("the operating system gives randomness");
    bytes
}

/// A random UUID (version 4, RFC 9562).
pub fn uuid() -> String {
    let mut bytes: [u8; 16] = random_bytes();
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    // every request has one, so it is one allocation
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.extend([byte >> 4, byte & 0x0f].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])));
    }
    text
}

/// The five random characters of a generated name.
pub fn name_suffix() -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let bytes: [u8; 5] = random_bytes();
    bytes.iter().map(|b| char::from(ALPHABET[usize::from(*b) % ALPHABET.len()])).collect()
}

/// A random name for a temporary file, hidden from listings.
pub fn scratch_name() -> String {
    format!(".pintle-{:016x}.tmp", u64::from_be_bytes(random_bytes()))
}

/// A number in `0..bound`.
pub fn random_below(bound: u64) -> u64 {
    u64::from_le_bytes(random_bytes()) % bound.max(1)
}
