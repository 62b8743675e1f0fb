//! Macros: calls that the parser expands to folds and tests.
//!
//! Expanded nodes have the position of the call. The names of hidden variables are not valid in source text.

use super::{NODES_MAX, Parser};
use crate::ast::{Comprehension, Expr, Kind, Literal, Offset};
use machinery::Text;

/// The macros of an environment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// `has`, `all`, `exists`, `exists_one`, `map` and `filter`.
    pub standard: bool,
    /// `all(k, v, …)`, `transformMap` and so on.
    pub two_variables: bool,
    /// `optMap` and `optFlatMap`.
    pub optionals: bool,
    /// `sortBy`.
    pub lists: bool,
    /// `cel.bind`, and `cel.block` whose members are named `cel.index(0)` and so on.
    pub bindings: bool,
    /// `math.greatest` and `math.least`.
    pub math: bool,
}

/// The accumulator variable of folds.
pub(crate) const ACCUMULATOR: &str = "@result";
/// The iteration variable of folds that bind a name only.
pub(crate) const UNUSED: &str = "#unused";

struct Maker<'p, 'a> {
    parser: &'p mut Parser<'a>,
    offset: Offset,
}

type Made = Result<Expr, (Offset, &'static str)>;

/// The expansion of a call if it is a macro, otherwise the call.
pub(crate) fn expand(
    parser: &mut Parser<'_>,
    offset: Offset,
    function: &str,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Expr {
    let known = parser.syntax.macros;
    let two = known.two_variables;
    let receiver = target.as_ref().and_then(ident).map_or("", Text::as_str);
    let is_cel = known.bindings && receiver == "cel";
    let is_macro = match (function, args.len(), target.is_some()) {
        ("has", 1, false) => known.standard,
        ("all" | "exists" | "exists_one" | "map" | "filter", 2, true) | ("map", 3, true) => known.standard,
        ("all" | "exists" | "exists_one" | "existsOne", 3, true) => two,
        ("transformList" | "transformMap" | "transformMapEntry", 3 | 4, true) => two,
        ("optMap" | "optFlatMap", 2, true) => known.optionals,
        ("sortBy", 2, true) => known.lists,
        ("bind", 3, true) | ("block", 2, true) | ("index", 1, true) | ("iterVar" | "accuVar", 2, true) => is_cel,
        ("greatest" | "least", _, true) => known.math && receiver == "math",
        _ => false,
    };
    if !is_macro {
        let id = parser.id(offset);
        let kind = Kind::Call { function: Text::new(function), target: target.map(Box::new), args };
        return Expr { id, kind };
    }
    let mut maker = Maker { parser, offset };
    let made = match target {
        None => maker.has(args),
        Some(target) => maker.member(function, target, args),
    };
    match made {
        Ok(expr) => expr,
        Err((offset, message)) => parser.error(offset, message),
    }
}

fn ident(expr: &Expr) -> Option<&Text> {
    if let Kind::Ident(name) = &expr.kind { Some(name) } else { None }
}

fn is_accumulator(name: &str) -> bool {
    name == ACCUMULATOR || name == "__result__"
}

impl Maker<'_, '_> {
    fn node(&mut self, kind: Kind) -> Expr {
        self.parser.node(self.offset, kind)
    }

    fn literal(&mut self, literal: Literal) -> Expr {
        self.node(Kind::Literal(literal))
    }

    fn name(&mut self, name: &str) -> Expr {
        self.node(Kind::Ident(Text::new(name)))
    }

    fn accu(&mut self) -> Expr {
        self.name(ACCUMULATOR)
    }

    fn list(&mut self, items: Vec<Expr>) -> Expr {
        self.node(Kind::List { items, optional: vec![] })
    }

    fn call(&mut self, function: &'static str, args: Vec<Expr>) -> Expr {
        self.node(Kind::Call { function: Text::new_static(function), target: None, args })
    }

    fn member_call(&mut self, function: &'static str, target: Expr, args: Vec<Expr>) -> Expr {
        let target = Some(Box::new(target));
        self.node(Kind::Call { function: Text::new_static(function), target, args })
    }

    fn offset_of(&self, expr: &Expr) -> Offset {
        self.parser.offsets.get(expr.id as usize).copied().unwrap_or(self.offset)
    }

    /// A copy of the expression with new ids. If the tree would become too large, there is none, and the error takes the place of both:
    /// each further link of a chain would count all of the expression again.
    fn copy(&mut self, expr: &Expr) -> Made {
        let mut count = 0;
        expr.walk(|_| count += 1);
        if self.parser.offsets.len() + count > NODES_MAX {
            return Err((self.offset, "expression has too many nodes"));
        }
        let mut copy = expr.clone();
        self.renumber(&mut copy);
        Ok(copy)
    }

    fn renumber(&mut self, expr: &mut Expr) {
        let offset = self.offset_of(expr);
        expr.id = self.parser.id(offset);
        match &mut expr.kind {
            Kind::Error | Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select { operand, .. } => self.renumber(operand),
            Kind::Call { target, args, .. } => {
                target.iter_mut().for_each(|t| self.renumber(t));
                args.iter_mut().for_each(|a| self.renumber(a));
            }
            Kind::List { items, .. } => items.iter_mut().for_each(|item| self.renumber(item)),
            Kind::Map(entries) => entries.iter_mut().for_each(|entry| {
                entry.id = self.parser.id(offset);
                self.renumber(&mut entry.key);
                self.renumber(&mut entry.value);
            }),
            Kind::Struct { fields, .. } => fields.iter_mut().for_each(|field| {
                field.id = self.parser.id(offset);
                self.renumber(&mut field.value);
            }),
            Kind::Comprehension(c) => {
                for part in [&mut c.range, &mut c.init, &mut c.condition, &mut c.step, &mut c.result] {
                    self.renumber(part);
                }
            }
        }
    }

    fn fold(&mut self, range: Expr, vars: (Text, Option<Text>), [init, condition, step, result]: [Expr; 4]) -> Expr {
        let (var, var2) = vars;
        let accu = Text::new_static(ACCUMULATOR);
        let fold = Comprehension { range, var, var2, accu, init, condition, step, result };
        self.node(Kind::Comprehension(Box::new(fold)))
    }

    /// Binds a name for an expression.
    fn bind(&mut self, name: Text, init: Expr, result: Expr) -> Expr {
        let range = self.list(vec![]);
        let condition = self.literal(Literal::Bool(false));
        let step = self.name(&name);
        let var = Text::new_static(UNUSED);
        let fold = Comprehension { range, var, var2: None, accu: name, init, condition, step, result };
        self.node(Kind::Comprehension(Box::new(fold)))
    }

    fn has(&mut self, args: Vec<Expr>) -> Made {
        match args.into_iter().next().map(|arg| (self.offset_of(&arg), arg.kind)) {
            Some((_, Kind::Select { operand, field, .. })) => {
                Ok(self.node(Kind::Select { operand, field, test_only: true }))
            }
            Some((offset, _)) => Err((offset, "invalid argument to has() macro")),
            None => Err((self.offset, "invalid argument to has() macro")),
        }
    }

    fn member(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Made {
        match (function, args.len()) {
            ("map", _) => self.map(target, args),
            ("filter", _) => self.filter(target, args),
            ("all" | "exists" | "exists_one", 2) => {
                let name = ident(&args[0]).ok_or((self.offset_of(&args[0]), "argument must be a simple name"))?.clone();
                self.check_name(&name, &args[0])?;
                let predicate = args.into_iter().nth(1);
                self.quantifier(function, target, (name, None), predicate)
            }
            ("optMap" | "optFlatMap", _) => self.optional(function == "optMap", target, args),
            ("sortBy", _) => self.sort_by(target, args),
            ("greatest" | "least", _) => self.best(function, &target, args),
            ("block", _) => self.block(args),
            ("index" | "iterVar" | "accuVar", _) => self.indexed(function, &args),
            ("bind", _) => {
                let name = ident(&args[0])
                    .ok_or((self.offset_of(&args[0]), "cel.bind() variable names must be simple identifiers"))?
                    .clone();
                let mut rest = args.into_iter().skip(1);
                match (rest.next(), rest.next()) {
                    (Some(init), Some(result)) => Ok(self.bind(name, init, result)),
                    _ => Err((self.offset, "invalid arguments to cel.bind()")),
                }
            }
            _ => self.two_variables(function, target, args),
        }
    }

    fn check_name(&self, name: &str, at: &Expr) -> Result<(), (Offset, &'static str)> {
        if is_accumulator(name) {
            return Err((self.offset_of(at), "iteration variable overwrites accumulator variable"));
        }
        Ok(())
    }

    fn quantifier(&mut self, function: &str, range: Expr, vars: (Text, Option<Text>), predicate: Option<Expr>) -> Made {
        let predicate = predicate.ok_or((self.offset, "missing predicate"))?;
        let parts = match function {
            "all" => {
                let init = self.literal(Literal::Bool(true));
                let accu = self.accu();
                let condition = self.call("@not_strictly_false", vec![accu]);
                let accu = self.accu();
                let step = self.call("_&&_", vec![accu, predicate]);
                [init, condition, step, self.accu()]
            }
            "exists" => {
                let init = self.literal(Literal::Bool(false));
                let accu = self.accu();
                let not = self.call("!_", vec![accu]);
                let condition = self.call("@not_strictly_false", vec![not]);
                let accu = self.accu();
                let step = self.call("_||_", vec![accu, predicate]);
                [init, condition, step, self.accu()]
            }
            _ => {
                let init = self.literal(Literal::Int(0));
                let condition = self.literal(Literal::Bool(true));
                let (accu, one) = (self.accu(), self.literal(Literal::Int(1)));
                let more = self.call("_+_", vec![accu, one]);
                let accu = self.accu();
                let step = self.call("_?_:_", vec![predicate, more, accu]);
                let (accu, one) = (self.accu(), self.literal(Literal::Int(1)));
                [init, condition, step, self.call("_==_", vec![accu, one])]
            }
        };
        Ok(self.fold(range, vars, parts))
    }

    /// Folds that make a list, to which the items that pass the filter are appended.
    fn collecting(&mut self, range: Expr, vars: (Text, Option<Text>), filter: Option<Expr>, item: Expr) -> Expr {
        let init = self.list(vec![]);
        let condition = self.literal(Literal::Bool(true));
        let (accu, item) = (self.accu(), self.list(vec![item]));
        let step = self.call("_+_", vec![accu, item]);
        let step = self.filtered(filter, step);
        let result = self.accu();
        self.fold(range, vars, [init, condition, step, result])
    }

    fn filtered(&mut self, filter: Option<Expr>, step: Expr) -> Expr {
        let Some(filter) = filter else { return step };
        let accu = self.accu();
        self.call("_?_:_", vec![filter, step, accu])
    }

    fn item_name(&mut self, args: &[Expr]) -> Result<Text, (Offset, &'static str)> {
        let name = ident(&args[0]).ok_or((self.offset_of(&args[0]), "argument is not an identifier"))?.clone();
        self.check_name(&name, &args[0])?;
        Ok(name)
    }

    fn map(&mut self, target: Expr, mut args: Vec<Expr>) -> Made {
        let name = self.item_name(&args)?;
        let item = args.pop().ok_or((self.offset, "missing argument"))?;
        let filter = if args.len() == 2 { args.pop() } else { None };
        Ok(self.collecting(target, (name, None), filter, item))
    }

    fn filter(&mut self, target: Expr, mut args: Vec<Expr>) -> Made {
        let name = self.item_name(&args)?;
        let predicate = args.pop();
        Ok(self.collecting(target, (name, None), predicate, args.swap_remove(0)))
    }

    fn two_variables(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Made {
        let simple = "argument must be a simple name";
        let first = ident(&args[0]).ok_or((self.offset_of(&args[0]), simple))?.clone();
        let second = ident(&args[1]).ok_or((self.offset_of(&args[1]), simple))?.clone();
        if first == second {
            let message = format!("duplicate variable name: {first}");
            return Ok(self.parser.error(self.offset_of(&args[1]), message));
        }
        self.check_name(&first, &args[0])?;
        self.check_name(&second, &args[1])?;
        let vars = (first.clone(), Some(second));
        let mut rest: Vec<Expr> = args.into_iter().skip(2).collect();
        let last = rest.pop().ok_or((self.offset, "missing argument"))?;
        let filter = rest.pop();
        match function {
            "transformList" => Ok(self.collecting(target, vars, filter, last)),
            "transformMap" | "transformMapEntry" => {
                let init = self.node(Kind::Map(vec![]));
                let condition = self.literal(Literal::Bool(true));
                let accu = self.accu();
                let insert =
                    if function == "transformMap" { vec![accu, self.name(&first), last] } else { vec![accu, last] };
                let step = self.call("cel.@mapInsert", insert);
                let step = self.filtered(filter, step);
                let result = self.accu();
                Ok(self.fold(target, vars, [init, condition, step, result]))
            }
            _ => self.quantifier(function, target, vars, Some(last)),
        }
    }

    fn optional(&mut self, wraps: bool, target: Expr, args: Vec<Expr>) -> Made {
        let message = if wraps {
            "optMap() variable name must be a simple identifier"
        } else {
            "optFlatMap() variable name must be a simple identifier"
        };
        let name = ident(&args[0]).ok_or((self.offset_of(&args[0]), message))?.clone();
        let body = args.into_iter().nth(1).ok_or((self.offset, message))?;
        let copy = self.copy(&target)?;
        let has = self.member_call("hasValue", target, vec![]);
        let value = self.member_call("value", copy, vec![]);
        let bound = self.bind(name, value, body);
        let yes = if wraps { self.call("optional.of", vec![bound]) } else { bound };
        let no = self.call("optional.none", vec![]);
        Ok(self.call("_?_:_", vec![has, yes, no]))
    }

    fn sort_by(&mut self, target: Expr, args: Vec<Expr>) -> Made {
        const INPUT: &str = "@__sortBy_input__";
        let kinds = matches!(
            target.kind,
            Kind::List { .. } | Kind::Select { .. } | Kind::Ident(_) | Kind::Comprehension(_) | Kind::Call { .. }
        );
        if !kinds {
            let message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return Err((self.offset_of(&target), message));
        }
        let input = self.name(INPUT);
        let keys = self.map(input, args)?;
        let input = self.name(INPUT);
        let sorted = self.member_call("@sortByAssociatedKeys", input, vec![keys]);
        Ok(self.bind(Text::new_static(INPUT), target, sorted))
    }

    /// `math.greatest(…)`: one or two arguments are those of the function, more become a list.
    fn best(&mut self, function: &str, target: &Expr, args: Vec<Expr>) -> Made {
        let greatest = function == "greatest";
        let texts = if greatest {
            [
                "math.greatest() requires at least one argument",
                "math.greatest() invalid single argument value",
                "math.greatest() simple literal arguments must be numeric",
            ]
        } else {
            [
                "math.least() requires at least one argument",
                "math.least() invalid single argument value",
                "math.least() simple literal arguments must be numeric",
            ]
        };
        match args.as_slice() {
            [] => return Err((self.offset_of(target), texts[0])),
            [only] => {
                let numbers = matches!(&only.kind, Kind::List { items, .. }
                    if !items.is_empty() && items.iter().all(may_be_number));
                if !numbers && !may_be_number(only) {
                    return Err((self.offset_of(only), texts[1]));
                }
            }
            several => {
                if let Some(wrong) = several.iter().find(|arg| !may_be_number(arg)) {
                    return Err((self.offset_of(wrong), texts[2]));
                }
            }
        }
        let args = if args.len() > 2 { vec![self.list(args)] } else { args };
        Ok(self.call(if greatest { "math.@max" } else { "math.@min" }, args))
    }

    /// `cel.block([a, b], result)`: each member is bound for those after it and for the result.
    fn block(&mut self, args: Vec<Expr>) -> Made {
        let message = "cel.block() requires a list literal and an expression";
        let mut args = args.into_iter();
        let (Some(members), Some(mut result)) = (args.next(), args.next()) else { return Err((self.offset, message)) };
        let offset = self.offset_of(&members);
        let Kind::List { items, .. } = members.kind else { return Err((offset, message)) };
        let count = items.len();
        for (i, item) in items.into_iter().enumerate().rev() {
            result = self.bind(Text::from(format!("@index{i}")), item, result);
        }
        if let Some(height) = self.parser.heights.get_mut(result.id as usize) {
            *height = count as u32;
        }
        Ok(result)
    }

    /// `cel.index(0)`, `cel.iterVar(0, 1)` and `cel.accuVar(0, 1)`: names that source text can't have.
    fn indexed(&mut self, function: &str, args: &[Expr]) -> Made {
        let numbers: Option<Vec<String>> = args
            .iter()
            .map(|arg| if let Kind::Literal(Literal::Int(n)) = arg.kind { Some(n.to_string()) } else { None })
            .collect();
        let numbers = numbers.ok_or((self.offset, "indices must be int literals"))?.join(":");
        let name = match function {
            "index" => format!("@index{numbers}"),
            "iterVar" => format!("@it:{numbers}"),
            _ => format!("@ac:{numbers}"),
        };
        Ok(self.name(&name))
    }
}

/// Whether an argument may be a number: it is not a literal of another type.
fn may_be_number(arg: &Expr) -> bool {
    match &arg.kind {
        Kind::Literal(literal) => matches!(literal, Literal::Int(_) | Literal::Uint(_) | Literal::Double(_)),
        Kind::List { .. } | Kind::Map(_) | Kind::Struct { .. } => false,
        _ => true,
    }
}
