//! Lists and sets.

use crate::limits::LIST_ITEMS_MAX;
use crate::value::{Error, List, Result, Val, compare, equal};
use crate::work;
use std::cmp::Ordering;

fn list<'v, 'a>(args: &'v [Val<'a>]) -> Result<&'v List<'a>> {
    if let Some(Val::List(list)) = args.first() { Ok(list) } else { Err(Error::overload()) }
}

/// As [`list`], for `flatten`, whose error looks like a call of a method.
fn receiver<'v, 'a>(args: &'v [Val<'a>]) -> Result<&'v List<'a>> {
    let name = match args {
        [Val::List(list), ..] => return Ok(list),
        [Val::Map(_), ..] => "map(dyn, dyn)".into(),
        [Val::Optional(_), ..] => "optional_type(dyn)".into(),
        [other, ..] => other.type_of().runtime_name(),
        [] => return Err(Error::overload()),
    };
    let types: Vec<_> = args[1..].iter().map(|arg| arg.type_of().runtime_name().to_string()).collect();
    Err(Error::overload_of(format!("no such overload: {name}.flatten({})", types.join(", "))))
}

/// Returns an error for an item that has no order.
fn check_ordered(item: &Val<'_>) -> Result<()> {
    match item {
        Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::String(_) | Val::Bytes(_) => Ok(()),
        Val::Duration(_) | Val::Timestamp(_) => Ok(()),
        _ => Err(Error::overload()),
    }
}

/// Whether no item is greater than the next. An item is not greater than one with which it cannot be compared.
pub fn is_sorted<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let mut previous: Option<Val<'a>> = None;
    for item in list(args)?.iter() {
        let item = item?;
        check_ordered(&item)?;
        if let Some(previous) = &previous
            && compare(previous, &item) == Ok(Ordering::Greater)
        {
            return Ok(Val::Bool(false));
        }
        previous = Some(item);
    }
    Ok(Val::Bool(true))
}

fn sum_from<'a>(args: &[Val<'a>], zero: Val<'a>) -> Result<Val<'a>> {
    let mut total = zero;
    for item in list(args)?.iter() {
        total = super::standard::add(&[total, item?])?;
    }
    Ok(total)
}

overloads! {
    sum_int: args => sum_from(args, Val::Int(0));
    sum_uint: args => sum_from(args, Val::Uint(0));
    sum_double: args => sum_from(args, Val::Double(0.0));
    sum_duration: args => sum_from(args, Val::Duration(0));
}

fn extreme<'a>(args: &[Val<'a>], name: &str, better: Ordering) -> Result<Val<'a>> {
    let mut best: Option<Val<'a>> = None;
    for item in list(args)?.iter() {
        let item = item?;
        check_ordered(&item)?;
        best = Some(match best {
            // a value that cannot be compared, such as NaN, is not better
            Some(best) if compare(&item, &best) != Ok(better) => best,
            _ => item,
        });
    }
    best.ok_or_else(|| Error::new(format!("{name} called on empty list")))
}

overloads! {
    min: args => extreme(args, "min", Ordering::Less);
    max: args => extreme(args, "max", Ordering::Greater);
}

/// Whether an item equals a value. An item that cannot be converted or compared does not.
fn is(item: &Result<Val<'_>>, want: &Val<'_>) -> bool {
    item.as_ref().is_ok_and(|item| equal(item, want).unwrap_or(false))
}

pub fn index_of<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let want = args.get(1).ok_or_else(Error::overload)?;
    for (i, item) in list(args)?.iter().enumerate() {
        if is(&item, want) {
            return Ok(Val::Int(i as i64));
        }
    }
    Ok(Val::Int(-1))
}

/// Whether a list contains the value, or whether a value other than a list equals it. Values that cannot be compared differ.
pub fn includes<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [target, want] = args else { return Err(Error::overload()) };
    let is = |item: &Val<'_>| equal(item, want).unwrap_or(false);
    let Val::List(items) = target else { return Ok(Val::Bool(is(target))) };
    for item in items.iter() {
        if is(&item?) {
            return Ok(Val::Bool(true));
        }
    }
    Ok(Val::Bool(false))
}

pub fn last_index_of<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let want = args.get(1).ok_or_else(Error::overload)?;
    let items = list(args)?;
    for i in (0..items.len()).rev() {
        if items.get(i).is_some_and(|item| is(&item, want)) {
            return Ok(Val::Int(i as i64));
        }
    }
    Ok(Val::Int(-1))
}

fn sorted<'a>(mut keyed: Vec<(Val<'a>, Val<'a>)>) -> Result<Val<'a>> {
    if let Some((first, _)) = keyed.first() {
        let same = |v: &Val<'_>| std::mem::discriminant(v) == std::mem::discriminant(first);
        if !keyed.iter().all(|(key, _)| same(key)) {
            return Err(Error::new("list elements must have the same type"));
        }
        if compare(first, first).is_err() && !matches!(first, Val::Double(_)) {
            return Err(Error::new("list elements must be comparable"));
        }
    }
    keyed.sort_by(|a, b| total_order(&a.0, &b.0));
    Ok(Val::list(keyed.into_iter().map(|(_, item)| item).collect()))
}

/// The order of keys of one type. NaN, which has no order, comes last: a sort needs a total one.
fn total_order(a: &Val<'_>, b: &Val<'_>) -> Ordering {
    let is_nan = |value: &Val<'_>| matches!(value, Val::Double(d) if d.is_nan());
    compare(a, b).unwrap_or_else(|_| is_nan(a).cmp(&is_nan(b)))
}

/// The first argument if it is an empty list. Some functions return it as it is, so it is still compared in its own
/// way.
fn unchanged<'a>(args: &[Val<'a>]) -> Option<Val<'a>> {
    args.first().filter(|arg| matches!(arg, Val::List(list) if list.is_empty())).cloned()
}

