//! Bounds of the commands. There is nothing to compare them with upstream, unless it says so.

use std::time::Duration;

/// Pieces of an expression that `cel` shows: the most expensive ones.
pub const PARTS_SHOWN: usize = 5;
/// Interval of checks whether a CRD is established.
pub const ESTABLISHED_WAIT: Duration = Duration::from_millis(100);
/// Checks whether a CRD is established.
pub const ESTABLISHED_WAITS_MAX: usize = 300;
/// Objects of a page of a list; kubectl's `--chunk-size`.
pub const PAGE: usize = 500;
/// Connections that write at once: their writes share the disk.
pub const WRITERS: usize = 8;
/// Attempts of a write that meets a conflict.
pub const WRITE_ATTEMPTS: usize = 10;
/// Refused objects that are named in the report.
pub const REFUSED_NAMED: usize = 10;
/// Limit of open files that is assumed when the system does not report one: Linux' default soft limit.
pub const FALLBACK_DESCRIPTORS: u64 = 1024;
/// Time that threads have to end after the last response.
pub const THREADS_END: Duration = Duration::from_secs(5);
/// Lifetime of certificate authorities that the server makes; kubeadm's.
pub const AUTHORITY_LIFETIME: Duration = Duration::from_secs(3650 * 24 * 3600);
/// Lifetime of the other certificates that the server makes for itself; kubeadm's.
pub const CERTIFICATE_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);
/// Time before their end at which they are renewed.
pub const CERTIFICATE_RENEWAL: Duration = Duration::from_secs(90 * 24 * 3600);
/// Interval of checks whether a certificate is to be renewed.
pub const CERTIFICATE_LOOK: Duration = Duration::from_secs(3600);
/// Time before now at which they begin to be valid: clocks of clients may be behind.
pub const CERTIFICATE_BEFORE: Duration = Duration::from_secs(3600);
/// Shortest lifetime of the certificate of a user: that of a certificate signing request.
pub const USER_CERTIFICATE_MIN: Duration = Duration::from_secs(600);
