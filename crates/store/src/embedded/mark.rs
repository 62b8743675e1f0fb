//! The mark of a clean shutdown: the revision that the log reached. A log that ends before it has lost acknowledged writes,
//! which its own bytes do not show if it was cut between two frames. Since revisions only rise, an old mark stays true.

use std::io;

use super::disk::Disk;
use super::files::io as unreadable;
use crate::contract::{Revision, StoreError};

/// The file: the revision and the CRC-32C of its bytes, both big-endian.
const NAME: &str = "stopped";
const UNFINISHED: &str = "stopped.tmp";
const BYTES: usize = 12;

/// Writes the mark durably.
pub fn write(disk: &dyn Disk, revision: Revision) -> io::Result<()> {
    let mut file = disk.create(UNFINISHED)?;
    let bytes = revision.to_be_bytes();
    file.append(&[&bytes[..], &crc32c::crc32c(&bytes).to_be_bytes()].concat())?;
    file.sync()?;
    disk.rename(UNFINISHED, NAME)?;
    disk.sync()
}

/// The revision of the mark; `None` if there is none. A damaged one proves nothing about the log, which has checksums of its own, so
/// it must not keep a whole log from being opened.
pub fn read(disk: &dyn Disk) -> Result<Option<Revision>, StoreError> {
    let bytes = match disk.read_at(NAME, 0, BYTES + 1) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(NAME, &error)),
    };
    let parts = bytes
        .split_first_chunk::<8>()
        .filter(|(revision, checksum)| **checksum == crc32c::crc32c(&revision[..]).to_be_bytes());
    if parts.is_none() {
        tracing::warn!("the file log/stopped is damaged; an end of the log that was cut off would not be noticed");
    }
    Ok(parts.map(|(revision, _)| Revision::from_be_bytes(*revision)))
}
