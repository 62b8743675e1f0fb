//! The walk over two schemas of one version.

use std::collections::{BTreeMap, BTreeSet};

use machinery::Value;
use machinery::value::quote;

use super::{FoundChanges, Severity, bounds, checks, rules};
use crate::openapi::{additional, entries, flag, items, list, property, text};

/// Adds the changes between two schemas of whole objects.
pub(super) fn compare(old: &Value, new: &Value, changes: &mut FoundChanges) {
    if old == new {
        return;
    }
    node(old, new, "", changes);
    rules::compare(old, new, changes);
}

/// Whether two schemas accept the same objects in the same words; descriptions do not matter.
pub(super) fn are_equal(old: &Value, new: &Value) -> bool {
    old == new || undescribed(old) == undescribed(new)
}

fn undescribed(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, value)| !(*key == "description" && value.as_str().is_some()));
            Value::Object(kept.map(|(key, value)| (key.clone(), undescribed(value))).collect())
        }
        Value::Array(items) => items.iter().map(undescribed).collect(),
        other => other.clone(),
    }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn node(old: &Value, new: &Value, path: &str, changes: &mut FoundChanges) {
    if old == new {
        return;
    }
    let (before, after) = (type_name(old), type_name(new));
    if before != after {
        // the other keywords of different types cannot be compared
        changes.add(&checks::TYPE_CHANGED, path, format!("the type changes from {before} to {after}"));
        return;
    }
    let (before, after) = (text(old, "description"), text(new, "description"));
    if before != after {
        let reason = format!("the description changes from {} to {}", quote(before), quote(after));
        changes.add(&checks::DESCRIPTION_CHANGED, path, reason);
    }
    bounds::compare(old, new, path, changes);
    default(old, new, path, changes);
    extensions(old, new, path, changes);
    required(old, new, path, changes);
    properties(old, new, path, changes);
    additional_properties(old, new, path, changes);
    if let (Some(old), Some(new)) = (items(old), items(new)) {
        node(old, new, &format!("{path}[*]"), changes);
    }
}

fn type_name(schema: &Value) -> &str {
    match text(schema, "type") {
        _ if flag(schema, "x-kubernetes-int-or-string") => "integer or string",
        "" => "any",
        name => name,
    }
}

fn default(old: &Value, new: &Value, path: &str, changes: &mut FoundChanges) {
    match (old.get("default"), new.get("default")) {
        (None, Some(after)) => {
            changes.add(&checks::DEFAULT_ADDED, path, format!("there is a default, {}", after.to_json()));
        }
        (Some(before), None) => {
            changes.add(&checks::DEFAULT_REMOVED, path, format!("the default {} is removed", before.to_json()));
        }
        (Some(before), Some(after)) if before != after => {
            let reason = format!("the default changes from {} to {}", before.to_json(), after.to_json());
            changes.add(&checks::DEFAULT_CHANGED, path, reason);
        }
        _ => {}
    }
}

fn extensions(old: &Value, new: &Value, path: &str, changes: &mut FoundChanges) {
    let flags = [
        ("nullable", &checks::NULLABLE_ADDED, &checks::NULLABLE_REMOVED, "null"),
        (
            "x-kubernetes-preserve-unknown-fields",
            &checks::UNKNOWN_FIELDS_PRESERVED,
            &checks::UNKNOWN_FIELDS_PRUNED,
            "unknown fields",
        ),
        (
            "x-kubernetes-embedded-resource",
            &checks::EMBEDDED_RESOURCE_ADDED,
            &checks::EMBEDDED_RESOURCE_REMOVED,
            "only a complete resource",
        ),
    ];
    for (key, added, removed, what) in flags {
        match (flag(old, key), flag(new, key)) {
            (false, true) => changes.add(added, path, format!("{what} can be a value here")),
            (true, false) => changes.add(removed, path, format!("{what} can no longer be a value here")),
            _ => {}
        }
    }
    let types = [
        ("x-kubernetes-list-type", "atomic", &checks::LIST_TYPE_CHANGED),
        ("x-kubernetes-map-type", "granular", &checks::MAP_TYPE_CHANGED),
    ];
    for (key, absent, check) in types {
        let of = |schema: &'_ Value| match text(schema, key) {
            "" => absent.to_owned(),
            name => name.to_owned(),
        };
        let (before, after) = (of(old), of(new));
        if before != after {
            // without uniqueness, every object stays valid
            let is_looser = after == "atomic";
            let severity = if is_looser { check.severity.min(Severity::Warning) } else { check.severity };
            changes.add_as(severity, check, path, format!("{key} changes from {before} to {after}"));
        }
    }
    let keys = |schema: &Value| {
        let mut keys: Vec<&str> = list(schema, "x-kubernetes-list-map-keys").iter().filter_map(Value::as_str).collect();
        keys.sort_unstable();
        keys.join(", ")
    };
    let (before, after) = (keys(old), keys(new));
    if before != after && !before.is_empty() && !after.is_empty() {
        let reason = format!("the keys of items change from {before} to {after}");
        changes.add(&checks::LIST_KEYS_CHANGED, path, reason);
    }
}

