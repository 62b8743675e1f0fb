//! Evaluation of compiled paths.

use super::{Filter, PathStep, Slice};
use crate::limits::{JSONPATH_VALUES_MAX, JSONPATH_VISITS_MAX};
use crate::patch::gotext::{plain, type_of};
use crate::value::Value;
use std::borrow::Cow;
use std::cmp::Ordering;

type Found<'v> = Vec<Cow<'v, Value>>;

/// The values that were found, and the error that ended the search. A step that fails still returns values, since a
/// filter without a comparison counts them.
pub(super) type Outcome<'v> = (Found<'v>, Option<String>);

/// Evaluates one path. Values beyond the bounds are ignored, since a cell of a custom resource only shows the first value.
pub(super) struct Evaluation {
    /// How many more values may be visited.
    pub left: usize,
    /// How many values a step may find.
    pub most: usize,
}

impl Default for Evaluation {
    fn default() -> Evaluation {
        Evaluation { left: JSONPATH_VISITS_MAX, most: JSONPATH_VALUES_MAX }
    }
}

impl Evaluation {
    pub fn unbounded() -> Evaluation {
        Evaluation { left: usize::MAX, most: usize::MAX }
    }

    /// The first values that a step finds, as many as may still be visited.
    fn take<'v>(&mut self, values: impl Iterator<Item = Cow<'v, Value>>) -> Found<'v> {
        let found: Found<'v> = values.take(self.left.min(self.most)).collect();
        self.left -= found.len();
        found
    }

    /// Evaluates the nodes in turn.
    pub(super) fn list<'v>(&mut self, input: Found<'v>, nodes: &[PathStep]) -> Outcome<'v> {
        let mut current = input;
        for node in nodes {
            match self.step(current, node) {
                (found, None) => current = found,
                failed => return failed,
            }
        }
        (current, None)
    }

    fn step<'v>(&mut self, input: Found<'v>, node: &PathStep) -> Outcome<'v> {
        self.left = self.left.saturating_sub(input.len());
        if self.left == 0 {
            return (vec![], None);
        }
        match node {
            PathStep::Literal(value @ Value::String(_)) => (vec![Cow::Owned(value.clone())], None),
            PathStep::Literal(value) => (input.iter().map(|_| Cow::Owned(value.clone())).collect(), None),
            PathStep::Field(name) => (input.into_iter().filter_map(|value| field(value, name)).collect(), None),
            PathStep::Slice(slice) => self.slices(input, slice),
            PathStep::Filter(filter) => self.filtered(input, filter),
            PathStep::Wildcard => (self.take(input.into_iter().flat_map(children)), None),
            PathStep::Recursive => (self.descendants(input), None),
            PathStep::Union(parts) => {
                let mut found = vec![];
                for part in parts {
                    match self.list(input.clone(), part) {
                        (more, None) => found.extend(more),
                        (_, why) => return (input, why),
                    }
                }
                found.truncate(self.most);
                (found, None)
            }
            PathStep::Word(word) => (input, Some(format!("unrecognized identifier {word}"))),
        }
    }

    /// The input and all its descendants, parents first. Empty containers and scalars other than text are left out.
    fn descendants<'v>(&mut self, input: Found<'v>) -> Found<'v> {
        let mut found = vec![];
        let mut waiting: Found<'v> = input.into_iter().rev().collect();
        while let Some(value) = waiting.pop() {
            if found.len() >= self.most {
                break;
            }
            let is_text = value.as_str().is_some_and(|s| !s.is_empty());
            let below = if is_text { vec![] } else { self.take(children(value.clone())) };
            if !below.is_empty() || is_text {
                found.push(value);
            }
            waiting.extend(below.into_iter().rev());
        }
        found
    }
}

fn field<'v>(value: Cow<'v, Value>, name: &str) -> Option<Cow<'v, Value>> {
    match value {
        Cow::Borrowed(value) => value.get(name).map(Cow::Borrowed),
        Cow::Owned(value) => value.get(name).cloned().map(Cow::Owned),
    }
}

/// The fields of an object, the items of a list, the bytes of a text.
fn children<'v>(value: Cow<'v, Value>) -> Box<dyn Iterator<Item = Cow<'v, Value>> + 'v> {
    match value {
        Cow::Borrowed(Value::Object(map)) => Box::new(map.values().map(Cow::Borrowed)),
        Cow::Borrowed(Value::Array(items)) => Box::new(items.iter().map(Cow::Borrowed)),
        Cow::Borrowed(Value::String(text)) => Box::new(text.bytes().map(byte)),
        // only literals are owned
        Cow::Owned(Value::String(text)) => Box::new(text.bytes().map(byte).collect::<Vec<_>>().into_iter()),
        _ => Box::new(std::iter::empty()),
    }
}

fn byte<'v>(byte: u8) -> Cow<'v, Value> {
    Cow::Owned(Value::Int(byte.into()))
}

impl Evaluation {
    fn slices<'v>(&mut self, input: Found<'v>, slice: &Slice) -> Outcome<'v> {
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
                    let items = children(value.clone()).skip(from).take(to - from).step_by(step);
                    found.extend(self.take(items));
                }
                Err(why) => return (input, Some(why)),
            }
        }
        found.truncate(self.most);
        (found, None)
    }
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

impl Evaluation {
    fn filtered<'v>(&mut self, input: Found<'v>, filter: &Filter) -> Outcome<'v> {
        let mut found = vec![];
        for value in &input {
            if !matches!(value.as_ref(), Value::Array(_)) {
                let why = format!("{} is not array or slice and cannot be filtered", plain(value));
                return (input, Some(why));
            }
            for item in self.take(children(value.clone())) {
                match self.passes(&item, filter) {
                    Ok(true) => found.push(item),
                    Ok(false) => {}
                    Err(why) => return (found, Some(why)),
                }
            }
        }
        found.truncate(self.most);
        (found, None)
    }

    fn passes(&mut self, item: &Value, filter: &Filter) -> Result<bool, String> {
        let (left, failed) = self.list(vec![Cow::Borrowed(item)], &filter.left);
        let Some((operator, right)) = &filter.comparison else { return Ok(!left.is_empty()) };
        if let Some(why) = failed {
            return Err(why);
        }
        let Some(left) = only(left)? else { return Ok(false) };
        let right = match self.list(vec![Cow::Borrowed(item)], right) {
            (found, None) => only(found)?,
            (_, Some(why)) => return Err(why),
        };
        match right {
            Some(right) => compared(&left, operator, &right),
            None => Ok(false),
        }
    }
}

fn only(found: Found<'_>) -> Result<Option<Cow<'_, Value>>, String> {
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (one, None) => Ok(one),
        _ => Err("can only compare one element at a time".to_owned()),
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
