//! Estimates the cost and the result size of calls: applies the overload's row in the table of costs to the sizes of
//! the arguments.

use super::{Entries, Estimator, Facts, ONE, Range};
use crate::ast::{Expr, Kind, Literal};
use crate::decl::DeclStep;
use crate::decl::types::Type;
use crate::library::Overload;
use crate::library::costs::{Contained, CostFormula, Given, LIST_COST, Operand, REGEX_FACTOR, STRING_FACTOR, Size};

/// The bytes of an IP address.
const ADDRESS: Range = Range { min: 4, max: 16 };
/// The length of the names of formats.
const FORMAT_NAME: Range = Range { min: 1, max: 64 };
/// A selector has at most one requirement for every two characters; the cost of each requirement.
const REQUIREMENTS_PER_CHARACTER: f64 = 0.5;
const REQUIREMENT_COST: f64 = 50.0;
const SELECTOR_COST: Range = Range::fixed(10);

/// An argument of a call, or its receiver, with its estimate.
pub(super) struct Argument<'c, 'd> {
    pub expr: &'c Expr,
    pub t: &'c Type,
    pub cost: Range,
    pub value: Facts<'d>,
}

/// One call: its receiver and its arguments.
pub(super) struct EstimatedCall<'c, 'd> {
    pub receiver: Option<Argument<'c, 'd>>,
    pub args: Vec<Argument<'c, 'd>>,
}

impl<'c, 'd> EstimatedCall<'c, 'd> {
    fn argument(&self, operand: Operand) -> Option<&Argument<'c, 'd>> {
        match operand {
            Operand::Receiver => self.receiver.as_ref(),
            Operand::First => self.args.first(),
            Operand::Second => self.args.get(1),
            Operand::Result => None,
        }
    }

    /// The size of an operand; unknown if the call has no such operand.
    fn size(&self, operand: Operand) -> Range {
        self.argument(operand).map_or(Range::UNKNOWN, known)
    }

    /// The value of an argument that is an integer literal.
    fn literal(&self, operand: Operand) -> Option<i64> {
        match self.argument(operand).map(|argument| &argument.expr.kind) {
            Some(Kind::Literal(Literal::Int(i))) => Some(*i),
            _ => None,
        }
    }

    /// The entries of the result of a conditional or a concatenation: they can come from either of the last two
    /// operands.
    pub(super) fn result_entries(&self, overload: &Overload) -> Option<Entries> {
        let (Size::Either | Size::Sum, [.., left, right]) = (&overload.definition.costs.size, self.args.as_slice())
        else {
            return None;
        };
        let (a, b) = (left.value.entries?, right.value.entries?);
        Some(Entries { list: a.list, key: a.key.union(b.key), value: a.value.union(b.value) })
    }
}

impl<'c, 'd> Estimator<'c, 'd> {
    /// The cost of a call, arguments included, if it resolves to this overload.
    pub(super) fn overload_cost(
        &self,
        call: &EstimatedCall<'c, 'd>,
        overload: &Overload,
        size: Option<Range>,
    ) -> Range {
        let spent = call.args.iter().fold(Range::default(), |sum, argument| sum.plus(argument.cost));
        match (overload.definition.costs.estimate, call.args.as_slice()) {
            (CostFormula::ShortCircuit, [first, ..]) => Range { min: first.cost.min, max: spent.max },
            (CostFormula::Branches, [condition, yes, no]) => condition.cost.plus(yes.cost.union(no.cost)),
            (estimate, _) => self.estimate(call, estimate, size.unwrap_or(Range::UNKNOWN)).plus(spent),
        }
    }

