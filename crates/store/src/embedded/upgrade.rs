//! From format 1, which kept a record per revision in a fjall database, to the log of format 2.
//!
//! A record was `kind (1 byte: 1 put, 2 delete), length of the key (4 bytes), key, value, CRC-32C (4 bytes)` under its
//! revision (8 bytes, big-endian); the CRC covered the revision too. Of the revisions up to the compacted one only those
//! remained that were live there.

use std::path::Path;

use bytes::Bytes;
use fjall::{Database, KeyspaceCreateOptions};

use super::OpenError;
use super::checkpoint::Entries;
use super::disk::{Directory, Disk as _};
use super::files::{checkpoint_name, segment_name};
use super::frame::{Frame, Header, Kind};
use super::state::State;
use crate::contract::{Change, Revision, StoreError};

/// Where format 1 kept its database.
pub const STORE_1: &str = "store";
const PUT: u8 = 1;
/// Changes in one frame.
const FRAME_CHANGES: usize = 256;

/// Reads the database of `directory` and writes what it holds to `log`.
pub fn from_1(directory: &Path, log: &Directory) -> Result<(), OpenError> {
    let (compacted, base, tail) = read(&directory.join(STORE_1)).map_err(|error| match error {
        StoreError::Damaged(why) => OpenError::Damaged(directory.to_owned(), why),
        other => OpenError::Io(directory.to_owned(), other.to_string()),
    })?;
    write(log, compacted, &base, &tail).map_err(|error| OpenError::Io(directory.to_owned(), error.to_string()))
}

type Content = (Revision, Vec<Change>, Vec<Change>);

/// The compacted revision, the records that were live there, and the changes since.
fn read(store: &Path) -> Result<Content, StoreError> {
    let failed = |error: fjall::Error| StoreError::Damaged(error.to_string());
    let database = Database::builder(store).worker_threads(1).open().map_err(failed)?;
    let records = database.keyspace("log", KeyspaceCreateOptions::default).map_err(failed)?;
    let meta = database.keyspace("meta", KeyspaceCreateOptions::default).map_err(failed)?;
    let compacted = match meta.get("compacted").map_err(failed)? {
        Some(bytes) => revision_of(&bytes)?,
        None => 0,
    };
    let mut at_compacted = State { compacted, ..State::default() };
    let mut tail: Vec<Change> = vec![];
    for guard in records.iter() {
        let (key, record) = guard.into_inner().map_err(failed)?;
        let change = decode(revision_of(&key)?, &record)?;
        if change.revision <= compacted {
            at_compacted.replay(&change);
            continue;
        }
        let last = tail.last().map_or(compacted, |last| last.revision);
        if change.revision != last + 1 {
            return Err(StoreError::Damaged(format!("revisions between {last} and {} are missing", change.revision)));
        }
        tail.push(change);
    }
    let live = at_compacted.live().into_iter();
    let mut base: Vec<Change> =
        live.map(|entry| Change { revision: entry.revision, key: entry.key, value: Some(entry.value) }).collect();
    base.sort_by_key(|change| change.revision);
    Ok((compacted, base, tail))
}

fn write(log: &Directory, compacted: Revision, base: &[Change], tail: &[Change]) -> std::io::Result<()> {
    if compacted > 0 {
        let mut entries = Entries::create(log, &checkpoint_name(compacted), compacted)?;
        for change in base {
            entries.push(change.revision, &change.key, change.value.as_deref().unwrap_or_default())?;
        }
        entries.finish()?;
    }
    let header = Header::new(compacted + 1);
    let mut file = log.create(&segment_name(header.first))?;
    file.append(&header.encode())?;
    for part in tail.chunks(FRAME_CHANGES) {
        let mut frame = Frame::with_capacity(0);
        for change in part {
            let kind = if change.value.is_some() { Kind::Put } else { Kind::Delete };
            frame.push(kind, change.revision, &change.key, change.value.as_deref().unwrap_or_default());
        }
        file.append(&frame.finish(header.salt, compacted))?;
    }
    file.sync()?;
    log.sync()
}

