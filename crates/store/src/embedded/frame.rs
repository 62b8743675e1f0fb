//! The bytes of a log file: a header, then frames of records, each with a checksum (docs/src/design/store.md, "Format").

use std::hash::{BuildHasher as _, Hasher as _};

use bytes::Bytes;

use super::disk::Disk;
use crate::contract::content::Number;
use crate::contract::{Revision, StoreError};
use crate::limits;

const FILE_MAGIC: &[u8; 8] = b"pintlog2";
const FRAME_MAGIC: &[u8; 4] = b"PNTL";
/// Bytes of a file header: magic, salt, first revision, checksum.
pub const FILE_HEADER: usize = 28;
/// Bytes of a frame header: magic, length of the records, checksum of all that follows, revision that was synced,
/// checksum of length and revision.
pub const FRAME_HEADER: usize = 24;
/// Bytes of a record before its key and value: kind, revision, their lengths.
const RECORD_HEADER: usize = 17;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Put = 1,
    Delete = 2,
    /// The log goes on in the file that starts with the record's revision.
    Roll = 3,
    /// A checkpoint is complete; the key is empty, the revision is the checkpoint's.
    End = 4,
    /// A file of a backup: the key is its name, the value is its content, and the revision is the backup's.
    File = 5,
    /// A put in a branch, see [`Frame::push_in_branch`].
    BranchPut = 6,
    BranchDelete = 7,
    /// A branch begins, see `entry`.
    Fork = 8,
    /// A branch begins anew from what it began with.
    Reset = 9,
    /// A branch ends.
    Drop = 10,
    /// The branches of a checkpoint follow, see `images`.
    Branches = 11,
    /// One of them; the records up to the next one are its own.
    Branch = 12,
    /// A put whose value is that of an earlier put in a branch.
    Again = 13,
    /// A put whose value is that of the same key in the checkpoint.
    Share = 14,
    /// The records before are what the branch began with.
    Settle = 15,
    /// A branch begins with what its source held earlier, see `entry`.
    ForkEarlier = 16,
    /// A branch begins with what its source began with.
    ForkOrigin = 17,
    /// A branch has begun with what another one holds.
    Rebase = 18,
}

const KINDS: [Kind; 18] = [
    Kind::Put,
    Kind::Delete,
    Kind::Roll,
    Kind::End,
    Kind::File,
    Kind::BranchPut,
    Kind::BranchDelete,
    Kind::Fork,
    Kind::Reset,
    Kind::Drop,
    Kind::Branches,
    Kind::Branch,
    Kind::Again,
    Kind::Share,
    Kind::Settle,
    Kind::ForkEarlier,
    Kind::ForkOrigin,
    Kind::Rebase,
];

impl Kind {
    /// Whether the record begins or ends a branch.
    pub fn is_branch_operation(self) -> bool {
        let is_fork = matches!(self, Kind::Fork | Kind::ForkEarlier | Kind::ForkOrigin);
        is_fork || matches!(self, Kind::Reset | Kind::Drop | Kind::Rebase)
    }

    fn of(byte: u8) -> Option<Kind> {
        KINDS.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Bytes before the key of a change of a branch.
const BRANCH_PREFIX: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub kind: Kind,
    pub revision: Revision,
    pub key: Bytes,
    pub value: Bytes,
}

impl Record {
    /// A copy in one allocation of exactly its size, so that no read buffer is kept alive.
    pub fn detached(&self) -> Record {
        let both = Bytes::from([&self.key[..], &self.value[..]].concat());
        let (key, value) = (both.slice(..self.key.len()), both.slice(self.key.len()..));
        Record { kind: self.kind, revision: self.revision, key, value }
    }

    /// The branch of a change, its revision there, and its key.
    pub fn in_branch(&self) -> Option<(Number, Revision, Bytes)> {
        let key = self.key.get(BRANCH_PREFIX..)?;
        Some((u64_at(&self.key, 0), u64_at(&self.key, 8), self.key.slice_ref(key)))
    }
}

/// The header of a file. No client knows its salt, so no value can look like a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub salt: u64,
    pub first: Revision,
}

impl Header {
    pub fn new(first: Revision) -> Header {
        Header { salt: std::hash::RandomState::new().build_hasher().finish(), first }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = FILE_MAGIC.to_vec();
        bytes.extend(self.salt.to_be_bytes());
        bytes.extend(self.first.to_be_bytes());
        bytes.extend(crc32c::crc32c(&bytes).to_be_bytes());
        bytes
    }

