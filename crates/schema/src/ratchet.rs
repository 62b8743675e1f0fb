//! Correlation of a value with its old value: an error at an unchanged node is tolerated.
//!
//! Invariant: a place is correlated only through declared fields and items of keyed lists; all else is compared whole,
//! and an undeclared field makes its object unequal.

use std::collections::HashMap;

use machinery::Value;

use crate::lists::identity;
use crate::program::{ListKind, Node};

/// The old value of the field `key`, if it can be correlated.
pub(crate) fn field<'a>(new: &Value, old: Option<&'a Value>, node: &Node, key: &str) -> Option<&'a Value> {
    let (Value::Object(_), Some(Value::Object(old))) = (new, old) else { return None };
    node.field_or_additional(key)?;
    old.get(key)
}

/// The items of an old list by their keys; empty if they cannot be correlated.
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
                    by_key.entry(key).or_insert(item);
                }
            }
        }
        OldItems(by_key)
    }

    /// The old value of an item.
    pub(crate) fn of(&self, item: &Value, node: &Node) -> Option<&'a Value> {
        if self.0.is_empty() { None } else { self.0.get(&key(item, node)?).copied() }
    }
}

/// The key of an item. All key fields must be present and scalars.
fn key(item: &Value, node: &Node) -> Option<String> {
    let scalar = |v: &&Value| !matches!(v, Value::Null | Value::Array(_) | Value::Object(_));
    let fields = node.list_keys.iter().map(|key| item.get(key).filter(scalar).map(identity));
    fields.collect::<Option<Vec<String>>>().map(|fields| fields.join(","))
}

/// Whether a node is unchanged. The order of lists with keys does not matter.
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
