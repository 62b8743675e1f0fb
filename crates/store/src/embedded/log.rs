//! The log on disk: one record per revision in a fjall keyspace, checked by a CRC and by the unbroken row of revisions.
//!
//! A record is `kind (1 byte), length of the key (4 bytes), key, value, CRC-32C (4 bytes)` under its revision (8 bytes,
//! big-endian); the CRC covers the revision too. Records above the compacted revision follow each other without a gap;
//! of those below, only the ones that were live there remain. See docs/design/store.md.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write as _};
use std::path::Path;

use bytes::Bytes;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::state::{Shared, State};
use super::{FORMAT_VERSION, OpenError};
use crate::contract::{Change, Revision, StoreError};

const PUT: u8 = 1;
const DELETE: u8 = 2;
/// Memory that fjall may keep for recent writes and for blocks it read: values live in our own memory.
const MEMTABLE_BYTES_MAX: u64 = 4 << 20;
const CACHE_BYTES_MAX: u64 = 1 << 20;
const JOURNAL_BYTES_MAX: u64 = 64 << 20;
/// Records that one compaction removes in a batch.
const FORGET_BATCH: usize = 4096;

pub struct Log {
    database: Database,
    records: Keyspace,
    meta: Keyspace,
    /// Holds the lock of the directory for as long as it is open.
    _lock: File,
}

impl Log {
    /// Opens the directory and reads everything back.
    pub fn open(directory: &Path, holder: &str) -> Result<(Log, Shared), OpenError> {
        let io = |why: String| OpenError::Io(directory.to_owned(), why);
        std::fs::create_dir_all(directory).map_err(|e| io(e.to_string()))?;
        let lock = take_lock(directory, holder)?;
        check_format(directory)?;
        let damaged = |e: fjall::Error| OpenError::Damaged(directory.to_owned(), e.to_string());
        let database = Database::builder(directory.join("store"))
            .cache_size(CACHE_BYTES_MAX)
            .max_journaling_size(JOURNAL_BYTES_MAX)
            .manual_journal_persist(true)
            .worker_threads(1)
            .open()
            .map_err(damaged)?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES_MAX);
        let records = database.keyspace("log", options).map_err(damaged)?;
        let meta = database.keyspace("meta", options).map_err(damaged)?;
        let log = Log { database, records, meta, _lock: lock };
        let state = log.recover().map_err(|e| OpenError::Damaged(directory.to_owned(), e.to_string()))?;
        Ok((log, Shared::new(state)))
    }

    fn recover(&self) -> Result<State, StoreError> {
        let failed = |e: fjall::Error| StoreError::Damaged(e.to_string());
        let compacted = match self.meta.get("compacted").map_err(failed)? {
            Some(bytes) => revision_of(&bytes)?,
            None => 0,
        };
        let mut state = State { compacted, tail_after: compacted, head: compacted, ..State::default() };
        let mut records = self.records.iter();
        let mut tail = vec![];
        for guard in records.by_ref() {
            let (key, value) = guard.into_inner().map_err(failed)?;
            let change = decode(revision_of(&key)?, &value)?;
            if change.revision > compacted {
                tail.push(change);
                break;
            }
            state.replay(change);
        }
        state.base = Some(state.live());
        for guard in records {
            let (key, value) = guard.into_inner().map_err(failed)?;
            tail.push(decode(revision_of(&key)?, &value)?);
        }
        for change in tail {
            let (have, next) = (state.head, change.revision);
            if next != have + 1 {
                return Err(StoreError::Damaged(format!("revisions between {have} and {next} are missing")));
            }
            state.apply(change);
        }
        Ok(state)
    }

    /// Appends changes in one batch and returns when they are on disk.
    pub fn append(&self, changes: &[Change]) -> Result<(), String> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for change in changes {
            batch.insert(&self.records, change.revision.to_be_bytes(), encode(change));
        }
        batch.commit().map_err(|e| format!("cannot write to the log: {e}"))
    }

    pub fn read_after(&self, after: Revision, count_max: usize) -> Result<Vec<Change>, StoreError> {
        let mut changes = vec![];
        for guard in self.records.range((after + 1).to_be_bytes()..).take(count_max) {
            let (key, value) = guard.into_inner().map_err(|e| StoreError::Damaged(e.to_string()))?;
            changes.push(decode(revision_of(&key)?, &value)?);
        }
        Ok(changes)
    }

    /// Remembers that history up to `before` is gone, then removes the records that no longer count.
    pub fn forget(&self, before: Revision, gone: &[Revision]) -> Result<(), StoreError> {
        let failed = |e: fjall::Error| StoreError::Unavailable(e.to_string());
        self.meta.insert("compacted", before.to_be_bytes()).map_err(failed)?;
        self.database.persist(PersistMode::SyncData).map_err(failed)?;
        for part in gone.chunks(FORGET_BATCH) {
            let mut batch = self.database.batch();
            part.iter().for_each(|revision| batch.remove(&self.records, revision.to_be_bytes()));
            batch.commit().map_err(failed)?;
        }
        Ok(())
    }

    /// Writes what is still buffered; every acknowledged write is on disk already.
    pub fn close(&self) {
        let _ = self.database.persist(PersistMode::SyncAll);
    }
}

