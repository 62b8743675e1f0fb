//! The contract, run on every engine.

mod branches;
mod golden;
mod unfinished;

use bytes::Bytes;
use store::contract::suite::CHECKS;
use store::{Durability, Embedded, Expected, Memory, OpenError, Options, Store, Write};

fn put(key: &str, expected: Expected, value: &str) -> Write {
    Write {
        key: Bytes::copy_from_slice(key.as_bytes()),
        expected,
        value: Some(Bytes::copy_from_slice(value.as_bytes())),
    }
}

fn delete(key: &str, revision: u64) -> Write {
    Write { key: Bytes::copy_from_slice(key.as_bytes()), expected: Expected::At(revision), value: None }
}

#[tokio::test]
async fn every_engine_passes_store_suite() {
    for (name, check) in CHECKS {
        check(&Memory::default(), "/").await;
        let interval = Durability::Interval(std::time::Duration::from_millis(1));
        for options in [
            Options::default(),
            SMALL,
            Options { durability: interval, ..SMALL },
            Options { durability: Durability::None, ..SMALL },
        ] {
            println!("{name}: {options:?}");
            let directory = tempfile::tempdir().unwrap();
            check(&Embedded::open(directory.path(), "a test", options).unwrap(), "/").await;
        }
    }
}

/// Many files, and a checkpoint with each compaction.
const SMALL: Options =
    Options { durability: Durability::Sync, segment_bytes: 2000, checkpoint_bytes: 0, history_bytes: u64::MAX };

#[tokio::test]
async fn reopened_directory_has_all_content() {
    let directory = tempfile::tempdir().unwrap();
    {
        let store = Embedded::open(directory.path(), "pid 1", SMALL).unwrap();
        for i in 0..50 {
            store.commit(put(&format!("k{i:02}"), Expected::Absent, "old")).await.unwrap();
        }
        store.commit(put("k00", Expected::At(1), "new")).await.unwrap();
        store.commit(delete("k01", 2)).await.unwrap();
        store.compact(51).await.unwrap();
        store.commit(put("k02", Expected::At(3), "newer")).await.unwrap();
        let Err(OpenError::Held(_, by)) = Embedded::open(directory.path(), "pid 2", SMALL) else {
            panic!("opened twice")
        };
        assert_eq!(by, "pid 1");
    }
    let store = reopen(directory.path());
    assert_eq!(store.head().await.unwrap(), 53);
    let old = store.history(100).await.unwrap();
    let keys: Vec<_> = old.entries.iter().map(|entry| (&entry.key[..], entry.revision)).collect();
    assert_eq!((old.revision, keys), (51, vec![(&b"k01"[..], 2), (&b"k02"[..], 3)]));
    assert_eq!(store.history(1).await.unwrap().revision, 52);
    let changes = store.follow(51).await.unwrap().next().await.unwrap().changes;
    assert_eq!(changes.iter().map(|c| c.revision).collect::<Vec<_>>(), [52, 53]);
    let latest = store.snapshot().await.unwrap();
    assert_eq!((latest.revision, latest.entries.len()), (53, 49));
}

#[tokio::test]
async fn writers_return_behind_the_reader_that_precedes_them() {
    let store = Memory::default();
    let mut reader = store.follow(0).await.unwrap();
    reader.precede_writers();
    let mut write = store.commit(put("a", Expected::Absent, "1"));
    let changes = tokio::select! {
        biased;
        _ = &mut write => panic!("the reader has not applied the change"),
        batch = reader.next() => batch.unwrap().changes,
    };
    assert_eq!(changes.len(), 1);
    tokio::select! {
        biased;
        _ = &mut write => panic!("the reader is still at work"),
        () = std::future::ready(()) => {}
    }
    let refused = store.commit(put("a", Expected::Absent, "2")).await;
    assert!(matches!(refused, Err(store::Refused::Conflict(Some(1)))), "who is refused has nothing to wait for");
    let next = tokio::select! {
        written = &mut write => written.unwrap(),
        _ = reader.next() => panic!("there are no other changes"),
    };
    assert_eq!(next, 1);
    // a reader that has taken over, and then is gone
    let mut later = store.follow(1).await.unwrap();
    later.precede_writers();
    drop(reader);
    let mut write = store.commit(put("b", Expected::Absent, "1"));
    tokio::select! {
        biased;
        _ = &mut write => panic!("the later reader counts"),
        batch = later.next() => assert_eq!(batch.unwrap().revision, 2),
    }
    drop(later);
    assert_eq!(write.await.unwrap(), 2);
    assert_eq!(store.commit(put("c", Expected::Absent, "1")).await.unwrap(), 3, "nobody precedes this writer");
}

