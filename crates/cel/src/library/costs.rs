//! The costs of each function: the formula of its estimate, the size of its result, and its charge at run time.
//!
//! The numbers are those of Kubernetes, which accepts or rejects rules by them.

/// Cost of one step through a string: a tenth for each character.
pub(crate) const STRING_FACTOR: f64 = 0.1;
/// Cost of a character of a pattern.
pub(crate) const REGEX_FACTOR: f64 = 0.25;
/// Costs of literals in addition to their parts: the base costs of creation in cel-go's `common/cost.go`.
pub(crate) const LIST_LITERAL_COST: u64 = 10;
pub(crate) const MAP_LITERAL_COST: u64 = 30;
pub(crate) const MESSAGE_LITERAL_COST: u64 = 40;
/// Cost of a call, before what its arguments add.
pub(crate) const CALL_COST: u64 = 1;
/// Cost of allocating a list: the list itself and the call that makes it.
pub(crate) const LIST_COST: u64 = LIST_LITERAL_COST + CALL_COST;

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
    /// Addresses compared byte by byte.
    Within(Contained, Given),
}

/// The kind of value that a CIDR may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contained {
    Address,
    /// Another CIDR, whose prefix is compared too.
    Cidr,
}

/// How an address or a CIDR is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// As a value.
    Parsed,
    /// As text, which is parsed first.
    Text,
}

/// The formula of the size of a result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Size {
    Unknown,
    Same(Operand),
    /// At most the size of the operand.
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
    Within(Contained, Given),
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    pub(crate) estimate: CostFormula,
    pub(crate) size: Size,
    pub charge: Charge,
}

pub(super) const fn costs(estimate: CostFormula, size: Size, charge: Charge) -> Costs {
    Costs { estimate, size, charge }
}

/// A factor of one size for the estimate and for the charge, where argument 0 is the receiver if there is one.
pub(super) const fn scaled(operand: Operand, factor: f64, size: Size) -> Costs {
    costs(CostFormula::Scaled(operand, factor), size, Charge::Size(0, factor))
}

/// A string searched with a regular expression.
pub(super) const fn matching(text: Operand, pattern: Operand, size: Size) -> Costs {
    costs(CostFormula::Matching(text, pattern), size, Charge::Matches)
}

/// Whether a CIDR contains an address or another CIDR.
pub(super) const fn within(contained: Contained, given: Given) -> Costs {
    costs(CostFormula::Within(contained, given), Size::Unknown, Charge::Within(contained, given))
}

pub(super) const STRING_TWICE: f64 = 2.0 * STRING_FACTOR;
/// Sorting and distinguishing items compare each item with each other one, both ways.
pub(super) const COMPARISONS: f64 = 2.0;
pub(super) const STRING_COMPARISONS: f64 = COMPARISONS + STRING_FACTOR;
/// The assumed length of the pattern of a named format.
const FORMAT_PATTERN: f64 = 128.0;

/// One unit, and a value of unknown size: the costs of most functions.
pub(super) const UNIT: Costs = costs(CostFormula::Fixed(1), Size::Unknown, Charge::Fixed(1));
pub(super) const COMPARISON: Costs = costs(CostFormula::Comparison, Size::Unknown, Charge::Equality);
pub(super) const CONCATENATION: Costs =
    costs(CostFormula::Scaled(Operand::Result, STRING_FACTOR), Size::Sum, Charge::Concatenation);
pub(super) const SELECTOR: Costs = costs(CostFormula::Selector, Size::Unknown, Charge::Selector);
pub(super) const SHORT_CIRCUIT: Costs = costs(CostFormula::ShortCircuit, Size::Unknown, Charge::Fixed(1));
pub(super) const TRAVERSAL: Costs = costs(CostFormula::Traversal, Size::Unknown, Charge::Traversal);
pub(super) const VALIDATION: Costs = costs(
    CostFormula::ScaledTwice(Operand::First, STRING_FACTOR, FORMAT_PATTERN * REGEX_FACTOR),
    Size::Unknown,
    Charge::Validate,
);
/// Costs by the length of the prefix or suffix, since no more characters are compared.
pub(super) const AFFIX: Costs =
    costs(CostFormula::Scaled(Operand::First, STRING_FACTOR), Size::Unknown, Charge::Size(1, STRING_FACTOR));
