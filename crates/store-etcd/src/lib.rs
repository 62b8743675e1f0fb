//! The [`Store`] contract over etcd 3.4 to 3.7 (docs/src/design/etcd.md).
//!
//! Invariants: revisions are etcd's, which rise with gaps. A write is one transaction that compares the revision of its key.
//! The only state is connections and the version of the compaction key. A cluster with another id than the expected one is
//! never used. Read [`Etcd`], then `client` (calls and failover), `follow` (watches), `copies`.

mod client;
mod cluster;
mod copies;
mod error;
mod failure;
mod follow;
mod keys;
mod lease;
mod limits;
mod member;
mod messages;
mod options;
mod pages;
#[cfg(test)]
mod tests;
mod trouble;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use store::contract::BoxFuture;
use store::{
    BeforeImport, Changes, CopySource, Copying, Expected, Refused, Revision, Snapshot, Store, StoreError, Write,
};
use tokio::sync::{Mutex, watch};

use client::Client;
use copies::Copies;
use failure::Failure;
use keys::KeySpace;
use lease::Leases;
use messages::{self as m, Response as _, number, operation, revision};
use pages::Pages;

pub use error::{IdError, OptionsError};
pub use options::{Credentials, Options, normalise};

/// The key by which kube-apiservers coordinate compactions.
const COMPACTION_KEY: Bytes = Bytes::from_static(b"compact_rev_key");

/// The result of the last read of the head.
struct Head {
    /// The result is valid for callers with numbers up to this one.
    covers: u64,
    result: Result<Revision, StoreError>,
}

pub struct Etcd {
    client: Arc<Client>,
    keys: KeySpace,
    /// The newest head that was returned to a caller; followers request progress until they reach it.
    wanted: watch::Sender<Revision>,
    head_calls: AtomicU64,
    head: Mutex<Head>,
    leases: Option<Arc<Leases>>,
    /// The version of [`COMPACTION_KEY`] when it was last read.
    compactions: Mutex<Option<i64>>,
    /// Whether objects may be read: no import was in progress at the first read, or this is the store of the import.
    is_admitted: AtomicBool,
}

/// The mark that an import has set. Without it, a server would serve the part that an interrupted import has written, and
/// controllers would take that for the whole truth.
pub struct ImportMark {
    pub before: BeforeImport,
    revision: Revision,
}

impl Etcd {
    /// Creates a store; it does not connect yet.
    pub fn new(options: &Options) -> Result<Etcd, OptionsError> {
        let prefix = normalise(&options.prefix);
        let leases = options
            .expiring
            .clone()
            .map(|(folder, lifetime)| Arc::new(Leases::new(format!("{prefix}/{folder}/").into(), lifetime)));
        Ok(Etcd::of(Arc::new(Client::new(options)?), KeySpace::own(prefix), leases))
    }

    fn of(client: Arc<Client>, keys: KeySpace, leases: Option<Arc<Leases>>) -> Etcd {
        Etcd {
            // nothing is imported into a copy
            is_admitted: AtomicBool::new(keys.begun.is_some()),
            client,
            keys,
            wanted: watch::Sender::new(0),
            head_calls: AtomicU64::new(0),
            head: Mutex::new(Head { covers: 0, result: Ok(0) }),
            leases,
            compactions: Mutex::new(None),
        }
    }

