//! The `math` extension.

use crate::value::{Error, Result, Val, compare};
use std::cmp::Ordering;

fn best<'a>(name: &str, args: &[Val<'a>], better: Ordering) -> Result<Val<'a>> {
    let items = match args {
        [Val::List(list)] => list.to_vec()?,
        items => items.to_vec(),
    };
    let mut best: Option<Val<'a>> = None;
    for item in items {
        if !matches!(item, Val::Int(_) | Val::Uint(_) | Val::Double(_)) {
            return Err(Error::overload());
        }
        best = Some(match best {
            Some(best) if compare(&item, &best)? != better => best,
            _ => item,
        });
    }
    best.ok_or_else(|| Error::new(format!("{name}(list) argument must not be empty")))
}

pub fn least<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    best("math.@min", args, Ordering::Less)
}

pub fn greatest<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    best("math.@max", args, Ordering::Greater)
}

fn double<'a>(args: &[Val<'a>], f: fn(f64) -> f64) -> Result<Val<'a>> {
    if let [Val::Double(d)] = args { Ok(Val::Double(f(*d))) } else { Err(Error::overload()) }
}

pub fn ceil<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    double(args, f64::ceil)
}

pub fn floor<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    double(args, f64::floor)
}

pub fn round<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    double(args, f64::round)
}

pub fn trunc<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    double(args, f64::trunc)
}

pub fn sqrt<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    match args {
        [Val::Double(d)] => Ok(Val::Double(d.sqrt())),
        [Val::Int(i)] => Ok(Val::Double((*i as f64).sqrt())),
        [Val::Uint(u)] => Ok(Val::Double((*u as f64).sqrt())),
        _ => Err(Error::overload()),
    }
}

pub fn abs<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    match args {
        [Val::Double(d)] => Ok(Val::Double(d.abs())),
        [Val::Int(i)] => i.checked_abs().map(Val::Int).ok_or_else(|| Error::new("integer overflow")),
        [Val::Uint(u)] => Ok(Val::Uint(*u)),
        _ => Err(Error::overload()),
    }
}

pub fn sign<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    match args {
        [Val::Double(d)] if *d == 0.0 || d.is_nan() => Ok(Val::Double(*d)),
        [Val::Double(d)] => Ok(Val::Double(d.signum())),
        [Val::Int(i)] => Ok(Val::Int(i.signum())),
        [Val::Uint(u)] => Ok(Val::Uint(u64::from(*u > 0))),
        _ => Err(Error::overload()),
    }
}

fn test<'a>(args: &[Val<'a>], f: fn(f64) -> bool) -> Result<Val<'a>> {
    if let [Val::Double(d)] = args { Ok(Val::Bool(f(*d))) } else { Err(Error::overload()) }
}

pub fn is_finite<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    test(args, f64::is_finite)
}

pub fn is_inf<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    test(args, f64::is_infinite)
}

pub fn is_nan<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    test(args, f64::is_nan)
}

fn bits<'a>(args: &[Val<'a>], f: fn(u64, u64) -> u64) -> Result<Val<'a>> {
    match args {
        [Val::Int(a), Val::Int(b)] => Ok(Val::Int(f(*a as u64, *b as u64) as i64)),
        [Val::Uint(a), Val::Uint(b)] => Ok(Val::Uint(f(*a, *b))),
        _ => Err(Error::overload()),
    }
}

pub fn bit_and<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    bits(args, |a, b| a & b)
}

pub fn bit_or<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    bits(args, |a, b| a | b)
}

pub fn bit_xor<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    bits(args, |a, b| a ^ b)
}

pub fn bit_not<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    match args {
        [Val::Int(a)] => Ok(Val::Int(!a)),
        [Val::Uint(a)] => Ok(Val::Uint(!a)),
        _ => Err(Error::overload()),
    }
}

fn shifted<'a>(args: &[Val<'a>], name: &str, f: fn(u64, u32) -> Option<u64>) -> Result<Val<'a>> {
    let (bits, by, signed) = match args {
        [Val::Int(a), Val::Int(by)] => (*a as u64, *by, true),
        [Val::Uint(a), Val::Int(by)] => (*a, *by, false),
        _ => return Err(Error::overload()),
    };
    let by = u32::try_from(by.min(64)).map_err(|_| Error::new(format!("math.{name}() negative offset: {by}")))?;
    let out = f(bits, by).unwrap_or(0);
    Ok(if signed { Val::Int(out as i64) } else { Val::Uint(out) })
}

pub fn shift_left<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    shifted(args, "bitShiftLeft", u64::checked_shl)
}

pub fn shift_right<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    shifted(args, "bitShiftRight", u64::checked_shr)
}
