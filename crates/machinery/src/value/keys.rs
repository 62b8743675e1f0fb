//! The order of the keys in a document, and its duplicate keys. A second, slower pass of the decoder records them.

pub use crate::limits::PATHS_BYTES_MAX;
pub use crate::limits::STRICT_ERRORS_MAX;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher};

/// Paths to report, such as `spec.list[0].a`, of at most [`PATHS_BYTES_MAX`] bytes together.
#[derive(Debug, Default)]
pub struct Paths {
    list: Vec<String>,
    bytes: usize,
}

impl Paths {
    /// Adds a path unless the bound is reached, in which case `path` is not called.
    pub fn add(&mut self, path: impl FnOnce() -> String) {
        if self.bytes >= PATHS_BYTES_MAX {
            return;
        }
        let path = path();
        self.bytes += path.len();
        if self.bytes <= PATHS_BYTES_MAX {
            self.list.push(path);
        }
    }

    /// The number of paths.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no paths.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The paths, in the order in which they were added.
    pub fn into_list(self) -> Vec<String> {
        self.list
    }
}

/// The order of the keys of a document, by their paths. A list item has the position of the last key before it.
#[derive(Debug, Default)]
pub struct KeyOrder {
    places: HashMap<u64, KeyPlace>,
    keys: u32,
}

#[derive(Clone, Copy, Debug)]
struct KeyPlace {
    first: u32,
    again: Option<u32>,
    last: u32,
}

fn hash(path: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(path.as_bytes());
    hasher.finish()
}

impl KeyOrder {
    /// The first position of a path.
    pub fn first(&self, path: &str) -> Option<u32> {
        self.places.get(&hash(path)).map(|place| place.first)
    }

    /// The second position of a key.
    pub fn again(&self, path: &str) -> Option<u32> {
        self.places.get(&hash(path)).and_then(|place| place.again)
    }

    /// The last position of a path.
    pub fn last(&self, path: &str) -> Option<u32> {
        self.places.get(&hash(path)).map(|place| place.last)
    }

    fn add_key(&mut self, path: u64) {
        let here = self.keys;
        self.keys += 1;
        let place = self.places.entry(path).or_insert(KeyPlace { first: here, again: None, last: here });
        if place.first != here {
            place.again.get_or_insert(here);
        }
        place.last = here;
    }

    fn add_item(&mut self, path: u64) {
        let here = self.keys.saturating_sub(1);
        self.places.entry(path).or_insert(KeyPlace { first: here, again: None, last: here }).last = here;
    }
}

/// The path of the value that is being decoded, with the state of the hash after each part, so that the time for
/// hashing a key depends only on the key's own length.
#[derive(Debug)]
pub(super) struct Trace {
    path: String,
    parts: Vec<(usize, DefaultHasher)>,
    reported: HashSet<u64>,
    duplicates: Paths,
    pub(super) order: Option<KeyOrder>,
}

impl Trace {
    /// Records duplicate keys, and the order of all keys if there is an `order` to add them to.
    pub(super) fn new(order: Option<KeyOrder>) -> Trace {
        Trace {
            path: String::new(),
            parts: vec![(0, DefaultHasher::new())],
            reported: HashSet::new(),
            duplicates: Paths::default(),
            order,
        }
    }

    pub(super) fn into_duplicates(self) -> Vec<String> {
        self.duplicates.into_list()
    }

    fn enter(&mut self, parts: &[&str]) -> u64 {
        let (_, mut hasher) = self.parts.last().cloned().unwrap_or_default();
        for part in parts {
            self.path.push_str(part);
            hasher.write(part.as_bytes());
        }
        let path = hasher.finish();
        self.parts.push((self.path.len(), hasher));
        path
    }

    /// Descends to a field.
    pub(super) fn enter_key(&mut self, key: &str) {
        let dot = if self.path.is_empty() { "" } else { "." };
        let path = self.enter(&[dot, key]);
        if let Some(order) = &mut self.order {
            order.add_key(path);
        }
    }

    /// Reports the field that was entered as one that its object already had.
    pub(super) fn report_duplicate(&mut self) {
        let path = self.parts.last().map_or(0, |(_, hasher)| hasher.finish());
        if self.duplicates.len() < STRICT_ERRORS_MAX && self.reported.insert(path) {
            self.duplicates.add(|| self.path.clone());
        }
    }

    pub(super) fn enter_item(&mut self, index: usize) {
        let path = self.enter(&["[", &index.to_string(), "]"]);
        if let Some(order) = &mut self.order {
            order.add_item(path);
        }
    }

    /// Returns to the parent.
    pub(super) fn leave(&mut self) {
        self.parts.pop();
        let length = self.parts.last().map_or(0, |(length, _)| *length);
        self.path.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{decode_strict, key_order};

    #[test]
    fn keys_and_items_have_positions() {
        let order = key_order(br#"{"b":[1,{"x":1},2],"a":{"y":1,"y":2,"y":3},"":0}"#);
        let places = ["b", "b[0]", "b[1]", "b[1].x", "b[2]", "a", "a.y", ""].map(|path| order.first(path));
        assert_eq!(places, [0, 0, 0, 1, 1, 2, 3, 6].map(Some));
        assert_eq!((order.again("a.y"), order.again("a"), order.first("c")), (Some(4), None, None));
        assert_eq!((order.last("a.y"), order.last("b[1]"), order.last("c")), (Some(5), Some(0), None));
    }

    /// The paths of all keys, and of all duplicates, took gigabytes.
    #[test]
    fn deep_duplicates_are_reported_within_a_bound() {
        let (depth, name) = (100, "n".repeat(2_000));
        let open = format!("{{\"{name}\":").repeat(depth);
        let keys = |text: &str| (0..40_000).map(|i| text.replace('#', &i.to_string())).collect::<Vec<_>>().join(",");
        let close = "}".repeat(depth);
        let same = format!("{open}{{{}}}{close}", keys("\"k\":1"));
        let duplicates = decode_strict(same.as_bytes()).unwrap().duplicates;
        assert_eq!((duplicates.len(), duplicates[0].len()), (1, depth * 2_001 + 1));
        let others = format!("{open}{{{}}}{close}", keys("\"k#\":1,\"k#\":2"));
        let duplicates = decode_strict(others.as_bytes()).unwrap().duplicates;
        assert_eq!(duplicates.len(), PATHS_BYTES_MAX / (depth * 2_001 + 2));
        let flat = format!("{{{}}}", keys("\"k#\":1,\"k#\":2"));
        assert_eq!(decode_strict(flat.as_bytes()).unwrap().duplicates.len(), STRICT_ERRORS_MAX);
    }
}
