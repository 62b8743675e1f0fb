//! Programs: checked expressions, lowered to nodes.
//!
//! Lowering follows cel-go's planner, since the cost at run time depends on it: chains of selections become one attribute,
//! literals of constants become constants, conversions of constants are evaluated.

use crate::ast::{Comprehension, Expr, Field, Kind, Literal};
use crate::check::{Checked, FoundProblems, Reference};
use crate::decl::types::Type;
use crate::env::{Environment, VariableNames};
use crate::eval::{Frame, Slot};
use crate::library::costs::{CALL_COST, Charge, LIST_COST};
use crate::library::{Library, OverloadIndex, is_plain, registry};
use crate::node::{
    Attribute, Base, Bind, Call, Const, Fold, Node, Order, Program, Qualifier, QualifierKind, Quantifier, RegexCall,
    RegexKind,
};
use crate::parser::macros::{ACCUMULATOR, UNUSED};
use crate::regex::Regex;
use crate::supply::LazyValue;
use crate::value::{Error, Val};
use machinery::Text;
use std::sync::Arc;

/// The result of an evaluation.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome<'a> {
    /// The value of the expression, of type [`Checked::output_type`], or the error.
    pub result: Result<Val<'a>, Error>,
    /// The cost of the evaluation, in the units of Kubernetes (about one step each), whether or not it succeeded.
    pub cost: u64,
}

impl Program {
    /// Makes a checked expression ready for evaluation. `env` is the environment that it was checked in.
    ///
    /// # Errors
    ///
    /// A constant part of the expression fails: a pattern is not a regular expression, or a text is not a timestamp.
    pub fn new(env: &Environment, checked: &Checked) -> Result<Program, Error> {
        Program::of_part(env, checked, &checked.ast.root)
    }

    /// As [`Program::new`], for a part of the expression. The variables of the loops around it have to be in `env`.
    pub(crate) fn of_part(env: &Environment, checked: &Checked, part: &Expr) -> Result<Program, Error> {
        let names: Box<[Text]> = env.variables.iter().map(|v| v.name.clone()).collect();
        let mut lowering = Lowering { checked, scope: names.to_vec(), slots: names.len(), variables: names.len() };
        let root = lowering.expr(part)?;
        let legacy_optionals = env.libraries.has(Library::Legacy);
        Ok(Program { root, slots: lowering.slots, names, legacy_optionals })
    }

    /// Evaluates the expression with values for variables by name. A variable without a value is an error where the
    /// expression needs it; a value for a name that the environment does not declare is ignored.
    ///
    /// The evaluation ends with an error as soon as it has cost more than `cost_max`; kube-apiserver allows
    /// [`crate::rules::CALL_COST_MAX`].
    ///
    /// ```
    /// use cel::{Environment, Program, Type, Val};
    ///
    /// let env = Environment::standard().variable("name", Type::String);
    /// let checked = env.check("name.startsWith('web-')").unwrap();
    /// let program = Program::new(&env, &checked).unwrap();
    /// let outcome = program.eval(&[("name", Val::string("web-7"))], 1_000);
    /// assert!(matches!(outcome.result, Ok(Val::Bool(true))));
    /// ```
    pub fn eval<'a>(&'a self, variables: &[(&str, Val<'a>)], cost_max: u64) -> Outcome<'a> {
        let mut slots = Vec::with_capacity(self.slots);
        slots.extend(self.names.iter().map(|name| {
            let given = variables.iter().find(|(given, _)| name == given);
            given.map_or(Slot::Empty, |(_, value)| Slot::Value(value.clone()))
        }));
        self.eval_in(&mut Activation { names: VariableNames::default(), slots }, cost_max)
    }

    /// Evaluates the expression with an activation, which keeps the values that were computed for the next program.
    pub fn eval_in<'a>(&'a self, activation: &mut Activation<'a>, cost_max: u64) -> Outcome<'a> {
        self.eval_within(activation, cost_max, u64::MAX)
    }

    /// As [`Program::eval_in`], with a bound of the work, in units of [`crate::work`].
    pub(crate) fn eval_within<'a>(&'a self, activation: &mut Activation<'a>, cost_max: u64, units: u64) -> Outcome<'a> {
        crate::work::begin(units);
        let mut slots = std::mem::take(&mut activation.slots);
        // usually nothing is left, since most programs declare all variables of the activation
        let rest = (slots.len() > self.names.len()).then(|| slots.split_off(self.names.len()));
        if slots.len() < self.slots {
            slots.resize_with(self.slots, || Slot::Empty);
        }
        let mut frame = Frame::new(slots, cost_max);
        frame.legacy_optionals = self.legacy_optionals;
        let result = frame.eval(&self.root);
        let cost = frame.cost;
        frame.slots.truncate(self.names.len());
        if let Some(rest) = rest {
            frame.slots.extend(rest);
        }
        activation.slots = frame.slots;
        Outcome { result, cost }
    }
}

/// The values of an environment's variables for several programs.
///
/// [`Program::eval`] looks values up by name. An activation does that once for many programs over the same variables, and
/// computes values only when they are needed. Values for names that the environment does not declare are ignored.
#[derive(Debug, Default)]
pub struct Activation<'a> {
    names: VariableNames,
    /// The slots of the variables in the order of the environment, and of loops.
    slots: Vec<Slot<'a>>,
}

impl<'a> Activation<'a> {
    /// An activation in which all variables are absent.
    #[must_use]
    pub fn new(names: &VariableNames) -> Activation<'a> {
        let mut slots = Vec::with_capacity(names.as_slice().len() + LOOP_SLOTS);
        slots.resize_with(names.as_slice().len(), || Slot::Empty);
        Activation { names: names.clone(), slots }
    }

