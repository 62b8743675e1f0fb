//! The networks that outgoing calls may reach, where users decide who is called.
//!
//! Invariant: an address is judged after its name has been resolved, just before it is connected to, so that no name leads
//! elsewhere.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use machinery::network::Network;

/// The networks that calls may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Egress {
    #[default]
    All,
    /// All but the host itself, its links, and groups of hosts.
    OtherHosts,
    Networks(Arc<[Network]>),
}

impl Egress {
    /// Whether an address may be connected to.
    pub fn allows(&self, target: SocketAddr) -> bool {
        // an IPv4 address in another form is the same host
        let address = target.ip().to_canonical();
        match self {
            Egress::All => true,
            Egress::OtherHosts => is_of_other_host(address) && !is_own(target),
            Egress::Networks(networks) => networks.iter().any(|network| network.holds(address)),
        }
    }
}

/// Whether an address may be one of another host that is reached by routing.
fn is_of_other_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let is_of_this_network = v4.octets()[0] == 0;
            !(is_of_this_network || v4.is_loopback() || v4.is_link_local() || v4.is_multicast() || v4.is_broadcast())
        }
        IpAddr::V6(v6) => {
            !(v6.is_unspecified() || v6.is_loopback() || v6.is_unicast_link_local() || v6.is_multicast())
                && embedded(v6).is_none_or(is_of_other_host)
        }
    }
}

/// The IPv4 address in one of the forms that gateways translate (RFC 6052, and the deprecated form of RFC 4291).
fn embedded(v6: Ipv6Addr) -> Option<IpAddr> {
    let upper = u128::from(v6) >> 32;
    let translated = u128::from(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0)) >> 32;
    let lower = u32::try_from(u128::from(v6) & u128::from(u32::MAX)).ok()?;
    (upper == 0 || upper == translated).then(|| IpAddr::V4(lower.into()))
}

/// Whether an address is one of this host: packets to it have it as their source, too. No packet is sent.
fn is_own(target: SocketAddr) -> bool {
    let any: IpAddr = if target.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let source = || {
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect(target).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    source() == Some(target.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_hosts_are_neither_local_nor_groups() {
        for (address, allowed) in [
            ("127.0.0.1", false),
            ("127.9.9.9", false),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("169.254.169.254", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("::", false),
            ("::1", false),
            ("::127.0.0.1", false),
            ("::ffff:127.0.0.1", false),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b::a9fe:a9fe", false),
            ("fe80::1", false),
            ("ff02::1", false),
            ("10.0.0.1", true),
            ("192.0.2.1", true),
            ("2001:db8::1", true),
            ("64:ff9b::c000:201", true),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(is_of_other_host(address.to_canonical()), allowed, "{address}");
            let target = SocketAddr::from((address, 443));
            assert!(Egress::All.allows(target) && (allowed || !Egress::OtherHosts.allows(target)), "{address}");
        }
    }

    #[test]
    fn addresses_of_this_host_are_its_own() {
        assert!(is_own("127.0.0.1:9".parse().unwrap()));
        assert!(!is_own("192.0.2.1:9".parse().unwrap()));
    }

    #[test]
    fn networks_are_those_that_are_named() {
        let networks = |texts: &[&str]| Egress::Networks(texts.iter().map(|text| text.parse().unwrap()).collect());
        let cases = [
            (&["10.0.0.0/8"][..], "10.1.2.3", true),
            (&["10.0.0.0/8"], "::ffff:10.1.2.3", true),
            (&["10.0.0.0/8"], "11.0.0.0", false),
            (&["10.0.0.0/8"], "a00::1", false),
            (&["127.0.0.0/8", "fd00::/8"], "127.0.0.1", true),
            (&["127.0.0.0/8", "fd00::/8"], "fd12::1", true),
            (&["192.0.2.7/32"], "192.0.2.7", true),
            (&["192.0.2.7/32"], "192.0.2.6", false),
            (&["0.0.0.0/0"], "127.0.0.1", true),
            (&["::/0"], "127.0.0.1", false),
            (&[], "192.0.2.6", false),
        ];
        for (texts, address, allowed) in cases {
            let target = SocketAddr::from((address.parse::<IpAddr>().unwrap(), 443));
            assert_eq!(networks(texts).allows(target), allowed, "{texts:?} {address}");
        }
        for wrong in ["", "10.0.0.0", "10.0.0.0/33", "10.0.0/8", "::/129", "x/8", "10.0.0.0/-1"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
