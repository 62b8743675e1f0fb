//! Type checker: gives every node a type, every name its variable and every call its overloads.
//!
//! The rules are those of cel-go's checker. A call may keep several overloads if types are only known at run time. Type
//! parameters are variables, solved by unification.

mod calls;
mod literals;
mod names;
mod unify;
mod validate;

use crate::ast::{Ast, Comprehension, Expr, Id, Issue, Kind, Literal, Offset, Source};
use crate::decl::types::Type;
use crate::env::Environment;
use crate::library::OverloadIndex;
use crate::parser;
use machinery::Text;
use unify::{Free, Solver};

/// The declaration that the name at a node refers to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Reference {
    #[default]
    None,
    Variable,
    TypeName,
    Overloads(Vec<OverloadIndex>),
}

/// A checked expression.
#[derive(Clone, Debug)]
pub struct Checked {
    pub(crate) ast: Ast,
    types: Vec<Type>,
    references: Vec<Reference>,
    pub(crate) problems: FoundProblems,
}

/// How the caller treats the problems that checking finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundProblems {
    /// Each is an issue.
    Reported,
    /// Nodes that could not be resolved fail when they are evaluated.
    LeftToEvaluation,
}

impl Checked {
    /// The type of a node.
    pub(crate) fn type_of(&self, id: Id) -> &Type {
        self.types.get(id as usize).unwrap_or(&Type::Error)
    }

    /// The type of the whole expression.
    pub fn output_type(&self) -> &Type {
        self.type_of(self.ast.root.id)
    }

    pub(crate) fn reference(&self, id: Id) -> &Reference {
        self.references.get(id as usize).unwrap_or(&Reference::None)
    }

    pub(crate) fn overloads(&self, id: Id) -> &[OverloadIndex] {
        match self.reference(id) {
            Reference::Overloads(indices) => indices,
            _ => &[],
        }
    }

    /// Whether a variable of this name is used.
    pub fn uses(&self, name: &str) -> bool {
        let mut found = false;
        self.ast.root.walk(|expr| {
            found |= matches!(&expr.kind, Kind::Ident(ident) if ident.trim_start_matches('.') == name)
                && *self.reference(expr.id) == Reference::Variable;
        });
        found
    }
}

/// Why an expression cannot be compiled. Displayed as by cel-go, with the source line and a marker at each position.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompileError {
    /// The text of the expression.
    pub source: Source,
    /// The problems, in the order in which they were found.
    pub issues: Vec<Issue>,
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.source.display(&self.issues))
    }
}

impl std::error::Error for CompileError {}

impl Environment {
    /// Parses an expression and resolves its names, without checking types. A name that cannot be resolved, such as a
    /// variable that is not declared, is an error when the evaluation reaches it.
    ///
    /// # Errors
    ///
    /// The text is not an expression.
    pub fn unchecked(&self, text: &str) -> Result<Checked, CompileError> {
        let ast = parser::parse(text, self.syntax()).map_err(|(source, issues)| CompileError { source, issues })?;
        Ok(resolve(self, ast, FoundProblems::LeftToEvaluation).0)
    }

    /// Parses an expression and checks its types.
    ///
    /// # Errors
    ///
    /// All problems that were found, with the texts of kube-apiserver.
    pub fn check(&self, text: &str) -> Result<Checked, CompileError> {
        let ast = parser::parse(text, self.syntax()).map_err(|(source, issues)| CompileError { source, issues })?;
        check(self, ast).map_err(|(source, issues)| CompileError { source, issues })
    }
}

struct Checker<'e> {
    env: &'e Environment,
    types: Vec<Type>,
    references: Vec<Reference>,
    solver: Solver,
    scope: Vec<(Text, Type)>,
    issues: Vec<Issue>,
    offsets: Vec<Offset>,
    problems: FoundProblems,
}

fn check(env: &Environment, ast: Ast) -> Result<Checked, (Source, Vec<Issue>)> {
    let (checked, mut issues) = resolve(env, ast, FoundProblems::Reported);
    if issues.is_empty() && env.homogeneous_literals {
        validate::aggregates(&checked, &env.scope, &mut issues);
    }
    if issues.is_empty() && env.checked_literals {
        validate::literals(&checked, &mut issues);
    }
    if issues.is_empty() { Ok(checked) } else { Err((checked.ast.source, issues)) }
}

