//! Addresses and names in networks.

use std::sync::LazyLock;

use cel::regex::Regex;

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
pub(super) fn label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = bytes.first().zip(bytes.last()).is_some_and(|(a, z)| inner(*a) && inner(*z));
    ends && bytes.iter().all(|b| inner(*b) || *b == b'-')
}

pub(super) fn hostname(text: &str) -> bool {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let pattern = r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$";
        Regex::new(pattern).ok()
    });
    text.len() <= 255
        && text.split('.').all(|label| label.len() <= 63)
        && PATTERN.as_ref().is_some_and(|p| p.is_match(text))
}

/// Whether decimal numbers may begin with zeros.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LeadingZeros {
    Allowed,
    Refused,
}

/// Four decimal numbers.
fn v4(text: &str, zeros: LeadingZeros) -> bool {
    let part = |p: &str| {
        let plain = !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit());
        let has_zeros = p.len() > 1 && p.starts_with('0');
        let number = p.trim_start_matches('0');
        plain
            && (zeros == LeadingZeros::Allowed || !has_zeros)
            && number.len() <= 3
            && number.parse::<u32>().unwrap_or(0) <= 255
    };
    text.split('.').count() == 4 && text.split('.').all(part)
}

fn v6(text: &str, zeros: LeadingZeros) -> bool {
    let groups = |t: &str, last: bool| -> Option<usize> {
        if t.is_empty() {
            return Some(0);
        }
        let parts: Vec<&str> = t.split(':').collect();
        let mut count = 0;
        for (i, part) in parts.iter().enumerate() {
            if last && i + 1 == parts.len() && part.contains('.') {
                if !v4(part, zeros) {
                    return None;
                }
                count += 2;
            } else if part.is_empty() || part.len() > 4 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return None;
            } else {
                count += 1;
            }
        }
        Some(count)
    };
    match text.split_once("::") {
        Some((head, tail)) => {
            !tail.contains("::") && matches!((groups(head, false), groups(tail, true)), (Some(h), Some(t)) if h + t < 8)
        }
        None => groups(text, true) == Some(8),
    }
}

fn ip(text: &str, zeros: LeadingZeros) -> bool {
    if text.contains(':') { v6(text, zeros) } else { v4(text, zeros) }
}

pub(super) fn ipv4(text: &str) -> bool {
    text.contains('.') && ip(text, LeadingZeros::Allowed)
}

pub(super) fn ipv6(text: &str) -> bool {
    text.contains(':') && v6(text, LeadingZeros::Refused)
}

pub(super) fn cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let max = if address.contains(':') { 128 } else { 32 };
    let plain = !bits.is_empty() && bits.len() < 8 && bits.bytes().all(|b| b.is_ascii_digit());
    ip(address, LeadingZeros::Allowed) && plain && bits.parse::<u32>().is_ok_and(|b| b <= max)
}

/// 6, 8 or 20 bytes: pairs of digits with colons or dashes, or groups of four with dots.
pub(super) fn mac(text: &str) -> bool {
    let Some(separator) = text.chars().find(|c| matches!(c, ':' | '-' | '.')) else { return false };
    let (width, counts): (usize, &[usize]) = if separator == '.' { (4, &[3, 4, 10]) } else { (2, &[6, 8, 20]) };
    let parts: Vec<&str> = text.split(separator).collect();
    counts.contains(&parts.len()) && parts.iter().all(|p| p.len() == width && p.bytes().all(|b| b.is_ascii_hexdigit()))
}
