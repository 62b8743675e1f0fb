//! The order in which go-yaml v2 writes the keys of a map: letters come after all other characters, and runs of
//! digits are compared as numbers.

use std::cmp::Ordering;

/// Compares two keys.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (a_bytes, b_bytes) = (a.as_bytes(), b.as_bytes());
    let mut at = a_bytes.iter().zip(b_bytes).take_while(|(one, other)| one == other).count();
    while !a.is_char_boundary(at) || !b.is_char_boundary(at) {
        at -= 1;
    }
    let (Some(one), Some(other)) = (a[at..].chars().next(), b[at..].chars().next()) else {
        return a.len().cmp(&b.len());
    };
    match (one.is_alphabetic(), other.is_alphabetic()) {
        (true, true) => one.cmp(&other),
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => {
            let is_continued = (one == '0' || other == '0') && continues_a_number(&a[..at]);
            let (one_run, other_run) = (run(&a[at..], is_continued), run(&b[at..], is_continued));
            one_run.cmp(&other_run).then(one.cmp(&other))
        }
    }
}

/// Whether a text ends with digits that are not all zero.
fn continues_a_number(text: &str) -> bool {
    text.bytes().rev().take_while(u8::is_ascii_digit).any(|digit| digit != b'0')
}

/// The number at the beginning of a text, and how many digits it has. If it continues another number, a 1 is put in
/// front, as in go-yaml, so that its leading zeros count. Numbers beyond 64 bits overflow, as in Go.
fn run(text: &str, is_continued: bool) -> (i64, usize) {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    digits.fold((i64::from(is_continued), 0), |(number, count), digit| {
        (number.wrapping_mul(10).wrapping_add(i64::from(digit - b'0')), count + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        for sorted in [
            &["a", "b"][..],
            &["", ".", "1", "A", "a"],
            &["a2", "a10", "a100"],
            &["a1", "a01", "a001b"],
            &["f:.", "f:a"],
            &["1", "01", "2", "10", "é"],
            &["a1", "a10", "a101", "b"],
            &["a-b", "ab"],
            &["~", "a"],
        ] {
            for pair in sorted.windows(2) {
                let is_sorted = compare(pair[0], pair[1]) == Ordering::Less;
                assert!(is_sorted, "{pair:?}");
                assert_eq!(compare(pair[1], pair[0]), Ordering::Greater, "{pair:?}");
            }
        }
    }
}
