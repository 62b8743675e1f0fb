//! Limits of the commands.

use std::time::Duration;

/// Number of parts of an expression that `pintle cel cost` prints: the most expensive ones.
pub const PARTS_SHOWN: usize = 5;
/// Interval of checks whether a CRD is established.
pub const ESTABLISHED_WAIT: Duration = Duration::from_millis(100);
/// Maximum number of these checks.
pub const ESTABLISHED_WAITS_MAX: usize = 300;
/// Number of connections that write concurrently.
pub const WRITERS: usize = 8;
/// Maximum number of attempts of a write that conflicts.
pub const WRITE_ATTEMPTS: usize = 10;
/// Maximum number of rejected objects that the report names.
pub const REFUSED_NAMED: usize = 10;
/// Limit of open files on macOS, if there is no hard limit: `OPEN_MAX`, which every version accepts.
pub const MACOS_DESCRIPTORS: u64 = 10_240;
/// Time limit for threads to end after the last response.
pub const THREADS_END: Duration = Duration::from_secs(5);
/// Lifetime of certificate authorities that the server makes; kubeadm's.
pub const AUTHORITY_LIFETIME: Duration = Duration::from_secs(3650 * 24 * 3600);
/// Lifetime of the other certificates that the server makes for itself; kubeadm's.
pub const CERTIFICATE_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);
/// Time before their expiry at which certificates are renewed.
pub const CERTIFICATE_RENEWAL: Duration = Duration::from_secs(90 * 24 * 3600);
/// Interval of checks whether a certificate must be renewed.
pub const CERTIFICATE_LOOK: Duration = Duration::from_secs(3600);
/// Time by which the start of their validity precedes their creation, since clocks of clients may be behind.
pub const CERTIFICATE_BEFORE: Duration = Duration::from_secs(3600);
/// Shortest lifetime of the certificate of a user: that of a certificate signing request.
pub const USER_CERTIFICATE_MIN: Duration = Duration::from_secs(600);
/// Bytes that a scrub reads before it pauses: with the pause, 16 MiB in a second, which leaves the disk and the processor to others.
pub const SCRUB_PART_BYTES: u64 = 1 << 20;
pub const SCRUB_PAUSE: Duration = Duration::from_millis(60);
/// Time between two looks for free memory. A look takes each thread less than a millisecond.
pub const FREE_MEMORY_INTERVAL: Duration = Duration::from_secs(30);
/// More than mimalloc's `purge_delay`, for which it keeps empty pages.
pub const FREE_MEMORY_DELAY: Duration = Duration::from_secs(2);
/// mimalloc's `generic_collect`: it looks for empty pages once in so many allocations that are not small.
pub const FREE_MEMORY_ALLOCATIONS: usize = 10_000;
/// More than mimalloc's `MI_SMALL_SIZE_MAX`.
pub const FREE_MEMORY_ALLOCATION_BYTES: usize = 4096;
/// Time after which a scheduled backup that has failed is made again.
pub const BACKUP_RETRY: Duration = Duration::from_secs(300);
/// Bytes of all manifests of an admission plugin; kube-apiserver has no limit.
pub const MANIFESTS_BYTES_MAX: u64 = 16 << 20;
/// Number of files with manifests of an admission plugin.
pub const MANIFEST_FILES_MAX: usize = 1000;
/// Interval of checks whether the encryption configuration has changed.
pub const ENCRYPTION_LOOK: Duration = Duration::from_secs(1);
/// The time without writes after which a plan has settled. Many controllers requeue objects after three or five seconds.
pub const PLAN_QUIET: Duration = Duration::from_secs(1);
pub const PLAN_QUIET_WITH_COMMANDS: Duration = Duration::from_secs(6);

/// Interval at which a terminal shows progress.
pub const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of progress lines when stderr is not a terminal.
pub const PROGRESS_INTERVAL: Duration = Duration::from_secs(3);
/// Time in which a trial begins cells, by default.
pub const TRIAL_BUDGET: Duration = Duration::from_secs(300);
/// Interval of checks whether the parent process has ended.
pub const PARENT_LOOK: Duration = Duration::from_millis(100);
/// Maximum number of unreadable objects of a damaged store that are named.
pub const UNREADABLE_NAMED: usize = 1000;
/// Interval and number of looks at the socket of another server, which accepts connections before it loads anything.
pub const SHARED_LOOK: Duration = Duration::from_millis(2);
pub const SHARED_LOOKS: u32 = 5000;
/// Time in which a server that is shared must get its first user: the process that has started it connects at once.
pub const SHARED_FIRST_USER: Duration = Duration::from_secs(10);
/// Stack of the thread of a user, which only waits.
pub const SHARED_STACK_BYTES: usize = 64 << 10;
/// Interval and number of looks at the status of a workspace, which the server writes within milliseconds; in etcd it copies first.
pub const WORKSPACE_LOOK: Duration = Duration::from_millis(20);
pub const WORKSPACE_LOOKS: u32 = 3000;
/// Bytes of objects after which a request that loads a workspace is sent; with the largest object it is still smaller than a request may be.
pub const LOAD_BYTES: usize = 1 << 20;
/// How long the name of a template stays taken after its builder has died.
pub const TEMPLATE_LEASE: Duration = Duration::from_secs(10);
/// Lines of a difference that a replay prints.
pub const REPLAY_DIFFERENCE_LINES: usize = 24;
/// Longest pause of a step of a transcript.
pub const REPLAY_SLEEP: Duration = Duration::from_secs(600);
/// Time limits if the transcript has none: for repeating a step until its response matches, and for waiting for
/// events.
pub const REPLAY_UNTIL: Duration = Duration::from_secs(20);
pub const REPLAY_EVENTS: Duration = Duration::from_secs(3);
/// How long a fast replay waits for more events than were recorded.
pub const REPLAY_QUIET: Duration = Duration::from_millis(500);
/// Interval of looks at the Clock that a command follows.
pub const CLOCK_LOOK: Duration = Duration::from_millis(100);
/// Interval of looks at a fault that is waited for.
pub const FAULT_LOOK: Duration = Duration::from_millis(50);
/// Interval of repetitions of a step.
pub const REPLAY_LOOK: Duration = Duration::from_millis(20);
/// Files of `-f`, and the bytes of all of them, which are read again when they change.
pub const FOLLOWED_FILES_MAX: usize = 10_000;
pub const FOLLOWED_BYTES_MAX: u64 = 256 << 20;
/// Events of the system that wait to be handled, and the stack of the thread that reads them.
#[cfg(target_os = "linux")]
pub const FOLLOWED_EVENTS: usize = 1024;
#[cfg(target_os = "linux")]
pub const FOLLOWED_STACK_BYTES: usize = 64 << 10;
/// How long nothing may happen after a change of a file before it is read, and how long that is waited for: programs change several
/// files in a row.
pub const FOLLOWED_QUIET: Duration = Duration::from_millis(2);
pub const FOLLOWED_QUIET_MAX: Duration = Duration::from_millis(8);
/// How long a file that a program is writing is left alone.
pub const FOLLOWED_WRITE_MAX: Duration = Duration::from_secs(1);
/// How long a file has to be gone before its objects are deleted: editors rename it before they write its successor, and sync that.
pub const FOLLOWED_GONE: Duration = Duration::from_millis(100);
/// Interval of tries after a failure that may pass.
pub const FOLLOWED_RETRY: Duration = Duration::from_secs(1);
/// Interval of looks at files where the system does not report changes.
#[cfg(not(target_os = "linux"))]
pub const FOLLOWED_LOOK: Duration = Duration::from_millis(50);
