//! Operators and conversions of the language.

use crate::decl::{Decl, DeclKind, ListKind};
use crate::value::{Error, List, Map, Opaque, Result, Timestamp, Val, compare, equal, time};
use machinery::value::shortest::{float, float_below};
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

fn overflow() -> Error {
    Error::new("integer overflow")
}

fn unsigned_overflow() -> Error {
    Error::new("unsigned integer overflow")
}

pub fn add<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(match args {
        [Val::Int(a), Val::Int(b)] => Val::Int(a.checked_add(*b).ok_or_else(overflow)?),
        [Val::Uint(a), Val::Uint(b)] => Val::Uint(a.checked_add(*b).ok_or_else(unsigned_overflow)?),
        [Val::Double(a), Val::Double(b)] => Val::Double(a + b),
        [Val::String(a), Val::String(b)] => {
            let mut text = String::with_capacity(a.len() + b.len());
            text.push_str(a);
            text.push_str(b);
            Val::string(text)
        }
        [Val::Bytes(a), Val::Bytes(b)] => Val::Bytes(a.iter().chain(b.iter()).copied().collect()),
        [Val::List(a), Val::List(b)] => return concatenate(a, b),
        [Val::Duration(a), Val::Duration(b)] => Val::Duration(a.checked_add(*b).ok_or_else(overflow)?),
        [Val::Timestamp(t), Val::Duration(d)] | [Val::Duration(d), Val::Timestamp(t)] => time::shifted(*t, *d)?,
        _ => return Err(Error::overload()),
    })
}

