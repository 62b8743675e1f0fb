//! The estimate of an expression's cost, made when it is defined.
//!
//! The numbers are those of cel-go's checker and of Kubernetes' estimator, quirks included: every type knows the
//! largest size it can have, and each function says how its cost and the size of its result follow from sizes.

mod calls;
mod parts;

use self::calls::EstimatedCall;
use crate::ast::{Comprehension, Expr, Id, Kind, Literal};
use crate::check::Checked;
use crate::decl::types::Type;
use crate::decl::{Decl, DeclStep};
use crate::env::Environment;
use crate::library::registry;
use crate::parser::macros::ACCUMULATOR;
use machinery::Text;
use std::collections::HashMap;

pub use parts::Part;

/// The least and the most that an evaluation may cost, in the units of Kubernetes, or a size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub min: u64,
    /// The most; `u64::MAX` if there is no bound.
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

/// Where a node's value comes from: no known place, or a place that may have a declaration.
type Origin<'d> = Option<Option<&'d Decl>>;

/// The sizes of the entries of a list or map.
#[derive(Clone, Copy, Debug)]
struct Entries {
    list: bool,
    key: Range,
    value: Range,
}

struct Local<'d> {
    place: Origin<'d>,
    size: Option<Range>,
    entries: Option<Entries>,
}

struct Coster<'c, 'd> {
    checked: &'c Checked,
    root: Option<&'d Decl>,
    places: HashMap<Id, Origin<'d>>,
    sizes: HashMap<Id, Range>,
    entries: HashMap<Id, Entries>,
    locals: HashMap<Text, Vec<Local<'d>>>,
    /// The costs of all nodes, if an explanation is wanted.
    trace: Option<parts::Trace>,
}

/// What an argument of a call is known to be.
struct Argument<'c, 'd> {
    expr: &'c Expr,
    place: Origin<'d>,
    t: &'c Type,
    size: Option<Range>,
}

/// The estimated cost of one evaluation of an expression.
///
/// Kubernetes rejects a CustomResourceDefinition with a rule whose maximum, times the number of values that the rule may be
/// evaluated for, is beyond [`crate::rules::EXPRESSION_COST_MAX`].
pub fn estimate(env: &Environment, checked: &Checked) -> Range {
    Coster::new(env, checked).cost(&checked.ast.root)
}

