//! Bounds of the client of etcd.

use std::time::Duration;

/// Time before the first request for progress while a caller waits for a revision: most often the event arrives first.
pub const PROGRESS_FIRST: Duration = Duration::from_millis(5);
/// Interval of requests for progress while a caller waits for a revision; kube-apiserver's.
pub const PROGRESS_WANTED: Duration = Duration::from_millis(100);
/// Interval of requests for progress otherwise: a watch of keys that never change would fall behind the compacted
/// revision; etcd reports progress every 10 minutes.
pub const PROGRESS_IDLE: Duration = Duration::from_secs(10);
/// Requests for progress without a response before the client switches to another member.
pub const PROGRESS_REQUESTS_MAX: u32 = 50;
/// Time limit of one attempt at one member.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of all attempts of a call together; etcd's own limit of a request is 7 s.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// First pause between attempts once every member has been called; doubled each time.
pub const RETRY_PAUSE_MIN: Duration = Duration::from_millis(50);
/// Longest pause between attempts.
pub const RETRY_PAUSE_MAX: Duration = Duration::from_millis(500);
/// Keys of one range request. kube-apiserver's lists start with the limit of the client and go up to 10,000.
pub const PAGE: i64 = 500;
/// Keys of one transaction of a copy; etcd allows 128 operations (`--max-txn-ops`).
pub const COPY_KEYS: usize = 100;
/// Bytes of the values of such a transaction, unless one value is larger; etcd allows requests of 1.5 MiB (`--max-request-bytes`).
pub const COPY_BYTES: usize = 1 << 20;
/// Keys that a copy reads at a time: it is made in the background, and its memory should be that of a few transactions.
pub const COPY_PAGE: i64 = 200;
/// Time for which a lease is used for further keys; kube-apiserver's.
pub const LEASE_REUSE: Duration = Duration::from_secs(60);
/// Keys of one lease; kube-apiserver's.
pub const LEASE_KEYS_MAX: usize = 1000;
/// Time limit of a connection; kube-apiserver: 20 s.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval of HTTP/2 keepalive pings on a connection in use; members refuse clients that ping more often than
/// every 5 s. kube-apiserver: 30 s.
pub const KEEP_ALIVE: Duration = Duration::from_secs(6);
/// Time limit of the response to a ping; kube-apiserver: 10 s.
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(3);
/// Time between two lines of the log about why etcd does not serve.
pub const TROUBLE_PAUSE: Duration = Duration::from_secs(10);
