//! The evaluator: walks the nodes of a program once and counts costs as cel-go's cost tracker does.
//!
//! Errors are values of `Result`. `&&`, `||` and folds absorb them, except fatal ones, such as an exceeded budget.

use crate::decl::types::Type;
use crate::decl::{Decl, DeclKind};
use crate::library::costs::Charge;
use crate::library::{Overload, is_plain, registry};
use crate::node::{
    Attribute, Base, Bind, Call, Const, Fold, Node, Order, Program, Qualifier, QualifierKind, Quantifier, RegexCall,
    RegexKind,
};
use crate::supply::LazyValue;
use crate::value::{Error, Key, List, Map, Result, Str, Val, compare, equal, untyped};
use crate::work;
use machinery::Text;
use std::rc::Rc;

/// The value of a variable.
#[derive(Debug)]
pub(crate) enum Slot<'a> {
    Empty,
    Value(Val<'a>),
    Failed(Error),
    /// Evaluated when it is first used.
    Lazy(&'a Node),
    /// A variable whose value another program computes at its first use, and its name.
    Composed(&'a Program, &'a str),
    /// A variable whose value the caller computes when it is first needed.
    Supplied(&'a dyn LazyValue),
}

#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub slots: Vec<Slot<'a>>,
    pub cost: u64,
    cost_max: u64,
    /// Whether optional values behave as in cel-go until Kubernetes 1.36: a value that is selected from one loses its
    /// declaration, and `or` and `orValue` of a value that is not optional return that value.
    pub legacy_optionals: bool,
    /// The cost at which the interrupt is called next.
    ask_at: u64,
}

/// Cost between two calls of the interrupt: about a millisecond.
const ASK_COST: u64 = 1 << 14;

impl<'a> Frame<'a> {
    pub fn new(slots: Vec<Slot<'a>>, cost_max: u64) -> Frame<'a> {
        Frame { slots, cost: 0, cost_max, legacy_optionals: false, ask_at: ASK_COST }
    }

    /// The value of a node without variables.
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
        if self.cost > self.cost_max || work::is_interrupted() { Err(Error::cancelled()) } else { Ok(()) }
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
            Node::Append { accu, item, made } => self.append(*accu, item, *made),
            Node::Insert { accu, parts } => self.insert(*accu, parts),
            Node::OptionalOr { sides, value } => self.optional_or(sides, *value),
        }
    }

    fn slot(&mut self, slot: u32) -> Result<Val<'a>> {
        match self.slots.get(slot as usize) {
            Some(Slot::Value(value)) => Ok(value.clone()),
            Some(Slot::Failed(error)) => Err(error.clone()),
            Some(Slot::Lazy(node)) => {
                let result = self.eval(node);
                self.set(slot, result.clone());
                result
            }
            Some(Slot::Composed(program, name)) => {
                let (program, name) = (*program, *name);
                let result = self.composed(program, name);
                self.set(slot, result.clone());
                result
            }
            Some(Slot::Supplied(supply)) => {
                let value = supply.value();
                self.set(slot, Ok(value.clone()));
                Ok(value)
            }
            Some(Slot::Empty) | None => Err(Error::new("no such attribute(s)")),
        }
    }

    /// Evaluates the program of a variable, with the variables declared before it and the same budget.
    fn composed(&mut self, program: &'a Program, name: &str) -> Result<Val<'a>> {
        let rest = self.slots.split_off(program.names.len().min(self.slots.len()));
        self.slots.resize_with(program.slots, || Slot::Empty);
        let result = self.eval(&program.root);
        self.slots.truncate(program.names.len());
        self.slots.extend(rest);
        let result = result
            .and_then(|value| if value.nests_deeper(work::NESTING_MAX) { Err(Error::cancelled()) } else { Ok(value) });
        result.map_err(|error| match error.is_fatal() {
            true => error,
            false => Error::new(format!("composited variable {name:?} fails to evaluate: {error}")),
        })
    }

    fn set(&mut self, slot: u32, value: Result<Val<'a>>) {
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = match value {
                Ok(value) => Slot::Value(value),
                Err(error) => Slot::Failed(error),
            };
        }
    }

    fn base(&mut self, base: &'a Base) -> Result<Val<'a>> {
        match base {
            Base::Slot(slot) => self.slot(*slot),
            Base::Node(node) => self.eval(node),
        }
    }

    fn attribute(&mut self, attribute: &'a Attribute) -> Result<Val<'a>> {
        let cost = u64::from(!attribute.free);
        let result = self.base(&attribute.base);
        if let Ok(Val::Map(map)) = &result
            && let Some(found) = members(map, &attribute.qualifiers)
        {
            self.charge(cost + attribute.qualifiers.len() as u64)?;
            return found;
        }
        if attribute.qualifiers.is_empty() {
            self.charge(cost)?;
            return if self.legacy_optionals { result.map(bared) } else { result };
        }
        let result = result.and_then(|value| self.qualified(value, &attribute.qualifiers));
        self.charge(cost)?;
        let (value, optional) = result?;
        if !optional {
            return value.ok_or_else(Error::overload);
        }
        Ok(match value {
            None => Val::Optional(None),
            Some(value @ Val::Optional(_)) => value,
            Some(value) => Val::some(value),
        })
    }

    /// Applies all qualifiers to a value. Returns the result and whether it is optional.
    fn qualified(&mut self, value: Val<'a>, qualifiers: &'a [Qualifier]) -> Result<(Option<Val<'a>>, bool)> {
        let (mut value, mut optional) = unwrap(value, self.legacy_optionals);
        if optional && value.is_none() {
            return Ok((None, true));
        }
        for qualifier in qualifiers {
            optional |= qualifier.optional;
            let Some(object) = value else { return Ok((None, optional)) };
            value = self.qualifier(&object, qualifier, optional)?;
            if value.is_none() {
                return Ok((None, true));
            }
        }
        Ok((value, optional))
    }

    fn qualifier(&mut self, object: &Val<'a>, qualifier: &'a Qualifier, optional: bool) -> Result<Option<Val<'a>>> {
        let found = match &qualifier.kind {
            QualifierKind::Field(name) => match object {
                Val::Map(map) => map.get_str(name),
                other => find(other, &Val::borrowed(name)),
            },
            QualifierKind::Constant(constant) => find(object, &constant.value()),
            QualifierKind::Node(node) => {
                let key = self.eval(node)?;
                let found = find(object, &key);
                if found.is_none() && !optional {
                    self.charge(1)?;
                    return Err(missing(object, &key));
                }
                found
            }
        };
        if optional && found.is_none() {
            return Ok(None);
        }
        self.charge(1)?;
        match found {
            Some(value) => value.map(Some),
            None => Err(match &qualifier.kind {
                QualifierKind::Constant(constant) => missing(object, &constant.value()),
                QualifierKind::Field(name) => missing(object, &Val::borrowed(name)),
                QualifierKind::Node(_) => Error::overload(),
            }),
        }
    }

    fn has(&mut self, attribute: &'a Attribute) -> Result<Val<'a>> {
        let value = self.base(&attribute.base)?;
        let Some((last, before)) = attribute.qualifiers.split_last() else { return Err(Error::overload()) };
        let (value, optional) = self.qualified(value, before)?;
        let Some(value) = value else { return Ok(Val::Bool(false)) };
        if optional {
            return Ok(Val::Bool(self.qualifier(&value, last, true)?.is_some()));
        }
        self.charge(1)?;
        let QualifierKind::Field(name) = &last.kind else { return Err(Error::overload()) };
        match find(&value, &Val::borrowed(name)) {
            Some(found) => found.map(|_| Val::Bool(true)),
            None => Ok(Val::Bool(false)),
        }
    }

    /// `&&` and `||`: if either side is `decisive`, that is the result, even if the other side is an error.
    fn logical(&mut self, sides: &'a [Node; 2], decisive: bool) -> Result<Val<'a>> {
        let left = self.eval(&sides[0]);
        match &left {
            Ok(Val::Bool(b)) if *b == decisive => return left,
            Err(error) if error.is_fatal() => return left,
            _ => {}
        }
        let right = self.eval(&sides[1]);
        match (&left, &right) {
            (_, Ok(Val::Bool(b))) if *b == decisive => right,
            (_, Err(error)) if error.is_fatal() => right,
            (Err(_), _) => left,
            (_, Err(_)) => right,
            (Ok(Val::Bool(_)), Ok(Val::Bool(_))) => right,
            _ => Err(Error::overload()),
        }
    }

    fn equal(&mut self, sides: &'a [Node; 2], negated: bool) -> Result<Val<'a>> {
        let left = self.absorbable(&sides[0])?;
        let right = self.absorbable(&sides[1])?;
        let (a, b) = match (left, right) {
            (Ok(a), Ok(b)) => (a, b),
            (a, b) => {
                self.charge(Charge::Equality.of_call(&[sizeless(&a), sizeless(&b)], None))?;
                return a.and(b);
            }
        };
        let same = equal(&a, &b);
        self.charge_steps(Charge::Equality.of_call(&[a, b], None))?;
        same.map(|same| Val::Bool(same != negated))
    }

    fn order(&mut self, sides: &'a [Node; 2], order: Order, cost: Charge) -> Result<Val<'a>> {
        let left = self.eval(&sides[0]);
        if let Ok(Val::Int(left)) = left
            && let Node::Const(Const::Int(right)) = &sides[1]
        {
            self.charge(cost.of_error())?;
            return Ok(Val::Bool(order.holds(left.cmp(right))));
        }
        let left = match left {
            Err(error) if error.is_fatal() => return Err(error),
            other => other,
        };
        let right = self.absorbable(&sides[1])?;
        match (left, right) {
            (Ok(left), Ok(right)) => {
                let found = compare(&left, &right);
                self.charge(cost.of_call(&[left, right], None))?;
                found.map(|found| Val::Bool(order.holds(found)))
            }
            (left, right) => {
                self.charge(cost.of_call(&[sizeless(&left), sizeless(&right)], None))?;
                left.and(right)
            }
        }
    }

    /// Evaluates a node. The outer error is fatal; the inner one may be absorbed.
    fn absorbable(&mut self, node: &'a Node) -> Result<Result<Val<'a>>> {
        match self.eval(node) {
            Err(error) if error.is_fatal() => Err(error),
            other => Ok(other),
        }
    }

    fn call(&mut self, call: &'a Call) -> Result<Val<'a>> {
        match &*call.args {
            [] => self.finish(call, &[]),
            [arg] => match self.absorbable(arg)? {
                Ok(value) => self.finish(call, &[value]),
                Err(_) if call.function == "@not_strictly_false" => {
                    self.charge(1)?;
                    Ok(Val::Bool(true))
                }
                Err(error) => {
                    self.charge(call.cost.of_error())?;
                    Err(call.cost.breaks([true, false]).unwrap_or(error))
                }
            },
            [left, right] => {
                let left = self.absorbable(left)?;
                let right = self.absorbable(right)?;
                match (left, right) {
                    (Ok(left), Ok(right)) => self.finish(call, &[left, right]),
                    (left, right) => {
                        self.charge(call.cost.of_call(&[sizeless(&left), sizeless(&right)], None))?;
                        match call.cost.breaks([left.is_err(), right.is_err()]) {
                            Some(broken) => Err(broken),
                            None => left.and(right),
                        }
                    }
                }
            }
            args => {
                let mut values = Vec::with_capacity(args.len());
                for arg in args {
                    values.push(self.eval(arg)?);
                }
                self.finish(call, &values)
            }
        }
    }

    fn finish(&mut self, call: &'a Call, args: &[Val<'a>]) -> Result<Val<'a>> {
        let result = match call.known {
            Some(function) => function(args).map_err(|error| named(error, call, args)),
            None => dispatch(call, args),
        };
        let cost = call.cost.of_call(args, result.as_ref().ok());
        if let Ok(made) = &result {
            work::make(made.owned_bytes());
        }
        self.charge_steps(cost)?;
        result
    }

    fn regex(&mut self, call: &'a RegexCall) -> Result<Val<'a>> {
        let mut args = Vec::with_capacity(3);
        for arg in &call.args {
            match self.absorbable(arg)? {
                Ok(value) => args.push(value),
                Err(error) => {
                    self.charge(call.cost.of_error())?;
                    return Err(error);
                }
            }
        }
        let result = match (&call.kind, args.as_slice()) {
            (RegexKind::Matches, [Val::String(text), ..]) => Ok(Val::Bool(call.regex.is_match(text))),
            (RegexKind::Find, [Val::String(text), ..]) => Ok(crate::library::strings::found(&call.regex, text)),
            (RegexKind::FindAll, [Val::String(text), _]) => {
                Ok(crate::library::strings::found_all(&call.regex, text, -1))
            }
            (RegexKind::FindAll, [Val::String(text), _, Val::Int(n)]) => {
                Ok(crate::library::strings::found_all(&call.regex, text, *n))
            }
            _ => Err(Error::overload()),
        };
        self.charge(call.cost.of_call(&args, result.as_ref().ok()))?;
        result
    }

    fn list(&mut self, items: &'a [Node], optional: &[bool]) -> Result<Val<'a>> {
        let mut values = Vec::with_capacity(items.len());
        for (item, optional) in items.iter().zip(optional) {
            let value = match self.absorbable(item)? {
                Ok(value) => value,
                Err(error) => {
                    self.charge(10)?;
                    return Err(error);
                }
            };
            if !optional {
                values.push(value);
                continue;
            }
            match value {
                Val::Optional(None) => {}
                Val::Optional(Some(value)) => values.push((*value).clone()),
                other => {
                    let name = other.type_of().runtime_name();
                    return Err(Error::new(format!(
                        "cannot initialize optional list element from non-optional value {name}"
                    )));
                }
            }
        }
        self.charge(10)?;
        Ok(Val::list(values))
    }

    /// Constructs a message.
    fn made(&mut self, name: &'a Text, fields: &'a [(Text, Node, bool)]) -> Result<Val<'a>> {
        let mut map = std::collections::BTreeMap::new();
        for (field, value, optional) in fields {
            let value = self.eval(value)?;
            if let Some(value) = present(*optional, value)? {
                // as upstream, a type counts as the text of its name
                let is_text = matches!(value, Val::String(_) | Val::Type(_));
                if name == "JSONPatch" && field != "value" && !is_text {
                    let of = value.native_type();
                    return Err(Error::new(format!("unexpected type {of} for JSONPatchType '{field}' field")));
                }
                map.insert(Key::String(Str::Borrowed(field)), value);
            }
        }
        self.charge(40)?;
        Ok(Val::Map(Map::Made(name.clone(), Rc::new(map))))
    }

    fn map(&mut self, entries: &'a [(Node, Node, bool)]) -> Result<Val<'a>> {
        let mut map = std::collections::BTreeMap::new();
        for (key, value, optional) in entries {
            let key = self.eval(key)?;
            let value = self.eval(value)?;
            let Some(value) = present(*optional, value)? else { continue };
            let Some(key) = Key::of(&key).filter(|_| !matches!(key, Val::Double(_))) else {
                return Err(Error::new(format!("unsupported key type: {}", key.type_of().runtime_name())));
            };
            map.insert(key, value);
        }
        self.charge(30)?;
        Ok(Val::Map(Map::Owned(Rc::new(map))))
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

    fn fold(&mut self, fold: &'a Fold) -> Result<Val<'a>> {
        let range = self.eval(&fold.range)?;
        let init = self.eval(&fold.init);
        self.set(fold.accu, init);
        match (range, fold.var2) {
            (Val::List(list), second) => {
                for i in 0..list.len() {
                    let Some(item) = list.get(i) else { break };
                    match second {
                        None => self.set(fold.var, item),
                        Some(second) => {
                            self.set(fold.var, Ok(Val::Int(i as i64)));
                            self.set(second, item);
                        }
                    }
                    if !self.iterate(fold)? {
                        break;
                    }
                }
            }
            (Val::Map(map), second) => {
                for key in map.keys() {
                    if let Some(second) = second {
                        let value = map.get(&key).unwrap_or_else(|| Err(Error::overload()));
                        self.set(second, value);
                    }
                    self.set(fold.var, Ok(key));
                    if !self.iterate(fold)? {
                        break;
                    }
                }
            }
            (other, second) => return Err(not_iterable(&other, second.is_some())),
        }
        self.eval(&fold.result)
    }

    /// `all` and `exists`: a fold of `&&` or `||`, charged like one.
    fn quantifier(&mut self, quantifier: &'a Quantifier) -> Result<Val<'a>> {
        let range = self.eval(&quantifier.range)?;
        let decisive = quantifier.decisive;
        // What the condition costs, and the accumulator on the left of the operator.
        let round = if decisive { 3 } else { 2 };
        let mut accu: Result<bool> = Ok(!decisive);
        let mut step = |frame: &mut Self| -> Result<bool> {
            frame.charge(round)?;
            if accu == Ok(decisive) {
                return Ok(false);
            }
            frame.charge(1)?;
            let found = frame.eval(&quantifier.predicate);
            match found {
                Ok(Val::Bool(b)) if b == decisive => accu = Ok(decisive),
                Ok(Val::Bool(_)) => {}
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) if accu.is_ok() => accu = Err(error),
                Ok(_) if accu.is_ok() => accu = Err(Error::overload()),
                _ => {}
            }
            Ok(true)
        };
        match (range, quantifier.var2) {
            (Val::List(list), second) => {
                for i in 0..list.len() {
                    let Some(item) = list.get(i) else { break };
                    match second {
                        None => self.set(quantifier.var, item),
                        Some(second) => {
                            self.set(quantifier.var, Ok(Val::Int(i as i64)));
                            self.set(second, item);
                        }
                    }
                    if !step(self)? {
                        break;
                    }
                }
            }
            (Val::Map(map), second) => {
                for key in map.keys() {
                    if let Some(second) = second {
                        let value = map.get(&key).unwrap_or_else(|| Err(Error::overload()));
                        self.set(second, value);
                    }
                    self.set(quantifier.var, Ok(key));
                    if !step(self)? {
                        break;
                    }
                }
            }
            (other, second) => return Err(not_iterable(&other, second.is_some())),
        }
        self.charge(1)?;
        accu.map(Val::Bool)
    }

    /// One iteration. Returns whether to continue.
    fn iterate(&mut self, fold: &'a Fold) -> Result<bool> {
        if let Ok(Val::Bool(false)) = self.absorbable(&fold.condition)? {
            return Ok(false);
        }
        let step = self.absorbable(&fold.step)?;
        self.set(fold.accu, step);
        Ok(true)
    }

    fn take(&mut self, slot: u32) -> Result<Val<'a>> {
        match self.slots.get_mut(slot as usize).map(|place| std::mem::replace(place, Slot::Empty)) {
            Some(Slot::Value(value)) => Ok(value),
            Some(Slot::Failed(error)) => Err(error),
            _ => Err(Error::overload()),
        }
    }

    fn append(&mut self, accu: u32, item: &'a Node, made: bool) -> Result<Val<'a>> {
        self.charge(1)?;
        let item = self.absorbable(item)?;
        self.charge(if made { 11 } else { 1 })?;
        let list = self.take(accu)?;
        let item = item?;
        match list {
            Val::List(List::Owned(mut items)) => {
                Rc::make_mut(&mut items).push(item);
                Ok(Val::List(List::Owned(items)))
            }
            _ => Err(Error::overload()),
        }
    }

    fn insert(&mut self, accu: u32, parts: &'a [Node]) -> Result<Val<'a>> {
        self.charge(1)?;
        let mut values = Vec::with_capacity(2);
        for part in parts {
            values.push(self.eval(part)?);
        }
        self.charge(1)?;
        let Val::Map(Map::Owned(mut map)) = self.take(accu)? else { return Err(Error::overload()) };
        let pairs: Vec<(Val<'a>, Val<'a>)> = match values.as_slice() {
            [key, value] => vec![(key.clone(), value.clone())],
            [Val::Map(other)] => {
                let keys = other.keys();
                let values: Result<Vec<_>> =
                    keys.into_iter().filter_map(|k| other.get(&k).map(|v| v.map(|v| (k, v)))).collect();
                values?
            }
            _ => return Err(Error::overload()),
        };
        let target = Rc::make_mut(&mut map);
        for (key, value) in pairs {
            let Some(key) = Key::of(&key) else { return Err(Error::overload()) };
            if target.contains_key(&key) {
                let shown = crate::library::standard::plain(&key.value());
                return Err(Error::new(format!("insert failed: key {shown} already exists")));
            }
            target.insert(key, value);
        }
        Ok(Val::Map(Map::Owned(map)))
    }

    fn optional_or(&mut self, sides: &'a [Node; 2], value: bool) -> Result<Val<'a>> {
        match self.eval(&sides[0])? {
            Val::Optional(None) => self.eval(&sides[1]),
            Val::Optional(Some(inner)) if value => Ok((*inner).clone()),
            some @ Val::Optional(_) => Ok(some),
            other if self.legacy_optionals => Ok(other),
            _ => Err(Error::overload()),
        }
    }
}

/// The stand-in for an error where costs are counted: its size is 1.
fn sizeless<'a>(value: &Result<Val<'a>>) -> Val<'a> {
    value.clone().unwrap_or(Val::Null)
}

fn not_iterable(value: &Val<'_>, two: bool) -> Error {
    let name = value.go_type();
    if two {
        Error::new(format!("unsupported comprehension range type: {name}"))
    } else {
        Error::new(format!("got '{name}', expected iterable type"))
    }
}

/// The value at the end of a chain of field selections; `None` if a field is missing or a qualifier is of another kind.
fn members<'a>(map: &Map<'a>, qualifiers: &'a [Qualifier]) -> Option<Result<Val<'a>>> {
    let (first, rest) = qualifiers.split_first()?;
    let name = first.member()?;
    if let Map::Json(map, Decl { kind: DeclKind::Json, .. }) = map {
        return json_member(map, qualifiers).map(|value| Ok(untyped(value)));
    }
    let found = map.get_str(name)?;
    match (&found, rest) {
        (_, []) => Some(found),
        (Ok(Val::Map(inner)), rest) => members(inner, rest),
        _ => None,
    }
}

/// As [`members`], in JSON without declarations.
fn json_member<'a>(mut map: &'a machinery::Map, qualifiers: &'a [Qualifier]) -> Option<&'a machinery::Value> {
    let (last, before) = qualifiers.split_last()?;
    for qualifier in before {
        map = map.get(qualifier.member()?)?.as_object()?;
    }
    map.get(last.member()?)
}

fn unwrap<'a>(value: Val<'a>, bare: bool) -> (Option<Val<'a>>, bool) {
    match value {
        Val::Optional(None) => (None, true),
        Val::Optional(Some(value)) if bare => (Some((*value).clone().bare()), true),
        Val::Optional(Some(value)) => (Some((*value).clone()), true),
        value => (Some(value), false),
    }
}

/// The value of a variable as in cel-go until Kubernetes 1.36, where the value of an optional one lost its declaration.
fn bared<'a>(value: Val<'a>) -> Val<'a> {
    match value {
        Val::Optional(Some(value)) => Val::some((*value).clone().bare()),
        value => value,
    }
}

/// The value of an object under a key, if there is one.
fn find<'a>(object: &Val<'a>, key: &Val<'a>) -> Option<Result<Val<'a>>> {
    match object {
        Val::Map(map) => map.get(key),
        Val::List(list) => match index(key) {
            Ok(i) => usize::try_from(i).ok().and_then(|i| list.get(i)),
            Err(error) => Some(Err(error)),
        },
        _ => None,
    }
}

fn index(key: &Val<'_>) -> Result<i64> {
    match key {
        Val::Int(i) => Ok(*i),
        Val::Uint(u) => i64::try_from(*u).map_err(|_| Error::new(format!("unsupported index value {u} in list"))),
        Val::Double(d) if d.fract() == 0.0 && d.abs() < 9.2e18 => Ok(*d as i64),
        Val::Double(d) => Err(Error::new(format!("unsupported index value {d} in list"))),
        other => Err(Error::new(format!("unsupported index type '{}' in list", other.type_of().runtime_name()))),
    }
}

fn missing(object: &Val<'_>, key: &Val<'_>) -> Error {
    let key = crate::library::standard::plain(key);
    if matches!(object, Val::List(_)) {
        Error::new(format!("index out of bounds: {key}"))
    } else {
        Error::new(format!("no such key: {key}"))
    }
}

/// Calls the overload that fits the types of the arguments at run time.
fn dispatch<'a>(call: &Call, args: &[Val<'a>]) -> Result<Val<'a>> {
    match overload(call, args) {
        Some(overload) => (overload.call)(args),
        None => Err(no_overload(call, args)),
    }
}

fn overload(call: &Call, args: &[Val<'_>]) -> Option<&'static Overload> {
    let takes = |overload: &&Overload| {
        overload.params.len() == args.len() && args.iter().zip(&overload.params).all(|(arg, t)| fits(arg, t))
    };
    call.overloads.iter().map(|index| registry().overload(*index)).find(takes)
}

fn no_overload(call: &Call, args: &[Val<'_>]) -> Error {
    let types: Vec<String> = args.iter().map(|arg| arg.type_of().runtime_name().to_string()).collect();
    Error::overload_of(format!("no such overload: {}({})", call.function, types.join(", ")))
}

/// Corrects the error of a function that was chosen by inferred types, in case the arguments have other types.
fn named(error: Error, call: &Call, args: &[Val<'_>]) -> Error {
    if is_plain(call.function) || error != Error::overload() || overload(call, args).is_some() {
        return error;
    }
    no_overload(call, args)
}

fn fits(value: &Val<'_>, t: &Type) -> bool {
    match (value, t) {
        (_, Type::Dyn | Type::Any | Type::Param(_)) => true,
        (Val::Bool(_), Type::Bool)
        | (Val::Int(_), Type::Int)
        | (Val::Uint(_), Type::Uint)
        | (Val::Double(_), Type::Double)
        | (Val::String(_), Type::String)
        | (Val::Bytes(_), Type::Bytes)
        | (Val::Duration(_), Type::Duration)
        | (Val::Timestamp(_), Type::Timestamp)
        | (Val::List(_), Type::List(_))
        | (Val::Map(_), Type::Map(_))
        | (Val::Type(_), Type::Type(_))
        | (Val::Null, Type::Null) => true,
        (Val::Optional(_), Type::Opaque(name, _)) => *name == crate::decl::types::OPTIONAL,
        (Val::Authorization(part), t @ Type::Named(_)) => part.type_of() == *t,
        (Val::Opaque(opaque), t @ (Type::Named(_) | Type::Opaque(..))) => opaque.type_of() == *t,
        _ => false,
    }
}

/// The value of an entry; `None` if the entry is optional and its value absent.
fn present(optional: bool, value: Val<'_>) -> Result<Option<Val<'_>>> {
    match (optional, value) {
        (false, value) => Ok(Some(value)),
        (true, Val::Optional(None)) => Ok(None),
        (true, Val::Optional(Some(value))) => Ok(Some((*value).clone())),
        (true, other) => {
            let name = other.type_of().runtime_name();
            Err(Error::new(format!("cannot initialize optional entry from non-optional value {name}")))
        }
    }
}
