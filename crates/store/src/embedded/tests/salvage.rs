//! Salvage: what is intact is found, what is not is named, and the log is not changed.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::damage::{log, log_with_branches};
use super::for_each;
use super::model::{Act, Run, branches, live};
use super::sim::{Chance, Sim};
use crate::contract::{Change, Revision};
use crate::embedded::disk::Directory;
use crate::embedded::entries::Entries;
use crate::embedded::entry::{BranchEntry, Difference, ForkOf};
use crate::embedded::files::{Segment, checkpoint_name};
use crate::embedded::frame::{FILE_HEADER, FRAME_HEADER};
use crate::embedded::salvage::{Salvaged, salvage_disk};

/// Salvages a modified log. Every entry must be one that was written with exactly this key, value and revision.
fn salvaged(run: &Run, contents: &[(String, Vec<u8>)]) -> Salvaged {
    let disk = Sim::holding(contents);
    let found = salvage_disk(&disk);
    assert_eq!(disk.contents(), contents, "nothing is changed");
    for entry in &found.snapshot.entries {
        let written = run.acknowledged[entry.revision as usize - 1].change().unwrap();
        assert_eq!((&written.key, &written.value), (&entry.key, &Some(entry.value.clone())));
    }
    let written: BTreeSet<_> = run.acknowledged.iter().flat_map(values_of).collect();
    for entry in found.branches.iter().flat_map(|branch| &branch.snapshot.entries) {
        assert!(written.contains(&(entry.key.clone(), entry.value.clone())), "{entry:?}");
    }
    found
}

/// The keys and values that an entry of the log has.
fn values_of(act: &Act) -> Vec<(Bytes, Bytes)> {
    let change = |change: &Change| Some((change.key.clone(), change.value.clone()?));
    match act {
        Act::Change(made) | Act::InBranch(_, made) => change(made).into_iter().collect(),
        Act::Branch(BranchEntry::Fork { of: ForkOf::Earlier(differences), .. }) => {
            let value = |of: &Difference| Some((of.key.clone(), of.live.as_ref()?.value.clone()));
            differences.iter().filter_map(value).collect()
        }
        Act::Branch(_) => vec![],
    }
}

/// A branch that is not called incomplete has what was written to it, unless its end is lost.
#[test]
fn branches_of_a_damaged_log_are_found() {
    let (mut right, mut incomplete) = (0, 0);
    for seed in 0..12 {
        let run = log_with_branches(seed);
        let whole = run.disk.contents();
        let wanted = branches(&run.acknowledged);
        let found = salvaged(&run, &whole);
        assert_eq!(found.branches.len(), wanted.len());
        assert!(found.branches.iter().all(|branch| !branch.is_incomplete), "a whole log has whole branches");
        let mut chance = Chance(seed);
        for file in 0..whole.len() {
            for byte in (seed as usize..whole[file].1.len()).step_by(97) {
                let mut contents = whole.clone();
                contents[file].1[byte] ^= 1 << chance.below(8);
                for branch in salvaged(&run, &contents).branches {
                    let known = wanted.values().find(|known| known.is(&branch.id, branch.snapshot.revision));
                    incomplete += usize::from(branch.is_incomplete);
                    if let (Some(known), false) = (known, branch.is_incomplete) {
                        assert!(known.holds(&branch.snapshot), "byte {byte} of {}, {:?}", whole[file].0, branch.id);
                        right += 1;
                    }
                }
            }
        }
    }
    assert!(right > 100 && incomplete > 100, "{right} {incomplete}");
}

fn revisions(found: &Salvaged) -> BTreeMap<Bytes, Revision> {
    found.snapshot.entries.iter().map(|entry| (entry.key.clone(), entry.revision)).collect()
}

/// The keys of all records in the frame of a file that holds a byte, read without checksums from the undamaged file.
fn keys_around(content: &[u8], byte: usize) -> BTreeSet<Bytes> {
    let mut at = FILE_HEADER;
    let length = |at: usize| u32::from_be_bytes(content[at + 4..at + 8].try_into().unwrap()) as usize;
    while at + FRAME_HEADER + length(at) <= byte {
        at += FRAME_HEADER + length(at);
    }
    let mut keys = BTreeSet::new();
    let (mut record, end) = (at + FRAME_HEADER, at + FRAME_HEADER + length(at));
    while record < end {
        let size = |at: usize| u32::from_be_bytes(content[at..at + 4].try_into().unwrap()) as usize;
        let (key, value) = (size(record + 9), size(record + 13));
        keys.insert(Bytes::copy_from_slice(&content[record + 17..record + 17 + key]));
        record += 17 + key + value;
    }
    keys
}

#[test]
fn everything_but_the_damaged_frame_is_found() {
    for_each(0..3, |seed| {
        let run = log(seed);
        let whole = run.disk.contents();
        let want = live(&run.acknowledged);
        let mut chance = Chance(seed);
        for file in 0..whole.len() {
            for byte in (seed as usize..whole[file].1.len()).step_by(11) {
                let mut contents = whole.clone();
                contents[file].1[byte] ^= 1 << chance.below(8);
                let found = salvaged(&run, &contents);
                let (name, found_revisions) = (&whole[file].0, revisions(&found));
                if found.losses.is_empty() {
                    assert_eq!(found_revisions, want, "byte {byte} of {name}");
                    continue;
                }
                assert!(found.losses.iter().any(|line| line.contains(name.as_str())), "{name}: {:?}", found.losses);
                let concerned = if byte < FILE_HEADER { BTreeSet::new() } else { keys_around(&whole[file].1, byte) };
                let keys: BTreeSet<&Bytes> = want.keys().chain(found_revisions.keys()).collect();
                for key in keys.into_iter().filter(|key| !concerned.contains(*key)) {
                    assert_eq!(
                        found_revisions.get(key),
                        want.get(key),
                        "byte {byte} of {name}: {}",
                        key.escape_ascii()
                    );
                }
            }
        }
    });
}

