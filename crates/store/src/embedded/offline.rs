//! Check, backup and restore of a data directory, without a server or while one uses it.
//!
//! Files of a log only grow, or are replaced whole, so check and backup read them while a server writes.

use std::io::Write;
use std::path::Path;

use super::checkpoint::Entries;
use super::disk::{Appending, Directory, Disk as _};
use super::files::{checkpoint_name, each_entry, segment_name};
use super::frame::{self, Header};
use super::recovery::{self, Found};
use super::{OpenError, format, open_error};
use crate::contract::{Revision, Snapshot, StoreError};
use crate::limits;

/// The content of a data directory or a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub objects: usize,
    pub revision: Revision,
    /// History goes back to this revision.
    pub compacted: Revision,
    /// The log ends in an incomplete write: its server crashed during the write, or is writing it now.
    pub torn: bool,
}

impl Summary {
    fn of(found: &Found) -> Summary {
        let state = &found.state;
        let (objects, revision, compacted) = (state.index.len(), state.head, state.compacted);
        Summary { objects, revision, compacted, torn: found.torn }
    }
}

fn read(directory: &Path) -> Result<Found, OpenError> {
    if !format::is_initialized(directory)? {
        return Err(OpenError::Io(directory.to_owned(), "there is no store".to_owned()));
    }
    let log = Directory::new(format::log_directory(directory));
    let names = || {
        let mut names = log.list().unwrap_or_default();
        names.sort();
        names
    };
    let mut attempt = 1;
    loop {
        let before = names();
        match recovery::read(&log) {
            Ok(found) => return Ok(found),
            // a server has replaced files meanwhile
            Err(_) if names() != before => {}
            Err(_) if attempt < limits::READ_ATTEMPTS => attempt += 1,
            Err(error) => return Err(open_error(directory, error)),
        }
    }
}

/// Reads every byte of the store in `directory` and changes nothing. A server may be using it.
pub fn check(directory: &Path) -> Result<Summary, OpenError> {
    read(directory).map(|found| Summary::of(&found))
}

/// The live keys of the store in `directory`, at a revision that is not older than this call. A server may be at work.
pub fn snapshot(directory: &Path) -> Result<Snapshot, OpenError> {
    let found = read(directory)?;
    let mut entries = found.state.live();
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(Snapshot { revision: found.state.head, entries })
}

/// Writes all live keys of the store in `directory` to a new file, as they are at one revision that is not older than
/// this call. A server may be at work.
pub fn backup(directory: &Path, file: &Path) -> Result<Summary, OpenError> {
    let (place, name) = place_of(file)?;
    if file.exists() {
        return Err(OpenError::Backup(file.to_owned(), "the file exists already".to_owned()));
    }
    let found = read(directory)?;
    let temporary = format!("{name}.tmp");
    let write = || -> std::io::Result<()> {
        write_live(Entries::create(&place, &temporary, found.state.head)?, &found)?;
        place.rename(&temporary, &name)?;
        place.sync()
    };
    write().map_err(|error| OpenError::Backup(file.to_owned(), error.to_string()))?;
    Ok(Summary::of(&found))
}

/// Writes the same backup to a stream, such as stdout. Readers detect a truncated backup.
pub fn backup_to(directory: &Path, out: impl Write + Send + 'static) -> Result<Summary, OpenError> {
    let found = read(directory)?;
    let entries = Entries::begin(Box::new(Stream(out)), found.state.head);
    let failed = |error: std::io::Error| OpenError::Backup("-".into(), error.to_string());
    entries.and_then(|entries| write_live(entries, &found)).map_err(failed)?;
    Ok(Summary::of(&found))
}

/// Writes all live keys by rising revision.
fn write_live(mut entries: Entries, found: &Found) -> std::io::Result<()> {
    let mut live = found.state.live();
    live.sort_by_key(|entry| entry.revision);
    live.iter().try_for_each(|entry| entries.push(entry.revision, &entry.key, &entry.value))?;
    entries.finish().map(drop)
}

/// A stream as the target of a backup.
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
}

/// Default of `--bump-revision`, as etcd's documentation recommends.
pub const RESTORE_BUMP: Revision = 1_000_000_000;

/// Fills a new data directory from a backup, after checking every byte of it. The revision of the new store is that of the
/// backup plus `bump`, and all history before it is compacted, as with `etcdutl snapshot restore --bump-revision
/// --mark-compacted`: no revision from after the backup is used again, and clients that know one have to list again. Objects
/// keep the revisions of their last writes.
pub fn restore(file: &Path, directory: &Path, bump: Revision) -> Result<Summary, OpenError> {
    let (place, name) = place_of(file)?;
    let foreign = |error: StoreError| match error {
        StoreError::Corrupt(_) => OpenError::Backup(file.to_owned(), "checksum mismatch".to_owned()),
        other => OpenError::Backup(file.to_owned(), other.to_string()),
    };
    let header = frame::header(&place, &name).map_err(foreign)?;
    let header = header.ok_or_else(|| OpenError::Backup(file.to_owned(), "it is not a backup".to_owned()))?;
    let too_far =
        || OpenError::Backup(file.to_owned(), format!("revision {} cannot be raised by {bump}", header.first));
    let revision = header.first.checked_add(bump).filter(|to| i64::try_from(*to).is_ok()).ok_or_else(too_far)?;
    let mut objects = 0;
    each_entry(&place, &name, header, |_| {
        objects += 1;
        Ok(())
    })
    .map_err(foreign)?;
    format::create_directory(directory)?;
    let _lock = format::take_lock(directory, "pintle store restore")?;
    if format::is_initialized(directory)? || format::log_directory(directory).exists() {
        return Err(OpenError::Io(directory.to_owned(), "the directory already contains a store".to_owned()));
    }
    format::make(directory, |log| {
        fill(log, &place, &name, header, revision)
            .map_err(|error| OpenError::Io(directory.to_owned(), error.to_string()))
    })?;
    Ok(Summary { objects, revision, compacted: revision, torn: false })
}

/// The files of a log that starts at `revision` with the entries of a backup.
fn fill(log: &Directory, place: &Directory, name: &str, header: Header, revision: Revision) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| StoreError::Unavailable(error.to_string());
    let mut entries = Entries::create(log, &checkpoint_name(revision), revision).map_err(failed)?;
    each_entry(place, name, header, |entry| {
        entries.push(entry.revision, &entry.key, &entry.value.unwrap_or_default()).map_err(failed)
    })?;
    entries.finish().map_err(failed)?;
    let header = Header::new(revision + 1);
    let mut file = log.create(&segment_name(header.first)).map_err(failed)?;
    file.append(&header.encode()).and_then(|()| file.sync()).and_then(|()| log.sync()).map_err(failed)
}

/// The directory of a file, and its name there.
fn place_of(file: &Path) -> Result<(Directory, String), OpenError> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.ok_or_else(|| OpenError::Backup(file.to_owned(), "the path has no file name".to_owned()))?;
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((Directory::new(parent.to_owned()), name))
}