fn required(old: &Value, new: &Value, path: &str, changes: &mut FoundChanges) {
    let names = |schema: &Value| -> Vec<String> {
        list(schema, "required").iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (before, after) = (names(old), names(new));
    for name in after.iter().filter(|name| !before.contains(name)) {
        let has_default = property(new, name).is_some_and(|field| field.get("default").is_some());
        let check = if has_default { &checks::REQUIRED_WITH_DEFAULT } else { &checks::REQUIRED_ADDED };
        let with = if has_default { ", and has a default" } else { "" };
        changes.add(check, &below(path, name), format!("the field becomes required{with}"));
    }
    // a field that is removed is reported as such
    for name in before.iter().filter(|name| !after.contains(name) && property(new, name).is_some()) {
        changes.add(&checks::REQUIRED_REMOVED, &below(path, name), "the field becomes optional".to_owned());
    }
}

fn properties(old: &Value, new: &Value, path: &str, changes: &mut FoundChanges) {
    let gone: Vec<(&str, &Value)> =
        entries(old, "properties").filter(|(name, _)| property(new, name).is_none()).collect();
    let added: Vec<(&str, &Value)> =
        entries(new, "properties").filter(|(name, _)| property(old, name).is_none()).collect();
    let renamed = renamings(&gone, &added);
    for (name, _) in &gone {
        let place = below(path, name);
        if flag(new, "x-kubernetes-preserve-unknown-fields") {
            changes.add(&checks::FIELD_UNDECLARED, &place, "the field is no longer declared".to_owned());
        } else if let Some(successor) = renamed.get(name) {
            changes.add(&checks::FIELD_RENAMED, &place, format!("the field is renamed to {successor}"));
        } else {
            changes.add(&checks::FIELD_REMOVED, &place, "the field is removed".to_owned());
        }
    }
    let required = list(new, "required");
    for (name, before) in entries(old, "properties") {
        if let Some(after) = property(new, name) {
            let (first, place) = (changes.found.len(), below(path, name));
            node(before, after, &place, changes);
            // an object without the field stays valid
            let is_optional = !required.iter().any(|required| required.as_str() == Some(name));
            let mut found = changes.found.iter_mut().skip(first).filter(|change| change.path == place);
            if let Some(removed) = found.find(|change| is_optional && change.check == &checks::DEFAULT_REMOVED) {
                removed.severity = Severity::Warning;
            }
        }
    }
    let was_free = flag(old, "x-kubernetes-preserve-unknown-fields") || additional(old).is_some();
    let successors: BTreeSet<&str> = renamed.values().copied().collect();
    for (name, after) in added.into_iter().filter(|(name, _)| !successors.contains(name)) {
        let place = below(path, name);
        if was_free {
            let reason = "a field that could have any value is declared".to_owned();
            changes.add(&checks::FIELD_DECLARED, &place, reason);
        } else {
            let with = after.get("default").map(|default| format!(", with the default {}", default.to_json()));
            changes.add(&checks::FIELD_ADDED, &place, format!("there is a field{}", with.unwrap_or_default()));
        }
    }
}

/// The new name of each renamed field: one field with its schema is gone, and one is added.
fn renamings<'a>(gone: &[(&'a str, &Value)], added: &[(&'a str, &Value)]) -> BTreeMap<&'a str, &'a str> {
    let mut by_schema: BTreeMap<String, [Vec<&str>; 2]> = BTreeMap::new();
    for (side, fields) in [gone, added].into_iter().enumerate() {
        for (name, schema) in fields {
            by_schema.entry(undescribed(schema).to_json()).or_default()[side].push(name);
        }
    }
    let only = |names: &[Vec<&'a str>; 2]| match names {
        [before, after] if before.len() == 1 && after.len() == 1 => Some((before[0], after[0])),
        _ => None,
    };
    by_schema.values().filter_map(only).collect()
}

fn additional_properties(old: &Value, new: &Value, path: &str, changes: &mut FoundChanges) {
    let place = || format!("{path}[*]");
    match (additional(old), additional(new)) {
        (Some(before), Some(after)) => node(before, after, &place(), changes),
        (Some(_), None) if !flag(new, "x-kubernetes-preserve-unknown-fields") => {
            changes.add(&checks::FIELD_REMOVED, &place(), "fields with any name are removed".to_owned());
        }
        (Some(_), None) => {
            let reason = "fields with any name are no longer declared".to_owned();
            changes.add(&checks::FIELD_UNDECLARED, &place(), reason);
        }
        (None, Some(_)) if flag(old, "x-kubernetes-preserve-unknown-fields") => {
            let reason = "fields with any name, which could have any value, are declared".to_owned();
            changes.add(&checks::FIELD_DECLARED, &place(), reason);
        }
        (None, Some(_)) => {
            changes.add(&checks::FIELD_ADDED, &place(), "there are fields with any name".to_owned());
        }
        (None, None) => {}
    }
}