/// A dropped store has released its directory.
fn reopen(path: &std::path::Path) -> Embedded {
    Embedded::open(path, "pid 3", SMALL).unwrap_or_else(|error| panic!("{error}"))
}

/// Writes the same keys over and over, and compacts as a server does.
async fn churn(store: &Embedded, rounds: u64, history: u64) {
    const KEYS: usize = 100;
    let mut at = vec![None; KEYS];
    for _ in 0..rounds {
        for (i, at) in at.iter_mut().enumerate() {
            let expected = at.map_or(Expected::Absent, Expected::At);
            *at = Some(store.commit(put(&format!("k{i}"), expected, &"x".repeat(300))).await.unwrap());
        }
        let head = store.head().await.unwrap();
        store.compact(head.saturating_sub(history)).await.unwrap();
    }
}

fn bytes_in(directory: &std::path::Path) -> u64 {
    let files = std::fs::read_dir(directory.join("log")).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

#[tokio::test]
async fn disk_usage_stays_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        durability: Durability::None,
        segment_bytes: 20_000,
        checkpoint_bytes: 40_000,
        history_bytes: u64::MAX,
    };
    let store = Embedded::open(directory.path(), "a test", options).unwrap();
    churn(&store, 100, 200).await;
    let bytes = bytes_in(directory.path());
    assert!(bytes < 300_000, "{bytes} bytes for 35,000 of live values, 70,000 of history, and 3,500,000 written");
    drop(store);
    let store = reopen(directory.path());
    let (latest, oldest) = (store.snapshot().await.unwrap(), store.history(10_000).await.unwrap());
    assert_eq!((latest.entries.len(), latest.revision), (100, 10_000));
    assert!(oldest.revision > 9_000, "{}", oldest.revision);
}

/// Writes a backup without files; returns the snapshot that it contains, without its entries.
fn backup(data: &std::path::Path, file: &std::path::Path) -> store::Snapshot {
    let snapshot = store::snapshot(data).unwrap();
    let revision = snapshot.revision;
    store::write_backup(snapshot.into(), &[], std::fs::File::create_new(file).unwrap()).unwrap();
    store::Snapshot { revision, entries: vec![] }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::disallowed_methods, reason = "a thread of its own")]
async fn backup_during_writes_is_a_consistent_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let options =
        Options { durability: Durability::None, segment_bytes: 20_000, checkpoint_bytes: 0, history_bytes: u64::MAX };
    let store = std::sync::Arc::new(Embedded::open(&directory.path().join("data"), "a test", options).unwrap());
    store.commit(put("first", Expected::Absent, "")).await.unwrap();
    let (data, writing) = (directory.path().join("data"), store.clone());
    let runtime = tokio::runtime::Handle::current();
    let writer = std::thread::spawn(move || runtime.block_on(churn(&writing, 60, 500)));
    let mut backups = 0;
    while !writer.is_finished() || backups == 0 {
        let before = store.head().await.unwrap();
        let file = directory.path().join(format!("backup-{backups}"));
        let summary = backup(&data, &file);
        assert!(summary.revision >= before, "{} after {before}", summary.revision);
        let copy = directory.path().join(format!("copy-{backups}"));
        assert_eq!(store::restore(&file, &copy, 0).unwrap().summary.revision, summary.revision);
        let restored = reopen(&copy).snapshot().await.unwrap();
        // the keys are written in turn, so the newest hundred revisions are those of the hundred keys
        let mut revisions: Vec<u64> = restored.entries.iter().map(|entry| entry.revision).collect();
        revisions.sort_unstable();
        let newest = summary.revision.saturating_sub(99).max(2)..=summary.revision;
        assert_eq!(revisions, [1].into_iter().chain(newest).collect::<Vec<_>>());
        assert_eq!(store::check(&copy).unwrap().objects, revisions.len());
        backups += 1;
    }
    writer.join().unwrap();
}

