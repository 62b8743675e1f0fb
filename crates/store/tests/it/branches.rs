//! Branches of a store on disk: what is there after the directory was opened again, and what it takes.

use std::collections::HashSet;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use store::contract::suite::CHECKS;
use store::{BranchSource, Branching as _, Durability, Embedded, Expected, Options, Store, StoreError};

use crate::{SMALL, delete, put};

fn open(directory: &Path, options: Options) -> Embedded {
    Embedded::open(directory, "a test", options).unwrap_or_else(|error| panic!("{error}"))
}

async fn write(store: &dyn Store, key: &str, expected: Expected, value: &str) -> u64 {
    store.commit(put(key, expected, value)).await.unwrap()
}

/// Keys and values, and the revision.
async fn content(store: &dyn Store) -> (u64, Vec<(String, String)>) {
    let snapshot = store.snapshot().await.unwrap();
    let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    (snapshot.revision, snapshot.entries.iter().map(|entry| (text(&entry.key), text(&entry.value))).collect())
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn branches_pass_the_suite() {
    for (name, check) in CHECKS {
        println!("{name}");
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path(), SMALL);
        let branch = store.begin(b"a", BranchSource::Nothing, b"").unwrap();
        check(&*branch, "/").await;
        // the store itself, with entries of a branch between its own
        let branch = store.begin(b"b", BranchSource::Nothing, b"").unwrap();
        let other = async {
            for i in 0..300 {
                write(&*branch, &format!("x{i}"), Expected::Absent, &"x".repeat(100)).await;
            }
        };
        tokio::join!(check(&store, "/"), other);
    }
}

#[tokio::test]
async fn busy_tasks_know_the_revision_of_a_branch_that_has_begun() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), SMALL);
    let branch = store.begin(b"a", BranchSource::Nothing, b"").unwrap();
    let head = branch.head().await;
    let mut context = Context::from_waker(Waker::noop());
    // until Tokio wants this task to yield
    while pin!(tokio::task::consume_budget()).poll(&mut context).is_ready() {}
    assert_eq!(branch.head().as_mut().poll(&mut context), Poll::Ready(head));
}

#[tokio::test]
async fn reopened_directory_has_its_branches() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), SMALL);
    let first = write(&store, "k", Expected::Absent, "1").await;
    let format = || std::fs::read_to_string(directory.path().join("FORMAT")).unwrap();
    assert_eq!(format(), "pintle 2\n");
    let a = store.begin(b"a", BranchSource::Store(None), b"one").unwrap();
    assert_eq!(content(&*a).await, (first, pairs(&[("k", "1")])));
    assert_eq!(write(&*a, "k", Expected::At(first), "a").await, first + 1, "a branch counts its own revisions");
    assert_eq!(format(), "pintle 3\n", "earlier versions refuse the directory");
    let b = store.begin(b"b", BranchSource::Branch(b"a", None), b"two").unwrap();
    write(&store, "k", Expected::At(first), "2").await;
    assert_eq!(write(&*b, "l", Expected::Absent, "b").await, first + 2);
    let reset = store.reset(b"a", b"reset").unwrap();
    assert_eq!(content(&*reset).await, (first + 2, pairs(&[("k", "1")])), "after all revisions that clients have seen");
    assert!(a.commit(put("k", Expected::At(first + 1), "late")).await.is_err(), "of the time before the reset");
    store.begin(b"c", BranchSource::Branch(b"b", None), b"").unwrap();
    store.end(b"c");
    assert!(store.begin(b"d", BranchSource::Branch(b"c", None), b"").is_none());
    let changed = store.begin(b"e", BranchSource::Branch(b"b", Some(1)), b"").unwrap();
    assert!(changed.fork(0).is_none());
    assert!(matches!(changed.head().await, Err(StoreError::Unavailable(_))), "the source has another revision");
    // in memory, of a branch that the committer may have still to begin
    let f = store.begin(b"f", BranchSource::Branch(b"b", None), b"").unwrap();
    assert_eq!(content(&*f.fork(0).unwrap()).await, content(&*b).await);
    store.end(b"f");
    store.end(b"e");
    let wanted = async |store: &Embedded| {
        let (a, b) = (store.branch(b"a").unwrap(), store.branch(b"b").unwrap());
        assert_eq!(content(&*a).await, (first + 2, pairs(&[("k", "1")])));
        assert_eq!(content(&*b).await, (first + 2, pairs(&[("k", "a"), ("l", "b")])));
        assert_eq!(content(store).await.1, pairs(&[("k", "2")]));
        let mut labels: Vec<_> = store.branches().into_iter().map(|branch| (branch.id, branch.label)).collect();
        labels.sort();
        assert_eq!(labels, [("a".into(), "reset".into()), ("b".into(), "two".into())]);
    };
    wanted(&store).await;
    drop(store);
    let store = open(directory.path(), SMALL);
    wanted(&store).await;
    store.compact(store.head().await.unwrap()).await.unwrap();
    drop((store, b, reset));
    let store = open(directory.path(), SMALL);
    wanted(&store).await;
    let summary = store::check(directory.path()).unwrap();
    assert_eq!((summary.objects, summary.branches), (1, 2));
    let read = store::content(directory.path()).unwrap();
    assert_eq!(read.branch(b"b"), Some(store.branch(b"b").unwrap().snapshot().await.unwrap()));
    assert_eq!(read.branch(b"c"), None);
    // what a branch began with is there too
    let origin = store.origin(b"b").unwrap();
    assert_eq!(content(&*origin).await, (first + 2, pairs(&[("k", "a")])));
    let b = store.reset(b"b", b"").unwrap();
    assert_eq!(content(&*b).await, (first + 3, pairs(&[("k", "a")])));
}

