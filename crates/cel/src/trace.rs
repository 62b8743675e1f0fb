//! The values of the parts of an expression, to explain the value of the whole.

use crate::ast::{Ast, Comprehension, Expr, Kind, Literal};
use crate::check::Checked;
use crate::cost::estimate::piece;
use crate::decl::types::Type;
use crate::env::Environment;
use crate::limits::{TRACED_ITEMS_MAX, TRACED_PARTS_MAX};
use crate::node::Program;
use crate::parser::macros::{ACCUMULATOR, UNUSED};
use crate::value::{Val, to_json};
use machinery::value::quote;

/// A part of an expression with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traced {
    /// How many parts it is within.
    pub depth: usize,
    /// The part, as an expression.
    pub text: String,
    /// The value as JSON, or the error.
    pub value: Result<String, String>,
    /// The cost of the part.
    pub cost: u64,
}

/// Evaluates the parts of an expression on their own: those that decide its value, the whole first. In loops, the body is
/// evaluated for the first items. There are at most `TRACED_PARTS_MAX` parts, and each costs at most `cost_max`.
pub fn trace(env: &Environment, checked: &Checked, variables: &[(&str, Val<'_>)], cost_max: u64) -> Vec<Traced> {
    let mut tracer = Tracer { checked, cost_max, found: vec![] };
    tracer.part(&TraceScope { env: env.clone(), values: variables.to_vec() }, &checked.ast.root, 0);
    tracer.found
}

/// A value as JSON; other values by their type.
pub fn shown(value: &Val<'_>) -> String {
    to_json(value).map_or_else(|_| format!("({})", value.type_of().runtime_name()), |value| value.to_json())
}

/// The variables that a part can use.
struct TraceScope<'v> {
    env: Environment,
    values: Vec<(&'v str, Val<'v>)>,
}

struct Tracer<'c> {
    checked: &'c Checked,
    cost_max: u64,
    found: Vec<Traced>,
}

impl Tracer<'_> {
    fn part(&mut self, scope: &TraceScope<'_>, expr: &Expr, depth: usize) {
        if self.found.len() >= TRACED_PARTS_MAX || is_plain(expr) {
            return;
        }
        let program = match Program::of_part(&scope.env, self.checked, expr) {
            Ok(program) => program,
            Err(error) => return self.add(expr, depth, Err(error.to_string()), 0),
        };
        let outcome = program.eval(&scope.values, self.cost_max);
        let value = outcome.result.as_ref().map(shown).map_err(ToString::to_string);
        self.add(expr, depth, value, outcome.cost);
        match &expr.kind {
            Kind::Comprehension(fold) => self.fold(scope, fold, depth + 1),
            // the steps of a path have their values in the whole
            Kind::Select { operand, .. } if is_path(operand) => {}
            Kind::Call { function, args, .. } if is_lazy(function) => self.operands(scope, function, args, depth + 1),
            _ => expr.children(|child| self.part(scope, child, depth + 1)),
        }
    }

    fn add(&mut self, expr: &Expr, depth: usize, value: Result<String, String>, cost: u64) {
        let text = unparsed(&self.checked.ast, expr);
        self.found.push(Traced { depth, text, value, cost });
    }

    /// The operands that decide the value of an operator that need not evaluate all of them.
    fn operands(&mut self, scope: &TraceScope<'_>, function: &str, args: &[Expr], depth: usize) {
        let Some((first, others)) = args.split_first() else { return };
        self.part(scope, first, depth);
        let program = Program::of_part(&scope.env, self.checked, first);
        let decided = program.ok().and_then(|program| match program.eval(&scope.values, self.cost_max).result {
            Ok(Val::Bool(is_true)) => Some(is_true),
            _ => None,
        });
        match (function, decided, others) {
            ("_&&_", Some(false), _) | ("_||_", Some(true), _) => {}
            ("_?_:_", Some(is_true), [yes, no]) => self.part(scope, if is_true { yes } else { no }, depth),
            _ => others.iter().for_each(|other| self.part(scope, other, depth)),
        }
    }

    /// The range of a loop, and its body for the first items.
    fn fold(&mut self, scope: &TraceScope<'_>, fold: &Comprehension, depth: usize) {
        if fold.var == UNUSED {
            return self.part(scope, &fold.init, depth);
        }
        self.part(scope, &fold.range, depth);
        let Ok(program) = Program::of_part(&scope.env, self.checked, &fold.range) else { return };
        let Ok(range) = program.eval(&scope.values, self.cost_max).result else { return };
        let pairs: Vec<(Val<'_>, Option<Val<'_>>)> = match &range {
            Val::List(list) => {
                let items = list.iter().take(TRACED_ITEMS_MAX).enumerate();
                let index = |i: usize| i64::try_from(i).map(Val::Int).unwrap_or(Val::Null);
                items
                    .filter_map(|(i, item)| match &fold.var2 {
                        Some(_) => Some((index(i), Some(item.ok()?))),
                        None => Some((item.ok()?, None)),
                    })
                    .collect()
            }
            Val::Map(map) => {
                let entries = map.entries().into_iter().take(TRACED_ITEMS_MAX);
                entries.map(|(key, value)| (key, fold.var2.as_ref().and_then(|_| value.ok()))).collect()
            }
            _ => return,
        };
        for (first, second) in pairs {
            let mut inner = TraceScope { env: scope.env.clone(), values: scope.values.clone() };
            let names = [(Some(&fold.var), Some(first)), (fold.var2.as_ref(), second)];
            for (name, value) in names {
                let (Some(name), Some(value)) = (name, value) else { continue };
                inner.env = inner.env.variable(name, Type::Dyn);
                inner.values.retain(|(known, _)| known != name);
                self.found.push(Traced { depth, text: name.to_string(), value: Ok(shown(&value)), cost: 0 });
                inner.values.push((name, value));
            }
            bodies(&fold.step, &mut |body| self.part(&inner, body, depth + 1));
        }
    }
}