    fn copies_of(&self) -> Copies<'_> {
        Copies { client: &self.client, keys: &self.keys, leases: self.leases.as_deref() }
    }

    /// A copy, if it is whole.
    async fn opened(&self, id: &str) -> Result<Option<Etcd>, StoreError> {
        let keys = self.copies_of().whole(id).await.map_err(|failure| failure.into_error(0))?;
        Ok(keys.map(|keys| Etcd::of(self.client.clone(), keys, self.leases.clone())))
    }

    /// The stored objects at the newest revision. Fails where [`Store::snapshot`] waits.
    pub async fn latest(&self) -> Result<Snapshot, StoreError> {
        let head = self.newest().await?;
        self.admit().await.map_err(|failure| failure.into_error(head))?;
        self.snapshot_at(head).await.map_err(|failure| failure.into_error(head))
    }

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
    async fn admit(&self) -> Result<(), Failure> {
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

    async fn read(&self, request: m::RangeRequest) -> Result<m::RangeResponse, Failure> {
        self.client.read(m::RANGE, &request).await
    }

    async fn newest(&self) -> Result<Revision, StoreError> {
        let response = match self.client.honest_progress() {
            true => self.read_head().await,
            // these members do not report the progress of a watch reliably, but the watch will deliver this write
            false => self.write_mark().await,
        };
        response.map_err(|failure| failure.into_error(0))
    }

    /// Writes [`KeySpace::mark`].
    async fn write_mark(&self) -> Result<Revision, Failure> {
        let put = m::PutRequest { key: self.keys.mark(), ..Default::default() };
        let put = m::TxnRequest {
            compare: self.keys.compare().into_iter().collect(),
            success: vec![operation(m::Op::Put(put))],
            ..Default::default()
        };
        let written: m::TxnResponse = self.client.read(m::TXN, &put).await?;
        if written.succeeded { Ok(written.revision()) } else { Err(Failure::Ended) }
    }

    /// All keys at a revision.
    async fn snapshot_at(&self, at: Revision) -> Result<Snapshot, Failure> {
        let (key, range_end) = self.keys.range();
        let (limit, revision) = (limits::PAGE, number(at));
        let mut pages = Pages::of(m::RangeRequest { key, range_end, limit, revision, ..Default::default() });
        let (mut entries, mut begun) = (vec![], None);
        let begun_key = self.keys.begun.as_ref().map(|begun| &begun.key);
        while let Some(page) = pages.next(&self.client).await? {
            for kv in page.kvs {
                match self.keys.is_internal(&kv.key) {
                    true if Some(&kv.key) == begun_key => begun = Some(kv),
                    true => {}
                    false => entries.push(self.keys.entry(kv)),
                }
            }
        }
        self.keys.check(begun.as_ref())?;
        Ok(Snapshot { revision: at, entries })
    }

    /// The state `revisions` changes ago, or at the compacted revision if that is later.
    async fn try_history(&self, revisions: u64) -> Result<Snapshot, Failure> {
        self.admit().await?;
        let head = self.read_head().await?;
        let since = self.keys.begun.as_ref().map_or(1, |begun| begun.revision);
        let compacted = self.read(m::RangeRequest { key: COMPACTION_KEY, ..Default::default() }).await;
        let compacted = match &compacted {
            Ok(response) => response.kvs.first().and_then(|kv| std::str::from_utf8(&kv.value).ok()?.parse().ok()),
            // the user of etcd may not be permitted to read the key
            Err(_) => None,
        };
        self.snapshot_at(head.saturating_sub(revisions).max(compacted.unwrap_or(0)).max(since)).await
    }

    async fn read_head(&self) -> Result<Revision, Failure> {
        let request = match &self.keys.begun {
            Some(begun) => m::RangeRequest { key: begun.key.clone(), keys_only: true, ..Default::default() },
            None => m::RangeRequest { key: self.keys.range().0, count_only: true, ..Default::default() },
        };
        let found = self.read(request).await?;
        self.keys.check(found.kvs.first())?;
        Ok(found.revision())
    }

    async fn try_snapshot(&self) -> Result<Snapshot, Failure> {
        self.admit().await?;
        loop {
            let head = self.read_head().await?;
            match self.snapshot_at(head).await {
                // the revision was compacted meanwhile: start again at a newer one
                Err(Failure::Compacted) => {}
                found => return found,
            }
        }
    }

    async fn transact(&self, write: Write) -> Result<Revision, Refused> {
        let unavailable = |failure: Failure| Refused::Failed(failure.into_error(0));
        let Some(leases) = self.leases.as_ref().filter(|_| write.value.is_some()) else {
            return self.transact_with_lease(&write, 0).await.map_err(unavailable)?;
        };
        let lease = leases.of(&self.client, &write.key).await.map_err(unavailable)?;
        match self.transact_with_lease(&write, lease).await {
            Err(Failure::LeaseGone(_)) => {
                leases.forget(lease).await;
                let lease = leases.of(&self.client, &write.key).await.map_err(unavailable)?;
                self.transact_with_lease(&write, lease).await.map_err(unavailable)?
            }
            done => done.map_err(unavailable)?,
        }
    }

    /// Makes a write whose key expires with a lease, unless `lease` is 0.
    async fn transact_with_lease(&self, write: &Write, lease: i64) -> Result<Result<Revision, Refused>, Failure> {
        let expected = match write.expected {
            Expected::Absent => 0,
            Expected::At(revision) => number(revision),
        };
        let key = self.keys.to_etcd(&write.key);
        let change = match write.value.clone() {
            Some(value) => m::Op::Put(m::PutRequest { key: key.clone(), value, lease }),
            None => m::Op::Delete(m::DeleteRangeRequest { key: key.clone(), ..Default::default() }),
        };
        let look = |key| m::Op::Range(m::RangeRequest { key, keys_only: true, ..Default::default() });
        let begun = self.keys.begun.as_ref().map(|begun| operation(look(begun.key.clone())));
        let failure = [operation(look(key.clone()))].into_iter().chain(begun).collect();
        let compare = [m::Compare { mod_revision: Some(expected), ..m::Compare::revision(key, 0) }];
        let compare = compare.into_iter().chain(self.keys.compare()).collect();
        let request = m::TxnRequest { compare, success: vec![operation(change)], failure };
        let response: m::TxnResponse = self.client.write(m::TXN, &request).await?;
        if response.succeeded {
            return Ok(Ok(response.revision()));
        }
        let mut found = response.responses.iter().map(|found| found.range.as_ref().and_then(|range| range.kvs.first()));
        let conflict = found.next().flatten().map(|kv| revision(kv.mod_revision));
        self.keys.check(found.next().flatten())?;
        Ok(Err(Refused::Conflict(conflict)))
    }

    /// Compacts unless another server has done so since the last call, as kube-apiservers do.
    async fn compact_in_turn(&self, before: Revision) -> Result<(), Failure> {
        let mut turn = self.compactions.lock().await;
        let version = match *turn {
            Some(version) => version,
            None => {
                let found = self.read(m::RangeRequest { key: COMPACTION_KEY, ..Default::default() }).await?;
                found.kvs.first().map_or(0, |kv| kv.version)
            }
        };
        let put = m::PutRequest { key: COMPACTION_KEY, value: before.to_string().into(), lease: 0 };
        let compare = m::Compare {
            target: m::Target::Version.into(),
            key: COMPACTION_KEY,
            version: Some(version),
            mod_revision: None,
        };
        let request = m::TxnRequest {
            compare: vec![compare],
            success: vec![operation(m::Op::Put(put))],
            failure: vec![operation(m::Op::Range(m::RangeRequest { key: COMPACTION_KEY, ..Default::default() }))],
        };
        let response: m::TxnResponse = self.client.write(m::TXN, &request).await?;
        if !response.succeeded {
            let found = response.responses.first().and_then(|found| found.range.as_ref()?.kvs.first());
            *turn = Some(found.map_or(0, |kv| kv.version));
            return Ok(());
        }
        *turn = Some(version + 1);
        let compaction = m::CompactionRequest { revision: number(before) };
        match self.client.write::<_, m::HeaderOnly>(m::COMPACT, &compaction).await {
            Ok(_) | Err(Failure::Compacted) => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}

impl Store for Etcd {
    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Revision, Refused>> {
        Box::pin(self.transact(write))
    }

    /// Waits for etcd as long as its errors are temporary.
    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async move {
            loop {
                match self.try_snapshot().await {
                    Ok(snapshot) => return Ok(snapshot),
                    // the client has logged the failure and paused between its attempts
                    Err(failure) if failure.is_temporary() => {}
                    Err(failure) => return Err(failure.into_error(0)),
                }
            }
        })
    }

    /// Waits for etcd as long as its errors are temporary.
    fn history(&self, revisions: u64) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async move {
            loop {
                match self.try_history(revisions).await {
                    Ok(snapshot) => return Ok(snapshot),
                    Err(failure) if failure.is_temporary() => {}
                    Err(failure) => return Err(failure.into_error(0)),
                }
            }
        })
    }

    fn follow(&self, after: Revision) -> BoxFuture<'_, Result<Box<dyn Changes>, StoreError>> {
        let (client, keys, wanted) = (self.client.clone(), self.keys.clone(), self.wanted.subscribe());
        Box::pin(async move {
            if let Some(begun) = keys.begun.as_ref().filter(|begun| after < begun.revision) {
                return Err(StoreError::Compacted(begun.revision));
            }
            let followed = follow::Followed { client, keys, wanted, after };
            Ok(Box::new(follow::Follower::new(followed)) as Box<dyn Changes>)
        })
    }

    /// Reads the head. Callers that arrive while a read is in flight share the next one.
    fn head(&self) -> BoxFuture<'_, Result<Revision, StoreError>> {
        Box::pin(async move {
            let ticket = self.head_calls.fetch_add(1, Ordering::SeqCst) + 1;
            let mut head = self.head.lock().await;
            if head.covers < ticket {
                let covers = self.head_calls.load(Ordering::SeqCst);
                let result = self.newest().await;
                if let Ok(newest) = result {
                    self.wanted.send_if_modified(|wanted| {
                        newest > *wanted && {
                            *wanted = newest;
                            true
                        }
                    });
                }
                *head = Head { covers, result };
            }
            head.result.clone()
        })
    }

    /// A copy is compacted with the store that it belongs to.
    fn compact(&self, before: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        if self.keys.begun.is_some() {
            return Box::pin(async { Ok(()) });
        }
        Box::pin(async move { self.compact_in_turn(before).await.map_err(|failure| failure.into_error(before)) })
    }

    fn copying(self: Arc<Self>) -> Option<Arc<dyn Copying>> {
        if self.keys.begun.is_none() { Some(self) } else { None }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn health(&self) -> Result<(), StoreError> {
        self.client.health()
    }
}

impl Copying for Etcd {
    fn open<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Arc<dyn Store>>, StoreError>> {
        Box::pin(async move {
            let opened = self.opened(id).await?;
            Ok(opened.map(|copy| Arc::new(copy) as Arc<dyn Store>))
        })
    }

    fn copy<'a>(
        &'a self,
        id: &'a str,
        source: CopySource<'a>,
        keeps: &'a (dyn Fn(&Bytes) -> bool + Sync),
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let at = match source {
                CopySource::Store(at) | CopySource::Copy(_, Some(at)) => at,
                _ => 0,
            };
            self.copies_of().copy(id, source, keeps).await.map_err(|failure| failure.into_error(at))
        })
    }

    fn end<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.copies_of().end(id).await.map(drop).map_err(|failure| failure.into_error(0)) })
    }

    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.copies_of().remove(id).await.map_err(|failure| failure.into_error(0)) })
    }

    fn copies<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move { self.copies_of().list(prefix).await.map_err(|failure| failure.into_error(0)) })
    }
}
