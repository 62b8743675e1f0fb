//! The ranges from which cluster IPs and node ports are allocated.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use kinds::core::services::addresses::Families;
use kinds::ip::{Family, parse_network};
use machinery::network;

/// The ranges of cluster IPs and node ports.
#[derive(Clone, Debug)]
pub struct Ranges {
    /// One network, or one of each family; the first is the default.
    networks: Vec<Network>,
    ports: RangeInclusive<u16>,
    routed: bool,
}

/// A network. All of its addresses can be allocated except the first and, in IPv4, the last (broadcast).
#[derive(Clone, Copy, Debug)]
pub struct Network(pub network::Network);

impl Default for Ranges {
    /// kube-apiserver's defaults: `10.0.0.0/24` and `30000-32767`.
    fn default() -> Ranges {
        let networks = vec![Network(network::Network { address: [10, 0, 0, 0].into(), bits: 24 })];
        Ranges { networks, ports: 30_000..=32_767, routed: false }
    }
}

impl Ranges {
    /// Reads the values of `--service-cluster-ip-range` and `--service-node-port-range`, if they are given. The error is
    /// one line.
    pub fn parse(networks: Option<&str>, ports: Option<&str>) -> Result<Ranges, String> {
        let mut ranges = Ranges::default();
        if let Some(networks) = networks {
            (ranges.networks, ranges.routed) = (parse_networks(networks)?, true);
        }
        if let Some(ports) = ports {
            ranges.ports = parse_ports(ports)?;
        }
        Ok(ranges)
    }

    /// Whether the network was set by a flag, so that its addresses are expected to be reachable.
    pub fn are_routed(&self) -> bool {
        self.routed
    }
    pub fn families(&self) -> Families {
        let primary = self.networks.first().map_or(Family::IPv4, Network::family);
        Families { primary, dual: self.networks.len() > 1 }
    }

    pub fn of_family(&self, family: Family) -> Option<&Network> {
        self.networks.iter().find(|network| network.family() == family)
    }

    pub fn ports(&self) -> RangeInclusive<u16> {
        self.ports.clone()
    }

    /// Whether an address can be allocated.
    pub fn holds(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.holds(address))
    }

    pub fn networks(&self) -> Vec<String> {
        self.networks.iter().map(|network| network.0.to_string()).collect()
    }

    /// The address of the Service `default/kubernetes`, which is never allocated to another one.
    pub fn own_address(&self) -> Option<IpAddr> {
        self.networks.first().map(|network| network.nth(1))
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => u128::from(v6),
    }
}

fn parse_networks(text: &str) -> Result<Vec<Network>, String> {
    let networks: Vec<Network> = text.split(',').map(Network::parse).collect::<Result<_, _>>()?;
    if let [first, second, rest @ ..] = networks.as_slice()
        && (!rest.is_empty() || first.family() == second.family())
    {
        return Err("--service-cluster-ip-range: must be one network, or one of each IP family".to_owned());
    }
    Ok(networks)
}

fn parse_ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let wrong = || format!("--service-node-port-range: {text:?} is not FIRST-LAST, such as 30000-32767");
    let (first, last) = text.split_once('-').ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(wrong);
    let ports = number(first)?..=number(last)?;
    if ports.is_empty() { Err(wrong()) } else { Ok(ports) }
}

impl Network {
    fn parse(text: &str) -> Result<Network, String> {
        let wrong = |why: &str| format!("--service-cluster-ip-range: {text:?} {why}");
        let network = Network::of_object(text.trim()).ok_or_else(|| wrong("is no network in CIDR notation"))?;
        match (network.family(), network.0.host_bits()) {
            (_, 0..3) => Err(wrong("must hold at least 8 addresses")),
            (Family::IPv6, 65..) => Err(wrong("must have a prefix of at least 64 bits")),
            _ => Ok(network),
        }
    }

    pub fn family(&self) -> Family {
        Family::of(self.0.address)
    }

    /// Number of addresses that can be allocated.
    pub fn size(&self) -> u64 {
        let all = 1u128 << self.0.host_bits();
        let reserved = if self.0.address.is_ipv4() { 2 } else { 1 };
        u64::try_from(all.saturating_sub(reserved)).unwrap_or(u64::MAX)
    }

    /// The `n`th address of the network, from 0.
    pub fn nth(&self, n: u64) -> IpAddr {
        match self.0.address {
            IpAddr::V4(v4) => IpAddr::from((u32::from(v4).wrapping_add(n as u32)).to_be_bytes()),
            IpAddr::V6(v6) => IpAddr::from(u128::from(v6).wrapping_add(u128::from(n)).to_be_bytes()),
        }
    }

    /// A network of a ServiceCIDR; `None` for texts that are not valid.
    pub fn of_object(text: &str) -> Option<Network> {
        Some(Network(parse_network(text)?.masked()))
    }

    pub fn holds(&self, address: IpAddr) -> bool {
        let offset = number(address).wrapping_sub(number(self.0.address));
        Family::of(address) == self.family() && (1..=u128::from(self.size())).contains(&offset)
    }

    /// Size of the low part of the network, which is allocated only when the rest is exhausted, so that clients can choose
    /// addresses from it (KEP-3070).
    pub fn low(&self) -> u64 {
        low_part(self.size() + 2, 16, 16, 256)
    }
}

/// Size of the low part of a range of `size` that is allocated last: `size / step`, at least `min` and at most `max`; 0 if
/// `size` is at most `min`.
pub fn low_part(size: u64, step: u64, min: u64, max: u64) -> u64 {
    if size <= min { 0 } else { (size / step).clamp(min, max) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        let ranges = Ranges::parse(Some("10.0.0.0/24,fd00::/112"), Some("30000-32767")).unwrap();
        let network = ranges.of_family(Family::IPv4).unwrap();
        assert_eq!((network.0.to_string().as_str(), network.size(), network.low()), ("10.0.0.0/24", 254, 16));
        for (address, want) in [
            ("10.0.0.0", false),
            ("10.0.0.1", true),
            ("10.0.0.254", true),
            ("10.0.0.255", false),
            ("10.0.1.1", false),
            ("fd00::1", true),
            ("fd00::1:0", false),
        ] {
            assert_eq!(ranges.holds(address.parse().unwrap()), want, "{address}");
        }
        assert_eq!(ranges.own_address(), "10.0.0.1".parse().ok());
        for (networks, ports) in [
            ("10.0.0.0", "1-2"),
            ("10.0.0.0/31", "1-2"),
            ("10.0.0.0/24,10.0.1.0/24", "1-2"),
            ("10.0.0.0/24", "2-1"),
            ("10.0.0.0/24", "0-5"),
            ("fd00::/32", "1-2"),
        ] {
            assert!(Ranges::parse(Some(networks), Some(ports)).is_err(), "{networks} {ports}");
        }
    }
}
