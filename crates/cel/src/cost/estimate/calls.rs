//! What calls are estimated at, by function and overload.

use super::{Argument, Coster, ONE, Range};
use crate::ast::{Expr, Kind, Literal};
use crate::cost::{REGEX_FACTOR, STRING_FACTOR};
use crate::decl::Step;
use crate::types::Type;

type Estimate = Option<(Range, Option<Range>)>;

fn only(cost: Range) -> Estimate {
    Some((cost, None))
}

fn sized(cost: Range, size: Range) -> Estimate {
    Some((cost, Some(size)))
}

impl<'c, 'd> Coster<'c, 'd> {
    /// The cost of a call with one of its overloads, and the size of the result if it is known.
    pub(super) fn overload(
        &mut self,
        expr: &'c Expr,
        function: &str,
        id: &str,
        target: Option<&Argument<'c, 'd>>,
        args: &[Argument<'c, 'd>],
        costs: &[Range],
    ) -> (Range, Option<Range>) {
        let spent = costs.iter().fold(Range::default(), |sum, cost| sum.plus(*cost));
        let own = self.by_overload(id, target, args);
        let own = own.or_else(|| self.by_function(function, id, target, args));
        if let Some((cost, size)) = own {
            return (cost.plus(spent), size);
        }
        match id {
            "logical_or" | "logical_and" => {
                let (left, right) = (costs.first().copied(), costs.get(1).copied());
                let left = left.unwrap_or_default();
                (Range { min: left.min, max: left.plus(right.unwrap_or_default()).max }, None)
            }
            "conditional" => self.conditional(expr, args, costs),
            "add_string" | "add_bytes" | "add_list" => self.concatenation(expr, id, args, spent),
            _ => {
                let (cost, size) = self.standard(id, target, args).unwrap_or((ONE, None));
                (cost.plus(spent), size)
            }
        }
    }

    fn conditional(&mut self, expr: &Expr, args: &[Argument<'c, 'd>], costs: &[Range]) -> (Range, Option<Range>) {
        let [condition, yes, no] = costs else { return (ONE, None) };
        let size = known(&args[1]).union(known(&args[2]));
        if let (Some(a), Some(b)) = (self.entries(args[1].expr), self.entries(args[2].expr)) {
            self.join_entries(expr, a, b);
        }
        (condition.plus(yes.union(*no)), Some(size))
    }

    fn join_entries(&mut self, expr: &Expr, a: super::Entries, b: super::Entries) {
        let joined = super::Entries { list: a.list, key: a.key.union(b.key), value: a.value.union(b.value) };
        self.entries.insert(expr.id, joined);
    }

    fn concatenation(
        &mut self,
        expr: &Expr,
        id: &str,
        args: &[Argument<'c, 'd>],
        spent: Range,
    ) -> (Range, Option<Range>) {
        let [left, right] = args else { return (ONE.plus(spent), None) };
        let size = known(left).plus(known(right));
        if let (Some(a), Some(b)) = (self.entries(left.expr), self.entries(right.expr)) {
            self.join_entries(expr, a, b);
        }
        let cost = if id == "add_list" { ONE } else { size.by(STRING_FACTOR) };
        (cost.plus(spent), Some(size))
    }

    /// cel-go's own functions.
    fn standard(&mut self, id: &str, target: Option<&Argument<'c, 'd>>, args: &[Argument<'c, 'd>]) -> Estimate {
        match (id, target, args) {
            ("string_format" | "string_format_latest", Some(target), _) => only(known(target).by(STRING_FACTOR)),
            ("string_to_bytes", _, [text]) => {
                let size = known(text);
                sized(size.by(STRING_FACTOR), Range { min: size.min, max: size.max.wrapping_mul(4) })
            }
            ("bytes_to_string", _, [bytes]) => {
                let size = known(bytes);
                sized(size.by(STRING_FACTOR), Range { min: size.min / 4, max: size.max })
            }
            ("strings_quote", _, [text]) => {
                let size = known(text);
                let most = size.max.wrapping_mul(2).wrapping_add(2);
                sized(size.by(STRING_FACTOR), Range { min: size.min.wrapping_add(2), max: most })
            }
            ("starts_with_string" | "ends_with_string", _, [part]) => only(known(part).by(STRING_FACTOR)),
            ("in_list", _, [_, list]) => only(known(list).by(1.0)),
            ("matches_string", Some(target), [pattern]) => only(matching(known(target), known(pattern))),
            ("contains_string", Some(target), [part]) => {
                only(known(target).by(STRING_FACTOR).times(known(part).by(STRING_FACTOR)))
            }
            (
                "less_string"
                | "greater_string"
                | "less_equals_string"
                | "greater_equals_string"
                | "less_bytes"
                | "greater_bytes"
                | "less_equals_bytes"
                | "greater_equals_bytes"
                | "equals"
                | "not_equals",
                _,
                [left, right],
            ) => {
                let max = known(left).max.min(known(right).max);
                only(Range { min: u64::from(max > 0), max }.by(STRING_FACTOR))
            }
            _ => None,
        }
    }

