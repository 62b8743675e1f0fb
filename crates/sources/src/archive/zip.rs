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
/// What stands before that record if a number does not fit into it: the place of a record with longer numbers.
const LOCATOR: &[u8] = b"PK\x06\x07";
const LOCATOR_BYTES: usize = 20;
const LARGE_END: &[u8] = b"PK\x06\x06";
const LARGE_END_BYTES: usize = 56;
/// The extra field of an entry with its numbers of eight bytes.
const LARGE: u16 = 1;
/// An entry of the directory, without its names.
const ENTRY: &[u8] = b"PK\x01\x02";
const ENTRY_BYTES: usize = 46;
/// The header before the content of a file, without its names.
const LOCAL: &[u8] = b"PK\x03\x04";
const LOCAL_BYTES: usize = 30;

const CORRUPT: &str = "the directory of the zip archive is corrupt";

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

fn wide(bytes: &[u8], at: usize) -> u64 {
    long(bytes, at) | long(bytes, at + 4) << 32
}

/// The number of files, and the length and the place of their directory, of an archive with more than 65,534 files or 4 GiB. `None` if
/// the record at its end, which begins at `end`, has them.
fn large_end(archive: &Part, end: u64) -> io::Result<Option<(u64, u64, u64)>> {
    let Some(at) = end.checked_sub(LOCATOR_BYTES as u64) else { return Ok(None) };
    let locator = archive.slice(at, LOCATOR_BYTES)?;
    if !locator.starts_with(LOCATOR) {
        return Ok(None);
    }
    let record = archive.within(wide(&locator, 8), LARGE_END_BYTES as u64)?.head(LARGE_END_BYTES)?;
    match record.starts_with(LARGE_END) {
        true => Ok(Some((wide(&record, 32), wide(&record, 40), wide(&record, 48)))),
        false => Err(io::Error::other(CORRUPT)),
    }
}

/// The numbers of an entry that do not fit into four bytes, in the order of their fields.
pub fn large_numbers(mut extra: &[u8]) -> Vec<u64> {
    while extra.len() >= 4 {
        let end = 4 + usize::from(short(extra, 2));
        if short(extra, 0) == LARGE {
            let numbers = extra.get(4..end).unwrap_or_default();
            return numbers.chunks_exact(8).map(|number| wide(number, 0)).collect();
        }
        extra = extra.get(end..).unwrap_or_default();
    }
    vec![]
}

/// The files of an archive.
pub fn directory(archive: &Part) -> io::Result<Vec<Member>> {
    let wrong = |why: &str| io::Error::other(why);
    let size = archive.bytes.end - archive.bytes.start;
    let tail_bytes = size.min((END_BYTES + COMMENT_BYTES_MAX) as u64);
    let tail = archive.slice(size - tail_bytes, tail_bytes as usize)?;
    let at = memchr::memmem::rfind(&tail, END).filter(|at| tail.len() - at >= END_BYTES);
    let at = at.ok_or_else(|| wrong("the zip archive ends early"))?;
    let end = &tail[at..];
    let large = large_end(archive, size - tail_bytes + at as u64)?;
    let (count, length, start) = large.unwrap_or((u64::from(short(end, 10)), long(end, 12), long(end, 16)));
    if start.saturating_add(length) > size || length > ZIP_DIRECTORY_BYTES_MAX {
        return Err(wrong(CORRUPT));
    }
    let directory = archive.slice(start, length as usize)?;
    let (mut members, mut rest) = (vec![], directory.as_slice());
    while members.len() < ENTRIES_MAX.min(usize::try_from(count).unwrap_or(usize::MAX)) {
        let names = [28, 30, 32].map(|at| usize::from(short(rest, at)));
        let end = ENTRY_BYTES + names.iter().sum::<usize>();
        if !rest.starts_with(ENTRY) || rest.len() < end {
            return Err(wrong(CORRUPT));
        }
        // the system that wrote the entry, and the type of a file of Unix
        let is_link = rest[5] == 3 && (long(rest, 38) >> 16) & 0o170_000 == 0o120_000;
        let name_end = ENTRY_BYTES + names[0];
        let mut large = large_numbers(&rest[name_end..name_end + names[1]]).into_iter();
        let mut number = |number: u64| match number == u64::from(u32::MAX) {
            true => large.next().unwrap_or(number),
            false => number,
        };
        // the extra field has them in this order
        let [bytes, packed, start] = [24, 20, 42].map(|at| number(long(rest, at)));
        members.push(Member {
            path: String::from_utf8_lossy(&rest[ENTRY_BYTES..name_end]).into_owned(),
            bytes,
            is_link,
            is_encrypted: short(rest, 8) & 1 == 1,
            method: short(rest, 10),
            packed,
            start,
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
        return Err(io::Error::other(CORRUPT));
    }
    let start = member.start + LOCAL_BYTES as u64 + u64::from(short(&local, 26)) + u64::from(short(&local, 28));
    let packed = archive.within(start, member.packed.min(size))?;
    match member.method {
        0 => Ok(Box::new(packed)),
        8 => Ok(Box::new(DeflateDecoder::new(io::BufReader::new(packed)))),
        method => Err(io::Error::other(format!("it is compressed by method {method}"))),
    }
}
