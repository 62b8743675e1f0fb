//! The contract on a real etcd, and failures of etcd.

use std::io::Read as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use store::contract::suite::CHECKS;
use store::{Batch, Entry};

use super::*;
use crate::copies::Copier;

/// The binary of etcd. Tests run in parallel: the first one builds it, the others wait.
static BINARY: LazyLock<PathBuf> = LazyLock::new(binary);

/// etcd of the module in tests/etcd, built into target/etcd when that has not been done.
fn binary() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let module = std::fs::read_to_string(root.join("tests/etcd/go.mod")).unwrap();
    let version = module.split_once("go.etcd.io/etcd/server/v3 ").unwrap().1.lines().next().unwrap();
    let binary = root.join("target/etcd").join(version).join("etcd");
    if !binary.exists() {
        let unfinished = binary.with_extension(std::process::id().to_string());
        let built = Command::new("go")
            .args(["build", "-trimpath", "-ldflags", "-s -w", "-o"])
            .arg(std::path::absolute(&unfinished).unwrap())
            .arg(".")
            .current_dir(root.join("tests/etcd"))
            .status();
        assert!(built.is_ok_and(|status| status.success()), "etcd cannot be built: Go is needed");
        std::fs::rename(unfinished, &binary).unwrap();
    }
    binary
}

