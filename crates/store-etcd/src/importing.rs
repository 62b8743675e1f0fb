//! The mark of an import. Without it, a server would serve the part that an interrupted import has written, and controllers would
//! take that for the whole truth.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use store::{BeforeImport, Expected, Refused, Revision, Store as _, StoreError, Write};

use crate::Etcd;
use crate::failure::Failure;
use crate::messages as m;

/// The mark that an import has set.
pub struct ImportMark {
    pub before: BeforeImport,
    revision: Revision,
}

impl Etcd {
    /// Marks the store before an import writes anything else: until [`Etcd::finish_import`], no server begins to read it.
    pub async fn begin_import(&self) -> Result<ImportMark, StoreError> {
        self.is_admitted.store(true, Ordering::Relaxed);
        let put = Write { key: self.keys.importing(), expected: Expected::Absent, value: Some(Bytes::new()) };
        match self.commit(put).await {
            Ok(revision) => Ok(ImportMark { before: BeforeImport::Store, revision }),
            Err(Refused::Conflict(found)) => {
                let gone = || StoreError::Unavailable("another import has just ended".to_owned());
                Ok(ImportMark { before: BeforeImport::Unfinished, revision: found.ok_or_else(gone)? })
            }
            Err(Refused::Failed(error)) => Err(error),
        }
    }

    /// Removes the mark: everything is imported, or the import has written nothing.
    pub async fn finish_import(&self, mark: &ImportMark) -> Result<(), StoreError> {
        let key = self.keys.importing();
        match self.commit(Write { key, expected: Expected::At(mark.revision), value: None }).await {
            // an operator has removed it
            Ok(_) | Err(Refused::Conflict(_)) => Ok(()),
            Err(Refused::Failed(error)) => Err(error),
        }
    }

    /// Fails if an import into the store was not completed. Once it has succeeded, it does not ask again: a server goes on while
    /// objects are imported.
    pub(crate) async fn admit(&self) -> Result<(), Failure> {
        if self.is_admitted.load(Ordering::Relaxed) {
            return Ok(());
        }
        let key = self.keys.importing();
        let found = self.read(m::RangeRequest { key: key.clone(), keys_only: true, ..Default::default() }).await?;
        if !found.kvs.is_empty() {
            return Err(Failure::Unfinished(format!(
                "etcd: an import into it was not completed; run \"pintle import --conflict skip\" with the same file again, or \
                 delete the key {} to use the part that was imported",
                key.escape_ascii()
            )));
        }
        self.is_admitted.store(true, Ordering::Relaxed);
        Ok(())
    }
}
