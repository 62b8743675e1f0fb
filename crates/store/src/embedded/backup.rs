//! Backups: one file with the live keys at a revision, preceded by the small files that a restored server needs.

use std::io::Write;
use std::path::Path;

use bytes::Bytes;

use super::disk::{Appending, Directory, Disk as _};
use super::entries::Entries;
use super::files::{checkpoint_name, each_file, each_record, segment_name};
use super::format::Branched;
use super::frame::{self, Header, Kind};
use super::offline::Summary;
use super::open_error::{Filling, OpenError};
use super::replay::Replay;
use super::state::State;
use super::{format, images, unfinished};
use crate::contract::content::{Content, LiveValue};
use crate::contract::{Entry, Revision, StoreError};

/// Default of `--bump-revision`, as etcd's documentation recommends.
pub const RESTORE_BUMP: Revision = 1_000_000_000;

/// A file of the data directory that a backup contains, such as a private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupFile {
    /// The name in the data directory, without directories.
    pub name: String,
    pub content: Bytes,
}

/// The result of [`restore`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    pub summary: Summary,
    /// The names of the files beside the store.
    pub files: Vec<String>,
}

/// Writes what a store holds, and files, to `out`, which is returned. Readers detect a truncated backup.
///
/// # Errors
///
/// Those of `out`.
pub fn write_backup<W: Write + Send>(content: Content, files: &[BackupFile], out: W) -> std::io::Result<W> {
    let Content { snapshot, branches } = content;
    let mut backup = Entries::begin(Stream(out), snapshot.revision)?;
    files.iter().try_for_each(|file| backup.push_file(&file.name, &file.content))?;
    let mut entries = snapshot.entries;
    entries.sort_by_key(|entry| entry.revision);
    entries.iter().try_for_each(|entry| backup.push(entry.revision, &entry.key, &entry.value))?;
    if let Some(images) = branches {
        let index = State::of(entries.iter().map(live).collect(), 0, snapshot.revision);
        images::write(&mut backup, &images, &|key, value| index.has(key, value, snapshot.revision))?;
    }
    let (_, Stream(out)) = backup.finish()?;
    Ok(out)
}

fn live(entry: &Entry) -> (Bytes, LiveValue) {
    (entry.key.clone(), LiveValue { revision: entry.revision, value: entry.value.clone() })
}

struct Stream<W>(W);

impl<W: Write + Send> Appending for Stream<W> {
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }

    fn truncate(&mut self, _: u64) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn named_length(&self) -> std::io::Result<Option<u64>> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// Fills a new data directory from a backup, after checking every byte of it. The revision of the new store is that of the
/// backup plus `bump`, and all history before it is compacted, as with `etcdutl snapshot restore --bump-revision
/// --mark-compacted`: no revision from after the backup is used again, and clients that know one have to list again. Objects
/// keep the revisions of their last writes. Files get mode 0600.
///
/// Until everything is written, the directory has a mark, and opening it fails. A restore into a directory with the mark of
/// another one removes first what that has written.
///
/// # Errors
///
/// The backup is corrupt or cannot be read, the revision does not fit into an `i64`, or the directory contains a store or one
/// of the files.
pub fn restore(file: &Path, directory: &Path, bump: Revision) -> Result<Restored, OpenError> {
    let backup = Backup::open(file)?;
    let too_far = || backup.error(format!("revision {} cannot be raised by {bump}", backup.header.first));
    let raised = backup.header.first.checked_add(bump);
    let revision = raised.filter(|to| i64::try_from(*to).is_ok()).ok_or_else(too_far)?;
    let (objects, branches, branched) = backup.count()?;
    let files = backup.files()?;
    format::create_directory(directory)?;
    let _lock = format::take_lock(directory, "pintle store restore")?;
    begin_anew(directory)?;
    if format::is_initialized(directory)? || format::log_directory(directory).exists() {
        return Err(OpenError::Unusable(directory.to_owned(), "the directory already contains a store"));
    }
    if let Some(present) = files.iter().find(|file| directory.join(&file.name).exists()) {
        return Err(OpenError::Unusable(directory.join(&present.name), "the file exists already"));
    }
    let filling = Filling::Restore(files.iter().map(|file| file.name.clone()).collect());
    unfinished::mark(directory, &filling)?;
    let filled = fill_directory(directory, &files, branched, |log| backup.fill(log, revision));
    if let Err(error) = filled {
        // on a full disk, what was written would be in the way; the next restore removes what stays
        let _ = begin_anew(directory);
        return Err(error);
    }
    unfinished::clear(directory)?;
    let summary = Summary { objects, branches, revision, compacted: revision, torn: false, stopped: None };
    Ok(Restored { summary, files: files.into_iter().map(|file| file.name).collect() })
}