    /// Values for the first variables; `None` for absent ones.
    pub(crate) fn of_values(values: impl IntoIterator<Item = Option<Val<'a>>>) -> Activation<'a> {
        let slots = values.into_iter().map(|value| value.map_or(Slot::Empty, Slot::Value)).collect();
        Activation { names: VariableNames::default(), slots }
    }

    /// Gives a variable a value.
    pub fn set(&mut self, name: &str, value: Val<'a>) {
        self.fill(name, Slot::Value(value));
    }

    /// Gives a variable a value that is computed when an expression first needs it.
    pub fn supply(&mut self, name: &str, supply: &'a dyn LazyValue) {
        self.fill(name, Slot::Supplied(supply));
    }

    /// Gives a variable the value of a program over the variables that the environment declares before it. The program is
    /// evaluated when an expression first needs the value. Errors call the variable by the last part of its name.
    pub fn compose(&mut self, name: &'a str, program: &'a Program) {
        self.fill(name, Slot::ByProgram(program, name.rsplit('.').next().unwrap_or(name)));
    }

    /// The value of a variable that has one already: it was set, or an expression has needed it.
    pub fn known(&self, name: &str) -> Option<Result<&Val<'a>, &Error>> {
        let at = self.names.as_slice().iter().position(|known| known == name)?;
        match self.slots.get(at)? {
            Slot::Value(value) => Some(Ok(value)),
            Slot::Failed(error) => Some(Err(error)),
            _ => None,
        }
    }

    fn fill(&mut self, name: &str, value: Slot<'a>) {
        if let Some(at) = self.names.as_slice().iter().position(|known| known == name) {
            self.slots[at] = value;
        }
    }
}

/// Room for the slots of loops in an activation.
const LOOP_SLOTS: usize = 4;

struct Lowering<'c> {
    checked: &'c Checked,
    /// The names of the slots, by number. If a name occurs twice, the last one counts.
    scope: Vec<Text>,
    slots: usize,
    /// The number of slots for variables of the environment.
    variables: usize,
}

const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "dyn", "duration", "int", "string", "timestamp", "type", "uint"];

type Lowered = Result<Node, Error>;

