//! Kubernetes quantities: decimal numbers with a suffix.

use crate::value::{Error, Opaque, Result, Val};
use machinery::quantity::Quantity;
use std::cmp::Ordering;

fn get<'a>(value: Option<&'a Val<'_>>) -> Result<&'a Quantity> {
    match value {
        Some(Val::Opaque(opaque)) => match &**opaque {
            Opaque::Quantity(quantity) | Opaque::Sum(quantity) => Ok(quantity),
            _ => Err(Error::overload()),
        },
        _ => Err(Error::overload()),
    }
}

pub fn quantity<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::String(text)] = args else { return Err(Error::overload()) };
    Quantity::parse(text).map(|quantity| Val::opaque(Opaque::Quantity(quantity))).map_err(Error::new)
}

pub fn is_quantity<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::String(text)] = args else { return Err(Error::overload()) };
    Ok(Val::Bool(Quantity::parse(text).is_ok()))
}

pub fn is_integer<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(Val::Bool(get(args.first())?.as_integer().is_some()))
}

pub fn as_integer<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let integer = get(args.first())?.as_integer();
    integer.map(Val::Int).ok_or_else(|| Error::new("cannot convert value to integer"))
}

pub fn as_float<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(Val::Double(get(args.first())?.approximate()))
}

pub fn sign<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(Val::Int(get(args.first())?.signum()))
}

/// The result for two operands, the second of which may be a whole number.
fn together<'a>(args: &[Val<'a>], make: fn(&Quantity, &Quantity) -> Quantity) -> Result<Val<'a>> {
    let quantity = get(args.first())?;
    let made = match args.get(1) {
        Some(Val::Int(i)) => make(quantity, &Quantity::from_int(*i)),
        value => make(quantity, get(value)?),
    };
    Ok(Val::opaque(Opaque::Sum(made)))
}

pub fn add<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    together(args, Quantity::plus)
}

pub fn sub<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    together(args, Quantity::minus)
}

fn order(args: &[Val<'_>]) -> Result<Ordering> {
    Ok(get(args.first())?.compare(get(args.get(1))?))
}

pub fn is_less_than<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    order(args).map(|order| Val::Bool(order.is_lt()))
}

pub fn is_greater_than<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    order(args).map(|order| Val::Bool(order.is_gt()))
}

pub fn compare_to<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    order(args).map(|order| Val::Int(order as i64))
}
