//! Value validations of one node: bounds, enumerations, formats, patterns and combinations.

use machinery::Value;
use machinery::value::quote;

use super::{FoundChanges, checks};
use crate::openapi::{flag, list, text};

/// How a bound that rejects more values compares with one that rejects fewer.
type Tighter = fn(&f64, &f64) -> bool;

/// The keywords of bounds.
const BOUNDS: [(&str, Tighter); 8] = [
    ("maximum", f64::lt),
    ("maxLength", f64::lt),
    ("maxItems", f64::lt),
    ("maxProperties", f64::lt),
    ("minimum", f64::gt),
    ("minLength", f64::gt),
    ("minItems", f64::gt),
    ("minProperties", f64::gt),
];

pub(super) fn compare(old: &Value, new: &Value, path: &str, changes: &mut FoundChanges) {
    for (key, tighter) in BOUNDS {
        bound(&Bound::of(old, key), &Bound::of(new, key), tighter, (key, path), changes);
    }
    multiple_of(old, new, path, changes);
    enumeration(old, new, path, changes);
    texts(old, new, path, changes);
    combinations(old, new, path, changes);
}

/// A bound, and whether the value itself is excluded.
#[derive(PartialEq)]
struct Bound {
    at: Option<f64>,
    is_exclusive: bool,
    text: String,
}

impl Bound {
    fn of(schema: &Value, key: &str) -> Bound {
        // a minLength, minItems or minProperties of 0 bounds nothing
        let nothing = |value: &&Value| key.starts_with("min") && key != "minimum" && value.as_float() == Some(0.0);
        let value = schema.get(key).filter(|value| !nothing(value));
        let exclusive = match key {
            "maximum" => flag(schema, "exclusiveMaximum"),
            "minimum" => flag(schema, "exclusiveMinimum"),
            _ => false,
        };
        let is_exclusive = exclusive && value.is_some();
        let excluded = if is_exclusive { ", exclusive" } else { "" };
        let text = value.map(|value| format!("{}{excluded}", value.to_json())).unwrap_or_default();
        Bound { at: value.and_then(Value::as_float), is_exclusive, text }
    }
}

fn bound(old: &Bound, new: &Bound, tighter: Tighter, (key, path): (&str, &str), changes: &mut FoundChanges) {
    if old == new {
        return;
    }
    let (check, reason) = match (old.at, new.at) {
        (None, Some(_)) => (&checks::BOUND_ADDED, format!("{key} {} is added", new.text)),
        (Some(_), None) => (&checks::BOUND_LOOSENED, format!("{key} {} is removed", old.text)),
        (Some(before), Some(after)) => {
            let is_tighter = tighter(&after, &before) || (after == before && new.is_exclusive && !old.is_exclusive);
            let check = if is_tighter { &checks::BOUND_TIGHTENED } else { &checks::BOUND_LOOSENED };
            (check, format!("{key} changes from {} to {}", old.text, new.text))
        }
        (None, None) => return,
    };
    changes.add(check, path, reason);
}

fn multiple_of(old: &Value, new: &Value, path: &str, changes: &mut FoundChanges) {
    let of = |schema: &'_ Value| schema.get("multipleOf").and_then(Value::as_float);
    match (of(old), of(new)) {
        (None, Some(after)) => changes.add(&checks::BOUND_ADDED, path, format!("multipleOf {after} is added")),
        (Some(before), None) => {
            changes.add(&checks::BOUND_LOOSENED, path, format!("multipleOf {before} is removed"));
        }
        (Some(before), Some(after)) if before != after => {
            let check = if before % after == 0.0 { &checks::BOUND_LOOSENED } else { &checks::BOUND_TIGHTENED };
            changes.add(check, path, format!("multipleOf changes from {before} to {after}"));
        }
        _ => {}
    }
}

fn enumeration(old: &Value, new: &Value, path: &str, changes: &mut FoundChanges) {
    let (before, after) = (list(old, "enum"), list(new, "enum"));
    let shown = |values: &[&Value]| values.iter().map(|value| value.to_json()).collect::<Vec<_>>().join(", ");
    if before.is_empty() != after.is_empty() {
        let all: Vec<&Value> = before.iter().chain(after).collect();
        return match before.is_empty() {
            true => changes.add(&checks::ENUM_ADDED, path, format!("only {} remain allowed", shown(&all))),
            false => changes.add(&checks::ENUM_REMOVED, path, format!("more than {} is allowed", shown(&all))),
        };
    }
    let removed: Vec<&Value> = before.iter().filter(|value| !after.contains(value)).collect();
    if !removed.is_empty() {
        changes.add(&checks::ENUM_VALUE_REMOVED, path, format!("{} can no longer be a value", shown(&removed)));
    }
    let added: Vec<&Value> = after.iter().filter(|value| !before.contains(value)).collect();
    if !added.is_empty() {
        changes.add(&checks::ENUM_VALUE_ADDED, path, format!("{} can be a value", shown(&added)));
    }
}

fn texts(old: &Value, new: &Value, path: &str, changes: &mut FoundChanges) {
    let keys = [
        ("format", [&checks::FORMAT_ADDED, &checks::FORMAT_CHANGED, &checks::FORMAT_REMOVED]),
        ("pattern", [&checks::PATTERN_ADDED, &checks::PATTERN_CHANGED, &checks::PATTERN_REMOVED]),
    ];
    for (key, [added, changed, removed]) in keys {
        match (text(old, key), text(new, key)) {
            (before, after) if before == after => {}
            ("", after) => changes.add(added, path, format!("the {key} {} is added", quote(after))),
            (before, "") => changes.add(removed, path, format!("the {key} {} is removed", quote(before))),
            (before, after) => {
                let reason = format!("the {key} changes from {} to {}", quote(before), quote(after));
                changes.add(changed, path, reason);
            }
        }
    }
}

/// `allOf`, `anyOf`, `oneOf` and `not`. Whether one schema accepts more than another cannot be decided in general, so that a
/// change counts as breaking; more branches of `allOf` are tighter, fewer are looser, and conversely for `anyOf`.
fn combinations(old: &Value, new: &Value, path: &str, changes: &mut FoundChanges) {
    for key in ["allOf", "anyOf", "oneOf"] {
        let (before, after) = (list(old, key), list(new, key));
        let is_within = |some: &[Value], others: &[Value]| some.iter().all(|branch| others.contains(branch));
        let (fewer, more) = (is_within(after, before), is_within(before, after));
        if fewer && more {
            continue;
        }
        let check = match (before.is_empty(), after.is_empty()) {
            (true, _) => &checks::COMBINATION_ADDED,
            (_, true) => &checks::COMBINATION_REMOVED,
            _ if key == "allOf" && fewer || key == "anyOf" && more => &checks::COMBINATION_REMOVED,
            _ => &checks::COMBINATION_CHANGED,
        };
        changes.add(check, path, format!("the schemas of {key} change"));
    }
    match (old.get("not"), new.get("not")) {
        (None, Some(_)) => changes.add(&checks::COMBINATION_ADDED, path, "a schema of not is added".to_owned()),
        (Some(_), None) => {
            changes.add(&checks::COMBINATION_REMOVED, path, "the schema of not is removed".to_owned());
        }
        (before, after) if before != after => {
            changes.add(&checks::COMBINATION_CHANGED, path, "the schema of not changes".to_owned());
        }
        _ => {}
    }
}
