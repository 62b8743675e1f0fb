//! The table of costs: for each function, the formula of the estimate, the size of the result, and the charge at run time.
//!
//! The numbers are those of Kubernetes, which accepts or rejects rules by them. Every overload has a row, its own or that of
//! its function; those of [`NOMINAL`] cost 1 and return a value of unknown size.

use Operand::{First, Receiver, Second};

/// Cost of one step through a string: a tenth for each character.
pub(crate) const STRING_FACTOR: f64 = 0.1;
/// Cost of a character of a pattern.
pub(crate) const REGEX_FACTOR: f64 = 0.25;
/// Cost of allocating a list: the list itself and the call that makes it.
pub(crate) const LIST_COST: u64 = 11;

/// A size that a formula refers to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operand {
    /// The receiver of the function.
    Receiver,
    /// The first argument after the receiver.
    First,
    Second,
    /// The result, whose size is computed first.
    Result,
}

/// The formula of the estimated cost of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CostFormula {
    Fixed(u64),
    /// The first operand, and perhaps the second.
    ShortCircuit,
    /// The condition and one of the branches.
    Branches,
    /// A factor of one size.
    Scaled(Operand, f64),
    /// A factor of one size, rounded up, times another factor.
    ScaledTwice(Operand, f64, f64),
    /// A factor of the product of two sizes, and one.
    Product(Operand, Operand, f64),
    /// A factor of the size of the result, and the allocation of a list.
    NewList(f64),
    /// The receiver once per level that is flattened, and the allocation of a list.
    Flattening,
    /// A string searched with a regular expression: both operands.
    Matching(Operand, Operand),
    /// A string searched for another.
    Containment,
    /// The shorter of two values.
    Comparison,
    /// By the types of both sides: constant for most opaque types, else like a comparison.
    Equality,
    /// Every item of the receiver.
    Traversal,
    /// Parsing a selector and checking each requirement.
    Selector,
    /// Addresses compared byte by byte; the argument is parsed first if it is `text`.
    Addresses {
        prefixes: bool,
        text: bool,
    },
}

/// The formula of the size of a result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Size {
    Unknown,
    Same(Operand),
    /// At most that of the operand.
    UpTo(Operand),
    /// The square of the size.
    Squared(Operand),
    /// The size of one of the last two operands.
    Either,
    /// The last two operands together.
    Sum,
    /// Bytes of UTF-8 for code points: one to four each.
    Encoded,
    /// Code points for bytes of UTF-8.
    Decoded,
    /// Escapes and quotation marks added.
    Quoted,
    /// Between two literal indices.
    Slice,
    /// As many as a literal number says.
    Count,
    /// The number of pieces: a literal limit, else the size of the string.
    Pieces,
    Joined,
    Replaced,
}

/// How the cost of a call is computed from the sizes of its arguments and its result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Charge {
    Fixed(u64),
    /// A factor of the size of the n-th argument.
    Size(u8, f64),
    /// The size of the second argument.
    Members,
    Equality,
    Concatenation,
    Matches,
    Contains,
    /// Every scalar inside the first argument.
    Traversal,
    Join,
    ContainsIp {
        text: bool,
    },
    ContainsCidr {
        text: bool,
    },
    /// Parsing the second argument as a selector, and checking each requirement.
    Selector,
    Validate,
    Sets(u64),
    /// A list as large as the result.
    ListResult,
    Flatten,
    Distinct,
    Sort,
    SortBy,
}

/// The costs of one function or overload.
#[derive(Debug)]
pub(crate) struct Costs {
    pub(crate) estimate: CostFormula,
    pub(crate) size: Size,
    pub charge: Charge,
}

const fn costs(estimate: CostFormula, size: Size, charge: Charge) -> Costs {
    Costs { estimate, size, charge }
}

/// A factor of one size for the estimate and for the charge, where argument 0 is the receiver if there is one.
const fn scaled(operand: Operand, factor: f64, size: Size) -> Costs {
    costs(CostFormula::Scaled(operand, factor), size, Charge::Size(0, factor))
}

