//! IP addresses and networks, with the parser and the messages of Go's `net/netip`.

use super::{Error, Result};
use machinery::network::Network;
use machinery::value::quote;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip(pub(crate) IpAddr);

impl std::fmt::Display for Ip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Ip {
    pub(crate) fn bytes_len(self) -> u64 {
        if self.0.is_ipv4() { 4 } else { 16 }
    }
}

pub(crate) type Parsed<T> = std::result::Result<T, String>;

pub(crate) fn v4_fields(whole: &str, part: &str) -> Parsed<[u8; 4]> {
    let bytes = part.as_bytes();
    let (mut fields, mut pos, mut value, mut digits) = ([0u8; 4], 0, 0u32, 0);
    for (i, &b) in bytes.iter().enumerate() {
        match b {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return refuse(whole, "IPv4 field has octet with leading zero", "");
                }
                value = value * 10 + u32::from(b - b'0');
                digits += 1;
                if value > 255 {
                    return refuse(whole, "IPv4 field has value >255", "");
                }
            }
            b'.' => {
                if i == 0 || i == bytes.len() - 1 || bytes[i - 1] == b'.' {
                    return refuse(whole, "IPv4 field must have at least one digit", &part[i..]);
                }
                if pos == 3 {
                    return refuse(whole, "IPv4 address too long", "");
                }
                fields[pos] = value as u8;
                pos += 1;
                (value, digits) = (0, 0);
            }
            _ => return refuse(whole, "unexpected character", &part[i..]),
        }
    }
    if pos < 3 {
        return refuse(whole, "IPv4 address too short", "");
    }
    fields[3] = value as u8;
    Ok(fields)
}

/// The error of an address; `at` is the text from where it is invalid.
pub(crate) fn refuse<T>(whole: &str, message: &str, at: &str) -> Parsed<T> {
    let at = if at.is_empty() { String::new() } else { format!(" (at {})", quote(at)) };
    Err(format!("ParseAddr({}): {message}{at}", quote(whole)))
}

/// A parser of IPv6 addresses.
pub(crate) struct Groups<'a> {
    whole: &'a str,
    rest: &'a str,
    /// The bytes read so far.
    bytes: Vec<u8>,
    /// The position of `::` among them.
    gap: Option<usize>,
}

impl<'a> Groups<'a> {
    pub(crate) fn refuse<T>(&self, message: &str) -> Parsed<T> {
        refuse(self.whole, message, self.rest)
    }

    /// Parses one group or a dotted IPv4 end; returns false at the end of the text.
    pub(crate) fn group(&mut self) -> Parsed<bool> {
        let digits = self.rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(self.rest.len());
        match digits {
            0 => return self.refuse("each colon-separated field must have at least one digit"),
            1..=4 => {}
            _ => return self.refuse("each group must have 4 or fewer digits"),
        }
        if self.rest[digits..].starts_with('.') {
            return self.dotted().map(|()| false);
        }
        let group = u16::from_str_radix(&self.rest[..digits], 16).unwrap_or_default();
        self.bytes.extend(group.to_be_bytes());
        self.rest = &self.rest[digits..];
        if self.rest.is_empty() { Ok(false) } else { self.colon() }
    }

    /// Parses the last four bytes, written as an IPv4 address.
    pub(crate) fn dotted(&mut self) -> Parsed<()> {
        if self.gap.is_none() && self.bytes.len() != 12 {
            return self.refuse("embedded IPv4 address must replace the final 2 fields of the address");
        }
        if self.bytes.len() > 12 {
            return self.refuse("too many hex fields to fit an embedded IPv4 at the end of the address");
        }
        self.bytes.extend(v4_fields(self.whole, self.rest)?);
        self.rest = "";
        Ok(())
    }

    /// Parses a separator of groups; returns false if nothing follows it.
    pub(crate) fn colon(&mut self) -> Parsed<bool> {
        let Some(after) = self.rest.strip_prefix(':') else { return self.refuse("unexpected character, want colon") };
        if after.is_empty() {
            return self.refuse("colon must be followed by more characters");
        }
        self.rest = after;
        let Some(after) = after.strip_prefix(':') else { return Ok(true) };
        if self.gap.is_some() {
            return self.refuse("multiple :: in address");
        }
        self.gap = Some(self.bytes.len());
        self.rest = after;
        Ok(!after.is_empty())
    }

