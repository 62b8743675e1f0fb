//! Limits of this crate. Those of requests are the server's.

use std::time::Duration;

/// Interval of compactions of a store that servers share, which an embedded server never does.
pub const COMPACTION: Duration = Duration::from_secs(300);

/// Time between the last write of an Event and its expiry; kube-apiserver's.
pub const EVENT_TTL: Duration = Duration::from_secs(3600);

/// Time limit of requests that are in flight when the server stops.
pub const GRACE: Duration = Duration::from_secs(1);

/// Open file descriptors, of which connections may use a part: what every system allows.
pub const DESCRIPTORS: u64 = 1024;

/// Depth of directories below one that is applied, since a link to a parent directory would never end.
pub const DIRECTORIES_MAX: usize = 64;
