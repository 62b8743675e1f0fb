//! Validates one value against one node. The checks have upstream's order, and each applies to some types of values.

mod junctor;

use std::cell::OnceCell;

use machinery::{Map, Value, work};

use super::number;
use crate::path::Path;
use crate::program::{Additional, Checks, Node, Types};
use crate::report::{Report, shown};
use crate::{lists, ratchet};

/// Units of work for checking one value.
const CHECK_UNITS: u64 = 64;
/// How many bytes of a text are read per unit of work.
const BYTES_PER_UNIT: usize = 4;

/// A value, with results that many alternatives may need and that are computed at most once.
struct MeasuredValue<'v> {
    value: &'v Value,
    /// The number of code points of a text.
    length: OnceCell<i64>,
}

impl MeasuredValue<'_> {
    fn length(&self) -> i64 {
        let count = || self.value.as_str().map_or(0, |text| text.chars().count());
        *self.length.get_or_init(|| i64::try_from(count()).unwrap_or(i64::MAX))
    }
}

/// Checks `value`. If `old` is given, errors at unchanged nodes are tolerated.
pub(crate) fn check(node: &Node, value: &Value, old: Option<&Value>, path: &Path<'_>, report: &mut Report) {
    let before = report.mark();
    checks(node, &MeasuredValue { value, length: OnceCell::new() }, old, path, report);
    if report.has_failed_since(&before)
        && let Some(old) = old
        && ratchet::unchanged(value, old, node)
    {
        report.restore(&before);
    }
}

fn checks(node: &Node, checked: &MeasuredValue<'_>, old: Option<&Value>, path: &Path<'_>, report: &mut Report) {
    if work::spend(CHECK_UNITS) {
        return;
    }
    let all = node.checks.as_deref();
    let value = checked.value;
    if value.is_null() {
        null(node, path, report);
        if let Some(all) = all {
            enumeration(all, value, path, report);
        }
        return;
    }
    if node.types.bits != 0 || all.is_some_and(|c| c.format.is_some()) {
        kind(node, value, path, report);
        report.matches += 1;
    }
    if let Some(all) = all {
        junctor::check(all, checked, path, report);
    }
    // Two for the junctors, one for the common checks, one for the node.
    report.matches += 4;
    match value {
        Value::String(text) => {
            if let Some(all) = all {
                string(all, text, checked, path, report);
            }
            report.matches += 1;
        }
        Value::Int(_) | Value::Float(_) => {
            number::check(node, value, path, report);
            report.matches += 2;
        }
        Value::Array(items) => {
            array(node, items, old, path, report);
            report.matches += 2;
        }
        _ => {}
    }
    if let Some(all) = all {
        enumeration(all, value, path, report);
    }
    if let Value::Object(map) = value {
        object(node, map, value, old, path, report);
        report.matches += 1;
    }
}

fn null(node: &Node, path: &Path<'_>, report: &mut Report) {
    if node.types.bits != 0 && !node.types.has(Types::NULL) && !node.nullable {
        report.wrong_type(path, &node.types.text, "null");
    } else {
        report.matches += 1;
    }
}

/// Checks the type of the value. If the node has a known format, strings and arrays pass unless the type is a number,
/// and errors name the format.
fn kind(node: &Node, value: &Value, path: &Path<'_>, report: &mut Report) {
    let types = &node.types;
    let fits = match value {
        Value::String(_) => types.has(Types::STRING),
        Value::Bool(_) => types.has(Types::BOOLEAN),
        Value::Int(_) => types.has(Types::INTEGER | Types::NUMBER),
        Value::Float(f) => {
            types.has(Types::NUMBER) || types.has(Types::INTEGER) && number::is_integral(*f, report.release)
        }
        Value::Array(_) => types.has(Types::ARRAY),
        Value::Object(_) | Value::Encoded(_) => types.has(Types::OBJECT),
        Value::Null => true,
    };
    if fits {
        report.matches += 1;
        return;
    }
    if let Some((format, _)) = node.checks.as_deref().and_then(|c| c.format.as_ref()) {
        match value {
            Value::String(_) | Value::Array(_) if !types.has(Types::NUMBER | Types::INTEGER) => {
                report.matches += 1;
                return;
            }
            Value::String(_) | Value::Array(_) => {}
            Value::Int(_) if format == "int64" => {}
            Value::Int(_) => return report.wrong_type(path, format, "int64"),
            Value::Float(_) => return report.wrong_type(path, format, "float64"),
            _ => return report.wrong_type(path, format, ""),
        }
    }
    report.wrong_type(path, &types.text, value.type_name());
}

