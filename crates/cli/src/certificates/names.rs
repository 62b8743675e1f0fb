//! The names and addresses of the serving certificate.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Names and addresses under which clients reach a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    pub dns: BTreeSet<String>,
    pub addresses: BTreeSet<IpAddr>,
}

impl Names {
    /// The names of every server, with `addresses` and `names`. An unspecified address stands for all addresses of the
    /// machine.
    pub fn of(addresses: &[IpAddr], names: &[String]) -> Names {
        let mut all = Names::default();
        let always = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        all.dns.extend(always.map(str::to_owned));
        all.addresses.extend([IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()]);
        if addresses.iter().any(IpAddr::is_unspecified) {
            all.addresses.extend(of_machine());
            // a host name is left out if it has letters that a DNS name cannot have
            all.dns.extend(crate::values::subject_name(&hostname()));
        }
        all.addresses.extend(addresses.iter().filter(|address| !address.is_unspecified()));
        for name in names {
            match name.parse() {
                Ok(address) => drop(all.addresses.insert(address)),
                Err(_) => drop(all.dns.insert(name.clone())),
            }
        }
        all
    }

    pub fn include(&self, others: &Names) -> bool {
        self.dns.is_superset(&others.dns) && self.addresses.is_superset(&others.addresses)
    }
}

/// The addresses of the machine's interfaces, without those that are valid on one link only.
fn of_machine() -> Vec<IpAddr> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_else(|error| {
        tracing::warn!(%error, "the addresses of this machine cannot be listed");
        vec![]
    });
    interfaces.iter().filter(|interface| !interface.is_link_local()).map(|interface| interface.ip()).collect()
}

/// The name of the machine.
pub fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    name.map(|name| name.trim().to_ascii_lowercase()).filter(|name| !name.is_empty()).unwrap_or("localhost".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unspecified_address_stands_for_the_machine() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let names = Names::of(&[address("10.0.0.7")], &["a.example.com".to_owned(), "fd00::7".to_owned()]);
        assert!(["10.0.0.7", "fd00::7", "127.0.0.1", "::1"].iter().all(|ip| names.addresses.contains(&address(ip))));
        assert!(names.dns.contains("a.example.com") && names.dns.len() == 5 && names.addresses.len() == 4);
        let all = Names::of(&[address("0.0.0.0")], &[]);
        assert!(!all.addresses.contains(&address("0.0.0.0")));
        assert!(all.addresses.is_superset(&of_machine().into_iter().collect()) && !of_machine().is_empty());
        assert!(all.dns.contains(&hostname()) && all.include(&Names::of(&[], &[])));
    }
}
