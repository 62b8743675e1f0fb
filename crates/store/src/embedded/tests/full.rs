//! Full and failing disks: a write that finds no room is refused without loss; after a failed sync nothing is written.

use std::sync::Arc;

use super::for_each;
use super::model::{OPTIONS, Run};
use super::sim::Chance;
use crate::contract::{BranchSource, Branching as _, Entry, Expected, Refused, Store as _, StoreError, Write};
use crate::embedded::disk::Disk as _;
use crate::embedded::writer::Failure;
use crate::embedded::{Durability, Embedded, Options};

#[test]
fn writes_resume_when_space_returns() {
    for_each(0..50, |seed| {
        let mut chance = Chance(seed);
        let mut run = Run::create();
        let mut refused = 0;
        for _ in 0..20 {
            let used: usize = run.disk.contents().iter().map(|(_, bytes)| bytes.len()).sum();
            run.disk.set_room(Some(used + chance.below(4000)));
            for _ in 0..5 {
                match run.step(&mut chance) {
                    Ok(()) => {}
                    Err(Failure::Temporary(_)) => refused += 1,
                    Err(Failure::Fatal(why) | Failure::Lost(why)) => panic!("seed {seed}: {why}"),
                }
                run.incomplete.clear();
            }
            run.disk.set_room(None);
            run.write(&mut chance).unwrap();
        }
        assert!(refused > 0);
        Run::open(run.disk.after_crash(&mut chance), run.acknowledged, vec![], OPTIONS).unwrap();
    });
}

#[test]
fn log_keeps_its_segment_while_no_file_can_be_opened() {
    for seed in 0..50 {
        let mut chance = Chance(seed);
        let mut run = Run::create();
        run.disk.set_out_of_descriptors(true);
        for _ in 0..40 {
            run.write(&mut chance).unwrap_or_else(|failure| panic!("seed {seed}: {failure:?}"));
        }
        assert_eq!(run.writer.files.lock().segments.len(), 1);
        run.disk.set_out_of_descriptors(false);
        run.write(&mut chance).unwrap();
        assert_eq!(run.writer.files.lock().segments.len(), 2);
        Run::open(run.disk.after_crash(&mut chance), run.acknowledged, vec![], OPTIONS).unwrap();
    }
}

#[tokio::test]
async fn poisoned_store_is_not_compacted() {
    let run = Run::create();
    let store = store_on(&run).await;
    run.disk.fail_sync(true);
    store.commit(put("second")).await.unwrap_err();
    let before = run.disk.contents();
    let refused = store.compact(1).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(ref why) if why.contains("the disk is gone")), "{refused:?}");
    assert_eq!(run.disk.contents(), before);
    assert!(store.follow(0).await.is_ok(), "history is still there");
}

#[tokio::test]
async fn a_fork_of_an_earlier_revision_that_is_not_written_does_not_begin() {
    let run = Run::create();
    let store = store_on(&run).await;
    let snapshot = store.snapshot().await.unwrap();
    store.commit(put("second")).await.unwrap();
    let begin = async |id: &[u8]| {
        let earlier = snapshot.clone();
        let branch = store.begin_earlier(id, None, Box::new(move || Ok(earlier)), b"").unwrap();
        let has_begun = branch.head().await.is_ok();
        // one that has not is forgotten a moment later
        while !has_begun && store.branch(id).is_some() {
            tokio::task::yield_now().await;
        }
        has_begun
    };
    let used: usize = run.disk.contents().iter().map(|(_, bytes)| bytes.len()).sum();
    run.disk.set_room(Some(used));
    assert!(!begin(b"a").await);
    run.disk.set_room(None);
    assert!(begin(b"a").await && begin(b"b").await);
    run.disk.fail_sync(true);
    assert!(!begin(b"c").await);
    run.disk.fail_sync(false);
    drop(store);
    let crashed = Arc::new(run.disk.after_crash(&mut Chance(1)));
    let store = Embedded::start(Embedded::recover(crashed, OPTIONS, vec![]).unwrap(), None);
    for id in [b"a", b"b"] {
        let found = store.branch(id).unwrap().snapshot().await.unwrap();
        assert_eq!(found.entries, snapshot.entries);
    }
}

