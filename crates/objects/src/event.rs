//! Events of objects.

use std::sync::Arc;

use machinery::Text;
use store::Revision;

use super::stored::Stored;

/// How a write changed its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// One change of one object. For a deletion, `object` is the last state, with the revision of the deletion.
#[derive(Debug)]
pub struct Event {
    pub revision: Revision,
    pub kind: EventKind,
    /// `namespace/name`, or `name`.
    pub path: Text,
    pub object: Arc<Stored>,
    /// The previous state, for selectors; absent if the object was added.
    pub previous: Option<Arc<Stored>>,
}
