//! Limits of this crate. Those of requests are the server's.

/// Maximum size in bytes of a document, which may be a list of objects: the server refuses objects of more than 3 MiB.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 30;

/// Bytes of an object that is passed to the server decoded. Even if each byte becomes an escape of six, the
/// encoding stays within the 3 MiB that the server accepts.
pub const DECODED_BYTES_MAX: usize = 512 * 1024;

/// Bytes of stdin that are kept in memory; what is longer is copied to a file.
pub const STDIN_IN_MEMORY_BYTES: u64 = 4 << 20;

/// Bytes of all files that are kept in memory between the search for definitions and the checks, and of one of them.
pub const PRELOADED_BYTES: u64 = 16 << 20;
pub const PRELOADED_FILE_BYTES_MAX: u64 = 256 << 10;

/// Characters of a source line that a finding shows.
pub const LINE_CHARACTERS_MAX: usize = 160;

/// Bytes of the documents that a task checks one after the other: some milliseconds of work.
pub const CHUNK_BYTES: usize = 32 * 1024;

/// Unfinished tasks for each core. Results are reported in order, so later tasks may be complete while the first is
/// waited for.
pub const CHUNKS_PER_CORE: usize = 4;

/// Files of `--old` that a finding lists.
pub const AMBIGUOUS_FILES_SHOWN: usize = 3;

/// Requests by which the fields to blame for a decoding error are searched, for each object.
pub const DECODE_PROBES_MAX: usize = 256;

/// Decoding errors that are reported for each object.
pub const DECODE_ERRORS_MAX: usize = 8;

/// Files that were left out and are named in a report.
pub const IGNORED_FILES_SHOWN: usize = 3;

/// Annotations of one kind that GitHub shows for a step.
pub const ANNOTATIONS_SHOWN: usize = 10;

/// Bytes of `.pintleignore`.
pub const IGNORE_FILE_BYTES: u64 = 1 << 20;
