//! Bounds of access control. "kube-apiserver's" marks the values that kube-apiserver has, too.

use std::time::Duration;

/// CEL cost of all match conditions of a webhook or policy; kube-apiserver's.
pub const MATCH_CONDITIONS_COST_MAX: u64 = 2_500_000;
/// Tokens of ServiceAccounts whose verified claims are cached, so that a client pays for one signature and not for one per
/// request: about a kilobyte each.
pub const VERIFIED_TOKENS_MAX: usize = 4096;
/// Events of the audit log that may wait to be written; kube-apiserver's.
pub const AUDIT_BUFFER_EVENTS: usize = 10_000;
/// Requests slower than this have latency annotations in their audit events, in nanoseconds; kube-apiserver's.
pub const AUDIT_SLOW_NANOS: i64 = 500_000_000;
/// Bytes of a User-Agent that are recorded in audit events; kube-apiserver's.
pub const AUDIT_AGENT_BYTES_MAX: usize = 1024;
/// Users whose last mode of impersonation is cached; kube-apiserver's.
pub const IMPERSONATORS_MAX: usize = 10_000;
/// Minimum time between two reads of the keys of an issuer, which tokens with unknown keys cause: any client can send those.
pub const ISSUER_KEYS_PAUSE: Duration = Duration::from_secs(1);
/// From this number of groups or values on, a check of `*` precedes the checks of the single ones; kube-apiserver's.
pub const IMPERSONATED_TOGETHER: usize = 4;
/// Time limit that an authorization webhook may be given; kube-apiserver's.
pub const AUTHORIZER_TIMEOUT_MAX: Duration = Duration::from_secs(30);
/// Bytes of a review whose response is cached; kube-apiserver's.
pub const REMEMBERED_BYTES_MAX: usize = 10_000;
/// Interval at which directories of manifests are checked for changes. kube-apiserver is notified by the file system
/// instead, and also checks every minute.
pub const MANIFESTS_LOOK: Duration = Duration::from_secs(1);
/// Seconds by which the clock of an issuer may be ahead; kube-apiserver's.
pub const NOT_BEFORE_LEEWAY: i64 = 300;
/// Seconds by which clocks may differ, and for which tokens of a deleted object stay valid; kube-apiserver's.
pub const ACCOUNT_LEEWAY: i64 = 60;
/// Age in seconds up to which a token may be for an object that another server has just created, and whose change has still to
/// arrive: some multiple of how far a server may be behind and clocks apart.
pub const ACCOUNT_NEW: u64 = 60;
/// Lifetime of the tokens that admission adds to Pods, in seconds; kube-apiserver's. The odd number marks these tokens
/// for [`EXTENDED_SECONDS`].
pub const INJECTED_SECONDS: i64 = 3607;
/// Lifetime in seconds that those tokens get instead, so that clients which read the file only once go on working;
/// kube-apiserver's.
pub const EXTENDED_SECONDS: i64 = 365 * 24 * 3600;
/// Checks for an object that a plugin awaits, such as the default ServiceAccount of a new namespace; kube-apiserver's.
pub const AWAITED_CHECKS: usize = 10;
/// Pods of a namespace that are checked when its Pod Security Standard changes; kube-apiserver's.
pub const POD_SECURITY_PODS_MAX: usize = 3000;
/// Bytes of the parts, each of which grants one verb on one resource or URL, that a role's rules may be split into when they
/// are compared with those of the user who grants them.
pub const RULE_PARTS_BYTES_MAX: usize = 8 << 20;
/// Bytes that count for each part in addition to its texts: about what it adds to the message that lists missing parts.
pub const RULE_PART_BYTES: usize = 64;
/// Distinct rules of a user that such a comparison indexes, cluster-wide ones first; about 500 bytes each.
pub const OWNED_RULES_MAX: usize = 100_000;
/// Items of rules that such a comparison looks up, about a second. kube-apiserver compares each rule with each other one.
pub const RULE_LOOKUPS_MAX: usize = 20_000_000;
/// Bytes of the rules that a SelfSubjectRulesReview lists; kube-apiserver has no limit. It is twice the largest role.
pub const LISTED_RULES_BYTES_MAX: usize = 3 << 20;
/// The least number of shares that the seats of a pool are divided into. No API takes more than one of them, so that a
/// request to another API waits for the processor behind few requests.
pub const POOL_SHARES_MIN: usize = 8;