fn concatenate<'a>(a: &List<'a>, b: &List<'a>) -> Result<Val<'a>> {
    if a.is_empty() && a.kind().is_none() {
        return Ok(Val::List(b.clone()));
    }
    let (mut items, mut members) = (a.to_vec()?, Rc::default());
    crate::work::step(b.len()).ok_or_else(Error::cancelled)?;
    match a.kind() {
        Some(ListKind::Set(of)) => {
            members = crate::value::members(a, *of)?;
            let known = Rc::make_mut(&mut members);
            for item in b.iter() {
                let item = item?;
                if known.insert(crate::value::member_text(&item, *of)?) {
                    items.push(item);
                }
            }
        }
        Some(ListKind::Map(keys)) => {
            let place = |(i, item): (usize, &Val<'a>)| Ok((crate::value::item_key(item, keys)?, i));
            let mut places: std::collections::BTreeMap<String, usize> =
                items.iter().enumerate().map(place).collect::<Result<_>>()?;
            for item in b.iter() {
                let item = item?;
                let key = crate::value::item_key(&item, keys)?;
                match places.get(&key) {
                    Some(place) => items[*place] = item,
                    None => {
                        places.insert(key, items.len());
                        items.push(item);
                    }
                }
            }
        }
        _ => {
            for item in b.iter() {
                items.push(item?);
            }
        }
    }
    Ok(Val::List(match a.kind() {
        Some(kind) => List::Typed { items: Rc::new(items), kind, members },
        None => List::Owned(Rc::new(items)),
    }))
}

overloads! {
    subtract:
        [Val::Int(a), Val::Int(b)] => Ok(Val::Int(a.checked_sub(*b).ok_or_else(overflow)?)),
        [Val::Uint(a), Val::Uint(b)] => Ok(Val::Uint(a.checked_sub(*b).ok_or_else(unsigned_overflow)?)),
        [Val::Double(a), Val::Double(b)] => Ok(Val::Double(a - b)),
        [Val::Duration(a), Val::Duration(b)] => Ok(Val::Duration(a.checked_sub(*b).ok_or_else(overflow)?)),
        [Val::Timestamp(t), Val::Duration(d)] => time::shifted(*t, d.checked_neg().ok_or_else(overflow)?),
        [Val::Timestamp(a), Val::Timestamp(b)] => time::between(*a, *b);
    multiply:
        [Val::Int(a), Val::Int(b)] => Ok(Val::Int(a.checked_mul(*b).ok_or_else(overflow)?)),
        [Val::Uint(a), Val::Uint(b)] => Ok(Val::Uint(a.checked_mul(*b).ok_or_else(unsigned_overflow)?)),
        [Val::Double(a), Val::Double(b)] => Ok(Val::Double(a * b));
    divide:
        [Val::Int(_), Val::Int(0)] | [Val::Uint(_), Val::Uint(0)] => Err(Error::new("division by zero")),
        [Val::Int(a), Val::Int(b)] => Ok(Val::Int(a.checked_div(*b).ok_or_else(overflow)?)),
        [Val::Uint(a), Val::Uint(b)] => Ok(Val::Uint(a / b)),
        [Val::Double(a), Val::Double(b)] => Ok(Val::Double(a / b));
    modulo:
        [Val::Int(_), Val::Int(0)] | [Val::Uint(_), Val::Uint(0)] => Err(Error::new("modulus by zero")),
        [Val::Int(a), Val::Int(b)] => Ok(Val::Int(a.checked_rem(*b).ok_or_else(overflow)?)),
        [Val::Uint(a), Val::Uint(b)] => Ok(Val::Uint(a % b));
    negate:
        [Val::Int(a)] => Ok(Val::Int(a.checked_neg().ok_or_else(overflow)?)),
        [Val::Double(a)] => Ok(Val::Double(-a)),
        // only untyped durations get here, since the type checker does not know their negation
        [Val::Duration(a)] => Ok(Val::Duration(a.checked_neg().ok_or_else(overflow)?));
    not: [Val::Bool(b)] => Ok(Val::Bool(!b));
    not_strictly_false: args => Ok(Val::Bool(!matches!(args, [Val::Bool(false)])));
}

fn order(args: &[Val<'_>], holds: fn(Ordering) -> bool) -> Result<Val<'static>> {
    let [a, b] = args else { return Err(Error::overload()) };
    Ok(Val::Bool(holds(compare(a, b)?)))
}

overloads! {
    less: args => order(args, Ordering::is_lt);
    less_equals: args => order(args, Ordering::is_le);
    greater: args => order(args, Ordering::is_gt);
    greater_equals: args => order(args, Ordering::is_ge);
}

pub fn contains_member<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    match args {
        [value, Val::List(list)] => {
            let made = matches!(list, List::Owned(_));
            let mut failure = None;
            for item in list.iter() {
                match item.and_then(|item| if made { equal(value, &item) } else { equal(&item, value) }) {
                    Ok(true) => return Ok(Val::Bool(true)),
                    Ok(false) => {}
                    Err(error) if error.is_fatal() => return Err(error),
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            // in a list that an expression has made, an item that cannot be compared counts as unequal
            failure.filter(|_| !made).map_or(Ok(Val::Bool(false)), Err)
        }
        [key, Val::Map(map)] => match map.get(key) {
            None => Ok(Val::Bool(false)),
            Some(found) => found.map(|_| Val::Bool(true)),
        },
        _ => Err(Error::overload()),
    }
}

pub fn size<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    match args {
        [value @ (Val::String(_) | Val::Bytes(_) | Val::List(_) | Val::Map(_))] => {
            if let Val::String(text) = value
                && !text.is_ascii()
            {
                crate::work::search(text.len());
            }
            Ok(Val::Int(value.cost_size() as i64))
        }
        _ => Err(Error::overload()),
    }
}

overloads! {
    identity: args => args.first().cloned().ok_or_else(Error::overload);
    type_of: [value] => Ok(Val::Type(Arc::new(value.type_of())));
}

fn conversion(value: &Val<'_>, to: &str) -> Error {
    Error::new(format!("type conversion error from '{}' to '{to}'", value.type_of().runtime_name()))
}

fn whole(d: f64, low: f64, high: f64) -> bool {
    d > low && d < high
}

pub fn to_int<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [value] = args else { return Err(Error::overload()) };
    Ok(Val::Int(match value {
        Val::Int(i) => *i,
        Val::Uint(u) => i64::try_from(*u).map_err(|_| overflow())?,
        Val::Double(d) if whole(*d, i64::MIN as f64, i64::MAX as f64) => *d as i64,
        Val::Double(_) => return Err(overflow()),
        Val::String(s) => s.parse().map_err(|_| conversion(value, "int"))?,
        Val::Duration(d) => *d,
        Val::Timestamp(t) => t.seconds,
        other => return Err(conversion(other, "int")),
    }))
}

pub fn to_uint<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [value] = args else { return Err(Error::overload()) };
    Ok(Val::Uint(match value {
        Val::Uint(u) => *u,
        Val::Int(i) => u64::try_from(*i).map_err(|_| unsigned_overflow())?,
        Val::Double(d) if *d >= 0.0 && whole(*d, -1.0, u64::MAX as f64) => *d as u64,
        Val::Double(_) => return Err(unsigned_overflow()),
        Val::String(s) if s.starts_with('+') => return Err(conversion(value, "uint")),
        Val::String(s) => s.parse().map_err(|_| conversion(value, "uint"))?,
        other => return Err(conversion(other, "uint")),
    }))
}

pub fn to_double<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [value] = args else { return Err(Error::overload()) };
    Ok(Val::Double(match value {
        Val::Double(d) => *d,
        Val::Int(i) => *i as f64,
        Val::Uint(u) => *u as f64,
        Val::String(s) => go_float(s).ok_or_else(|| conversion(value, "double"))?,
        other => return Err(conversion(other, "double")),
    }))
}

