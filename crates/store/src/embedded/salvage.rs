//! Salvage: everything that can be read from a damaged log, with a description of what cannot. Nothing is changed.
//!
//! A frame whose checksum does not match is lost with all its records; reading goes on at the next frame with a valid
//! header. If the header of a file is damaged, the seed of its checksums comes from its first frame. The newest intact
//! record of each key counts. A key whose last change is lost therefore has the value of its previous change, if that
//! is intact.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;

use super::disk::{Directory, Disk};
use super::files::{checkpoint_name, revision_in, segment_name};
use super::frame::{self, FILE_HEADER, FrameAt, Header, Kind, Record, Whole};
use super::open_error::OpenError;
use super::salvage_branches::{BranchSalvage, SalvagedBranch};
use super::{format, mark, offline};
use crate::contract::content::Content;
use crate::contract::{Entry, Revision, Snapshot};
use crate::limits;

/// The readable part of a damaged store.
#[derive(Debug)]
pub struct Salvaged {
    /// The live keys, at the newest revision that was found.
    pub snapshot: Snapshot,
    /// One line for each loss, at most `limits::LOSSES_MAX`; empty if the store is whole.
    pub losses: Vec<String>,
    /// The number of further losses.
    pub more: usize,
    /// The readable branches.
    pub branches: Vec<SalvagedBranch>,
}

impl Salvaged {
    fn whole(content: Content) -> Salvaged {
        let branches = content.branches.iter().flat_map(|images| &images.branches).map(SalvagedBranch::whole).collect();
        Salvaged { snapshot: content.snapshot, losses: vec![], more: 0, branches }
    }
}

/// Reads everything that is intact in the store of a data directory, and changes nothing.
///
/// # Errors
///
/// There is no log, its directory cannot be read, or its format is that of another version.
pub fn salvage(directory: &Path) -> Result<Salvaged, OpenError> {
    if let Ok(content) = offline::content(directory) {
        return Ok(Salvaged::whole(content));
    }
    let mut losses = Losses::default();
    match format::is_initialized(directory) {
        Ok(true) => {}
        Ok(false) => losses.add("the file FORMAT is missing".to_owned()),
        Err(OpenError::UnknownFormat(_, why)) => losses.add(format!("the file FORMAT {why}")),
        Err(other) => return Err(other),
    }
    let log = Directory::new(format::log_directory(directory));
    let found = read(&log, losses);
    found.map_err(|error| OpenError::Io(format::log_directory(directory), error))
}

/// Reads everything that is intact in a backup, and changes nothing.
///
/// # Errors
///
/// There is no such file.
pub fn salvage_backup(file: &Path) -> Result<Salvaged, OpenError> {
    let failed = |why: &str| OpenError::Backup(file.to_owned(), why.to_owned());
    let (place, name) = Directory::of(file).ok_or_else(|| failed("the path has no file name"))?;
    if !file.is_file() {
        return Err(failed("there is no such file"));
    }
    let (mut newest, mut branches) = (Newest::default(), BranchSalvage::default());
    let mut losses = Losses { place: "", ..Losses::default() };
    let scan = scan(&place, &name, &mut losses);
    if let Taken::Whole(revision) | Taken::Part(Some(revision)) =
        take_checkpoint(&scan, &name, &mut newest, &mut branches, &mut losses)
    {
        newest.head = newest.head.max(revision);
    }
    Ok(salvaged(newest, branches, losses))
}

fn salvaged(newest: Newest, branches: BranchSalvage, losses: Losses) -> Salvaged {
    let Losses { lines, more, .. } = losses;
    Salvaged { snapshot: newest.snapshot(), losses: lines, more, branches: branches.finish() }
}

/// Descriptions of losses. A bounded number of them is kept.
struct Losses {
    lines: Vec<String>,
    more: usize,
    /// Precedes the names of files.
    place: &'static str,
}

impl Default for Losses {
    fn default() -> Losses {
        Losses { lines: vec![], more: 0, place: "log/" }
    }
}

impl Losses {
    fn add(&mut self, line: String) {
        if self.lines.len() < limits::LOSSES_MAX { self.lines.push(line) } else { self.more += 1 }
    }

