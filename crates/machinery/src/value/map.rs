//! Object fields, sorted by key.

use super::{Text, Value};

/// Up to this number of entries, comparing all pairs finds duplicates faster than sorting.
const PAIRWISE_MAX: usize = 8;
/// Up to this number of entries, a linear search is faster than a binary search.
const LINEAR_SEARCH_MAX: usize = 16;

fn has_duplicates(entries: &[(Text, Value)]) -> bool {
    let same = |a: &str, b: &str| a.len() == b.len() && a == b;
    entries.iter().enumerate().any(|(i, (key, _))| entries[..i].iter().any(|(other, _)| same(key, other)))
}

/// The position of the item named `name` among items sorted by name, which `name_of` returns. Few names have the same length, so
/// that comparing lengths first is faster among few items than a binary search.
pub fn find_sorted<T>(items: &[T], name: &str, name_of: impl Fn(&T) -> &Text) -> Option<usize> {
    if items.len() <= LINEAR_SEARCH_MAX {
        return items.iter().map(name_of).position(|other| other.len() == name.len() && other == name);
    }
    items.binary_search_by(|item| name_of(item).as_str().cmp(name)).ok()
}

/// The fields of an object: a vector sorted by key (bytewise), without duplicates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    entries: Vec<(Text, Value)>,
}

impl Map {
    /// An empty map.
    pub fn new() -> Map {
        Map::default()
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the map has no fields.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The position of a key, or where it would be inserted.
    fn position(&self, key: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|(k, _)| k.as_str().cmp(key))
    }

    fn find(&self, key: &str) -> Option<usize> {
        find_sorted(&self.entries, key, |(k, _)| k)
    }

    /// Whether the map has a field `key`.
    pub fn contains_key(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// The value of the field `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.find(key).and_then(|i| self.entries.get(i)).map(|(_, v)| v)
    }

    /// The value of the field `key`, for changes.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        let i = self.find(key)?;
        self.entries.get_mut(i).map(|(_, v)| v)
    }

    /// The value, and the key as it is stored, so that its text can be shared.
    pub fn get_key_value(&self, key: &str) -> Option<(&Text, &Value)> {
        self.find(key).and_then(|i| self.entries.get(i)).map(|(k, v)| (k, v))
    }

    /// Sets `key` and returns its previous value.
    pub fn insert(&mut self, key: impl Into<Text>, value: Value) -> Option<Value> {
        let key = key.into();
        match self.position(&key) {
            Ok(i) => self.entries.get_mut(i).map(|(_, v)| std::mem::replace(v, value)),
            Err(i) => {
                self.entries.insert(i, (key, value));
                None
            }
        }
    }

    /// The value of `key`, inserted as null if it is absent.
    pub fn entry(&mut self, key: &str) -> &mut Value {
        let i = match self.position(key) {
            Ok(i) => i,
            Err(i) => {
                self.entries.insert(i, (Text::from(key), Value::Null));
                i
            }
        };
        &mut self.entries[i].1
    }

    /// Removes the field `key` and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let i = self.find(key)?;
        Some(self.entries.remove(i).1)
    }

    /// Keeps the fields for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&Text, &mut Value) -> bool) {
        self.entries.retain_mut(|(k, v)| keep(k, v));
    }

    /// The fields, sorted by key.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Text, &Value)> + ExactSizeIterator + Clone {
        self.entries.iter().map(|(k, v)| (k, v))
    }

    /// The fields, sorted by key, for changes of their values.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&Text, &mut Value)> + ExactSizeIterator {
        self.entries.iter_mut().map(|(k, v)| (&*k, v))
    }

    /// The keys, sorted.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Text> + ExactSizeIterator + Clone {
        self.entries.iter().map(|(k, _)| k)
    }

    /// The values, sorted by key.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator + Clone {
        self.entries.iter().map(|(_, v)| v)
    }

    /// The values, sorted by key, for changes.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Value> + ExactSizeIterator {
        self.entries.iter_mut().map(|(_, v)| v)
    }

    /// Pairs the fields of two maps: each key of either, sorted, with its value in both.
    pub fn paired<'m>(
        left: Option<&'m Map>,
        right: Option<&'m Map>,
    ) -> impl Iterator<Item = (&'m Text, Option<&'m Value>, Option<&'m Value>)> {
        let mut left = left.into_iter().flat_map(Map::iter).peekable();
        let mut right = right.into_iter().flat_map(Map::iter).peekable();
        std::iter::from_fn(move || {
            let order = match (left.peek(), right.peek()) {
                (Some((a, _)), Some((b, _))) => a.as_str().cmp(b.as_str()),
                (a, b) => b.is_some().cmp(&a.is_some()),
            };
            let a = if order.is_le() { left.next() } else { None };
            let b = if order.is_ge() { right.next() } else { None };
            Some((a.or(b)?.0, a.map(|(_, value)| value), b.map(|(_, value)| value)))
        })
    }

    /// A map of entries in any order, possibly with duplicate keys, which may only be iterated.
    pub(super) fn unsorted(entries: Vec<(Text, Value)>) -> Map {
        Map { entries }
    }

    /// Makes a map of entries in any order. If keys are equal, the last entry wins; `duplicate` is called for each
    /// repetition of a key, in the order of the entries.
    pub fn from_entries(entries: Vec<(Text, Value)>, mut duplicate: impl FnMut(&str)) -> Map {
        Map::sorted(entries, &mut duplicate)
    }

    /// As [`Map::from_entries`]. Not generic, since a sort is 9 KB of code, which each caller would have for itself.
    fn sorted(mut entries: Vec<(Text, Value)>, duplicate: &mut dyn FnMut(&str)) -> Map {
        if entries.is_sorted_by(|a, b| a.0 < b.0) {
            return Map { entries };
        }
        if entries.len() <= PAIRWISE_MAX && !has_duplicates(&entries) {
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            return Map { entries };
        }
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by(|&a, &b| entries[a].0.cmp(&entries[b].0));
        let mut again: Vec<usize> =
            order.windows(2).filter(|w| entries[w[0]].0 == entries[w[1]].0).map(|w| w[1]).collect();
        again.sort_unstable();
        again.iter().for_each(|&i| duplicate(&entries[i].0));
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                std::mem::swap(later, earlier);
            }
            same
        });
        Map { entries }
    }
}

impl FromIterator<(Text, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (Text, Value)>>(iter: I) -> Map {
        Map::from_entries(iter.into_iter().collect(), |_| {})
    }
}

impl IntoIterator for Map {
    type Item = (Text, Value);
    type IntoIter = std::vec::IntoIter<(Text, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_duplicate_key_wins_and_is_reported() {
        let entries = [("b", 1), ("a", 2), ("b", 3), ("b", 4)].map(|(k, v)| (Text::from(k), Value::from(v)));
        let mut reported = vec![];
        let map = Map::from_entries(entries.to_vec(), |k| reported.push(k.to_owned()));
        assert_eq!(Value::Object(map).to_json(), r#"{"a":2,"b":4}"#);
        assert_eq!(reported, ["b", "b"]);
    }
}