#[tokio::test]
async fn rewriting_on_a_full_disk_fails_as_a_write_does() {
    let run = Run::create();
    let store = store_on(&run).await;
    let branch = store.begin(b"a", BranchSource::Store(None), b"").unwrap();
    branch.head().await.unwrap();
    let values = || vec![Entry { key: "first".into(), value: "rewritten".into(), revision: 1 }];
    run.disk.set_room(Some(run.disk.contents().iter().map(|(_, bytes)| bytes.len()).sum()));
    let Err(Refused::Failed(of_write)) = store.commit(put("second")).await else { panic!("the disk has room") };
    assert_eq!(store.rewrite_origin(b"a", values()).await, Err(of_write));
    run.disk.set_room(None);
    assert_eq!(store.rewrite_origin(b"a", values()).await, Ok(()));
}

fn put(key: &str) -> Write {
    Write { key: key.to_owned().into(), expected: Expected::Absent, value: Some("value".into()) }
}

async fn store_on(run: &Run) -> Embedded {
    store_with(run, OPTIONS.durability).await
}

async fn store_with(run: &Run, durability: Durability) -> Embedded {
    let options = Options { segment_bytes: 1 << 20, durability, ..OPTIONS };
    let store = Embedded::start(Embedded::recover(Arc::new(run.disk.clone()), options, vec![]).unwrap(), None);
    store.commit(put("first")).await.unwrap();
    store
}

#[tokio::test]
async fn full_store_reports_no_space_until_there_is_room() {
    let run = Run::create();
    let store = store_on(&run).await;
    assert_eq!(store.health(), Ok(()));
    run.disk.set_room(Some(0));
    let refused = store.commit(put("second")).await.unwrap_err();
    assert!(format!("{refused:?}").contains("cannot write to the log"), "{refused:?}");
    assert!(matches!(store.health(), Err(StoreError::Unavailable(_))));
    assert_eq!(store.snapshot().await.unwrap().entries.len(), 1, "reads go on");
    run.disk.set_room(None);
    while store.health().is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.commit(put("second")).await.unwrap(), 2);
}

#[tokio::test]
async fn nothing_is_acknowledged_after_a_failed_sync() {
    let run = Run::create();
    let store = store_on(&run).await;
    run.disk.fail_sync(true);
    for key in ["second", "third"] {
        let refused = format!("{:?}", store.commit(put(key)).await.unwrap_err());
        assert!(refused.contains("cannot sync the log: the disk is gone"), "{refused}");
    }
    assert!(store.health().is_err());
    assert_eq!(store.head().await.unwrap(), 1);
}

#[tokio::test]
async fn removed_file_ends_acknowledgements() {
    let run = Run::create();
    let store = store_on(&run).await;
    let name = run.disk.contents()[0].0.clone();
    run.disk.remove(&name).unwrap();
    let refused = format!("{:?}", store.commit(put("second")).await.unwrap_err());
    assert!(refused.contains(&format!("log/{name} has been removed")), "{refused}");
    assert!(store.health().is_err());
    assert_eq!(store.head().await.unwrap(), 1);
}

#[tokio::test]
async fn moved_file_is_noticed_without_a_write() {
    for by_compaction in [false, true] {
        let run = Run::create();
        let store = store_on(&run).await;
        let name = run.disk.contents()[0].0.clone();
        run.disk.rename(&name, "elsewhere").unwrap();
        if by_compaction {
            store.compact(1).await.unwrap_err();
        }
        let found = store.health();
        assert!(matches!(&found, Err(StoreError::Unavailable(why)) if why.contains(&name)), "{found:?}");
    }
}

#[tokio::test]
async fn failed_background_sync_stops_acknowledgements() {
    let run = Run::create();
    let store = store_with(&run, Durability::Interval(std::time::Duration::from_millis(1))).await;
    run.disk.fail_sync(true);
    let mut written = 0;
    while store.commit(put(&written.to_string())).await.is_ok() {
        written += 1;
    }
    assert!(matches!(store.health(), Err(StoreError::Unavailable(why)) if why.contains("the disk is gone")));
    assert!(store.commit(put("more")).await.is_err());
}

#[test]
fn start_rewrites_data_of_failed_sync() {
    for_each(0..200, |seed| {
        let mut chance = Chance(seed);
        let mut run = Run::create();
        for _ in 0..5 + chance.below(20) {
            run.step(&mut chance).unwrap();
        }
        run.disk.fail_sync(true);
        while run.step(&mut chance).is_ok() {}
        // the process restarts, the machine does not: reads return the page cache
        run.disk.fail_sync(false);
        let mut run = Run::open(run.disk, run.acknowledged, run.incomplete, OPTIONS).unwrap();
        for _ in 0..chance.below(4) {
            run.write(&mut chance).unwrap();
        }
        let after = run.disk.after_crash(&mut chance);
        Run::open(after, run.acknowledged, vec![], OPTIONS).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    });
}
