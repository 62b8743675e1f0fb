//! The directory of a zip archive, and its files: stored or deflated, as every program writes them. Their directory is at the end,
//! so that a zip archive cannot be read as a stream.

use std::io::{self, Read};

use flate2::read::DeflateDecoder;

use crate::limits::{ENTRIES_MAX, ZIP_DIRECTORY_BYTES_MAX};
use crate::spool::Part;

/// The record at the end of the archive, and the comment behind it.
const END: &[u8] = b"PK\x05\x06";
const END_BYTES: usize = 22;
const COMMENT_BYTES_MAX: usize = 65_535;
/// An entry of the directory, without its names.
const ENTRY: &[u8] = b"PK\x01\x02";
const ENTRY_BYTES: usize = 46;
/// What comes before the content of a file, without its names.
const LOCAL: &[u8] = b"PK\x03\x04";
const LOCAL_BYTES: usize = 30;

/// A file of the directory.
pub struct Member {
    pub path: String,
    /// Its size, as the directory says.
    pub bytes: u64,
    pub is_link: bool,
    is_encrypted: bool,
    method: u16,
    packed: u64,
    /// Where it begins.
    start: u64,
}

fn short(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(short(bytes, at)) | u64::from(short(bytes, at + 2)) << 16
}

/// The files of an archive.
pub fn directory(archive: &Part) -> io::Result<Vec<Member>> {
    let wrong = |why: &str| io::Error::other(why);
    let size = archive.bytes.end - archive.bytes.start;
    let tail = size.min((END_BYTES + COMMENT_BYTES_MAX) as u64);
    let tail = archive.slice(size - tail, tail as usize)?;
    let at = memchr::memmem::rfind(&tail, END).filter(|at| tail.len() - at >= END_BYTES);
    let end = &tail[at.ok_or_else(|| wrong("the zip archive ends early"))?..];
    let (count, length, start) = (usize::from(short(end, 10)), long(end, 12), long(end, 16));
    if start == u64::from(u32::MAX) || count == usize::from(u16::MAX) {
        return Err(wrong("zip archives with more than 65,534 files or 4 GiB are not read"));
    }
    if start.saturating_add(length) > size || length > ZIP_DIRECTORY_BYTES_MAX {
        return Err(wrong("the directory of the zip archive is corrupt"));
    }
    let directory = archive.slice(start, length as usize)?;
    let (mut members, mut rest) = (vec![], directory.as_slice());
    while members.len() < count.min(ENTRIES_MAX) {
        let names = [28, 30, 32].map(|at| usize::from(short(rest, at)));
        let end = ENTRY_BYTES + names.iter().sum::<usize>();
        if !rest.starts_with(ENTRY) || rest.len() < end {
            return Err(wrong("the directory of the zip archive is corrupt"));
        }
        // the system that wrote the entry, and the type of a file of Unix
        let is_link = rest[5] == 3 && (long(rest, 38) >> 16) & 0o170_000 == 0o120_000;
        members.push(Member {
            path: String::from_utf8_lossy(&rest[ENTRY_BYTES..ENTRY_BYTES + names[0]]).into_owned(),
            bytes: long(rest, 24),
            is_link,
            is_encrypted: short(rest, 8) & 1 == 1,
            method: short(rest, 10),
            packed: long(rest, 20),
            start: long(rest, 42),
        });
        rest = &rest[end..];
    }
    Ok(members)
}

/// The content of a file.
pub fn content(archive: &Part, member: &Member) -> io::Result<Box<dyn Read>> {
    if member.is_encrypted {
        return Err(io::Error::other("it is encrypted"));
    }
    let size = archive.bytes.end - archive.bytes.start;
    let local = archive.within(member.start, LOCAL_BYTES as u64)?.head(LOCAL_BYTES)?;
    if !local.starts_with(LOCAL) {
        return Err(io::Error::other("the directory of the zip archive is corrupt"));
    }
    let start = member.start + LOCAL_BYTES as u64 + u64::from(short(&local, 26)) + u64::from(short(&local, 28));
    let packed = archive.within(start, member.packed.min(size))?;
    match member.method {
        0 => Ok(Box::new(packed)),
        8 => Ok(Box::new(DeflateDecoder::new(io::BufReader::new(packed)))),
        method => Err(io::Error::other(format!("it is compressed by method {method}"))),
    }
}