#[test]
fn a_flipped_bit_of_a_checkpoint_costs_few_objects() {
    const OBJECTS: Revision = 343;
    let directory = tempfile::tempdir().unwrap();
    let (disk, name) = (Directory::new(directory.path().to_owned()), checkpoint_name(OBJECTS));
    let mut entries = Entries::create(&disk, &name, OBJECTS).unwrap();
    for revision in 1..=OBJECTS {
        entries.push(revision, &revision.to_be_bytes(), &[b'x'; 1000]).unwrap();
    }
    entries.finish().unwrap();
    let mut bytes = std::fs::read(directory.path().join(&name)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let found = salvage_disk(&Sim::holding(&[(name, bytes)]));
    let lost = OBJECTS as usize - found.snapshot.entries.len();
    assert!((1..=16).contains(&lost), "{lost} objects are lost");
}

#[test]
fn missing_and_truncated_files_are_named() {
    let run = log(7);
    let whole = run.disk.contents();
    for file in 0..whole.len() {
        let mut contents = whole.clone();
        let (name, _) = contents.remove(file);
        let found = salvaged(&run, &contents);
        // the mark of the last stop is not part of the content
        assert_eq!(found.losses.is_empty(), name == "stopped", "{name}");
        let mut contents = whole.clone();
        contents[file].1.truncate(whole[file].1.len() / 2);
        let found = salvaged(&run, &contents);
        assert_eq!(found.losses.is_empty(), name == "stopped", "half of {name}");
    }
    assert_eq!(salvaged(&run, &whole).losses, Vec::<String>::new(), "a whole log has no losses");
}

/// Frames are found even when bytes cut out of the middle of the file have moved them.
#[test]
fn frames_behind_a_cut_are_found() {
    let run = log(3);
    let mut contents = run.disk.contents();
    let file = contents.iter().position(|(name, _)| name.ends_with(".log")).unwrap();
    let bytes = &mut contents[file].1;
    let half = bytes.len() / 2;
    drop(bytes.drain(half - 1..half + 1));
    let found = salvaged(&run, &contents);
    assert!(!found.losses.is_empty());
    assert_eq!(found.snapshot.revision, run.acknowledged.len() as Revision, "the last change is found");
}

#[test]
fn losses_name_keys_bytes_and_revisions() {
    let run = log(1);
    let mut contents = run.disk.contents();
    let listed = run.writer.files.lock().clone();
    let after = listed.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.revision);
    let is_after = |segment: &&Segment| segment.first > after && segment.frames.len() > 1;
    let segment = listed.segments.iter().find(is_after).unwrap();
    let (revision, offset) = segment.frames[0];
    let (_, bytes) = contents.iter_mut().find(|(name, _)| *name == segment.name).unwrap();
    let end = segment.frames[1].1;
    *bytes.get_mut(end as usize - 1).unwrap() ^= 1;
    let found = salvaged(&run, &contents);
    let key = run.acknowledged[revision as usize - 1].change().unwrap().key.escape_ascii().to_string();
    let line = &found.losses[0];
    assert!(line.starts_with(&format!("log/{}: bytes {offset} to ", segment.name)), "{line}");
    assert!(line.contains(&format!(" are corrupt, with {key} (revision {revision})")), "{line}");
    let gap = format!("changes of the revisions {revision} to ");
    assert!(found.losses.iter().any(|line| line.starts_with(&gap)), "{:?}", found.losses);
}

/// A change of a file that damage or another program may have made: bytes are replaced, repeated, removed or added.
fn mangle(bytes: &mut Vec<u8>, chance: &mut Chance) {
    let from = chance.below(bytes.len() + 1);
    let to = (from + 1 + chance.below(64)).min(bytes.len());
    let random: Vec<u8> = (0..chance.below(64)).map(|_| chance.below(256) as u8).collect();
    match chance.below(5) {
        0 => bytes.truncate(from),
        1 => drop(bytes.splice(from..to, random)),
        2 => bytes.extend_from_within(from..to),
        3 => bytes[from..to].fill(if chance.below(2) == 0 { 0 } else { 0xff }),
        _ => *bytes = random,
    }
}

/// Whatever the files hold, salvage ends, changes nothing and finds only what was written.
#[test]
fn any_bytes_are_salvaged_without_panics() {
    for_each(0..6, |seed| {
        let run = if seed % 2 == 0 { log(seed) } else { log_with_branches(seed) };
        let whole = run.disk.contents();
        let mut chance = Chance(seed + 100);
        for _ in 0..150 {
            let mut contents = whole.clone();
            for _ in 0..=chance.below(4) {
                let file = chance.below(contents.len());
                mangle(&mut contents[file].1, &mut chance);
            }
            salvaged(&run, &contents);
        }
    });
}
