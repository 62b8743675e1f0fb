//! Bytes of a response that are waiting to be sent.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use objects::Sink;

use super::window::chunk_bytes;
use crate::limits;

/// A queue of bytes. Small writes are copied into one buffer; large parts of stored objects are shared with the store.
#[derive(Default)]
pub struct Chunks {
    ready: VecDeque<Bytes>,
    /// Bytes in `ready`.
    length: usize,
    /// The buffer that small writes are appended to.
    open: Vec<u8>,
    /// Target size of `open` in bytes.
    chunk: usize,
}

impl Chunks {
    pub fn len(&self) -> usize {
        self.length + self.open.len()
    }

    /// Makes all bytes written so far available to [`Chunks::pop`].
    pub fn close(&mut self) {
        if !self.open.is_empty() {
            let bytes = Bytes::from(std::mem::take(&mut self.open));
            self.push(bytes);
        }
    }

    /// Removes the next piece; `None` if none is available until the next [`Chunks::close`].
    pub fn pop(&mut self) -> Option<Bytes> {
        let piece = self.ready.pop_front()?;
        self.length -= piece.len();
        Some(piece)
    }

    pub fn into_pieces(mut self) -> VecDeque<Bytes> {
        self.close();
        self.ready
    }

    /// Concatenates all pieces.
    pub fn into_bytes(mut self) -> Bytes {
        self.close();
        if self.ready.len() == 1 {
            return self.ready.pop_front().unwrap_or_default();
        }
        let mut all = Vec::with_capacity(self.length);
        self.ready.iter().for_each(|piece| all.extend_from_slice(piece));
        all.into()
    }

    /// Appends bytes that only this response uses.
    pub fn append(&mut self, bytes: Vec<u8>) {
        if bytes.len() < limits::SHARED_BYTES_MIN {
            return self.copy(&bytes);
        }
        self.close();
        self.push(bytes.into());
    }

    fn push(&mut self, mut bytes: Bytes) {
        self.length += bytes.len();
        while bytes.len() > limits::PIECE_BYTES_MAX {
            self.ready.push_back(bytes.split_to(limits::PIECE_BYTES_MAX));
        }
        self.ready.push_back(bytes);
    }
}

impl Sink for Chunks {
    fn copy(&mut self, bytes: &[u8]) {
        if self.open.capacity() == 0 {
            self.chunk = chunk_bytes();
            self.open.reserve_exact(self.chunk);
        }
        self.open.extend_from_slice(bytes);
        if self.open.len() + limits::SHARED_BYTES_MIN >= self.chunk {
            self.close();
        }
    }

    fn share(&mut self, bytes: &Bytes, part: Range<usize>) {
        if part.len() < limits::SHARED_BYTES_MIN {
            return self.copy(&bytes[part]);
        }
        self.close();
        self.push(bytes.slice(part));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_writes_are_copied_together_and_large_ones_are_shared() {
        let large = Bytes::from(vec![b'l'; limits::PIECE_BYTES_MAX * 2 + 5]);
        let mut chunks = Chunks::default();
        let mut expected = vec![];
        for _ in 0..1000 {
            chunks.copy(&[b's'; 100]);
            expected.extend([b's'; 100]);
        }
        chunks.share(&large, 0..large.len());
        expected.extend_from_slice(&large);
        chunks.append(b"end".to_vec());
        expected.extend(b"end");
        assert_eq!(chunks.len(), expected.len());
        chunks.close();
        let pieces: Vec<Bytes> = std::iter::from_fn(|| chunks.pop()).collect();
        assert_eq!((chunks.len(), pieces.concat()), (0, expected));
        assert!(pieces.iter().all(|piece| piece.len() <= limits::PIECE_BYTES_MAX), "no piece exceeds PIECE_BYTES_MAX");
        let within = |piece: &Bytes| large.as_ptr_range().contains(&piece.as_ptr());
        assert_eq!(pieces.iter().filter(|piece| within(piece)).map(Bytes::len).sum::<usize>(), large.len());
        assert!(pieces.len() < 13, "{} pieces", pieces.len());
    }
}
