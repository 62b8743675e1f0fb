//! Ranges of types, bounds and multiples, with the quirks of upstream's validator: bounds of integers are truncated to
//! integers.

use std::cmp::Ordering;

use machinery::value::shortest::float;
use machinery::{Release, Value};

use crate::path::Path;
use crate::program::{Node, Range};
use crate::report::{Report, shown};

/// Integers up to this one are exact as floats.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;

/// Whether a float counts as an integer, which it does if it is close enough to one and exactly representable.
pub(crate) fn is_integral(f: f64, release: Release) -> bool {
    if !f.is_finite() || f.abs() > EXACT_MAX {
        return false;
    }
    if f == f.trunc() {
        return true;
    }
    if release >= Release::V1_37 {
        let nearest = f.round();
        return nearest != 0.0 && (f - nearest).abs() < 1e-9 * nearest.abs();
    }
    // earlier releases only accepted floats slightly above a positive integer
    let whole = f.trunc();
    whole > 0.0 && (f - whole) / (f + whole) < 1e-9
}

/// Converts a float to an integer as Go does: truncates toward zero, and returns the smallest integer for what does not
/// fit.
pub(crate) fn truncated(f: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&f) { f as i64 } else { i64::MIN }
}

impl Range {
    fn text(self) -> &'static str {
        match self {
            Range::Integer => "integer (default format)",
            Range::Int32 => "integer with format int32",
            Range::Int64 => "integer with format int64",
            Range::Float => "number with format float",
        }
    }

    fn has_integer(self, i: i64) -> bool {
        match self {
            Range::Int32 => i32::try_from(i).is_ok(),
            Range::Integer | Range::Int64 | Range::Float => true,
        }
    }

    /// Whether a float, by its shortest decimal digits, lies in the range.
    fn has_float(self, f: f64) -> bool {
        if f.fract() == 0.0 && f.abs() <= EXACT_MAX {
            return self.has_integer(f as i64);
        }
        match self {
            Range::Integer | Range::Int64 => f.to_string().parse::<i64>().is_ok(),
            Range::Int32 => f.to_string().parse::<i32>().is_ok(),
            Range::Float => (f as f32).is_finite(),
        }
    }

    fn has(self, value: &Value) -> bool {
        match value {
            Value::Int(i) => self.has_integer(*i),
            Value::Float(f) => self.has_float(*f),
            _ => true,
        }
    }
}

/// Checks a number against the range of its type, then against multiples and bounds. A multiple or bound that is out of
/// range is an error, and is then compared as a float.
pub(crate) fn check(node: &Node, value: &Value, path: &Path<'_>, report: &mut Report) {
    let in_range = node.range.is_none_or(|range| range.has(value));
    if let Some(range) = node.range.filter(|_| !in_range) {
        report.out_of_range(path, "Checked value", range.text());
    }
    let Some(checks) = node.checks.as_deref() else { return };
    if let Some(factor) = checks.multiple_of {
        multiple(factor, compared(node, value, factor, "MultipleOf value", path, report), value, path, report);
    }
    if let Some(min) = checks.minimum {
        let less = |order: Ordering| order.is_lt() || order.is_eq() && checks.exclusive_minimum;
        let relation = if checks.exclusive_minimum { "greater than" } else { "greater than or equal to" };
        let compared = compared(node, value, min, "Minimum boundary value", path, report);
        bound(compared, min, less, relation, value, path, report);
    }
    if let Some(max) = checks.maximum {
        let more = |order: Ordering| order.is_gt() || order.is_eq() && checks.exclusive_maximum;
        let relation = if checks.exclusive_maximum { "less than" } else { "less than or equal to" };
        let compared = compared(node, value, max, "Maximum boundary value", path, report);
        bound(compared, max, more, relation, value, path, report);
    }
}

/// A number in the form in which it is compared with a multiple or bound.
enum Compared {
    Integer(i64),
    Float(f64),
}

/// How `value` is compared with `constraint`: an integer with the whole part of a constraint that is in range, all else as
/// a float.
fn compared(node: &Node, value: &Value, constraint: f64, what: &str, path: &Path<'_>, report: &mut Report) -> Compared {
    let out_of = node.range.filter(|range| !range.has_float(constraint));
    if let Some(range) = out_of {
        report.out_of_range(path, what, range.text());
    }
    match value {
        Value::Int(i) if out_of.is_none() => Compared::Integer(*i),
        Value::Int(i) => Compared::Float(*i as f64),
        other => Compared::Float(other.as_float().unwrap_or_default()),
    }
}

fn multiple(factor: f64, value: Compared, given: &Value, path: &Path<'_>, report: &mut Report) {
    let (text, is_positive, is_multiple) = match value {
        Compared::Integer(i) => {
            let factor = truncated(factor);
            (factor.to_string(), factor > 0, factor > 0 && i.wrapping_rem(factor) == 0)
        }
        Compared::Float(f) => {
            let times = if factor < 1.0 { 1.0 / factor * f } else { f / factor };
            (float(factor), factor > 0.0, is_integral(times, report.release))
        }
    };
    if !is_positive {
        must_be_positive(path, text, report);
    } else if !is_multiple {
        report.invalid(path, || shown(given), || format!("should be a multiple of {text}"));
    }
}

fn bound(
    value: Compared,
    bound: f64,
    is_beyond: impl Fn(Ordering) -> bool,
    relation: &str,
    given: &Value,
    path: &Path<'_>,
    report: &mut Report,
) {
    let (order, text) = match value {
        Compared::Integer(i) => (Some(i.cmp(&truncated(bound))), truncated(bound).to_string()),
        Compared::Float(f) => (f.partial_cmp(&bound), float(bound)),
    };
    if order.is_some_and(is_beyond) {
        report.invalid(path, || shown(given), || format!("should be {relation} {text}"));
    }
}

fn must_be_positive(path: &Path<'_>, factor: String, report: &mut Report) {
    let text = || factor.clone();
    report.invalid_with(path, text, |at| format!("factor MultipleOf declared for {at} must be positive: {factor}"));
}
