//! Ownership of nodes that have become atomic since it was recorded.

use super::super::fieldpath::{FieldSet, PathElement, SetNode};
use super::super::types::{ListType, MapType, Part, Scalar, TypeId, TypeSchema, UNTYPED};

/// The set in which paths below a node that is now atomic are replaced by the node; `None` if nothing changes.
pub(crate) fn reconcile(types: &TypeSchema, set: &FieldSet) -> Option<FieldSet> {
    let whole = SetNode { member: false, children: set.clone() };
    node(types, types.root(), &whole).map(|node| node.children)
}

fn is_deduced(types: &TypeSchema, map: &MapType) -> bool {
    let untyped = |id: TypeId| id != UNTYPED && types.atom(id).scalar == Some(Scalar::Untyped);
    map.fields.is_empty() && map.element.is_some_and(untyped)
}

fn node(types: &TypeSchema, id: TypeId, found: &SetNode) -> Option<SetNode> {
    let atom = types.atom(id);
    let whole = atom.parts(None);
    let is_leaf = found.member && found.children.is_empty();
    let atomic = || SetNode { member: true, children: FieldSet::new() };
    match atom.part(whole)? {
        Part::Scalar(_) => None,
        Part::List(list) if list.is_atomic() => (!is_leaf).then(atomic),
        Part::Map(map) if is_deduced(types, map) => None,
        Part::Map(map) if map.atomic => (!is_leaf && !found.children.is_empty()).then(atomic),
        Part::List(list) => items_of(types, list, found),
        Part::Map(map) => members_of(types, map, found),
    }
}

fn changed(found: &SetNode, mut change: impl FnMut(&PathElement, &SetNode) -> Option<SetNode>) -> Option<SetNode> {
    let changes: Vec<Option<SetNode>> = found.children.iter().map(|(element, below)| change(element, below)).collect();
    if changes.iter().all(Option::is_none) {
        return None;
    }
    let pairs = found.children.iter().zip(changes);
    let children = pairs.map(|((element, below), change)| (element.clone(), change.unwrap_or_else(|| below.clone())));
    Some(SetNode { member: found.member, children: children.collect() })
}

fn members_of(types: &TypeSchema, map: &MapType, found: &SetNode) -> Option<SetNode> {
    changed(found, |element, below| {
        let child = match element {
            PathElement::TypeField(name) => map.child(name),
            _ => map.element,
        };
        node(types, child?, below)
    })
}

fn items_of(types: &TypeSchema, list: &ListType, found: &SetNode) -> Option<SetNode> {
    changed(found, |_, below| node(types, list.element, below))
}