/// `strconv.ParseFloat`: underscores may stand between digits, hexadecimal is read, out of range is an error.
fn go_float(text: &str) -> Option<f64> {
    let unsigned = text.trim_start_matches(['+', '-']);
    let bytes = unsigned.as_bytes();
    let digit = |i: Option<usize>| i.and_then(|i| bytes.get(i)).is_some_and(u8::is_ascii_hexdigit);
    let good = |i: usize| bytes[i] != b'_' || digit(i.checked_sub(1)) && digit(Some(i + 1));
    if !(0..bytes.len()).all(good) {
        return None;
    }
    let plain = text.replace('_', "");
    if bytes.starts_with(b"0x") || bytes.starts_with(b"0X") {
        return hexadecimal(&plain);
    }
    let value: f64 = plain.parse().ok()?;
    let named = unsigned.starts_with(['i', 'I', 'n', 'N']);
    (value.is_finite() || named).then_some(value)
}

/// `-0x1.8p3`.
fn hexadecimal(text: &str) -> Option<f64> {
    let (sign, rest) = text.strip_prefix('-').map_or((1.0, text.trim_start_matches('+')), |rest| (-1.0, rest));
    let (mantissa, exponent) = rest[2..].split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 || whole.len() + fraction.len() > 28 {
        return None;
    }
    let digits = u128::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
    let exponent = exponent.parse::<i32>().ok()?.checked_sub(4 * fraction.len() as i32)?;
    let value = sign * digits as f64 * 2f64.powi(exponent.clamp(-2000, 2000));
    value.is_finite().then_some(value)
}

pub fn to_bool<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [value] = args else { return Err(Error::overload()) };
    match value {
        Val::Bool(b) => Ok(Val::Bool(*b)),
        Val::String(s) => match &**s {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Val::Bool(false)),
            _ => Err(conversion(value, "bool")),
        },
        other => Err(conversion(other, "bool")),
    }
}

overloads! {
    to_bytes:
        [Val::Bytes(b)] => Ok(Val::Bytes(b.clone())),
        [Val::String(s)] => Ok(Val::Bytes(s.as_bytes().into())),
        [other] => Err(conversion(other, "bytes"));
}

pub fn to_duration<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [value] = args else { return Err(Error::overload()) };
    match value {
        Val::Duration(d) => Ok(Val::Duration(*d)),
        Val::String(s) => {
            time::parse_duration(s).map(Val::Duration).ok_or_else(|| conversion(value, "google.protobuf.Duration"))
        }
        // declared, but not implemented by cel-go
        Val::Int(_) => Err(Error::overload_of("no such overload: duration(int)")),
        other => Err(conversion(other, "google.protobuf.Duration")),
    }
}

pub fn to_timestamp<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [value] = args else { return Err(Error::overload()) };
    let moment = match value {
        Val::Timestamp(t) => *t,
        Val::Int(i) => Timestamp::utc(*i, 0),
        Val::String(s) => match time::parse_timestamp(s) {
            Some(t) => t,
            None => return Err(conversion(value, "google.protobuf.Timestamp")),
        },
        other => return Err(conversion(other, "google.protobuf.Timestamp")),
    };
    time::checked(moment)
}

pub fn to_string<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [value] = args else { return Err(Error::overload()) };
    Ok(match value {
        Val::String(s) => Val::String(s.clone()),
        Val::Bool(b) => Val::borrowed(if *b { "true" } else { "false" }),
        Val::Int(i) => Val::string(itoa::Buffer::new().format(*i)),
        Val::Uint(u) => Val::string(itoa::Buffer::new().format(*u)),
        Val::Double(d) => Val::string(float(*d)),
        Val::Bytes(b) => match std::str::from_utf8(b) {
            Ok(text) => Val::string(text),
            Err(_) => return Err(Error::new("invalid UTF-8 in bytes, cannot convert to string")),
        },
        Val::Duration(d) => Val::string(time::duration_text(*d)),
        Val::Timestamp(t) => Val::string(time::timestamp_text(*t)),
        Val::Opaque(opaque) => match &**opaque {
            Opaque::Ip(ip) => Val::string(ip.to_string()),
            Opaque::Cidr(cidr) => Val::string(cidr.to_string()),
            _ => return Err(conversion(value, "string")),
        },
        other => return Err(conversion(other, "string")),
    })
}

