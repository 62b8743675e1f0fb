//! How many bytes an archive may become: neither a bomb nor a long name fills the disk or the memory.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use crate::limits::{ARCHIVE_BYTES_MAX, EXPANSION_FREE_BYTES, EXPANSION_MAX, HEADER_BYTES_MAX};
use crate::spool::Part;

/// The bytes that may still be read of an archive and of those in it.
#[derive(Clone)]
pub struct Allowance {
    /// Of the archive with all that is in it.
    all: Rc<Cell<u64>>,
    /// Of one archive, by its own size.
    own: Rc<Cell<u64>>,
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance { all: Rc::new(Cell::new(ARCHIVE_BYTES_MAX)), own: Rc::default() }
    }
}

impl Allowance {
    /// The allowance of an archive in this one, or of this one.
    pub fn of(&self, archive: &Part) -> Allowance {
        let size = archive.bytes.end - archive.bytes.start;
        let own = size.saturating_mul(EXPANSION_MAX).saturating_add(EXPANSION_FREE_BYTES);
        Allowance { all: self.all.clone(), own: Rc::new(Cell::new(own)) }
    }

    fn take(&self, bytes: u64) -> io::Result<()> {
        for (left, why) in
            [(&self.all, "it expands to more than 16 GiB"), (&self.own, "it expands to more than 200 times its size")]
        {
            let Some(rest) = left.get().checked_sub(bytes) else { return Err(io::Error::other(why)) };
            left.set(rest);
        }
        Ok(())
    }
}

/// Bounds what is read between the contents of entries: a reader of archives keeps long names in memory.
#[derive(Clone)]
pub struct Headers(Rc<Cell<u64>>);

impl Headers {
    /// The header of an entry follows, behind the content of the one before that has been left out.
    pub fn begin(&self, left_out: u64) {
        self.0.set(HEADER_BYTES_MAX.saturating_add(left_out));
    }

    /// Content follows.
    pub fn end(&self) {
        self.0.set(u64::MAX);
    }
}

/// A reader within an allowance.
pub struct Metered {
    reader: Box<dyn Read>,
    allowance: Allowance,
    headers: Headers,
}

impl Metered {
    pub fn new(reader: Box<dyn Read>, allowance: Allowance) -> Metered {
        Metered { reader, allowance, headers: Headers(Rc::new(Cell::new(u64::MAX))) }
    }

    pub fn headers(&self) -> Headers {
        self.headers.clone()
    }
}

impl Read for Metered {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(into)?;
        self.allowance.take(read as u64)?;
        let left = self.headers.0.get();
        let rest =
            left.checked_sub(read as u64).ok_or_else(|| io::Error::other("the header of an entry is too long"))?;
        if left != u64::MAX {
            self.headers.0.set(rest);
        }
        Ok(read)
    }
}