    /// The header at the start of a file, if it is complete and valid.
    pub fn decode(bytes: &[u8]) -> Option<Header> {
        let (body, checksum) = bytes.get(..FILE_HEADER)?.split_last_chunk::<4>()?;
        let whole = body.starts_with(FILE_MAGIC) && crc32c::crc32c(body) == u32::from_be_bytes(*checksum);
        whole.then(|| Header { salt: u64_at(body, 8), first: u64_at(body, 16) })
    }
}

/// The number at an offset, or 0 beyond the end.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_be_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// A frame that is being filled; one without records only states the synced revision.
pub struct Frame {
    bytes: Vec<u8>,
}

impl Frame {
    pub fn with_capacity(bytes: usize) -> Frame {
        let mut frame = Vec::with_capacity(FRAME_HEADER + bytes);
        frame.resize(FRAME_HEADER, 0);
        Frame { bytes: frame }
    }

    pub fn push(&mut self, kind: Kind, revision: Revision, key: &[u8], value: &[u8]) {
        self.begin(kind, revision, key.len(), value.len());
        self.bytes.extend(key);
        self.bytes.extend(value);
    }

    /// A change of the branch with this number. The key of its record begins with the number, and the revision that the change has
    /// in the branch.
    pub fn push_in_branch(
        &mut self,
        kind: Kind,
        position: Revision,
        (number, revision): (Number, Revision),
        key: &[u8],
        value: &[u8],
    ) {
        self.begin(kind, position, BRANCH_PREFIX + key.len(), value.len());
        self.bytes.extend(number.to_be_bytes());
        self.bytes.extend(revision.to_be_bytes());
        self.bytes.extend(key);
        self.bytes.extend(value);
    }

    fn begin(&mut self, kind: Kind, revision: Revision, key: usize, value: usize) {
        let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
        self.bytes.push(kind as u8);
        self.bytes.extend(revision.to_be_bytes());
        self.bytes.extend(length(key));
        self.bytes.extend(length(value));
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The encoded frame for a file with this salt; `synced` is the last synced revision.
    pub fn finish(mut self, salt: u64, synced: Revision) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len() - FRAME_HEADER).unwrap_or(u32::MAX);
        self.bytes[..4].copy_from_slice(FRAME_MAGIC);
        self.bytes[4..8].copy_from_slice(&length.to_be_bytes());
        self.bytes[12..20].copy_from_slice(&synced.to_be_bytes());
        let header = header_checksum(seed(salt), &self.bytes);
        self.bytes[20..24].copy_from_slice(&header.to_be_bytes());
        let checksum = checksum(salt, &self.bytes);
        self.bytes[8..12].copy_from_slice(&checksum.to_be_bytes());
        self.bytes
    }
}

/// The start of the checksums of a file with this salt.
pub fn seed(salt: u64) -> u32 {
    crc32c::crc32c(&salt.to_be_bytes())
}

/// Whether bytes begin with the header of a frame of a file whose checksums start with `seed`.
fn is_header(seed: u32, bytes: &[u8]) -> bool {
    bytes.len() >= FRAME_HEADER && bytes.starts_with(FRAME_MAGIC) && header_checksum(seed, bytes) == u32_at(bytes, 20)
}

/// Checksum of the length and the synced revision, so that neither is used when it is corrupt.
fn header_checksum(seed: u32, frame: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(seed, &frame[4..8]), &frame[12..20])
}

/// The checksum of the part of the frame after the checksum.
fn checksum(salt: u64, frame: &[u8]) -> u32 {
    crc32c::crc32c_append(seed(salt), &frame[12..])
}

/// A frame with valid checksums.
#[derive(Debug)]
pub struct Whole {
    pub offset: u64,
    /// The offset of the next frame.
    pub end: u64,
    pub synced: Revision,
    pub records: Vec<Record>,
}

impl Whole {
    /// The frame with copies of its records.
    pub fn detached(self) -> Whole {
        Whole { records: self.records.iter().map(Record::detached).collect(), ..self }
    }
}