/// A string searched with a regular expression.
const fn matching(text: Operand, pattern: Operand, size: Size) -> Costs {
    costs(CostFormula::Matching(text, pattern), size, Charge::Matches)
}

const fn addresses(prefixes: bool, text: bool) -> Costs {
    let charge = if prefixes { Charge::ContainsCidr { text } } else { Charge::ContainsIp { text } };
    costs(CostFormula::Addresses { prefixes, text }, Size::Unknown, charge)
}

const STRING_TWICE: f64 = 2.0 * STRING_FACTOR;
/// Sorting and distinguishing items compare each item with each other one, both ways.
const COMPARISONS: f64 = 2.0;
const STRING_COMPARISONS: f64 = COMPARISONS + STRING_FACTOR;
/// The assumed length of the pattern of a named format.
const FORMAT_PATTERN: f64 = 128.0;

static ONE_UNIT: Costs = costs(CostFormula::Fixed(1), Size::Unknown, Charge::Fixed(1));

/// What an overload without a row costs: no rule may call it, rather than call it for nothing.
static UNLISTED: Costs = costs(CostFormula::Fixed(u64::MAX), Size::Unknown, Charge::Fixed(u64::MAX));

/// Overloads whose costs differ from those of their function.
static OVERLOADS: &[(&[&str], Costs)] = &[
    // by the prefix or suffix, as only so many characters are compared
    (
        &["starts_with_string", "ends_with_string"],
        costs(CostFormula::Scaled(First, STRING_FACTOR), Size::Unknown, Charge::Size(1, STRING_FACTOR)),
    ),
    (&["string_to_bytes"], scaled(First, STRING_FACTOR, Size::Encoded)),
    (&["bytes_to_string"], scaled(First, STRING_FACTOR, Size::Decoded)),
    (&["strings_quote"], scaled(First, STRING_FACTOR, Size::Quoted)),
    (&["string_format", "string_format_latest"], scaled(Receiver, STRING_FACTOR, Size::Unknown)),
    (&["in_list"], costs(CostFormula::Scaled(Second, 1.0), Size::Unknown, Charge::Members)),
    (
        &[
            "less_string",
            "greater_string",
            "less_equals_string",
            "greater_equals_string",
            "less_bytes",
            "greater_bytes",
            "less_equals_bytes",
            "greater_equals_bytes",
        ],
        costs(CostFormula::Comparison, Size::Unknown, Charge::Equality),
    ),
    (&["equals"], costs(CostFormula::Equality, Size::Unknown, Charge::Fixed(1))),
    (&["not_equals"], costs(CostFormula::Comparison, Size::Unknown, Charge::Fixed(1))),
    (&["logical_or", "logical_and"], costs(CostFormula::ShortCircuit, Size::Unknown, Charge::Fixed(1))),
    (&["conditional"], costs(CostFormula::Branches, Size::Either, Charge::Fixed(1))),
    (&["add_list"], costs(CostFormula::Fixed(1), Size::Sum, Charge::Fixed(1))),
    (
        &["add_string", "add_bytes"],
        costs(CostFormula::Scaled(Operand::Result, STRING_FACTOR), Size::Sum, Charge::Concatenation),
    ),
    (&["matches_string"], matching(Receiver, First, Size::Unknown)),
    (&["matches"], matching(First, Second, Size::Unknown)),
    (&["contains_string"], costs(CostFormula::Containment, Size::Unknown, Charge::Contains)),
    (
        &["list_sets_contains_list", "list_sets_intersects_list"],
        costs(CostFormula::Product(First, Second, 1.0), Size::Unknown, Charge::Sets(1)),
    ),
    (&["list_sets_equivalent_list"], costs(CostFormula::Product(First, Second, 2.0), Size::Unknown, Charge::Sets(2))),
    (&["list_slice"], costs(CostFormula::NewList(1.0), Size::Slice, Charge::ListResult)),
    (&["lists_range"], costs(CostFormula::NewList(1.0), Size::Count, Charge::ListResult)),
    (&["list_reverse"], costs(CostFormula::NewList(1.0), Size::Same(Receiver), Charge::ListResult)),
    (&["list_flatten", "list_flatten_int"], costs(CostFormula::Flattening, Size::Same(Receiver), Charge::Flatten)),
    (&["list_distinct"], costs(CostFormula::NewList(COMPARISONS), Size::Squared(Receiver), Charge::Distinct)),
    (
        &["list_string_sort", "list_bytes_sort"],
        costs(CostFormula::NewList(STRING_COMPARISONS), Size::Squared(Receiver), Charge::Sort),
    ),
    (
        &[
            "list_int_sort",
            "list_uint_sort",
            "list_double_sort",
            "list_bool_sort",
            "list_google.protobuf.Duration_sort",
            "list_google.protobuf.Timestamp_sort",
        ],
        costs(CostFormula::NewList(COMPARISONS), Size::Squared(Receiver), Charge::Sort),
    ),
    (
        &["list_string_sortByAssociatedKeys", "list_bytes_sortByAssociatedKeys"],
        costs(CostFormula::NewList(STRING_COMPARISONS), Size::Squared(First), Charge::SortBy),
    ),
    (
        &[
            "list_int_sortByAssociatedKeys",
            "list_uint_sortByAssociatedKeys",
            "list_double_sortByAssociatedKeys",
            "list_bool_sortByAssociatedKeys",
            "list_google.protobuf.Duration_sortByAssociatedKeys",
            "list_google.protobuf.Timestamp_sortByAssociatedKeys",
        ],
        costs(CostFormula::NewList(COMPARISONS), Size::Squared(First), Charge::SortBy),
    ),
    (&["cidr_ip"], costs(CostFormula::Fixed(1), Size::Unknown, Charge::Fixed(1))),
    (&["cidr_contains_ip_string"], addresses(false, true)),
    (&["cidr_contains_cidr_string"], addresses(true, true)),
];

