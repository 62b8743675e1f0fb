//! Bounds of outgoing calls, traces and requests. Where kube-apiserver has the same bound, it is the same value.

use std::time::Duration;

/// Names whose sequences of seeded values are remembered, in a workspace whose Clock has a seed.
pub const SEEDED_NAMES_MAX: usize = 100_000;
/// Idle connections that are kept per webhook.
pub const WEBHOOK_IDLE_CONNECTIONS: usize = 32;
/// Greatest size of a webhook's response.
pub const WEBHOOK_RESPONSE_BYTES_MAX: usize = 64 << 20;
/// Greatest size of a response that is decoded on the async worker. It also bounds what is decoded as YAML if it is not
/// JSON, which affects only the text of the error.
pub const WEBHOOK_INLINE_BYTES_MAX: usize = 64 << 10;
/// Characters of a webhook's error that are reported.
pub const WEBHOOK_ERROR_RUNES_MAX: usize = 2_048;
/// Greatest length of a field manager's name.
pub const FIELD_MANAGER_BYTES_MAX: usize = 128;
/// Timeout of calls to configured servers: webhooks for authentication, authorization and audit, and keys of issuers.
pub const REMOTE_TIMEOUT: Duration = Duration::from_secs(30);
/// Attempts of a call to a configured server; upstream's.
pub const REMOTE_TRIES: u32 = 5;
/// Pause before the second attempt, which grows by half with each further one; upstream's.
pub const REMOTE_PAUSE: Duration = Duration::from_millis(500);
/// Cached responses of all authentication webhooks, and of all authorization webhooks.
pub const CACHED_RESPONSES_MAX: usize = 4096;
/// Spans that may wait for their export; upstream's.
pub const TRACE_QUEUE_SPANS: usize = 2_048;
/// Spans of one export call; upstream's.
pub const TRACE_BATCH_SPANS: usize = 512;
/// Greatest interval between exports; upstream's.
pub const TRACE_PAUSE: Duration = Duration::from_secs(5);
/// Timeout of an export call; upstream's.
pub const TRACE_TIMEOUT: Duration = Duration::from_secs(10);
/// Characters of an attribute of a span.
pub const TRACE_TEXT_RUNES_MAX: usize = 1_024;
/// Stack of a worker thread: values may nest 10,000 levels deep.
pub const WORKER_STACK_BYTES: usize = 64 << 20;
/// Shortest interval at which a computation gives way: giving way takes at most a twentieth of the time.
pub const GIVE_WAY_INTERVAL: Duration = Duration::from_millis(1);
/// Users who may have a turn of [`deadline::beside_others`](crate::deadline::beside_others) beyond the turns that all share.
/// Each is a thread that computes; kube-apiserver has no limit.
pub const OWN_TURNS_MAX: usize = 64;
/// Time that [`task::give_way`](crate::task::give_way) waits for another thread to take over: longer than the start of
/// a parked thread.
pub const HAND_OVER: Duration = Duration::from_micros(50);
/// Time between two log lines about failures with the same name.
pub const NOTICE_PAUSE: Duration = Duration::from_secs(10);
/// Names of failures of one kind that are counted separately: more than there are webhooks and issuers.
pub const NOTICE_NAMES_MAX: usize = 1_000;
