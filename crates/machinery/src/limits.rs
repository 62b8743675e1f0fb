//! All bounds of this crate. Where Kubernetes 1.35 has the same bound, it has the same value.

/// Containers of JSON may nest this deep; the value of `encoding/json`.
pub const JSON_DEPTH_MAX: usize = 10_000;

/// Units of work between two calls of the interrupt: about a millisecond.
pub(crate) const INTERRUPT_UNITS: u64 = 1 << 20;

/// Strict decoding errors that are reported of one body; the value of Kubernetes.
pub const STRICT_ERRORS_MAX: usize = 100;

/// Bytes of all paths that are reported for one body. A body of 3 MiB only exceeds this if many keys share long paths;
/// further paths are left out; Kubernetes has no bound.
pub const PATHS_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Values nest at most this deep where an encoded object is walked without being decoded: only metadata is walked.
pub(crate) const SKIM_DEPTH_MAX: usize = 64;

/// Collections of YAML may nest this deep, in brackets or by indentation; the value of go-yaml.
pub const YAML_DEPTH_MAX: usize = 10_000;

/// Characters of a key without `?`, which must also end on its line; the value of YAML 1.1.
pub(crate) const SIMPLE_KEY_CHARACTERS_MAX: usize = 1024;

/// Digits of each part of the version in `%YAML`; the value of go-yaml.
pub(crate) const VERSION_DIGITS_MAX: usize = 2;

/// Bytes of a key of JSON that YAML certainly takes for a key: less than [`SIMPLE_KEY_CHARACTERS_MAX`].
pub(crate) const PLAIN_JSON_KEY_BYTES_MAX: usize = 1_000;

/// Bytes that aliases may add to a document: eight times the body of a request, since more could not be stored; go-yaml
/// only bounds the number of nodes.
pub const ALIASED_BYTES_MAX: usize = 8 * 3 * 1024 * 1024;

/// Up to this many nodes, [`ALIASED_SHARE_FEW`] of them may come from aliases; from [`ALIASED_NODES_MANY`] on,
/// [`ALIASED_SHARE_MANY`]; in between the share falls evenly. Values of go-yaml v2.
pub(crate) const ALIASED_NODES_FEW: usize = 400_000;

/// See [`ALIASED_NODES_FEW`].
pub(crate) const ALIASED_NODES_MANY: usize = 4_000_000;

/// See [`ALIASED_NODES_FEW`].
pub(crate) const ALIASED_SHARE_FEW: f64 = 0.99;

/// See [`ALIASED_NODES_FEW`].
pub(crate) const ALIASED_SHARE_MANY: f64 = 0.10;

/// Documents with fewer nodes may have any share of aliases. Value of go-yaml v2.
pub(crate) const ALIASED_OF_NODES_MIN: usize = 1_000;

/// Documents with fewer nodes from aliases may have any share of them. Value of go-yaml v2.
pub(crate) const ALIASED_NODES_MIN: usize = 100;

/// Protobuf messages may nest this deep: no built-in kind nests deeper.
pub(crate) const PROTOBUF_DEPTH_MAX: usize = 512;

/// Quantities whose exponents differ by at most this many decimal digits are added exactly, which bounds the memory of the sum.
pub(crate) const QUANTITY_DIGITS_APART_MAX: u32 = 1024;

/// Filters may nest this deep, which bounds the stack.
pub(crate) const JSONPATH_DEPTH_MAX: usize = 64;

/// Values that one step of a path finds; the rest is left out: only the first value of a path is shown.
pub(crate) const JSONPATH_VALUES_MAX: usize = 5_000;

/// Values that the evaluation of one path visits: this takes less than a millisecond, where paths with unions and
/// recursive steps could take years.
pub(crate) const JSONPATH_VISITS_MAX: usize = 20_000;

/// Values that the cells of one row visit together: some milliseconds.
pub(crate) const ROW_VISITS_MAX: usize = 200_000;

/// Operations of one JSON patch; the value of Kubernetes.
pub const OPERATIONS_MAX: usize = 10_000;

/// Bytes that the `copy` operations of one JSON patch may add together; the value of Kubernetes.
pub const COPY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Items of a list and of its patch that a strategic merge compares, each with all others; Kubernetes has no bound.
pub(crate) const MERGED_LIST_ITEMS_MAX: usize = 4_000;

/// Steps of a path of a JSON patch that are followed to show values as they were written: no built-in type nests
/// deeper.
pub(crate) const RAW_STEPS_MAX: usize = 64;

/// Days that are searched for the next time of a cron expression; robfig/cron searches five years.
pub(crate) const SCHEDULE_DAYS_AHEAD: usize = 5 * 366;
