//! Bounds of outgoing calls, traces and requests. Where kube-apiserver has the same bound, its value stands here.

use std::time::Duration;

/// Connections to one webhook that are kept for later calls.
pub const WEBHOOK_IDLE_CONNECTIONS: usize = 32;
/// Bytes of a webhook's response.
pub const WEBHOOK_RESPONSE_BYTES_MAX: usize = 64 << 20;
/// Runes of a webhook's error that are reported.
pub const WEBHOOK_ERROR_RUNES_MAX: usize = 2_048;
/// Bytes of a field manager's name.
pub const FIELD_MANAGER_BYTES_MAX: usize = 128;
/// How long a call to a server outside may take: webhooks of authentication, authorization and audit, keys of issuers.
pub const REMOTE_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a call to a server outside is made, with a pause between that grows by half each time; upstream's.
pub const REMOTE_TRIES: u32 = 5;
pub const REMOTE_PAUSE: Duration = Duration::from_millis(500);
/// Cached responses of authentication and of authorization webhooks, each.
pub const CACHED_RESPONSES_MAX: usize = 4096;
/// Spans of traces that may wait to be sent, that one call sends, and what passes between calls; upstream's.
pub const TRACE_QUEUE_SPANS: usize = 2_048;
pub const TRACE_BATCH_SPANS: usize = 512;
pub const TRACE_PAUSE: Duration = Duration::from_secs(5);
pub const TRACE_TIMEOUT: Duration = Duration::from_secs(10);
/// Runes of a text in a span.
pub const TRACE_TEXT_RUNES_MAX: usize = 1_024;
/// Stack of a worker thread: values may nest 10,000 levels deep.
pub const WORKER_STACK_BYTES: usize = 64 << 20;
/// Time that [`task::give_way`](crate::task::give_way) waits for another thread to take over. Ours: longer than the
/// start of a parked thread.
pub const HAND_OVER: Duration = Duration::from_micros(50);