/// Values of all branches of a store, each counted once if it is in memory once.
async fn values(store: &Embedded, ids: &[String]) -> (usize, usize) {
    let (mut all, mut distinct) = (0, HashSet::new());
    for id in ids {
        let branch = store.branch(id.as_bytes()).unwrap();
        for entry in branch.snapshot().await.unwrap().entries {
            all += 1;
            distinct.insert(entry.value.as_ptr());
        }
    }
    (all, distinct.len())
}

#[tokio::test]
async fn forks_share_their_values_in_memory_and_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let options =
        Options { durability: Durability::None, segment_bytes: 100_000, checkpoint_bytes: 0, history_bytes: u64::MAX };
    let store = open(directory.path(), options);
    for i in 0..100 {
        write(&store, &format!("k{i:02}"), Expected::Absent, &"x".repeat(1000)).await;
    }
    let ids: Vec<String> = (0..50).map(|i| format!("branch-{i}")).collect();
    for (i, id) in ids.iter().enumerate() {
        // forks of the store, of a fork, and of one that is gone
        let of_fork = BranchSource::Branch(ids[0].as_bytes(), None);
        let source = if i % 2 == 0 { BranchSource::Store(None) } else { of_fork };
        let branch = store.begin(id.as_bytes(), source, b"").unwrap();
        write(&*branch, &format!("own-{i}"), Expected::Absent, "own").await;
        if i % 10 == 0 {
            store.reset(id.as_bytes(), b"again").unwrap();
        }
    }
    store.end(ids[0].as_bytes());
    let ids = &ids[1..];
    let before = values(&store, ids).await;
    assert!(before.1 < 150 && before.0 > 4800, "{before:?}");
    write(&store, "last", Expected::Absent, "").await;
    for round in 0..3 {
        store.compact(store.head().await.unwrap()).await.unwrap();
        let bytes = store.size().unwrap();
        assert!(bytes < 250_000, "round {round}: {bytes} bytes for 100,000 of values");
        assert_eq!(values(&store, ids).await, before, "round {round}");
    }
    drop(store);
    let store = open(directory.path(), options);
    assert_eq!(values(&store, ids).await, before, "after a start");
    store.compact(store.head().await.unwrap()).await.unwrap();
    assert!(store.size().unwrap() < 250_000, "{:?} bytes", store.size());
}

