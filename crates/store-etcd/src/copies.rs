//! Copies of the store, each below a prefix of its own (docs/src/design/etcd.md, "Workspaces").
//!
//! Invariant: nothing is written to a copy after it was ended, nor by its copier after it has begun, whatever calls are still on their
//! way: each transaction compares the key that lists the copy, and the one that makes it a store.

use bytes::Bytes;
use store::{CopySource, Entry, Revision};

use crate::client::Client;
use crate::failure::Failure;
use crate::keys::KeySpace;
use crate::lease::Leases;
use crate::limits;
use crate::messages::{self as m, Response as _, number, operation, revision};
use crate::pages::{Pages, after};

#[derive(Clone, Copy)]
pub struct Copies<'a> {
    pub client: &'a Client,
    pub keys: &'a KeySpace,
    pub leases: Option<&'a Leases>,
}

/// A copy that is being made.
pub struct Copier<'a> {
    copies: Copies<'a>,
    keys: KeySpace,
    /// The comparisons that hold as long as nothing else has ended or finished it.
    compare: Vec<m::Compare>,
    keeps: &'a (dyn Fn(&Bytes) -> bool + Sync),
}

/// Some keys of a copy, which one transaction writes.
#[derive(Default)]
struct CopyBatch {
    operations: Vec<m::RequestOp>,
    bytes: usize,
}

impl CopyBatch {
    /// Whether it has no room for an entry.
    fn is_full(&self, entry: &Entry) -> bool {
        let bytes = self.bytes + entry.value.len();
        self.operations.len() >= limits::COPY_KEYS || !self.operations.is_empty() && bytes > limits::COPY_BYTES
    }
}

impl<'a> Copier<'a> {
    /// Lists a copy, so that it is removed if it is never finished.
    pub async fn begin(
        copies: Copies<'a>,
        id: &str,
        keeps: &'a (dyn Fn(&Bytes) -> bool + Sync),
    ) -> Result<Copier<'a>, Failure> {
        let (keys, listing) = (copies.keys.of_copy(id), copies.keys.listing(id));
        let put = m::PutRequest { key: listing.clone(), ..Default::default() };
        let request = m::TxnRequest {
            compare: vec![m::Compare::revision(listing.clone(), 0)],
            success: vec![operation(m::Op::Put(put))],
            failure: vec![],
        };
        let listed: m::TxnResponse = copies.client.write(m::TXN, &request).await?;
        if !listed.succeeded {
            return Err(Failure::Ended);
        }
        let compare = vec![m::Compare::revision(listing, listed.revision()), m::Compare::revision(keys.begun_key(), 0)];
        Ok(Copier { copies, keys, compare, keeps })
    }

    /// A transaction can be tried again: it has no effect once the copy has begun.
    async fn write(&self, success: Vec<m::RequestOp>) -> Result<m::TxnResponse, Failure> {
        let look = m::RangeRequest { key: self.keys.begun_key(), keys_only: true, ..Default::default() };
        let failure = vec![operation(m::Op::Range(look))];
        let request = m::TxnRequest { compare: self.compare.clone(), success, failure };
        self.copies.client.read(m::TXN, &request).await
    }

    async fn flush(&self, batch: &mut CopyBatch) -> Result<(), Failure> {
        let CopyBatch { operations, .. } = std::mem::take(batch);
        if operations.is_empty() || self.write(operations).await?.succeeded { Ok(()) } else { Err(Failure::Ended) }
    }

    async fn add(&self, batch: &mut CopyBatch, entry: Entry) -> Result<(), Failure> {
        if !(self.keeps)(&entry.key) {
            return Ok(());
        }
        if batch.is_full(&entry) {
            self.flush(batch).await?;
        }
        let lease = match self.copies.leases {
            Some(leases) => leases.of(self.copies.client, &entry.key).await?,
            None => 0,
        };
        batch.bytes += entry.value.len();
        let put = m::PutRequest { key: self.keys.to_etcd(&entry.key), value: entry.value, lease };
        batch.operations.push(operation(m::Op::Put(put)));
        Ok(())
    }

    async fn copy_range(&self, source: &KeySpace, at: Revision) -> Result<(), Failure> {
        let (key, range_end) = source.range();
        let (limit, revision) = (limits::COPY_PAGE, number(at));
        let mut pages = Pages::of(m::RangeRequest { key, range_end, limit, revision, ..Default::default() });
        let mut batch = CopyBatch::default();
        while let Some(page) = pages.next(self.copies.client).await? {
            for kv in page.kvs.into_iter().filter(|kv| !source.is_internal(&kv.key)) {
                self.add(&mut batch, source.entry(kv)).await?;
            }
        }
        self.flush(&mut batch).await
    }

    pub async fn copy_entries(&self, entries: Vec<Entry>) -> Result<(), Failure> {
        let mut batch = CopyBatch::default();
        for entry in entries {
            self.add(&mut batch, entry).await?;
        }
        self.flush(&mut batch).await
    }

    /// Makes the copy whole.
    pub async fn finish(&self) -> Result<(), Failure> {
        let put = m::PutRequest { key: self.keys.begun_key(), ..Default::default() };
        let finished = self.write(vec![operation(m::Op::Put(put))]).await?;
        let found = finished.responses.first().and_then(|found| found.range.as_ref()?.kvs.first());
        // an attempt whose response was lost may have finished it
        if finished.succeeded || found.is_some() { Ok(()) } else { Err(Failure::Ended) }
    }
}