impl Lowering<'_> {
    fn slot(&self, name: &str) -> Option<u32> {
        let at = match name.strip_prefix('.') {
            Some(full) => self.scope.iter().take(self.variables).position(|n| n == full),
            None => self.scope.iter().rposition(|n| n == name),
        };
        at.map(|at| at as u32)
    }

    /// Adds a slot for a name. Slots are never reused: names out of scope are renamed.
    fn declare(&mut self, name: &Text) -> u32 {
        self.scope.resize(self.slots, Text::default());
        self.scope.push(name.clone());
        self.slots += 1;
        (self.slots - 1) as u32
    }

    fn forget(&mut self, slot: u32) {
        if let Some(name) = self.scope.get_mut(slot as usize) {
            *name = Text::default();
        }
    }

    fn all(&mut self, exprs: &[Expr]) -> Result<Vec<Node>, Error> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn expr(&mut self, expr: &Expr) -> Lowered {
        match self.lower(expr) {
            Err(error) if self.checked.problems == FoundProblems::LeftToEvaluation => Ok(Node::Fail(error)),
            other => other,
        }
    }

    fn lower(&mut self, expr: &Expr) -> Lowered {
        match &expr.kind {
            Kind::Error => Err(Error::new("expression has errors")),
            Kind::Literal(literal) => Ok(Node::Const(Const::Literal(literal.clone()))),
            Kind::Ident(name) => self.ident(expr, name),
            Kind::Select { operand, field, test_only } => {
                let node = self.expr(operand)?;
                let qualifier = Qualifier { kind: QualifierKind::Field(field.clone()), optional: false };
                let attribute = qualify(node, qualifier);
                Ok(if *test_only { Node::Has(attribute) } else { Node::Attribute(attribute) })
            }
            Kind::Call { function, target, args } => self.call(expr, function, target.as_deref(), args),
            Kind::List { items, optional } => {
                let nodes = self.all(items)?;
                let constants: Option<Vec<Const>> = nodes.iter().map(constant).collect();
                if optional.is_empty()
                    && let Some(constants) = constants
                {
                    return Ok(Node::Const(Const::List(constants.into())));
                }
                let optional = (0..nodes.len()).map(|i| optional.contains(&(i as u32))).collect();
                Ok(Node::List { items: nodes.into(), optional })
            }
            Kind::Map(entries) => {
                let mut nodes = vec![];
                for entry in entries {
                    nodes.push((self.expr(&entry.key)?, self.expr(&entry.value)?, entry.optional));
                }
                let pairs: Option<Vec<(Const, Const)>> = nodes
                    .iter()
                    .map(|(k, v, optional)| if *optional { None } else { Some((constant(k)?, constant(v)?)) })
                    .collect();
                let node = Node::Map(nodes.into());
                match pairs {
                    Some(pairs) if Frame::constant(&node).is_ok() => Ok(Node::Const(Const::Map(pairs.into()))),
                    _ => Ok(node),
                }
            }
            Kind::Struct { name, fields } => {
                if !matches!(self.checked.type_of(expr.id), Type::Made(_)) {
                    return Err(Error::new(format!("unknown type: {name}")));
                }
                let field = |field: &Field| Ok((field.name.clone(), self.expr(&field.value)?, field.optional));
                let fields: Result<Vec<_>, Error> = fields.iter().map(field).collect();
                Ok(Node::Made(name.clone(), fields?.into()))
            }
            Kind::Comprehension(fold) => self.fold(fold),
        }
    }

    fn ident(&mut self, expr: &Expr, name: &str) -> Lowered {
        if *self.checked.reference(expr.id) == Reference::TypeName {
            let Type::Type(Some(inner)) = self.checked.type_of(expr.id) else {
                return Ok(Node::Const(Const::Type(Arc::new(Type::Type(None)))));
            };
            return Ok(Node::Const(Const::Type(inner.clone())));
        }
        match self.slot(name) {
            Some(slot) => {
                Ok(Node::Attribute(Box::new(Attribute { base: Base::Slot(slot), qualifiers: vec![], free: false })))
            }
            None => Err(Error::new(format!("no such attribute: {name}"))),
        }
    }

    fn pair(&mut self, args: &[Expr]) -> Result<Box<[Node; 2]>, Error> {
        match args {
            [a, b] => Ok(Box::new([self.expr(a)?, self.expr(b)?])),
            _ => Err(Error::overload()),
        }
    }

    fn call(&mut self, expr: &Expr, function: &Text, target: Option<&Expr>, args: &[Expr]) -> Lowered {
        match function.as_str() {
            "_&&_" => return Ok(Node::And(self.pair(args)?)),
            "_||_" => return Ok(Node::Or(self.pair(args)?)),
            "_==_" => return Ok(Node::Equal { sides: self.pair(args)?, negated: false }),
            "_!=_" => return Ok(Node::Equal { sides: self.pair(args)?, negated: true }),
            "_?:_" | "_?_:_" => {
                let [condition, yes, no] = args else { return Err(Error::overload()) };
                let nodes = [self.expr(condition)?, freed(self.expr(yes)?), freed(self.expr(no)?)];
                return Ok(Node::Conditional(Box::new(nodes)));
            }
            "_[_]" | "_[?_]" | "_?._" => return self.index(args, function != "_[_]"),
            _ => {}
        }
        let mut nodes = target.map(|t| self.expr(t)).transpose()?.into_iter().collect::<Vec<_>>();
        nodes.extend(self.all(args)?);
        let overloads = self.checked.overloads(expr.id);
        let only = if let [only] = overloads { Some(registry().overload(*only)) } else { None };
        let id = only.map_or("", |o| o.id);
        match id {
            "optional_or_optional" | "optional_orValue_value" => {
                if let Ok(sides) = <[Node; 2]>::try_from(nodes) {
                    return Ok(Node::OptionalOr { sides: Box::new(sides), value: id != "optional_or_optional" });
                }
                return Err(Error::overload());
            }
            "in_list" => {
                if let Some(members) = nodes.get(1).and_then(constant_members) {
                    let value = nodes.swap_remove(0);
                    return Ok(if members.is_empty() {
                        Node::Const(Const::Literal(Literal::Bool(false)))
                    } else {
                        Node::InConstants(Box::new((value, members)))
                    });
                }
            }
            _ => {}
        }
        let cost = only.map_or_else(|| registry().costs_of(function), |o| &o.definition.costs).charge;
        if let Some(order) = Order::parse(function) {
            let sides = <[Node; 2]>::try_from(nodes).map_err(|_| Error::overload())?;
            return Ok(Node::Order { sides: Box::new(sides), order, cost });
        }
        if let Some(node) = regex_call(function, &mut nodes, cost)? {
            return Ok(node);
        }
        let arguments = target.into_iter().chain(args);
        let typed = arguments.clone().all(|arg| !is_vague(self.checked.type_of(arg.id)));
        let sure = typed && self.checked.problems == FoundProblems::Reported;
        // the type at run time may differ from an inferred one, and conversions accept more than their overloads
        let sure = sure && !CONVERSIONS.contains(&function.as_str());
        let known = only.filter(|o| sure || is_plain(o.function)).map(|o| o.definition.call);
        let all = registry().functions.get(function.as_str()).map_or(&[][..], Vec::as_slice);
        let first = all.first().map(|index| registry().overload(*index));
        let (Some(first), true) = (first, !overloads.is_empty()) else { return Err(Error::overload()) };
        let known = known.or_else(|| is_plain(first.function).then_some(first.definition.call));
        let overloads = if only.is_some() { overload_slice(all, overloads[0]) } else { all };
        let convertible = nodes.len() == 1 && CONVERSIONS.contains(&function.as_str()) && constant(&nodes[0]).is_some();
        let node = Node::Call(Box::new(Call { function: first.function, known, overloads, args: nodes.into(), cost }));
        if convertible {
            let converted = Frame::constant(&node)?;
            if let Some(converted) = Const::of(&converted) {
                return Ok(Node::Const(converted));
            }
        }
        Ok(node)
    }

    fn index(&mut self, args: &[Expr], optional: bool) -> Lowered {
        let [operand, index] = args else { return Err(Error::overload()) };
        let node = self.expr(operand)?;
        let kind = match self.expr(index)? {
            Node::Const(Const::Literal(Literal::String(name))) => QualifierKind::Field(name),
            Node::Const(constant) => match constant.value() {
                Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Double(_) => QualifierKind::Constant(constant),
                other => return Err(Error::new(format!("invalid qualifier type: {}", other.go_type()))),
            },
            other => QualifierKind::Node(freed(other)),
        };
        Ok(Node::Attribute(qualify(node, Qualifier { kind, optional })))
    }

    fn fold(&mut self, fold: &Comprehension) -> Lowered {
        if fold.var == UNUSED {
            let init = self.expr(&fold.init)?;
            let slot = self.declare(&fold.accu);
            let result = self.expr(&fold.result)?;
            self.forget(slot);
            return Ok(Node::Bind(Box::new(Bind { slot, init, result })));
        }
        let range = self.expr(&fold.range)?;
        let init = self.expr(&fold.init)?;
        let accu = self.declare(&fold.accu);
        let var = self.declare(&fold.var);
        let var2 = fold.var2.as_ref().map(|name| self.declare(name));
        if let Some((decisive, predicate)) = quantified(fold) {
            let predicate = self.expr(predicate)?;
            [Some(accu), Some(var), var2].into_iter().flatten().for_each(|slot| self.forget(slot));
            return Ok(Node::Quantifier(Box::new(Quantifier { range, var, var2, predicate, decisive })));
        }
        let condition = self.expr(&fold.condition)?;
        let step = self.step(&fold.step, accu)?;
        self.forget(var);
        var2.into_iter().for_each(|slot| self.forget(slot));
        let result = self.expr(&fold.result)?;
        self.forget(accu);
        Ok(Node::Fold(Box::new(Fold { range, var, var2, accu, init, condition, step, result })))
    }

    /// Steps that add to the accumulator do so in place.
    fn step(&mut self, step: &Expr, accu: u32) -> Lowered {
        let is_accu = |expr: &Expr| matches!(&expr.kind, Kind::Ident(name) if name == ACCUMULATOR);
        let Kind::Call { function, target: None, args } = &step.kind else { return self.expr(step) };
        match (function.as_str(), args.as_slice()) {
            ("_?_:_", [condition, yes, no]) => {
                let nodes = [self.expr(condition)?, freed(self.step(yes, accu)?), freed(self.step(no, accu)?)];
                Ok(Node::Conditional(Box::new(nodes)))
            }
            ("_+_", [left, Expr { kind: Kind::List { items, optional }, .. }])
                if is_accu(left) && items.len() == 1 && optional.is_empty() =>
            {
                let item = self.expr(&items[0])?;
                let charge = if constant(&item).is_some() { CALL_COST } else { LIST_COST };
                Ok(Node::Append { accu, item: Box::new(item), charge })
            }
            ("cel.@mapInsert", [left, rest @ ..]) if is_accu(left) => {
                Ok(Node::Insert { accu, parts: self.all(rest)?.into() })
            }
            _ => self.expr(step),
        }
    }
}