/// Why reading stopped.
#[derive(Debug)]
pub enum Stop {
    /// The frame at this offset is incomplete, or a checksum does not match.
    Broken(u64),
    /// The frame at this offset has the right checksum but invalid records, which this format never writes.
    Damaged(u64),
    Io(std::io::Error),
}

/// Reads the frames of a file in order.
pub struct Reader<'a> {
    disk: &'a dyn Disk,
    name: &'a str,
    salt: u64,
    /// Where `buffer` starts in the file.
    at: u64,
    buffer: Bytes,
    used: usize,
    /// Bytes that are read at a time, unless a frame is larger.
    ahead: usize,
}

impl<'a> Reader<'a> {
    pub fn new(disk: &'a dyn Disk, name: &'a str, salt: u64, offset: u64) -> Reader<'a> {
        Reader { disk, name, salt, at: offset, buffer: Bytes::new(), used: 0, ahead: limits::READ_BYTES }
    }

    /// A reader of parts of a file, see [`Reader::seek`].
    pub fn of_parts(disk: &'a dyn Disk, name: &'a str, salt: u64) -> Reader<'a> {
        Reader { ahead: FRAME_HEADER, ..Reader::new(disk, name, salt, 0) }
    }

    /// Goes on at the first frame that starts in the `length` bytes from `offset`, or behind them if none does. Returns false at the
    /// end of the file.
    pub fn seek(&mut self, offset: u64, length: usize) -> std::io::Result<bool> {
        // the buffer is used again
        self.used = self.buffer.len();
        self.at = offset.wrapping_sub(self.used as u64);
        let salt = self.salt;
        let part = self.peek(length + FRAME_HEADER - 1)?;
        let is_there = !part.is_empty();
        let found = part.windows(FRAME_HEADER).position(|bytes| is_header(seed(salt), bytes));
        self.used += found.unwrap_or(part.len().min(length));
        Ok(is_there)
    }

    /// Where the next frame starts.
    pub fn offset(&self) -> u64 {
        self.at.wrapping_add(self.used as u64)
    }

    /// The next `length` bytes, fewer at the end of the file.
    fn peek(&mut self, length: usize) -> std::io::Result<&[u8]> {
        if self.buffer.len() - self.used < length {
            self.at = self.offset();
            let last = std::mem::take(&mut self.buffer);
            // used again if no record of it is left: new memory costs more than reading
            let mut bytes = if last.is_unique() { Vec::from(last) } else { vec![] };
            self.disk.read_into(self.name, self.at, length.max(self.ahead), &mut bytes)?;
            (self.buffer, self.used) = (bytes.into(), 0);
        }
        let end = self.buffer.len().min(self.used + length);
        Ok(&self.buffer[self.used..end])
    }

    /// The length of the next frame; `None` at the end of the file.
    fn length(&mut self) -> Result<Option<usize>, Stop> {
        let (offset, salt) = (self.offset(), self.salt);
        let header = self.peek(FRAME_HEADER).map_err(Stop::Io)?;
        if header.is_empty() {
            return Ok(None);
        }
        if is_header(seed(salt), header) {
            Ok(Some(FRAME_HEADER + u32_at(header, 4) as usize))
        } else {
            Err(Stop::Broken(offset))
        }
    }

    /// The next frame; `None` at the end of the file. Keys and values are slices of the read buffer; a caller that keeps them
    /// copies them.
    pub fn next(&mut self) -> Result<Option<Whole>, Stop> {
        let (offset, salt) = (self.offset(), self.salt);
        let broken = || Stop::Broken(offset);
        let Some(length) = self.length()? else { return Ok(None) };
        let frame = self.peek(length).map_err(Stop::Io)?;
        if frame.len() < length || checksum(salt, frame) != u32_at(frame, 8) {
            return Err(broken());
        }
        let synced = u64_at(frame, 12);
        let body = self.buffer.slice(self.used + FRAME_HEADER..self.used + length);
        let records = records(&body).ok_or(Stop::Damaged(offset))?;
        self.used += length;
        Ok(Some(Whole { offset, end: self.offset(), synced, records }))
    }

    /// The newest synced revision that a frame header after `offset` states; `None` if there is no valid header. The
    /// frames themselves may be corrupt.
    pub fn proven(&mut self, offset: u64) -> std::io::Result<Option<Revision>> {
        let (mut at, mut proven) = (offset, None);
        loop {
            let bytes = self.disk.read_at(self.name, at, limits::READ_BYTES)?;
            for (i, window) in bytes.windows(FRAME_HEADER).enumerate() {
                if at + i as u64 > offset && is_header(seed(self.salt), window) {
                    proven = proven.max(Some(u64_at(window, 12)));
                }
            }
            if bytes.len() < limits::READ_BYTES {
                return Ok(proven);
            }
            // the last bytes may be the start of a header
            at += (bytes.len() - FRAME_HEADER) as u64;
        }
    }
}

