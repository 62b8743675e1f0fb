//! Kubernetes quantities: decimal numbers with a suffix.

use crate::value::{Error, Opaque, Result, Val};
use machinery::quantity::Quantity;
use std::cmp::Ordering;

fn get<'a>(value: Option<&'a Val<'_>>) -> Result<&'a Quantity> {
    let Some(Val::Opaque(opaque)) = value else { return Err(Error::overload()) };
    match &**opaque {
        Opaque::Quantity(quantity) | Opaque::Sum(quantity) => Ok(quantity),
        _ => Err(Error::overload()),
    }
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

fn order(args: &[Val<'_>]) -> Result<Ordering> {
    Ok(get(args.first())?.compare(get(args.get(1))?))
}

fn integer(quantity: &Quantity) -> Result<i64> {
    quantity.as_integer().ok_or_else(|| Error::new("cannot convert value to integer"))
}

overloads! {
    quantity: [Val::String(text)] => Quantity::parse(text).map(|it| Val::opaque(Opaque::Quantity(it))).map_err(Error::new);
    is_quantity: [Val::String(text)] => Ok(Val::Bool(Quantity::parse(text).is_ok()));
    is_integer: args => Ok(Val::Bool(get(args.first())?.as_integer().is_some()));
    as_integer: args => integer(get(args.first())?).map(Val::Int);
    as_float: args => Ok(Val::Double(get(args.first())?.approximate()));
    sign: args => Ok(Val::Int(get(args.first())?.signum()));
    add: args => together(args, Quantity::plus);
    sub: args => together(args, Quantity::minus);
    is_less_than: args => order(args).map(|order| Val::Bool(order.is_lt()));
    is_greater_than: args => order(args).map(|order| Val::Bool(order.is_gt()));
    compare_to: args => order(args).map(|order| Val::Int(order as i64));
}