    /// Extensions that say for themselves what they cost.
    fn by_overload(&mut self, id: &str, target: Option<&Argument<'c, 'd>>, args: &[Argument<'c, 'd>]) -> Estimate {
        let list = |cost: Range, size: Range| sized(cost.plus(Range::fixed(11)), size);
        let target_size = |coster: &Self| target.map(|t| coster.bound(t));
        match (id, args) {
            ("list_sets_contains_list" | "list_sets_intersects_list", [a, b]) => {
                only(self.bound(a).times(self.bound(b)).by(1.0).plus(ONE))
            }
            ("list_sets_equivalent_list", [a, b]) => only(self.bound(a).times(self.bound(b)).by(2.0).plus(ONE)),
            ("list_slice", [start, end]) => {
                let from = integer(start, 0);
                let to = integer(end, target_size(self)?.max);
                let size = Range::fixed(to.wrapping_sub(from));
                list(size.by(1.0), size)
            }
            ("lists_range", [count]) => {
                let size = Range::fixed(integer(count, u64::MAX));
                list(size.by(1.0), size)
            }
            ("list_reverse", []) => {
                let size = target_size(self)?;
                list(size.by(1.0), size)
            }
            ("list_flatten" | "list_flatten_int", args) => {
                let depth = args.first().map_or(1, |depth| integer(depth, u64::MAX));
                let size = target_size(self)?;
                list(size.by(depth as f64), size)
            }
            ("list_distinct", []) => {
                let size = target_size(self)?;
                let squared = size.times(size);
                list(squared.by(2.0), squared)
            }
            (id, args) if id.ends_with("_sortByAssociatedKeys") || id.ends_with("_sort") => {
                let size = match args.first() {
                    Some(keys) => self.bound(keys),
                    None => target_size(self)?,
                };
                let texts = id.starts_with("list_string") || id.starts_with("list_bytes");
                let squared = size.times(size);
                list(squared.by(if texts { 2.0 + STRING_FACTOR } else { 2.0 }), squared)
            }
            _ => None,
        }
    }

    /// The size of an argument: from the expression, else from the declaration at its place.
    fn bound(&self, argument: &Argument<'c, 'd>) -> Range {
        argument.computed.or_else(|| self.declared(argument.place)).unwrap_or(Range::UNKNOWN)
    }

