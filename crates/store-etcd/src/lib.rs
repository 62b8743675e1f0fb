//! The [`Store`] contract over etcd 3.4 to 3.7 (docs/src/design/etcd.md).
//!
//! Invariants: revisions are etcd's, which rise with gaps. A write is one transaction that compares the revision of its key.
//! The only state is connections and the version of the compaction key. A cluster with another id than the expected one is
//! never used. Read [`Etcd`], then `client` (calls and failover), `follow` (watches).

mod client;
mod cluster;
mod failure;
mod follow;
mod lease;
mod limits;
mod member;
mod messages;
mod options;
#[cfg(test)]
mod tests;
mod trouble;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use store::contract::BoxFuture;
use store::{Changes, Entry, Expected, Refused, Revision, Snapshot, Store, StoreError, Write};
use tokio::sync::{Mutex, watch};

use client::Client;
use failure::Failure;
use lease::Leases;
use messages::{self as m, Response as _, number, revision};

pub use cluster::parse_id;
pub use options::{Credentials, Options, normalise};

/// The key by which kube-apiservers coordinate compactions.
const COMPACTION_KEY: Bytes = Bytes::from_static(b"compact_rev_key");

/// The result of the last read of the head.
struct Head {
    /// The result is valid for callers with numbers up to this one.
    covers: u64,
    result: Result<Revision, StoreError>,
}

/// A store in etcd.
pub struct Etcd {
    client: Arc<Client>,
    prefix: String,
    /// The newest head that was returned to a caller; followers request progress until they reach it.
    wanted: watch::Sender<Revision>,
    /// The number of calls of `head`.
    head_calls: AtomicU64,
    head: Mutex<Head>,
    leases: Option<Leases>,
    /// The version of [`COMPACTION_KEY`] when it was last read.
    compactions: Mutex<Option<i64>>,
}

impl Etcd {
    /// Creates a store; it does not connect yet. The error is one line.
    pub fn new(options: &Options) -> Result<Etcd, String> {
        Ok(Etcd {
            client: Arc::new(Client::new(options)?),
            prefix: normalise(&options.prefix),
            wanted: watch::Sender::new(0),
            head_calls: AtomicU64::new(0),
            head: Mutex::new(Head { covers: 0, result: Ok(0) }),
            leases: options.expiring.clone().map(|(folder, lifetime)| {
                let prefix = format!("{}/{folder}/", normalise(&options.prefix));
                Leases::new(prefix.into(), lifetime)
            }),
            compactions: Mutex::new(None),
        })
    }

    /// Checks that etcd responds. The error is one line.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.newest().await.map(drop)
    }

    /// The stored objects at the newest revision. Fails where [`Store::snapshot`] waits.
    pub async fn latest(&self) -> Result<Snapshot, StoreError> {
        let head = self.newest().await?;
        self.snapshot_at(head).await.map_err(|failure| failure.into_error(head))
    }

    /// The start and the end of the range of all keys; the end is exclusive.
    fn range(&self) -> (Bytes, Bytes) {
        // "0" is the character after "/"
        (Bytes::from(format!("{}/", self.prefix)), Bytes::from(format!("{}0", self.prefix)))
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

    /// A key without meaning, which is not delivered to followers.
    fn mark_key(&self) -> Bytes {
        Bytes::from(format!("{}/pintle/mark", self.prefix))
    }

    /// Writes [`Etcd::mark_key`].
    async fn write_mark(&self) -> Result<Revision, Failure> {
        let put = m::PutRequest { key: self.mark_key(), ..Default::default() };
        let put = m::TxnRequest { success: vec![operation(m::Op::Put(put))], ..Default::default() };
        self.client.read(m::TXN, &put).await.map(|response: m::TxnResponse| response.revision())
    }

    /// All keys at a revision.
    async fn snapshot_at(&self, at: Revision) -> Result<Snapshot, Failure> {
        let ((mut key, range_end), mark) = (self.range(), self.mark_key());
        let mut entries = vec![];
        loop {
            let page = m::RangeRequest {
                key,
                range_end: range_end.clone(),
                limit: limits::PAGE,
                revision: number(at),
                ..Default::default()
            };
            let page = self.read(page).await?;
            let entry = |kv: m::KeyValue| Entry { key: kv.key, value: kv.value, revision: revision(kv.mod_revision) };
            let last = page.kvs.last().filter(|_| page.more).map(|kv| kv.key.clone());
            entries.extend(page.kvs.into_iter().filter(|kv| kv.key != mark).map(entry));
            match last {
                Some(last) => key = Bytes::from([&last[..], b"\0"].concat()),
                None => return Ok(Snapshot { revision: at, entries }),
            }
        }
    }

    /// The state `revisions` changes ago, or at the compacted revision if that is later.
    async fn try_history(&self, revisions: u64) -> Result<Snapshot, Failure> {
        let head = self.read_head().await?;
        let compacted = self.read(m::RangeRequest { key: COMPACTION_KEY, ..Default::default() }).await;
        let compacted = match &compacted {
            Ok(response) => response.kvs.first().and_then(|kv| std::str::from_utf8(&kv.value).ok()?.parse().ok()),
            // the user of etcd may not be permitted to read the key
            Err(_) => None,
        };
        self.snapshot_at(head.saturating_sub(revisions).max(compacted.unwrap_or(0)).max(1)).await
    }

    async fn read_head(&self) -> Result<Revision, Failure> {
        let (key, _) = self.range();
        Ok(self.read(m::RangeRequest { key, count_only: true, ..Default::default() }).await?.revision())
    }

    async fn try_snapshot(&self) -> Result<Snapshot, Failure> {
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
            Err(failure) if failure.is_of_lease() => {
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
        let key = write.key.clone();
        let change = match write.value.clone() {
            Some(value) => m::Op::Put(m::PutRequest { key: key.clone(), value, lease }),
            None => m::Op::Delete(m::DeleteRangeRequest { key: key.clone() }),
        };
        let look = m::Op::Range(m::RangeRequest { key: key.clone(), keys_only: true, ..Default::default() });
        let compare =
            m::Compare { target: m::Target::ModRevision.into(), key, mod_revision: Some(expected), version: None };
        let request =
            m::TxnRequest { compare: vec![compare], success: vec![operation(change)], failure: vec![operation(look)] };
        let response: m::TxnResponse = self.client.write(m::TXN, &request).await?;
        if response.succeeded {
            return Ok(Ok(response.revision()));
        }
        let found = response.responses.first().and_then(|found| found.range.as_ref()?.kvs.first());
        Ok(Err(Refused::Conflict(found.map(|kv| revision(kv.mod_revision)))))
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

fn operation(op: m::Op) -> m::RequestOp {
    m::RequestOp { op: Some(op) }
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
        let (key, range_end) = self.range();
        let wanted = self.wanted.subscribe();
        let (client, mark) = (self.client.clone(), self.mark_key());
        let followed = follow::Followed { client, key, range_end, mark, wanted, after };
        Box::pin(async move { Ok(Box::new(follow::Follower::new(followed)) as Box<dyn Changes>) })
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

    fn compact(&self, before: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.compact_in_turn(before).await.map_err(|failure| failure.into_error(before)) })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn health(&self) -> Result<(), StoreError> {
        self.client.health()
    }
}