/// Operators that need not evaluate all operands.
fn is_lazy(function: &str) -> bool {
    matches!(function, "_&&_" | "_||_" | "_?_:_")
}

/// The parts of the step of a loop that do not depend on what was accumulated.
fn bodies<'a>(step: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
    if uses_accumulator(step) {
        step.children(|child| bodies(child, visit));
    } else if let Kind::List { items, .. } = &step.kind
        && let [only] = items.as_slice()
    {
        // what a macro appends
        visit(only);
    } else {
        visit(step);
    }
}

fn uses_accumulator(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Ident(name) => name == ACCUMULATOR,
        // a loop within has an accumulator of its own
        Kind::Comprehension(fold) => uses_accumulator(&fold.range) || uses_accumulator(&fold.init),
        _ => {
            let mut uses = false;
            expr.children(|child| uses |= uses_accumulator(child));
            uses
        }
    }
}

/// Whether a part explains nothing: a literal, or a variable.
fn is_plain(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Literal(_) | Kind::Ident(_) | Kind::Error => true,
        Kind::List { items, .. } => items.iter().all(is_plain),
        _ => false,
    }
}

/// Whether an expression is a variable, or a field of one.
fn is_path(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Ident(_) => true,
        Kind::Select { operand, test_only: false, .. } => is_path(operand),
        _ => false,
    }
}

/// A part as an expression. A macro has its text in the source.
fn unparsed(ast: &Ast, expr: &Expr) -> String {
    let list = |items: &[Expr]| items.iter().map(|item| unparsed(ast, item)).collect::<Vec<_>>().join(", ");
    let operand = |expr: &Expr| match &expr.kind {
        Kind::Call { function, .. } if infix(function).is_some() || is_lazy(function) => {
            format!("({})", unparsed(ast, expr))
        }
        _ => unparsed(ast, expr),
    };
    match &expr.kind {
        Kind::Literal(literal) => written(literal),
        Kind::Ident(name) => name.to_string(),
        Kind::Select { operand: of, field, test_only: false } => format!("{}.{field}", operand(of)),
        Kind::Select { operand: of, field, test_only: true } => format!("has({}.{field})", operand(of)),
        Kind::Call { function, target: None, args } => match (infix(function), args.as_slice()) {
            (Some(infix), [left, right]) => format!("{} {infix} {}", operand(left), operand(right)),
            (_, [condition, yes, no]) if function == "_?_:_" => {
                format!("{} ? {} : {}", operand(condition), operand(yes), operand(no))
            }
            (_, [of]) if function == "!_" || function == "-_" => format!("{}{}", &function[..1], operand(of)),
            (_, [of, index]) if function == "_[_]" => format!("{}[{}]", operand(of), unparsed(ast, index)),
            (_, [of, index]) if function == "_[?_]" => format!("{}[?{}]", operand(of), unparsed(ast, index)),
            (_, [of, Expr { kind: Kind::Literal(Literal::String(field)), .. }]) if function == "_?._" => {
                format!("{}.?{field}", operand(of))
            }
            (_, args) => format!("{function}({})", list(args)),
        },
        Kind::Call { function, target: Some(target), args } => {
            format!("{}.{function}({})", operand(target), list(args))
        }
        Kind::List { items, .. } => format!("[{}]", list(items)),
        Kind::Error | Kind::Map(_) | Kind::Struct { .. } | Kind::Comprehension(_) => {
            piece(&ast.source, ast.offset(expr.id))
        }
    }
}

