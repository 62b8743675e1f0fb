//! Limits of this crate. Those of requests are the server's.

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

/// Reasons of a kind that the report of a source shows.
pub const REASONS_SHOWN: usize = 5;
