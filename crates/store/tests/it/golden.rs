//! Data of earlier formats, written by `examples/golden.rs` to `tests/golden`: every version reads it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use store::{Embedded, Expected, Options, Store as _, Write};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// The content of a store, in the form of `expected`.
async fn content(data: &Path) -> String {
    let store = Embedded::open(data, "a test", Options::default()).unwrap_or_else(|error| panic!("{error}"));
    let snapshot = store.snapshot().await.unwrap();
    let mut out = format!("revision {}\n", snapshot.revision);
    for entry in snapshot.entries {
        writeln!(out, "{} {} {}", entry.revision, entry.key.escape_ascii(), entry.value.escape_ascii()).unwrap();
    }
    out
}

#[tokio::test]
async fn reads_formats_of_earlier_versions() {
    let mut read = 0;
    for format in std::fs::read_dir(golden()).unwrap() {
        let format = format.unwrap().path();
        if !format.is_dir() {
            continue;
        }
        let expected = std::fs::read_to_string(format.join("expected")).unwrap();
        let place = tempfile::tempdir().unwrap();
        let (data, restored) = (place.path().join("data"), place.path().join("restored"));
        copy(&format.join("data"), &data);
        assert_eq!(content(&data).await, expected, "{}", format.display());
        store::restore(&format.join("backup"), &restored, 0).unwrap();
        assert_eq!(content(&restored).await, expected, "the backup of {}", format.display());
        let with_keys = place.path().join("with-keys");
        let found = store::restore(&format.join("backup-with-keys"), &with_keys, 0).unwrap();
        assert_eq!(content(&with_keys).await, expected, "the backup with keys of {}", format.display());
        assert_eq!(found.files, ["ca.key"]);
        assert_eq!(std::fs::read(with_keys.join("ca.key")).unwrap(), b"a key");
        read += 1;
    }
    assert!(read > 0);
}

/// The kinds of the records of a file of a log, by the description in docs/src/design/store.md.
fn record_kinds(path: &Path) -> BTreeSet<u8> {
    let bytes = std::fs::read(path).unwrap();
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    assert!(bytes.starts_with(b"pintlog2"), "{}", path.display());
    assert_eq!(number(24), crc32c::crc32c(&bytes[..24]), "the checksum of the header");
    let seed = crc32c::crc32c(&bytes[8..16]);
    let (mut at, mut kinds) = (28, BTreeSet::new());
    while at < bytes.len() {
        let end = at + 24 + number(at + 4) as usize;
        assert_eq!(&bytes[at..at + 4], b"PNTL");
        assert_eq!(number(at + 8), crc32c::crc32c_append(seed, &bytes[at + 12..end]), "the checksum at {at}");
        let header =
            crc32c::crc32c_append(crc32c::crc32c_append(seed, &bytes[at + 4..at + 8]), &bytes[at + 12..at + 20]);
        assert_eq!(number(at + 20), header, "the header checksum at {at}");
        at += 24;
        while at < end {
            kinds.insert(bytes[at]);
            at += 17 + number(at + 9) as usize + number(at + 13) as usize;
        }
        assert_eq!(at, end);
    }
    kinds
}

/// In a directory of the first version of the format, this version writes what that version has described.
#[tokio::test]
async fn writes_the_format_as_it_was_introduced() {
    let place = tempfile::tempdir().unwrap();
    copy(&golden().join("2/data"), place.path());
    let options = Options { segment_bytes: 2000, checkpoint_bytes: 0, ..Options::default() };
    let store = Embedded::open(place.path(), "a test", options).unwrap();
    let mut revision = store.head().await.unwrap();
    for i in 0..40 {
        let value = Some(Bytes::from("x".repeat(100)));
        let write = Write { key: format!("new-{i}").into(), expected: Expected::Absent, value };
        revision = store.commit(write).await.unwrap();
    }
    let last = Write { key: "new-39".into(), expected: Expected::At(revision), value: None };
    revision = store.commit(last).await.unwrap();
    store.compact(revision - 20).await.unwrap();
    drop(store);
    assert_eq!(std::fs::read_to_string(place.path().join("FORMAT")).unwrap(), "pintle 2\n");
    let files = std::fs::read_dir(place.path().join("log")).unwrap().map(|entry| entry.unwrap().path());
    let (marks, files): (Vec<PathBuf>, Vec<PathBuf>) = files.partition(|path| path.ends_with("stopped"));
    let kinds: BTreeSet<u8> = files.iter().flat_map(|path| record_kinds(path)).collect();
    assert_eq!(kinds, BTreeSet::from([1, 2, 3, 4]));
    let mark = std::fs::read(&marks[0]).unwrap();
    let checksum = crc32c::crc32c(&revision.to_be_bytes());
    assert_eq!(mark, [&revision.to_be_bytes()[..], &checksum.to_be_bytes()].concat(), "the mark of the stop");
}

/// The end of the log was being written when the process was stopped.
#[tokio::test]
async fn torn_tail_is_truncated() {
    let format = golden().join("2");
    let place = tempfile::tempdir().unwrap();
    copy(&format.join("data"), place.path());
    let log = place.path().join("log");
    let mut segments: Vec<PathBuf> = std::fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    segments.sort();
    let last = segments.last().unwrap();
    let mut bytes = std::fs::read(last).unwrap();
    bytes.extend_from_slice(b"PNTL\0\0\0\x20torn");
    std::fs::write(last, bytes).unwrap();
    let expected = std::fs::read_to_string(format.join("expected")).unwrap();
    assert_eq!(content(place.path()).await, expected);
}
