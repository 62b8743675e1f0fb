//! What happened to an object.

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

/// One change of one object. Of a deletion, `object` is the last state under the revision of the deletion.
#[derive(Debug)]
pub struct Event {
    pub revision: Revision,
    pub kind: EventKind,
    /// `namespace/name`, or `name`.
    pub path: Text,
    pub object: Arc<Stored>,
    /// The state before, for selectors; absent when the object was added.
    pub previous: Option<Arc<Stored>>,
}
