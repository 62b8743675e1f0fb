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

/// Bytes of all entries of an archive, and of one of them. Bundles of large clusters have some GiB, most of it logs.
pub const ARCHIVE_BYTES_MAX: u64 = 16 << 30;
pub const ENTRY_BYTES_MAX: u64 = 1 << 30;

/// How many times larger than itself an archive may become, once it has become larger than [`EXPANSION_FREE_BYTES`]. Logs
/// become 10 to 40 times larger, and a bomb 1,000 times.
pub const EXPANSION_MAX: u64 = 200;
pub const EXPANSION_FREE_BYTES: u64 = 64 << 20;

/// Entries of an archive with those in it. A bundle of a cluster with 100,000 objects, each in a file of its own, has fewer.
pub const ENTRIES_MAX: usize = 1_000_000;

/// Bytes of the headers of an entry, which include long names, and of its path.
pub const HEADER_BYTES_MAX: u64 = 1 << 20;
pub const PATH_BYTES_MAX: usize = 4096;

/// Bytes of the directory of a zip archive, with [`ENTRIES_MAX`] files whose names have 200 bytes.
pub const ZIP_DIRECTORY_BYTES_MAX: u64 = 256 << 20;

/// Bytes of the objects of a source, encoded, which are in memory: those of a cluster with some million objects.
pub const OBJECT_BYTES_MAX: u64 = 4 << 30;

/// Depth of the trees in a snapshot of etcd: one of 8 GiB has 6 levels.
pub const BBOLT_DEPTH_MAX: usize = 32;

/// Bytes of a value of etcd with its key. Requests have at most 1.5 MiB by default.
pub const ETCD_VALUE_BYTES_MAX: usize = 64 << 20;

/// Lists of a cluster that are read at the same time: fewer than the seats that API priority and fairness gives a user by
/// default.
pub const LISTS_IN_FLIGHT: usize = 6;

/// Different problems of a source that are reported, each in a line with their number.
pub const PROBLEMS_SHOWN: usize = 20;

/// Threads that read the files of a source.
pub const READERS_MAX: usize = 16;

/// Bytes of a captured log that are served.
pub const LOG_BYTES_MAX: u64 = 256 << 20;