/// A value as Go's `%v` prints it in messages.
pub(crate) fn plain(value: &Val<'_>) -> String {
    match value {
        Val::String(s) => s.to_string(),
        Val::Bool(b) => b.to_string(),
        Val::Int(i) => i.to_string(),
        Val::Uint(u) => u.to_string(),
        Val::Double(d) => float_below(*d, 1e21),
        Val::Null => "null".to_owned(),
        Val::Duration(d) => time::duration_text(*d),
        Val::Timestamp(t) => time::timestamp_text(*t),
        other => other.type_of().runtime_name().to_string(),
    }
}

overloads! {
    optional_none: _ => Ok(Val::Optional(None));
    optional_of: args => args.first().cloned().map(Val::some).ok_or_else(Error::overload);
}

fn is_untyped(decl: &Decl) -> bool {
    matches!(decl.kind, DeclKind::Json)
}

/// Whether a value is the default of its type.
fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null => true,
        Val::Bool(b) => !b,
        Val::Int(i) => *i == 0,
        Val::Uint(u) => *u == 0,
        Val::Double(d) => *d == 0.0,
        Val::String(s) => s.is_empty(),
        Val::Bytes(b) => b.is_empty(),
        Val::Duration(d) => *d == 0,
        Val::Timestamp(t) => t.seconds == -62_135_596_800 && t.nanoseconds == 0,
        // lists and maps whose types a schema declares have no zero value in kube-apiserver
        Val::List(List::Typed { kind: ListKind::Set(_) | ListKind::Map(_), .. }) | Val::Map(Map::Object(..)) => false,
        Val::List(List::Json { item, .. }) if !is_untyped(item) => false,
        Val::Map(Map::Json(_, value)) if !is_untyped(value) => false,
        Val::List(list) => list.is_empty(),
        Val::Map(map) => map.is_empty(),
        Val::Optional(_) | Val::Type(_) | Val::Opaque(_) | Val::Authorization(_) | Val::Preserved(_) => false,
    }
}

overloads! {
    optional_of_non_zero: [value] => Ok(if is_zero(value) { Val::Optional(None) } else { Val::some(value.clone()) });
    optional_value:
        [Val::Optional(Some(value))] => Ok((**value).clone()),
        [Val::Optional(None)] => Err(Error::new("optional.none() dereference"));
    optional_has_value: [Val::Optional(value)] => Ok(Val::Bool(value.is_some()));
    optional_or:
        [Val::Optional(None), other] => Ok(other.clone()),
        [value @ Val::Optional(_), _] => Ok(value.clone());
    optional_or_value:
        [Val::Optional(None), other] => Ok(other.clone()),
        [Val::Optional(Some(value)), _] => Ok((**value).clone());
}

pub fn optional_unwrap<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::List(list)] = args else { return Err(Error::overload()) };
    let mut items = vec![];
    for item in list.iter() {
        match item? {
            Val::Optional(Some(value)) => items.push((*value).clone()),
            Val::Optional(None) => {}
            other => {
                let name = other.type_of().runtime_name();
                return Err(Error::new(format!("value {name} is not optional")));
            }
        }
    }
    Ok(Val::list(items))
}

fn optional_item<'a>(item: Option<Result<Val<'a>>>) -> Result<Val<'a>> {
    item.map_or(Ok(Val::Optional(None)), |item| item.map(Val::some))
}

overloads! {
    list_first: [Val::List(list)] => optional_item(list.get(0));
    list_last: [Val::List(list)] => optional_item(list.len().checked_sub(1).and_then(|last| list.get(last)));
}

/// The placeholder for functions that the evaluator implements itself.
pub fn unavailable<'a>(_: &[Val<'a>]) -> Result<Val<'a>> {
    Err(Error::overload())
}

/// A map with entries added.
pub fn map_insert<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let (Some(Val::Map(Map::Owned(map))), Some(key), Some(value)) = (args.first(), args.get(1), args.get(2)) else {
        return Err(Error::overload());
    };
    let mut map = (**map).clone();
    let key = crate::value::Key::of(key).ok_or_else(Error::overload)?;
    map.insert(key, value.clone());
    Ok(Val::Map(Map::Owned(Rc::new(map))))
}
