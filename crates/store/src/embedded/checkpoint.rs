//! Checkpoints: one file with the live keys at a revision, which replaces older files. It is written by a thread of its own,
//! while the committer continues.

use std::collections::HashSet;

use super::disk::Disk;
use super::entries::Entries;
use super::files::{Checkpoint, Files, Listed, checkpoint_name, checksum_mismatch, each_entry};
use super::frame::{self, FILE_HEADER, Kind, Reader, Stop};
use super::images::{self, IsShared};
use crate::contract::content::Images;
use crate::contract::{Change, Revision, StoreError};

const TEMPORARY: &str = "checkpoint.tmp";

fn unavailable(error: &std::io::Error) -> StoreError {
    StoreError::Unavailable(format!("cannot write a checkpoint: {error}"))
}

/// Whether a checkpoint at `before` replaces enough bytes to be worth writing.
pub fn is_worthwhile(files: &Files, before: Revision, bytes_min: u64) -> bool {
    let listed = files.lock();
    let last = listed.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.revision);
    let freed: u64 = superfluous(&listed, before).map(|segment| segment.length).sum();
    let worth = bytes_min.max(listed.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.length));
    before > last && (bytes_min == 0 || freed >= worth)
}

/// The segments whose every change is at or before `before`.
fn superfluous(listed: &Listed, before: Revision) -> impl Iterator<Item = &super::files::Segment> {
    let pairs = listed.segments.iter().zip(listed.segments.iter().skip(1));
    pairs.take_while(move |(_, next)| next.first <= before + 1).map(|(segment, _)| segment)
}

/// Writes a checkpoint at `before` and removes the files that it replaces. The live keys are all records up to `before`
/// except those whose revision is in `gone`. Branches are as they are in `images`, at `before` or later.
pub fn write(
    files: &Files,
    before: Revision,
    gone: &HashSet<Revision>,
    branches: Option<(&Images, &IsShared<'_>)>,
) -> Result<(), StoreError> {
    let disk = &*files.disk;
    let listed = files.lock().clone();
    let mut entries = Entries::create(disk, TEMPORARY, before).map_err(|error| unavailable(&error))?;
    let mut keep = |change: &Change| match &change.value {
        Some(value) if !gone.contains(&change.revision) => {
            entries.push(change.revision, &change.key, value).map_err(|error| unavailable(&error))
        }
        _ => Ok(()),
    };
    if let Some(old) = &listed.checkpoint {
        let header = frame::header(disk, &old.name)?.ok_or_else(|| checksum_mismatch(&old.name, 0))?;
        each_entry(disk, &old.name, header, |change| keep(&change))?;
    }
    for segment in listed.segments.iter().filter(|segment| segment.first <= before) {
        let old = listed.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.revision);
        each_change(
            disk,
            segment,
            |change| {
                if (old + 1..=before).contains(&change.revision) { keep(&change) } else { Ok(()) }
            },
        )?;
    }
    if let Some((images, is_shared)) = branches {
        images::write(&mut entries, images, is_shared).map_err(|error| unavailable(&error))?;
    }
    let (length, _) = entries.finish().map_err(|error| unavailable(&error))?;
    publish(files, Checkpoint { name: checkpoint_name(before), revision: before, length })?;
    tracing::info!(revision = before, bytes = length, "wrote a checkpoint");
    Ok(())
}

fn each_change(
    disk: &dyn Disk,
    segment: &super::files::Segment,
    mut take: impl FnMut(Change) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut reader = Reader::new(disk, &segment.name, segment.salt, FILE_HEADER as u64);
    while reader.offset() < segment.length {
        let frame = match reader.next() {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(()),
            Err(Stop::Broken(at) | Stop::Damaged(at)) => return Err(checksum_mismatch(&segment.name, at)),
            Err(Stop::Io(error)) => return Err(StoreError::Unavailable(format!("log/{}: {error}", segment.name))),
        };
        for record in frame.records {
            let value = match record.kind {
                Kind::Put => Some(record.value),
                Kind::Delete => None,
                _ => continue,
            };
            take(Change { revision: record.revision, key: record.key, value })?;
        }
    }
    Ok(())
}

/// Puts a finished checkpoint in place: renames it, syncs the directory, and only then removes the files it replaces.
fn publish(files: &Files, checkpoint: Checkpoint) -> Result<(), StoreError> {
    let disk = &*files.disk;
    disk.rename(TEMPORARY, &checkpoint.name).and_then(|()| disk.sync()).map_err(|error| unavailable(&error))?;
    let mut old = vec![];
    {
        let mut listed = files.lock();
        let count = superfluous(&listed, checkpoint.revision).count();
        old.extend(listed.segments.drain(..count).map(|segment| segment.name));
        old.extend(listed.checkpoint.replace(checkpoint).map(|checkpoint| checkpoint.name));
    }
    let removed = old.iter().try_for_each(|name| disk.remove(name)).and_then(|()| disk.sync());
    removed.map_err(|error| StoreError::Unavailable(format!("cannot remove old files of the log: {error}")))
}
