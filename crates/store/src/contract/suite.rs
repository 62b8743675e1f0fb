//! The contract as a test suite for all engines; each check takes an empty store. Enabled by the feature `suite`.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Batch, BoxFuture, Change, Changes, Expected, Refused, Revision, Store, StoreError, Write};

/// A check, which panics if the store violates the contract.
pub type Check = for<'a> fn(&'a dyn Store, &'a str) -> BoxFuture<'a, ()>;

/// All checks with their names. The text is the prefix of the keys that a check may use.
pub const CHECKS: [(&str, Check); 8] = [
    ("writes are checked and numbered", |store, prefix| Box::pin(numbered(store, prefix))),
    ("followers see every change once and in order", |store, prefix| Box::pin(followed(store, prefix))),
    ("followers wait for changes", |store, prefix| Box::pin(awaited(store, prefix))),
    ("followers reach the head", |store, prefix| Box::pin(head_reached(store, prefix))),
    ("concurrent writers of one key win once", |store, prefix| Box::pin(one_winner(store, prefix))),
    ("snapshots are of one moment", |store, prefix| Box::pin(snapshots(store, prefix))),
    ("history leads to the present", |store, prefix| Box::pin(history(store, prefix))),
    ("followers from before a compaction get an error", |store, prefix| Box::pin(compacted(store, prefix))),
];

fn put(prefix: &str, key: &str, expected: Expected, value: &str) -> Write {
    let value = Some(Bytes::copy_from_slice(value.as_bytes()));
    Write { key: Bytes::from(format!("{prefix}{key}")), expected, value }
}

fn delete(prefix: &str, key: &str, revision: Revision) -> Write {
    Write { key: Bytes::from(format!("{prefix}{key}")), expected: Expected::At(revision), value: None }
}

async fn commit(store: &dyn Store, write: Write) -> Revision {
    store.commit(write).await.unwrap_or_else(|refused| panic!("{refused:?}"))
}

async fn numbered(store: &dyn Store, prefix: &str) {
    let put = |key, expected, value| put(prefix, key, expected, value);
    let first = commit(store, put("a", Expected::Absent, "1")).await;
    let refused = store.commit(put("a", Expected::Absent, "2")).await;
    assert!(matches!(refused, Err(Refused::Conflict(Some(at))) if at == first), "{refused:?}");
    let refused = store.commit(put("b", Expected::At(first), "2")).await;
    assert!(matches!(refused, Err(Refused::Conflict(None))), "{refused:?}");
    let second = commit(store, put("a", Expected::At(first), "2")).await;
    let refused = store.commit(put("a", Expected::At(first), "3")).await;
    assert!(matches!(refused, Err(Refused::Conflict(Some(at))) if at == second), "{refused:?}");
    let third = commit(store, delete(prefix, "a", second)).await;
    assert!(first < second && second < third, "{first} {second} {third}");
    let refused = store.commit(delete(prefix, "a", second)).await;
    assert!(matches!(refused, Err(Refused::Conflict(None))), "{refused:?}");
    assert!(store.head().await.unwrap() >= third);
    let last = commit(store, put("a", Expected::Absent, "")).await;
    assert!(last > third);
}

/// A follower, and the revision that it has reached.
struct SuiteReader {
    changes: Box<dyn Changes>,
    delivered: Revision,
}

impl SuiteReader {
    async fn new(store: &dyn Store, after: Revision) -> SuiteReader {
        SuiteReader { changes: store.follow(after).await.unwrap(), delivered: after }
    }

    /// Reads at least up to a revision. Asserts that revisions rise and that none is delivered twice.
    async fn read_up_to(&mut self, revision: Revision) -> Vec<Change> {
        let mut seen = vec![];
        while self.delivered < revision {
            let Batch { changes, revision } = self.changes.next().await.unwrap();
            let before = self.delivered;
            for change in &changes {
                assert!(change.revision > self.delivered, "revision {} after {}", change.revision, self.delivered);
                self.delivered = change.revision;
            }
            assert!(revision >= self.delivered && revision > before, "nothing new: {revision} after {before}");
            self.delivered = revision;
            seen.extend(changes);
        }
        seen
    }
}

async fn followed(store: &dyn Store, prefix: &str) {
    const CHANGES: usize = 1500;
    let mut wanted = vec![];
    for i in 0..CHANGES {
        let write = put(prefix, &format!("k{i}"), Expected::Absent, "v");
        wanted.push((commit(store, write.clone()).await, write.key, write.value));
    }
    let (revision, key) = (wanted[7].0, wanted[7].1.clone());
    let deletion = Write { key: key.clone(), expected: Expected::At(revision), value: None };
    wanted.push((commit(store, deletion).await, key, None));
    let (start, end) = (wanted[10].0, wanted[CHANGES].0);
    let seen = SuiteReader::new(store, start).await.read_up_to(end).await;
    let seen: Vec<_> = seen.into_iter().map(|change| (change.revision, change.key, change.value)).collect();
    assert!(seen == wanted[11..], "{} changes of {}", seen.len(), wanted.len() - 11);
}

