//! The differences between two values: added, modified and removed paths, found in one walk over both.

use super::super::fieldpath::{FieldSet, PathElement, SetNode, equal_values};
use super::super::types::{ListType, MapType, Part, TypeId, TypeSchema};
use super::item_element;
use machinery::{Map, Text, Value};
use std::collections::BTreeMap;

/// The paths that differ. A path is in only one of the sets, unless the type of its value has changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    pub added: FieldSet,
    pub modified: FieldSet,
    pub removed: FieldSet,
}

impl Changes {
    /// Removes the fields that the endpoint resets.
    pub fn without(mut self, reset: Option<&FieldSet>) -> Changes {
        if let Some(reset) = reset {
            self.added.remove_recursively(reset);
            self.modified.remove_recursively(reset);
            self.removed.remove_recursively(reset);
        }
        self
    }

    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }
}

/// Compares two values that fit the same type.
pub(crate) fn compare(types: &TypeSchema, old: &Value, new: &Value) -> Changes {
    let mut delta = Delta::default();
    ComparisonWalk { types }.node(types.root(), Some(old), Some(new), &mut delta);
    Changes { added: delta.added.children, modified: delta.modified.children, removed: delta.removed.children }
}

#[derive(Default)]
struct Delta {
    added: SetNode,
    modified: SetNode,
    removed: SetNode,
}

impl Delta {
    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Adds the changes below an element. `element` is only called if there are any.
    fn take(&mut self, below: Delta, element: impl FnOnce() -> PathElement) {
        if below.is_empty() {
            return;
        }
        let element = element();
        let sides =
            [(&mut self.added, below.added), (&mut self.modified, below.modified), (&mut self.removed, below.removed)];
        let mut sides = sides.into_iter().filter(|(_, node)| !node.is_empty()).peekable();
        while let Some((side, node)) = sides.next() {
            if sides.peek().is_none() {
                // nearly all elements belong to one side, so that none is cloned
                side.children.insert(element, node);
                return;
            }
            side.children.insert(element.clone(), node);
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, _) => self.added.member = true,
            (_, None) => self.removed.member = true,
            (Some(old), Some(new)) if !equal_values(old, new) => self.modified.member = true,
            _ => {}
        }
    }
}

struct ComparisonWalk<'a> {
    types: &'a TypeSchema,
}

impl ComparisonWalk<'_> {
    fn node(&self, id: TypeId, old: Option<&Value>, new: Option<&Value>, delta: &mut Delta) {
        let atom = self.types.atom(id);
        let (old_parts, new_parts) = (atom.parts(old), atom.parts(new));
        let (old_part, new_part) = (atom.part(old_parts), atom.part(new_parts));
        let is_leaf = match (old, new) {
            (_, None) => self.part(old_part, old, new, delta),
            (None, _) => self.part(new_part, old, new, delta),
            _ if old_parts == new_parts => self.part(new_part, old, new, delta),
            _ => {
                self.part(old_part, old, new, delta);
                self.part(new_part, old, new, delta)
            }
        };
        if !is_leaf {
            match (old, new) {
                (None, _) => delta.added.member = true,
                (_, None) => delta.removed.member = true,
                _ => {}
            }
        }
    }

    /// Compares the values as one part of their type. Returns whether this part is a leaf.
    fn part(&self, part: Option<Part<'_>>, old: Option<&Value>, new: Option<&Value>, delta: &mut Delta) -> bool {
        let Some(part) = part.filter(|part| !part.is_whole(old, new)) else {
            delta.leaf(old, new);
            return true;
        };
        match part {
            Part::Map(map) => {
                let (old, new) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
                Map::paired(old, new).for_each(|(name, old, new)| self.member(map, name, old, new, delta));
            }
            Part::List(list) => {
                let [old, new] = [old, new].map(|value| value.and_then(Value::as_array).unwrap_or_default());
                self.list(list, old, new, delta);
            }
            Part::Scalar(_) => {}
        }
        false
    }

    fn member(&self, map: &MapType, name: &Text, old: Option<&Value>, new: Option<&Value>, delta: &mut Delta) {
        if let (Some(a), Some(b)) = (old, new)
            && !matches!(a, Value::Array(_) | Value::Object(_) | Value::Encoded(_))
            && a == b
        {
            // most fields; equal scalars differ by no type
            return;
        }
        let Some(child) = map.child(name) else { return };
        if map.skips(name) {
            return;
        }
        let mut below = Delta::default();
        self.node(child, old, new, &mut below);
        delta.take(below, || PathElement::TypeField(name.clone()));
    }

    fn list(&self, list: &ListType, old: &[Value], new: &[Value], delta: &mut Delta) {
        if old == new {
            return;
        }
        let mut items: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in old {
            if let Ok(element) = item_element(self.types, list, item) {
                items.entry(element).or_default().0.push(item);
            }
        }
        for item in new {
            if let Ok(element) = item_element(self.types, list, item) {
                items.entry(element).or_default().1.push(item);
            }
        }
        for (element, (old, new)) in items {
            let mut below = Delta::default();
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => {
                    self.node(list.element, old.first().copied(), new.first().copied(), &mut below);
                }
                ([_, _, ..], [_, _, ..]) => {
                    let same = old.len() == new.len() && old.iter().zip(&new).all(|(a, b)| equal_values(a, b));
                    below.modified.member = !same;
                }
                ([_, _, ..], new) => {
                    if let Some(new) = new.first() {
                        self.node(list.element, None, Some(new), &mut below);
                    }
                    below.removed.member = true;
                }
                (old, _) => {
                    if let Some(old) = old.first() {
                        self.node(list.element, Some(old), None, &mut below);
                    }
                    below.added.member = true;
                }
            }
            delta.take(below, || element);
        }
    }
}
