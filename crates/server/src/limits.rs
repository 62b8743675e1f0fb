//! Limits of this crate. A limit that kube-apiserver has too has its value, unless noted otherwise.

use std::time::Duration;

/// Maximum size of a request body in bytes.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Time limit of a request to a server without connections; the default of `--request-timeout`.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of a body that are read and discarded if the response does not depend on them, and the time limit for that.
pub const BODY_BYTES_DISCARDED: usize = 16 * 1024 * 1024;
pub const BODY_DISCARD: Duration = Duration::from_secs(10);
/// Maximum size of a stored object in bytes; etcd's default for a request.
pub const OBJECT_BYTES_MAX: usize = 1536 * 1024;
/// Objects of a list that are read from its snapshot at a time.
pub const LIST_BATCH: usize = 64;
/// Objects that a list filters, in less than a millisecond, before it yields to other requests.
pub const LIST_SCAN: usize = 8_192;
/// Number of objects from which on a list by label uses an index; visiting fewer takes half a millisecond. The random histories
/// of tests have few objects.
pub const INDEXED_OBJECTS_MIN: usize = if cfg!(test) { 2 } else { 1_000 };
/// Maximum number of values of one label that a list looks up in an index.
pub const INDEXED_VALUES_MAX: usize = 16;
/// The time of decoding one object, as a number of objects that could be visited in it.
pub const LIST_SCAN_DECODE: usize = 1_024;
/// Objects of a list that a webhook converts at a time. kube-apiserver converts all in one request.
pub const CONVERSION_OBJECTS: usize = 512;
/// Maximum number of objects that a list keeps once they have been selected. If there are more, the selection is repeated
/// while they are sent.
pub const LIST_KEPT: usize = 512;
/// Bytes of a response body that are encoded at a time, and bytes that may be unsent in a connection before more
/// are encoded. kube-apiserver has buffers of 4 KiB and HTTP/2 windows of up to 4 MiB.
pub const CHUNK_BYTES: usize = 16 * 1024;
pub const UNSENT_BYTES_MAX: usize = 32 * 1024;
/// Higher limits that apply while fewer than `UNSENT_TOTAL_FAST` bytes of all responses are unsent, which means that
/// clients read as fast as they are served.
pub const UNSENT_TOTAL_FAST: usize = 16 << 20;
pub const UNSENT_BYTES_FAST: usize = 512 * 1024;
/// Under the same condition, lists up to this size, such as pages of informers, are encoded completely before they are sent.
pub const WHOLE_LIST_BYTES_FAST: usize = 1 << 20;
/// Parts of stored objects from this size on are sent without a copy; smaller ones are copied into one buffer.
pub const SHARED_BYTES_MIN: usize = 8 * 1024;
/// Maximum size in bytes of a piece of a response.
pub const PIECE_BYTES_MAX: usize = 64 * 1024;
/// Time after which a connection is closed if its client reads nothing of a response; kube-apiserver's `--request-timeout`.
pub const UNREAD_RESPONSE: Duration = Duration::from_secs(60);
/// Duration from which a request is logged at level 2. kube-apiserver logs the traces of requests that take half a
/// second.
pub const SLOW_REQUEST: Duration = Duration::from_secs(1);
/// Interval at which configuration files are checked for changes.
pub const CONFIGURATION_LOOK: Duration = Duration::from_secs(1);
/// Attempts of a write whose object is changed concurrently.
pub const WRITE_RETRIES: usize = 64;
/// Evictions of a PodDisruptionBudget that may await confirmation by its controller; kube-apiserver's.
pub const DISRUPTED_PODS_MAX: usize = 2000;
/// Addresses of a range that are tried in the search for a free one; kube-apiserver tries all of them.
pub const ALLOCATION_LOOKUPS: u64 = 1 << 16;
/// Interval of the repair of the reservations of Services; kube-apiserver's.
pub const ALLOCATION_REPAIR: Duration = Duration::from_secs(3 * 60);
/// Attempts to find a free generated name.
pub const GENERATE_NAME_ATTEMPTS: usize = 8;
/// Responses from this size on are compressed.
pub const GZIP_BYTES_MIN: usize = 128 * 1024;
/// Maximum size of a kept OpenAPI v2 document as gzip; a larger one is built for each request. With 1,600 CRDs of 12 KB it
/// has 7 MB. kube-apiserver has no such limit.
pub const OPENAPI_KEPT_BYTES_MAX: usize = 40 << 20;
/// The level at which that document is compressed, once for many responses. The default level, 6, takes twice the
/// time and saves 9 %.
pub const OPENAPI_GZIP_LEVEL: u32 = 3;
/// Seconds that a read waits for a resource version that does not exist yet.
pub const FUTURE_VERSION_SECONDS: u64 = 3;
/// Objects that a deletecollection deletes concurrently if admission cannot reject a deletion: as many as have
/// `DELETE_COLLECTION_BYTES` together, within these bounds. They share a commit, and a disk syncs once for each
/// commit.
pub const DELETE_COLLECTION_PARALLEL: std::ops::RangeInclusive<usize> = 64..=512;
pub const DELETE_COLLECTION_BYTES: usize = 4 << 20;
/// Maximum number of objects that a deletecollection deletes one after the other.
pub const DELETE_IN_ORDER_MAX: usize = 32;
/// Maximum length in characters of all warnings of a response; if it is exceeded, each warning is truncated to
/// `WARNING_RUNES_EACH`.
pub const WARNING_RUNES_MAX: usize = 4096;
pub const WARNING_RUNES_EACH: usize = 256;
/// Maximum number of warnings of a response. kube-apiserver has no such limit; Python's http.client and hyper reject responses
/// with more than 100 headers.
pub const WARNINGS_MAX: usize = 80;
/// Maximum size of a frame, and of a message, from a WebSocket client. A watch ignores what its client sends.
/// kube-apiserver accepts frames of up to 32 MiB.
pub const WEBSOCKET_MESSAGE_BYTES_MAX: usize = 32 << 10;
/// Size of the buffer from which frames are read.
pub const WEBSOCKET_READ_BYTES: usize = 4 << 10;
/// Seconds that a WebSocket client has to respond to the close frame.
pub const WEBSOCKET_CLOSE_SECONDS: u64 = 5;
/// Concurrent streams of one HTTP/2 connection; kube-apiserver's.
pub const HTTP2_STREAMS_MAX: u32 = 100;
/// Time limit of the TLS handshake; kube-apiserver: 32 s.
pub const TLS_HANDSHAKE: Duration = Duration::from_secs(10);
/// Bytes that are read of a request without TLS. Unread bytes would reset the connection before the client has the
/// response.
pub const PLAIN_BYTES_MAX: u64 = 64 << 10;
/// Time between the handshake and the end of the first request's header; kube-apiserver's `ReadHeaderTimeout`.
pub const FIRST_REQUEST: Duration = Duration::from_secs(32);
/// Time after which a connection without requests is closed; kube-apiserver's `IdleTimeout`.
pub const IDLE_CONNECTION: Duration = Duration::from_secs(90);
/// Time limit for clients to close an idle connection after its graceful shutdown has begun.
pub const DRAIN: Duration = Duration::from_secs(5);
/// Maximum number of open connections, if the limit of file descriptors allows more; kube-apiserver has no limit. An idle TLS
/// connection takes about 40 KB.
pub const CONNECTIONS_MAX: usize = 32_768;
/// At the maximum, one in `EVICTED_SHARE` connections is closed, if that many are idle.
pub const EVICTED_SHARE: usize = 16;
/// One in `DESCRIPTORS_RESERVED_SHARE` file descriptors is reserved for the store, webhooks, etcd and logs.
pub const DESCRIPTORS_RESERVED_SHARE: u64 = 4;
/// Maximum number of client connections of a process that may have `descriptors` open files (`RLIMIT_NOFILE`).
pub fn connections_max(descriptors: u64) -> usize {
    let usable = descriptors - descriptors / DESCRIPTORS_RESERVED_SHARE;
    usize::try_from(usable).unwrap_or(usize::MAX).clamp(1, CONNECTIONS_MAX)
}
/// One workspace may use one in `WORKSPACE_WATCHES_SHARE` connections for watches. More would have the idle connections of other
/// clients closed.
pub const WORKSPACE_WATCHES_SHARE: usize = 2;
/// Maximum number of watches of a workspace without a limit of its own.
pub fn workspace_watches_max(descriptors: u64) -> usize {
    connections_max(descriptors).div_ceil(WORKSPACE_WATCHES_SHARE)
}
/// Time between the deletion of a namespace and the deletion of its content if other servers share the store, since
/// they learn of the deletion later. Also the time limit of writes in flight on those servers. kube-controller-manager
/// waits 5 s.
pub const NAMESPACE_GRACE: Duration = Duration::from_secs(1);
/// The same grace if a single server uses the store. It is not zero, because tests that were written for a
/// kube-apiserver without controllers finalize a namespace themselves, right after they have deleted it.
pub const FINALIZE_GRACE: Duration = Duration::from_millis(200);
/// Time between the deletion of the last instance of a CRD and the deletion of the CRD; kube-apiserver checks every 5
/// s.
pub const DEFINITION_GRACE: Duration = Duration::from_secs(1);
/// Time before the garbage collector deletes an object whose owner it has never observed; kube-controller-manager does not
/// wait, but its caches lag behind.
pub const ABSENT_OWNER_GRACE: Duration = Duration::from_secs(10);
/// Time before the garbage collector removes its finalizers from an object without dependents.
pub const NO_DEPENDENTS_GRACE: Duration = Duration::from_secs(1);
/// Time between the change of a ClusterRole and the writes to roles that aggregate it.
pub const AGGREGATION_GRACE: Duration = Duration::from_secs(2);
/// Time between the last of several changes of CRDs and the writes to their APIServices.
pub const REGISTRATION_GRACE: Duration = Duration::from_secs(1);
/// Maximum delay of the writes to APIServices while CRDs keep changing.
pub const REGISTRATION_DELAY_MAX: Duration = Duration::from_secs(10);
/// Minimum time between two creations of the ConfigMap of token tracking; kube-apiserver's.
pub const TOKEN_TRACKING_PAUSE: Duration = Duration::from_secs(1_800);
/// Maximum interval of availability checks of aggregated API servers, and the time limit of one; kube-apiserver's.
pub const REMOTE_AVAILABILITY: Duration = Duration::from_secs(30);
pub const REMOTE_CHECK: Duration = Duration::from_secs(5);
/// Maximum size of an OpenAPI document of an aggregated API server. kube-apiserver has no limit; its own document has 4 MB.
pub const REMOTE_OPENAPI_BYTES_MAX: usize = 16 << 20;
/// Time limit of requests for the OpenAPI documents of an aggregated API server; kube-apiserver's.
pub const REMOTE_OPENAPI: Duration = Duration::from_secs(60);
/// Interval of requests for the discovery and OpenAPI documents of aggregated API servers.
pub const REMOTE_DISCOVERY: Duration = Duration::from_secs(60);
/// Time before a controller retries after a failure.
pub const CONTROLLER_RETRY: Duration = Duration::from_secs(5);
/// Time between a change and the recount of the quotas of its namespace.
pub const QUOTA_GRACE: Duration = Duration::from_secs(1);
/// Interval of recounts of all quotas; kube-controller-manager's.
pub const QUOTA_RESYNC: Duration = Duration::from_secs(300);
/// Objects that the garbage collector examines concurrently.
pub const GARBAGE_PARALLEL: usize = 64;
/// Concurrent writes of a storage version migration.
pub const MIGRATION_WRITERS: usize = 16;
/// Objects of each kind that are created concurrently at the first start on a store.
pub const BOOTSTRAP_PARALLEL: usize = 8;
/// Recorded default objects that are created concurrently in a new store: some commits are enough for all of them.
pub const IMAGE_PARALLEL: usize = 64;
/// Maximum of the exponential backoff of a controller, in seconds.
pub const CONTROLLER_RETRY_SECONDS_MAX: u64 = 300;
/// Maximum time that a request waits for a seat, unless a quarter of its timeout is shorter.
pub const FLOW_WAIT_MAX: Duration = Duration::from_secs(60);
/// Time after which a write to the store that the disk has not finished is logged: a thousand times as long as usual.
pub const COMMIT_SLOW: Duration = Duration::from_secs(5);
/// Time between a fault of the store or of a watch cache and the exit of the process. Meanwhile health checks fail.
pub const FAULT_GRACE: Duration = Duration::from_secs(30);
/// Interval of checks for faults of the store and of watch caches.
pub const FAULT_LOOK: Duration = Duration::from_secs(1);
/// Interval of compactions of an embedded store.
pub const COMPACTION: Duration = Duration::from_secs(60);
/// Bytes by which the files of an embedded store grow before it is compacted again.
pub const COMPACTION_GROWTH_BYTES: u64 = 32 << 20;
/// Looks that are remembered: those of an hour.
pub const HISTORY_LOOKS_MAX: usize = 720;
/// Interval of looks at the age and the size of history: much shorter than the time that it is kept.
pub const HISTORY_LOOK: Duration = Duration::from_secs(5);
/// After which time changed objects of API priority and fairness are restored; kube-apiserver does it every minute.
pub const FLOW_RESTORATION: Duration = Duration::from_secs(60);
/// Interval of checks of the objects of the control plane; kube-apiserver's.
pub const CONTROL_PLANE_LOOK: Duration = Duration::from_secs(10);
/// Duration of the Lease of a server in seconds; kube-apiserver's.
pub const IDENTITY_LEASE_SECONDS: i64 = 3600;
/// Number of checks of the control plane between renewals of a server's Lease. kube-apiserver renews it at every check;
/// here an idle server should not write every ten seconds.
pub const IDENTITY_LEASE_LOOKS: u32 = 60;
/// The Lease of the controllers: its duration, the time limit of its renewal, and the interval of attempts;
/// kube-controller-manager's.
pub const LEASE: Duration = Duration::from_secs(15);
pub const LEASE_RENEW: Duration = Duration::from_secs(10);
pub const LEASE_RETRY: Duration = Duration::from_secs(2);
/// Maximum size in bytes of a body that is processed on an async worker thread, in about a millisecond. For larger ones,
/// the worker's other tasks are moved to another thread first.
pub const INLINE_BYTES_MAX: usize = 64 << 10;
/// Seconds that a migration waits, after its creation, for its resource to be served; kube-controller-manager's.
pub const MIGRATION_PATIENCE_SECONDS: i64 = 60;
/// Number of write conflicts on one object after which the garbage collector backs off.
pub const GARBAGE_CONFLICTS_MAX: u32 = 8;
/// Maximum number of types that a policy is checked against; kube-controller-manager's.
pub const CHECKED_TYPES_MAX: usize = 10;
/// Aggregated API servers that are checked concurrently; kube-apiserver: 5.
pub const AVAILABILITY_PARALLEL: usize = 8;
/// Minimum interval of the availability checks while a server is unavailable; it is doubled after each failure.
pub const AVAILABILITY_PAUSE_MIN: Duration = Duration::from_secs(1);
/// Concurrent requests of one check, one of which has to succeed; kube-apiserver's.
pub const AVAILABILITY_ATTEMPTS: usize = 5;
/// Bytes by which the output buffer of gzip grows.
pub const GZIP_ROOM_BYTES: usize = 16 * 1024;
/// Maximum number of writes that establish a CRD; each changes its accepted names or one condition.
pub const NAMING_ROUNDS_MAX: usize = 16;
/// Interval of bookmarks of a watch without events, in seconds; kube-apiserver's.
pub const BOOKMARK_SECONDS: u64 = 60;
/// Seconds before the end of a watch at which a last bookmark is sent; kube-apiserver's.
pub const LAST_BOOKMARK_SECONDS: u64 = 2;
/// Size in bytes of a piece of an OpenAPI document. Pieces are freed one by one as they are copied.
pub const OPENAPI_PIECE_BYTES: usize = 1 << 20;
/// Concurrent writes of an import, which share an fsync.
pub const IMPORT_PARALLEL: usize = 64;
/// Timeout in seconds for connections to kubelets and Pods; kube-apiserver's for kubelets.
pub const DIAL_SECONDS: u64 = 5;
/// Time after its last request at which the context of a workspace is dropped: long enough for the pauses of a test, short enough
/// that thousands of workspaces that were used once do not stay in memory.
pub const WORKSPACE_IDLE: Duration = Duration::from_secs(60);
/// The burst of writes of a workspace, as a time at its limit: enough to install an operator, and as long as a
/// client waits for a response.
pub const WORKSPACE_WRITE_BURST: Duration = Duration::from_secs(10);
/// Interval of the search for contexts to drop.
pub const WORKSPACE_SWEEP: Duration = Duration::from_secs(30);
/// Time that requests to a workspace wait for its copy, in a shared store. As long as a server waits for another one's writes.
pub const WORKSPACE_COPY_WAIT: Duration = Duration::from_secs(10);
/// Copies that are made at a time in a shared store, so that a large one holds up few others, and etcd has room for other writes.
pub const WORKSPACE_COPIES: usize = 4;
/// Pause before a copy is tried again.
pub const WORKSPACE_COPY_RETRY: Duration = Duration::from_secs(1);
/// Attempts that a healthy store refuses before a workspace has failed.
pub const WORKSPACE_COPY_ATTEMPTS: usize = 5;
/// Size up to which a Lease is renewed in a workspace that has reached its limit.
pub const LEASE_BYTES: usize = 2048;
/// Values of a workspace that are encrypted and written again at a time, so that they share syncs and hold up few other writes.
pub const REWRITES_AT_A_TIME: usize = 256;
/// Maximum size of the specification of a workspace that is requested without an object. Its fields are short.
pub const WORKSPACE_SPEC_BYTES: usize = 64 * 1024;
/// Bytes at the beginning of a response of which a fault sends half.
pub const CUT_BYTES_MAX: usize = 1 << 20;
/// Time for that half to be sent before the connection ends.
pub const CUT_PAUSE: Duration = Duration::from_millis(20);
/// Number of hits, the last ones, that the status of a fault shows.
pub const FAULT_HITS_SHOWN: usize = 10;
/// Number of counters of a fault, for each client, verb and object, and of those that further ones share.
pub const FAULT_COUNTS_MAX: usize = 100_000;
pub const FAULT_COUNTS_SHARED: u64 = 1_024;
/// How long a watch is silent before it ends with the recipe `missed-events`.
pub const RECIPE_OUTAGE: Duration = Duration::from_secs(1);
/// How far caches and watches lag behind with the recipe `stale-reads`.
pub const RECIPE_LAG: Duration = Duration::from_secs(2);
/// Held events of a watch, beyond which it ends with 410. Releasing all of them one by one takes time quadratic in
/// their number, some milliseconds here.
pub const HELD_EVENTS_MAX: usize = 4_000;
/// How long a reordered event waits for the next one.
pub const FAULT_REORDER: Duration = Duration::from_secs(1);
/// The precision of caches that lag behind by a time, and the number of revisions that are remembered for them.
pub const FAULT_AGE_STEP: Duration = Duration::from_millis(10);
pub const FAULT_AGES_MAX: usize = 60_000;
/// Interval of writes of the status of a fault or gate.
pub const FAULT_STATUS: Duration = Duration::from_millis(200);
/// How long a client is expected to repeat a request that a fault has made fail, if the response does not say. client-go's
/// informers pause for at most 1.6 s after the first failure and 3.2 s after the second.
pub const FAULT_REPEAT: Duration = Duration::from_secs(4);
/// Number of such requests that are remembered.
pub const FAULT_REPEATS_MAX: usize = 10_000;
/// Cost of the expression of a trigger, in CEL's units. It is evaluated where writes wait, so it ends within about a millisecond.
pub const FAULT_TRIGGER_COST_MAX: u64 = 20_000;
/// Interval of looks at the watches while a client waits until they have received every event.
pub const SETTLE_LOOK: Duration = Duration::from_millis(1);
/// Number of watches and requests that the status of such a wait names.
pub const SETTLE_NAMED: usize = 20;
/// Bounds of a report: bytes in all, user agents, users of each, and items of each list, such as objects with findings.
pub const REPORT_BYTES: usize = 8 << 20;
pub const REPORT_AGENTS_MAX: usize = 64;
pub const REPORT_USERS_MAX: usize = 16;
pub const REPORT_ITEMS_MAX: usize = 1_000;
/// The writes that a report lists, and the bytes of the message of each.
pub const REPORT_WRITES_MAX: usize = 20_000;
pub const REPORT_MESSAGE_BYTES: usize = 1_024;
/// Bytes of a user agent in a report, and of the name of a role in it.
pub const REPORT_AGENT_BYTES: usize = 128;
pub const REPORT_ROLE_NAME_BYTES: usize = 63;
/// Bounds of a recording: bytes of requests and responses, and the number of requests.
pub const RECORDED_BYTES: usize = 64 << 20;
pub const RECORDED_REQUESTS: usize = 100_000;
/// A client is in a hot loop if it reads or writes one object more often than this within this time. By default,
/// client-go sends at most 5 requests a second.
pub const HOT_LOOP: Duration = Duration::from_secs(3);
pub const HOT_LOOP_PER_SECOND: u64 = 10;
/// A client lists too often if it lists the same whole resource more often than this within this time.
pub const LIST_STORM: Duration = Duration::from_secs(60);
pub const LIST_STORM_MAX: u64 = 10;
/// Tasks that evaluate the rules of Progress objects in one API.
pub const PROGRESS_WORKERS: usize = 8;
/// Cost of one expression of a Progress, in CEL's units: that of kube-apiserver for the expressions of policies.
pub const PROGRESS_COST_MAX: u64 = cel::rules::CALL_COST_MAX;
/// Cost of an expression of a Progress from which on its rules are evaluated beside the workers of requests: a millisecond, or two.
pub const PROGRESS_INLINE_COST: u64 = 20_000;
/// Objects that an expression of a Progress may create, apply, patch or delete at a time.
pub const PROGRESS_OBJECTS_MAX: usize = 1_000;
/// A rule is stopped for an object for which it has written so often without the engine coming to rest. A large rollout writes a
/// few times for each Pod.
pub const PROGRESS_REPEATS_MAX: u32 = 3_000;
/// Time after which a rule whose write was refused is evaluated again, in microseconds.
pub const PROGRESS_RETRY_MICROS: i64 = 5_000_000;
/// Interval of writes of the status of a Progress.
pub const PROGRESS_STATUS: Duration = Duration::from_millis(500);
/// Kinds in a chain in which each owns the objects of the one before.
pub const PROGRESS_RANKS: usize = 8;
