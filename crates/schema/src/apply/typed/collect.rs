//! The paths that an applied configuration owns.

use super::super::fieldpath::{FieldSet, PathElement, SetNode};
use super::super::types::{ListType, MapType, Part, TypeId, TypeSchema};
use super::item_element;
use machinery::{Map, Value};
use std::collections::BTreeMap;

/// The paths of leaves, of list items, and of undeclared fields of maps.
pub(crate) fn collect(types: &TypeSchema, value: &Value) -> FieldSet {
    node(types, types.root(), value).children
}

fn leaf() -> SetNode {
    SetNode { member: true, children: FieldSet::new() }
}

fn node(types: &TypeSchema, id: TypeId, value: &Value) -> SetNode {
    match types.atom(id).part_of(value) {
        Some(Part::Scalar(_)) => leaf(),
        Some(Part::List(list)) if list.is_atomic() => leaf(),
        Some(Part::Map(map)) if map.is_atomic() => leaf(),
        Some(Part::List(list)) => {
            let children = value.as_array().map(|items| items_of(types, list, items));
            SetNode { member: false, children: children.unwrap_or_default() }
        }
        Some(Part::Map(map)) => {
            let children = value.as_object().map(|fields| fields_of(types, map, fields));
            SetNode { member: false, children: children.unwrap_or_default() }
        }
        None => SetNode::default(),
    }
}

fn fields_of(types: &TypeSchema, map: &MapType, fields: &Map) -> FieldSet {
    let mut set = FieldSet::new();
    for (name, value) in fields.iter().filter(|(name, _)| !map.skips(name)) {
        let mut below = map.child(name).map(|child| node(types, child, value)).unwrap_or_default();
        let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        below.member |= empty || map.field(name).is_none();
        set.insert(PathElement::TypeField(name.clone()), below);
    }
    set
}

fn items_of(types: &TypeSchema, list: &ListType, items: &[Value]) -> FieldSet {
    let mut found: BTreeMap<PathElement, Option<&Value>> = BTreeMap::new();
    for item in items {
        if let Ok(element) = item_element(types, list, item) {
            found.entry(element).and_modify(|duplicate| *duplicate = None).or_insert(Some(item));
        }
    }
    let nodes = found.into_iter().map(|(element, item)| {
        let mut below = item.map(|item| node(types, list.element, item)).unwrap_or_default();
        below.member = true;
        (element, below)
    });
    nodes.collect()
}

/// The set, with the declared fields on the way to each member added.
pub(crate) fn with_declared_fields(types: &TypeSchema, set: &FieldSet) -> FieldSet {
    declared(types, Some(types.root()), set)
}

fn declared(types: &TypeSchema, id: Option<TypeId>, set: &FieldSet) -> FieldSet {
    let atom = id.map(|id| types.atom(id));
    let map = atom.and_then(|a| a.map.as_ref());
    let nodes = set.iter().map(|(element, node)| {
        let field = match (element, map) {
            (PathElement::TypeField(name), Some(map)) => map.field(name),
            _ => None,
        };
        let child = match (element, map, atom.and_then(|a| a.list.as_ref())) {
            (PathElement::TypeField(name), Some(map), _) => map.child(name),
            (PathElement::Key(_), _, Some(list)) => Some(list.element),
            _ => None,
        };
        let member = node.member || (field.is_some() && !node.children.is_empty());
        (element.clone(), SetNode { member, children: declared(types, child, &node.children) })
    });
    nodes.collect()
}