async fn awaited(store: &dyn Store, prefix: &str) {
    let start = commit(store, put(prefix, "a", Expected::Absent, "1")).await;
    let mut reader = SuiteReader::new(store, start).await;
    let mut at = start;
    for value in ["2", "3", "4"] {
        let next = reader.delivered + 1;
        let write = commit(store, put(prefix, "a", Expected::At(at), value));
        let (mut seen, written) = tokio::join!(reader.read_up_to(next), write);
        seen.extend(reader.read_up_to(written).await);
        let wanted = put(prefix, "a", Expected::Absent, value);
        assert_eq!(seen, [Change { revision: written, key: wanted.key, value: wanted.value }]);
        at = written;
    }
}

async fn head_reached(store: &dyn Store, prefix: &str) {
    let written = commit(store, put(prefix, "a", Expected::Absent, "1")).await;
    let mut reader = SuiteReader::new(store, written).await;
    let later = commit(store, put(prefix, "b", Expected::Absent, "1")).await;
    let (head, seen) = tokio::join!(store.head(), reader.read_up_to(later));
    assert_eq!(seen.len(), 1);
    let head = head.unwrap();
    assert!(head >= later);
    let rest = reader.read_up_to(head).await;
    assert!(rest.is_empty(), "{rest:?}");
}

async fn one_winner(store: &dyn Store, prefix: &str) {
    let first = commit(store, put(prefix, "a", Expected::Absent, "0")).await;
    let attempt = |i: usize| store.commit(put(prefix, "a", Expected::At(first), &i.to_string()));
    let four = async |from: usize| {
        let (a, b, c, d) = tokio::join!(attempt(from), attempt(from + 1), attempt(from + 2), attempt(from + 3));
        [a, b, c, d].into_iter().filter(Result::is_ok).count()
    };
    let (a, b, c, d) = tokio::join!(four(0), four(4), four(8), four(12));
    assert_eq!(a + b + c + d, 1);
}

async fn snapshots(store: &dyn Store, prefix: &str) {
    // more than one page of any engine
    const KEYS: usize = 1200;
    let mut wanted = BTreeMap::new();
    assert!(store.snapshot().await.unwrap().entries.is_empty());
    for i in 0..KEYS {
        let write = put(prefix, &format!("k{i:04}"), Expected::Absent, &i.to_string());
        let revision = commit(store, write.clone()).await;
        wanted.insert(write.key, (write.value.unwrap_or_default(), revision));
    }
    let (key, (_, revision)) = wanted.pop_first().unwrap();
    let last = commit(store, Write { key, expected: Expected::At(revision), value: None }).await;
    let latest = store.snapshot().await.unwrap();
    assert!(latest.revision >= last);
    let found = latest.entries.into_iter().map(|entry| (entry.key, (entry.value, entry.revision)));
    assert!(found.eq(wanted), "the snapshot differs from the writes");
    // a follower from the revision of a snapshot gets only later changes
    let next = commit(store, put(prefix, "new", Expected::Absent, "")).await;
    let seen = SuiteReader::new(store, latest.revision).await.read_up_to(next).await;
    assert_eq!(seen.iter().map(|change| change.revision).collect::<Vec<_>>(), [next]);
}

async fn history(store: &dyn Store, prefix: &str) {
    let first = commit(store, put(prefix, "a", Expected::Absent, "1")).await;
    let other = commit(store, put(prefix, "b", Expected::Absent, "1")).await;
    let still = commit(store, put(prefix, "c", Expected::Absent, "1")).await;
    let second = commit(store, put(prefix, "a", Expected::At(first), "2")).await;
    store.compact(still).await.unwrap();
    commit(store, put(prefix, "a", Expected::At(second), "3")).await;
    commit(store, delete(prefix, "b", other)).await;
    commit(store, put(prefix, "d", Expected::Absent, "1")).await;
    let latest = store.snapshot().await.unwrap();
    for revisions in [0, 1, 2, 3, 1000] {
        let old = store.history(revisions).await.unwrap();
        assert!(old.revision >= still && old.revision <= latest.revision, "{} of {revisions}", old.revision);
        let mut state: BTreeMap<Bytes, (Revision, Bytes)> = BTreeMap::new();
        state.extend(old.entries.into_iter().map(|entry| (entry.key, (entry.revision, entry.value))));
        for change in SuiteReader::new(store, old.revision).await.read_up_to(latest.revision).await {
            match change.value {
                Some(value) => drop(state.insert(change.key, (change.revision, value))),
                None => assert!(state.remove(&change.key).is_some(), "a deleted key was in the history"),
            }
        }
        for entry in &latest.entries {
            // an unchanged key may be omitted from the history
            let known = state.remove(&entry.key).unwrap_or((entry.revision, entry.value.clone()));
            assert_eq!(known, (entry.revision, entry.value.clone()));
        }
        assert!(state.is_empty(), "{state:?}");
    }
}

async fn compacted(store: &dyn Store, prefix: &str) {
    let mut at = commit(store, put(prefix, "a", Expected::Absent, "0")).await;
    let mut revisions = vec![at];
    for i in 0..20 {
        at = commit(store, put(prefix, "a", Expected::At(at), &i.to_string())).await;
        revisions.push(at);
    }
    let before = revisions[10];
    store.compact(before).await.unwrap();
    let lost = match store.follow(revisions[9]).await {
        Ok(mut changes) => changes.next().await.err(),
        Err(error) => Some(error),
    };
    assert_eq!(lost, Some(StoreError::Compacted(before)));
    let seen = SuiteReader::new(store, before).await.read_up_to(at).await;
    assert!(seen.iter().map(|change| change.revision).eq(revisions[11..].iter().copied()));
}
