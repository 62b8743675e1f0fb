//! The functions of IP addresses and networks. Predicates of addresses are those of Go's `net/netip`.

use crate::value::net::{Ip, parse_cidr, parse_ip};
use crate::value::{Error, Opaque, Result, Val};
use machinery::network::Network;
use std::net::IpAddr;

fn text<'v>(args: &'v [Val<'_>]) -> Result<&'v str> {
    if let [Val::String(text)] = args { Ok(text) } else { Err(Error::overload()) }
}

/// Repeats the beginning of the error, as Kubernetes does.
fn doubled(error: &Error) -> Error {
    Error::new(format!("network address parse error during conversion from string: {error}"))
}

fn address(value: Option<&Val<'_>>) -> Result<IpAddr> {
    let Some(Val::Opaque(opaque)) = value else { return Err(Error::overload()) };
    if let Opaque::Ip(ip) = &**opaque { Ok(ip.0) } else { Err(Error::overload()) }
}

fn network(value: Option<&Val<'_>>) -> Result<Network> {
    let Some(Val::Opaque(opaque)) = value else { return Err(Error::overload()) };
    if let Opaque::Cidr(cidr) = &**opaque { Ok(*cidr) } else { Err(Error::overload()) }
}

fn is_canonical_text(text: &str) -> Result<bool> {
    Ok(parse_ip(text)?.to_string() == text)
}

fn link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        // the third digit has flags, which do not matter
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }
}

fn link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    }
}

/// Private addresses count too.
fn global_unicast(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    let elsewhere = broadcast || address.is_unspecified() || address.is_loopback() || address.is_multicast();
    !elsewhere && !link_local_unicast(address)
}

overloads! {
    ip:
        [value @ Val::Opaque(_)] => Ok(Val::opaque(Opaque::Ip(Ip(network(Some(value))?.address)))),
        args => Ok(Val::opaque(Opaque::Ip(parse_ip(text(args)?)?)));
    is_ip: args => Ok(Val::Bool(parse_ip(text(args)?).is_ok()));
    is_canonical: args => Ok(Val::Bool(is_canonical_text(text(args)?)?));
    cidr: args => parse_cidr(text(args)?).map(|cidr| Val::opaque(Opaque::Cidr(cidr))).map_err(|error| doubled(&error));
    is_cidr: args => Ok(Val::Bool(parse_cidr(text(args)?).is_ok()));
    family: [value] => Ok(Val::Int(if address(Some(value))?.is_ipv4() { 4 } else { 6 }));
    is_unspecified: [value] => Ok(Val::Bool(address(Some(value))?.is_unspecified()));
    is_loopback: [value] => Ok(Val::Bool(address(Some(value))?.is_loopback()));
    is_link_local_multicast: [value] => Ok(Val::Bool(link_local_multicast(address(Some(value))?)));
    is_link_local_unicast: [value] => Ok(Val::Bool(link_local_unicast(address(Some(value))?)));
    is_global_unicast: [value] => Ok(Val::Bool(global_unicast(address(Some(value))?)));
    masked: args => Ok(Val::opaque(Opaque::Cidr(network(args.first())?.masked())));
    prefix_length: args => Ok(Val::Int(network(args.first())?.bits.into()));
}

pub fn contains_ip<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let cidr = network(args.first())?;
    let address = match args.get(1) {
        // as upstream, an invalid address is reported as an argument of the wrong type
        Some(Val::String(text)) => parse_ip(text).map_err(|_| Error::overload())?.0,
        other => address(other)?,
    };
    Ok(Val::Bool(cidr.holds(address)))
}

pub fn contains_cidr<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let cidr = network(args.first())?;
    let other = match args.get(1) {
        Some(Val::String(text)) => parse_cidr(text).map_err(|error| doubled(&error))?,
        other => network(other)?,
    };
    Ok(Val::Bool(cidr.bits <= other.bits && cidr.holds(other.address)))
}