#[tokio::test]
async fn writes_to_branches_leave_the_log_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        durability: Durability::None,
        segment_bytes: 20_000,
        checkpoint_bytes: 40_000,
        history_bytes: u64::MAX,
    };
    let store = open(directory.path(), options);
    let first = write(&store, "k", Expected::Absent, "1").await;
    let branch = store.begin(b"a", BranchSource::Nothing, b"").unwrap();
    let mut at = Expected::Absent;
    for i in 0..60_000 {
        at = Expected::At(branch.commit(put("k", at, "0123456789")).await.unwrap());
        if i % 1000 == 0 {
            // the store itself is not written to, and its history is short
            store.compact(0).await.unwrap();
        }
    }
    store.compact(0).await.unwrap();
    assert!(store.size().unwrap() < 4_000_000, "{:?} bytes", store.size());
    let later = write(&store, "k", Expected::At(first), "2").await;
    drop((store, branch));
    let store = open(directory.path(), options);
    assert_eq!(content(&*store.branch(b"a").unwrap()).await, (60_000, pairs(&[("k", "0123456789")])));
    let changes = store.follow(first).await.unwrap().next().await.unwrap().changes;
    assert_eq!(changes.iter().map(|change| change.revision).collect::<Vec<_>>(), [later]);
}

#[tokio::test]
async fn backups_hold_branches() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let store = open(&path("data"), SMALL);
    let first = write(&store, "k", Expected::Absent, "1").await;
    let a = store.begin(b"a", BranchSource::Store(None), b"label").unwrap();
    let second = write(&*a, "l", Expected::Absent, "a").await;
    write(&*a, "gone", Expected::Absent, "a").await;
    a.commit(delete("gone", second + 1)).await.unwrap();
    for (name, content) in
        [("live", store.content().await.unwrap()), ("offline", store::content(&path("data")).unwrap())]
    {
        assert_eq!(content.branches(), 1);
        store::write_backup(content, &[], std::fs::File::create_new(path(name)).unwrap()).unwrap();
        for bump in [0, 1000] {
            let copy = path(&format!("{name}-{bump}"));
            let summary = store::restore(&path(name), &copy, bump).unwrap().summary;
            assert_eq!((summary.objects, summary.branches), (1, 1));
            let store = open(&copy, SMALL);
            let a = store.branch(b"a").unwrap();
            assert_eq!(content_of(&a).await, (second + 2 + bump, pairs(&[("k", "1"), ("l", "a")])));
            assert!(a.follow(second + 2 + bump).await.is_ok());
            assert!(bump == 0 || a.follow(second + 2).await.is_err(), "revisions of after the backup have expired");
            assert_eq!(write(&*a, "l", Expected::At(second), "b").await, second + 3 + bump);
            assert!(write(&store, "k", Expected::At(first), "2").await > summary.revision);
            let b = store.begin(b"b", BranchSource::Branch(b"a", None), b"").unwrap();
            assert_eq!(content_of(&b).await, content_of(&a).await);
            drop(store);
            assert_eq!(store::check(&copy).unwrap().branches, 2);
        }
    }
}

