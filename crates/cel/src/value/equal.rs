//! Equality and order across types.

use super::convert::{json_value, untyped};
use super::{Error, Key, List, Map, Opaque, Result, Val};
use crate::decl::{ListKind, Members};
use crate::work;
use machinery::Value;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Whether two values are equal. Values of different types are not, except that numbers are compared by value.
pub(crate) fn equal<'a>(a: &Val<'a>, b: &Val<'a>) -> Result<bool> {
    work::step(1).ok_or_else(Error::cancelled)?;
    Ok(match (a, b) {
        (Val::Null, Val::Null) => true,
        (Val::Null, _) | (_, Val::Null) => false,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        (Val::String(a), Val::String(b)) => **a == **b,
        (Val::Bytes(a), Val::Bytes(b)) => a == b,
        (Val::Duration(a), Val::Duration(b)) => a == b,
        (Val::Timestamp(a), Val::Timestamp(b)) => a == b,
        (Val::Type(a), Val::Type(b)) => a.runtime_name() == b.runtime_name(),
        (Val::List(a), Val::List(b)) => return lists(a, b),
        (Val::Map(a), Val::Map(b)) => return maps(a, b),
        (Val::List(list), _) if list.kind().is_some() => return Err(Error::overload()),
        (Val::Map(Map::Object(..) | Map::Json(..)), _) => return Err(Error::overload()),
        (Val::Optional(a), Val::Optional(b)) => match (a, b) {
            // the values in them have lost their declarations
            (Some(a), Some(b)) => return equal(&(**a).clone().bare(), &(**b).clone().bare()),
            (None, None) => true,
            _ => false,
        },
        (Val::Opaque(a), Val::Opaque(b)) => return opaques(a, b),
        (Val::Opaque(_), _) => return Err(Error::overload()),
        (Val::Preserved(a), b) | (b, Val::Preserved(a)) => return preserved_equal(a, b),
        _ => numbers(a, b) == Some(Ordering::Equal),
    })
}

/// Equality of values of the libraries, which differ from values of another kind. As upstream, comparing with a sum of
/// quantities is an error.
fn opaques(a: &Opaque, b: &Opaque) -> Result<bool> {
    Ok(match (a, b) {
        (Opaque::Quantity(a) | Opaque::Sum(a), Opaque::Quantity(b)) => a == b,
        (Opaque::Semver(a), Opaque::Semver(b)) => a.compare(b) == Ordering::Equal,
        (Opaque::Url(a), Opaque::Url(b)) => a == b,
        (Opaque::Ip(a), Opaque::Ip(b)) => a == b,
        (Opaque::Cidr(a), Opaque::Cidr(b)) => a == b,
        (Opaque::Format(a), Opaque::Format(b)) => a == b,
        _ => return Err(Error::overload()),
    })
}

/// Equality of untyped JSON.
fn json_equal(a: &Value, b: &Value) -> Result<bool> {
    work::step(1).ok_or_else(Error::cancelled)?;
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => all((a.len(), b.len()), a.iter().zip(b).map(|(a, b)| json_equal(a, b))),
        (Value::Object(a), Value::Object(b)) => json_objects_equal(a, b),
        (a, b) => Ok(a == b),
    }
}

fn json_objects_equal(a: &machinery::Map, b: &machinery::Map) -> Result<bool> {
    let fields = a.iter().map(|(key, value)| b.get(key).map_or(Ok(false), |other| json_equal(value, other)));
    all((a.len(), b.len()), fields)
}

/// Equality of untyped data and a value. The parts of the value are compared one by one instead of converting it to JSON,
/// which could be immense, as lists share their items. A value without a JSON form is not equal.
fn preserved_equal(a: &Value, b: &Val<'_>) -> Result<bool> {
    work::step(1).ok_or_else(Error::cancelled)?;
    match (a, b) {
        (a, Val::Preserved(b)) => json_equal(a, b),
        (Value::Array(a), Val::List(b)) => {
            let items = a.iter().zip(b.iter()).map(|(a, b)| b.map_or(Ok(false), |b| preserved_equal(a, &b)));
            all((a.len(), b.len()), items)
        }
        (Value::Object(a), Val::Map(Map::Object(b, _) | Map::Json(b, _))) => json_objects_equal(a, b),
        (Value::Object(a), Val::Map(Map::Owned(b) | Map::Made(_, b))) => {
            let field = |key: &Key<'_>| if let Key::String(key) = key { a.get(key) } else { None };
            let entries = b.iter().map(|(key, b)| field(key).map_or(Ok(false), |a| preserved_equal(a, b)));
            all((a.len(), b.len()), entries)
        }
        (_, Val::List(_) | Val::Map(_)) => Ok(false),
        (a, b) => Ok(json_value(b).is_some_and(|b| *a == b)),
    }
}

/// Whether two collections of these sizes are equal, with the results for their parts; stops at the first part that is not.
fn all((one, other): (usize, usize), mut parts: impl Iterator<Item = Result<bool>>) -> Result<bool> {
    if one == other { parts.find(|part| !matches!(part, Ok(true))).unwrap_or(Ok(true)) } else { Ok(false) }
}