/// Returns a port below those that the kernel gives to connections, so that a member finds it free when it is started again.
fn free_port() -> u16 {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id() + TRIED.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(10_000 + number % 10_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A member that is a cluster of its own, on free ports.
struct Member {
    process: Option<Child>,
    ports: [u16; 2],
    data: tempfile::TempDir,
}

impl Member {
    fn start() -> Member {
        let ports = [free_port(), free_port()];
        let mut member = Member { process: None, ports, data: tempfile::tempdir().unwrap() };
        member.run();
        member
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports[0])
    }

    /// Starts the process and waits until it serves.
    fn run(&mut self) {
        let [client, peer] = self.ports.map(|port| format!("http://127.0.0.1:{port}"));
        let mut process = Command::new(&*BINARY)
            .args(["--name", "one", "--log-level", "error", "--unsafe-no-fsync", "--data-dir"])
            .arg(self.data.path().join("data"))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("one={peer}")])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while std::net::TcpStream::connect(("127.0.0.1", self.ports[0])).is_err() {
            if process.try_wait().unwrap().is_some() {
                let mut said = String::new();
                process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
                panic!("etcd ended: {said}");
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        self.process = Some(process);
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    fn store(&self, prefix: &str) -> Etcd {
        Etcd::new(&Options { servers: vec![self.url()], prefix: prefix.to_owned(), ..Options::default() }).unwrap()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

fn put(key: &str, expected: Expected, value: &str) -> Write {
    let value = Some(Bytes::copy_from_slice(value.as_bytes()));
    Write { key: Bytes::copy_from_slice(key.as_bytes()), expected, value }
}

/// A store below a prefix. `honest` is whether its client trusts the progress that watches report.
async fn checked_store(member: &Member, prefix: &str, honest: bool) -> Etcd {
    let store = member.store(prefix);
    store.newest().await.unwrap();
    store.client.assume_progress(honest);
    store
}

#[tokio::test]
async fn etcd_passes_store_suite() {
    let member = Member::start();
    for (number, (name, check)) in CHECKS.into_iter().enumerate() {
        for honest in [true, false] {
            println!("{name}, {honest}");
            let prefix = format!("/suite-{number}-{honest}");
            let store = checked_store(&member, &prefix, honest).await;
            check(&store, &format!("{prefix}/")).await;
        }
    }
}

#[tokio::test]
async fn store_with_an_interrupted_import_is_refused_until_one_is_finished() {
    let member = Member::start();
    let running = member.store("/r");
    assert!(running.snapshot().await.unwrap().entries.is_empty());
    let interrupted = member.store("/r");
    assert_eq!(interrupted.begin_import().await.unwrap().before, BeforeImport::Store);
    interrupted.commit(put("/r/a", Expected::Absent, "1")).await.unwrap();
    drop(interrupted);
    let unfinished =
        |error: StoreError| matches!(error, StoreError::Unfinished(why) if why.contains("/r/pintle/importing"));
    assert!(unfinished(member.store("/r").snapshot().await.unwrap_err()));
    assert!(unfinished(member.store("/r").history(100).await.unwrap_err()));
    assert!(unfinished(member.store("/r").latest().await.unwrap_err()));
    assert!(member.store("/other").snapshot().await.is_ok(), "the mark is of one prefix");
    assert_eq!(running.snapshot().await.unwrap().entries.len(), 1, "a server that was running goes on");
    let second = member.store("/r");
    let mark = second.begin_import().await.unwrap();
    assert_eq!(mark.before, BeforeImport::Unfinished);
    assert_eq!(second.snapshot().await.unwrap().entries.len(), 1);
    second.finish_import(&mark).await.unwrap();
    assert_eq!(member.store("/r").snapshot().await.unwrap().entries.len(), 1);
}

#[tokio::test]
async fn foreign_keys_advance_revision_without_events() {
    let member = Member::start();
    let (ours, others) = (member.store("ours"), member.store("/ours0"));
    let mut changes = ours.follow(ours.head().await.unwrap()).await.unwrap();
    let written = others.commit(put("/ours0/a", Expected::Absent, "1")).await.unwrap();
    let (head, batch) = tokio::join!(ours.head(), changes.next());
    assert!(head.unwrap() >= written);
    assert_eq!(batch.unwrap(), Batch { changes: vec![], revision: written });
    assert!(ours.snapshot().await.unwrap().entries.is_empty());
}

#[tokio::test]
async fn follower_resumes_after_etcd_restart() {
    let mut member = Member::start();
    let store = member.store("/r");
    let first = store.commit(put("/r/a", Expected::Absent, "1")).await.unwrap();
    let mut changes = store.follow(0).await.unwrap();
    assert_eq!(changes.next().await.unwrap().revision, first);
    member.kill();
    // the connection is found broken: whether the write took effect is unknown
    let refused = store.commit(put("/r/b", Expected::Absent, "1")).await;
    assert!(matches!(refused, Err(Refused::Failed(StoreError::Unavailable(_)))), "{refused:?}");
    member.run();
    let second = store.commit(put("/r/b", Expected::Absent, "1")).await.unwrap_or_else(|error| panic!("{error:?}"));
    let third = store.commit(put("/r/a", Expected::At(first), "2")).await.unwrap();
    let mut seen = vec![];
    while seen.last() != Some(&third) {
        seen.extend(changes.next().await.unwrap().changes.iter().map(|change| change.revision));
    }
    assert_eq!(seen, [second, third]);
    assert_eq!(store.health(), Ok(()));
}

#[tokio::test]
async fn rejects_another_cluster_at_same_endpoint() {
    let mut member = Member::start();
    let store = member.store("/r");
    store.commit(put("/r/a", Expected::Absent, "1")).await.unwrap();
    member.kill();
    let other = Member::start();
    let (before, after) = (member.url(), other.url());
    let moved = Etcd::new(&Options { servers: vec![after.clone()], prefix: "/r".to_owned(), ..Options::default() });
    let moved = moved.unwrap();
    moved.client.assume_cluster(&store.client);
    let refused = moved.commit(put("/r/b", Expected::Absent, "1")).await;
    let Err(Refused::Failed(StoreError::Unavailable(why))) = refused else { panic!("{refused:?} {before}") };
    assert!(
        why.contains(&format!("etcd at {after} has cluster id ")) && why.contains("the id that it had before"),
        "{why}"
    );
    assert!(other.store("/r").snapshot().await.unwrap().entries.is_empty());
}

#[tokio::test]
async fn unresponsive_etcd_member_is_named() {
    let mut member = Member::start();
    let store = member.store("/r");
    member.kill();
    let error = store.newest().await.unwrap_err().to_string();
    assert!(error.contains(&format!("etcd at {}: Connection refused", member.url())), "{error}");
    assert!(store.health().is_err());
}

#[tokio::test]
async fn servers_agree_on_compaction() {
    let member = Member::start();
    let (one, two) = (member.store("/r"), member.store("/r"));
    let mut at = one.commit(put("/r/a", Expected::Absent, "1")).await.unwrap();
    for store in [&one, &two] {
        store.compact(1).await.unwrap();
    }
    let old = at;
    for value in ["2", "3"] {
        at = one.commit(put("/r/a", Expected::At(at), value)).await.unwrap();
    }
    // `two` has compacted since `one` last did, so this call has no effect
    one.compact(at).await.unwrap();
    assert!(one.follow(old).await.unwrap().next().await.is_ok());
    one.compact(at).await.unwrap();
    let lost = one.follow(old).await.unwrap().next().await;
    assert_eq!(lost.err(), Some(StoreError::Compacted(at)));
    assert_eq!(one.snapshot().await.unwrap().entries.len(), 1);
}

/// Keeps every key.
fn all(_: &Bytes) -> bool {
    true
}

/// The content of a store, without the revisions.
async fn content(store: &dyn Store) -> Vec<(Bytes, Bytes)> {
    store.snapshot().await.unwrap().entries.into_iter().map(|entry| (entry.key, entry.value)).collect()
}

/// A copy of nothing.
async fn empty_copy(store: &Etcd, id: &str) -> Etcd {
    store.copy(id, CopySource::Entries(vec![]), &all).await.unwrap();
    store.opened(id).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_copy_passes_store_suite() {
    let member = Member::start();
    // it is compacted with the store that it belongs to
    let compacts = |name: &str| {
        ["history leads to the present", "followers from before a compaction get an error"].contains(&name)
    };
    let checks = CHECKS.into_iter().filter(|(name, _)| !compacts(name));
    assert_eq!(checks.clone().count(), CHECKS.len() - 2);
    for (number, (name, check)) in checks.enumerate() {
        for honest in [true, false] {
            println!("{name}, {honest}");
            let prefix = format!("/suite-{number}-{honest}");
            let store = checked_store(&member, &prefix, honest).await;
            let copy = empty_copy(&store, "u/1").await;
            check(&copy, &format!("{prefix}/")).await;
            assert!(store.snapshot().await.unwrap().entries.is_empty());
        }
    }
}

#[tokio::test]
async fn a_copy_has_what_its_source_had_at_one_revision() {
    let member = Member::start();
    let store = member.store("/r");
    let mut at = 0;
    for number in 0..450 {
        at = store.commit(put(&format!("/r/a/{number:03}"), Expected::Absent, "1")).await.unwrap();
    }
    let big = "x".repeat(700 << 10);
    for name in ["b1", "b2", "b3"] {
        at = store.commit(put(&format!("/r/{name}"), Expected::Absent, &big)).await.unwrap();
    }
    let before = content(&store).await;
    store.commit(put("/r/later", Expected::Absent, "1")).await.unwrap();
    store.copy("u/1", CopySource::Store(at), &all).await.unwrap();
    let copy = store.open("u/1").await.unwrap().unwrap();
    assert!(content(&*copy).await == before);
    // a copy of the copy, of some of its keys, as it was
    let since = copy.head().await.unwrap();
    copy.commit(put("/r/own", Expected::Absent, "1")).await.unwrap();
    store.copy("u/2", CopySource::Copy("u/1", Some(since)), &|key| key.starts_with(b"/r/b")).await.unwrap();
    let second = store.open("u/2").await.unwrap().unwrap();
    let names = |entries: Vec<(Bytes, Bytes)>| -> Vec<Bytes> { entries.into_iter().map(|(key, _)| key).collect() };
    assert_eq!(names(content(&*second).await), ["/r/b1", "/r/b2", "/r/b3"]);
    // what was before the copy is not its history
    assert_eq!(
        second.follow(since).await.err(),
        Some(StoreError::Compacted(second.history(9).await.unwrap().revision))
    );
    let of_before = store.copy("u/3", CopySource::Copy("u/1", Some(at)), &all).await;
    assert_eq!(of_before, Err(StoreError::Compacted(at)), "it was not whole then");
    assert!(store.open("u/3").await.unwrap().is_none());
    assert_eq!(store.copies("u/").await.unwrap(), ["u/1", "u/2", "u/3"]);
}

#[tokio::test]
async fn an_ended_copy_is_written_by_nothing_and_reports_no_later_revision() {
    let member = Member::start();
    let store = member.store("/r");
    let copy = empty_copy(&store, "u/1").await;
    let written = copy.commit(put("/r/a", Expected::Absent, "1")).await.unwrap();
    let mut changes = copy.follow(written - 1).await.unwrap();
    assert_eq!(changes.next().await.unwrap().revision, written);
    store.end("u/1").await.unwrap();
    store.commit(put("/r/other", Expected::Absent, "1")).await.unwrap();
    let ended = |error: &StoreError| error.to_string().ends_with("it has been reset or deleted");
    for expected in [Expected::Absent, Expected::At(written)] {
        let refused = copy.commit(put("/r/a", expected, "2")).await;
        assert!(matches!(&refused, Err(Refused::Failed(error)) if ended(error)), "{refused:?}");
    }
    for honest in [true, false] {
        copy.client.assume_progress(honest);
        assert!(ended(&copy.head().await.unwrap_err()));
    }
    assert!(ended(&copy.snapshot().await.unwrap_err()));
    assert!(store.open("u/1").await.unwrap().is_none());
    copy.client.assume_progress(true);
    let head = store.head().await.unwrap();
    // also not by a follower that asks for progress
    copy.wanted.send_replace(head);
    let late = std::time::Duration::from_millis(500);
    assert!(tokio::time::timeout(late, changes.next()).await.is_err(), "nothing follows the end");
    assert!(content(&copy_of(&store, "u/1")).await.iter().any(|(key, _)| key == "/r/a"), "not removed yet");
    store.remove("u/1").await.unwrap();
    let keys = Etcd::of(store.client.clone(), KeySpace::own("/r.workspaces".to_owned()), None);
    assert_eq!(content(&keys).await, []);
    assert_eq!(content(&store).await.len(), 1);
}

/// The keys of a copy, whether or not it has ended.
fn copy_of(store: &Etcd, id: &str) -> Etcd {
    Etcd::of(store.client.clone(), store.keys.of_copy(id), None)
}

#[tokio::test]
async fn a_copy_that_was_ended_meanwhile_never_becomes_whole() {
    let member = Member::start();
    let (store, other) = (member.store("/r"), member.store("/r"));
    let entry = |number: usize| Entry { key: format!("/r/{number}").into(), value: "1".into(), revision: 1 };
    let entries: Vec<Entry> = (0..150).map(entry).collect();
    let copier = Copier::begin(store.copies_of(), "u/1", &all).await.unwrap();
    copier.copy_entries(entries.clone()).await.unwrap();
    // another server has taken over
    other.end("u/1").await.unwrap();
    assert_eq!(copier.copy_entries(entries).await, Err(Failure::Ended));
    assert_eq!(copier.finish().await, Err(Failure::Ended));
    assert!(store.open("u/1").await.unwrap().is_none());
    assert!(store.copy("u/1", CopySource::Entries(vec![]), &all).await.is_err(), "an id is used once");
    store.remove("u/1").await.unwrap();
    assert!(store.copies("").await.unwrap().is_empty());
    // nor does a copier write to a copy that is used
    let copier = Copier::begin(store.copies_of(), "u/2", &all).await.unwrap();
    for _ in 0..2 {
        copier.finish().await.unwrap();
    }
    let copy = store.open("u/2").await.unwrap().unwrap();
    copy.commit(put("/r/0", Expected::Absent, "2")).await.unwrap();
    assert_eq!(copier.copy_entries(vec![entry(0)]).await, Err(Failure::Ended));
    assert_eq!(content(&*copy).await, [(Bytes::from("/r/0"), Bytes::from("2"))]);
}

#[tokio::test]
async fn many_keys_are_removed_a_part_at_a_time() {
    let member = Member::start();
    let store = member.store("/r");
    let entry = |number: usize| Entry { key: format!("/r/{number}").into(), value: "1".into(), revision: 1 };
    for id in ["u/1", "u/1-origin"] {
        store.copy(id, CopySource::Entries((0..1200).map(entry).collect()), &all).await.unwrap();
    }
    store.remove("u/1").await.unwrap();
    assert_eq!(store.copies("").await.unwrap(), ["u/1-origin"]);
    assert_eq!(content(&*store.open("u/1-origin").await.unwrap().unwrap()).await.len(), 1200);
    assert!(content(&copy_of(&store, "u/1")).await.is_empty());
    store.remove("u/1").await.unwrap();
}
