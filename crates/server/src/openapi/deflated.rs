//! Compressed pieces of a document, which are joined to one gzip stream (RFC 1952) in any order.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress};

use super::pieces::Pieces;
use crate::compression::compress;
use crate::limits;

/// A gzip header without file name and modification time.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// The empty block that ends a stream.
const END: [u8; 2] = [3, 0];

/// Compressed blocks that end at a byte boundary and refer to nothing before them.
#[derive(Clone, Default)]
pub struct Deflated {
    blocks: Bytes,
    crc: Arc<Crc>,
}

impl Deflated {
    pub fn new(bytes: &[u8]) -> Deflated {
        let mut pieces = Pieces::default();
        pieces.write(|out| out.extend_from_slice(bytes));
        Deflated::of(pieces)
    }

    pub fn of(pieces: Pieces) -> Deflated {
        if pieces.len() == 0 {
            return Deflated::default();
        }
        let mut crc = Crc::new();
        let mut compressor = Compress::new(Compression::new(limits::OPENAPI_GZIP_LEVEL), false);
        let mut out = vec![];
        pieces.each(|bytes| {
            crc.update(bytes);
            compress(&mut compressor, bytes, FlushCompress::None, &mut out);
        });
        compress(&mut compressor, &[], FlushCompress::Sync, &mut out);
        Deflated { blocks: Bytes::copy_from_slice(&out), crc: Arc::new(crc) }
    }

    /// The number of bytes before compression.
    pub fn len(&self) -> usize {
        self.crc.amount() as usize
    }

    /// Refers to a copy of the blocks instead of its own memory.
    pub fn share(&mut self, copy: Bytes) {
        debug_assert!(copy == self.blocks);
        self.blocks = copy;
    }
}

/// A gzip stream that is being joined.
pub struct Joined {
    out: Vec<u8>,
    crc: Crc,
}

impl Default for Joined {
    fn default() -> Joined {
        Joined { out: HEADER.to_vec(), crc: Crc::new() }
    }
}

impl Joined {
    /// Appends a piece and returns the place of its blocks in the stream.
    pub fn push(&mut self, piece: &Deflated) -> Range<usize> {
        let start = self.out.len();
        self.out.extend_from_slice(&piece.blocks);
        self.crc.combine(&piece.crc);
        start..self.out.len()
    }

    /// Appends pieces with a separator between them, if it is not empty, and returns their places.
    pub fn list<'a>(&mut self, pieces: impl Iterator<Item = &'a Deflated>, separator: &Deflated) -> Vec<Range<usize>> {
        let mut is_first = true;
        let mut push = |piece: &Deflated| {
            if piece.len() > 0 && !std::mem::replace(&mut is_first, false) {
                self.push(separator);
            }
            self.push(piece)
        };
        pieces.map(&mut push).collect()
    }

    pub fn finish(mut self) -> Bytes {
        self.out.extend(END);
        self.out.extend(self.crc.sum().to_le_bytes());
        self.out.extend(self.crc.amount().to_le_bytes());
        self.out.shrink_to_fit();
        Bytes::from(self.out)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn pieces_can_be_joined_in_any_order() {
        let mut noise = 1_u32;
        let mut random = || {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // letters in an uneven distribution, so that the output is large but not stored
            b'a' + (noise >> 24).leading_zeros() as u8 + (noise >> 16 & 3) as u8
        };
        let noise: Vec<u8> = (0..3_000_000).map(|_| random()).collect();
        let texts = ["", "x", "a schema, "].map(|text| text.repeat(50_000).into_bytes());
        let [none, one, schemas] = texts;
        let texts = [none, one, schemas, noise];
        let pieces = texts.each_ref().map(|text| Deflated::new(text));
        for order in [vec![], vec![0], vec![1, 2], vec![2, 1, 2, 3], vec![3, 0, 1, 1]] {
            let mut gzip = Joined::default();
            let places: Vec<_> = order.iter().map(|i| gzip.push(&pieces[*i])).collect();
            let stream = gzip.finish();
            let mut out = vec![];
            flate2::read::GzDecoder::new(&stream[..]).read_to_end(&mut out).unwrap();
            assert_eq!(out, order.iter().flat_map(|i| texts[*i].clone()).collect::<Vec<u8>>(), "{order:?}");
            for (i, place) in order.iter().zip(places) {
                assert_eq!((pieces[*i].len(), &pieces[*i].blocks[..]), (texts[*i].len(), &stream[place]));
            }
        }
    }
}
