//! All that a store holds at one moment, for backups and checkpoints.

use bytes::Bytes;
use imbl::OrdMap;

use super::{Entry, Revision, Snapshot};

/// The live value of a key.
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
    /// What it began with.
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
}

impl From<Snapshot> for Content {
    fn from(snapshot: Snapshot) -> Content {
        Content { snapshot, branches: None }
    }
}
