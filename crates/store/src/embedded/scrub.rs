//! Reads the files of a log again while it is in use, so that damage is found before they are needed.

use super::disk::Disk;
use super::files::{Files, checksum_mismatch, io};
use super::frame::{self, FILE_HEADER, Reader, Stop};
use crate::contract::StoreError;
use crate::limits;

/// Calls `pace` with the bytes of each frame, which ends the work by returning false. Returns the damaged places.
pub fn scrub(files: &Files, pace: &mut dyn FnMut(u64) -> bool) -> Vec<StoreError> {
    let listed: Vec<(String, u64)> = {
        let listed = files.lock();
        let checkpoint = listed.checkpoint.iter().map(|checkpoint| (checkpoint.name.clone(), checkpoint.length));
        checkpoint.chain(listed.segments.iter().map(|segment| (segment.name.clone(), segment.length))).collect()
    };
    let mut damaged = vec![];
    for (name, length) in listed {
        // what is in memory anyway need not be what is on the disk
        files.disk.forget_cached(&name);
        let goes_on = scrub_file(&*files.disk, &name, length, pace, &mut damaged);
        // a checkpoint may have replaced the file meanwhile
        let listed = files.lock();
        let mut names = listed.segments.iter().map(|segment| &segment.name);
        let is_listed =
            names.any(|known| *known == name) || listed.checkpoint.iter().any(|checkpoint| checkpoint.name == name);
        drop(listed);
        if !is_listed {
            damaged.retain(|(file, _)| *file != name);
        }
        if !goes_on {
            break;
        }
    }
    damaged.into_iter().map(|(_, error)| error).collect()
}

/// Checks the frames in the first `length` bytes of a file. Returns false if `pace` has ended the work.
fn scrub_file(
    disk: &dyn Disk,
    name: &str,
    length: u64,
    pace: &mut dyn FnMut(u64) -> bool,
    damaged: &mut Vec<(String, StoreError)>,
) -> bool {
    let mut found = |error| damaged.push((name.to_owned(), error));
    let salt = match frame::header(disk, name) {
        Ok(Some(header)) => header.salt,
        Ok(None) => {
            found(checksum_mismatch(name, 0));
            return true;
        }
        Err(error) => {
            found(error);
            return true;
        }
    };
    let mut reader = Reader::new(disk, name, salt, FILE_HEADER as u64);
    let mut is_damaged = false;
    while reader.offset() < length {
        let at = reader.offset();
        match reader.next() {
            Ok(Some(_)) => is_damaged = false,
            Err(Stop::Io(error)) => {
                found(io(name, &error));
                return true;
            }
            Ok(None) | Err(Stop::Broken(_) | Stop::Damaged(_)) => {
                // a part of a damaged frame is no other one
                if !std::mem::replace(&mut is_damaged, true) {
                    found(checksum_mismatch(name, at));
                }
                if !reader.seek(at + 1, limits::READ_BYTES).unwrap_or(false) {
                    return true;
                }
            }
        }
        if !pace(reader.offset() - at) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::disk::Directory;
    use super::super::entries::Entries;
    use super::super::files::{Checkpoint, Listed, Segment, checkpoint_name};
    use super::*;

    #[test]
    fn damage_is_found_once_and_in_listed_files_only() {
        let directory = tempfile::tempdir().unwrap();
        let (disk, name) = (Directory::new(directory.path().to_owned()), checkpoint_name(9));
        let mut entries = Entries::create(&disk, &name, 9).unwrap();
        for (revision, size) in (1..).zip([10, 3 << 20, 20_000, 10, 20_000]) {
            entries.push(revision, b"k", &vec![b'x'; size]).unwrap();
        }
        let (length, _) = entries.finish().unwrap();
        let checkpoint = Checkpoint { name: name.clone(), revision: 9, length };
        let files = Files::new(Arc::new(disk), Listed { checkpoint: Some(checkpoint), segments: vec![] }, vec![]);
        let scrubbed = || scrub(&files, &mut |_| true);
        assert_eq!(scrubbed(), []);
        let path = directory.path().join(&name);
        let whole = std::fs::read(&path).unwrap();
        for (flipped, found) in [
            (vec![5], 1),
            (vec![1 << 20], 1),
            (vec![FILE_HEADER], 1),
            (vec![1 << 20, whole.len() - 1], 2),
            (vec![whole.len() - 1], 1),
        ] {
            let mut bytes = whole.clone();
            flipped.iter().for_each(|at| bytes[*at] ^= 1);
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(scrubbed().len(), found, "{flipped:?}");
        }
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        assert_eq!(scrubbed().len(), 1);
        let mut read = 0;
        scrub(&files, &mut |bytes| {
            read += bytes;
            false
        });
        assert!(read < length / 2, "{read}");
        // it has been replaced while it was read
        let mut replace = |_| {
            let segment = Segment::new(10, 0);
            *files.lock() = Listed { checkpoint: None, segments: vec![segment] };
            true
        };
        assert_eq!(scrub(&files, &mut replace), []);
    }
}