fn infix(function: &str) -> Option<&str> {
    match function {
        "@in" | "_in_" => Some("in"),
        _ => function.strip_prefix('_')?.strip_suffix('_').filter(|name| !name.starts_with(['[', '?'])),
    }
}

fn written(literal: &Literal) -> String {
    match literal {
        Literal::Null => "null".to_owned(),
        Literal::Bool(value) => value.to_string(),
        Literal::Int(value) => value.to_string(),
        Literal::Uint(value) => format!("{value}u"),
        Literal::Double(value) => format!("{value:?}"),
        Literal::String(value) => quote(value),
        Literal::Bytes(value) => format!("b{}", quote(&String::from_utf8_lossy(value))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decl::Decl;
    use crate::value::from_json;
    use machinery::json;

    fn lines(expression: &str) -> Vec<String> {
        let object = json!({"crew": 5, "seats": 4, "names": ["a", "b"], "ports": {"web": 80}});
        let env = Environment::kubernetes(36).variable("self", Type::Dyn);
        let checked = env.check(expression).unwrap();
        let values = [("self", from_json(&object, Decl::json()).unwrap())];
        let line = |traced: Traced| {
            let value = traced.value.unwrap_or_else(|error| format!("error: {error}"));
            format!("{}{} = {value}", "  ".repeat(traced.depth), traced.text)
        };
        trace(&env, &checked, &values, 1000).into_iter().map(line).collect()
    }

    #[test]
    fn parts_have_values() {
        for (expression, wanted) in [
            (
                "self.names.map(n, n + n)",
                vec![
                    "self.names.map(n, n + n) = [\"aa\",\"bb\"]",
                    "  self.names = [\"a\",\"b\"]",
                    "  n = \"a\"",
                    "    n + n = \"aa\"",
                    "  n = \"b\"",
                    "    n + n = \"bb\"",
                ],
            ),
            ("self.crew<=self.seats", vec!["self.crew <= self.seats = false", "  self.crew = 5", "  self.seats = 4"]),
            (
                "self.crew > 9 && self.none == 1",
                vec!["(self.crew > 9) && (self.none == 1) = false", "  self.crew > 9 = false", "    self.crew = 5"],
            ),
            (
                "self.crew > 1 ? has(self.none) : self.none",
                vec![
                    "(self.crew > 1) ? has(self.none) : self.none = false",
                    "  self.crew > 1 = true",
                    "    self.crew = 5",
                    "  has(self.none) = false",
                ],
            ),
            (
                "self.none == 1",
                vec!["self.none == 1 = error: no such key: none", "  self.none = error: no such key: none"],
            ),
            (
                "self.names.all(n, n != 'b')",
                vec![
                    "self.names.all(n, n != 'b') = false",
                    "  self.names = [\"a\",\"b\"]",
                    "  n = \"a\"",
                    "    n != \"b\" = true",
                    "  n = \"b\"",
                    "    n != \"b\" = false",
                ],
            ),
            (
                "-size(self.names) + 1",
                vec![
                    "-size(self.names) + 1 = -1",
                    "  -size(self.names) = -2",
                    "    size(self.names) = 2",
                    "      self.names = [\"a\",\"b\"]",
                ],
            ),
            (
                "!('a' in self.names)",
                vec![
                    "!(\"a\" in self.names) = false",
                    "  \"a\" in self.names = true",
                    "    self.names = [\"a\",\"b\"]",
                ],
            ),
        ] {
            assert_eq!(lines(expression), wanted, "{expression}");
        }
    }

    #[test]
    fn loops_within_loops_have_their_own_variables() {
        let inner = |n: &str, value: bool, [a, b]: [bool; 2]| {
            [
                format!("  n = \"{n}\""),
                format!("    self.names.exists(m, m + n == 'ab') = {value}"),
                "      self.names = [\"a\",\"b\"]".to_owned(),
                "      m = \"a\"".to_owned(),
                format!("        (m + n) == \"ab\" = {a}"),
                format!("          m + n = \"a{n}\""),
                "      m = \"b\"".to_owned(),
                format!("        (m + n) == \"ab\" = {b}"),
                format!("          m + n = \"b{n}\""),
            ]
        };
        let mut wanted = vec![
            "self.names.all(n, self.names.exists(m, m + n == 'ab')) = false".to_owned(),
            "  self.names = [\"a\",\"b\"]".to_owned(),
        ];
        wanted.extend(inner("a", false, [false, false]));
        wanted.extend(inner("b", true, [true, false]));
        assert_eq!(lines("self.names.all(n, self.names.exists(m, m + n == 'ab'))"), wanted);
    }

    #[test]
    fn trace_is_bounded() {
        let long = vec!["self.crew == 1"; 500].join(" || ");
        assert!(lines(&long).len() <= TRACED_PARTS_MAX + 1);
    }
}