/// A follower that was ahead of the backup gets [`store::StoreError::Compacted`]; no revision is used twice.
#[tokio::test]
async fn restored_store_reuses_no_revision() {
    let directory = tempfile::tempdir().unwrap();
    let (data, file, copy) =
        (directory.path().join("data"), directory.path().join("backup"), directory.path().join("copy"));
    let store = Embedded::open(&data, "a test", SMALL).unwrap();
    let first = store.commit(put("a", Expected::Absent, "old")).await.unwrap();
    let backed_up = backup(&data, &file).revision;
    let mut last = first;
    for i in 0..500 {
        last = store.commit(put("a", Expected::At(last), &i.to_string())).await.unwrap();
    }
    drop(store);
    let summary = store::restore(&file, &copy, store::RESTORE_BUMP).unwrap().summary;
    assert_eq!((summary.revision, summary.compacted), (backed_up + store::RESTORE_BUMP, summary.revision));
    let store = reopen(&copy);
    for ahead in [backed_up, last, summary.revision - 1] {
        let lost = store.follow(ahead).await.err();
        assert_eq!(lost, Some(store::StoreError::Compacted(summary.revision)), "after {ahead}");
    }
    let entries = store.snapshot().await.unwrap().entries;
    assert_eq!(
        entries.iter().map(|entry| (entry.revision, &entry.value[..])).collect::<Vec<_>>(),
        [(first, &b"old"[..])]
    );
    let next = store.commit(put("a", Expected::At(first), "new")).await.unwrap();
    assert_eq!(next, summary.revision + 1);
    let changes = store.follow(summary.revision).await.unwrap().next().await.unwrap().changes;
    assert_eq!(changes.iter().map(|change| change.revision).collect::<Vec<_>>(), [next]);
    drop(store);
    assert_eq!(store::check(&copy).unwrap().revision, next);
}

#[test]
fn backup_contains_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    drop(Embedded::open(&path("data"), "a test", SMALL).unwrap());
    let write = |name: &str, file: &str| {
        let files = [store::BackupFile { name: file.to_owned(), content: "secret".into() }];
        store::write_backup(store::content(&path("data")).unwrap(), &files, std::fs::File::create(path(name)).unwrap())
            .unwrap();
    };
    write("good", "ca.key");
    assert_eq!(store::restore(&path("good"), &path("copy"), 0).unwrap().files, ["ca.key"]);
    assert_eq!(std::fs::read(path("copy/ca.key")).unwrap(), b"secret");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path("copy/ca.key")).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    for name in ["", "..", "../ca.key", "/etc/passwd", ".hidden"] {
        write("bad", name);
        let error = store::restore(&path("bad"), &path("other"), 0).unwrap_err().to_string();
        assert!(error.contains("invalid name"), "{error}");
        assert!(!path("other").exists());
    }
    std::fs::create_dir(path("used")).unwrap();
    std::fs::write(path("used/ca.key"), "other").unwrap();
    let error = store::restore(&path("good"), &path("used"), 0).unwrap_err().to_string();
    assert!(error.contains("the file exists already"), "{error}");
}

#[test]
fn revision_cannot_exceed_int64() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("backup");
    drop(Embedded::open(&directory.path().join("data"), "a test", SMALL).unwrap());
    backup(&directory.path().join("data"), &file);
    for bump in [u64::MAX, i64::MAX as u64 + 1] {
        let error = store::restore(&file, &directory.path().join("copy"), bump).unwrap_err().to_string();
        assert!(error.contains("cannot be raised by"), "{error}");
    }
    assert!(!directory.path().join("copy").exists());
}

