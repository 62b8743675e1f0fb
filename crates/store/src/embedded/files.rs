//! The files of a log, shared by writers and readers, with the offsets of their frames.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use super::disk::Disk;
use super::frame::{self, FILE_HEADER, Header, Kind, Reader, Record, Stop, Whole};
use crate::contract::{Change, Entry, Revision, StoreError};
use crate::limits;

/// A file of changes.
#[derive(Clone, Debug)]
pub struct Segment {
    pub name: String,
    pub salt: u64,
    /// The first revision it may hold.
    pub first: Revision,
    /// Length of the complete frames, in bytes.
    pub length: u64,
    /// The first revision of each frame, and where it starts.
    pub frames: Vec<(Revision, u64)>,
}

impl Segment {
    pub fn new(first: Revision, salt: u64) -> Segment {
        Segment { name: segment_name(first), salt, first, length: FILE_HEADER as u64, frames: vec![] }
    }
}

pub fn segment_name(first: Revision) -> String {
    format!("{first:020}.log")
}

pub fn checkpoint_name(revision: Revision) -> String {
    format!("{revision:020}.checkpoint")
}

pub fn revision_in(name: &str, ending: &str) -> Option<Revision> {
    let digits = name.strip_suffix(ending)?;
    (digits.len() == 20).then(|| digits.parse().ok()).flatten()
}

/// The live keys at one revision.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    pub name: String,
    pub revision: Revision,
    pub length: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Listed {
    pub checkpoint: Option<Checkpoint>,
    /// Oldest first; the last one is written to.
    pub segments: Vec<Segment>,
}

pub struct Files {
    pub disk: Arc<dyn Disk>,
    listed: Mutex<Listed>,
    /// A checkpoint is being written.
    checkpointing: AtomicBool,
    /// Locks of the directory; held as long as a reader or writer of its files exists.
    _locks: Vec<File>,
}

impl Files {
    pub fn new(disk: Arc<dyn Disk>, listed: Listed, locks: Vec<File>) -> Files {
        Files { disk, listed: Mutex::new(listed), checkpointing: AtomicBool::new(false), _locks: locks }
    }

