//! Ownership of nodes that have become atomic since it was recorded.

use super::super::fieldpath::{FieldSet, PathElement, SetNode};
use super::super::types::{MapType, Part, Scalar, TypeId, TypeSchema, UNTYPED};

/// The set in which paths below a node that is now atomic are replaced by the node; `None` if nothing changes.
pub(crate) fn reconcile(types: &TypeSchema, set: &FieldSet) -> Option<FieldSet> {
    node(types, types.root(), false, set).map(|node| node.children)
}

fn is_deduced(types: &TypeSchema, map: &MapType) -> bool {
    let untyped = |id: TypeId| id != UNTYPED && types.atom(id).scalar == Some(Scalar::Untyped);
    map.fields.is_empty() && map.element.is_some_and(untyped)
}

/// What replaces a node with these children; `None` if nothing changes. `member`: whether the node itself is in the set.
fn node(types: &TypeSchema, id: TypeId, member: bool, children: &FieldSet) -> Option<SetNode> {
    let atom = types.atom(id);
    let whole = atom.parts(None);
    let is_leaf = member && children.is_empty();
    let atomic = || SetNode { member: true, children: FieldSet::new() };
    match atom.part(whole)? {
        Part::Scalar(_) => None,
        Part::List(list) if list.is_atomic() => (!is_leaf).then(atomic),
        Part::Map(map) if is_deduced(types, map) => None,
        Part::Map(map) if map.is_atomic() => (!is_leaf && !children.is_empty()).then(atomic),
        Part::List(list) => changed(member, children, |_, below| descend(types, list.element, below)),
        Part::Map(map) => changed(member, children, |element, below| {
            let child = match element {
                PathElement::TypeField(name) => map.child(name),
                _ => map.element,
            };
            descend(types, child?, below)
        }),
    }
}

fn descend(types: &TypeSchema, id: TypeId, found: &SetNode) -> Option<SetNode> {
    node(types, id, found.member, &found.children)
}

/// The node with its changed children. Nothing is copied unless one changes, which takes a change of the schema.
fn changed(
    member: bool,
    children: &FieldSet,
    change: impl Fn(&PathElement, &SetNode) -> Option<SetNode>,
) -> Option<SetNode> {
    let mut changed: Option<FieldSet> = None;
    for (element, below) in children.iter() {
        if let Some(node) = change(element, below) {
            changed.get_or_insert_with(|| children.clone()).replace(element, node);
        }
    }
    changed.map(|children| SetNode { member, children })
}