#[tokio::test]
async fn forks_of_earlier_revisions_and_of_origins_are_durable() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), SMALL);
    let large = "x".repeat(10_000);
    for (key, value) in [("a", "1"), ("b", large.as_str())] {
        write(&store, key, Expected::Absent, value).await;
    }
    let a = store.begin(b"a", BranchSource::Store(None), b"").unwrap();
    let earlier = a.snapshot().await.unwrap();
    let root = store.snapshot().await.unwrap();
    write(&*a, "a", Expected::At(1), "2").await;
    write(&*a, "c", Expected::Absent, "3").await;
    a.commit(delete("b", 2)).await.unwrap();
    store.commit(delete("b", 2)).await.unwrap();
    let size = store.size().unwrap();
    for (id, source, snapshot) in [("earlier", Some(&b"a"[..]), &earlier), ("of-root", None, &root)] {
        let snapshot = snapshot.clone();
        let begun = store.begin_earlier(id.as_bytes(), source, Box::new(move || Ok(snapshot)), id.as_bytes());
        assert!(begun.is_some(), "{id}");
    }
    let begun = [
        ("origin", BranchSource::Origin(b"a")),
        // it waits for its source
        ("of-earlier", BranchSource::Branch(b"earlier", Some(2))),
    ];
    for (id, source) in begun {
        assert!(store.begin(id.as_bytes(), source, id.as_bytes()).is_some(), "{id}");
    }
    let fails = || -> store::Earlier { Box::new(|| Err("it is gone".to_owned())) };
    assert!(store.begin_earlier(b"none", Some(b"none"), fails(), b"").is_none());
    assert!(store.begin(b"none", BranchSource::Origin(b"none"), b"").is_none());
    let failed = store.begin_earlier(b"failed", Some(b"a"), fails(), b"").unwrap();
    assert_eq!(failed.head().await, Err(StoreError::Unavailable("it is gone".to_owned())));
    for id in ["earlier", "of-root", "of-earlier"] {
        store.branch(id.as_bytes()).unwrap().head().await.unwrap();
    }
    assert!(store.size().unwrap() < size + 3 * large.len() as u64, "only what differs is written");
    // the fork of an earlier revision is in the log; the others follow with the next write
    write(&*store.branch(b"origin").unwrap(), "o", Expected::Absent, "o").await;
    let wanted = pairs(&[("a", "1"), ("b", &large)]);
    let check = async |store: &Embedded, resets: u64| {
        for id in ["earlier", "of-root", "of-earlier"] {
            let branch = store.branch(id.as_bytes()).unwrap();
            assert_eq!(content(&*branch).await, (2 + resets, wanted.clone()), "{id}");
        }
        let origin = store.branch(b"origin").unwrap();
        assert_eq!(content(&*origin.fork(0).unwrap()).await.1, [&wanted[..], &pairs(&[("o", "o")])].concat());
        let of_origin = store.origin(b"origin").unwrap();
        assert_eq!(content(&*of_origin).await.1, wanted);
    };
    check(&store, 0).await;
    drop(a);
    drop(store);
    let store = open(directory.path(), SMALL);
    check(&store, 0).await;
    for id in ["earlier", "of-root", "of-earlier"] {
        let branch = store.branch(id.as_bytes()).unwrap();
        write(&*branch, "later", Expected::Absent, "x").await;
        // later than the write
        store.reset(id.as_bytes(), b"").unwrap();
    }
    check(&store, 2).await;
    write(&store, "last", Expected::Absent, "x").await;
    store.compact(u64::MAX).await.unwrap();
    drop(store);
    check(&open(directory.path(), SMALL), 2).await;
}

async fn content_of(store: &Arc<dyn Store>) -> (u64, Vec<(String, String)>) {
    content(&**store).await
}

/// Writes to several branches share syncs, and forks need none.
#[tokio::test]
async fn concurrent_writes_to_branches_are_all_kept() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), SMALL);
    write(&store, "k", Expected::Absent, "1").await;
    let ids: Vec<String> = (0..100).map(|i| format!("b{i}")).collect();
    let writing = ids.iter().map(|id| {
        let branch = store.begin(id.as_bytes(), BranchSource::Store(None), b"").unwrap();
        async move {
            for i in 0..10 {
                write(&*branch, &format!("{i}"), Expected::Absent, "v").await;
            }
        }
    });
    futures_join(writing.collect()).await;
    drop(store);
    let store = open(directory.path(), SMALL);
    for id in &ids {
        assert_eq!(content_of(&store.branch(id.as_bytes()).unwrap()).await.1.len(), 11);
    }
}