    pub fn lock(&self) -> MutexGuard<'_, Listed> {
        self.listed.lock()
    }

    /// Bytes of all files.
    pub fn size(&self) -> u64 {
        let listed = self.lock();
        let segments: u64 = listed.segments.iter().map(|segment| segment.length).sum();
        segments + listed.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.length)
    }

    /// The last revision of the segments that are beyond this many bytes of newer segments; 0 if all of them are within.
    pub fn beyond(&self, bytes: u64) -> Revision {
        let listed = self.lock();
        let mut newer = 0;
        let is_beyond = |segment: &&Segment| {
            newer += segment.length;
            newer > bytes
        };
        // the oldest segment has nothing before it
        let first = listed.segments.iter().skip(1).rev().find(is_beyond);
        first.map_or(0, |segment| segment.first - 1)
    }

    /// The first file of the log that is no longer in its directory, or the directory itself.
    pub fn removed(&self) -> Option<String> {
        // files are unlisted before they are removed, so the list stays locked while the directory is read
        let listed = self.lock();
        let there = match self.disk.list() {
            Ok(names) => names,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some("the directory log".to_owned()),
            Err(_) => return None,
        };
        let segments = listed.segments.iter().map(|segment| &segment.name);
        let mut wanted = segments.chain(listed.checkpoint.iter().map(|checkpoint| &checkpoint.name));
        wanted.find(|name| !there.contains(name)).map(|name| format!("log/{name}"))
    }

    /// Reserves the right to write a checkpoint until the guard is dropped; `None` while another one is being written.
    pub fn begin_checkpoint(self: &Arc<Self>) -> Option<CheckpointGuard> {
        (!self.checkpointing.swap(true, Ordering::AcqRel)).then(|| CheckpointGuard(self.clone()))
    }

    /// Changes after `after`, oldest first, from the frame that holds the first one up to about `count` of them. The caller checks
    /// afterwards that changes after `after` are not compacted.
    pub fn read_after(&self, after: Revision, count: usize) -> Result<Vec<Change>, StoreError> {
        let mut changes = vec![];
        let mut next = after + 1;
        while changes.len() < count {
            let Some((segment, offset)) = self.frame_of(next) else { break };
            let last = self.read_segment(&segment, offset, next, count, &mut changes)?;
            if last < next {
                break;
            }
            next = last + 1;
        }
        Ok(changes)
    }

    /// The live keys for which `wanted` returns true, at a revision that is not compacted, read from the last checkpoint and
    /// the changes since. The caller must hold a [`CheckpointGuard`], so that no checkpoint is written meanwhile.
    pub fn entries_at(&self, at: Revision, wanted: impl Fn(&Entry) -> bool) -> Result<Vec<Entry>, StoreError> {
        let checkpoint = self.lock().checkpoint.clone();
        let mut seen = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.revision);
        let mut live: HashMap<Bytes, Entry> = HashMap::new();
        let mut take = |change: Change| match change.value {
            Some(value) => {
                let entry = Entry { key: change.key, value, revision: change.revision };
                match wanted(&entry) {
                    true => drop(live.insert(Bytes::copy_from_slice(&entry.key), owned(&entry))),
                    false => drop(live.remove(&entry.key)),
                }
            }
            None => drop(live.remove(&change.key)),
        };
        if let Some(checkpoint) = checkpoint {
            let header =
                frame::header(&*self.disk, &checkpoint.name)?.ok_or_else(|| checksum_mismatch(&checkpoint.name, 0))?;
            each_entry(&*self.disk, &checkpoint.name, header, |change| {
                take(change);
                Ok(())
            })?;
        }
        while seen < at {
            let changes = self.read_after(seen, limits::ENTRIES_BATCH)?;
            seen = changes.last().map_or(at, |last| last.revision);
            changes.into_iter().filter(|change| change.revision <= at).for_each(&mut take);
        }
        Ok(live.into_values().collect())
    }

    /// The segment of a revision, or of the first one after it, without its index, and the offset of its frame.
    fn frame_of(&self, revision: Revision) -> Option<(Segment, u64)> {
        let listed = self.lock();
        let of = |segment: &&Segment| segment.frames.first().is_some_and(|(first, _)| *first <= revision);
        // entries of branches that followed the revision may be in a checkpoint already
        let first = || listed.segments.iter().find(|segment| !segment.frames.is_empty());
        let segment = listed.segments.iter().rfind(of).or_else(first)?;
        let index = segment.frames.partition_point(|(first, _)| *first <= revision);
        let (_, offset) = segment.frames.get(index.saturating_sub(1))?;
        Some((Segment { frames: vec![], name: segment.name.clone(), ..*segment }, *offset))
    }

    /// Returns the revision of the last entry that was read, which may be one of a branch.
    fn read_segment(
        &self,
        segment: &Segment,
        offset: u64,
        next: Revision,
        count: usize,
        changes: &mut Vec<Change>,
    ) -> Result<Revision, StoreError> {
        let mut last = 0;
        let mut reader = Reader::new(&*self.disk, &segment.name, segment.salt, offset);
        while changes.len() < count && reader.offset() < segment.length {
            let frame = match reader.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(last),
                Err(Stop::Broken(at) | Stop::Damaged(at)) => return Err(checksum_mismatch(&segment.name, at)),
                Err(Stop::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Err(StoreError::Compacted(next));
                }
                Err(Stop::Io(error)) => return Err(StoreError::Unavailable(format!("{}: {error}", segment.name))),
            };
            for record in frame.records {
                if record.kind != Kind::Roll {
                    last = record.revision;
                }
                let value = match record.kind {
                    Kind::Put => Some(record.value),
                    Kind::Delete => None,
                    _ => continue,
                };
                if record.revision >= next {
                    let value = value.map(|value| Bytes::copy_from_slice(&value));
                    changes.push(Change { revision: record.revision, key: Bytes::copy_from_slice(&record.key), value });
                }
            }
        }
        Ok(last)
    }
}

