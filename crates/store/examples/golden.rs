//! Writes a data directory, a backup of it, and a list of their content: `cargo run -p pintle-store --example golden DIR`.
//! The output for each format is in `tests/golden`, and every later version must read it.

use std::fmt::Write as _;
use std::path::PathBuf;

use bytes::Bytes;
use store::{BackupFile, Durability, Embedded, Expected, Options, Store as _, Write};

fn put(key: &str, expected: Expected, value: String) -> Write {
    Write { key: Bytes::from(key.to_owned()), expected, value: Some(value.into()) }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("wanted a directory")?);
    // several segments, and a checkpoint with each compaction
    let options =
        Options { durability: Durability::Sync, segment_bytes: 2000, checkpoint_bytes: 0, history_bytes: u64::MAX };
    let data = directory.join("data");
    let store = Embedded::open(&data, "the golden files", options)?;
    let commit = async |write| store.commit(write).await.map_err(|refused| format!("{refused:?}"));
    for i in 0..30 {
        commit(put(&format!("key-{i:02}"), Expected::Absent, format!("first {i}"))).await?;
    }
    for i in 0..10 {
        commit(put(&format!("key-{i:02}"), Expected::At(i + 1), "x".repeat(100 * i as usize))).await?;
    }
    store.compact(35).await?;
    commit(Write { key: "key-29".into(), expected: Expected::At(30), value: None }).await?;
    commit(put("\u{e9}/\u{1f980}", Expected::Absent, String::new())).await?;
    commit(put("key-29", Expected::Absent, "again".to_owned())).await?;
    let mut expected = String::new();
    let snapshot = store.snapshot().await?;
    writeln!(expected, "revision {}", snapshot.revision)?;
    for entry in snapshot.entries {
        writeln!(expected, "{} {} {}", entry.revision, entry.key.escape_ascii(), entry.value.escape_ascii())?;
    }
    drop(store);
    std::fs::remove_file(data.join("LOCK"))?;
    store::write_backup(store::content(&data)?, &[], std::fs::File::create(directory.join("backup"))?)?;
    let key = BackupFile { name: "ca.key".to_owned(), content: Bytes::from_static(b"a key") };
    store::write_backup(store::content(&data)?, &[key], std::fs::File::create(directory.join("backup-with-keys"))?)?;
    std::fs::write(directory.join("expected"), expected)?;
    Ok(())
}