/// The predicate of `all` and `exists`, and which result of it decides.
fn quantified(fold: &Comprehension) -> Option<(bool, &Expr)> {
    let Kind::Call { function, target: None, args } = &fold.step.kind else { return None };
    let decisive = match (function.as_str(), &fold.init.kind) {
        ("_&&_", Kind::Literal(Literal::Bool(true))) => false,
        ("_||_", Kind::Literal(Literal::Bool(false))) => true,
        _ => return None,
    };
    match args.as_slice() {
        [Expr { kind: Kind::Ident(name), .. }, predicate] if name == ACCUMULATOR => Some((decisive, predicate)),
        _ => None,
    }
}

/// The subslice of a function's overloads that contains only `only`.
fn overload_slice(all: &'static [OverloadIndex], only: OverloadIndex) -> &'static [OverloadIndex] {
    let at = all.iter().position(|index| *index == only).unwrap_or(0);
    &all[at..=at]
}

/// Whether the type of the value is only known at run time.
fn is_vague(t: &Type) -> bool {
    match t {
        Type::Dyn | Type::Any | Type::Error | Type::Param(_) | Type::Wrapper(_) | Type::Null => true,
        Type::List(item) => is_vague(item),
        _ => false,
    }
}

fn constant(node: &Node) -> Option<Const> {
    if let Node::Const(constant) = node { Some(constant.clone()) } else { None }
}

/// The items of a constant list if they are primitive.
fn constant_members(node: &Node) -> Option<Vec<Const>> {
    let Node::Const(Const::List(items)) = node else { return None };
    let primitive =
        |item: &Const| matches!(item, Const::Literal(literal) if !matches!(literal, Literal::Null | Literal::Bytes(_)));
    items.iter().all(primitive).then(|| items.to_vec())
}

/// A branch of a conditional, whose variable is not charged.
fn freed(node: Node) -> Node {
    match node {
        Node::Attribute(mut attribute) => {
            attribute.free = true;
            Node::Attribute(attribute)
        }
        other => other,
    }
}

fn qualify(node: Node, qualifier: Qualifier) -> Box<Attribute> {
    match node {
        Node::Attribute(mut attribute) => {
            attribute.qualifiers.push(qualifier);
            attribute
        }
        other => {
            let free = matches!(other, Node::Conditional(_));
            Box::new(Attribute { base: Base::Node(other), qualifiers: vec![qualifier], free })
        }
    }
}

/// Compiles a constant pattern once.
fn regex_call(function: &str, nodes: &mut Vec<Node>, cost: Charge) -> Result<Option<Node>, Error> {
    let kind = match function {
        "matches" => RegexKind::Matches,
        "find" => RegexKind::Find,
        "findAll" => RegexKind::FindAll,
        _ => return Ok(None),
    };
    let Some(Node::Const(Const::Literal(Literal::String(pattern)))) = nodes.get(1) else { return Ok(None) };
    let regex = Regex::new(pattern).map_err(|e| Error::new(e.text))?;
    let args = std::mem::take(nodes).into();
    Ok(Some(Node::Regex(Box::new(RegexCall { kind, regex, args, cost }))))
}
