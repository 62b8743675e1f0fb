//! Merges an applied configuration into the live value.

use super::super::fieldpath::PathElement;
use super::super::types::{ListType, MapType, Part, TypeId, TypeSchema};
use super::{Mismatch, item_element};
use machinery::{Map, Text, Value};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

/// Merges `applied` into `live`. Scalars and atomic values are replaced, and everything else is merged field by field.
pub(crate) fn merge(types: &TypeSchema, live: &Value, applied: &Value) -> Result<Value, Vec<Mismatch>> {
    let mut walk = MergeWalk { types, errors: vec![] };
    let merged = walk.node(types.root(), Some(live), Some(applied));
    if walk.errors.is_empty() { Ok(merged.unwrap_or_default()) } else { Err(walk.errors) }
}

struct MergeWalk<'a> {
    types: &'a TypeSchema,
    errors: Vec<Mismatch>,
}

/// Stands for the live item if several have the key of an applied item. Merging with null leaves the applied item
/// unchanged.
const AMBIGUOUS: &Value = &Value::Null;

impl MergeWalk<'_> {
    /// Merges a node. `None` if nothing is left of it.
    fn node(&mut self, id: TypeId, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
        let types = self.types;
        let atom = types.atom(id);
        let whole = || applied.or(live).cloned();
        if applied.is_none() {
            return whole();
        }
        match atom.part(atom.parts(applied)).filter(|part| !part.is_whole(live, applied)) {
            Some(Part::Map(map)) => {
                let fields = Map::paired(live.and_then(Value::as_object), applied.and_then(Value::as_object));
                let merged = fields.filter_map(|(name, live, applied)| {
                    self.field(map, name, live, applied).map(|value| (name.clone(), value))
                });
                let merged: Map = merged.collect();
                (!merged.is_empty()).then_some(Value::Object(merged))
            }
            Some(Part::List(list)) => {
                let [live, applied] = [live, applied].map(|value| value.and_then(Value::as_array).unwrap_or_default());
                let merged = self.list(list, live, applied);
                (!merged.is_empty()).then_some(Value::Array(merged))
            }
            _ => whole(),
        }
    }

    fn field(&mut self, map: &MapType, name: &Text, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
        if map.skips(name) {
            return None;
        }
        match map.child(name) {
            Some(child) => self.node(child, live, applied),
            None => applied.or(live).cloned(),
        }
    }

    /// The identity of the item at `index`. An item without one is reported.
    fn identify(&mut self, list: &ListType, index: usize, item: &Value) -> Option<PathElement> {
        let element = item_element(self.types, list, item);
        element.map_err(|why| self.errors.push(Mismatch::new("", format!("element {index}: {why}")))).ok()
    }

    /// The position of each key in the applied list, which must not repeat keys.
    fn positions(&mut self, list: &ListType, applied: &[Value]) -> BTreeMap<PathElement, usize> {
        let mut positions = BTreeMap::new();
        for (i, item) in applied.iter().enumerate() {
            let Some(element) = self.identify(list, i, item) else { continue };
            match positions.entry(element) {
                Entry::Vacant(free) => drop(free.insert(i)),
                Entry::Occupied(taken) => {
                    let why = format!("duplicate entries for key {}", taken.key());
                    self.errors.push(Mismatch::new("", why));
                }
            }
        }
        positions
    }

    /// Merges lists. The applied items keep their order, each merged with the live item of the same key. An item that
    /// only the live list has goes between them, after as many applied items as [`Order`] has let pass by the time the
    /// walk over the live list reaches it.
    fn list(&mut self, list: &ListType, live: &[Value], applied: &[Value]) -> Vec<Value> {
        let positions = self.positions(list, applied);
        let mut partners: Vec<Option<&Value>> = vec![None; applied.len()];
        let mut matches: Vec<Option<usize>> = Vec::with_capacity(live.len());
        for (i, item) in live.iter().enumerate() {
            let position = self.identify(list, i, item).and_then(|element| positions.get(&element).copied());
            if let Some(partner) = position.and_then(|position| partners.get_mut(position)) {
                *partner = Some(partner.map_or(item, |_| AMBIGUOUS));
            }
            matches.push(position);
        }
        if !self.errors.is_empty() {
            return vec![];
        }
        let mut order = Order::new(&partners);
        let mut merged = Vec::with_capacity(live.len().max(applied.len()));
        for (item, position) in live.iter().zip(matches) {
            match position {
                None => merged.push(item.clone()),
                Some(position) => {
                    for i in order.pass(position) {
                        merged.extend(self.node(list.element, partners[i], Some(&applied[i])));
                    }
                }
            }
        }
        for i in order.passed..applied.len() {
            merged.extend(self.node(list.element, partners[i], Some(&applied[i])));
        }
        merged
    }
}

/// The position up to which the applied list has been emitted while the live list is walked.
///
/// The shared items are expected in the order of the applied list. Where the live list keeps that order, everything up
/// to the shared item passes. A shared item that comes too early waits for its turn. Once all shared items have passed,
/// each further one, which then came too late or is a duplicate, lets one of the remaining applied items pass.
struct Order<'a> {
    partners: &'a [Option<&'a Value>],
    /// The number of applied items that have been emitted.
    passed: usize,
    /// The index of the first shared item after them, or the length of the list.
    next_shared: usize,
}

impl<'a> Order<'a> {
    fn new(partners: &'a [Option<&'a Value>]) -> Order<'a> {
        let mut order = Order { partners, passed: 0, next_shared: 0 };
        order.pass_to(0);
        order
    }

    fn pass_to(&mut self, end: usize) -> Range<usize> {
        let start = std::mem::replace(&mut self.passed, end);
        let shared = self.partners.iter().enumerate().skip(self.next_shared.max(end)).find(|(_, p)| p.is_some());
        self.next_shared = shared.map_or(self.partners.len(), |(i, _)| i);
        start..end
    }

    /// The applied items to emit when the walk comes to the live item that is shared with `position`.
    fn pass(&mut self, position: usize) -> Range<usize> {
        let end = self.partners.len();
        if self.next_shared == end {
            self.pass_to(end.min(self.passed + 1))
        } else if self.next_shared == position {
            self.pass_to(position + 1)
        } else {
            self.passed..self.passed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_merged_lists() {
        let list = machinery::json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"});
        let schema = machinery::json!({"type": "object", "properties": {"list": (list)}});
        let types = TypeSchema::compile(&schema);
        let cases = [
            ("ab", "ab", "ab"),
            ("", "ab", "ab"),
            ("ab", "", "ab"),
            // an item that only the live list has stays in front of the shared item that it preceded
            ("xayb", "ab", "xayb"),
            ("xab", "nab", "xnab"),
            ("abx", "ban", "bxan"),
            ("axb", "ba", "xba"),
            // the applied order wins, and an item that comes too early waits
            ("abc", "cba", "cba"),
            ("axbycz", "cab", "xyczab"),
            ("bxa", "ab", "xab"),
        ];
        let items = |text: &str| text.chars().map(|c| Value::from(c.to_string())).collect::<Value>();
        for (live, applied, want) in cases {
            let object = |list: &str| Value::from([("list", items(list))]);
            let merged = merge(&types, &object(live), &object(applied)).unwrap();
            assert_eq!(merged, object(want), "{live} {applied}");
        }
    }
}
