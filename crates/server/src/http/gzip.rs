//! gzip (RFC 1952) compressed in parts: between parts, a response keeps only a checksum and a length, not a compressor.

use std::cell::RefCell;

use bytes::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress};

use crate::compression::compress;
use crate::limits;

/// A gzip header without file name and modification time, for the fastest compression level.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 0xff];

thread_local! {
    /// A compressor takes about 300 KB, so there is only one per thread. It compresses one part at a time.
    static COMPRESSOR: RefCell<Compress> = RefCell::new(Compress::new(Compression::fast(), false));
}

/// A stream that is being compressed.
#[derive(Default)]
pub struct Gzip {
    crc: Crc,
    has_header: bool,
}

impl Gzip {
    /// Compresses the next part, without references to the parts before it. `last` ends the stream.
    pub fn part(&mut self, part: impl IntoIterator<Item = Bytes>, last: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(limits::GZIP_ROOM_BYTES);
        if !std::mem::replace(&mut self.has_header, true) {
            out.extend(HEADER);
        }
        COMPRESSOR.with_borrow_mut(|compressor| {
            compressor.reset();
            for bytes in part {
                self.crc.update(&bytes);
                compress(compressor, &bytes, FlushCompress::None, &mut out);
            }
            compress(compressor, &[], if last { FlushCompress::Finish } else { FlushCompress::Sync }, &mut out);
        });
        if last {
            out.extend(self.crc.sum().to_le_bytes());
            out.extend(self.crc.amount().to_le_bytes());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn decompressed(bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![];
        flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).unwrap();
        out
    }

    #[test]
    fn parts_form_one_stream() {
        let mut noise = 1_u32;
        let mut random = |_| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (noise >> 24) as u8
        };
        let text = b"a list of objects, ".repeat(4000);
        let parts: Vec<Vec<u8>> =
            vec![vec![], b"x".to_vec(), text.clone(), (0..100_000).map(&mut random).collect(), vec![], text];
        for count in 0..=parts.len() {
            let mut gzip = Gzip::default();
            let mut out = vec![];
            for (i, part) in parts[..count].iter().enumerate() {
                let pieces = part.chunks(30_000).map(Bytes::copy_from_slice);
                out.extend(gzip.part(pieces, i + 1 == count));
            }
            if count == 0 {
                out.extend(gzip.part([], true));
            }
            assert_eq!(decompressed(&out), parts[..count].concat(), "{count} parts");
        }
    }
}