/// Resolves names and overloads.
fn resolve(env: &Environment, mut ast: Ast, problems: FoundProblems) -> (Checked, Vec<Issue>) {
    let count = ast.offsets.len();
    let mut checker = Checker {
        env,
        types: vec![Type::Error; count],
        references: vec![Reference::None; count],
        solver: Solver::default(),
        scope: vec![],
        issues: vec![],
        offsets: std::mem::take(&mut ast.offsets),
        problems,
    };
    checker.expr(&mut ast.root);
    let Checker { types, references, solver, issues, offsets, .. } = checker;
    let types = types.into_iter().map(|t| solver.substitute(&t, Free::Dyn)).collect();
    ast.offsets = offsets;
    (Checked { ast, types, references, problems }, issues)
}

impl Checker<'_> {
    fn issue(&mut self, id: Id, message: String) {
        if self.problems == FoundProblems::LeftToEvaluation {
            return;
        }
        let offset = self.offsets.get(id as usize).copied().unwrap_or(crate::ast::NOWHERE);
        self.issues.push(Issue::new(offset, message));
    }

    fn show(&self, t: &Type) -> String {
        t.format(&self.env.scope)
    }

    fn set(&mut self, id: Id, t: Type) {
        if let Some(slot) = self.types.get_mut(id as usize) {
            *slot = t;
        }
    }

    fn get(&self, expr: &Expr) -> Type {
        self.types.get(expr.id as usize).cloned().unwrap_or(Type::Error)
    }

    fn refer(&mut self, id: Id, reference: Reference) {
        if let Some(slot) = self.references.get_mut(id as usize) {
            *slot = reference;
        }
    }

    fn undeclared(&mut self, id: Id, name: &str) {
        let container = &self.env.container;
        let message = format!("undeclared reference to '{name}' (in container '{container}')");
        self.issue(id, message);
    }

    fn mismatch(&mut self, id: Id, expected: &Type, found: &Type) {
        let message = format!("expected type '{}' but found '{}'", self.show(expected), self.show(found));
        self.issue(id, message);
    }

    fn expr(&mut self, expr: &mut Expr) {
        let id = expr.id;
        match &mut expr.kind {
            Kind::Error => {}
            Kind::Literal(literal) => {
                let t = match literal {
                    Literal::Null => Type::Null,
                    Literal::Bool(_) => Type::Bool,
                    Literal::Int(_) => Type::Int,
                    Literal::Uint(_) => Type::Uint,
                    Literal::Double(_) => Type::Double,
                    Literal::String(_) => Type::String,
                    Literal::Bytes(_) => Type::Bytes,
                };
                self.set(id, t);
            }
            Kind::Ident(name) => {
                let name = name.clone();
                if !self.name(expr, &name) {
                    self.undeclared(id, &name);
                }
            }
            Kind::Select { .. } => self.select(expr),
            Kind::Call { .. } => self.call(expr),
            Kind::List { items, optional } => {
                let optional = std::mem::take(optional);
                let t = self.list(items, &optional);
                if let Kind::List { optional: slot, .. } = &mut expr.kind {
                    *slot = optional;
                }
                self.set(id, t);
            }
            Kind::Map(entries) => {
                let t = self.map(entries);
                self.set(id, t);
            }
            Kind::Struct { name, .. } => {
                let name = name.clone();
                self.message(id, &name, &mut expr.kind);
            }
            Kind::Comprehension(fold) => {
                let t = self.comprehension(fold);
                self.set(id, t);
            }
        }
    }

    fn comprehension(&mut self, fold: &mut Comprehension) -> Type {
        self.expr(&mut fold.range);
        self.expr(&mut fold.init);
        let range = self.solver.substitute(&self.get(&fold.range), Free::Kept);
        let accu = self.get(&fold.init);
        let depth = self.scope.len();
        self.scope.push((fold.accu.clone(), accu.clone()));
        let (first, second) = match &range {
            Type::List(item) if fold.var2.is_some() => (Type::Int, (**item).clone()),
            Type::List(item) => ((**item).clone(), Type::Error),
            Type::Map(pair) => (pair.0.clone(), pair.1.clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.solver.assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                    self.show(other)
                );
                self.issue(fold.range.id, message);
                (Type::Error, Type::Error)
            }
        };
        self.scope.push((fold.var.clone(), first));
        if let Some(var2) = &fold.var2 {
            self.scope.push((var2.clone(), second));
        }
        self.expr(&mut fold.condition);
        self.assert(&fold.condition, &Type::Bool);
        self.expr(&mut fold.step);
        self.assert(&fold.step, &accu);
        self.scope.truncate(depth + 1);
        self.expr(&mut fold.result);
        self.scope.truncate(depth);
        self.solver.substitute(&self.get(&fold.result), Free::Kept)
    }

    fn assert(&mut self, expr: &Expr, t: &Type) {
        let found = self.get(expr);
        if !self.solver.assignable(t, &found) {
            self.mismatch(expr.id, t, &found);
        }
    }
}