/// The estimated cost of an expression and the parts that it comes from, the most expensive first.
pub fn explain(env: &Environment, checked: &Checked) -> (Range, Vec<Part>) {
    let mut coster = Coster::new(env, checked);
    coster.trace = Some(parts::Trace::default());
    let cost = coster.cost(&checked.ast.root);
    let parts = coster.trace.map(|trace| trace.parts(&checked.ast)).unwrap_or_default();
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

impl<'c, 'd> Coster<'c, 'd> {
    fn new(env: &'d Environment, checked: &'c Checked) -> Coster<'c, 'd> {
        Coster {
            checked,
            root: env.variables.iter().find_map(|v| v.decl.as_deref()),
            places: HashMap::new(),
            sizes: HashMap::new(),
            entries: HashMap::new(),
            locals: HashMap::new(),
            trace: None,
        }
    }

    fn t(&self, expr: &Expr) -> &'c Type {
        self.checked.type_of(expr.id)
    }

    fn local(&self, name: &str) -> Option<&Local<'d>> {
        self.locals.get(name).and_then(|stack| stack.last())
    }

    fn place(&self, expr: &Expr) -> Origin<'d> {
        if let Kind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.place;
        }
        self.places.get(&expr.id).copied().flatten()
    }

    /// The place one step further. A step from nowhere leads to the root: upstream takes the step's name for the
    /// name of a variable.
    fn step(&self, place: Origin<'d>, step: DeclStep<'_>) -> Origin<'d> {
        match place {
            None => Some(self.root),
            Some(decl) => Some(decl.and_then(|decl| decl.step(step))),
        }
    }

    /// The size that the declaration at a place bounds.
    fn declared(&self, place: Origin<'d>) -> Option<Range> {
        place.flatten().map(|decl| Range { min: 0, max: decl.elements_max })
    }

    fn size(&mut self, expr: &Expr) -> Option<Range> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        match &expr.kind {
            Kind::Literal(literal) => return Some(Range::fixed(literal_size(literal))),
            Kind::List { items, .. } => return Some(Range::fixed(items.len() as u64)),
            Kind::Map(entries) => return Some(Range::fixed(entries.len() as u64)),
            _ => {}
        }
        if let Some(size) = self.declared(self.place(expr)) {
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(self.t(expr)) {
            return Some(ONE);
        }
        if let Kind::Ident(name) = &expr.kind {
            return self.local(name).and_then(|local| local.size);
        }
        None
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> Range {
        self.size(expr).unwrap_or(Range::UNKNOWN)
    }

    fn entries(&self, expr: &Expr) -> Option<Entries> {
        if let Some(entries) = self.entries.get(&expr.id) {
            return Some(*entries);
        }
        if let Kind::Ident(name) = &expr.kind {
            return self.local(name).and_then(|local| local.entries);
        }
        None
    }

    fn cost(&mut self, expr: &'c Expr) -> Range {
        let cost = self.cost_of(expr);
        if let Some(trace) = &mut self.trace {
            trace.costs.insert(expr.id, cost.max);
        }
        cost
    }

    fn cost_of(&mut self, expr: &'c Expr) -> Range {
        match &expr.kind {
            Kind::Error | Kind::Literal(_) => Range::default(),
            Kind::Ident(name) => {
                let place = match self.local(name) {
                    Some(local) => local.place,
                    None => Some(self.root),
                };
                self.places.insert(expr.id, place);
                ONE
            }
            Kind::Select { operand, field, test_only } => {
                let cost = self.cost(operand);
                if *test_only {
                    return cost;
                }
                let known = matches!(
                    self.t(operand),
                    Type::Map(_) | Type::Object(_) | Type::Made(_) | Type::Named(_) | Type::Param(_)
                );
                let place = self.step(self.place(operand), DeclStep::Field(field));
                self.places.insert(expr.id, place);
                if known { cost.plus(ONE) } else { cost }
            }
            Kind::Call { .. } => self.call(expr),
            Kind::List { items, .. } => {
                let mut cost = Range::fixed(10);
                let mut size = Range { min: if items.is_empty() { 0 } else { u64::MAX }, max: 0 };
                for item in items {
                    cost = cost.plus(self.cost(item));
                    size = size.union(self.size_or_unknown(item));
                }
                self.entries.insert(expr.id, Entries { list: true, key: ONE, value: size });
                cost
            }
            Kind::Map(entries) => {
                let start = Range { min: if entries.is_empty() { 0 } else { u64::MAX }, max: 0 };
                let (mut cost, mut keys, mut values) = (Range::fixed(30), start, start);
                for entry in entries {
                    cost = cost.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
                    keys = keys.union(self.size_or_unknown(&entry.key));
                    values = values.union(self.size_or_unknown(&entry.value));
                }
                self.entries.insert(expr.id, Entries { list: false, key: keys, value: values });
                cost
            }
            Kind::Struct { fields, .. } => {
                let mut cost = Range::fixed(40);
                for field in fields {
                    cost = cost.plus(self.cost(&field.value));
                }
                cost
            }
            Kind::Comprehension(fold) => self.fold(expr, fold),
        }
    }

    fn push(&mut self, name: &Text, local: Local<'d>) {
        self.locals.entry(name.clone()).or_default().push(local);
    }

    fn pop(&mut self, name: &Text) {
        if let Some(stack) = self.locals.get_mut(name) {
            stack.pop();
        }
    }

    fn push_bound(&mut self, name: &Text, init: &Expr) {
        let local = Local { place: self.place(init), size: self.size(init), entries: self.entries(init) };
        self.push(name, local);
    }

    fn push_variables(&mut self, fold: &Comprehension) {
        let entries = self.entries(&fold.range);
        let is_list = entries.map_or(matches!(self.t(&fold.range), Type::List(_)), |e| e.list);
        let place = self.place(&fold.range);
        let key = Local {
            place: self.step(place, if is_list { DeclStep::Indices } else { DeclStep::Keys }),
            size: entries.map(|e| e.key),
            entries: None,
        };
        let value = Local { place: self.step(place, DeclStep::Items), size: entries.map(|e| e.value), entries: None };
        match &fold.var2 {
            Some(second) => {
                self.push(&fold.var, key);
                self.push(second, value);
            }
            None => self.push(&fold.var, if is_list { value } else { key }),
        }
    }

    fn fold(&mut self, expr: &'c Expr, fold: &'c Comprehension) -> Range {
        let empty = matches!(&fold.range.kind, Kind::List { items, .. } if items.is_empty());
        let never = matches!(fold.condition.kind, Kind::Literal(Literal::Bool(false)));
        let mut cost = self.cost(&fold.range).plus(self.cost(&fold.init));
        if empty && never && fold.accu != ACCUMULATOR {
            self.push_bound(&fold.accu, &fold.init);
            cost = cost.plus(self.cost(&fold.result));
            self.pop(&fold.accu);
            if let Some(size) = self.size(&fold.result) {
                self.sizes.insert(expr.id, size);
            }
            if let Some(entries) = self.entries(&fold.result) {
                self.entries.insert(expr.id, entries);
            }
            return cost;
        }
        self.push_bound(&fold.accu, &fold.init);
        self.push_variables(fold);
        let round = self.cost(&fold.condition);
        let round = self.cost(&fold.step).plus(round);
        self.pop(&fold.var);
        fold.var2.iter().for_each(|name| self.pop(name));
        cost = cost.plus(self.cost(&fold.result));
        self.pop(&fold.accu);
        let count = self.size_or_unknown(&fold.range);
        match &fold.init.kind {
            Kind::Literal(_) => {
                if let Some(size) = self.size(&fold.init) {
                    self.sizes.insert(expr.id, size);
                }
            }
            Kind::List { .. } | Kind::Map(_) => {
                self.sizes.insert(expr.id, count);
                if let Some(entries) = self.entries(&fold.step) {
                    self.entries.insert(expr.id, entries);
                }
            }
            _ => {}
        }
        if let Some(trace) = &mut self.trace {
            trace.rounds.insert(expr.id, count.max);
        }
        cost.plus(count.times(round))
    }

    fn argument(&mut self, expr: &'c Expr) -> Argument<'c, 'd> {
        Argument { expr, place: self.place(expr), t: self.t(expr), size: self.size(expr) }
    }

    fn call(&mut self, expr: &'c Expr) -> Range {
        let Kind::Call { function, target, args } = &expr.kind else { return Range::default() };
        if function == "dyn"
            && let [arg] = args.as_slice()
        {
            let cost = self.cost(arg);
            if let Some(size) = self.size(arg) {
                self.sizes.insert(expr.id, size);
            }
            if let Some(entries) = self.entries(arg) {
                self.entries.insert(expr.id, entries);
            }
            return cost.plus(ONE);
        }
        let mut costs = Vec::with_capacity(args.len());
        let mut arguments = Vec::with_capacity(args.len());
        for arg in args {
            costs.push(self.cost(arg));
            arguments.push(self.argument(arg));
        }
        let overloads = self.checked.overloads(expr.id);
        if overloads.is_empty() {
            return Range::default();
        }
        let mut sum = Range::default();
        let receiver = target.as_deref().map(|target| {
            sum = self.cost(target);
            self.argument(target)
        });
        let mut total = Range { min: u64::MAX, max: 0 };
        let mut result: Option<Range> = None;
        let call = EstimatedCall { expr, receiver: receiver.as_ref(), args: &arguments, costs: &costs };
        for index in overloads {
            let overload = registry().overload(*index);
            let (cost, size) = self.overload(&call, overload);
            total = total.union(cost);
            if let Some(size) = size {
                result = Some(result.map_or(size, |known| known.union(size)));
            }
            if matches!(overload.id, "index_list" | "index_map")
                && let Some(operand) = args.first()
            {
                result = self.entries(operand).map(|e| e.value);
                let place = self.step(self.place(operand), DeclStep::Items);
                self.places.insert(expr.id, place);
            }
            if result.is_none() {
                result = self.size(expr);
            }
        }
        if let Some(size) = result {
            self.sizes.insert(expr.id, size);
        }
        sum.plus(total)
    }
}