impl Copies<'_> {
    async fn read(&self, request: m::RangeRequest) -> Result<m::RangeResponse, Failure> {
        self.client.read(m::RANGE, &request).await
    }

    pub async fn copy(
        &self,
        id: &str,
        source: CopySource<'_>,
        keeps: &(dyn Fn(&Bytes) -> bool + Sync),
    ) -> Result<(), Failure> {
        let copier = Copier::begin(*self, id, keeps).await?;
        match source {
            CopySource::Store(at) => copier.copy_range(self.keys, at).await?,
            CopySource::Copy(from, at) => {
                let source = self.keys.of_copy(from);
                let revision = at.map_or(0, number);
                let begun = m::RangeRequest { key: source.begun_key(), revision, ..Default::default() };
                let begun = self.read(begun).await?;
                if begun.kvs.is_empty() {
                    // it was not whole then, or has ended
                    return Err(Failure::Compacted);
                }
                copier.copy_range(&source, at.unwrap_or(begun.revision())).await?;
            }
            CopySource::Entries(entries) => copier.copy_entries(entries).await?,
        }
        copier.finish().await
    }

    /// The keys of a copy, if it is whole.
    pub async fn whole(&self, id: &str) -> Result<Option<KeySpace>, Failure> {
        let keys = self.keys.of_copy(id);
        let begun = m::RangeRequest { key: keys.begun_key(), keys_only: true, ..Default::default() };
        let begun = self.read(begun).await?.kvs.first().map(|kv| revision(kv.mod_revision));
        Ok(begun.map(|begun| keys.begun_at(begun)))
    }

    /// Returns whether there was something to end.
    pub async fn end(&self, id: &str) -> Result<bool, Failure> {
        let listing = self.keys.listing(id);
        // written again, so that a copier finds it changed
        let put = m::PutRequest { key: listing.clone(), ..Default::default() };
        let delete = m::DeleteRangeRequest { key: self.keys.of_copy(id).begun_key(), ..Default::default() };
        let request = m::TxnRequest {
            compare: vec![m::Compare::revision(listing, 0)],
            success: vec![],
            failure: vec![operation(m::Op::Put(put)), operation(m::Op::Delete(delete))],
        };
        let ended: m::TxnResponse = self.client.read(m::TXN, &request).await?;
        Ok(!ended.succeeded)
    }

    pub async fn remove(&self, id: &str) -> Result<(), Failure> {
        if !self.end(id).await? {
            return Ok(());
        }
        let mut pages = Pages::of(keys_of(self.keys.of_copy(id).range()));
        while let Some(page) = pages.next(self.client).await? {
            if let (Some(first), Some(last)) = (page.kvs.first(), page.kvs.last()) {
                self.delete(m::DeleteRangeRequest { key: first.key.clone(), range_end: after(&last.key) }).await?;
            }
        }
        self.delete(m::DeleteRangeRequest { key: self.keys.listing(id), ..Default::default() }).await
    }

    async fn delete(&self, keys: m::DeleteRangeRequest) -> Result<(), Failure> {
        let request = m::TxnRequest { success: vec![operation(m::Op::Delete(keys))], ..Default::default() };
        self.client.read(m::TXN, &request).await.map(|_: m::TxnResponse| ())
    }

    pub async fn list(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        let (key, range_end, length) = self.keys.listed(prefix);
        let mut pages = Pages::of(keys_of((key, range_end)));
        let mut ids = vec![];
        while let Some(page) = pages.next(self.client).await? {
            let id = |kv: &m::KeyValue| Some(std::str::from_utf8(kv.key.get(length..)?).ok()?.to_owned());
            ids.extend(page.kvs.iter().filter_map(id));
        }
        Ok(ids)
    }
}

/// Requests the keys of a range, without values.
fn keys_of((key, range_end): (Bytes, Bytes)) -> m::RangeRequest {
    m::RangeRequest { key, range_end, limit: limits::PAGE, keys_only: true, ..Default::default() }
}
