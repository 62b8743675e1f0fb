//! Reads and checks the files of a log on all cores. Most of a start is spent here, and most of that with memory that is touched
//! for the first time: so records are copied once, out of read buffers that are used again, to where they stay.

use std::sync::mpsc::{Receiver, sync_channel};

use super::disk::Disk;
use super::files::{CheckpointRecords, checksum_mismatch, segment_name, stopped};
use super::frame::{self, FILE_HEADER, Header, Reader, Record, Stop, Whole};
use crate::contract::{Revision, StoreError};
use crate::limits;

/// A segment as it was read.
pub struct Scanned {
    pub salt: u64,
    pub frames: Vec<Whole>,
    /// Offset of the first incomplete or corrupt frame, if there is one before the end of the file.
    pub broken: Option<u64>,
}

fn scan(disk: &dyn Disk, first: Revision) -> Result<Scanned, StoreError> {
    let name = segment_name(first);
    let header = frame::header(disk, &name)?.filter(|header| header.first == first);
    let Header { salt, .. } = header.ok_or_else(|| checksum_mismatch(&name, 0))?;
    let mut reader = Reader::new(disk, &name, salt, FILE_HEADER as u64);
    let mut frames = vec![];
    loop {
        match reader.next() {
            Ok(Some(frame)) => frames.push(frame.detached()),
            Ok(None) => return Ok(Scanned { salt, frames, broken: None }),
            Err(Stop::Broken(at)) => return Ok(Scanned { salt, frames, broken: Some(at) }),
            Err(stop) => return Err(stopped(&name, stop)),
        }
    }
}

/// The turns of a thread: every `of`-th item, from item `first` on.
#[derive(Clone, Copy)]
struct Turns {
    first: usize,
    of: usize,
}

/// Runs `work` on all cores. Each thread sends the results of its turns until that returns false, and `take` receives those of
/// all threads in order, at most `ahead` of each early. A result of `None` is missing: its thread has ended, or never started.
fn on_all_cores<R: Send, T>(
    ahead: usize,
    work: impl Fn(Turns, &mut dyn FnMut(R) -> bool) + Sync,
    take: impl FnOnce(&mut dyn Iterator<Item = Option<R>>) -> T,
) -> T {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let work = &work;
    std::thread::scope(|scope| {
        let start = |core| {
            let (sender, receiver) = sync_channel(ahead);
            // ends when the receiver is gone
            let run = move || work(Turns { first: core, of: cores }, &mut |result| sender.send(result).is_ok());
            let _ = std::thread::Builder::new().spawn_scoped(scope, run);
            receiver
        };
        let running: Vec<Receiver<R>> = (0..cores).map(start).collect();
        take(&mut running.iter().cycle().map(|receiver| receiver.recv().ok()))
    })
}

/// Reads segments and passes them on in order, with a bounded number in memory.
pub fn each_segment<T>(
    disk: &dyn Disk,
    firsts: &[Revision],
    take: impl FnOnce(&mut dyn Iterator<Item = Result<Scanned, StoreError>>) -> T,
) -> T {
    if firsts.len() <= 1 {
        // a thread would take longer to start than one small segment to read
        return take(&mut firsts.iter().map(|first| scan(disk, *first)));
    }
    let work = |turns: Turns, send: &mut dyn FnMut(_) -> bool| {
        let _ = firsts.iter().skip(turns.first).step_by(turns.of).all(|first| send(scan(disk, *first)));
    };
    on_all_cores(1, work, |scanned| {
        // what no thread has read is read here
        take(&mut firsts.iter().zip(scanned).map(|(first, scanned)| scanned.unwrap_or_else(|| scan(disk, *first))))
    })
}