    fn estimate(&self, call: &EstimatedCall<'c, 'd>, estimate: CostFormula, result: Range) -> Range {
        let size = |operand| if let Operand::Result = operand { result } else { call.size(operand) };
        match estimate {
            CostFormula::ShortCircuit | CostFormula::Branches => Range::default(),
            CostFormula::Fixed(cost) => Range::fixed(cost),
            CostFormula::Scaled(operand, factor) => size(operand).by(factor),
            CostFormula::ScaledTwice(operand, first, second) => size(operand).by(first).by(second),
            CostFormula::Product(a, b, factor) => size(a).times(size(b)).by(factor).plus(ONE),
            CostFormula::NewList(factor) => result.by(factor).plus(Range::fixed(LIST_COST)),
            CostFormula::Flattening => {
                let depth = match call.args.as_slice() {
                    [] => 1,
                    _ => call.literal(Operand::First).map_or(u64::MAX, not_negative),
                };
                result.by(depth as f64).plus(Range::fixed(LIST_COST))
            }
            CostFormula::Matching(text, pattern) => {
                let steps = size(text).plus(ONE).by(STRING_FACTOR);
                steps.times(size(pattern).by(REGEX_FACTOR))
            }
            CostFormula::Containment => {
                size(Operand::Receiver).by(STRING_FACTOR).times(size(Operand::First).by(STRING_FACTOR))
            }
            CostFormula::Comparison => comparison(call),
            CostFormula::Equality => equality(call),
            CostFormula::Traversal => call.receiver.as_ref().map_or(ONE, |list| self.traversal(list)),
            CostFormula::Selector => selector(size(Operand::First)),
            CostFormula::Within(contained, given) => {
                let compared = ADDRESS.plus(ADDRESS).by(STRING_FACTOR);
                let masked = match contained {
                    Contained::Cidr => ADDRESS.by(STRING_FACTOR).plus(ONE),
                    Contained::Address => Range::default(),
                };
                let parsed = match given {
                    Given::Text => size(Operand::First).by(STRING_FACTOR),
                    Given::Parsed => Range::default(),
                };
                compared.plus(masked).plus(parsed)
            }
        }
    }

    /// The size of the result of an overload, if it is known.
    pub(super) fn result_size(&self, call: &EstimatedCall<'c, 'd>, overload: &Overload) -> Option<Range> {
        let (receiver, first) = (call.size(Operand::Receiver), call.size(Operand::First));
        Some(match overload.definition.costs.size {
            Size::Unknown => return None,
            Size::Same(operand) => call.size(operand),
            Size::UpTo(operand) => Range { min: 0, max: call.size(operand).max },
            Size::Squared(operand) => call.size(operand).times(call.size(operand)),
            Size::Either => last_two(call, Range::union),
            Size::Sum => last_two(call, Range::plus),
            Size::Encoded => Range { min: first.min, max: first.max.wrapping_mul(4) },
            Size::Decoded => Range { min: first.min / 4, max: first.max },
            Size::Quoted => Range { min: first.min.wrapping_add(2), max: first.max.wrapping_mul(2).wrapping_add(2) },
            Size::Slice => {
                let from = call.literal(Operand::First).map_or(0, not_negative);
                let to = call.literal(Operand::Second).map_or(receiver.max, not_negative);
                Range::fixed(to.wrapping_sub(from))
            }
            Size::Count => Range::fixed(call.literal(Operand::First).map_or(u64::MAX, not_negative)),
            Size::Pieces => {
                let limit = call.literal(Operand::Second).map(|limit| limit as u64);
                Range { min: 0, max: limit.unwrap_or(receiver.max) }
            }
            Size::Joined => self.joined(call),
            Size::Replaced => replaced(receiver, first, call.size(Operand::Second)),
        })
    }

    /// The declared size and the type of the items of a list or a map.
    fn element(&self, list: &Argument<'c, 'd>) -> Option<(Range, &'c Type)> {
        let item = match list.t {
            Type::List(item) => &**item,
            Type::Map(pair) => &pair.0,
            Type::Opaque(_, params) => params.first()?,
            _ => return None,
        };
        let declared =
            list.value.origin.is_some().then(|| self.declared(self.step(list.value.origin, DeclStep::Items))).flatten();
        Some((declared.unwrap_or(Range::UNKNOWN), item))
    }

