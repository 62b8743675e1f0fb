//! Limits of this crate. Those of requests are the server's.

use std::time::Duration;

/// Time limit of a request; kube-apiserver's.
pub const REQUEST: Duration = Duration::from_secs(60);

/// Interval of compactions of a store that other servers share; there are none.
pub const COMPACTION: Duration = Duration::from_secs(300);

/// Time between the last write of an Event and its expiry; kube-apiserver's.
pub const EVENT_TTL: Duration = Duration::from_secs(3600);

/// Time limit of requests that are in flight when the server stops.
pub const GRACE: Duration = Duration::from_secs(1);

/// Descriptors of which connections may take a part: what every system grants.
pub const DESCRIPTORS: u64 = 1024;

/// Directories below one that is applied: a link to a directory above it would have no end.
pub const DIRECTORIES_MAX: usize = 64;
