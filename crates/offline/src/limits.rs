//! Limits of this crate. Those of requests are the server's.

/// Maximum size in bytes of a document, which may be a list of objects: the server refuses objects of more than 3 MiB.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 30;

/// Characters of a source line that a finding shows.
pub const LINE_CHARACTERS_MAX: usize = 160;

/// Bytes of the documents that a task checks one after the other: some milliseconds of work.
pub const CHUNK_BYTES: usize = 32 * 1024;

/// Tasks that may be unfinished, for each core: the results of the first one are waited for, while others are ready.
pub const CHUNKS_PER_CORE: usize = 4;