fn lists<'a>(a: &List<'a>, b: &List<'a>) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    match a.kind() {
        Some(ListKind::Set(of)) => sets(a, b, *of),
        Some(ListKind::Map(keys)) => map_lists(a, b, keys),
        _ => {
            for (item, other) in a.iter().zip(b.iter()) {
                let found = readable_equal(item, other);
                let found = if matches!(a, List::Owned(_)) { unless_error(found) } else { found };
                if !found? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Equality of items that may not fit their declarations. As in cel-go, an error of the left item is the result, and a
/// right item with an error equals nothing.
fn readable_equal<'a>(left: Result<Val<'a>>, right: Result<Val<'a>>) -> Result<bool> {
    match (left?, right) {
        (left, Ok(right)) => equal(&left, &right),
        (_, Err(error)) if error.is_fatal() => Err(error),
        (_, Err(_)) => Ok(false),
    }
}

/// Equality of items of lists and maps that an expression has made: an item that differs ends the comparison, an error
/// does not.
fn unless_error(found: Result<bool>) -> Result<bool> {
    found.or_else(|error| if error.is_fatal() { Err(error) } else { Ok(true) })
}

/// The elements of a set, as texts. Until Kubernetes 1.36 elements of JSON are compared as decoded, without the type of the
/// schema: an integer differs from the same number as a float, as keys of a Go map do. They keep that form when sets are
/// concatenated.
pub(crate) fn members<'a>(list: &List<'a>, of: Members) -> Result<Rc<BTreeSet<String>>> {
    Ok(match list {
        List::Json { .. } if of == Members::Typed => {
            Rc::new(list.iter().map(|item| member_text(&item?, of)).collect::<Result<_>>()?)
        }
        List::Json { items, .. } => {
            Rc::new(items.iter().map(|item| scalar_text(&untyped(item))).collect::<Result<_>>()?)
        }
        List::Typed { members, .. } => members.clone(),
        List::Owned(items) => Rc::new(items.iter().map(scalar_text).collect::<Result<_>>()?),
    })
}

/// The text of an element of a set.
pub(crate) fn member_text(value: &Val<'_>, of: Members) -> Result<String> {
    match value {
        Val::Map(_) | Val::List(_) if of == Members::Typed => {
            Err(Error::new("listSet operations are only supported on lists of scalar values"))
        }
        Val::Bytes(_) if of == Members::Typed => {
            let text = format!("{value:?}");
            work::make(text.len()).ok_or_else(Error::cancelled)?;
            Ok(text)
        }
        _ => scalar_text(value),
    }
}

/// The text of a scalar in sets of scalars.
pub(crate) fn scalar_text(value: &Val<'_>) -> Result<String> {
    match value {
        Val::Map(_) => {
            Err(Error::new("internal error: runtime error: hash of unhashable type map[string]interface {}"))
        }
        Val::List(_) => Err(Error::new("internal error: runtime error: hash of unhashable type []interface {}")),
        Val::Bytes(_) => Err(Error::new("internal error: runtime error: hash of unhashable type []uint8")),
        Val::Double(d) => Ok(format!("double {}", if *d == 0.0 { 0.0 } else { *d })),
        Val::Duration(_) | Val::Timestamp(_) => Ok(format!("{value:?}")),
        other => {
            let text = json_value(other).map_or_else(|| format!("{other:?}"), |json| json.to_json());
            work::make(text.len()).ok_or_else(Error::cancelled)?;
            Ok(text)
        }
    }
}

fn sets<'a>(a: &List<'a>, b: &List<'a>, of: Members) -> Result<bool> {
    let known = members(a, of)?;
    let mut seen = BTreeSet::new();
    for item in b.iter() {
        let member = member_text(&item?, of)?;
        if !known.contains(&member) {
            return Ok(false);
        }
        seen.insert(member);
    }
    Ok(of == Members::Decoded || seen.len() == known.len())
}

/// The text of the keys of an item of a map list.
pub(crate) fn item_key(item: &Val<'_>, keys: &[machinery::Text]) -> Result<String> {
    let Val::Map(map) = item else { return Ok(String::new()) };
    let parts = keys.iter().map(|key| {
        let value = match map {
            Map::Object(map, _) | Map::Json(map, _) => map.get(key).map(Value::to_json),
            Map::Owned(_) | Map::Made(..) => map.get_str(key).and_then(|v| json_value(&v.ok()?)).map(|v| v.to_json()),
        };
        value.unwrap_or_default()
    });
    let text = parts.collect::<Vec<_>>().join("\0");
    work::make(text.len()).ok_or_else(Error::cancelled)?;
    Ok(text)
}

