//! Copies of a store that several servers share, whose engine can't fork.

use std::sync::Arc;

use bytes::Bytes;

use super::{BoxFuture, Entry, Revision, Store, StoreError};

/// Where the content of a new workspace comes from.
pub enum CopySource<'a> {
    /// The store itself, at a revision.
    Store(Revision),
    /// The copy with this id, at a revision or as it is.
    Copy(&'a str, Option<Revision>),
    Entries(Vec<Entry>),
}

/// Copies of a store: stores with keys of their own, which are those of the source as callers see them, and with the same revisions.
///
/// An id is used for one copy only. A copy can be opened once it is whole. One that was not finished can't be finished later.
pub trait Copying: Send + Sync {
    /// A copy as a store; `None` unless it is whole.
    fn open<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Arc<dyn Store>>, StoreError>>;

    /// Makes a copy of those keys that `keeps` names. [`StoreError::Compacted`] if the source does not have that revision any more.
    fn copy<'a>(
        &'a self,
        id: &'a str,
        source: CopySource<'a>,
        keeps: &'a (dyn Fn(&Bytes) -> bool + Sync),
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Ends a copy for all servers: it takes no more writes and reports no later revision, or is never whole.
    fn end<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Ends a copy and removes its keys.
    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The ids of all copies that begin with `prefix` and may have keys, whole or not.
    fn copies<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>>;
}
