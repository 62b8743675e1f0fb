//! Bounds of the rooms of this crate. Where kube-apiserver has the same bound, its value stands here.

use std::time::Duration;

/// Bytes of a request body.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Bytes of a body that is too large which are read before it is refused.
pub const BODY_BYTES_DRAINED: usize = 16 * 1024 * 1024;
/// Bytes of one stored object; etcd's default for a request.
pub const OBJECT_BYTES_MAX: usize = 1536 * 1024;
/// Objects of a list that are read from its snapshot at a time.
pub const LIST_BATCH: usize = 64;
/// Objects that are looked at before a list lets other requests run: less than a millisecond.
pub const LIST_SCAN: usize = 8_192;
/// Objects of a list that a webhook converts at a time. Ours.
pub const CONVERSION_OBJECTS: usize = 512;
/// Objects of a list that are kept once they have been selected; of more, the selection is made again as they are sent.
pub const LIST_KEPT: usize = 512;
/// Bytes of a response body that are made at a time, and that may wait in a connection before more is made. kube-apiserver
/// writes into buffers of 4 KiB, and HTTP/2 windows of up to 4 MiB.
pub const CHUNK_BYTES: usize = 16 * 1024;
pub const UNSENT_BYTES_MAX: usize = 32 * 1024;
/// The same while all responses together have less than this many bytes that wait: then clients read as fast as they are
/// served.
pub const UNSENT_TOTAL_FAST: usize = 16 << 20;
pub const UNSENT_BYTES_FAST: usize = 512 * 1024;
/// Lists up to this size, such as pages of informers, are encoded before they are sent, under the same condition.
pub const WHOLE_LIST_BYTES_FAST: usize = 1 << 20;
/// Parts of stored objects from this size on are sent as they are; smaller ones are copied together.
pub const SHARED_BYTES_MIN: usize = 8 * 1024;
/// Bytes of one piece of a response, however large the object is.
pub const PIECE_BYTES_MAX: usize = 64 * 1024;
/// How long a client may read nothing of a response that is there for it; kube-apiserver's `--request-timeout`.
pub const UNREAD_RESPONSE: Duration = Duration::from_secs(60);
/// Time between looks at a configuration file that may have changed.
pub const CONFIGURATION_LOOK: Duration = Duration::from_secs(1);
/// Attempts of a write whose object changes under it.
pub const WRITE_RETRIES: usize = 64;
/// Addresses of a network that are looked at for a free one; kube-apiserver looks at all of them.
pub const ALLOCATION_LOOKUPS: u64 = 1 << 16;
/// Time between repairs of what is reserved for Services, as in kube-apiserver.
pub const ALLOCATION_REPAIR: Duration = Duration::from_secs(3 * 60);
/// Attempts at a free generated name.
pub const GENERATE_NAME_ATTEMPTS: usize = 8;
/// Responses from this size on are compressed.
pub const GZIP_BYTES_MIN: usize = 128 * 1024;
/// An OpenAPI document of all groups that is larger is made anew when it is asked for; that of 10,000 definitions of 13 KB
/// has 260 MB. Ours.
pub const OPENAPI_KEPT_BYTES_MAX: usize = 16 << 20;
/// Seconds that a read waits for a version from the future.
pub const FUTURE_VERSION_SECONDS: u64 = 3;
/// Objects that a deletecollection deletes at once, where nothing can refuse one.
pub const DELETE_COLLECTION_PARALLEL: usize = 64;
/// Up to this number, objects are deleted one after the other.
pub const DELETE_IN_ORDER_MAX: usize = 32;
/// Runes of all warnings of a response, and of each when the sum is exceeded.
pub const WARNING_RUNES_MAX: usize = 4096;
pub const WARNING_RUNES_EACH: usize = 256;
/// Warnings of a response. Upstream has no such bound; common clients refuse a response with more than 100 headers
/// (Python's http.client, hyper), and others need some.
pub const WARNINGS_MAX: usize = 80;
/// Seconds that a WebSocket client has to respond to the close frame.
pub const WEBSOCKET_CLOSE_SECONDS: u64 = 5;
/// Concurrent streams of one HTTP/2 connection; kube-apiserver's.
pub const HTTP2_STREAMS_MAX: u32 = 100;
/// Time that a client has for the TLS handshake; kube-apiserver: 32 s.
pub const TLS_HANDSHAKE: Duration = Duration::from_secs(10);
/// Time between the handshake and the end of the first request's header; kube-apiserver's `ReadHeaderTimeout`.
pub const FIRST_REQUEST: Duration = Duration::from_secs(32);
/// Time after which a connection without requests is closed; kube-apiserver's `IdleTimeout`.
pub const IDLE_CONNECTION: Duration = Duration::from_secs(90);
/// Time that an idle client has to close its connection after it was asked to.
pub const DRAIN: Duration = Duration::from_secs(5);
/// Connections that may be open at once, where the limit of descriptors allows more; kube-apiserver has no bound. An idle
/// TLS connection takes about 40 KB.
pub const CONNECTIONS_MAX: usize = 32_768;
/// When there are too many connections, one in so many is closed, as far as they are idle.
pub const EVICTED_SHARE: usize = 16;
/// One in so many descriptors is kept for everything but clients' connections: the store, webhooks, etcd and logs.
pub const DESCRIPTORS_RESERVED_SHARE: u64 = 4;
/// How many clients' connections may be open at once in a process that may have so many descriptors (`RLIMIT_NOFILE`).
pub fn connections_max(descriptors: u64) -> usize {
    let usable = descriptors - descriptors / DESCRIPTORS_RESERVED_SHARE;
    usize::try_from(usable).unwrap_or(usize::MAX).clamp(1, CONNECTIONS_MAX)
}
/// Time between the deletion of a namespace and that of its content.
pub const NAMESPACE_GRACE: Duration = Duration::from_secs(1);
/// How long a definition stays behind instances that it had to wait for; upstream looks for them every 5 s.
pub const DEFINITION_GRACE: Duration = Duration::from_secs(1);
/// Time before an object goes whose owner was never seen here; kube-controller-manager looks at once, but its
/// caches lag behind.
pub const ABSENT_OWNER_GRACE: Duration = Duration::from_secs(10);
/// Time before the garbage collector lets go of an object that has no dependents.
pub const NO_DEPENDENTS_GRACE: Duration = Duration::from_secs(1);
/// Time between the change of a ClusterRole and the writes that follow from it.
pub const AGGREGATION_GRACE: Duration = Duration::from_secs(2);
/// Time between the last of several changes of definitions and the look at the APIServices that follow from them.
pub const REGISTRATION_GRACE: Duration = Duration::from_secs(1);
/// How long they may wait where definitions change all the time.
pub const REGISTRATION_DELAY_MAX: Duration = Duration::from_secs(10);
/// Minimum time between two creations of the ConfigMap that says since when uses of tokens are tracked; upstream's.
pub const TOKEN_TRACKING_PAUSE: Duration = Duration::from_secs(1_800);
/// Maximum interval of availability checks of aggregated API servers, and the time limit of one; upstream's values.
pub const REMOTE_AVAILABILITY: Duration = Duration::from_secs(30);
pub const REMOTE_CHECK: Duration = Duration::from_secs(5);
/// Bytes of an OpenAPI document of one. Ours: that of kube-apiserver with all its kinds has 4 MB.
pub const REMOTE_OPENAPI_BYTES_MAX: usize = 16 << 20;
/// Time limit for their OpenAPI documents; upstream's.
pub const REMOTE_OPENAPI: Duration = Duration::from_secs(60);
/// Time between questions for their resources and OpenAPI documents.
pub const REMOTE_DISCOVERY: Duration = Duration::from_secs(60);
/// How long a controller waits after a failure before it tries again.
pub const CONTROLLER_RETRY: Duration = Duration::from_secs(5);
/// Time between a change and the look at the usage of quotas.
pub const QUOTA_GRACE: Duration = Duration::from_secs(1);
/// Time between looks at the usage of all quotas, as upstream has it.
pub const QUOTA_RESYNC: Duration = Duration::from_secs(300);
/// Objects that the garbage collector works on at once.
pub const GARBAGE_PARALLEL: usize = 64;
/// Objects of a migration that are written at once: they share the disk.
pub const MIGRATION_WRITERS: usize = 16;
/// Objects of each kind that are created at once when a server starts for the first time.
pub const BOOTSTRAP_PARALLEL: usize = 8;
/// Seconds between attempts of a controller that fails: doubled up to this many.
pub const CONTROLLER_RETRY_SECONDS_MAX: u64 = 300;
/// How long a request may wait for a seat, unless a quarter of its time is less.
pub const FLOW_WAIT_MAX: Duration = Duration::from_secs(60);
/// How long a server that no longer follows its store, or whose store has ended, goes on before its process ends. Until then
/// it fails its health checks.
pub const FAULT_GRACE: Duration = Duration::from_secs(30);
/// Time between looks for such faults.
pub const FAULT_LOOK: Duration = Duration::from_secs(1);
/// Seconds between compactions.
pub const COMPACTION_SECONDS: u64 = 60;
/// Time between two looks at the objects with which a server describes itself; kube-apiserver's.
pub const CONTROL_PLANE_LOOK: Duration = Duration::from_secs(10);
/// Seconds for which the Lease of a server holds; kube-apiserver's.
pub const IDENTITY_LEASE_SECONDS: i64 = 3600;
/// Looks after which the Lease of a server is renewed. kube-apiserver renews it at every look, which would be a write every
/// ten seconds of an idle server.
pub const IDENTITY_LEASE_LOOKS: u32 = 60;
/// The lease of the controllers: how long it lasts, how long its holder tries to renew it, and what passes between tries;
/// kube-controller-manager's.
pub const LEASE: Duration = Duration::from_secs(15);
pub const LEASE_RENEW: Duration = Duration::from_secs(10);
pub const LEASE_RETRY: Duration = Duration::from_secs(2);
/// Bytes of a body that are decoded, changed and validated within an async worker: about a millisecond. Larger
/// bodies hand the worker's other tasks to another thread first.
pub const INLINE_BYTES_MAX: usize = 64 << 10;
/// Seconds after its creation in which the resource of a migration may still come into being; upstream's.
pub const MIGRATION_PATIENCE_SECONDS: i64 = 60;
/// Changes between a decision and its write before the collector pauses. Ours.
pub const GARBAGE_CONFLICTS_MAX: u32 = 8;
/// Types that a policy is checked against; upstream's.
pub const CHECKED_TYPES_MAX: usize = 10;
/// Aggregated API servers that are checked at once. Ours; kube-aggregator: 5.
pub const AVAILABILITY_PARALLEL: usize = 8;
/// Shortest pause between two checks; doubled as long as they fail. Ours.
pub const AVAILABILITY_PAUSE_MIN: Duration = Duration::from_secs(1);
/// Concurrent requests of one check, of which one has to succeed; kube-aggregator's.
pub const AVAILABILITY_ATTEMPTS: usize = 5;
/// Bytes by which the output buffer of gzip grows. Ours: one chunk.
pub const GZIP_ROOM_BYTES: usize = 16 * 1024;
/// Rounds in which the names and conditions of a CRD settle; each makes one write. Ours.
pub const NAMING_ROUNDS_MAX: usize = 16;
/// Seconds between bookmarks of a quiet watch; kube-apiserver's.
pub const BOOKMARK_SECONDS: u64 = 60;
/// Seconds before the end of a watch at which a last bookmark is sent; kube-apiserver's.
pub const LAST_BOOKMARK_SECONDS: u64 = 2;
/// Bytes from which a piece of a document is full. Ours: pieces are freed one by one as they are copied.
pub const OPENAPI_PIECE_BYTES: usize = 1 << 20;
/// Writes of an import that are in flight at once. Ours: they share a sync.
pub const IMPORT_PARALLEL: usize = 64;
/// Objects between two reports of progress. Ours.
pub const IMPORT_REPORTED: usize = 5_000;
/// Seconds in which a kubelet or a Pod has to accept a connection; kube-apiserver's for kubelets.
pub const DIAL_SECONDS: u64 = 5;