fn map_lists<'a>(a: &List<'a>, b: &List<'a>, keys: &[machinery::Text]) -> Result<bool> {
    let mut known = std::collections::BTreeMap::new();
    for item in a.iter() {
        let item = item?;
        known.insert(item_key(&item, keys)?, item);
    }
    for item in b.iter() {
        let item = item?;
        match known.get(&item_key(&item, keys)?) {
            Some(same) if equal(same, &item)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn maps<'a>(a: &Map<'a>, b: &Map<'a>) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    match (a, b) {
        (Map::Object(x, object), _) => {
            for (name, value) in x.iter() {
                if object.named(name).is_none() {
                    match b {
                        Map::Object(y, _) => match y.get(name).map_or(Ok(true), |other| json_equal(value, other))? {
                            true => continue,
                            false => return Ok(false),
                        },
                        _ => return Err(Error::overload()),
                    }
                }
                if !same(a.get_str(name), b.get_str(name))? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Map::Json(x, _), _) => {
            for name in x.keys() {
                if !same(a.get_str(name), b.get_str(name))? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Map::Made(a, _), Map::Made(b, _)) if a != b => Ok(false),
        (Map::Owned(x) | Map::Made(_, x), _) => {
            for (key, value) in x.iter() {
                let Some(other) = b.get(&key.value()) else { return Ok(false) };
                if !unless_error(readable_equal(Ok(value.clone()), other))? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

fn same<'a>(a: Option<Result<Val<'a>>>, b: Option<Result<Val<'a>>>) -> Result<bool> {
    match (a, b) {
        (None, None) => Ok(true),
        (Some(a), Some(b)) => readable_equal(a, b),
        _ => Ok(false),
    }
}

/// The order of two numbers of any types; `None` if one is not a number, or NaN.
fn numbers(a: &Val<'_>, b: &Val<'_>) -> Option<Ordering> {
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => Some(a.cmp(b)),
        (Val::Uint(a), Val::Uint(b)) => Some(a.cmp(b)),
        (Val::Double(a), Val::Double(b)) => a.partial_cmp(b),
        (Val::Int(a), Val::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Val::Uint(a), Val::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Val::Double(a), Val::Int(b)) => double_to(*a, i128::from(*b), -9_223_372_036_854_775_808.0, i64::MAX as f64),
        (Val::Double(a), Val::Uint(b)) => double_to(*a, i128::from(*b), 0.0, u64::MAX as f64),
        (Val::Int(_) | Val::Uint(_), Val::Double(_)) => numbers(b, a).map(Ordering::reverse),
        _ => None,
    }
}

fn double_to(d: f64, n: i128, low: f64, high: f64) -> Option<Ordering> {
    if d.is_nan() {
        return None;
    }
    if d < low {
        return Some(Ordering::Less);
    }
    if d > high { Some(Ordering::Greater) } else { d.partial_cmp(&(n as f64)) }
}

/// The order of two values; an error if they cannot be ordered.
pub(crate) fn compare(a: &Val<'_>, b: &Val<'_>) -> Result<Ordering> {
    match (a, b) {
        (Val::Bool(a), Val::Bool(b)) => Ok(a.cmp(b)),
        (Val::String(a), Val::String(b)) => Ok((**a).cmp(&**b)),
        (Val::Bytes(a), Val::Bytes(b)) => Ok(a.cmp(b)),
        (Val::Duration(a), Val::Duration(b)) => Ok(a.cmp(b)),
        (Val::Timestamp(a), Val::Timestamp(b)) => Ok(a.cmp(b)),
        (Val::Double(d), Val::Int(_) | Val::Uint(_) | Val::Double(_))
        | (Val::Int(_) | Val::Uint(_), Val::Double(d))
            if d.is_nan() =>
        {
            Err(Error::new("NaN values cannot be ordered"))
        }
        _ => match numbers(a, b) {
            Some(order) => Ok(order),
            None if matches!((a, b), (Val::Double(_), Val::Double(_))) => {
                Err(Error::new("NaN values cannot be ordered"))
            }
            None => Err(Error::overload()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    fn list(items: Vec<Val<'_>>) -> Val<'_> {
        Val::list(items)
    }

    #[test]
    fn untyped_data_is_compared_structurally() {
        let data = json!([1, [2, "x"], {"a": 1.5}]);
        let same = |last: f64| {
            let map = Val::map(vec![(Val::borrowed("a"), Val::Double(last))]).unwrap();
            list(vec![Val::Int(1), list(vec![Val::Int(2), Val::borrowed("x")]), map])
        };
        work::begin(u64::MAX);
        assert_eq!(equal(&Val::Preserved(&data), &same(1.5)), Ok(true));
        assert_eq!(equal(&same(2.5), &Val::Preserved(&data)), Ok(false));
        assert_eq!(equal(&Val::Preserved(&data), &Val::Preserved(&data.clone())), Ok(true));
    }

    #[test]
    fn comparison_ends_at_first_difference() {
        // a million items in 20 lists that share theirs
        let large = (0..20).fold(list(vec![Val::Int(1)]), |inner, _| list(vec![inner.clone(), inner]));
        let data = json!([0, 0]);
        work::begin(u64::MAX);
        let before = work::left();
        assert_eq!(equal(&Val::Preserved(&data), &large), Ok(false));
        assert!(before - work::left() < 1_000, "{} units", before - work::left());
    }
}
