//! Every bound of the crate: the value of Kubernetes 1.35, Go or cel-go where they have one, otherwise with the reason.

/// Values in the JSON of an expression's result; 16 bytes of text count as one more. Lists share their items, so without
/// it a short expression can produce immense JSON.
pub(crate) const NATIVE_VALUES_MAX: u32 = 4_000_000;

/// Values in the JSON of an operand of a comparison, for the reason of [`NATIVE_VALUES_MAX`].
pub(crate) const JSON_VALUES_MAX: u32 = 4_000_000;

/// Units of work that one evaluation may take: about a quarter of a second. Costs do not count all
/// work, such as that of comparing values.
pub(crate) const EVALUATION_UNITS: u64 = 1 << 28;

/// Units of work that the rules of one object may take together: about a second, the time that one
/// request may keep a core from the others.
pub(crate) const OBJECT_WORK_UNITS: u64 = 4 * EVALUATION_UNITS;

/// Nesting depth of constructed values. The functions that walk and drop them call themselves, and the stack of a thread
/// suffices for this depth.
pub(crate) const NESTING_MAX: u32 = 1_000;

/// Items of a list that one call may create: tens of megabytes of memory.
pub(crate) const LIST_ITEMS_MAX: i64 = 1_000_000;

/// Bytes of a string that one call may create, which bound memory; the strings of all calls of an evaluation are bounded by
/// [`EVALUATION_UNITS`].
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 20;

/// Precision in `format`. Each digit takes memory, and a float has no more than 1,074 decimal places.
pub(crate) const PRECISION_MAX: usize = 1000;

/// Bounds that are suggested for one expression; more would not help its reader.
pub(crate) const EXPLAINED_BOUNDS_MAX: usize = 8;

/// Pieces of an expression whose costs are explained; more would not help its reader.
pub(crate) const EXPLAINED_PARTS_MAX: usize = 32;

/// Parts of an expression whose values are traced; more would not help its reader.
pub const TRACED_PARTS_MAX: usize = 200;

/// Items of a loop whose body is traced.
pub(crate) const TRACED_ITEMS_MAX: usize = 10;

/// Cost of one evaluation of a rule, in cost units; the value of Kubernetes (`PerCallLimit`).
pub const CALL_COST_MAX: u64 = 1_000_000;

/// Cost of all evaluations of one validation of an object, in cost units; the value of Kubernetes
/// (`RuntimeCELCostBudget`).
pub const OBJECT_COST_MAX: u64 = 10_000_000;

/// Estimated cost of one expression times the values that it may be evaluated for, in cost units; the value of Kubernetes.
pub const EXPRESSION_COST_MAX: u64 = 10_000_000;

/// Estimated cost of all expressions of one schema, in cost units; the value of Kubernetes.
pub const DEFINITION_COST_MAX: u64 = 100_000_000;

/// Bytes of the result of a message expression; the value of Kubernetes.
pub const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// Bytes of a request, which bound sizes that the schema does not; the value of Kubernetes.
pub(crate) const REQUEST_BYTES_MAX: i64 = 3 << 20;

/// Characters of an object's name, which bound the costs of rules over it; the value of Kubernetes (`nameMaxLength`).
pub(crate) const NAME_LENGTH_MAX: i64 = 253;

/// Expressions may nest this deep; the value of cel-go.
pub const PARSE_DEPTH_MAX: u32 = 250;

/// Code points of an expression; the value of cel-go.
pub const EXPRESSION_CODE_POINTS_MAX: usize = 100_000;

/// Nodes of a tree. Macros copy their target, so without it a short text can become an immense tree.
pub const NODES_MAX: usize = 200_000;

/// Syntax errors that are reported of one expression; the value of cel-go.
pub(crate) const SYNTAX_ERRORS_MAX: usize = 100;

/// Recoveries of the parser from syntax errors; the value of cel-go.
pub(crate) const RECOVERIES_MAX: usize = 30;

/// Tokens that the parser skips to recover from a syntax error; the value of cel-go.
pub(crate) const SKIPPED_TOKENS_MAX: usize = 256;

/// Visits to states of a pattern in one match, which take about two seconds. Go has no such bound, although its
/// matches are as slow.
pub(crate) const VISITS_MAX: u64 = 1 << 26;

/// Visits of all matches within one [`crate::bounded_patterns`], such as the matches of all patterns in an object's
/// schema: some seconds for a write that takes a turn of its own.
pub(crate) const OBJECT_VISITS_MAX: u64 = 2 * VISITS_MAX;

/// Visits between two calls of the interrupt: a few milliseconds, by which a request may exceed its deadline.
pub(crate) const CHECK_VISITS: u64 = 1 << 17;

/// States of an automaton whose matches are not counted: a megabyte is matched within a second, less than
/// counting would cost.
pub(crate) const UNCOUNTED_STATES_MAX: usize = 256;

/// Bytes of the automaton of a pattern; larger ones are matched step by step. Automata are kept as long as their
/// schema, so that a definition with many patterns keeps much memory.
pub(crate) const AUTOMATON_BYTES_MAX: usize = 1 << 20;

/// Patterns may nest this deep; the value of Go.
pub(crate) const REGEX_HEIGHT_MAX: u32 = 1000;

/// Repetitions that a pattern may ask for; the value of Go.
pub(crate) const REGEX_REPEAT_MAX: u32 = 1000;

/// Instructions of a pattern; the value of Go: 128 MB of 40 bytes each.
pub(crate) const REGEX_SIZE_MAX: u64 = (128 << 20) / 40;

/// Transitions of a time zone that the search for the next time of a schedule passes: two a year, for longer than it looks ahead.
pub(crate) const TRANSITIONS_MAX: usize = 16;
