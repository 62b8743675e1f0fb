//! Data of earlier formats, written by `examples/golden.rs` to `tests/golden`: every version reads it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use store::{Embedded, Options, Store as _};

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
        read += 1;
    }
    assert!(read > 0);
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