    /// A part of a file, and the records that it seems to hold.
    fn add_bytes(&mut self, name: &str, bytes: &Range<u64>, records: &[Record]) {
        let lost_key = |record: &Record| match record.kind {
            Kind::Put | Kind::Delete => Some(format!("{} (revision {})", record.key.escape_ascii(), record.revision)),
            Kind::BranchPut | Kind::BranchDelete => {
                let (_, revision, key) = record.in_branch()?;
                Some(format!("{} (revision {revision} of a branch)", key.escape_ascii()))
            }
            _ => None,
        };
        let keys: Vec<String> = records.iter().filter_map(lost_key).collect();
        let named = keys.iter().take(limits::LOST_KEYS_MAX).cloned().collect::<Vec<_>>().join(", ");
        let keys = match keys.len().saturating_sub(limits::LOST_KEYS_MAX) {
            0 if named.is_empty() => String::new(),
            0 => format!(", with {named}"),
            more => format!(", with {named} and {more} more"),
        };
        self.add(format!("{}{name}: bytes {} to {} are corrupt{keys}", self.place, bytes.start, bytes.end));
    }
}

/// The intact frames of a file.
#[derive(Default)]
struct Scan {
    /// The revision in the header, if that is intact.
    first: Option<Revision>,
    frames: Vec<Whole>,
    is_whole: bool,
}

/// Reads a file up to the first error, which is returned with the bytes before it.
fn content(disk: &dyn Disk, name: &str) -> (Bytes, Option<std::io::Error>) {
    let mut content = vec![];
    loop {
        match disk.read_at(name, content.len() as u64, limits::READ_BYTES) {
            Ok(bytes) if bytes.is_empty() => return (content.into(), None),
            Ok(bytes) => content.extend(bytes),
            Err(error) => return (content.into(), Some(error)),
        }
    }
}

fn scan(disk: &dyn Disk, name: &str, losses: &mut Losses) -> Scan {
    let (content, failed) = content(disk, name);
    let mut scan = Scan { is_whole: failed.is_none(), ..Scan::default() };
    if let Some(error) = failed {
        losses.add(format!("{}{name}: cannot be read from byte {} on: {error}", losses.place, content.len()));
    }
    let header = Header::decode(&content);
    scan.first = header.map(|header| header.first);
    let seed = match header {
        Some(header) => Some(frame::seed(header.salt)),
        None => content.get(FILE_HEADER..).and_then(frame::seed_of),
    };
    let Some(seed) = seed else {
        scan.is_whole = false;
        losses.add_bytes(name, &(0..content.len() as u64), &[]);
        return scan;
    };
    if header.is_none() {
        scan.is_whole = false;
        losses.add_bytes(name, &(0..FILE_HEADER as u64), &[]);
    }
    let mut at = FILE_HEADER;
    while at < content.len() {
        let lost = match frame::frame_at(&content, at, seed) {
            FrameAt::Whole(frame) => {
                at = usize::try_from(frame.end).unwrap_or(content.len());
                scan.frames.push(frame);
                continue;
            }
            FrameAt::Corrupt(records) => records,
            FrameAt::None => vec![],
        };
        let is_frame = |at: &usize| !matches!(frame::frame_at(&content, *at, seed), FrameAt::None);
        let next = (at + 1..content.len()).find(is_frame).unwrap_or(content.len());
        losses.add_bytes(name, &(at as u64..next as u64), &lost);
        scan.is_whole = false;
        at = next;
    }
    scan
}

/// The newest intact record of each key.
#[derive(Default)]
struct Newest {
    /// `None` for a deletion.
    records: HashMap<Bytes, (Revision, Option<Bytes>)>,
    head: Revision,
}

impl Newest {
    fn take(&mut self, record: &Record) {
        let value = match record.kind {
            Kind::Put => Some(Bytes::copy_from_slice(&record.value)),
            Kind::Delete => None,
            // the records of branches, see `BranchSalvage`
            _ => return,
        };
        self.head = self.head.max(record.revision);
        match self.records.get_mut(&record.key) {
            Some((revision, _)) if *revision >= record.revision => {}
            Some(known) => *known = (record.revision, value),
            None => drop(self.records.insert(Bytes::copy_from_slice(&record.key), (record.revision, value))),
        }
    }

    fn snapshot(self) -> Snapshot {
        let live = self.records.into_iter().filter_map(|(key, (revision, value))| {
            let value = value?;
            Some(Entry { key, value, revision })
        });
        let mut entries: Vec<Entry> = live.collect();
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        Snapshot { revision: self.head, entries }
    }
}