/// Runs futures together.
async fn futures_join<F: Future<Output = ()>>(futures: Vec<F>) {
    let mut all: Vec<_> = futures.into_iter().map(Box::pin).collect();
    std::future::poll_fn(|context| {
        all.retain_mut(|one| one.as_mut().poll(context).is_pending());
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

/// What needs a branch that is being written waits for it, in the order of the calls.
#[tokio::test]
async fn forks_resets_and_deletions_wait_for_earlier_revisions() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), SMALL);
    let large = "x".repeat(100 << 10);
    for key in 0..20 {
        write(&store, &key.to_string(), Expected::Absent, &large).await;
    }
    let earlier = store.snapshot().await.unwrap();
    for key in 0..20 {
        write(&store, &key.to_string(), Expected::At(key + 1), "small").await;
    }
    let (go, wait) = std::sync::mpsc::sync_channel(1);
    let begun = Box::new(move || wait.recv().map(|()| earlier).map_err(|error| error.to_string()));
    store.begin_earlier(b"a", None, begun, b"first").unwrap();
    let fork = store.begin(b"fork", BranchSource::Branch(b"a", None), b"").unwrap();
    let reset = store.reset(b"a", b"second").unwrap();
    store.begin(b"gone", BranchSource::Branch(b"a", None), b"").unwrap();
    store.end(b"gone");
    // writes go on meanwhile
    write(&store, "more", Expected::Absent, "1").await;
    go.send(()).unwrap();
    let all: Vec<(String, String)> = content_of(&reset).await.1;
    assert!(all.len() == 20 && all.iter().all(|(_, value)| *value == large));
    assert_eq!((fork.head().await, reset.head().await), (Ok(20), Ok(21)));
    write(&*reset, "own", Expected::Absent, "1").await;
    store.compact(u64::MAX).await.unwrap();
    drop(store);
    let store = open(directory.path(), SMALL);
    let mut found: Vec<_> = store.branches().into_iter().map(|branch| (branch.id, branch.label)).collect();
    found.sort();
    assert_eq!(found, [("a".into(), "second".into()), ("fork".into(), "".into())]);
    assert_eq!(content_of(&store.branch(b"fork").unwrap()).await.1, all);
    assert_eq!(content_of(&store.branch(b"a").unwrap()).await.1.len(), 21);
}

#[tokio::test]
async fn what_a_branch_began_with_is_rewritten() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), SMALL);
    for (key, value) in [("a", "old"), ("b", "old")] {
        write(&store, key, Expected::Absent, value).await;
    }
    let branch = store.begin(b"a", BranchSource::Store(None), b"").unwrap();
    write(&*branch, "a", Expected::At(1), "own").await;
    let entry =
        |key: &str, value: String, revision| store::Entry { key: key.to_owned().into(), value: value.into(), revision };
    let large = "x".repeat(300 << 10);
    // one that the branch did not begin with changes nothing
    let values = vec![entry("a", large.clone(), 1), entry("b", "new".to_owned(), 2), entry("a", "other".to_owned(), 3)];
    store.rewrite_origin(b"a", values).await.unwrap();
    assert!(store.rewrite_origin(b"none", vec![]).await.is_err());
    let (live, origin) = (pairs(&[("a", "own"), ("b", "old")]), pairs(&[("a", &large), ("b", "new")]));
    assert_eq!((content_of(&branch).await.1, content(&*store.origin(b"a").unwrap()).await.1), (live, origin.clone()));
    drop(branch);
    drop(store);
    for key in ["from the log", "from a checkpoint"] {
        let store = open(directory.path(), SMALL);
        assert_eq!(content(&*store.origin(b"a").unwrap()).await.1, origin, "{key}");
        let reset = store.reset(b"a", b"").unwrap();
        assert_eq!(content_of(&reset).await.1, origin, "{key}");
        write(&store, key, Expected::Absent, "x").await;
        store.compact(u64::MAX).await.unwrap();
    }
}