    /// All sixteen bytes, with zeros in the gap.
    pub(crate) fn finish(mut self) -> Parsed<Ipv6Addr> {
        if !self.rest.is_empty() {
            return self.refuse("trailing garbage after address");
        }
        let missing = 16usize.saturating_sub(self.bytes.len());
        match self.gap {
            None if missing > 0 => return self.refuse("address string too short"),
            Some(_) if missing == 0 => return self.refuse("the :: must expand to at least one field of zeros"),
            Some(gap) => drop(self.bytes.splice(gap..gap, std::iter::repeat_n(0, missing))),
            None => {}
        }
        let bytes: [u8; 16] = self.bytes.try_into().unwrap_or_default();
        Ok(Ipv6Addr::from(bytes))
    }
}

pub(crate) fn v6(whole: &str) -> Parsed<(Ipv6Addr, bool)> {
    let (rest, zone) = match whole.split_once('%') {
        Some((_, "")) => return refuse(whole, "zone must be a non-empty string", ""),
        Some((address, _)) => (address, true),
        None => (whole, false),
    };
    let (rest, gap) = rest.strip_prefix("::").map_or((rest, None), |after| (after, Some(0)));
    let mut groups = Groups { whole, rest, bytes: Vec::with_capacity(16), gap };
    let mut more = !(groups.rest.is_empty() && gap.is_some());
    while more && groups.bytes.len() < 16 {
        more = groups.group()?;
    }
    groups.finish().map(|address| (address, zone))
}

/// `netip.ParseAddr`: the address and whether it has a zone.
pub(crate) fn parse_address(text: &str) -> Parsed<(IpAddr, bool)> {
    match text.bytes().find(|b| matches!(b, b'.' | b':' | b'%')) {
        Some(b'.') => v4_fields(text, text).map(|fields| (IpAddr::V4(Ipv4Addr::from(fields)), false)),
        Some(b':') => v6(text).map(|(v6, zone)| (IpAddr::V6(v6), zone)),
        Some(_) => Err(format!("ParseAddr({}): missing IPv6 address", quote(text))),
        None => Err(format!("ParseAddr({}): unable to parse IP", quote(text))),
    }
}

pub(crate) fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

pub(crate) fn parse_ip(text: &str) -> Result<Ip> {
    let (address, zone) = parse_address(text).map_err(|error| {
        Error::new(format!("IP Address {} parse error during conversion from string: {error}", quote(text)))
    })?;
    if zone {
        return Err(Error::new(format!("IP address {} with zone value is not allowed", quote(text))));
    }
    if is_mapped(address) {
        return Err(Error::new(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text))));
    }
    Ok(Ip(address))
}

/// `netip.ParsePrefix`.
pub(crate) fn parse_prefix(text: &str) -> Parsed<Network> {
    let fail = |message: &str| Err(format!("netip.ParsePrefix({}): {message}", quote(text)));
    let Some((address, bits)) = text.rsplit_once('/') else { return fail("no '/'") };
    let (address, zone) = match parse_address(address) {
        Ok(parsed) => parsed,
        Err(error) => return fail(&error),
    };
    if zone {
        return fail("IPv6 zones cannot be present in a prefix");
    }
    let digits = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
    if bits.len() > 1 && !bits.starts_with(|c: char| ('1'..='9').contains(&c)) || !digits {
        return fail(&format!("bad bits after slash: {}", quote(bits)));
    }
    let network = bits.parse().ok().and_then(|bits| Network::new(address, bits));
    network.map_or_else(|| fail("prefix length out of range"), Ok)
}

pub(crate) fn parse_cidr(text: &str) -> Result<Network> {
    let cidr = parse_prefix(text)
        .map_err(|error| Error::new(format!("network address parse error during conversion from string: {error}")))?;
    if is_mapped(cidr.address) {
        return Err(Error::new(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text))));
    }
    Ok(cidr)
}
