//! Recovery: reads the newest checkpoint and all changes after it. docs/src/design/store.md ("Recovery") explains how the
//! traces of a crash are distinguished from corruption.

use super::disk::{Appending, Disk};
use super::files::{Checkpoint, Listed, Segment, checkpoint_name, checksum_mismatch, io, revision_in, segment_name};
use super::frame::{self, FILE_HEADER, Header, Kind, Reader, Whole};
use super::mark;
use super::replay::Replay;
use super::scan::{self, Scanned};
use crate::contract::{Change, Revision, StoreError};
use crate::limits;

/// The content of a log, and the repair that it needs before it continues.
pub struct Found {
    pub listed: Listed,
    pub replay: Replay,
    /// The revision of the last entry of the log, which may be one of a branch.
    pub head: Revision,
    /// Obsolete files.
    pub stale: Vec<String>,
    /// Whether the last segment ends in a part of a frame: an incomplete write.
    pub torn: bool,
    /// Bytes of the incomplete frame.
    pub cut: usize,
    /// Revisions up to here are known to have been synced.
    pub proven: Revision,
    /// The revision at the last clean shutdown.
    pub stopped: Option<Revision>,
}

fn missing(after: Revision, before: Revision) -> StoreError {
    StoreError::Corrupt(format!("revisions between {after} and {before} are missing"))
}

fn is_missing(name: &str) -> StoreError {
    StoreError::Corrupt(format!("log/{name} is missing"))
}

/// Reads all files of the log; changes nothing.
pub fn read(disk: &dyn Disk) -> Result<Found, StoreError> {
    // the mark is read before the log: if a server stopped in between, a newer mark would exceed the log that was read
    let stopped = mark::read(disk)?;
    let mut names = disk.list().map_err(|error| io("", &error))?;
    names.sort();
    let newest = names.iter().filter_map(|name| revision_in(name, ".checkpoint")).next_back();
    let mut replay = Replay::new();
    let mut listed = Listed::default();
    if let Some(revision) = newest {
        listed.checkpoint = Some(read_checkpoint(disk, revision, &mut replay)?);
    }
    let firsts: Vec<Revision> = names.iter().filter_map(|name| revision_in(name, ".log")).collect();
    let base = newest.unwrap_or_default();
    // the first segment that is needed has the first change after the checkpoint
    let start = firsts.iter().rposition(|first| *first <= base + 1);
    let start = match (start, firsts.first()) {
        // a crash has interrupted the creation of that segment, so the one before it is the last
        (Some(start), _) if start > 0 && start + 1 == firsts.len() && is_unmade(disk, firsts[start])? => start - 1,
        (Some(start), _) => start,
        (None, Some(first)) => return Err(missing(base, *first)),
        (None, None) => return Err(is_missing(&segment_name(base + 1))),
    };
    let mut segments =
        Segments { disk, replay, base, listed, stale: vec![], torn: false, raw: 0, proven: 0, rolled: None };
    let firsts = &firsts[start..];
    scan::each_segment(disk, firsts, |scanned| segments.take_all(firsts, scanned))?;
    let Segments { mut replay, raw, listed, mut stale, torn, proven, .. } = segments;
    let head = raw.max(base);
    if replay.branches_at > head {
        return Err(missing(head, replay.branches_at + 1));
    }
    replay.end();
    let counts = |name: &String| {
        listed.segments.iter().any(|segment| segment.name == *name)
            || listed.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.name == *name)
    };
    let ours = |name: &&String| name.ends_with(".log") || name.ends_with(".checkpoint") || name.ends_with(".tmp");
    stale.extend(names.iter().filter(ours).filter(|name| !counts(name)).cloned());
    stale.sort();
    stale.dedup();
    let last = listed.segments.last().filter(|_| torn);
    let cut =
        last.map(|last| disk.read_at(&last.name, last.length, usize::MAX).map_err(|error| io(&last.name, &error)));
    let cut = cut.transpose()?.map_or(0, |bytes| bytes.len());
    check_end(&listed, head, stopped)?;
    Ok(Found { listed, replay, head, stale, torn, cut, proven, stopped })
}

/// Refuses a log that ends before the revision that it had at the last clean shutdown.
fn check_end(listed: &Listed, head: Revision, stopped: Option<Revision>) -> Result<(), StoreError> {
    match (stopped, listed.segments.last()) {
        (Some(stopped), Some(last)) if head < stopped => {
            let name = &last.name;
            Err(StoreError::Corrupt(format!(
                "log/{name} ends at revision {head}, and reached {stopped} when it was closed"
            )))
        }
        _ => Ok(()),
    }
}

