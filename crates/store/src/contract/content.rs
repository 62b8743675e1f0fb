//! All that a store holds at one moment, for backups and checkpoints.

use std::collections::HashMap;

use bytes::Bytes;
use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use super::{Entry, Revision, Snapshot};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveValue {
    pub revision: Revision,
    pub value: Bytes,
}

/// A persistent map, whose copies share what does not change.
pub type Map = OrdMap<Bytes, LiveValue>;

/// Bytes of the values.
pub fn bytes_of(map: &Map) -> u64 {
    map.values().map(|live| live.value.len() as u64).sum()
}

/// The number of a branch: the revision of the entry of the log that begins it.
pub type Number = Revision;

/// A branch at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub number: Number,
    pub id: Bytes,
    /// The number of the branch that it began as a fork of.
    pub source: Number,
    pub label: Bytes,
    /// Its beginning.
    pub base: Map,
    pub live: Map,
    pub head: Revision,
}

/// All branches of a log at one of its revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Images {
    pub at: Revision,
    /// Head and compacted revision of the store itself.
    pub root: (Revision, Revision),
    /// By rising number.
    pub branches: Vec<Image>,
}

/// All that a store holds at one moment.
pub struct Content {
    /// The live keys of the store itself. The revision is that of the log, which counts the writes of branches too.
    pub snapshot: Snapshot,
    /// Its branches, if there have ever been some.
    pub(crate) branches: Option<Images>,
}

impl Content {
    /// The number of branches.
    pub fn branches(&self) -> usize {
        self.branches.as_ref().map_or(0, |images| images.branches.len())
    }

    /// The live keys of a branch; `None` if there is none with this id.
    pub fn branch(&self, id: &[u8]) -> Option<Snapshot> {
        let image = self.branches.as_ref()?.branches.iter().find(|image| image.id == id)?;
        let entry = |(key, live): (&Bytes, &LiveValue)| Entry {
            key: key.clone(),
            value: live.value.clone(),
            revision: live.revision,
        };
        Some(Snapshot { revision: image.head, entries: image.live.iter().map(entry).collect() })
    }

    /// Passes the id of a branch, and each key and value that it holds or began with, to `each`. What branches share with
    /// those that they were forked from is passed once.
    pub fn for_each_branch_value(&self, mut each: impl FnMut(&Bytes, &Bytes, &Bytes)) {
        let empty = Map::new();
        // what has been passed, by the number of the branch, or of the source, that it is of
        let mut passed: HashMap<Number, &Map> = HashMap::new();
        for image in self.branches.iter().flat_map(|images| &images.branches) {
            let before = passed.get(&image.source).copied().unwrap_or(&empty);
            for (earlier, later) in [(before, &image.base), (&image.base, &image.live)] {
                for item in earlier.diff(later) {
                    if let DiffItem::Add(key, live) | DiffItem::Update { new: (key, live), .. } = item {
                        each(&image.id, key, &live.value);
                    }
                }
            }
            passed.insert(image.source, &image.base);
            passed.insert(image.number, &image.live);
        }
    }
}

impl From<Snapshot> for Content {
    fn from(snapshot: Snapshot) -> Content {
        Content { snapshot, branches: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&'static str, &'static str)]) -> Map {
        let live = |value: &'static str| LiveValue { revision: 1, value: value.into() };
        entries.iter().map(|(key, value)| (Bytes::from(*key), live(value))).collect()
    }

    #[test]
    fn each_value_of_branches_is_passed_once() {
        let image = |number, source, base: &Map, live: &Map| Image {
            number,
            id: number.to_string().into(),
            source,
            label: Bytes::new(),
            base: base.clone(),
            live: live.clone(),
            head: number,
        };
        let home = map(&[("a", "1"), ("b", "1")]);
        let changed = map(&[("a", "2"), ("b", "1")]);
        let fork = map(&[("a", "2"), ("c", "1")]);
        let branches = vec![
            image(1, 0, &home, &changed),
            image(2, 0, &home, &home),
            image(3, 1, &changed, &fork),
            // its source is gone
            image(5, 4, &fork, &Map::new()),
        ];
        let snapshot = Snapshot { revision: 9, entries: vec![] };
        let content = Content { snapshot, branches: Some(Images { branches, ..Images::default() }) };
        let mut passed = vec![];
        content.for_each_branch_value(|id, key, value| {
            passed.push([id, key, value].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).join(" "));
        });
        assert_eq!(passed, ["1 a 1", "1 b 1", "1 a 2", "3 c 1", "5 a 2", "5 c 1"]);
    }
}
