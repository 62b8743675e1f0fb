//! The functions of IP addresses and networks. Predicates of addresses are those of Go's `net/netip`.

use crate::value::net::{Cidr, Ip, parse_cidr, parse_ip};
use crate::value::{Error, Opaque, Result, Val};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn text<'v>(args: &'v [Val<'_>]) -> Result<&'v str> {
    if let [Val::String(text)] = args { Ok(text) } else { Err(Error::overload()) }
}

pub fn ip<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    match args {
        [Val::Opaque(opaque)] => match &**opaque {
            Opaque::Cidr(cidr) => Ok(Val::opaque(Opaque::Ip(Ip(cidr.address)))),
            _ => Err(Error::overload()),
        },
        _ => Ok(Val::opaque(Opaque::Ip(parse_ip(text(args)?)?))),
    }
}

pub fn is_ip<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(Val::Bool(parse_ip(text(args)?).is_ok()))
}

pub fn is_canonical<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let text = text(args)?;
    Ok(Val::Bool(parse_ip(text)?.to_string() == text))
}

pub fn cidr<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    match parse_cidr(text(args)?) {
        Ok(cidr) => Ok(Val::opaque(Opaque::Cidr(cidr))),
        Err(error) => Err(doubled(&error)),
    }
}

/// Repeats the beginning of the error, as Kubernetes does.
fn doubled(error: &Error) -> Error {
    Error::new(format!("network address parse error during conversion from string: {error}"))
}

pub fn is_cidr<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(Val::Bool(parse_cidr(text(args)?).is_ok()))
}

fn address(args: &[Val<'_>]) -> Result<IpAddr> {
    match args {
        [Val::Opaque(opaque)] => match &**opaque {
            Opaque::Ip(ip) => Ok(ip.0),
            _ => Err(Error::overload()),
        },
        _ => Err(Error::overload()),
    }
}

fn network(value: Option<&Val<'_>>) -> Result<Cidr> {
    match value {
        Some(Val::Opaque(opaque)) => match &**opaque {
            Opaque::Cidr(cidr) => Ok(*cidr),
            _ => Err(Error::overload()),
        },
        _ => Err(Error::overload()),
    }
}

pub fn family<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(Val::Int(if address(args)?.is_ipv4() { 4 } else { 6 }))
}

pub fn is_unspecified<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(Val::Bool(address(args)?.is_unspecified()))
}

pub fn is_loopback<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(Val::Bool(address(args)?.is_loopback()))
}

pub fn is_link_local_multicast<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(Val::Bool(match address(args)? {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        // the third digit has flags, which do not matter
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }))
}

fn link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    }
}

pub fn is_link_local_unicast<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(Val::Bool(link_local_unicast(address(args)?)))
}

/// Private addresses count too.
pub fn is_global_unicast<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let address = address(args)?;
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    Ok(Val::Bool(
        !broadcast
            && !address.is_unspecified()
            && !address.is_loopback()
            && !address.is_multicast()
            && !link_local_unicast(address),
    ))
}

pub fn contains_ip<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let cidr = network(args.first())?;
    let address = match args.get(1) {
        // as upstream, an invalid address is reported as an argument of the wrong type
        Some(Val::String(text)) => parse_ip(text).map_err(|_| Error::overload())?.0,
        Some(value) => address(std::slice::from_ref(value))?,
        None => return Err(Error::overload()),
    };
    Ok(Val::Bool(cidr.contains(address)))
}

pub fn contains_cidr<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let cidr = network(args.first())?;
    let other = match args.get(1) {
        Some(Val::String(text)) => parse_cidr(text).map_err(|error| doubled(&error))?,
        other => network(other)?,
    };
    Ok(Val::Bool(cidr.bits <= other.bits && cidr.contains(other.address)))
}

pub fn masked<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let cidr = network(args.first())?;
    let bits = Cidr::masked_bits(cidr.address, cidr.bits);
    let address = match cidr.address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(bits as u32)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(bits)),
    };
    Ok(Val::opaque(Opaque::Cidr(Cidr { address, bits: cidr.bits })))
}

pub fn prefix_length<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(Val::Int(network(args.first())?.bits.into()))
}
