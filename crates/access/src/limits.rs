//! Bounds of access control. Where kube-apiserver has the same bound, its value stands here.

use std::time::Duration;

/// CEL cost of all match conditions of a webhook or policy.
pub const MATCH_CONDITIONS_COST_MAX: u64 = 2_500_000;
/// Tokens of ServiceAccounts whose signature is remembered.
pub const VERIFIED_TOKENS_MAX: usize = 4096;
/// Events of the audit log that may wait to be written.
pub const AUDIT_BUFFER_EVENTS: usize = 10_000;
/// Requests slower than this have latency annotations in their audit events, in nanoseconds.
pub const AUDIT_SLOW_NANOS: i64 = 500_000_000;
/// Bytes of a User-Agent that the audit log keeps.
pub const AUDIT_AGENT_BYTES_MAX: usize = 1024;
/// Users whose way to act as others is remembered; upstream's.
pub const IMPERSONATORS_MAX: usize = 10_000;
/// What passes at least between two looks at the keys of an issuer.
pub const ISSUER_KEYS_PAUSE: Duration = Duration::from_secs(1);
