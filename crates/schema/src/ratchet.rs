//! Ratcheting: an update may keep what has become invalid, so errors of unchanged values are ignored. This needs, for
//! each value, the old value that corresponds to it.
//!
//! Values correspond through declared fields, and through the keys of the items of keyed lists. Everything else is
//! compared as a whole, and an object with an undeclared field counts as changed.

use std::collections::HashMap;

use machinery::Value;

use crate::lists::identity;
use crate::program::{ListKind, Node};

/// The old value that corresponds to the field `key` of an object.
pub(crate) fn field<'a>(new: &Value, old: Option<&'a Value>, node: &Node, key: &str) -> Option<&'a Value> {
    let (Value::Object(_), Some(Value::Object(old))) = (new, old) else { return None };
    node.field_or_additional(key)?;
    old.get(key)
}

/// The items of an old list by their keys; empty if it is not a keyed list.
pub(crate) struct OldItems<'a>(HashMap<String, &'a Value>);

impl<'a> OldItems<'a> {
    pub(crate) fn new(old: Option<&'a Value>, node: &Node) -> OldItems<'a> {
        let mut by_key = HashMap::new();
        if let Some(Value::Array(old)) = old
            && node.list == ListKind::Map
            && node.items.is_some()
        {
            for item in old {
                if let Some(key) = key(item, node) {
                    // of items with equal keys, the first counts
                    by_key.entry(key).or_insert(item);
                }
            }
        }
        OldItems(by_key)
    }

    /// The old item that has the keys of `item`.
    pub(crate) fn of(&self, item: &Value, node: &Node) -> Option<&'a Value> {
        if self.0.is_empty() { None } else { self.0.get(&key(item, node)?).copied() }
    }
}

/// The values of the keys of an item; `None` unless all are present and scalars.
fn key(item: &Value, node: &Node) -> Option<String> {
    let scalar = |v: &&Value| !matches!(v, Value::Null | Value::Array(_) | Value::Object(_));
    let fields = node.list_keys.iter().map(|key| item.get(key).filter(scalar).map(identity));
    fields.collect::<Option<Vec<String>>>().map(|fields| fields.join(","))
}

/// Whether a value is unchanged. Items of keyed lists are found by their keys, so their order does not matter.
pub(crate) fn unchanged(new: &Value, old: &Value, node: &Node) -> bool {
    match (new, old) {
        (Value::Array(new_items), Value::Array(old_items)) => {
            if new_items.len() != old_items.len() {
                return false;
            }
            let inner = match &node.items {
                Some(inner) if node.list == ListKind::Map => inner,
                _ => return new == old,
            };
            let old_items = OldItems::new(Some(old), node);
            new_items.iter().all(|item| old_items.of(item, node).is_some_and(|old| unchanged(item, old, inner)))
        }
        (Value::Object(new_map), Value::Object(old_map)) => {
            new_map.len() == old_map.len()
                && new_map.iter().all(|(key, value)| match (node.field_or_additional(key), old_map.get(key)) {
                    (Some(field), Some(old)) => unchanged(value, old, field),
                    _ => false,
                })
        }
        _ => new == old,
    }
}