/// Reads the newest intact checkpoint, the intact parts of newer ones, and all changes after it.
fn read(disk: &dyn Disk, mut losses: Losses) -> std::io::Result<Salvaged> {
    let mut names = disk.list()?;
    names.sort();
    let mut newest = Newest::default();
    let mut branches = BranchSalvage::default();
    let checkpoints: Vec<Revision> = names.iter().filter_map(|name| revision_in(name, ".checkpoint")).collect();
    let base = read_checkpoints(disk, &checkpoints, &mut newest, &mut branches, &mut losses);
    let mut seen = vec![];
    let stopped = mark::read(disk).unwrap_or_else(|error| {
        losses.add(error.to_string());
        None
    });
    let (mut rolled, mut proven) = (None, stopped.unwrap_or_default());
    for first in names.iter().filter_map(|name| revision_in(name, ".log")) {
        if let Some(next) = rolled.filter(|next| *next < first) {
            losses.add(format!("log/{} is missing", segment_name(next)));
        }
        rolled = None;
        for frame in scan(disk, &segment_name(first), &mut losses).frames {
            proven = proven.max(frame.synced);
            for record in &frame.records {
                match record.kind {
                    Kind::Roll => rolled = Some(record.revision),
                    _ if record.revision > base => {
                        newest.take(record);
                        branches.take(record);
                    }
                    _ => {}
                }
            }
            seen.extend(frame.records.iter().filter(|record| record.kind != Kind::Roll).map(|record| record.revision));
        }
    }
    if let Some(next) = rolled {
        losses.add(format!("log/{} is missing", segment_name(next)));
        proven = proven.max(next - 1);
    }
    // revisions up to the newest checkpoint are in no segment
    add_gaps(checkpoints.last().copied().unwrap_or(0), seen, proven, &mut losses);
    newest.head = newest.head.max(base);
    Ok(salvaged(newest, branches, losses))
}

/// The objects read from a checkpoint.
enum Taken {
    /// All of it, at its revision.
    Whole(Revision),
    /// Some of it; its revision is unknown if its header is damaged.
    Part(Option<Revision>),
}

/// Takes the intact records of a checkpoint, or of a backup, which is one.
fn take_checkpoint(
    scan: &Scan,
    name: &str,
    newest: &mut Newest,
    branches: &mut BranchSalvage,
    losses: &mut Losses,
) -> Taken {
    let records = || scan.frames.iter().flat_map(|frame| &frame.records);
    records().for_each(|record| newest.take(record));
    let ended = records().any(|record| record.kind == Kind::End);
    let but_ends = || records().filter(|record| record.kind != Kind::End);
    if let Some(revision) = scan.first.filter(|_| scan.is_whole && ended) {
        // parts of newer checkpoints are of no use to branches that are whole
        *branches = BranchSalvage::default();
        branches.take_checkpoint(revision, but_ends());
        return Taken::Whole(revision);
    }
    branches.take_part(but_ends());
    if scan.is_whole {
        losses.add(format!("{}{name}: its end is missing", losses.place));
    }
    Taken::Part(scan.first)
}

/// Reads the newest intact checkpoint and the intact parts of newer ones. Returns the revision of the intact
/// checkpoint, or 0.
fn read_checkpoints(
    disk: &dyn Disk,
    revisions: &[Revision],
    newest: &mut Newest,
    branches: &mut BranchSalvage,
    losses: &mut Losses,
) -> Revision {
    for revision in revisions.iter().rev().copied() {
        let name = checkpoint_name(revision);
        let mut scan = scan(disk, &name, losses);
        // its name and its header have to agree
        scan.is_whole &= scan.first == Some(revision);
        if let Taken::Whole(revision) = take_checkpoint(&scan, &name, newest, branches, losses) {
            return revision;
        }
    }
    0
}

/// Describes the revisions after `from` that no intact record has, up to `proven`, which is known to have been written.
fn add_gaps(from: Revision, mut seen: Vec<Revision>, proven: Revision, losses: &mut Losses) {
    seen.sort_unstable();
    seen.push(proven.max(seen.last().copied().unwrap_or(0)) + 1);
    let mut last = from;
    for revision in seen.into_iter().filter(|revision| *revision > from) {
        if revision > last + 1 {
            losses.add(format!("changes of the revisions {} to {} are lost", last + 1, revision - 1));
        }
        last = revision;
    }
}

/// The findings of [`salvage`] in a log.
#[cfg(test)]
pub fn salvage_disk(disk: &dyn Disk) -> Salvaged {
    match super::recovery::read(disk) {
        Ok(found) => {
            let snapshot = Snapshot { revision: found.head, entries: found.replay.state.live() };
            let branches = found.replay.branches.values().map(SalvagedBranch::whole).collect();
            Salvaged { snapshot, losses: vec![], more: 0, branches }
        }
        Err(_) => read(disk, Losses::default()).unwrap(),
    }
}
