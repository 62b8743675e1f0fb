//! Text that can be read once only, kept in a file without a name: memory does not depend on its length.

use std::fs::File;
use std::io::{Read, Result, Write as _};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::sync::Arc;

use crate::document::TextPlace;

/// Bytes that are copied at once.
const COPIED_BYTES: usize = 64 << 10;

/// A part of a file.
#[derive(Clone, Debug)]
pub struct Part {
    pub file: Arc<File>,
    pub bytes: Range<u64>,
}

/// A new file that nothing but the returned handle names.
pub fn unnamed() -> Result<File> {
    let path = std::env::temp_dir().join(base::clock::scratch_name());
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Copies a text to a file, after what has been read of it.
pub fn copied(begun: &[u8], rest: &mut impl Read) -> Result<Part> {
    let mut file = unnamed()?;
    file.write_all(begun)?;
    let copied = std::io::copy(rest, &mut file)?;
    Ok(Part { file: Arc::new(file), bytes: 0..begun.len() as u64 + copied })
}

impl Part {
    pub fn whole(file: File) -> Result<Part> {
        let length = file.metadata()?.len();
        Ok(Part { file: Arc::new(file), bytes: 0..length })
    }

    /// The first bytes, or fewer if the part is shorter.
    pub fn head(&self, length: usize) -> Result<Vec<u8>> {
        let mut head = vec![];
        self.clone().take(length as u64).read_to_end(&mut head)?;
        Ok(head)
    }

    /// A part of this part. Fails if it ends behind it.
    pub fn within(&self, offset: u64, length: u64) -> Result<Part> {
        let start = self.bytes.start.saturating_add(offset);
        let end = start.saturating_add(length);
        match end <= self.bytes.end {
            true => Ok(Part { file: self.file.clone(), bytes: start..end }),
            false => Err(std::io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Reads a range of the part.
    pub fn slice(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, self.bytes.start + offset)?;
        Ok(bytes)
    }
}

impl Read for Part {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        let left = usize::try_from(self.bytes.end - self.bytes.start).unwrap_or(usize::MAX).min(into.len());
        let read = self.file.read_at(&mut into[..left], self.bytes.start)?;
        self.bytes.start += read as u64;
        Ok(read)
    }
}

/// Texts that are appended to a file without a name.
pub struct Writer {
    file: Arc<File>,
    length: u64,
}

impl Writer {
    pub fn new() -> Result<Writer> {
        Ok(Writer { file: Arc::new(unnamed()?), length: 0 })
    }

    /// Adds a text, and returns its place; `None` if it is too long for a [`TextPlace`].
    pub fn add(&mut self, text: &[u8]) -> Result<Option<TextPlace>> {
        let Ok(length) = u32::try_from(text.len()) else { return Ok(None) };
        let place = TextPlace { offset: self.length, length };
        self.file.write_all_at(text, place.offset)?;
        self.length += u64::from(length);
        Ok(Some(place))
    }

    /// Adds what a reader has, and returns its place. What was copied before an error is overwritten by the next text.
    pub fn copy(&mut self, mut reader: impl Read) -> Result<Part> {
        let (mut buffer, mut end) = (vec![0; COPIED_BYTES], self.length);
        loop {
            match reader.read(&mut buffer)? {
                0 => break,
                read => {
                    self.file.write_all_at(&buffer[..read], end)?;
                    end += read as u64;
                }
            }
        }
        Ok(Part { file: self.file.clone(), bytes: std::mem::replace(&mut self.length, end)..end })
    }

    /// The bytes written so far.
    pub fn part(&self) -> Part {
        Part { file: self.file.clone(), bytes: 0..self.length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_where_they_were_written() {
        let mut writer = Writer::new().unwrap();
        let places: Vec<TextPlace> =
            ["ab", "", "cde"].iter().map(|text| writer.add(text.as_bytes()).unwrap().unwrap()).collect();
        let found: Vec<Vec<u8>> =
            places.iter().map(|place| writer.part().slice(place.offset, place.length as usize).unwrap()).collect();
        assert_eq!(found, [&b"ab"[..], b"", b"cde"]);
    }

    #[test]
    fn parts_are_read_by_themselves() {
        let whole = copied(b"ab", &mut &b"cdef"[..]).unwrap();
        let part = Part { bytes: 1..5, ..whole };
        for _ in 0..2 {
            let mut text = String::new();
            part.clone().read_to_string(&mut text).unwrap();
            assert_eq!(text, "bcde");
        }
        assert_eq!(part.slice(1, 2).unwrap(), b"cd");
        assert!(part.slice(4, 3).is_err());
    }
}