    /// The cost of traversing a list: a step per item, plus the traversal of items that are strings or bytes. If the
    /// operand is a string, the cost of traversing that.
    fn traversal(&self, list: &Argument<'c, 'd>) -> Range {
        let count = known(list);
        match self.element(list) {
            Some((size, Type::String | Type::Bytes)) => count.times(ONE.plus(size.by(STRING_FACTOR))),
            Some(_) => count.times(ONE),
            None => count.by(STRING_FACTOR),
        }
    }

    /// The size of all items, with the separator between every two.
    fn joined(&self, call: &EstimatedCall<'c, 'd>) -> Range {
        let count = call.size(Operand::Receiver);
        let gaps = Range { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
        let item =
            call.receiver.as_ref().and_then(|list| self.element(list)).map_or(Range::default(), |(size, _)| size);
        let separator = call.args.first().map_or(Range::default(), known);
        count.times(item).plus(gaps.times(separator))
    }
}

fn known(argument: &Argument<'_, '_>) -> Range {
    argument.value.size_or_unknown()
}

/// Parsing a selector of this length and checking its requirements.
pub(crate) fn selector(text: Range) -> Range {
    let requirements = text.by(REQUIREMENTS_PER_CHARACTER).by(REQUIREMENT_COST);
    SELECTOR_COST.plus(text.by(STRING_FACTOR)).plus(requirements)
}

fn not_negative(i: i64) -> u64 {
    u64::try_from(i).unwrap_or(0)
}

/// A comparison ends with the shorter side.
fn comparison(call: &EstimatedCall<'_, '_>) -> Range {
    let max = call.size(Operand::First).max.min(call.size(Operand::Second).max);
    Range { min: max.min(1), max }.by(STRING_FACTOR)
}

/// Comparing two values of a Kubernetes type has a cost of its own.
fn equality(call: &EstimatedCall<'_, '_>) -> Range {
    let [left, right] = call.args.as_slice() else { return ONE };
    match left.t {
        t if t != right.t => comparison(call),
        Type::Opaque("net.IP" | "net.CIDR", _) | Type::Named("kubernetes.Quantity" | "kubernetes.Semver") => ONE,
        Type::Named(name) if name.starts_with("kubernetes.authorization.") => ONE,
        Type::Named("kubernetes.NamedFormat") => FORMAT_NAME.by(STRING_FACTOR),
        Type::Named("kubernetes.URL") => Range { min: 1, max: right.value.size.unwrap_or(ONE).max }.by(STRING_FACTOR),
        _ => comparison(call),
    }
}

/// The sizes of the last two operands, combined by `unite`.
fn last_two(call: &EstimatedCall<'_, '_>, unite: fn(Range, Range) -> Range) -> Range {
    match call.args.as_slice() {
        [.., left, right] => unite(known(left), known(right)),
        _ => Range::UNKNOWN,
    }
}

/// The size of a string in which each `old` is replaced by `new`. The minimum is the unchanged size unless `new` can
/// be shorter than `old`, and the maximum unless it can be longer.
fn replaced(text: Range, old: Range, new: Range) -> Range {
    let size = |text: u64, old: u64, new: u64, unchanged: bool| match old {
        // the empty string is found around every character
        0 => text.saturating_add(1).saturating_mul(new).saturating_add(text),
        _ if unchanged => text,
        _ => float_up(text as f64 / old as f64).saturating_mul(new),
    };
    Range {
        min: size(text.min, old.max, new.min, old.max <= new.min),
        max: size(text.max, old.min, new.max, new.max <= old.min),
    }
}

/// Rounds up. An unknown size rounds to 2^64, which becomes 2^63 as in kube-apiserver.
fn float_up(x: f64) -> u64 {
    let up = x.ceil();
    if up >= 18_446_744_073_709_551_616.0 { 1 << 63 } else { up as u64 }
}
