//! Bounds of the objects of built-in kinds. Where kube-apiserver has the same bound, its value stands here.

/// Match conditions of a webhook.
pub const MATCH_CONDITIONS_MAX: usize = 64;
/// Audit annotations of a policy; kube-apiserver's.
pub const AUDIT_ANNOTATIONS_MAX: usize = 20;
/// Bytes of `reason`, `action` and `reportingInstance` of an Event; kube-apiserver's.
pub const EVENT_TEXT_BYTES_MAX: usize = 128;
/// Bytes of the note of an Event; kube-apiserver's.
pub const EVENT_NOTE_BYTES_MAX: usize = 1024;
/// Seconds of a webhook's `timeoutSeconds`; kube-apiserver's.
pub const WEBHOOK_SECONDS_MAX: i64 = 30;
/// Bytes of all values of a ConfigMap or Secret; kube-apiserver's.
pub const DATA_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a list or a name that the errors of one object repeat, such as the versions of a StorageVersion, or the
/// claims and the name of a Pod; kube-apiserver repeats all of it in each error.
pub const REPEATED_BYTES_MAX: usize = 1 << 20;
/// Bounds of the seconds that a token is requested for; kube-apiserver's.
pub const TOKEN_SECONDS_MIN: i64 = 10 * 60;
pub const TOKEN_SECONDS_MAX: i64 = 1 << 32;
/// Warnings after which no further pairs of ports or paths of a Pod are compared; kube-apiserver compares all
/// pairs, but sends fewer warnings.
pub const WARNINGS_MAX: usize = 1000;
/// Errors about one list of `HOST:PORT` pairs, each of which repeats the list; kube-apiserver has one for each pair.
pub const HOST_PORTS_REPORTED: usize = 16;
/// Characters of an object without a type that the error about its file repeats; kube-apiserver repeats all.
pub const MANIFEST_EXCERPT_MAX: usize = 100;
