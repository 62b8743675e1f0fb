//! Bounds and multiples, with the quirks of the reference engine: bounds of integer
//! values are truncated to integers.

use machinery::Value;
use machinery::value::shortest::float;

use crate::path::Path;
use crate::program::Checks;
use crate::report::{Report, shown};

/// Whether a float counts as an integer: near enough from above, and exactly representable.
pub(crate) fn is_integral(f: f64) -> bool {
    const MAX: f64 = 9_007_199_254_740_991.0;
    if !f.is_finite() || !(-MAX..=MAX).contains(&f) {
        return false;
    }
    if f == f.trunc() {
        return true;
    }
    if f < 0.0 {
        return false;
    }
    let (whole, difference) = (f.trunc(), f - f.trunc());
    if whole == 0.0 {
        return false;
    }
    difference / (f + whole) < 1e-9
}

/// Go's conversion of a float to an integer: towards zero, and the least integer for all that doesn't fit.
pub(crate) fn truncated(f: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&f) { f as i64 } else { i64::MIN }
}

pub(crate) fn check(checks: &Checks, value: &Value, path: &Path<'_>, report: &mut Report) {
    match value {
        Value::Int(i) => check_integer(checks, *i, value, path, report),
        Value::Float(f) => check_float(checks, *f, value, path, report),
        _ => {}
    }
}

fn check_integer(checks: &Checks, value: i64, given: &Value, path: &Path<'_>, report: &mut Report) {
    if let Some(factor) = checks.multiple_of {
        let factor = truncated(factor);
        if factor <= 0 {
            must_be_positive(path, factor.to_string(), report);
        } else if value.wrapping_rem(factor) != 0 {
            report.invalid(path, shown(given), &format!("should be a multiple of {factor}"));
        }
    }
    if let Some(min) = checks.minimum {
        let min = truncated(min);
        below(value < min, value == min, checks, min.to_string(), given, path, report);
    }
    if let Some(max) = checks.maximum {
        let max = truncated(max);
        above(value > max, value == max, checks, max.to_string(), given, path, report);
    }
}

fn check_float(checks: &Checks, value: f64, given: &Value, path: &Path<'_>, report: &mut Report) {
    if let Some(factor) = checks.multiple_of {
        let times = if factor < 1.0 { 1.0 / factor * value } else { value / factor };
        if factor <= 0.0 {
            must_be_positive(path, float(factor), report);
        } else if !is_integral(times) {
            report.invalid(path, shown(given), &format!("should be a multiple of {}", float(factor)));
        }
    }
    if let Some(min) = checks.minimum {
        below(value < min, value == min, checks, float(min), given, path, report);
    }
    if let Some(max) = checks.maximum {
        above(value > max, value == max, checks, float(max), given, path, report);
    }
}

fn must_be_positive(path: &Path<'_>, factor: String, report: &mut Report) {
    let text = factor.clone();
    report.invalid_with(path, text, |at| format!("factor MultipleOf declared for {at} must be positive: {factor}"));
}

fn below(less: bool, equal: bool, c: &Checks, min: String, given: &Value, path: &Path<'_>, report: &mut Report) {
    if less || equal && c.exclusive_minimum {
        let or_equal = if c.exclusive_minimum { "" } else { " or equal to" };
        let relation = if or_equal.is_empty() { "greater than" } else { "greater than or equal to" };
        report.invalid(path, shown(given), &format!("should be {relation} {min}"));
    }
}

fn above(more: bool, equal: bool, c: &Checks, max: String, given: &Value, path: &Path<'_>, report: &mut Report) {
    if more || equal && c.exclusive_maximum {
        let relation = if c.exclusive_maximum { "less than" } else { "less than or equal to" };
        report.invalid(path, shown(given), &format!("should be {relation} {max}"));
    }
}
