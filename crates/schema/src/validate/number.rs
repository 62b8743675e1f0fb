//! Bounds and multiples, with the quirks of the reference engine (crd.md 11.3, corrections schema 1-3): bounds of integer
//! values are truncated to integers.

use machinery::Value;

use super::report::{Report, go_float, shown};
use crate::path::Path;
use crate::program::Checks;

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

pub(crate) fn check(checks: &Checks, value: &Value, path: &Path<'_>, report: &mut Report) {
    match value {
        Value::Int(i) => integer(checks, *i, value, path, report),
        Value::Float(f) => float(checks, *f, value, path, report),
        _ => {}
    }
}

fn integer(checks: &Checks, value: i64, given: &Value, path: &Path<'_>, report: &mut Report) {
    if let Some(factor) = checks.multiple_of {
        let factor = factor as i64;
        if factor <= 0 {
            must_be_positive(path, factor.to_string(), report);
        } else if value % factor != 0 {
            report.invalid(path, shown(given), &format!("should be a multiple of {factor}"));
        }
    }
    if let Some(min) = checks.minimum {
        let min = min as i64;
        below(value < min, value == min, checks, min.to_string(), given, path, report);
    }
    if let Some(max) = checks.maximum {
        let max = max as i64;
        above(value > max, value == max, checks, max.to_string(), given, path, report);
    }
}

fn float(checks: &Checks, value: f64, given: &Value, path: &Path<'_>, report: &mut Report) {
    if let Some(factor) = checks.multiple_of {
        let times = if factor < 1.0 { 1.0 / factor * value } else { value / factor };
        if factor <= 0.0 {
            must_be_positive(path, go_float(factor), report);
        } else if !is_integral(times) {
            report.invalid(path, shown(given), &format!("should be a multiple of {}", go_float(factor)));
        }
    }
    if let Some(min) = checks.minimum {
        below(value < min, value == min, checks, go_float(min), given, path, report);
    }
    if let Some(max) = checks.maximum {
        above(value > max, value == max, checks, go_float(max), given, path, report);
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