fn revision_of(key: &[u8]) -> Result<Revision, StoreError> {
    let bytes: [u8; 8] = key.try_into().map_err(|_| StoreError::Damaged("a key is not a revision".to_owned()))?;
    Ok(Revision::from_be_bytes(bytes))
}

fn decode(revision: Revision, record: &[u8]) -> Result<Change, StoreError> {
    let damaged = || StoreError::Damaged(format!("the record of revision {revision} does not match its checksum"));
    let (body, crc) = record.split_last_chunk::<4>().ok_or_else(damaged)?;
    let expected = crc32c::crc32c_append(crc32c::crc32c(&revision.to_be_bytes()), body);
    if expected != u32::from_be_bytes(*crc) {
        return Err(damaged());
    }
    let (kind, rest) = body.split_first().ok_or_else(damaged)?;
    let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
    let (key, value) = rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(damaged)?;
    let value = (*kind == PUT).then(|| Bytes::copy_from_slice(value));
    Ok(Change { revision, key: Bytes::copy_from_slice(key), value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::files::Files;
    use crate::embedded::{format, recovery};

    fn encode(change: &Change) -> Vec<u8> {
        let mut record = vec![if change.value.is_some() { PUT } else { 2 }];
        record.extend(u32::try_from(change.key.len()).unwrap().to_be_bytes());
        record.extend(&change.key);
        record.extend(change.value.as_deref().unwrap_or_default());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&change.revision.to_be_bytes()), &record);
        record.extend(crc.to_be_bytes());
        record
    }

    fn change(revision: Revision, key: &'static str, value: Option<&'static str>) -> Change {
        Change { revision, key: key.into(), value: value.map(Bytes::from) }
    }

    fn fill(store: &Path, changes: &[Change], compacted: Revision) {
        let database = Database::builder(store).open().unwrap();
        let records = database.keyspace("log", KeyspaceCreateOptions::default).unwrap();
        let meta = database.keyspace("meta", KeyspaceCreateOptions::default).unwrap();
        for change in changes {
            records.insert(change.revision.to_be_bytes(), encode(change)).unwrap();
        }
        meta.insert("compacted", compacted.to_be_bytes()).unwrap();
        database.persist(fjall::PersistMode::SyncAll).unwrap();
    }

    #[test]
    fn everything_of_format_1_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let old =
            [change(2, "a", Some("1")), change(3, "b", Some("2")), change(5, "a", None), change(6, "c", Some(""))];
        fill(&directory.path().join(STORE_1), &old, 3);
        let log = Directory::new(directory.path().join("log"));
        std::fs::create_dir(log.path()).unwrap();
        let missing = from_1(directory.path(), &log).unwrap_err().to_string();
        assert!(missing.contains("revisions between 3 and 5 are missing"), "{missing}");
        fill(&directory.path().join(STORE_1), &[change(4, "b", Some("3"))], 3);
        std::fs::write(directory.path().join("FORMAT"), "pintle 1\n").unwrap();
        format::prepare(directory.path()).unwrap();
        assert_eq!(format::read(directory.path()).unwrap(), Some(2));
        assert!(!directory.path().join(STORE_1).exists());
        let found = recovery::read(&log).unwrap();
        assert_eq!((found.state.compacted, found.state.head, found.torn), (3, 6, false));
        let files = Files::new(std::sync::Arc::new(log), found.listed, None);
        assert_eq!(files.read_after(3, 10).unwrap(), [change(4, "b", Some("3")), old[2].clone(), old[3].clone()]);
        let mut base = files.entries_at(3, |_| true).unwrap();
        base.sort_by_key(|entry| entry.revision);
        let base: Vec<_> = base.iter().map(|entry| (entry.revision, &entry.key[..], &entry.value[..])).collect();
        assert_eq!(base, [(2, &b"a"[..], &b"1"[..]), (3, &b"b"[..], &b"2"[..])]);
    }
}