/// Functions, whichever overload is called.
static FUNCTIONS: &[(&[&str], Costs)] = &[
    (&["check"], costs(CostFormula::Fixed(350_000), Size::Unknown, Charge::Fixed(350_000))),
    (&["fieldSelector", "labelSelector"], costs(CostFormula::Selector, Size::Unknown, Charge::Selector)),
    (
        &["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"],
        costs(CostFormula::Traversal, Size::Unknown, Charge::Traversal),
    ),
    (&["url", "jsonpatch.escapeKey"], scaled(First, STRING_FACTOR, Size::Same(First))),
    (
        &["cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"],
        scaled(First, STRING_FACTOR, Size::Unknown),
    ),
    (&["ip.isCanonical"], scaled(First, STRING_TWICE, Size::Unknown)),
    (&["lowerAscii", "upperAscii", "substring", "trim"], scaled(Receiver, STRING_FACTOR, Size::Same(Receiver))),
    (&["replace"], scaled(Receiver, STRING_TWICE, Size::Replaced)),
    (&["split"], scaled(Receiver, STRING_TWICE, Size::Pieces)),
    (&["join"], costs(CostFormula::Scaled(Operand::Result, STRING_FACTOR), Size::Joined, Charge::Join)),
    (&["find", "findAll"], matching(Receiver, First, Size::UpTo(Receiver))),
    (&["regex.extract", "regex.extractAll", "regex.replace"], matching(First, Second, Size::Unknown)),
    (&["containsIP"], addresses(false, false)),
    (&["containsCIDR"], addresses(true, false)),
    (
        &["validate"],
        costs(
            CostFormula::ScaledTwice(First, STRING_FACTOR, FORMAT_PATTERN * REGEX_FACTOR),
            Size::Unknown,
            Charge::Validate,
        ),
    ),
];