    /// Kubernetes' functions.
    fn by_function(
        &mut self,
        function: &str,
        id: &str,
        target: Option<&Argument<'c, 'd>>,
        args: &[Argument<'c, 'd>],
    ) -> Estimate {
        let first = args.first();
        match function {
            "check" => only(Range::fixed(350_000)),
            "serviceAccount" | "path" | "group" | "resource" | "subresource" | "namespace" | "name" | "allowed"
            | "reason" | "error" | "errored" => only(ONE),
            "fieldSelector" | "labelSelector" => {
                let size = self.bound(first?);
                let requirements = size.by(0.5).by(50.0);
                only(Range::fixed(10).plus(size.by(STRING_FACTOR)).plus(requirements))
            }
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => self.traversal(target?),
            "url" => {
                let size = self.bound(first?);
                sized(size.by(STRING_FACTOR), size)
            }
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                let size = self.bound(target?);
                sized(size.by(STRING_FACTOR), size)
            }
            "replace" => match args {
                [old, new, ..] => {
                    let size = self.bound(target?);
                    let result = replaced(size, self.bound(old), self.bound(new));
                    sized(size.by(2.0 * STRING_FACTOR), result)
                }
                _ => None,
            },
            "split" => {
                let size = self.bound(target?);
                let limit = args.get(1).and_then(|arg| match &arg.expr.kind {
                    Kind::Literal(Literal::Int(i)) => Some(*i as u64),
                    _ => None,
                });
                sized(size.by(2.0 * STRING_FACTOR), Range { min: 0, max: limit.unwrap_or(size.max) })
            }
            "join" => {
                let size = self.joined(target?, first);
                sized(size.by(STRING_FACTOR), size)
            }
            "find" | "findAll" => {
                let size = self.bound(target?);
                let pattern = self.bound(first?);
                sized(matching(size, pattern), Range { min: 0, max: size.max })
            }
            "ip" if id == "cidr_ip" => only(ONE),
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                only(self.bound(first?).by(STRING_FACTOR))
            }
            "ip.isCanonical" => only(self.bound(first?).by(2.0 * STRING_FACTOR)),
            "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast" => only(ONE),
            "containsIP" | "containsCIDR" => only(self.containment(function, id, first?)),
            "validate" => {
                let size = self.bound(first?);
                only(size.by(STRING_FACTOR).by(128.0 * REGEX_FACTOR))
            }
            "format.named" | "sign" | "asInteger" | "isInteger" | "asApproximateFloat" | "isGreaterThan"
            | "isLessThan" | "compareTo" | "add" | "sub" | "major" | "minor" | "patch" | "getScheme"
            | "getHostname" | "getHost" | "getPort" | "getEscapedPath" | "getQuery" => only(ONE),
            "_==_" => equality(args),
            _ => None,
        }
    }

    /// The declared element of a list and its type.
    fn element(&self, list: &Argument<'c, 'd>) -> Option<(Range, &'c Type)> {
        let item = match list.t {
            Type::List(item) => &**item,
            Type::Map(pair) => &pair.0,
            Type::Opaque(_, params) => params.first()?,
            _ => return None,
        };
        let size = match list.place {
            Some(_) => self.declared(self.step(list.place, Step::Items)),
            None => None,
        };
        Some((size.unwrap_or(Range::UNKNOWN), item))
    }

    fn traversal(&self, target: &Argument<'c, 'd>) -> Estimate {
        let size = self.bound(target);
        let Some((item_size, item)) = self.element(target) else { return only(size.by(STRING_FACTOR)) };
        let texts = matches!(item, Type::String | Type::Bytes);
        let each = if texts { ONE.plus(item_size.by(STRING_FACTOR)) } else { ONE };
        only(size.times(each))
    }

    fn joined(&self, target: &Argument<'c, 'd>, separator: Option<&Argument<'c, 'd>>) -> Range {
        let count = self.bound(target);
        let mut size = self.element(target).map_or(Range::default(), |(item, _)| count.times(item));
        if let Some(separator) = separator {
            let gaps = Range { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
            size = size.plus(self.bound(separator).times(gaps));
        }
        size
    }

    fn containment(&self, function: &str, id: &str, other: &Argument<'c, 'd>) -> Range {
        let bytes = Range { min: 4, max: 16 };
        let mut cost = bytes.plus(bytes).by(STRING_FACTOR);
        if function == "containsCIDR" {
            cost = cost.plus(bytes.by(STRING_FACTOR)).plus(ONE);
        }
        if id.ends_with("_string") { cost.plus(self.bound(other).by(STRING_FACTOR)) } else { cost }
    }
}

fn known(argument: &Argument<'_, '_>) -> Range {
    argument.computed.unwrap_or(Range::UNKNOWN)
}

fn matching(text: Range, pattern: Range) -> Range {
    text.plus(ONE).by(STRING_FACTOR).times(pattern.by(REGEX_FACTOR))
}

fn integer(argument: &Argument<'_, '_>, default: u64) -> u64 {
    match &argument.expr.kind {
        Kind::Literal(Literal::Int(i)) => u64::try_from(*i).unwrap_or(0),
        _ => default,
    }
}

/// The size of a text in which `old` has become `new`.
fn replaced(size: Range, old: Range, new: Range) -> Range {
    let (mut count, mut kept) = (Range::default(), Range::default());
    if old.min == 0 {
        count.max = size.max.saturating_add(1);
        kept.max = size.max;
    } else if new.max <= old.min {
        kept.max = size.max;
    } else {
        count.max = float_up(size.max as f64 / old.min as f64);
    }
    if old.max == 0 {
        count.min = size.min.saturating_add(1);
        kept.min = size.min;
    } else if old.max <= new.min {
        kept.min = size.min;
    } else {
        count.min = float_up(size.min as f64 / old.max as f64);
    }
    count.times(new).plus(kept)
}

/// Rounds up; Go makes 2^63 of what doesn't fit.
fn float_up(x: f64) -> u64 {
    let up = x.ceil();
    if up >= 18_446_744_073_709_551_616.0 { 1 << 63 } else { up as u64 }
}

fn equality(args: &[Argument<'_, '_>]) -> Estimate {
    let [left, right] = args else { return None };
    if left.t != right.t {
        return None;
    }
    match left.t {
        Type::Opaque("net.IP" | "net.CIDR", _) | Type::Named("kubernetes.Quantity" | "kubernetes.Semver") => only(ONE),
        Type::Named(name) if name.starts_with("kubernetes.authorization.") => only(ONE),
        Type::Named("kubernetes.NamedFormat") => only(Range { min: 1, max: 64 }.by(STRING_FACTOR)),
        Type::Named("kubernetes.URL") => {
            let size = right.computed.unwrap_or(ONE);
            only(Range { min: 1, max: size.max }.by(STRING_FACTOR))
        }
        _ => None,
    }
}