/// Calls `take` with a copy of each record of a checkpoint except its end; returns the length in bytes.
pub fn each_record(
    disk: &dyn Disk,
    name: &str,
    header: Header,
    mut take: impl FnMut(Record) -> Result<(), StoreError>,
) -> Result<u64, StoreError> {
    let mut records = CheckpointRecords::of(name, header);
    let work = |turns: Turns, send: &mut dyn FnMut(Vec<Whole>) -> bool| {
        let mut reader = Reader::of_parts(disk, name, header.salt);
        for part in (turns.first as u64..).step_by(turns.of) {
            let start = FILE_HEADER as u64 + part * limits::READ_BYTES as u64;
            let end = start + limits::READ_BYTES as u64;
            if !reader.seek(start, limits::READ_BYTES).unwrap_or(false) {
                return;
            }
            let mut frames = vec![];
            // ends early at an error, which reading on below meets again
            while reader.offset() < end
                && let Ok(Some(frame)) = reader.next()
            {
                frames.push(frame.detached());
            }
            if !send(frames) {
                return;
            }
        }
    };
    on_all_cores(limits::PARTS_AHEAD, work, |parts| {
        for frame in parts.map_while(|part| part).flatten() {
            if frame.offset != records.offset() {
                break;
            }
            records.take(frame, &mut take)?;
        }
        Ok(())
    })?;
    records.take_rest(disk, |record| take(record.detached()))
}

#[cfg(test)]
mod tests {
    use super::super::disk::Directory;
    use super::super::entries::Entries;
    use super::*;

    /// Puts of 100 KB, so that each has a frame of its own.
    const PUTS: u64 = 100;

    fn revisions(path: &std::path::Path) -> (Vec<Revision>, Result<u64, StoreError>) {
        let disk = Directory::new(path.to_owned());
        let header = frame::header(&disk, "a").unwrap().unwrap();
        let mut found = vec![];
        let read = each_record(&disk, "a", header, |record| {
            assert_eq!((record.key.len(), record.value.len()), (8, 100_000));
            found.push(record.revision);
            Ok(())
        });
        (found, read)
    }

    #[test]
    fn frames_of_a_checkpoint_are_read_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let mut entries = Entries::create(&Directory::new(directory.path().to_owned()), "a", PUTS).unwrap();
        for revision in 1..=PUTS {
            entries.push(revision, &revision.to_be_bytes(), &vec![b'x'; 100_000]).unwrap();
        }
        let (length, _) = entries.finish().unwrap();
        assert_eq!(revisions(directory.path()), ((1..=PUTS).collect(), Ok(length)));
        let file = directory.path().join("a");
        let whole = std::fs::read(&file).unwrap();
        // in the header of the file's second frame, in a frame in the middle, and in the last record
        let second = FILE_HEADER + 24 + 17 + 8 + 100_000;
        for at in [second + 5, whole.len() / 2, whole.len() - 1] {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            std::fs::write(&file, flipped).unwrap();
            let (found, read) = revisions(directory.path());
            let before = (at - FILE_HEADER) / (second - FILE_HEADER);
            assert_eq!(found, (1..=before as u64).take(PUTS as usize).collect::<Vec<_>>(), "{at}");
            assert!(matches!(read, Err(StoreError::Corrupt(_))), "{at}: {read:?}");
        }
        // parts in which no frame starts, and many of them start
        let mut entries = Entries::create(&Directory::new(directory.path().to_owned()), "a", 4000).unwrap();
        let sizes = (1..=4000).map(|revision| if revision % 1000 == 1 { 3 << 20 } else { revision as usize });
        for (revision, size) in (1..).zip(sizes.clone()) {
            entries.push(revision, b"k", &vec![b'x'; size]).unwrap();
        }
        entries.finish().unwrap();
        let disk = Directory::new(directory.path().to_owned());
        let header = frame::header(&disk, "a").unwrap().unwrap();
        let mut found = vec![];
        each_record(&disk, "a", header, |record| {
            found.push(record.value.len());
            Ok(())
        })
        .unwrap();
        assert!(found.into_iter().eq(sizes));
        for length in [second, second + 10, whole.len() - 1] {
            std::fs::write(&file, &whole[..length]).unwrap();
            assert!(matches!(revisions(directory.path()).1, Err(StoreError::Corrupt(_))), "{length}");
        }
    }
}
