//! Corruption: a flipped bit in any file is reported, or does not change the content.

use super::model::{OPTIONS, Run};
use super::sim::{Chance, Sim};
use crate::contract::StoreError;

/// A log with a checkpoint and several segments after it, closed as a server closes it.
pub fn log(seed: u64) -> Run {
    let mut chance = Chance(seed);
    let mut run = Run::create();
    let has_all = |run: &Run| {
        let listed = run.writer.files.lock();
        listed.segments.len() > 2 && listed.segments[0].first > 1
    };
    while !has_all(&run) {
        run.step(&mut chance).unwrap();
    }
    run.write(&mut chance).unwrap();
    run.writer.close().unwrap();
    run
}

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

#[test]
fn bit_flip_is_reported_or_harmless() {
    for seed in 0..3 {
        let run = log(seed);
        let whole = run.disk.contents();
        let mut chance = Chance(seed);
        let mut harmless = 0;
        for file in 0..whole.len() {
            for byte in 0..whole[file].1.len() {
                let mut contents = whole.clone();
                contents[file].1[byte] ^= 1 << chance.below(8);
                harmless += usize::from(!is_reported(&run, &contents));
            }
        }
        // only flips in the last frame, the seal, are harmless
        assert!(harmless <= super::super::frame::FRAME_HEADER, "{harmless} flipped bits were not noticed");
    }
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
        assert_eq!(is_reported(&run, &contents), name != "stopped", "{name}");
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
        assert!(is_reported(&run, &contents), "half of {name} is enough");
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
