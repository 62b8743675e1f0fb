//! Correlation of a value with its old value (crd.md 13): an error at an unchanged node is tolerated.
//!
//! Invariant: a place is correlated only through declared members and items of keyed lists; all else is compared whole,
//! and an undeclared member makes its object unequal.

use machinery::Value;

use crate::program::{ListKind, Node};

/// The old value of the member `key`, if it can be correlated.
pub(crate) fn member<'a>(new: &Value, old: Option<&'a Value>, node: &Node, key: &str) -> Option<&'a Value> {
    let (Value::Object(_), Some(Value::Object(old))) = (new, old) else { return None };
    node.member(key)?;
    old.get(key)
}

/// The old value of an item of a list, if it can be correlated: all key fields must be there and be scalars.
pub(crate) fn item<'a>(item: &Value, old: Option<&'a Value>, node: &Node) -> Option<&'a Value> {
    let Some(Value::Array(old)) = old else { return None };
    if node.list != ListKind::Map || node.items.is_none() {
        return None;
    }
    let scalar = |v: &&Value| !matches!(v, Value::Null | Value::Array(_) | Value::Object(_));
    let keyed = node.list_keys.iter().all(|key| item.get(key).filter(scalar).is_some());
    if !keyed {
        return None;
    }
    old.iter().find(|o| node.list_keys.iter().all(|key| o.get(key) == item.get(key)))
}

/// Whether nothing changed at a node: lists with keys are equal in any order.
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
            new_items.iter().all(|i| item(i, Some(old), node).is_some_and(|o| unchanged(i, o, inner)))
        }
        (Value::Object(new_map), Value::Object(old_map)) => {
            new_map.len() == old_map.len()
                && new_map.iter().all(|(key, value)| match (node.member(key), old_map.get(key)) {
                    (Some(member), Some(old)) => unchanged(value, old, member),
                    _ => false,
                })
        }
        _ => new == old,
    }
}
