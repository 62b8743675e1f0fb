//! Uniqueness of items in lists that are sets or maps. It is ratcheted as a whole: an update is only checked if the
//! stored object has no such error.

use crate::limits::ERROR_BYTES_MIN;
use std::collections::{HashMap, HashSet};

use machinery::value::PATHS_BYTES_MAX;
use machinery::{FieldError, Map, Value, work};

use crate::path::Path;
use crate::program::{ListKind, Node};
use crate::report::with_value;

pub(crate) fn validate(value: &Value, node: &Node, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !node.below.lists {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, inner) in map.iter() {
                if let Some(field) = node.field(key) {
                    validate(inner, field, &Path::field(path, key), errors);
                }
                if let Some(field) = node.additional.node() {
                    validate(inner, field, &Path::Bracket(path, key), errors);
                }
            }
        }
        Value::Array(items) => {
            match node.list {
                ListKind::Set => set(items, path, errors),
                ListKind::Map => map(items, node, path, errors),
                ListKind::Atomic => {}
            }
            let Some(inner) = &node.items else { return };
            for (i, item) in items.iter().enumerate() {
                validate(item, inner, &Path::Index(path, i), errors);
            }
        }
        _ => {}
    }
}

/// A key of a value. Two values have the same key exactly if they are equal; an integer and a float differ.
pub(crate) fn identity(value: &Value) -> String {
    match value {
        Value::Float(f) if *f == 0.0 => "f0".to_owned(),
        Value::Float(f) => format!("f{}", f.to_bits()),
        Value::Array(_) | Value::Object(_) => format!("c{}", value.to_json()),
        scalar => scalar.to_json(),
    }
}

/// Whether there are too many errors to report all of them. The size of the last error serves as an estimate for the
/// others.
fn is_full(errors: &[FieldError]) -> bool {
    let bytes = errors.last().map_or(0, |error| error.field.len() + error.value.len()).max(ERROR_BYTES_MIN);
    errors.len() > PATHS_BYTES_MAX / bytes
}

/// The indices of duplicate items.
fn repeated(keys: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: HashMap<String, u32> = HashMap::new();
    let mut repeated = vec![];
    for (i, key) in keys.enumerate() {
        let times = seen.entry(key).or_default();
        *times += 1;
        if *times == 2 {
            repeated.push(i);
        }
    }
    repeated
}

/// Whether two items are equal.
pub(crate) fn has_duplicates(items: &[Value]) -> bool {
    let mut known = HashSet::new();
    !items.iter().all(|item| {
        let identity = identity(item);
        work::spend(identity.len() as u64);
        known.insert(identity)
    })
}

fn set(items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if items.len() < 2 {
        return;
    }
    for i in repeated(items.iter().map(identity)) {
        if is_full(errors) {
            return;
        }
        let error = FieldError::duplicate(&Path::Index(path, i).field_path(), &items[i]);
        errors.push(with_value(error, &items[i]));
    }
}

fn key_of(item: &Value, node: &Node) -> Map {
    let Some(map) = item.as_object() else { return Map::new() };
    node.list_keys.iter().filter_map(|k| map.get_key_value(k)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn map(items: &[Value], node: &Node, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let not_an_object = items.iter().position(|item| !matches!(item, Value::Null | Value::Object(_)));
    if let Some(i) = not_an_object {
        let detail = "must be an object for an array of list-type map";
        let error = FieldError::invalid(&Path::Index(path, i).field_path(), &items[i], detail);
        errors.push(with_value(error, &items[i]));
        return;
    }
    if items.len() < 2 {
        return;
    }
    let has_one_key = node.list_keys.len() == 1;
    let keys = items.iter().map(|item| {
        let key = key_of(item, node);
        if has_one_key { key.values().next().map(identity).unwrap_or_default() } else { Value::Object(key).to_json() }
    });
    for i in repeated(keys) {
        if is_full(errors) {
            return;
        }
        let key = Value::Object(key_of(&items[i], node));
        errors.push(FieldError::duplicate(&Path::Index(path, i).field_path(), &key));
    }
}
