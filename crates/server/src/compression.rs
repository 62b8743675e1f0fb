//! Compression of bytes that come in parts.

use flate2::{Compress, FlushCompress, Status};

use crate::limits;

/// Compresses bytes. A flush is repeated until all output has been written: `DeflateEncoder` repeats it without the flush, and then
/// output may be missing.
pub fn compress(compressor: &mut Compress, mut bytes: &[u8], flush: FlushCompress, out: &mut Vec<u8>) {
    loop {
        out.reserve(limits::GZIP_ROOM_BYTES);
        let before = compressor.total_in();
        let status = compressor.compress_vec(bytes, out, flush);
        let used = usize::try_from(compressor.total_in() - before).unwrap_or(bytes.len());
        bytes = &bytes[used.min(bytes.len())..];
        let is_flushed = match flush {
            FlushCompress::None => bytes.is_empty(),
            // all output has been written when the buffer has room left
            _ => out.len() < out.capacity(),
        };
        match status {
            Ok(Status::Ok | Status::BufError) if !is_flushed => {}
            // compression from memory to memory does not fail
            _ => return,
        }
    }
}
