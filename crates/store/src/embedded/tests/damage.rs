//! Corruption: a flipped bit in any file is reported, or does not change the content.

use super::for_each;
use super::model::{OPTIONS, Run};
use super::sim::{Chance, Sim};
use crate::contract::StoreError;
use crate::embedded::disk::Disk as _;
use crate::embedded::frame::{self, FILE_HEADER, Kind, Reader, Record};
use crate::embedded::replay::Replay;
use crate::embedded::writer::Failure;

/// A log with a checkpoint and several segments after it, closed as a server closes it.
pub fn log(seed: u64) -> Run {
    log_of(seed, Run::step)
}

/// Such a log of a store with branches.
pub fn log_with_branches(seed: u64) -> Run {
    log_of(seed, Run::step_with_branches)
}

fn log_of(seed: u64, step: fn(&mut Run, &mut Chance) -> Result<(), Failure>) -> Run {
    let mut chance = Chance(seed);
    let mut run = Run::create();
    let has_all = |run: &Run| {
        let listed = run.writer.files.lock();
        listed.segments.len() > 2 && listed.segments[0].first > 1
    };
    while !has_all(&run) {
        step(&mut run, &mut chance).unwrap();
    }
    run.write(&mut chance).unwrap();
    run.writer.close().unwrap();
    run
}

/// The mark of the last stop. Damaged, it says nothing about the log, which has checksums of its own.
const MARK: &str = "stopped";

/// Opens a modified log. Returns false if its content is complete, and true if the error names a file of the log.
fn is_reported(run: &Run, contents: &[(String, Vec<u8>)]) -> bool {
    match Run::open(Sim::holding(contents), run.acknowledged.clone(), vec![], OPTIONS) {
        Ok(_) => false,
        Err(StoreError::Corrupt(why)) => {
            assert!(why.contains("log/") || why.contains("revisions between"), "{why}");
            true
        }
        Err(other) => panic!("{other}"),
    }
}

/// The segments that the checkpoint covers and that were still the last one when it was written: the next start removes them unread.
fn unneeded(run: &Run) -> Vec<String> {
    let listed = run.writer.files.lock();
    let base = listed.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.revision);
    let pairs = listed.segments.iter().zip(listed.segments.iter().skip(1));
    pairs.filter(|(_, next)| next.first <= base + 1).map(|(segment, _)| segment.name.clone()).collect()
}

#[test]
fn bit_flip_is_reported_or_harmless() {
    for_each(0..2, |seed| {
        let run = if seed == 0 { log(seed) } else { log_with_branches(seed) };
        let whole = run.disk.contents();
        let mut chance = Chance(seed);
        let mut harmless = 0;
        let unneeded = unneeded(&run);
        for file in 0..whole.len() {
            let is_mark = whole[file].0 == MARK;
            if unneeded.contains(&whole[file].0) {
                continue;
            }
            // all fields but those of one byte are longer than a step, and these are in many frames
            for byte in (seed as usize..whole[file].1.len()).step_by(3) {
                let mut contents = whole.clone();
                contents[file].1[byte] ^= 1 << chance.below(8);
                let is_reported = is_reported(&run, &contents);
                assert!(!is_reported || !is_mark, "the log is whole");
                harmless += usize::from(!is_reported && !is_mark);
            }
        }
        // only flips in the last frame, the seal, are harmless
        assert!(harmless <= super::super::frame::FRAME_HEADER, "{harmless} flipped bits were not noticed");
    });
}

/// A frame with valid checksums and a record of an unknown kind.
fn unknown(salt: u64) -> Vec<u8> {
    let body = [9; 17];
    let mut frame = b"PNTL".to_vec();
    frame.extend(17_u32.to_be_bytes());
    frame.extend([0; 16]);
    frame.extend(body);
    let seed = crc32c::crc32c(&salt.to_be_bytes());
    let header = crc32c::crc32c_append(crc32c::crc32c_append(seed, &frame[4..8]), &frame[12..20]);
    frame[20..24].copy_from_slice(&header.to_be_bytes());
    let whole = crc32c::crc32c_append(seed, &frame[12..]);
    frame[8..12].copy_from_slice(&whole.to_be_bytes());
    frame
}