fn take_lock(directory: &Path, holder: &str) -> Result<File, OpenError> {
    let io = |e: std::io::Error| OpenError::Io(directory.to_owned(), e.to_string());
    let path = directory.join("LOCK");
    let mut file = File::options().read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut by = String::new();
            let _ = file.read_to_string(&mut by);
            let by = if by.trim().is_empty() { "another process".to_owned() } else { by.trim().to_owned() };
            return Err(OpenError::Held(directory.to_owned(), by));
        }
        Err(TryLockError::Error(e)) => return Err(io(e)),
    }
    file.set_len(0).map_err(io)?;
    file.rewind().map_err(io)?;
    file.write_all(holder.as_bytes()).map_err(io)?;
    Ok(file)
}

/// Refuses a newer format, stamps a new directory. Format 1 is the first, so there is nothing to upgrade from yet.
fn check_format(directory: &Path) -> Result<(), OpenError> {
    let path = directory.join("FORMAT");
    let damaged = |why: &str| OpenError::Damaged(directory.to_owned(), why.to_owned());
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let version = text.trim().strip_prefix("pintle ").and_then(|v| v.parse::<u32>().ok());
            match version {
                Some(version) if version > FORMAT_VERSION => Err(OpenError::NewerFormat(directory.to_owned(), version)),
                Some(_) => Ok(()),
                None => Err(damaged("the file FORMAT does not hold a format")),
            }
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            if directory.join("store").exists() {
                return Err(damaged("the file FORMAT is missing"));
            }
            std::fs::write(&path, format!("pintle {FORMAT_VERSION}\n"))
                .map_err(|e| OpenError::Io(directory.to_owned(), e.to_string()))
        }
        Err(e) => Err(OpenError::Io(directory.to_owned(), e.to_string())),
    }
}

fn revision_of(key: &[u8]) -> Result<Revision, StoreError> {
    let bytes: [u8; 8] = key.try_into().map_err(|_| StoreError::Damaged("a key is not a revision".to_owned()))?;
    Ok(Revision::from_be_bytes(bytes))
}

fn encode(change: &Change) -> Vec<u8> {
    let value = change.value.as_deref().unwrap_or_default();
    let mut record = Vec::with_capacity(9 + change.key.len() + value.len());
    record.push(if change.value.is_some() { PUT } else { DELETE });
    record.extend_from_slice(&u32::try_from(change.key.len()).unwrap_or(u32::MAX).to_be_bytes());
    record.extend_from_slice(&change.key);
    record.extend_from_slice(value);
    let crc = checksum(change.revision, &record);
    record.extend_from_slice(&crc.to_be_bytes());
    record
}

fn checksum(revision: Revision, body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&revision.to_be_bytes()), body)
}

fn decode(revision: Revision, record: &[u8]) -> Result<Change, StoreError> {
    let damaged = || StoreError::Damaged(format!("the record of revision {revision} does not match its checksum"));
    let (body, crc) = record.split_last_chunk::<4>().ok_or_else(damaged)?;
    if checksum(revision, body) != u32::from_be_bytes(*crc) {
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

    #[test]
    fn records_are_checked() {
        let change = Change { revision: 7, key: "k".into(), value: Some("value".into()) };
        let record = encode(&change);
        assert_eq!(decode(7, &record).unwrap(), change);
        assert!(decode(8, &record).is_err(), "a record under another revision");
        for i in 0..record.len() {
            let mut bad = record.clone();
            bad[i] ^= 1;
            assert!(decode(7, &bad).is_err(), "bit flipped in byte {i}");
        }
        let delete = Change { value: None, ..change };
        assert_eq!(decode(7, &encode(&delete)).unwrap(), delete);
    }
}