fn is_unmade(disk: &dyn Disk, first: Revision) -> Result<bool, StoreError> {
    let name = segment_name(first);
    let bytes = disk.read_at(&name, 0, FILE_HEADER + 1).map_err(|error| io(&name, &error))?;
    Ok(bytes.len() <= FILE_HEADER && Header::decode(&bytes).is_none())
}

fn read_checkpoint(disk: &dyn Disk, revision: Revision, replay: &mut Replay) -> Result<Checkpoint, StoreError> {
    let name = checkpoint_name(revision);
    let header = frame::header(disk, &name)?.filter(|header| header.first == revision);
    let header = header.ok_or_else(|| checksum_mismatch(&name, 0))?;
    (replay.state.compacted, replay.state.head) = (revision, revision);
    let invalid = || StoreError::Corrupt(format!("log/{name} has branches that make no sense"));
    let length =
        scan::each_record(disk, &name, header, |record| replay.take_of_checkpoint(record).ok_or_else(invalid))?;
    replay.end_checkpoint().ok_or_else(invalid)?;
    Ok(Checkpoint { name, revision, length })
}

/// The state of the replay, segment by segment.
struct Segments<'a> {
    disk: &'a dyn Disk,
    replay: Replay,
    /// The revision of the checkpoint.
    base: Revision,
    listed: Listed,
    stale: Vec<String>,
    torn: bool,
    /// The last revision that was read.
    raw: Revision,
    /// Revisions up to here are known to have been synced.
    proven: Revision,
    /// First revision of the next file, from the `roll` record of the last one.
    rolled: Option<Revision>,
}

