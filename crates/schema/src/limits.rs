//! Limits of this crate. A limit that Kubernetes has too has its value, as noted; others limit memory or stack.

use machinery::value::PATHS_BYTES_MAX;

/// The least number of bytes that an error about a list counts as, which bounds how many are reported.
pub(crate) const ERROR_BYTES_MIN: usize = 100;

/// Bytes of the schema errors that are kept for one object; the last error may exceed this. Each error has the value,
/// which may be as large as the request; Kubernetes reports them all.
pub(crate) const ERRORS_BYTES_MAX: usize = 4 << 20;

/// Bytes of the conflicts of an apply, in the message and in the causes together. Further conflicts are only counted;
/// Kubernetes reports them all.
pub(crate) const CONFLICTS_BYTES_MAX: usize = PATHS_BYTES_MAX;

/// In how many versions the field manager keeps an object. If the entries of managedFields have more, the object is
/// converted again each time, which bounds memory.
pub(crate) const RENDITIONS_MAX: usize = 4;

/// Sets of managedFields that are kept decoded for each version of a resource, and the bytes of the longest, which bounds
/// memory: decoded, a set takes some four times its bytes.
pub(crate) const KNOWN_SETS_MAX: usize = 16;
pub(crate) const KNOWN_SET_BYTES_MAX: usize = 8 * 1024;

/// Type errors of an object that are kept to find the first one in the document, which bounds memory.
pub(crate) const TYPE_ERRORS_MAX: usize = 10_000;

/// Bytes of all annotations of an object together; the value of Kubernetes.
pub const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// Bytes of the name of a field manager; the value of Kubernetes.
pub(crate) const MANAGER_BYTES_MAX: usize = 128;

/// Bytes of the name of a subresource in managedFields; the value of Kubernetes.
pub(crate) const SUBRESOURCE_BYTES_MAX: usize = 256;

/// Selectable fields of a version; the value of Kubernetes.
pub const SELECTABLE_FIELDS_MAX: usize = 8;

/// Entries of updates in managedFields. Further ones are merged into `ancient-changes`. The value of Kubernetes.
pub const UPDATE_ENTRIES_MAX: usize = 10;

/// Server-side apply treats nodes of a schema below this depth as untyped, which bounds the stack.
pub(crate) const TYPE_DEPTH_MAX: usize = 500;

/// Bytes that defaults may add to an object, as JSON: twice what can be stored (1.5 MiB in kube-apiserver), since not
/// all of it need be; Kubernetes adds them all, and then fails to store the object.
pub const DEFAULTED_BYTES_MAX: usize = 2 * 1536 * 1024;

/// How often the schema of a Go struct contains itself. Deeper values are not described, which no valid object has:
/// kube-apiserver refuses Workloads with more than four levels of templates.
pub(crate) const LEVELS_MAX: usize = 5;