#[test]
fn rejects_newer_format() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("FORMAT"), "pintle 99\n").unwrap();
    let error = Embedded::open(directory.path(), "", SMALL).err().unwrap().to_string();
    assert!(error.contains("has format 99"), "{error}");
}

#[tokio::test]
async fn history_is_bounded_in_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let (segment_bytes, history_bytes) = (20_000, 100_000);
    let options = Options { durability: Durability::None, segment_bytes, checkpoint_bytes: 0, history_bytes };
    let store = Embedded::open(directory.path(), "a test", options).unwrap();
    let value = "x".repeat(1000);
    let mut last = store.commit(put("a", Expected::Absent, &value)).await.unwrap();
    for i in 0..500 {
        last = store.commit(put("a", Expected::At(last), &value)).await.unwrap();
        if i % 50 == 0 {
            store.compact(0).await.unwrap();
        }
    }
    store.compact(0).await.unwrap();
    let size = store.size().unwrap();
    assert!(history_bytes < size && size < history_bytes + 3 * segment_bytes, "{size}");
    assert!(store.follow(last - 50).await.is_ok() && store.follow(last - 300).await.is_err());
    drop(store);
    let reopened = Embedded::open(directory.path(), "a test", options).unwrap();
    assert_eq!(reopened.snapshot().await.unwrap().entries.len(), 1);
    assert!(reopened.follow(last - 50).await.is_ok());
}

#[test]
fn removed_lock_lets_no_second_process_in() {
    let directory = tempfile::tempdir().unwrap();
    let store = Embedded::open(directory.path(), "a test", SMALL).unwrap();
    std::fs::remove_file(directory.path().join("LOCK")).unwrap();
    assert!(matches!(Embedded::open(directory.path(), "another", SMALL), Err(OpenError::Held(..))));
    drop(store);
    reopen(directory.path());
}

#[tokio::test]
async fn damaged_mark_of_a_clean_stop_does_not_matter() {
    let directory = tempfile::tempdir().unwrap();
    let store = Embedded::open(directory.path(), "a test", SMALL).unwrap();
    store.commit(put("a", Expected::Absent, "1")).await.unwrap();
    drop(store);
    let mark = directory.path().join("log/stopped");
    for content in [&b""[..], b"123456789012", b"1234567890123"] {
        std::fs::write(&mark, content).unwrap();
        assert_eq!(store::check(directory.path()).unwrap().stopped, None);
        assert_eq!(reopen(directory.path()).snapshot().await.unwrap().entries.len(), 1);
    }
}

#[tokio::test]
async fn backups_are_checked_and_salvaged() {
    let (place, directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Embedded::open(directory.path(), "a test", SMALL).unwrap();
    let large = "x".repeat(100 << 10);
    for key in 0..10 {
        store.commit(put(&format!("key-{key}"), Expected::Absent, &large)).await.unwrap();
    }
    drop(store);
    let file = place.path().join("backup");
    backup(directory.path(), &file);
    let snapshot = store::snapshot(directory.path()).unwrap();
    let summary = store::check_backup(&file).unwrap();
    assert_eq!((summary.objects, summary.revision, summary.branches), (10, 10, 0));
    let whole = store::salvage_backup(&file).unwrap();
    assert!(whole.snapshot == snapshot && whole.losses.is_empty(), "{:?}", whole.losses);
    let bytes = std::fs::read(&file).unwrap();
    for (at, losses) in [(3, 1), (bytes.len() / 2, 1), (bytes.len() - 3, 1)] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        std::fs::write(&file, damaged).unwrap();
        assert!(store::check_backup(&file).is_err(), "{at}");
        let salvaged = store::salvage_backup(&file).unwrap();
        assert_eq!((salvaged.losses.len(), salvaged.more), (losses, 0), "{at}: {:?}", salvaged.losses);
        assert!(salvaged.losses[0].starts_with("backup: "), "{:?}", salvaged.losses);
        assert!(salvaged.snapshot.entries.len() >= 7, "{at}");
    }
    std::fs::write(&file, &bytes[..bytes.len() - 30]).unwrap();
    assert!(store::check_backup(&file).is_err() && !store::salvage_backup(&file).unwrap().losses.is_empty());
}
