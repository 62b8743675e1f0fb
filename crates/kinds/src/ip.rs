//! IP addresses and networks in fields of a Service, including the loose forms that Go once accepted.

use std::collections::HashSet;

use std::net::IpAddr;

use machinery::network::Network;
use machinery::{Release, value::quote};

use schema::at::At;

machinery::text_enum! {
    /// An IP family, as `spec.ipFamilies` names it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Family {
        IPv4 = "IPv4",
        IPv6 = "IPv6",
    }
}

impl Family {
    pub fn other(self) -> Family {
        match self {
            Family::IPv4 => Family::IPv6,
            Family::IPv6 => Family::IPv4,
        }
    }

    pub fn of(address: IpAddr) -> Family {
        if address.is_ipv4() { Family::IPv4 } else { Family::IPv6 }
    }
}

/// Parses an address. Octets may have leading zeros; an IPv4-mapped IPv6 address is an IPv4 address.
pub fn parse(text: &str) -> Option<IpAddr> {
    let (head, tail) = text.rsplit_once(':').map_or(("", text), |(head, tail)| (&text[..=head.len()], tail));
    let octet = |octet: &str| -> String {
        let short = octet.trim_start_matches('0');
        if short.is_empty() && !octet.is_empty() { "0".to_owned() } else { short.to_owned() }
    };
    let tail =
        if tail.contains('.') { tail.split('.').map(octet).collect::<Vec<_>>().join(".") } else { tail.to_owned() };
    format!("{head}{tail}").parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

/// Parses a network in CIDR notation, with an address as [`parse`] accepts it.
pub fn parse_network(text: &str) -> Option<Network> {
    let (address, bits) = text.split_once('/')?;
    let mapped = address.contains(':') && address.contains('.');
    let address = parse(address).filter(|_| !mapped)?;
    let digits = bits.bytes().all(|byte| byte.is_ascii_digit());
    Network::new(address, bits.parse().ok().filter(|_| digits)?)
}

/// Whether leading zeros, IPv4-mapped addresses, and CIDRs with bits after the prefix are errors.
pub fn is_strict(release: Release) -> bool {
    release >= Release::V1_36
}

/// Validates an IP address, unless the stored object already had it.
pub fn address(at: At, before: &HashSet<&str>) {
    let text = at.as_text();
    if before.contains(text) {
        return;
    }
    match text.parse::<IpAddr>() {
        _ if parse(text).is_none() => at.invalid("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        _ if !is_strict(at.release()) => {}
        Err(_) => at.invalid("must not have leading 0s"),
        Ok(address) if address.to_canonical() != address => at.invalid("must not be an IPv4-mapped IPv6 address"),
        Ok(_) => {}
    }
}

/// Validates a CIDR, unless the stored object already had it.
pub fn cidr(at: At, text: &str, before: &HashSet<&str>, release: Release) {
    if before.contains(text) {
        return;
    }
    let why = match (parse_network(text), strict_address(text)) {
        (None, _) => "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        _ if !is_strict(release) => return,
        (_, None) => "must not have leading 0s in IP or prefix length",
        (_, Some(address)) if address.to_canonical() != address => "must not have an IPv4-mapped IPv6 address",
        (Some(cidr), _) if cidr.masked() != cidr => "must not have bits set beyond the prefix length",
        _ => return,
    };
    at.shown_as_text(text).invalid(why);
}

/// The address of a CIDR, unless one of its numbers has leading zeros.
fn strict_address(text: &str) -> Option<IpAddr> {
    let (written, bits) = text.split_once('/').unwrap_or_default();
    written.parse::<IpAddr>().ok().filter(|_| bits.len() < 2 || !bits.starts_with('0'))
}

/// The part of warnings that says whether a form is an error or will become one.
fn verdict(release: Release) -> &'static str {
    if is_strict(release) { "is invalid" } else { "will be considered invalid in a future Kubernetes release" }
}

/// Reports an address that an endpoint cannot have.
pub fn endpoint(at: At) {
    let text = at.as_text();
    let Some(address) = parse(text) else { return at.invalid("must be a valid IP address") };
    let (link_local, link_local_multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (v6.segments()[0] & 0xffc0 == 0xfe80, v6.segments()[0] & 0xff0f == 0xff02),
    };
    if address.is_unspecified() {
        at.invalid(format!("may not be unspecified ({text})"));
    }
    at.invalid_if(address.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    at.invalid_if(link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    at.invalid_if(link_local_multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
}

/// Warns about an address in a non-canonical form.
pub fn warn_address(at: At) {
    let (text, given) = (at.as_text(), quote(at.as_text()));
    let Some(address) = parse(text) else { return };
    match text.parse::<IpAddr>().ok().filter(|strict| strict.to_canonical() == *strict) {
        None => at.warn(format!(
            "non-standard IP address {given} {}: use {}",
            verdict(at.release()),
            quote(&address.to_string())
        )),
        Some(IpAddr::V6(v6)) if v6.to_string() != text => {
            at.warn(format!("IPv6 address {given} should be in RFC 5952 canonical format ({})", quote(&v6.to_string())))
        }
        Some(_) => {}
    }
}

/// Warns about a CIDR in a non-canonical form.
pub fn warn_cidr(at: At) {
    let text = at.as_text();
    let Some(cidr) = parse_network(text) else { return };
    let (given, network) = (quote(text), cidr.masked());
    let is_ambiguous = network != cidr;
    if is_ambiguous {
        let (network, one) = (quote(&network.to_string()), quote(&Network::of_one(cidr.address).to_string()));
        at.warn(format!("CIDR value {given} is ambiguous in this context (should be {network} or {one}?)"));
    }
    match strict_address(text) {
        None => at.warn(format!(
            "non-standard CIDR value {given} {}: use {}",
            verdict(at.release()),
            quote(&network.to_string())
        )),
        Some(IpAddr::V6(_)) if !is_ambiguous && cidr.to_string() != text => at.warn(format!(
            "IPv6 CIDR value {given} should be in RFC 5952 canonical format ({})",
            quote(&cidr.to_string())
        )),
        Some(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_addresses_as_go() {
        let cases = [
            ("10.0.0.1", Some("10.0.0.1")),
            ("010.000.0.01", Some("10.0.0.1")),
            ("::ffff:10.0.0.1", Some("10.0.0.1")),
            ("FD00::1", Some("fd00::1")),
            ("256.0.0.1", None),
            ("10.0.0", None),
            ("10.0.0.", None),
            ("", None),
            ("None", None),
            ("fe80::1%eth0", None),
        ];
        for (text, want) in cases {
            assert_eq!(parse(text).map(|address| address.to_string()).as_deref(), want, "{text}");
        }
        for (text, want) in [
            ("10.0.0.5/24", Some("10.0.0.0/24")),
            ("fd00::5/64", Some("fd00::/64")),
            ("1.2.3.4/0", Some("0.0.0.0/0")),
            ("10.0.0.0/33", None),
            ("10.0.0.0", None),
            ("10.0.0.0/+8", None),
        ] {
            assert_eq!(parse_network(text).map(|cidr| cidr.masked().to_string()).as_deref(), want, "{text}");
        }
    }
}