/// Functions that cost one unit: all their overloads, or those without a row in [`OVERLOADS`].
static NOMINAL: &[&str] = &[
    // operators and conversions
    "!_",
    "-_",
    "@in",
    "@not_strictly_false",
    "_%_",
    "_*_",
    "_+_",
    "_-_",
    "_/_",
    "_<=_",
    "_<_",
    "_>=_",
    "_>_",
    "_[_]",
    "_?._",
    "_[?_]",
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "string",
    "timestamp",
    "type",
    "uint",
    // parts of values
    "size",
    "charAt",
    "reverse",
    "first",
    "last",
    "cel.@mapInsert",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    // optional values
    "hasValue",
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
    "optional.unwrap",
    "or",
    "orValue",
    "unwrapOpt",
    "value",
    // authorization
    "allowed",
    "error",
    "errored",
    "group",
    "name",
    "namespace",
    "path",
    "reason",
    "resource",
    "serviceAccount",
    "subresource",
    // addresses, quantities and versions
    "getEscapedPath",
    "getHost",
    "getHostname",
    "getPort",
    "getQuery",
    "getScheme",
    "isURL",
    "family",
    "isGlobalUnicast",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isLoopback",
    "isUnspecified",
    "masked",
    "prefixLength",
    "add",
    "asApproximateFloat",
    "asInteger",
    "compareTo",
    "isGreaterThan",
    "isInteger",
    "isLessThan",
    "sign",
    "sub",
    "major",
    "minor",
    "patch",
    // named formats
    "format.byte",
    "format.date",
    "format.datetime",
    "format.dns1035Label",
    "format.dns1035LabelPrefix",
    "format.dns1123Label",
    "format.dns1123LabelPrefix",
    "format.dns1123Subdomain",
    "format.dns1123SubdomainPrefix",
    "format.labelValue",
    "format.named",
    "format.qualifiedName",
    "format.uri",
    "format.uuid",
    // extensions that Kubernetes does not have
    "base64.decode",
    "base64.encode",
    "math.@max",
    "math.@min",
    "math.abs",
    "math.bitAnd",
    "math.bitNot",
    "math.bitOr",
    "math.bitShiftLeft",
    "math.bitShiftRight",
    "math.bitXor",
    "math.ceil",
    "math.floor",
    "math.isFinite",
    "math.isInf",
    "math.isNaN",
    "math.round",
    "math.sign",
    "math.sqrt",
    "math.trunc",
];

fn row(table: &'static [(&'static [&'static str], Costs)], name: &str) -> Option<&'static Costs> {
    table.iter().find(|(names, _)| names.contains(&name)).map(|(_, costs)| costs)
}

impl Costs {
    /// The costs of a function if the called overload is not known.
    pub fn of_function(function: &str) -> &'static Costs {
        row(FUNCTIONS, function).unwrap_or(&ONE_UNIT)
    }

    /// The costs of an overload of a function.
    pub fn of_overload(function: &str, overload: &str) -> &'static Costs {
        let listed = row(OVERLOADS, overload).or_else(|| row(FUNCTIONS, function));
        listed.unwrap_or(if NOMINAL.contains(&function) { &ONE_UNIT } else { &UNLISTED })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::registry;

    #[test]
    fn every_cost_row_belongs_to_a_function() {
        let overloads = &registry().overloads;
        for name in OVERLOADS.iter().flat_map(|(names, _)| *names) {
            assert!(overloads.iter().any(|o| o.id == *name), "no overload {name}");
        }
        for name in FUNCTIONS.iter().flat_map(|(names, _)| *names).chain(NOMINAL) {
            assert!(registry().functions.contains_key(name), "no function {name}");
        }
    }

    #[test]
    fn every_overload_has_costs() {
        for overload in &registry().overloads {
            assert!(!std::ptr::eq(overload.costs, &raw const UNLISTED), "{} has no costs", overload.id);
        }
    }
}
