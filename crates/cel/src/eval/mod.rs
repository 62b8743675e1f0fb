//! The evaluator: walks the nodes of a program once and counts costs as cel-go's cost tracker does.
//!
//! Errors are values of `Result`. `&&`, `||` and folds absorb them, except fatal ones, such as an exceeded budget.

mod attributes;
mod calls;
mod folds;
mod literals;
mod operators;

use crate::node::{Bind, Node, Program};
use crate::supply::LazyValue;
use crate::value::{Error, Result, Val, equal};
use crate::work;

/// The value of a variable.
#[derive(Debug)]
pub(crate) enum Slot<'a> {
    Empty,
    Value(Val<'a>),
    Failed(Error),
    /// Evaluated when it is first used.
    Lazy(&'a Node),
    /// The result of another program, computed at first use, and the variable's name.
    ByProgram(&'a Program, &'a str),
    /// Computed by the caller at first use.
    Supplied(&'a dyn LazyValue),
}

#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub slots: Vec<Slot<'a>>,
    pub cost: u64,
    cost_max: u64,
    /// Whether optional values behave as in the cel-go of Kubernetes 1.36 and earlier: a value selected from an
    /// optional loses its declared type, and `or` and `orValue` accept a receiver that is not optional and return it.
    pub legacy_optionals: bool,
    /// The cost at which to ask the interrupt next whether the request has been given up.
    ask_at: u64,
}

/// The cost between two such questions: about a millisecond.
const ASK_COST: u64 = 1 << 14;

impl<'a> Frame<'a> {
    pub fn new(slots: Vec<Slot<'a>>, cost_max: u64) -> Frame<'a> {
        Frame { slots, cost: 0, cost_max, legacy_optionals: false, ask_at: ASK_COST }
    }

    /// Evaluates a node that uses no variables, without limits.
    pub fn constant(node: &'a Node) -> Result<Val<'a>> {
        work::begin(u64::MAX);
        Frame::new(vec![], u64::MAX).eval(node)
    }

    #[inline]
    fn charge(&mut self, cost: u64) -> Result<()> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.ask_at || self.cost > self.cost_max { self.check_bounds() } else { Ok(()) }
    }

    #[cold]
    fn check_bounds(&mut self) -> Result<()> {
        self.ask_at = self.cost.saturating_add(ASK_COST);
        if self.cost > self.cost_max || machinery::work::ask() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Charges an operation that may have walked values, and ends the evaluation if its work limit is used up.
    #[inline]
    fn charge_steps(&mut self, cost: u64) -> Result<()> {
        if work::is_used_up() { Err(Error::cancelled()) } else { self.charge(cost) }
    }

    pub fn eval(&mut self, node: &'a Node) -> Result<Val<'a>> {
        match node {
            Node::Const(constant) => Ok(constant.value()),
            Node::Fail(error) => Err(error.clone()),
            Node::Attribute(attribute) => self.attribute(attribute),
            Node::Has(attribute) => self.has(attribute),
            Node::And(sides) => self.logical(sides, false),
            Node::Or(sides) => self.logical(sides, true),
            Node::Conditional(nodes) => match self.eval(&nodes[0])? {
                Val::Bool(true) => self.eval(&nodes[1]),
                Val::Bool(false) => self.eval(&nodes[2]),
                _ => Err(Error::overload()),
            },
            Node::Equal { sides, negated } => self.equal(sides, *negated),
            Node::Order { sides, order, cost } => self.order(sides, *order, *cost),
            Node::Call(call) => self.call(call),
            Node::Regex(call) => self.regex(call),
            Node::InConstants(parts) => {
                let value = self.eval(&parts.0)?;
                for member in &parts.1 {
                    if equal(&value, &member.value()).unwrap_or(false) {
                        return Ok(Val::Bool(true));
                    }
                }
                Ok(Val::Bool(false))
            }
            Node::List { items, optional } => self.list(items, optional),
            Node::Map(entries) => self.map(entries),
            Node::Made(name, fields) => self.made(name, fields),
            Node::Fold(fold) => self.fold(fold),
            Node::Quantifier(quantifier) => self.quantifier(quantifier),
            Node::Bind(bind) => self.bind(bind),
            Node::Append { accu, item, charge } => self.append(*accu, item, *charge),
            Node::Insert { accu, parts } => self.insert(*accu, parts),
            Node::OptionalOr { sides, value } => self.optional_or(sides, *value),
        }
    }

    fn set(&mut self, slot: u32, value: Result<Val<'a>>) {
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = match value {
                Ok(value) => Slot::Value(value),
                Err(error) => Slot::Failed(error),
            };
        }
    }

    /// Evaluates a node. The outer error is fatal; the inner one may be absorbed.
    fn absorbable(&mut self, node: &'a Node) -> Result<Result<Val<'a>>> {
        match self.eval(node) {
            Err(error) if error.is_fatal() => Err(error),
            other => Ok(other),
        }
    }

    fn bind(&mut self, bind: &'a Bind) -> Result<Val<'a>> {
        if let Some(place) = self.slots.get_mut(bind.slot as usize) {
            *place = Slot::Lazy(&bind.init);
        }
        let result = self.eval(&bind.result);
        if let Some(place) = self.slots.get_mut(bind.slot as usize) {
            *place = Slot::Empty;
        }
        result
    }
}

/// The value by which costs are counted: null, of size 1, in place of an error.
fn sizeless<'a>(value: &Result<Val<'a>>) -> Val<'a> {
    value.clone().unwrap_or(Val::Null)
}
