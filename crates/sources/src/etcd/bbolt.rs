//! Files of bbolt, the database of etcd: B+ trees of pages, read without following a page twice.
//!
//! The format is that of go.etcd.io/bbolt: a page has a header of 16 bytes and elements that point to keys and values behind them; the
//! first two pages are copies of the meta page, of which the one with the newer transaction counts; a bucket is a key whose value
//! names the root page of its own tree, or contains that page.

use std::io;

use crate::limits::BBOLT_DEPTH_MAX;
use crate::spool::Part;

const MAGIC: [u8; 4] = 0xED0C_DAED_u32.to_le_bytes();
/// Bytes at the beginning of a file that show what it is.
pub const HEAD_BYTES: usize = 20;
const PAGE_HEADER: usize = 16;
const ELEMENT: usize = 16;
/// Bytes of the meta page that its checksum covers, which follows them.
const META: usize = 56;
const IS_BRANCH: u16 = 1;
const IS_LEAF: u16 = 2;
const IS_BUCKET: u32 = 1;
/// Bytes of the head of a bucket, which an inline page follows.
const BUCKET_HEADER: usize = 16;
/// Page sizes of the systems that etcd runs on: the second copy of the meta page is behind the first one.
const PAGE_SIZES: [u64; 5] = [4096, 8192, 16384, 32768, 65536];

/// An open file.
pub struct Database {
    part: Part,
    page_bytes: u64,
    root: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValuePlace {
    pub offset: u64,
    pub length: u32,
}

/// A key with its value, in a leaf.
pub struct Leaf<'p> {
    pub key: &'p [u8],
    pub value: &'p [u8],
    pub place: ValuePlace,
    is_bucket: bool,
}

/// A meta page.
struct Meta {
    page_bytes: u64,
    root: u64,
    transaction: u64,
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the database is damaged: {what}"))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Whether a file begins as one of bbolt does.
pub fn is_database(head: &[u8]) -> bool {
    head.get(PAGE_HEADER..PAGE_HEADER + 4) == Some(&MAGIC)
}

/// The meta page in the bytes behind the header of a page, unless it is damaged.
fn meta(bytes: &[u8]) -> Option<Meta> {
    let checksum = bytes
        .get(..META)?
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let is_intact = bytes.starts_with(&MAGIC) && u64_at(bytes, META)? == checksum;
    let page_bytes = u64::from(u32_at(bytes, 8)?);
    (is_intact && page_bytes >= 512).then_some(Meta {
        page_bytes,
        root: u64_at(bytes, 16)?,
        transaction: u64_at(bytes, 48)?,
    })
}

impl Database {
    /// Opens a file. Fails if both copies of the meta page are damaged.
    pub fn open(part: &Part) -> io::Result<Database> {
        let copies = std::iter::once(0).chain(PAGE_SIZES).filter_map(|offset| {
            let bytes = part.within(offset, (PAGE_HEADER + META + 8) as u64).ok()?.head(usize::MAX).ok()?;
            meta(&bytes[PAGE_HEADER..])
        });
        let newest = copies.max_by_key(|meta| meta.transaction).ok_or_else(|| damaged("it has no valid meta page"))?;
        Ok(Database { part: part.clone(), page_bytes: newest.page_bytes, root: newest.root })
    }

    /// Visits the keys and values of a bucket in the order of the keys. Fails if the bucket does not exist or a page is damaged.
    pub fn visit(&self, bucket: &[u8], visit: &mut dyn FnMut(Leaf<'_>)) -> io::Result<()> {
        let mut found = None;
        let mut left = self.pages();
        self.walk(self.root, 0, &mut left, &mut |leaf| {
            if leaf.is_bucket && leaf.key == bucket {
                found = Some((leaf.value.to_vec(), leaf.place));
            }
        })?;
        let name = String::from_utf8_lossy(bucket);
        let (head, place) = found.ok_or_else(|| damaged(&format!("it has no bucket {name:?}")))?;
        match u64_at(&head, 0).ok_or_else(|| damaged("a bucket is too short"))? {
            0 => {
                let page = head.get(BUCKET_HEADER..).ok_or_else(|| damaged("a bucket is too short"))?;
                leaves(page, place.offset + BUCKET_HEADER as u64, visit)
            }
            root => self.walk(root, 0, &mut left, visit),
        }
    }

    fn pages(&self) -> u64 {
        (self.part.bytes.end - self.part.bytes.start) / self.page_bytes + 1
    }

    /// Visits the leaves below a page. `left` bounds the pages that are read: a damaged file may have a cycle.
    fn walk(&self, page: u64, depth: usize, left: &mut u64, visit: &mut dyn FnMut(Leaf<'_>)) -> io::Result<()> {
        *left = left.checked_sub(1).ok_or_else(|| damaged("pages name each other"))?;
        if depth > BBOLT_DEPTH_MAX {
            return Err(damaged("its tree is too deep"));
        }
        let (offset, bytes) = self.page(page)?;
        let flags = u16_at(&bytes, 8).unwrap_or_default();
        match () {
            () if flags & IS_LEAF != 0 => leaves(&bytes, offset, visit),
            () if flags & IS_BRANCH != 0 => {
                let elements = usize::from(u16_at(&bytes, 10).unwrap_or_default());
                for index in 0..elements {
                    let child = u64_at(&bytes, PAGE_HEADER + index * ELEMENT + 8);
                    self.walk(child.ok_or_else(|| damaged("a page is too short"))?, depth + 1, left, visit)?;
                }
                Ok(())
            }
            () => Err(damaged(&format!("page {page} is neither a branch nor a leaf"))),
        }
    }

    /// The offset of a page, and its bytes with those of the pages that it flows over into.
    fn page(&self, page: u64) -> io::Result<(u64, Vec<u8>)> {
        let outside = || damaged(&format!("page {page} is outside of the file"));
        let offset = page.checked_mul(self.page_bytes).ok_or_else(outside)?;
        let head = self.part.within(offset, PAGE_HEADER as u64).map_err(|_| outside())?.head(PAGE_HEADER)?;
        let overflow = u64::from(u32_at(&head, 12).unwrap_or_default());
        let length = (overflow + 1).saturating_mul(self.page_bytes);
        let bytes = self.part.within(offset, length).map_err(|_| outside())?.head(usize::MAX)?;
        Ok((offset, bytes))
    }
}

/// Visits the elements of a leaf page that begins at an offset of the file.
fn leaves(page: &[u8], offset: u64, visit: &mut dyn FnMut(Leaf<'_>)) -> io::Result<()> {
    let short = || damaged("a page is too short");
    for index in 0..usize::from(u16_at(page, 10).ok_or_else(short)?) {
        let element = PAGE_HEADER + index * ELEMENT;
        let field = |at: usize| u32_at(page, element + at).ok_or_else(short);
        let (flags, position, key_bytes, length) = (field(0)?, field(4)?, field(8)?, field(12)?);
        let key_at = element + position as usize;
        let value_at = key_at.saturating_add(key_bytes as usize);
        visit(Leaf {
            key: page.get(key_at..value_at).ok_or_else(short)?,
            value: page.get(value_at..value_at.saturating_add(length as usize)).ok_or_else(short)?,
            place: ValuePlace { offset: offset + value_at as u64, length },
            is_bucket: flags & IS_BUCKET != 0,
        });
    }
    Ok(())
}