/// Reads every byte of a backup.
///
/// # Errors
///
/// The backup is corrupt or cannot be read.
pub fn check_backup(file: &Path) -> Result<Summary, OpenError> {
    let backup = Backup::open(file)?;
    let (objects, branches, _) = backup.count()?;
    backup.files()?;
    let revision = backup.header.first;
    Ok(Summary { objects, branches, revision, compacted: revision, torn: false, stopped: None })
}

/// Removes what an interrupted restore has written to a directory. Its mark goes last.
fn begin_anew(directory: &Path) -> Result<(), OpenError> {
    let files = match unfinished::read(directory)? {
        None => return Ok(()),
        Some(Filling::Restore(files)) => files,
        Some(other) => return Err(OpenError::Unfinished(directory.to_owned(), other)),
    };
    format::unmake(directory)?;
    for name in &files {
        match std::fs::remove_file(directory.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(OpenError::Io(directory.join(name), error));
            }
            _ => {}
        }
    }
    let removed = Directory::new(directory.to_owned()).sync();
    removed.map_err(|error| OpenError::Io(directory.to_owned(), error))?;
    unfinished::clear(directory)
}

/// Writes the files of a backup, and then the store.
fn fill_directory(
    directory: &Path,
    files: &[BackupFile],
    branched: Branched,
    fill: impl FnOnce(&Directory) -> Result<(), StoreError>,
) -> Result<(), OpenError> {
    let place = Directory::new(directory.to_owned());
    for file in files {
        let written = place.create(&file.name).and_then(|mut new| new.append(&file.content).and_then(|()| new.sync()));
        written.map_err(|error| OpenError::Io(directory.join(&file.name), error))?;
    }
    format::make(directory, branched, |log| fill(log).map_err(|error| OpenError::Store(directory.to_owned(), error)))
}

/// A backup that is being read.
struct Backup<'a> {
    path: &'a Path,
    place: Directory,
    name: String,
    header: Header,
}

impl<'a> Backup<'a> {
    fn open(path: &'a Path) -> Result<Backup<'a>, OpenError> {
        let error = |why: &str| OpenError::Backup(path.to_owned(), why.to_owned());
        let (place, name) = Directory::of(path).ok_or_else(|| error("the path has no file name"))?;
        let header = match frame::header(&place, &name) {
            Ok(header) => header.ok_or_else(|| error("it is not a backup"))?,
            Err(StoreError::Corrupt(_)) => return Err(error("checksum mismatch")),
            Err(other) => return Err(error(&other.to_string())),
        };
        Ok(Backup { path, place, name, header })
    }

    fn error(&self, why: String) -> OpenError {
        OpenError::Backup(self.path.to_owned(), why)
    }

    fn unreadable(&self, error: StoreError) -> OpenError {
        match error {
            StoreError::Corrupt(_) => self.error("checksum mismatch".to_owned()),
            other => self.error(other.to_string()),
        }
    }

    /// Reads every byte and counts the objects and the branches.
    fn count(&self) -> Result<(usize, usize, Branched), OpenError> {
        let mut replay = Replay::new();
        let invalid = || StoreError::Corrupt("branches".to_owned());
        let read = each_record(&self.place, &self.name, self.header, |record| {
            replay.take_of_checkpoint(record.detached()).ok_or_else(invalid)
        });
        let whole = read.and_then(|_| replay.end_checkpoint().ok_or_else(invalid));
        whole.map_err(|error| self.unreadable(error))?;
        let branched = if replay.has_branched { Branched::Yes } else { Branched::No };
        Ok((replay.state.index.len(), replay.branches.len(), branched))
    }

    fn files(&self) -> Result<Vec<BackupFile>, OpenError> {
        let mut files = vec![];
        each_file(&self.place, &self.name, self.header, |name, content| {
            files.push(BackupFile { name: String::from_utf8_lossy(name).into_owned(), content: content.clone() });
        })
        .map_err(|error| self.unreadable(error))?;
        match files.iter().find(|file| !unfinished::is_file_name(&file.name)) {
            Some(file) => Err(self.error(format!("it contains a file with the invalid name {:?}", file.name))),
            None => Ok(files),
        }
    }

    /// Writes the files of a log that starts at `revision` with the entries of the backup.
    fn fill(&self, log: &Directory, revision: Revision) -> Result<(), StoreError> {
        let failed = |error: std::io::Error| StoreError::Unavailable(error.to_string());
        let mut entries = Entries::create(log, &checkpoint_name(revision), revision).map_err(failed)?;
        each_record(&self.place, &self.name, self.header, |record| {
            if record.kind == Kind::File {
                return Ok(());
            }
            let (at, value) = images::raised(&record, revision, revision - self.header.first);
            entries.push_record(record.kind, at, &record.key, &value).map_err(failed)
        })?;
        entries.finish().map_err(failed)?;
        let header = Header::new(revision + 1);
        let mut file = log.create(&segment_name(header.first)).map_err(failed)?;
        file.append(&header.encode()).and_then(|()| file.sync()).and_then(|()| log.sync()).map_err(failed)
    }
}