fn records(body: &Bytes) -> Option<Vec<Record>> {
    let mut records = vec![];
    let mut rest = &body[..];
    while !rest.is_empty() {
        let (header, after) = rest.split_at_checked(RECORD_HEADER)?;
        let (key, after) = after.split_at_checked(u32_at(header, 9) as usize)?;
        let (value, after) = after.split_at_checked(u32_at(header, 13) as usize)?;
        let (key, value) = (body.slice_ref(key), body.slice_ref(value));
        records.push(Record { kind: Kind::of(header[0])?, revision: u64_at(header, 1), key, value });
        rest = after;
    }
    Some(records)
}

/// The frame at an offset of a damaged file.
pub enum FrameAt {
    Whole(Whole),
    /// The header is valid but the records are not. These are the records that can be parsed; none is verified.
    Corrupt(Vec<Record>),
    None,
}

/// Looks for a frame at an offset of the content of a file whose checksums start with `seed`.
pub fn frame_at(content: &Bytes, at: usize, seed: u32) -> FrameAt {
    let frame = &content[at.min(content.len())..];
    if !is_header(seed, frame) {
        return FrameAt::None;
    }
    let frame = content.slice_ref(frame);
    let end = frame.len().min(FRAME_HEADER + u32_at(&frame, 4) as usize);
    let body = frame.slice(FRAME_HEADER..end);
    let is_whole =
        body.len() == u32_at(&frame, 4) as usize && crc32c::crc32c_append(seed, &frame[12..end]) == u32_at(&frame, 8);
    match records(&body) {
        Some(records) if is_whole => {
            let (offset, end) = (at as u64, (at + end) as u64);
            FrameAt::Whole(Whole { offset, end, synced: u64_at(&frame, 12), records })
        }
        _ => FrameAt::Corrupt(records_until_damage(&body)),
    }
}

/// The seed with which the frame at the start of `frame` was written; `None` if the frame is damaged.
pub fn seed_of(frame: &[u8]) -> Option<u32> {
    if frame.len() < FRAME_HEADER || !frame.starts_with(FRAME_MAGIC) {
        return None;
    }
    let before =
        frame[4..8].iter().chain(&frame[12..20]).rev().fold(!u32_at(frame, 20), |after, byte| undo(after, *byte));
    let end = FRAME_HEADER + u32_at(frame, 4) as usize;
    let whole = crc32c::crc32c_append(!before, frame.get(12..end)?) == u32_at(frame, 8);
    whole.then_some(!before)
}

/// The CRC-32C register before a byte, computed from the register after it. This works since each step can be undone.
fn undo(after: u32, byte: u8) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let before = (0..8).fold(after, |register, _| match register >> 31 {
        0 => register << 1,
        _ => ((register ^ POLYNOMIAL) << 1) | 1,
    });
    before ^ u32::from(byte)
}

fn records_until_damage(body: &Bytes) -> Vec<Record> {
    let mut found = vec![];
    let mut rest = body.clone();
    while let Some(length) = record_length(&rest)
        && let Some(mut record) = records(&rest.slice(..length))
    {
        found.append(&mut record);
        rest = rest.slice(length..);
    }
    found
}

/// Bytes of the record at the start; `None` if it does not fit.
fn record_length(bytes: &[u8]) -> Option<usize> {
    let length = RECORD_HEADER + u32_at(bytes.get(..RECORD_HEADER)?, 9) as usize + u32_at(bytes, 13) as usize;
    (length <= bytes.len()).then_some(length)
}

/// The header of a file; `None` if it is incomplete or corrupt.
pub fn header(disk: &dyn Disk, name: &str) -> Result<Option<Header>, StoreError> {
    let bytes = disk.read_at(name, 0, FILE_HEADER).map_err(|e| StoreError::Unavailable(format!("{name}: {e}")))?;
    Ok(Header::decode(&bytes))
}
