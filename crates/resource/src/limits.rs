//! Bounds of the model of resources. Where kube-apiserver has the same bound, its value stands here.

/// Bytes of objects that a webhook converts in one call, unless one object has more; kube-apiserver converts the
/// objects that it reads one by one.
pub const CONVERSION_BYTES: usize = 4 << 20;
/// Seconds that a conversion may take.
pub const CONVERSION_SECONDS: u64 = 30;
/// Unreadable objects that the error of a list names, as kube-apiserver's.
pub const CORRUPT_OBJECTS_REPORTED: usize = 100;
