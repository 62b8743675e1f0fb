//! Bounds of the model of resources. Where kube-apiserver has the same bound, its value stands here.

/// Match conditions of a webhook.
pub const MATCH_CONDITIONS_MAX: usize = 64;
/// Seconds that a conversion may take.
pub const CONVERSION_SECONDS: u64 = 30;
/// Unreadable objects that the error of a list names, as kube-apiserver's.
pub const CORRUPT_OBJECTS_REPORTED: usize = 100;
