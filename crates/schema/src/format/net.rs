//! Addresses and names in networks.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use cel::regex::Regex;

pub(super) fn hostname(text: &str) -> bool {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let pattern = r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$";
        Regex::new(pattern).ok()
    });
    text.len() <= 255
        && text.split('.').all(|label| label.len() <= 63)
        && PATTERN.as_ref().is_some_and(|p| p.is_match(text))
}

/// The text of an address without the leading zeros of its decimal numbers.
fn without_zeros(text: &str) -> String {
    let (groups, numbers) = text.split_at(text.rfind(':').map_or(0, |colon| colon + 1));
    let number = |number: &str| match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0".to_owned(),
        number => number.to_owned(),
    };
    match numbers.contains('.') {
        true => format!("{groups}{}", numbers.split('.').map(number).collect::<Vec<_>>().join(".")),
        false => text.to_owned(),
    }
}

/// Whether a text is an address whose decimal numbers may begin with zeros.
fn ip(text: &str) -> bool {
    without_zeros(text).parse::<IpAddr>().is_ok()
}

pub(super) fn ipv4(text: &str) -> bool {
    text.contains('.') && ip(text)
}

pub(super) fn ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

pub(super) fn cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let max = if address.contains(':') { 128 } else { 32 };
    let plain = !bits.is_empty() && bits.len() < 8 && bits.bytes().all(|b| b.is_ascii_digit());
    ip(address) && plain && bits.parse::<u32>().is_ok_and(|b| b <= max)
}

/// 6, 8 or 20 bytes: pairs of digits with colons or dashes, or groups of four with dots.
pub(super) fn mac(text: &str) -> bool {
    let Some(separator) = text.chars().find(|c| matches!(c, ':' | '-' | '.')) else { return false };
    let (width, counts): (usize, &[usize]) = if separator == '.' { (4, &[3, 4, 10]) } else { (2, &[6, 8, 20]) };
    let parts: Vec<&str> = text.split(separator).collect();
    counts.contains(&parts.len()) && parts.iter().all(|p| p.len() == width && p.bytes().all(|b| b.is_ascii_hexdigit()))
}