impl Segments<'_> {
    fn take_all(
        &mut self,
        firsts: &[Revision],
        scanned: &mut dyn Iterator<Item = Result<Scanned, StoreError>>,
    ) -> Result<(), StoreError> {
        self.raw = firsts.first().map_or(0, |first| first - 1);
        for (i, (first, scanned)) in firsts.iter().zip(scanned).enumerate() {
            let later = &firsts[i + 1..];
            if i > 0 && self.rolled != Some(*first) {
                // the file before does not name this one, so a crash has interrupted its creation
                self.read_unannounced(*first, later)?;
                return Ok(());
            }
            self.rolled = None;
            let whole = self.read_one(*first, scanned?, later)?;
            if !whole {
                self.stale.extend(later.iter().map(|first| segment_name(*first)));
                break;
            }
        }
        match self.rolled {
            Some(next) => Err(is_missing(&segment_name(next))),
            None if self.proven > self.raw.max(self.base) => Err(missing(self.raw.max(self.base), self.proven + 1)),
            None => Ok(()),
        }
    }

    /// Checks that a file which its predecessor does not name is empty, as a crash leaves it.
    fn read_unannounced(&mut self, first: Revision, later: &[Revision]) -> Result<(), StoreError> {
        if let Some(next) = self.rolled {
            return Err(is_missing(&segment_name(next)));
        }
        let name = segment_name(first);
        let bytes = self.disk.read_at(&name, 0, FILE_HEADER + 1).map_err(|error| io(&name, &error))?;
        if !later.is_empty() || bytes.len() > FILE_HEADER {
            return Err(missing(self.raw, first));
        }
        self.stale.push(name);
        Ok(())
    }

    /// Reads a segment; returns false if it ends in an incomplete write.
    fn read_one(&mut self, first: Revision, scanned: Scanned, later: &[Revision]) -> Result<bool, StoreError> {
        let mut segment = Segment::new(first, scanned.salt);
        for frame in scanned.frames {
            segment.length = frame.end;
            self.take(frame, &mut segment)?;
        }
        if let Some(at) = scanned.broken {
            let mut reader = Reader::new(self.disk, &segment.name, scanned.salt, at);
            if self.was_synced(&mut reader, at, later).map_err(|error| io(&segment.name, &error))? {
                return Err(checksum_mismatch(&segment.name, at));
            }
        }
        self.torn = scanned.broken.is_some();
        self.listed.segments.push(segment);
        Ok(!self.torn)
    }

    fn take(&mut self, frame: Whole, segment: &mut Segment) -> Result<(), StoreError> {
        self.proven = self.proven.max(frame.synced);
        for (i, record) in frame.records.into_iter().enumerate() {
            let next = self.raw + 1;
            let invalid = || checksum_mismatch(&segment.name, frame.offset);
            match record.kind {
                _ if self.rolled.is_some() => return Err(invalid()),
                _ if record.revision != next => return Err(missing(self.raw, record.revision)),
                Kind::Roll => {
                    self.rolled = Some(next);
                    continue;
                }
                _ => {}
            }
            if i == 0 {
                segment.frames.push((next, frame.offset));
            }
            self.raw = next;
            let is_new = next > self.base;
            match record.kind {
                Kind::Put if is_new => {
                    self.replay.change(&Change { revision: next, key: record.key, value: Some(record.value) });
                }
                Kind::Delete if is_new => {
                    self.replay.change(&Change { revision: next, key: record.key, value: None });
                }
                Kind::Put | Kind::Delete => {}
                kind if kind.is_branch_operation() || matches!(kind, Kind::BranchPut | Kind::BranchDelete) => {
                    // what the checkpoint covers may be of a branch that is gone
                    if is_new {
                        self.replay.take(&record).ok_or_else(invalid)?;
                    }
                }
                _ => return Err(invalid()),
            }
        }
        Ok(())
    }

    /// Whether anything proves that the broken frame at `at` had been synced: a later header that states it, or a frame
    /// in a later file, which is written to only when the file before it is complete.
    fn was_synced(&self, reader: &mut Reader<'_>, at: u64, later: &[Revision]) -> std::io::Result<bool> {
        let proven = reader.proven(at)?.unwrap_or_default().max(self.proven);
        if proven > self.raw || self.rolled.is_some() {
            return Ok(true);
        }
        for first in later {
            let name = segment_name(*first);
            let bytes = self.disk.read_at(&name, 0, FILE_HEADER)?;
            if let Some(header) = Header::decode(&bytes)
                && Reader::new(self.disk, &name, header.salt, 0).proven(0)?.is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Prepares the log for writing: truncates an incomplete write, removes obsolete files and syncs the rest. Returns the
/// file to append to.
pub fn repair(disk: &dyn Disk, found: &Found) -> std::io::Result<Box<dyn Appending>> {
    let last = found.listed.segments.last().ok_or(std::io::ErrorKind::NotFound)?;
    let mut file = disk.open(&last.name)?;
    if found.torn {
        file.truncate(last.length)?;
    }
    for segment in unproven(found) {
        write_anew(disk, segment, found.proven)?;
        disk.open(&segment.name)?.sync()?;
    }
    file.sync()?;
    if !found.stale.is_empty() {
        // the remaining files must be durable before any file is removed
        disk.sync()?;
        found.stale.iter().try_for_each(|name| disk.remove(name))?;
        disk.sync()?;
    }
    Ok(file)
}

/// The segments whose end may be unsynced: the last one, and, while that is empty, the one before. A segment is written
/// only after the file before it is complete and synced.
fn unproven(found: &Found) -> &[Segment] {
    let segments = &found.listed.segments;
    let count = if segments.last().is_some_and(|last| last.frames.is_empty()) { 2 } else { 1 };
    &segments[segments.len().saturating_sub(count)..]
}

/// Rewrites the end of a segment with the same bytes, from the last frame that is known to be synced. After a failed sync
/// before this start, those bytes may be in the page cache only, marked as clean, and no later sync would write them.
fn write_anew(disk: &dyn Disk, segment: &Segment, proven: Revision) -> std::io::Result<()> {
    let known = segment.frames.iter().rfind(|(first, _)| *first <= proven);
    let mut at = known.map_or(0, |(_, offset)| *offset);
    while at < segment.length {
        let most = usize::try_from(segment.length - at).unwrap_or(usize::MAX).min(limits::REWRITE_BYTES);
        let bytes = disk.read_at(&segment.name, at, most)?;
        if bytes.is_empty() {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        disk.write_anew(&segment.name, at, &bytes)?;
        at += bytes.len() as u64;
    }
    Ok(())
}

/// The files of an empty log.
pub fn create(disk: &dyn Disk) -> std::io::Result<()> {
    let mut file = disk.create(&segment_name(1))?;
    file.append(&Header::new(1).encode())?;
    file.sync()?;
    disk.sync()
}