/// Copies key and value, which are parts of a larger buffer.
fn owned(entry: &Entry) -> Entry {
    Entry { key: Bytes::copy_from_slice(&entry.key), value: Bytes::copy_from_slice(&entry.value), ..*entry }
}

/// The error for an offset of a segment where there should be a valid frame.
pub fn checksum_mismatch(name: &str, offset: u64) -> StoreError {
    StoreError::Corrupt(format!("checksum mismatch at byte {offset} of log/{name}"))
}

/// See [`Files::begin_checkpoint`].
pub struct CheckpointGuard(pub Arc<Files>);

impl Drop for CheckpointGuard {
    fn drop(&mut self) {
        self.0.checkpointing.store(false, Ordering::Release);
    }
}

/// Calls `take` for each entry of a checkpoint or backup, by rising revision; returns the length in bytes.
pub fn each_entry(
    disk: &dyn Disk,
    name: &str,
    header: Header,
    mut take: impl FnMut(Change) -> Result<(), StoreError>,
) -> Result<u64, StoreError> {
    each_record(disk, name, header, |record| match record.kind {
        Kind::Put => take(Change { revision: record.revision, key: record.key, value: Some(record.value) }),
        _ => Ok(()),
    })
}

/// Calls `take` with name and content of each file of a backup.
pub fn each_file(
    disk: &dyn Disk,
    name: &str,
    header: Header,
    mut take: impl FnMut(&Bytes, &Bytes),
) -> Result<(), StoreError> {
    each_record(disk, name, header, |record| {
        if record.kind == Kind::File {
            take(&record.key, &record.value);
        }
        Ok(())
    })
    .map(drop)
}

/// Calls `take` for each record of a checkpoint or backup except its end; returns the length in bytes.
pub fn each_record(
    disk: &dyn Disk,
    name: &str,
    header: Header,
    take: impl FnMut(Record) -> Result<(), StoreError>,
) -> Result<u64, StoreError> {
    CheckpointRecords::of(name, header).take_rest(disk, take)
}

/// Checks which records a checkpoint or backup has, in the order of its frames.
pub struct CheckpointRecords<'a> {
    name: &'a str,
    header: Header,
    /// Where the next frame starts.
    offset: u64,
    has_ended: bool,
}

impl CheckpointRecords<'_> {
    pub fn of(name: &str, header: Header) -> CheckpointRecords<'_> {
        CheckpointRecords { name, header, offset: FILE_HEADER as u64, has_ended: false }
    }

    /// Where the next frame starts.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Calls `take` for each record of the next frame except the end.
    pub fn take(
        &mut self,
        frame: Whole,
        mut take: impl FnMut(Record) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.offset = frame.end;
        for record in frame.records {
            match record.kind {
                Kind::End if !self.has_ended && record.revision == self.header.first => self.has_ended = true,
                kind if kind.is_branch_operation() || matches!(kind, Kind::Delete | Kind::Roll | Kind::End) => {
                    return Err(checksum_mismatch(self.name, frame.offset));
                }
                _ if !self.has_ended => take(record)?,
                _ => return Err(checksum_mismatch(self.name, frame.offset)),
            }
        }
        Ok(())
    }

    /// Reads the frames that have not been taken, and takes them. Returns the length of the file in bytes, if it is complete.
    pub fn take_rest(
        mut self,
        disk: &dyn Disk,
        mut take: impl FnMut(Record) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        let mut reader = Reader::new(disk, self.name, self.header.salt, self.offset);
        while let Some(frame) = reader.next().map_err(|stop| stopped(self.name, stop))? {
            self.take(frame, &mut take)?;
        }
        if self.has_ended { Ok(self.offset) } else { Err(checksum_mismatch(self.name, self.offset)) }
    }
}

/// The error of a frame that cannot be read.
pub fn stopped(name: &str, stop: Stop) -> StoreError {
    match stop {
        Stop::Broken(at) | Stop::Damaged(at) => checksum_mismatch(name, at),
        Stop::Io(error) => io(name, &error),
    }
}

/// The error of a file that cannot be read or written.
pub fn io(name: &str, error: &std::io::Error) -> StoreError {
    StoreError::Unavailable(format!("log/{name}: {error}"))
}
