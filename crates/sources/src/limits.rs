//! Limits of this crate.

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

/// Bytes of `.pintleignore`.
pub const IGNORE_FILE_BYTES: u64 = 1 << 20;
