//! IP networks in CIDR notation.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An IP network. The bits after the prefix are kept as they were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// An address in the network.
    pub address: IpAddr,
    /// The length of the prefix.
    pub bits: u8,
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let parts = || {
            let (address, bits) = text.split_once('/')?;
            Network::new(address.parse().ok()?, bits.parse().ok()?)
        };
        parts().ok_or_else(|| format!("{text:?} is no network in CIDR notation, such as 10.0.0.0/8"))
    }
}

impl Network {
    /// The network around an address; `None` if the prefix is longer than the address.
    pub fn new(address: IpAddr, bits: u8) -> Option<Network> {
        (bits <= Network::of_one(address).bits).then_some(Network { address, bits })
    }

    /// Returns the network that holds only this address.
    pub fn of_one(address: IpAddr) -> Network {
        Network { address, bits: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// Number of bits after the prefix.
    pub fn host_bits(self) -> u8 {
        Network::of_one(self.address).bits.saturating_sub(self.bits)
    }

    /// The network with the bits after the prefix cleared.
    #[must_use]
    pub fn masked(self) -> Network {
        let host_bits = u32::from(self.host_bits());
        let address = match self.address {
            IpAddr::V4(v4) => IpAddr::V4((u32::from(v4) & u32::MAX.checked_shl(host_bits).unwrap_or(0)).into()),
            IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) & u128::MAX.checked_shl(host_bits).unwrap_or(0)).into()),
        };
        Network { address, ..self }
    }

    /// Whether an address is in the network.
    pub fn holds(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && Network { address, ..self }.masked() == self.masked()
    }
}
