//! The buffer of documents.

use crate::limits;

/// A growing buffer that is not reallocated: a document of thousands of CRDs has hundreds of megabytes.
#[derive(Default)]
pub struct Pieces {
    full: Vec<Vec<u8>>,
    last: Vec<u8>,
    full_bytes: usize,
}

impl Pieces {
    /// The length in bytes of all pieces.
    pub fn len(&self) -> usize {
        self.full_bytes + self.last.len()
    }

    pub fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.last);
        if self.last.len() >= limits::OPENAPI_PIECE_BYTES {
            self.full_bytes += self.last.len();
            self.full.push(std::mem::take(&mut self.last));
        }
    }

    /// Calls `take` with each piece, and frees it afterwards.
    pub fn each(self, mut take: impl FnMut(&[u8])) {
        for piece in self.full.into_iter().chain([self.last]) {
            take(&piece);
        }
    }
}
