//! What a call is charged when it is evaluated, from the sizes of its arguments and result (crd.md 12.8).

use super::{REGEX_FACTOR, STRING_FACTOR};
use crate::value::{Error, List, Opaque, Val};

/// How the cost of a call is found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CallCost {
    Fixed(u64),
    /// A factor of the size of the n-th argument.
    Size(u8, f64),
    /// The size of the second argument.
    Members,
    Equality,
    Concatenation,
    Matches,
    Contains,
    /// Every scalar inside the first argument.
    Traversal,
    Join,
    ContainsIp {
        text: bool,
    },
    ContainsCidr {
        text: bool,
    },
    Validate,
    Sets(u64),
    /// A list as large as the result.
    ListResult,
    Flatten,
    Distinct,
    Sort,
    SortBy,
}

const NO_LIST: &str = "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add";
const NO_NUMBER: &str = "internal error: interface conversion: ref.Val is *types.Err, not types.Int";

fn tenth(size: u64) -> u64 {
    (size as f64 * STRING_FACTOR).ceil() as u64
}

fn factor(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

impl CallCost {
    /// By function and, if it is known, overload.
    pub fn of(function: &str, overload: &str) -> CallCost {
        if let Some(cost) = CallCost::of_overload(overload) {
            return cost;
        }
        match function {
            "check" => CallCost::Fixed(350_000),
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => CallCost::Traversal,
            "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" => CallCost::Size(0, STRING_FACTOR),
            "replace" | "split" | "ip.isCanonical" => CallCost::Size(0, 2.0 * STRING_FACTOR),
            "join" => CallCost::Join,
            "find" | "findAll" => CallCost::Matches,
            "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                CallCost::Size(0, STRING_FACTOR)
            }
            "ip" if overload == "cidr_ip" => CallCost::Fixed(1),
            "ip" => CallCost::Size(0, STRING_FACTOR),
            "containsIP" => CallCost::ContainsIp { text: overload == "cidr_contains_ip_string" },
            "containsCIDR" => CallCost::ContainsCidr { text: overload == "cidr_contains_cidr_string" },
            "validate" => CallCost::Validate,
            _ => CallCost::Fixed(1),
        }
    }

    fn of_overload(overload: &str) -> Option<CallCost> {
        Some(match overload {
            "starts_with_string" | "ends_with_string" => CallCost::Size(0, STRING_FACTOR),
            "string_to_bytes" | "bytes_to_string" | "strings_quote" | "string_format" | "string_format_latest" => {
                CallCost::Size(0, STRING_FACTOR)
            }
            "in_list" => CallCost::Members,
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes" => CallCost::Equality,
            "add_string" | "add_bytes" => CallCost::Concatenation,
            "matches_string" => CallCost::Matches,
            "contains_string" => CallCost::Contains,
            "list_sets_contains_list" | "list_sets_intersects_list" => CallCost::Sets(1),
            "list_sets_equivalent_list" => CallCost::Sets(2),
            "list_slice" | "lists_range" | "list_reverse" => CallCost::ListResult,
            "list_flatten" | "list_flatten_int" => CallCost::Flatten,
            "list_distinct" => CallCost::Distinct,
            id if id.ends_with("_sortByAssociatedKeys") => CallCost::SortBy,
            id if id.ends_with("_sort") => CallCost::Sort,
            _ => return None,
        })
    }

    /// Some of cel-go's counters take for granted that no argument has failed: then the evaluation breaks. `failed` tells
    /// which of the first two have.
    pub fn breaks(self, failed: [bool; 2]) -> Option<Error> {
        let broken = match self {
            CallCost::Distinct | CallCost::Sort if failed[0] => NO_LIST,
            CallCost::SortBy if failed[1] => NO_LIST,
            CallCost::Flatten if failed[1] => NO_NUMBER,
            _ => return None,
        };
        Some(Error::broken(broken))
    }

    /// When an argument is an error.
    pub fn of_error(self) -> u64 {
        match self {
            CallCost::Fixed(cost) => cost,
            CallCost::ListResult | CallCost::Flatten => 11,
            CallCost::Sets(_) => 2,
            _ => 1,
        }
    }

    /// For these arguments and this result; no result if the call failed.
    pub fn of_call(self, args: &[Val<'_>], result: Option<&Val<'_>>) -> u64 {
        let size = |i: usize| args.get(i).map_or(1, Val::cost_size);
        match self {
            CallCost::Fixed(cost) => cost,
            CallCost::Size(i, by) => factor(size(usize::from(i)), by),
            CallCost::Members => size(1),
            CallCost::Equality => {
                if let Some(Val::Opaque(_)) = args.first() {
                    return 1;
                }
                tenth(size(0).min(size(1)))
            }
            CallCost::Concatenation => tenth(size(0) + size(1)),
            CallCost::Matches => tenth(size(0) + 1).saturating_mul(factor(size(1), REGEX_FACTOR)),
            CallCost::Contains => tenth(size(0)).saturating_mul(tenth(size(1))),
            CallCost::Traversal => args.first().map_or(1, traversal),
            CallCost::Join => factor(result.map_or(1, Val::cost_size), 2.0 * STRING_FACTOR),
            CallCost::ContainsIp { text } => tenth(2 * size(0)) + if text { tenth(size(1)) } else { 0 },
            CallCost::ContainsCidr { text } => {
                tenth(2 * size(0)) + tenth(size(0)) + 1 + if text { tenth(size(1)) } else { 0 }
            }
            CallCost::Validate => {
                let pattern = match args.first() {
                    Some(Val::Opaque(opaque)) => match &**opaque {
                        Opaque::Format(format) => format.regex_size,
                        _ => 0,
                    },
                    _ => 0,
                };
                tenth(size(1) + 1).saturating_mul(factor(pattern, REGEX_FACTOR))
            }
            CallCost::Sets(by) => size(0).saturating_mul(size(1)).saturating_mul(by).saturating_add(1),
            CallCost::ListResult => result.map_or(1, Val::cost_size).saturating_add(11),
            CallCost::Flatten => flattened(args).saturating_add(11),
            CallCost::Distinct => args.first().map_or(1, |list| compared(list)),
            CallCost::Sort => args.first().map_or(1, |list| compared(list)),
            CallCost::SortBy => args.get(1).map_or(1, |keys| compared(keys)),
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
    ((squared as f64 * by) as u64).saturating_add(11)
}

/// One for each scalar, a tenth of the bytes for each string.
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