/// Reports the first failure among the checks of length and pattern, and then checks the format.
fn string(checks: &Checks, text: &str, checked: &MeasuredValue<'_>, path: &Path<'_>, report: &mut Report) {
    let shown = || machinery::value::quote(text);
    let reading = (text.len() / BYTES_PER_UNIT) as u64;
    if let Some(max) = checks.max_length.filter(|max| checked.length() > *max) {
        report.too_long(path, max);
    } else if let Some(min) = checks.min_length.filter(|min| checked.length() < *min) {
        report.invalid(path, shown, || format!("should be at least {min} chars long"));
    } else if let Some((pattern, compiled)) = &checks.pattern {
        work::spend(reading);
        match compiled {
            Ok(regex) if regex.is_match(text) => {}
            Ok(_) if cel::are_patterns_exhausted() => {
                report.invalid(path, shown, || format!("takes too long to match with '{pattern}'"));
            }
            Ok(_) => report.invalid(path, shown, || format!("should match '{pattern}'")),
            Err(error) => {
                report.invalid(path, shown, || format!("should match '{pattern}, but pattern is invalid: {error}'"));
            }
        }
    }
    if let Some((name, Some(format))) = &checks.format {
        work::spend(reading);
        if !format.accepts(text) {
            report.wrong_type(path, name, text);
        }
        report.matches += 1;
    }
}

fn array(node: &Node, items: &[Value], old: Option<&Value>, path: &Path<'_>, report: &mut Report) {
    if let Some(inner) = &node.items {
        let old_items = ratchet::OldItems::new(old, node);
        for (i, item) in items.iter().enumerate() {
            check(inner, item, old_items.of(item, node), &Path::Index(path, i), report);
        }
    }
    let Some(checks) = node.checks.as_deref() else { return };
    let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
    if let Some(min) = checks.min_items.filter(|min| count < *min) {
        report.invalid(path, || count.to_string(), || format!("should have at least {min} items"));
    }
    if let Some(max) = checks.max_items.filter(|max| count > *max) {
        report.too_many(path, items.len(), max);
    }
    if checks.unique_items && lists::has_duplicates(items) {
        report.invalid(path, || machinery::value::quote(""), || "shouldn't contain duplicates".to_owned());
    }
}

fn enumeration(checks: &Checks, value: &Value, path: &Path<'_>, report: &mut Report) {
    let allowed = &checks.enumeration;
    if !allowed.is_empty() && !allowed.iter().any(|a| equal_after_conversion(value, a)) {
        report.not_supported(path, value, allowed);
    }
}

/// Whether a value equals an allowed one after Go converts it to the type of the allowed one.
fn equal_after_conversion(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Int(v), Value::Float(a)) => *v as f64 == *a,
        (Value::Float(v), Value::Int(a)) => number::truncated(*v) == *a,
        (Value::Int(v), Value::String(a)) => {
            let c = u32::try_from(*v).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
            let mut chars = a.chars();
            chars.next() == Some(c) && chars.next().is_none()
        }
        _ => value == allowed,
    }
}

fn object(node: &Node, map: &Map, value: &Value, old: Option<&Value>, path: &Path<'_>, report: &mut Report) {
    let checks = node.checks.as_deref();
    if let Some(checks) = checks {
        let count = i64::try_from(map.len()).unwrap_or(i64::MAX);
        if let Some(min) = checks.min_properties.filter(|min| count < *min) {
            report.invalid(path, || count.to_string(), || format!("should have at least {min} properties"));
        }
        if let Some(max) = checks.max_properties.filter(|max| count > *max) {
            report.too_many(path, map.len(), max);
        }
    }
    additional(node, map, value, old, path, report);
    let mut next = 0;
    for (name, inner) in map.iter() {
        if let Some(field) = node.field_after(name, &mut next) {
            let old = old_field(node, name, value, old, path);
            check(field, inner, old, &Path::Field(path, name), report);
        }
    }
    for name in checks.map(|c| c.required.as_slice()).unwrap_or_default() {
        if !map.contains_key(name) {
            report.required(&Path::Key(path, name));
        }
    }
}

/// The old value of the field `name` of the object at `path`. `kind` and `apiVersion` of the whole object have none, so
/// that their errors are never tolerated.
fn old_field<'a>(node: &Node, name: &str, value: &Value, old: Option<&'a Value>, path: &Path<'_>) -> Option<&'a Value> {
    let is_type = matches!(path, Path::Root) && matches!(name, "kind" | "apiVersion");
    if is_type { None } else { ratchet::field(value, old, node, name) }
}

fn additional(node: &Node, map: &Map, value: &Value, old: Option<&Value>, path: &Path<'_>, report: &mut Report) {
    if matches!(node.additional, Additional::Absent | Additional::Any) {
        return;
    }
    for (name, inner) in map.iter().filter(|(name, _)| node.field(name).is_none()) {
        match &node.additional {
            Additional::Schema(schema) => {
                let old = old_field(node, name, value, old, path);
                check(schema, inner, old, &Path::Key(path, name), report);
            }
            _ => {
                let value = || shown(&Value::from(name));
                report.invalid_with(path, value, |at| format!("{at}.{name} in body is a forbidden property"));
            }
        }
    }
}
