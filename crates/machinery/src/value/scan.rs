//! Scans encoded JSON. Strings are searched eight bytes at a time for the first byte that needs care, since most have none; values
//! that are not decoded are skipped.

/// The number of bytes in a word.
const WORD: usize = size_of::<u64>();
/// The lowest bit of each byte, and the highest.
const LOW: u64 = u64::from_ne_bytes([1; WORD]);
const HIGH: u64 = LOW << 7;

/// Counts the bytes before the first one that is marked. `marks` takes a word and sets the highest bit of each byte that is to
/// be found, as [`equal`] and [`below`] do. It must not mark spaces, which fill up the last word.
pub(super) fn unmarked(bytes: &[u8], marks: impl Fn(u64) -> u64) -> usize {
    let first = |word: [u8; WORD]| marks(u64::from_le_bytes(word)).trailing_zeros() as usize / u8::BITS as usize;
    let mut at = 0;
    while let Some(word) = bytes[at..].first_chunk() {
        match first(*word) {
            WORD => at += WORD,
            unmarked => return at + unmarked,
        }
    }
    let mut last = [b' '; WORD];
    let rest = &bytes[at..];
    last[..rest.len()].copy_from_slice(rest);
    at + first(last).min(rest.len())
}

/// Marks the bytes of a word that equal `byte`. Bytes above the first one that is marked may be marked wrongly.
pub(super) fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (LOW * u64::from(byte)), 1)
}

/// Marks the bytes of a word that are less than `bound`, which is at most 128. Bytes above the first one that is marked may be
/// marked wrongly.
pub(super) fn below(word: u64, bound: u8) -> u64 {
    // the subtraction borrows from the next byte only at a byte that is marked
    word.wrapping_sub(LOW * u64::from(bound)) & !word & HIGH
}

/// Sets `bits` in each byte of a word.
pub(super) fn with_bits(word: u64, bits: u8) -> u64 {
    word | (LOW * u64::from(bits))
}

/// The position after the value that begins at `at`.
pub(super) fn skip(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => skip_string(bytes, at),
        b'{' | b'[' => skip_container(bytes, at),
        _ => {
            let length = bytes[at..].iter().position(|b| matches!(b, b',' | b'}' | b']')).unwrap_or(bytes.len() - at);
            (length > 0).then_some(at + length)
        }
    }
}

/// The position after the array or object that begins at `at`. Brackets are only counted: the encoder has balanced
/// them.
fn skip_container(bytes: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = at;
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = skip_string(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The position after the string that begins at `at`.
pub(super) fn skip_string(bytes: &[u8], at: usize) -> Option<usize> {
    if *bytes.get(at)? != b'"' {
        return None;
    }
    let mut at = at + 1;
    loop {
        at += unmarked(bytes.get(at..)?, |word| equal(word, b'"') | equal(word, b'\\'));
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_marked_byte_is_found_at_every_place() {
        let marks = |word| equal(word, b'"') | equal(word, 0xe2) | below(word, 0x20);
        for length in 0..40 {
            let plain = vec![b'a'; length];
            assert_eq!(unmarked(&plain, marks), length);
            for at in 0..length {
                for byte in 0..=u8::MAX {
                    let mut bytes = plain.clone();
                    bytes[at] = byte;
                    let marked = byte == b'"' || byte == 0xe2 || byte < 0x20;
                    assert_eq!(unmarked(&bytes, marks), if marked { at } else { length }, "{byte} at {at} of {length}");
                    // what precedes and follows the first marked byte does not matter
                    if marked {
                        bytes[at..].fill(byte);
                        bytes[..at].fill(0xff);
                        assert_eq!(unmarked(&bytes, marks), at);
                    }
                }
            }
        }
    }
}
