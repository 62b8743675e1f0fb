//! The estimated cost of an expression, computed when it is compiled.
//!
//! The numbers are those of cel-go's checker and of Kubernetes' estimator, quirks included. Declarations bound the sizes of
//! values; each overload of [`crate::library`] has a function that derives the cost of a call and the size of its result from the
//! sizes of its arguments.

pub(super) mod calls;
mod parts;

use self::calls::{Argument, EstimatedCall};
use crate::ast::{self, Comprehension, Expr, Kind, Literal};
use crate::check::Checked;
use crate::decl::types::Type;
use crate::decl::{Decl, DeclStep};
use crate::env::Environment;
use crate::library::costs::{LIST_LITERAL_COST, MAP_LITERAL_COST, MESSAGE_LITERAL_COST};
use crate::library::registry;
use crate::parser::macros::ACCUMULATOR;
use machinery::Text;

pub use parts::Part;
pub(crate) use parts::piece;

/// Bounds of a cost, in cost units of Kubernetes, or of a size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// At most [`Range::max`].
    pub min: u64,
    /// `u64::MAX` if there is no bound.
    pub max: u64,
}

impl Range {
    pub(crate) const UNKNOWN: Range = Range { min: 0, max: u64::MAX };

    pub(crate) const fn fixed(n: u64) -> Range {
        Range { min: n, max: n }
    }

    fn plus(self, other: Range) -> Range {
        Range { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    fn times(self, other: Range) -> Range {
        Range { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    fn by(self, factor: f64) -> Range {
        Range { min: scaled(self.min, factor), max: scaled(self.max, factor) }
    }

    fn union(self, other: Range) -> Range {
        Range { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

fn scaled(n: u64, factor: f64) -> u64 {
    let n = n as f64;
    if n > 0.0 && factor > 0.0 && n > u64::MAX as f64 / factor {
        return u64::MAX;
    }
    let up = (n * factor).ceil();
    if up >= 18_446_744_073_709_551_616.0 { u64::MAX } else { up as u64 }
}

/// The origin of a value: unknown (`None`), or a node of the schema, which may lack a declaration (`Some(None)`).
type Origin<'d> = Option<Option<&'d Decl>>;

/// The sizes of the entries of a list or map.
#[derive(Clone, Copy, Debug)]
struct Entries {
    list: bool,
    key: Range,
    value: Range,
}

/// The bounds of a value that are known before the evaluation.
#[derive(Clone, Copy, Default)]
struct Facts<'d> {
    origin: Origin<'d>,
    size: Option<Range>,
    entries: Option<Entries>,
}

impl Facts<'_> {
    fn size_or_unknown(&self) -> Range {
        self.size.unwrap_or(Range::UNKNOWN)
    }
}

/// The estimate of one node: the cost of its evaluation, children included, and the bounds of its value.
struct Estimated<'d> {
    cost: Range,
    value: Facts<'d>,
}

/// Estimates nodes from the leaves up. The estimate of a node follows from those of its children and from the bounds of the
/// variables in scope.
struct Estimator<'c, 'd> {
    checked: &'c Checked,
    /// The declaration of the first variable that has one: `self` of rules, `object` of policies.
    root: Option<&'d Decl>,
    /// The variables of the macros around the node, the innermost last.
    scope: Vec<(&'c Text, Facts<'d>)>,
    /// The costs of all nodes, if an explanation is wanted.
    trace: Option<parts::Trace>,
}

/// The estimated cost of one evaluation of an expression.
///
/// Kubernetes rejects a CustomResourceDefinition with a rule whose maximum, times the number of values that the rule may be
/// evaluated for, is beyond [`crate::rules::EXPRESSION_COST_MAX`].
pub fn estimate(env: &Environment, checked: &Checked) -> Range {
    Estimator::new(env, checked).node(&checked.ast.root).cost
}

/// The estimated cost of an expression and the parts that it comes from, the most expensive first.
pub fn explain(env: &Environment, checked: &Checked) -> (Range, Vec<Part>) {
    let mut estimator = Estimator::new(env, checked);
    estimator.trace = Some(parts::Trace::default());
    let cost = estimator.node(&checked.ast.root).cost;
    let parts = estimator.trace.map(|trace| trace.parts(&checked.ast)).unwrap_or_default();
    (cost, parts)
}

const ONE: Range = Range::fixed(1);

fn literal_size(literal: &Literal) -> u64 {
    match literal {
        Literal::String(s) => s.chars().count() as u64,
        Literal::Bytes(b) => b.len() as u64,
        _ => 1,
    }
}

fn is_scalar(t: &Type) -> bool {
    match t {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        _ => t.unwrapped().is_some_and(is_scalar),
    }
}

/// The smallest range that holds the sizes of all the values; zero without values.
fn span<'e, 'd: 'e>(values: impl Iterator<Item = &'e Estimated<'d>>) -> Range {
    values.map(|value| value.value.size_or_unknown()).reduce(Range::union).unwrap_or_default()
}

fn total<'e, 'd: 'e>(base: u64, nodes: impl Iterator<Item = &'e Estimated<'d>>) -> Range {
    nodes.fold(Range::fixed(base), |sum, node| sum.plus(node.cost))
}

/// Bounds on values.
impl<'c, 'd> Estimator<'c, 'd> {
    fn new(env: &'d Environment, checked: &'c Checked) -> Estimator<'c, 'd> {
        let root = env.variables.iter().find_map(|variable| variable.decl.as_deref());
        Estimator { checked, root, scope: vec![], trace: None }
    }

    fn t(&self, expr: &Expr) -> &'c Type {
        self.checked.type_of(expr.id)
    }

    /// The origin of a child. kube-apiserver looks it up by a path, whose first name it takes for that of the variable. From an
    /// unknown origin the step is the only name of the path, so that the child is taken for the root.
    fn step(&self, origin: Origin<'d>, step: DeclStep<'_>) -> Origin<'d> {
        match origin {
            None => Some(self.root),
            Some(decl) => Some(decl.and_then(|decl| decl.step(step))),
        }
    }

