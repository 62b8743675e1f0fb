//! Formats of codes: UUIDs, and codes with digits, hexadecimal digits or checksums.

use std::sync::LazyLock;

use cel::regex::Regex;

fn hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

pub(super) fn object_id(text: &str) -> bool {
    text.len() == 24 && hex(text)
}

/// Each dash is optional. Versions 4 and 5 must also have a valid variant.
pub(super) fn uuid(text: &str, version: Option<u8>) -> bool {
    let mut rest = text;
    let mut digits = String::with_capacity(32);
    for (i, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(length) else { return false };
        digits.push_str(group);
        rest = after;
    }
    let bytes = digits.as_bytes();
    rest.is_empty()
        && hex(&digits)
        && version.is_none_or(|v| bytes[12] == v)
        && (!matches!(version, Some(b'4' | b'5')) || b"89abAB".contains(&bytes[16]))
}

fn without_blanks_and_dashes(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| !matches!(b, b'\t' | b'\n' | 0x0c | b'\r' | b' ' | b'-')).collect()
}

pub(super) fn isbn10(text: &str) -> bool {
    let code = without_blanks_and_dashes(text);
    if code.len() != 10 || !code[..9].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let mut sum: u32 = (1..10).map(|i| i * u32::from(code[i as usize - 1] - b'0')).sum();
    match code[9] {
        b'X' => sum += 100,
        digit if digit.is_ascii_digit() => sum += 10 * u32::from(digit - b'0'),
        _ => return false,
    }
    sum.is_multiple_of(11)
}

pub(super) fn isbn13(text: &str) -> bool {
    let code = without_blanks_and_dashes(text);
    if code.len() != 13 || !code.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 = code[..12].iter().enumerate().map(|(i, d)| u32::from(d - b'0') * [1, 3][i % 2]).sum();
    u32::from(code[12] - b'0') == (10 - sum % 10) % 10
}

pub(super) fn credit_card(text: &str) -> bool {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let pattern = "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}\
                       |3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$";
        Regex::new(pattern).ok()
    });
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !PATTERN.as_ref().is_some_and(|p| p.is_match(&digits)) {
        return false;
    }
    let luhn: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(i, d)| {
            let d = u32::from(d - b'0') * (1 + i as u32 % 2);
            d / 10 + d % 10
        })
        .sum();
    luhn.is_multiple_of(10)
}

/// Upstream also requires a length of 11, so that both separators must be present.
pub(super) fn ssn(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 11
        && bytes.iter().enumerate().all(|(i, b)| match i {
            3 | 6 => matches!(b, b'-' | b' '),
            _ => b.is_ascii_digit(),
        })
}

pub(super) fn hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && hex(digits)
}

pub(super) fn rgb_color(text: &str) -> bool {
    let blank = |c: char| matches!(c, '\t' | '\n' | '\x0c' | '\r' | ' ');
    let inner = text.strip_prefix("rgb(").and_then(|t| t.strip_suffix(')'));
    let part = |p: &str| {
        let p = p.trim_matches(blank);
        let plain = !p.is_empty() && p.len() <= 3 && p.bytes().all(|b| b.is_ascii_digit());
        plain && (p == "0" || !p.starts_with('0')) && p.parse::<u32>().is_ok_and(|n| n <= 255)
    };
    inner.is_some_and(|inner| inner.split(',').count() == 3 && inner.split(',').all(part))
}

/// Base64 in the standard alphabet with padding. The empty text is not valid.
pub(super) fn base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    let padding = text.len() - data.len();
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && padding <= 2
        && data.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}
