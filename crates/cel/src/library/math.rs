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

overloads! {
    least: args => best("math.@min", args, Ordering::Less);
    greatest: args => best("math.@max", args, Ordering::Greater);
    ceil: [Val::Double(d)] => Ok(Val::Double(d.ceil()));
    floor: [Val::Double(d)] => Ok(Val::Double(d.floor()));
    round: [Val::Double(d)] => Ok(Val::Double(d.round()));
    trunc: [Val::Double(d)] => Ok(Val::Double(d.trunc()));
    sqrt:
        [Val::Double(d)] => Ok(Val::Double(d.sqrt())),
        [Val::Int(i)] => Ok(Val::Double((*i as f64).sqrt())),
        [Val::Uint(u)] => Ok(Val::Double((*u as f64).sqrt()));
    abs:
        [Val::Double(d)] => Ok(Val::Double(d.abs())),
        [Val::Int(i)] => i.checked_abs().map(Val::Int).ok_or_else(|| Error::new("integer overflow")),
        [Val::Uint(u)] => Ok(Val::Uint(*u));
    sign:
        [Val::Double(d)] if *d == 0.0 || d.is_nan() => Ok(Val::Double(*d)),
        [Val::Double(d)] => Ok(Val::Double(d.signum())),
        [Val::Int(i)] => Ok(Val::Int(i.signum())),
        [Val::Uint(u)] => Ok(Val::Uint(u64::from(*u > 0)));
    is_finite: [Val::Double(d)] => Ok(Val::Bool(d.is_finite()));
    is_inf: [Val::Double(d)] => Ok(Val::Bool(d.is_infinite()));
    is_nan: [Val::Double(d)] => Ok(Val::Bool(d.is_nan()));
}

fn bits<'a>(args: &[Val<'a>], f: fn(u64, u64) -> u64) -> Result<Val<'a>> {
    match args {
        [Val::Int(a), Val::Int(b)] => Ok(Val::Int(f(*a as u64, *b as u64) as i64)),
        [Val::Uint(a), Val::Uint(b)] => Ok(Val::Uint(f(*a, *b))),
        _ => Err(Error::overload()),
    }
}

overloads! {
    bit_and: args => bits(args, |a, b| a & b);
    bit_or: args => bits(args, |a, b| a | b);
    bit_xor: args => bits(args, |a, b| a ^ b);
    bit_not:
        [Val::Int(a)] => Ok(Val::Int(!a)),
        [Val::Uint(a)] => Ok(Val::Uint(!a));
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

overloads! {
    shift_left: args => shifted(args, "bitShiftLeft", u64::checked_shl);
    shift_right: args => shifted(args, "bitShiftRight", u64::checked_shr);
}
