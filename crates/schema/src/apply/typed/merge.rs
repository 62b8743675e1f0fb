//! Merges an applied configuration into the live value.

use super::super::fieldpath::PathElement;
use super::super::types::{ListType, MapType, Part, TypeId, TypeSchema};
use super::{TypeError, item_element};
use machinery::{Map, Text, Value};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// `live` with `applied` merged in: scalars and atomic values are replaced, the rest is merged member by member.
pub(crate) fn merge(types: &TypeSchema, live: &Value, applied: &Value) -> Result<Value, Vec<TypeError>> {
    let mut walk = Walk { types, errors: vec![] };
    let merged = walk.node(types.root(), Some(live), Some(applied));
    if walk.errors.is_empty() { Ok(merged.unwrap_or_default()) } else { Err(walk.errors) }
}

struct Walk<'a> {
    types: &'a TypeSchema,
    errors: Vec<TypeError>,
}

/// The items of a list by identity.
struct Indexed<'v> {
    order: Vec<PathElement>,
    /// An item that stands there more than once is null, so that nothing is merged into it.
    items: BTreeMap<PathElement, &'v Value>,
}

const DUPLICATED: &Value = &Value::Null;

impl Walk<'_> {
    /// `None` if nothing is left of the node.
    fn node(&mut self, id: TypeId, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
        let types = self.types;
        let atom = types.atom(id);
        let whole = || applied.or(live).cloned();
        if applied.is_none() {
            return whole();
        }
        match atom.part(atom.parts(applied)) {
            Some(Part::Map(map)) => {
                let (a, b) = (live.and_then(Value::as_object), applied.and_then(Value::as_object));
                if map.atomic || (a.is_none_or(Map::is_empty) && b.is_none_or(Map::is_empty)) {
                    return whole();
                }
                let merged = self.map(map, a, b);
                (!merged.is_empty()).then_some(Value::Object(merged))
            }
            Some(Part::List(list)) => {
                let (a, b) = (live.and_then(Value::as_array), applied.and_then(Value::as_array));
                if list.is_atomic() || (a.is_none_or(<[_]>::is_empty) && b.is_none_or(<[_]>::is_empty)) {
                    return whole();
                }
                let merged = self.list(list, a.unwrap_or_default(), b.unwrap_or_default());
                (!merged.is_empty()).then_some(Value::Array(merged))
            }
            _ => whole(),
        }
    }

    fn member(&mut self, map: &MapType, name: &Text, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
        if map.skips(name) {
            return None;
        }
        match map.child(name) {
            Some(child) => self.node(child, live, applied),
            None => applied.or(live).cloned(),
        }
    }

    fn map(&mut self, map: &MapType, live: Option<&Map>, applied: Option<&Map>) -> Map {
        let mut left = live.into_iter().flat_map(Map::iter).peekable();
        let mut right = applied.into_iter().flat_map(Map::iter).peekable();
        let mut merged = Vec::with_capacity(left.size_hint().0 + right.size_hint().0);
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some((a, _)), Some((b, _))) => a.as_str().cmp(b.as_str()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return Map::from_entries(merged, |_| {}),
            };
            let a = if order.is_le() { left.next() } else { None };
            let b = if order.is_ge() { right.next() } else { None };
            if let Some((name, _)) = a.or(b) {
                let value = self.member(map, name, a.map(|(_, v)| v), b.map(|(_, v)| v));
                merged.extend(value.map(|value| (name.clone(), value)));
            }
        }
    }

    fn index<'v>(&mut self, list: &ListType, items: &'v [Value], allow_duplicates: bool) -> Indexed<'v> {
        let mut indexed = Indexed { order: Vec::with_capacity(items.len()), items: BTreeMap::new() };
        for (i, item) in items.iter().enumerate() {
            match item_element(self.types, list, item) {
                Err(why) => self.errors.push(TypeError::new("", format!("element {i}: {why}"))),
                Ok(element) => {
                    if !indexed.items.contains_key(&element) {
                        indexed.items.insert(element.clone(), item);
                    } else if allow_duplicates {
                        indexed.items.insert(element.clone(), DUPLICATED);
                    } else {
                        let why = format!("duplicate entries for key {element}");
                        self.errors.push(TypeError::new("", why));
                        continue;
                    }
                    indexed.order.push(element);
                }
            }
        }
        indexed
    }

    /// Items of both keep the order of the applied list; items of the live list alone stay before the shared item that
    /// they stood before.
    fn list(&mut self, list: &ListType, live: &[Value], applied: &[Value]) -> Vec<Value> {
        let right = self.index(list, applied, false);
        let left = self.index(list, live, true);
        if !self.errors.is_empty() {
            return vec![];
        }
        let mut shared: VecDeque<&PathElement> = right.order.iter().filter(|e| left.items.contains_key(*e)).collect();
        let mut next_shared = shared.pop_front();
        let mut taken: BTreeSet<&PathElement> = BTreeSet::new();
        let mut merged = Vec::with_capacity(live.len().max(applied.len()));
        let (mut l, mut r) = (0, 0);
        while l < left.order.len() || r < right.order.len() {
            if let (Some(a), Some(b)) = (left.order.get(l), right.order.get(r)) {
                if a == b {
                    taken.insert(b);
                    let item = self.node(list.element, left.items.get(a).copied(), right.items.get(b).copied());
                    merged.extend(item);
                    l += 1;
                    r += 1;
                    next_shared = shared.pop_front();
                    continue;
                }
                if right.items.contains_key(a) && next_shared.is_some_and(|next| next != a) {
                    l += 1;
                    continue;
                }
            }
            if let Some(a) = left.order.get(l) {
                if !right.items.contains_key(a) {
                    merged.extend(self.node(list.element, live.get(l), None));
                    l += 1;
                    continue;
                }
                if taken.contains(a) {
                    l += 1;
                }
            }
            if let Some(b) = right.order.get(r) {
                taken.insert(b);
                merged.extend(self.node(list.element, left.items.get(b).copied(), right.items.get(b).copied()));
                r += 1;
                if next_shared == Some(b) {
                    next_shared = shared.pop_front();
                }
            }
        }
        merged
    }
}
