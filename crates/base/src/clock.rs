//! Time and randomness. No other module reads a clock or a random generator.
//!
//! `now_*` is the time of the API that the running task works for: that of its [`WorkspaceClock`], if it has one. `machine_*` is the time
//! of the machine, for what concerns the server and not the objects of an API: logs, audit events, traces, certificates of connections.
//! Time limits and measurements are by [`instant`], and waits of controllers that a test may shorten by [`moment`].

mod seeded;
mod workspace;

use std::time::{SystemTime, UNIX_EPOCH};

pub use workspace::{Follower, Reading, WorkspaceClock, current, micros_of, moment, scoped, sleep_until, within};

/// Microseconds since the Unix epoch, by the clock of the machine.
#[allow(clippy::disallowed_methods, reason = "this is the one place")]
pub fn machine_micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_micros()).unwrap_or(i64::MAX))
}

/// Seconds since the Unix epoch, by the clock of the machine.
pub fn machine_seconds() -> i64 {
    machine_micros().div_euclid(1_000_000)
}

/// Microseconds since the Unix epoch.
pub fn now_micros() -> i64 {
    micros_of(current().as_deref())
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
    uuid_from(random_bytes())
}

/// A uid for the object that `of` names.
pub fn uid(of: impl FnOnce() -> String) -> String {
    uuid_from(chosen("uid", of))
}

/// Random bytes, or, if the [`WorkspaceClock`] has a seed, the next bytes of the sequence for `purpose` and the name that `of` returns.
fn chosen<const N: usize>(purpose: &str, of: impl FnOnce() -> String) -> [u8; N] {
    let seeded = current().and_then(|clock| clock.seeded(purpose, of));
    seeded.map_or_else(random_bytes, |hash| std::array::from_fn(|index| hash[index]))
}

fn uuid_from(mut bytes: [u8; 16]) -> String {
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

/// The five random characters at the end of a generated name; `of` identifies what is named.
pub fn name_suffix(of: impl FnOnce() -> String) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let bytes: [u8; 5] = chosen("suffix", of);
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

/// A number in `0..bound` that clients see, and so comes from the seed if there is one; `of` identifies its use.
pub fn shown_below(bound: u64, of: impl FnOnce() -> String) -> u64 {
    u64::from_le_bytes(chosen("number", of)) % bound.max(1)
}
