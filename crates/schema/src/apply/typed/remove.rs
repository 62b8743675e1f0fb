//! Removes paths from a value.

use super::super::fieldpath::FieldSet;
use super::super::types::{ListType, MapType, Part, TypeId, TypeSchema};
use super::item_element;
use machinery::{Map, Value};

/// The value without the paths of `set`. A container that loses all its content becomes null, and so does an atomic
/// container if `set` has a path below it.
pub(crate) fn remove(types: &TypeSchema, value: Value, set: &FieldSet) -> Value {
    if set.is_empty() { value } else { node(types, types.root(), value, set) }
}

fn node(types: &TypeSchema, id: TypeId, value: Value, set: &FieldSet) -> Value {
    match (types.atom(id).part_of(&value), value) {
        (Some(Part::Scalar(_)), value) => value,
        (Some(Part::Map(map)), Value::Object(fields)) if !map.is_atomic() => fields_of(types, map, fields, set),
        (Some(Part::List(list)), Value::Array(items)) if !list.is_atomic() => items_of(types, list, items, set),
        _ => Value::Null,
    }
}

fn fields_of(types: &TypeSchema, map: &MapType, mut fields: Map, set: &FieldSet) -> Value {
    fields.retain(|name, value| {
        let Some(below) = set.get_field(name) else { return true };
        if below.member {
            return false;
        }
        if let (false, Some(child)) = (below.children.is_empty(), map.child(name)) {
            *value = node(types, child, std::mem::take(value), &below.children);
        }
        true
    });
    if fields.is_empty() { Value::Null } else { Value::Object(fields) }
}

fn items_of(types: &TypeSchema, list: &ListType, items: Vec<Value>, set: &FieldSet) -> Value {
    let kept = items.into_iter().filter_map(|item| {
        let below = item_element(types, list, &item).ok().and_then(|element| set.get(&element));
        match below {
            Some(below) if below.member => None,
            Some(below) => Some(node(types, list.element, item, &below.children)),
            None => Some(item),
        }
    });
    let kept: Vec<Value> = kept.collect();
    if kept.is_empty() { Value::Null } else { Value::Array(kept) }
}