pub fn sort<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    if let Some(list) = unchanged(args) {
        return Ok(list);
    }
    sorted(list(args)?.to_vec()?.into_iter().map(|item| (item.clone(), item)).collect())
}

pub fn sort_by<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::List(items), Val::List(keys)] = args else { return Err(Error::overload()) };
    let (items, keys) = (items.to_vec()?, keys.to_vec()?);
    if items.len() != keys.len() {
        let text = format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} elements respectively",
            items.len(),
            keys.len()
        );
        return Err(Error::new(text));
    }
    if let Some(list) = unchanged(args) {
        return Ok(list);
    }
    sorted(keys.into_iter().zip(items).collect())
}

pub fn reverse<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let mut items = list(args)?.to_vec()?;
    items.reverse();
    Ok(Val::list(items))
}

pub fn distinct<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    if let Some(list) = unchanged(args) {
        return Ok(list);
    }
    let mut unique: Vec<Val<'a>> = vec![];
    for item in list(args)?.iter() {
        let item = item?;
        if !has(&unique, &item)? {
            unique.push(item);
        }
    }
    Ok(Val::list(unique))
}

pub fn slice<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::List(items), Val::Int(start), Val::Int(end)] = args else { return Err(Error::overload()) };
    let length = items.len() as i64;
    if *start < 0 || *end < 0 {
        return Err(Error::new(format!("cannot slice({start}, {end}), negative indexes not supported")));
    }
    if start > end {
        return Err(Error::new(format!(
            "cannot slice({start}, {end}), start index must be less than or equal to end index"
        )));
    }
    if length < *end {
        return Err(Error::new(format!("cannot slice({start}, {end}), list is length {length}")));
    }
    let part: Result<Vec<Val<'a>>> = (*start..*end).filter_map(|i| items.get(i as usize)).collect();
    part.map(Val::list)
}

pub fn range<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::Int(n)] = args else { return Err(Error::overload()) };
    if *n < 0 {
        return Err(Error::new(format!("lists.range: size must be non-negative, got {n}")));
    }
    if *n > LIST_ITEMS_MAX {
        return Err(Error::new(format!("lists.range: size {n} exceeds maximum allowed ({LIST_ITEMS_MAX})")));
    }
    Ok(Val::list((0..*n).map(Val::Int).collect()))
}

fn flat<'a>(list: &List<'a>, depth: i64, out: &mut Vec<Val<'a>>) -> Result<()> {
    work::step(1).ok_or_else(Error::cancelled)?;
    for item in list.iter() {
        match item? {
            Val::List(inner) if depth > 0 => flat(&inner, depth - 1, out)?,
            other => {
                work::step(1).ok_or_else(Error::cancelled)?;
                out.push(other);
            }
        }
    }
    Ok(())
}

pub fn flatten<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let items = receiver(args)?;
    let depth = match args.get(1) {
        None => 1,
        Some(Val::Int(depth)) if *depth < 0 => return Err(Error::new("level must be non-negative")),
        Some(Val::Int(depth)) => *depth,
        Some(other) => {
            let text = format!("internal error: interface conversion: ref.Val is {}, not types.Int", other.go_type());
            return Err(Error::broken(text));
        }
    };
    let mut out = vec![];
    flat(items, depth, &mut out)?;
    Ok(Val::list(out))
}

fn has<'a>(list: &[Val<'a>], want: &Val<'a>) -> Result<bool> {
    for item in list {
        if same(item, want)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_all<'a>(list: &[Val<'a>], wanted: &[Val<'a>]) -> Result<bool> {
    for want in wanted {
        if !has(list, want)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether two values are equal; values that cannot be compared are not.
fn same<'a>(a: &Val<'a>, b: &Val<'a>) -> Result<bool> {
    match equal(a, b) {
        Err(error) if error.is_fatal() => Err(error),
        other => Ok(other.unwrap_or(false)),
    }
}

fn both<'a>(args: &[Val<'a>]) -> Result<(Vec<Val<'a>>, Vec<Val<'a>>)> {
    let [Val::List(a), Val::List(b)] = args else { return Err(Error::overload()) };
    Ok((a.to_vec()?, b.to_vec()?))
}

pub fn sets_contains<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let (a, b) = both(args)?;
    has_all(&a, &b).map(Val::Bool)
}

pub fn sets_equivalent<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let (a, b) = both(args)?;
    Ok(Val::Bool(has_all(&a, &b)? && has_all(&b, &a)?))
}

pub fn sets_intersects<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let (a, b) = both(args)?;
    for item in &b {
        if has(&a, item)? {
            return Ok(Val::Bool(true));
        }
    }
    Ok(Val::Bool(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorts more than 20 values: the standard library then checks that their order is total.
    #[test]
    fn nan_sorts_last() {
        for count in [1, 3, 64, 1000] {
            let value = |i: i32| if i % 3 == 0 { f64::NAN } else { f64::from(count - i) };
            let Ok(Val::List(list)) = sort(&[Val::list((0..count).map(|i| Val::Double(value(i))).collect())]) else {
                panic!("no list")
            };
            let double = |item: &Val<'_>| if let Val::Double(double) = item { *double } else { panic!("no double") };
            let sorted: Vec<f64> = list.to_vec().unwrap().iter().map(double).collect();
            let (numbers, rest) = sorted.split_at(sorted.iter().position(|double| double.is_nan()).unwrap());
            assert!(numbers.is_sorted() && rest.iter().all(|double| double.is_nan()), "{sorted:?}");
            assert_eq!(sorted.len(), usize::try_from(count).unwrap());
        }
    }
}
