//! Evaluation of compiled paths.

use super::{Filter, PathStep, Slice};
use crate::patch::gotext::{plain, type_of};
use crate::value::Value;
use std::borrow::Cow;
use std::cmp::Ordering;

type Found<'v> = Vec<Cow<'v, Value>>;

/// The values that were found, and the error that ended the search. A failed step still returns values, since a filter
/// without comparison counts them.
pub(super) type Outcome<'v> = (Found<'v>, Option<String>);

/// Evaluates the nodes in turn.
pub(super) fn list<'v>(input: Found<'v>, nodes: &[PathStep]) -> Outcome<'v> {
    let mut current = input;
    for node in nodes {
        match step(current, node) {
            (found, None) => current = found,
            failed => return failed,
        }
    }
    (current, None)
}

fn step<'v>(input: Found<'v>, node: &PathStep) -> Outcome<'v> {
    match node {
        PathStep::Literal(value @ Value::String(_)) => (vec![Cow::Owned(value.clone())], None),
        PathStep::Literal(value) => (input.iter().map(|_| Cow::Owned(value.clone())).collect(), None),
        PathStep::Field(name) => (input.into_iter().filter_map(|value| field(value, name)).collect(), None),
        PathStep::Slice(slice) => slices(input, slice),
        PathStep::Filter(filter) => filtered(input, filter),
        PathStep::Wildcard => (input.into_iter().flat_map(children).collect(), None),
        PathStep::Recursive => (descendants(input), None),
        PathStep::Union(parts) => {
            let mut found = vec![];
            for part in parts {
                match list(input.clone(), part) {
                    (more, None) => found.extend(more),
                    (_, why) => return (input, why),
                }
            }
            (found, None)
        }
        PathStep::Word(word) => (input, Some(format!("unrecognized identifier {word}"))),
    }
}

fn field<'v>(value: Cow<'v, Value>, name: &str) -> Option<Cow<'v, Value>> {
    match value {
        Cow::Borrowed(value) => value.get(name).map(Cow::Borrowed),
        Cow::Owned(value) => value.get(name).cloned().map(Cow::Owned),
    }
}

/// The fields of an object, the items of a list, the bytes of a text.
fn children(value: Cow<'_, Value>) -> Found<'_> {
    match value {
        Cow::Borrowed(Value::Object(map)) => map.values().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
        Cow::Owned(Value::Object(map)) => map.into_iter().map(|(_, value)| Cow::Owned(value)).collect(),
        Cow::Owned(Value::Array(items)) => items.into_iter().map(Cow::Owned).collect(),
        other => match other.as_str() {
            Some(text) => text.bytes().map(|b| Cow::Owned(Value::Int(b.into()))).collect(),
            None => vec![],
        },
    }
}

/// The input and all its descendants, parents first, without empty containers and scalars other than text.
fn descendants(input: Found<'_>) -> Found<'_> {
    let mut found = vec![];
    let mut waiting: Found<'_> = input.into_iter().rev().collect();
    while let Some(value) = waiting.pop() {
        let below = if value.as_str().is_some_and(|s| !s.is_empty()) { vec![] } else { children(value.clone()) };
        if !below.is_empty() || value.as_str().is_some_and(|s| !s.is_empty()) {
            found.push(value);
        }
        waiting.extend(below.into_iter().rev());
    }
    found
}

fn slices<'v>(input: Found<'v>, slice: &Slice) -> Outcome<'v> {
    let mut found = vec![];
    for value in &input {
        let length = match value.as_ref() {
            Value::Null => continue,
            Value::Array(items) => items.len() as i64,
            other => {
                let why = format!("{} is not array or slice", type_of(other));
                return (input, Some(why));
            }
        };
        match range(slice, length) {
            Ok(None) => return (found, None),
            Ok(Some((from, to, step))) => {
                found.extend(children(value.clone()).into_iter().take(to).skip(from).step_by(step));
            }
            Err(why) => return (input, Some(why)),
        }
    }
    (found, None)
}

/// Where a slice starts and ends in a list, and its step; `None` if it is empty.
fn range(slice: &Slice, length: i64) -> Result<Option<(usize, usize, usize)>, String> {
    let mut from = slice.from.unwrap_or(0);
    if from < 0 {
        from += length;
    }
    let mut to = slice.to.unwrap_or(length);
    if to < 0 || (to == 0 && slice.is_index) {
        to += length;
    }
    if from == to {
        return Ok(None);
    }
    let out_of_bounds = |index: i64| Err(format!("array index out of bounds: index {index}, length {length}"));
    if from >= length || from < 0 {
        return out_of_bounds(from);
    }
    if to > length || to < 0 {
        return out_of_bounds(to - 1);
    }
    if from > to {
        return Err(format!("starting index {from} is greater than ending index {to}"));
    }
    let step = match slice.step {
        Some(step) if step <= 0 => return Err("step must be > 0".to_owned()),
        step => step.unwrap_or(1),
    };
    let position = |i: i64| usize::try_from(i).unwrap_or_default();
    Ok(Some((position(from), position(to), position(step))))
}

fn filtered<'v>(input: Found<'v>, filter: &Filter) -> Outcome<'v> {
    let mut found = vec![];
    for value in &input {
        if !matches!(value.as_ref(), Value::Array(_)) {
            let why = format!("{} is not array or slice and cannot be filtered", plain(value));
            return (input, Some(why));
        }
        for item in children(value.clone()) {
            match passes(&item, filter) {
                Ok(true) => found.push(item),
                Ok(false) => {}
                Err(why) => return (found, Some(why)),
            }
        }
    }
    (found, None)
}

fn passes(item: &Value, filter: &Filter) -> Result<bool, String> {
    let (left, failed) = list(vec![Cow::Borrowed(item)], &filter.left);
    let Some((operator, right)) = &filter.comparison else { return Ok(!left.is_empty()) };
    if let Some(why) = failed {
        return Err(why);
    }
    let one = |found: Found<'_>| match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.as_ref().clone())),
        _ => Err("can only compare one element at a time".to_owned()),
    };
    let Some(left) = one(left)? else { return Ok(false) };
    let right = match list(vec![Cow::Borrowed(item)], right) {
        (found, None) => one(found)?,
        (_, Some(why)) => return Err(why),
    };
    match right {
        Some(right) => compared(&left, operator, &right),
        None => Ok(false),
    }
}

/// Compares two scalars of the same type; an integer and a float have different types.
fn compared(left: &Value, operator: &str, right: &Value) -> Result<bool, String> {
    if !matches!(operator, "==" | "!=" | "<" | "<=" | ">" | ">=") {
        return Err(format!("unrecognized filter operator {operator}"));
    }
    let order = match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => match a.partial_cmp(b) {
            Some(order) => order,
            None => return Ok(operator == "!="),
        },
        (Value::String(a), Value::String(b)) => a.as_str().cmp(b.as_str()),
        (Value::Bool(a), Value::Bool(b)) if matches!(operator, "==" | "!=") => a.cmp(b),
        (Value::Bool(_), Value::Bool(_)) => return Err("invalid type for comparison".to_owned()),
        (Value::Null | Value::Array(_) | Value::Object(_), _)
        | (_, Value::Null | Value::Array(_) | Value::Object(_)) => {
            return Err("invalid type for comparison".to_owned());
        }
        _ => return Err("incompatible types for comparison".to_owned()),
    };
    Ok(match operator {
        "==" => order == Ordering::Equal,
        "!=" => order != Ordering::Equal,
        "<" => order == Ordering::Less,
        "<=" => order != Ordering::Greater,
        ">" => order == Ordering::Greater,
        _ => order != Ordering::Less,
    })
}