    /// The bounds of the size that a declaration sets; `None` without a declaration.
    fn declared(&self, origin: Origin<'d>) -> Option<Range> {
        origin.flatten().map(|decl| Range { min: 0, max: decl.elements_max })
    }

    /// The bounds of a node's value by its origin and its type.
    fn facts_at(&self, origin: Origin<'d>, expr: &Expr) -> Facts<'d> {
        let size = self.declared(origin).or_else(|| is_scalar(self.t(expr)).then_some(ONE));
        Facts { origin, size, entries: None }
    }

    /// The bounds of the variable `name` if it is in scope, else those of the value at `otherwise`.
    fn named(&self, name: &Text, otherwise: Origin<'d>, expr: &Expr) -> Facts<'d> {
        match self.scope.iter().rfind(|(known, _)| *known == name) {
            None => self.facts_at(otherwise, expr),
            Some((_, variable)) => {
                let facts = self.facts_at(variable.origin, expr);
                Facts { size: facts.size.or(variable.size), entries: variable.entries, ..facts }
            }
        }
    }
}

/// The estimate of each kind of node.
impl<'c, 'd> Estimator<'c, 'd> {
    fn node(&mut self, expr: &'c Expr) -> Estimated<'d> {
        let estimated = match &expr.kind {
            Kind::Error => Estimated { cost: Range::default(), value: self.facts_at(None, expr) },
            Kind::Literal(literal) => {
                let size = Some(Range::fixed(literal_size(literal)));
                Estimated { cost: Range::default(), value: Facts { size, ..Facts::default() } }
            }
            Kind::Ident(name) => Estimated { cost: ONE, value: self.named(name, Some(self.root), expr) },
            // `has` adds nothing to the cost of its operand
            Kind::Select { operand, test_only: true, .. } => {
                Estimated { value: self.facts_at(None, expr), ..self.node(operand) }
            }
            Kind::Select { operand, field, .. } => self.select(expr, operand, field),
            Kind::Call { function, target, args } => self.call(expr, function, target.as_deref(), args),
            Kind::List { items, .. } => self.list(items),
            Kind::Map(entries) => self.map(entries),
            Kind::Struct { fields, .. } => {
                let fields: Vec<Estimated<'d>> = fields.iter().map(|field| self.node(&field.value)).collect();
                Estimated { cost: total(MESSAGE_LITERAL_COST, fields.iter()), value: self.facts_at(None, expr) }
            }
            Kind::Comprehension(fold) if is_binding(fold) => self.binding(fold),
            Kind::Comprehension(fold) => self.fold(expr, fold),
        };
        if let Some(trace) = &mut self.trace {
            trace.costs.insert(expr.id, estimated.cost.max);
        }
        estimated
    }

    /// Selecting a field of a map or object costs one unit.
    fn select(&mut self, expr: &'c Expr, operand: &'c Expr, field: &str) -> Estimated<'d> {
        let Estimated { cost, value } = self.node(operand);
        let origin = self.step(value.origin, DeclStep::Field(field));
        let has_fields =
            matches!(self.t(operand), Type::Map(_) | Type::Object(_) | Type::Made(_) | Type::Named(_) | Type::Param(_));
        let cost = if has_fields { cost.plus(ONE) } else { cost };
        Estimated { cost, value: self.facts_at(origin, expr) }
    }

    fn list(&mut self, items: &'c [Expr]) -> Estimated<'d> {
        let items: Vec<Estimated<'d>> = items.iter().map(|item| self.node(item)).collect();
        let entries = Some(Entries { list: true, key: ONE, value: span(items.iter()) });
        let size = Some(Range::fixed(items.len() as u64));
        Estimated { cost: total(LIST_LITERAL_COST, items.iter()), value: Facts { origin: None, size, entries } }
    }

    fn map(&mut self, entries: &'c [ast::Entry]) -> Estimated<'d> {
        let keys: Vec<Estimated<'d>> = entries.iter().map(|entry| self.node(&entry.key)).collect();
        let values: Vec<Estimated<'d>> = entries.iter().map(|entry| self.node(&entry.value)).collect();
        let cost = total(MAP_LITERAL_COST, keys.iter().chain(&values));
        let size = Some(Range::fixed(entries.len() as u64));
        let entries = Some(Entries { list: false, key: span(keys.iter()), value: span(values.iter()) });
        Estimated { cost, value: Facts { origin: None, size, entries } }
    }

    fn argument(&mut self, expr: &'c Expr) -> Argument<'c, 'd> {
        let Estimated { cost, value } = self.node(expr);
        Argument { expr, t: self.t(expr), cost, value }
    }

    /// The range of the estimates of all overloads that may be called.
    fn call(&mut self, expr: &'c Expr, function: &str, target: Option<&'c Expr>, args: &'c [Expr]) -> Estimated<'d> {
        if let ("dyn", [arg]) = (function, args) {
            let Estimated { cost, value } = self.node(arg);
            return Estimated { cost: cost.plus(ONE), value: Facts { origin: None, ..value } };
        }
        let args: Vec<Argument<'c, 'd>> = args.iter().map(|arg| self.argument(arg)).collect();
        let overloads = self.checked.overloads(expr.id);
        if overloads.is_empty() {
            return Estimated { cost: Range::default(), value: self.facts_at(None, expr) };
        }
        let call = EstimatedCall { receiver: target.map(|target| self.argument(target)), args };
        let mut cost = Range { min: u64::MAX, max: 0 };
        let mut value = Facts::default();
        for index in overloads {
            let overload = registry().overload(*index);
            let size = self.result_size(&call, overload);
            cost = cost.union(self.overload_cost(&call, overload, size));
            value.size = [value.size, size].into_iter().flatten().reduce(Range::union);
            value.entries = call.result_entries(overload).or(value.entries);
            if let ("index_list" | "index_map", [operand, ..]) = (overload.id, call.args.as_slice()) {
                value.size = operand.value.entries.map(|entries| entries.value);
                value.origin = self.step(operand.value.origin, DeclStep::Items);
            }
            value.size = value.size.or(self.facts_at(value.origin, expr).size);
        }
        // the costs of overloads include those of the arguments, since some evaluate only a part of them
        let receiver = call.receiver.map_or(Range::default(), |receiver| receiver.cost);
        Estimated { cost: receiver.plus(cost), value }
    }
}

/// Comprehensions, to which macros expand.
impl<'c, 'd> Estimator<'c, 'd> {
    /// `cel.bind`: the initial value and the result, once each.
    fn binding(&mut self, fold: &'c Comprehension) -> Estimated<'d> {
        let (range, init) = (self.node(&fold.range), self.node(&fold.init));
        self.scope.push((&fold.accu, init.value));
        let result = self.node(&fold.result);
        self.scope.pop();
        let value = match &fold.result.kind {
            // kube-apiserver looks the result up where the variable is out of scope
            Kind::Ident(name) if *name == fold.accu => self.named(name, result.value.origin, &fold.result),
            _ => result.value,
        };
        Estimated { cost: total(0, [&range, &init, &result].into_iter()), value: Facts { origin: None, ..value } }
    }

    /// A loop: the condition and the step once for each item.
    fn fold(&mut self, expr: &'c Expr, fold: &'c Comprehension) -> Estimated<'d> {
        let (range, init) = (self.node(&fold.range), self.node(&fold.init));
        self.scope.push((&fold.accu, init.value));
        let outside = self.scope.len();
        self.push_items(fold, &range.value);
        let (condition, step) = (self.node(&fold.condition), self.node(&fold.step));
        self.scope.truncate(outside);
        let result = self.node(&fold.result);
        self.scope.pop();

        let count = range.value.size_or_unknown();
        if let Some(trace) = &mut self.trace {
            trace.rounds.insert(expr.id, count.max);
        }
        let mut value = self.facts_at(None, expr);
        match &fold.init.kind {
            // the result of `all`, `exists` and the like has the size of its initial value
            Kind::Literal(_) => value.size = init.value.size,
            // a list or map that is built has at most one entry for each item
            Kind::List { .. } | Kind::Map(_) => {
                value = Facts { size: Some(count), entries: step.value.entries, ..value };
            }
            _ => {}
        }
        let rounds = count.times(condition.cost.plus(step.cost));
        Estimated { cost: total(0, [&range, &init, &result].into_iter()).plus(rounds), value }
    }

    /// The variables for the key or index and for the value of an item; a single one is the item of a list or the key
    /// of a map.
    fn push_items(&mut self, fold: &'c Comprehension, range: &Facts<'d>) {
        let is_list = range.entries.map_or(matches!(self.t(&fold.range), Type::List(_)), |entries| entries.list);
        let key = Facts {
            origin: self.step(range.origin, if is_list { DeclStep::Indices } else { DeclStep::Keys }),
            size: range.entries.map(|entries| entries.key),
            entries: None,
        };
        let value = Facts {
            origin: self.step(range.origin, DeclStep::Items),
            size: range.entries.map(|entries| entries.value),
            entries: None,
        };
        match &fold.var2 {
            Some(second) => self.scope.extend([(&fold.var, key), (second, value)]),
            None => self.scope.push((&fold.var, if is_list { value } else { key })),
        }
    }
}

/// Whether the comprehension is what `cel.bind` expands to: a loop over an empty list, with a condition that is always false. Its
/// accumulator has the name that the user has given, unlike those of other macros.
fn is_binding(fold: &Comprehension) -> bool {
    let is_empty = matches!(&fold.range.kind, Kind::List { items, .. } if items.is_empty());
    let ends_at_once = matches!(fold.condition.kind, Kind::Literal(Literal::Bool(false)));
    is_empty && ends_at_once && fold.accu != ACCUMULATOR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_costs_use_known_bounds() {
        let env = Environment::standard();
        let cases = [
            ("['a', 'bcd'].all(x, x == 'b')", Range { min: 17, max: 21 }),
            ("cel.bind(x, ['a'], x.all(y, y == 'a'))", Range { min: 25, max: 27 }),
            // the result is the variable itself, whose size is lost
            ("cel.bind(x, ['a'], x).all(y, y == 'a')", Range { min: 22, max: u64::MAX }),
            ("cel.bind(x, ['a'], x + ['b']).all(y, y == 'a')", Range { min: 39, max: 43 }),
            ("cel.bind(x, ['a', 'b', 'c'], cel.bind(x, ['a'], x)).all(y, y == 'a')", Range { min: 51, max: 57 }),
            ("['a', 'b'].map(x, [x]).all(y, y == ['a'])", Range { min: 74, max: 98 }),
            ("{'a': 'bcd'}.all(k, k == 'a')", Range { min: 34, max: 36 }),
        ];
        for (text, want) in cases {
            let checked = env.check(text).expect(text);
            assert_eq!(estimate(&env, &checked), want, "{text}");
        }
    }
}