#[test]
fn valid_checksum_with_invalid_content_is_corruption() {
    let run = log(5);
    let last = run.writer.files.lock().segments.last().cloned().unwrap();
    let mut contents = run.disk.contents();
    let (_, bytes) = contents.iter_mut().find(|(name, _)| *name == last.name).unwrap();
    bytes.extend(unknown(last.salt));
    assert!(is_reported(&run, &contents), "the frame was cut off");
}

#[test]
fn missing_file_is_reported() {
    let run = log(7);
    let whole = run.disk.contents();
    for file in 0..whole.len() {
        let mut contents = whole.clone();
        let (name, _) = contents.remove(file);
        // without the mark of the last stop, the log is what a server that was killed leaves
        assert_eq!(is_reported(&run, &contents), name != MARK, "{name}");
    }
    assert!(is_reported(&run, &[]), "an empty log");
}

#[test]
fn truncated_log_is_reported() {
    let run = log(11);
    let whole = run.disk.contents();
    for (file, (name, bytes)) in whole.iter().enumerate() {
        let mut contents = whole.clone();
        contents[file].1.truncate(bytes.len() / 2);
        assert_eq!(is_reported(&run, &contents), name != MARK, "half of {name}");
    }
}

#[test]
fn log_cut_between_frames_is_reported() {
    let run = log(13);
    let last = run.writer.files.lock().segments.last().cloned().unwrap();
    assert!(!last.frames.is_empty(), "the seed leaves frames in the last file");
    for (_, offset) in &last.frames {
        let mut contents = run.disk.contents();
        let (_, bytes) = contents.iter_mut().find(|(name, _)| *name == last.name).unwrap();
        bytes.truncate(*offset as usize);
        assert!(is_reported(&run, &contents), "the log may end at byte {offset}");
    }
}

/// The records of a file.
fn records(disk: &Sim, name: &str) -> Vec<Record> {
    let salt = frame::header(disk, name).unwrap().unwrap().salt;
    let mut reader = Reader::new(disk, name, salt, FILE_HEADER as u64);
    let mut all = vec![];
    while let Some(frame) = reader.next().unwrap() {
        all.extend(frame.records);
    }
    all
}

/// A record with a part of it replaced, cut off or repeated.
fn mangled(record: &Record, chance: &mut Chance) -> Record {
    let mut mangle = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let at = chance.below(bytes.len() + 1);
        match chance.below(4) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            2 => bytes.splice(at..at, [0xff; 8]).for_each(drop),
            _ => {}
        }
        bytes.into()
    };
    Record { key: mangle(&record.key), value: mangle(&record.value), ..*record }
}

/// Whatever the records of branches hold behind valid checksums, they are applied or refused.
#[test]
fn any_records_of_branches_are_read_without_panics() {
    let (mut applied, mut refused) = (0, 0);
    for seed in 0..10 {
        let run = log_with_branches(seed);
        let names = run.disk.list().unwrap();
        let of = |ending: &str| -> Vec<Record> {
            names.iter().filter(|name| name.ends_with(ending)).flat_map(|name| records(&run.disk, name)).collect()
        };
        let (checkpoint, log) = (of(".checkpoint"), of(".log"));
        let mut chance = Chance(seed);
        for _ in 0..100 {
            let mut replay = Replay::new();
            let mut count = |taken: Option<()>| if taken.is_some() { applied += 1 } else { refused += 1 };
            let mut next = |record: &Record| match chance.below(20) {
                0 => mangled(record, &mut chance),
                _ => record.clone(),
            };
            let of_checkpoint = checkpoint.iter().filter(|record| record.kind != Kind::End);
            of_checkpoint.for_each(|record| count(replay.take_of_checkpoint(next(record))));
            count(replay.end_checkpoint());
            let of_branches = log.iter().filter(|record| !matches!(record.kind, Kind::Put | Kind::Delete | Kind::Roll));
            of_branches.for_each(|record| count(replay.take(&next(record))));
            replay.end();
        }
    }
    assert!(applied > 1000 && refused > 1000, "{applied} and {refused}");
}
