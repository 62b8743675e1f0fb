//! The charges of calls at run time, from the sizes of their arguments and results.

use super::estimate::Range;
use super::estimate::calls::selector;
use crate::library::costs::{Charge, Contained, Given, LIST_COST, REGEX_FACTOR, STRING_FACTOR};
use crate::value::{Error, List, Opaque, Val};

const NO_LIST: &str = "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add";
const NO_NUMBER: &str = "internal error: interface conversion: ref.Val is *types.Err, not types.Int";

fn tenth(size: u64) -> u64 {
    (size as f64 * STRING_FACTOR).ceil() as u64
}

fn factor(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

impl Charge {
    /// The error of a failed argument that ends the evaluation: some of cel-go's cost trackers panic on it. `failed` says
    /// which of the first two arguments have failed.
    pub fn breaks(self, failed: [bool; 2]) -> Option<Error> {
        let broken = match self {
            Charge::Distinct | Charge::Sort if failed[0] => NO_LIST,
            Charge::SortBy if failed[1] => NO_LIST,
            Charge::Flatten if failed[1] => NO_NUMBER,
            _ => return None,
        };
        Some(Error::broken(broken))
    }

    /// The charge of a call whose only argument is an error.
    pub fn of_error(self) -> u64 {
        match self {
            Charge::Fixed(cost) => cost,
            Charge::ListResult | Charge::Flatten => LIST_COST,
            Charge::Sets(_) => 2,
            _ => 1,
        }
    }

    /// The charge of a call with these arguments; `result` is `None` if the call failed.
    pub fn of_call(self, args: &[Val<'_>], result: Option<&Val<'_>>) -> u64 {
        let size = |i: usize| args.get(i).map_or(1, Val::cost_size);
        match self {
            Charge::Fixed(cost) => cost,
            Charge::Size(i, by) => factor(size(usize::from(i)), by),
            Charge::Members => size(1),
            Charge::Equality => {
                if let Some(Val::Opaque(_)) = args.first() {
                    return 1;
                }
                tenth(size(0).min(size(1)))
            }
            Charge::Concatenation => tenth(size(0) + size(1)),
            Charge::Matches => tenth(size(0) + 1).saturating_mul(factor(size(1), REGEX_FACTOR)),
            Charge::Contains => tenth(size(0)).saturating_mul(tenth(size(1))),
            Charge::Traversal => args.first().map_or(1, traversal),
            Charge::Join => factor(result.map_or(1, Val::cost_size), 2.0 * STRING_FACTOR),
            Charge::Within(contained, given) => {
                let masked = if contained == Contained::Cidr { tenth(size(0)) + 1 } else { 0 };
                let parsed = if given == Given::Text { tenth(size(1)) } else { 0 };
                tenth(2 * size(0)) + masked + parsed
            }
            Charge::Selector => selector(Range::fixed(size(1))).max,
            Charge::Validate => {
                let pattern = match args.first() {
                    Some(Val::Opaque(opaque)) => match &**opaque {
                        Opaque::Format(format) => format.regex_size,
                        _ => 0,
                    },
                    _ => 0,
                };
                tenth(size(1) + 1).saturating_mul(factor(pattern, REGEX_FACTOR))
            }
            Charge::Sets(by) => size(0).saturating_mul(size(1)).saturating_mul(by).saturating_add(1),
            Charge::ListResult => result.map_or(1, Val::cost_size).saturating_add(LIST_COST),
            Charge::Flatten => flattened(args).saturating_add(LIST_COST),
            Charge::Distinct => args.first().map_or(1, |list| compared(list)),
            Charge::Sort => args.first().map_or(1, |list| compared(list)),
            Charge::SortBy => args.get(1).map_or(1, |keys| compared(keys)),
        }
    }
}

fn flattened(args: &[Val<'_>]) -> u64 {
    let depth = if let Some(Val::Int(depth)) = args.get(1) { (*depth).max(0) as u64 } else { 1 };
    args.first().map_or(1, Val::cost_size).saturating_mul(depth)
}

/// Comparing all items with each other.
fn compared(list: &Val<'_>) -> u64 {
    let size = list.cost_size();
    let texts = match list {
        Val::List(list) => matches!(list.get(0), Some(Ok(Val::String(_) | Val::Bytes(_)))),
        _ => false,
    };
    let by = if texts { 2.0 + STRING_FACTOR } else { 2.0 };
    let squared = size.saturating_mul(size);
    ((squared as f64 * by) as u64).saturating_add(LIST_COST)
}

/// The cost of walking a value: one per scalar, and a tenth of the bytes of each string.
fn traversal(value: &Val<'_>) -> u64 {
    if crate::work::step(1).is_none() {
        return 0;
    }
    match value {
        Val::String(s) => (s.len() as f64 * STRING_FACTOR) as u64,
        Val::Bytes(b) => (b.len() as f64 * STRING_FACTOR) as u64,
        Val::List(List::Json { items, .. })
            if items.iter().all(|item| matches!(item, machinery::Value::Int(_) | machinery::Value::Bool(_))) =>
        {
            items.len() as u64
        }
        Val::List(list) => list.iter().map(|item| item.as_ref().map_or(1, traversal)).sum(),
        Val::Map(map) => {
            let keys = map.keys();
            let cost = |key: &Val<'_>| traversal(key);
            keys.iter().map(|key| cost(key) + map.get(key).map_or(1, |v| v.as_ref().map_or(1, traversal))).sum()
        }
        _ => 1,
    }
}
