//! Type checker: gives every node a type, every name its variable and every call its overloads.
//!
//! The rules are those of cel-go's checker. A call may keep several overloads if types are only known at run time. Type
//! parameters are variables, solved by unification.

mod unify;
mod validate;

use crate::ast::{Ast, Comprehension, Entry, Expr, Field, Id, Issue, Kind, Literal, Offset, Source};
use crate::decl::types::Type;
use crate::env::Environment;
use crate::library::{Library, Overload, OverloadIndex, registry};
use crate::parser;
use machinery::Text;
use unify::Solver;

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
    /// Whether problems were not reported: nodes that could not be resolved fail when they are evaluated.
    pub(crate) lenient: bool,
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
        Ok(resolve(self, ast, true).0)
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
    lenient: bool,
}

fn check(env: &Environment, ast: Ast) -> Result<Checked, (Source, Vec<Issue>)> {
    let (checked, mut issues) = resolve(env, ast, false);
    if issues.is_empty() && env.homogeneous_literals {
        validate::aggregates(&checked, &env.scope, &mut issues);
    }
    if issues.is_empty() && env.checked_literals {
        validate::literals(&checked, &mut issues);
    }
    if issues.is_empty() { Ok(checked) } else { Err((checked.ast.source, issues)) }
}

/// Resolves names and overloads. Problems become issues, unless `lenient` leaves them to the evaluation.
fn resolve(env: &Environment, mut ast: Ast, lenient: bool) -> (Checked, Vec<Issue>) {
    let count = ast.offsets.len();
    let mut checker = Checker {
        env,
        types: vec![Type::Error; count],
        references: vec![Reference::None; count],
        solver: Solver::default(),
        scope: vec![],
        issues: vec![],
        offsets: std::mem::take(&mut ast.offsets),
        lenient,
    };
    checker.expr(&mut ast.root);
    let Checker { types, references, solver, issues, offsets, .. } = checker;
    let types = types.into_iter().map(|t| solver.substitute(&t, true)).collect();
    ast.offsets = offsets;
    (Checked { ast, types, references, lenient }, issues)
}

/// The name of `a.b.c`, if it is one.
fn qualified_name(expr: &Expr) -> Option<String> {
    match &expr.kind {
        Kind::Ident(name) => Some(name.to_string()),
        Kind::Select { operand, field, test_only: false } => {
            let mut name = qualified_name(operand)?;
            name.push('.');
            name.push_str(field);
            Some(name)
        }
        _ => None,
    }
}

impl Checker<'_> {
    fn issue(&mut self, id: Id, message: String) {
        if self.lenient {
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

    fn is_local(&self, name: &str) -> bool {
        self.scope.iter().any(|(local, _)| local == name)
    }

    /// The declaration of a name, and its full name. A name with a leading dot is a full name and never a local variable;
    /// other names are looked up in the container and in its parents, innermost first.
    fn lookup(&self, name: &str) -> Option<(Text, Type, Reference)> {
        if let Some(full) = name.strip_prefix('.') {
            let (t, reference) = self.global(full)?;
            let hidden = self.is_local(full);
            return Some((Text::new(if hidden { name } else { full }), t, reference));
        }
        if let Some((_, t)) = self.scope.iter().rev().find(|(local, _)| local == name) {
            return Some((Text::new(name), t.clone(), Reference::Variable));
        }
        let mut container = self.env.container.as_str();
        while !container.is_empty() {
            let full = format!("{container}.{name}");
            if let Some((t, reference)) = self.global(&full) {
                return Some((Text::from(full), t, reference));
            }
            container = container.rsplit_once('.').map_or("", |(around, _)| around);
        }
        self.global(name).map(|(t, reference)| (Text::new(name), t, reference))
    }

    fn global(&self, name: &str) -> Option<(Type, Reference)> {
        if let Some(variable) = self.env.variables.iter().find(|v| v.name == name) {
            return Some((variable.r#type.clone(), Reference::Variable));
        }
        let parameters = self.env.libraries.has(Library::Legacy);
        Type::named(name, parameters).map(|t| (Type::type_of(t), Reference::TypeName))
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

    /// Makes the node a reference to the declaration of `name`. Returns false if there is none.
    fn name(&mut self, expr: &mut Expr, name: &str) -> bool {
        let Some((full, t, reference)) = self.lookup(name) else { return false };
        self.set(expr.id, t);
        self.refer(expr.id, reference);
        expr.kind = Kind::Ident(full);
        true
    }

    fn select(&mut self, expr: &mut Expr) {
        let id = expr.id;
        if let Some(name) = qualified_name(expr)
            && !name.split_once('.').is_some_and(|(first, _)| self.is_local(first))
            && self.name(expr, &name)
        {
            return;
        }
        let Kind::Select { operand, field, test_only } = &mut expr.kind else { return };
        let result = self.field(id, operand, field, false);
        let result = if *test_only { Type::Bool } else { result };
        let result = self.solver.substitute(&result, false);
        self.set(id, result);
    }

    fn field(&mut self, id: Id, operand: &mut Expr, field: &str, optional: bool) -> Type {
        self.expr(operand);
        let operand_type = self.solver.substitute(&self.get(operand), false);
        let (target, is_optional) = match operand_type.unwrapped() {
            Some(inner) => (inner.clone(), true),
            None => (operand_type, false),
        };
        let result = match &target {
            Type::Map(pair) => pair.1.clone(),
            Type::Made(name) => match Type::made(name).and_then(|of| of(field)) {
                Some(t) => t,
                None => {
                    self.issue(id, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            Type::Object(object) => match object.selected(field).and_then(|f| f.decl.exposed.clone()) {
                Some(t) => t,
                None => {
                    self.issue(id, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            Type::Named(name) => {
                let _ = name;
                self.issue(id, format!("undefined field '{field}'"));
                Type::Error
            }
            Type::Param(_) => {
                self.solver.assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            other => {
                if !other.is_dyn_or_error() {
                    let message = format!("type '{}' does not support field selection", self.show(other));
                    self.issue(id, message);
                }
                Type::Dyn
            }
        };
        if is_optional || optional { Type::optional(result) } else { result }
    }

    fn optional_select(&mut self, id: Id, args: &mut [Expr]) {
        let [operand, field] = args else { return };
        let Kind::Literal(Literal::String(name)) = &field.kind else {
            let message = "unsupported optional field selection".to_owned();
            self.issue(field.id, message);
            return;
        };
        let name = name.clone();
        self.set(field.id, Type::String);
        let result = self.field(id, operand, &name, true);
        let result = self.solver.substitute(&result, false);
        self.set(id, result);
        let index = registry().functions.get("_?._").and_then(|f| f.first()).copied();
        self.refer(id, Reference::Overloads(index.into_iter().collect()));
    }

    fn call(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let Kind::Call { function, target, args } = &mut expr.kind else { return };
        if function == "_?._" && target.is_none() {
            return self.optional_select(id, args);
        }
        args.iter_mut().for_each(|arg| self.expr(arg));
        let Some(receiver) = target else {
            let name = function.strip_prefix('.').map_or(function.clone(), Text::new);
            match self.function(&name) {
                Some(overloads) => {
                    self.resolve(id, &name, overloads, None, args);
                    *function = name;
                }
                None => self.undeclared(id, &function.clone()),
            }
            return;
        };
        if let Some(prefix) = qualified_name(receiver) {
            let name = format!("{}.{function}", prefix.strip_prefix('.').unwrap_or(&prefix));
            if let Some(overloads) = self.function(&name) {
                self.resolve(id, &name, overloads, None, args);
                *function = Text::from(name);
                *target = None;
                return;
            }
        }
        self.expr(receiver);
        match self.function(function) {
            Some(overloads) => {
                let name = function.clone();
                self.resolve(id, &name, overloads, Some(receiver), args);
            }
            None => self.undeclared(id, &function.clone()),
        }
    }

    fn function(&self, name: &str) -> Option<&'static [OverloadIndex]> {
        let overloads = registry().functions.get(name)?;
        let known = |index: &OverloadIndex| self.env.libraries.has(registry().overload(*index).library);
        overloads.iter().any(known).then_some(overloads.as_slice())
    }

    fn resolve(
        &mut self,
        id: Id,
        name: &str,
        overloads: &'static [OverloadIndex],
        target: Option<&Expr>,
        args: &[Expr],
    ) {
        let arguments: Vec<Type> = target.into_iter().chain(args).map(|arg| self.get(arg)).collect();
        if matches!(name, "_&&_" | "_||_") {
            return self.logical(id, overloads, args, &arguments);
        }
        let mut result: Option<Type> = None;
        let mut matching = vec![];
        for &index in overloads {
            let overload = registry().overload(index);
            if overload.member != target.is_some() || !self.env.libraries.has(overload.library) {
                continue;
            }
            let Some(found) = self.matches(overload, &arguments) else { continue };
            matching.push(index);
            result = Some(match result {
                None => found,
                Some(known) if known.is_dyn() || known == found => known,
                Some(_) => Type::Dyn,
            });
        }
        match result {
            Some(result) => {
                self.set(id, result);
                self.refer(id, Reference::Overloads(matching));
            }
            None if self.lenient => {
                let fits = |index: &OverloadIndex| {
                    let overload = registry().overload(*index);
                    let shape = overload.member == target.is_some() && overload.params.len() == arguments.len();
                    shape && self.env.libraries.has(overload.library)
                };
                let possible = overloads.iter().copied().filter(fits).collect();
                self.refer(id, Reference::Overloads(possible));
            }
            None => {
                let shown: Vec<String> =
                    arguments.iter().map(|t| self.show(&self.solver.substitute(t, true))).collect();
                let signature = match (target, shown.split_first()) {
                    (Some(_), Some((receiver, rest))) => format!("{receiver}.({})", rest.join(", ")),
                    _ => format!("({})", shown.join(", ")),
                };
                self.issue(id, format!("found no matching overload for '{name}' applied to '{signature}'"));
            }
        }
    }

    /// The result type of an overload if it accepts the arguments.
    fn matches(&mut self, overload: &Overload, arguments: &[Type]) -> Option<Type> {
        // as upstream, which allocates variables before it compares the numbers of parameters: messages show them
        let first = self.solver.fresh(overload.letters.len());
        if overload.params.len() != arguments.len() {
            return None;
        }
        if overload.letters.is_empty() {
            let pairs = arguments.iter().zip(&overload.params);
            return self.solver.all_assignable(pairs).then(|| overload.result.clone());
        }
        let instance = |t: &Type| unify::instance(t, &overload.letters, first);
        let params: Vec<Type> = overload.params.iter().map(instance).collect();
        let fits = self.solver.all_assignable(arguments.iter().zip(&params));
        fits.then(|| self.solver.substitute(&instance(&overload.result), false))
    }

    fn logical(&mut self, id: Id, overloads: &[OverloadIndex], args: &[Expr], arguments: &[Type]) {
        let mut good = true;
        for (arg, t) in args.iter().zip(arguments) {
            if !self.solver.assignable(t, &Type::Bool) {
                self.mismatch(arg.id, &Type::Bool, t);
                good = false;
            }
        }
        if good {
            self.set(id, Type::Bool);
            self.refer(id, Reference::Overloads(overloads.to_vec()));
        }
    }

    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.solver.assignable(&previous, &current) {
            return unify::most_general(previous, current);
        }
        Type::Dyn
    }

    /// The type of the value of an optional element of a literal.
    fn optional_element(&mut self, id: Id, t: Type) -> Type {
        if let Some(inner) = t.unwrapped() {
            return inner.clone();
        }
        if !t.is_dyn() {
            self.mismatch(id, &Type::optional(t.clone()), &t);
        }
        t
    }

    fn list(&mut self, items: &mut [Expr], optional: &[u32]) -> Type {
        let mut joined = None;
        for (i, item) in items.iter_mut().enumerate() {
            self.expr(item);
            let mut t = self.get(item);
            if optional.contains(&(i as u32)) {
                t = self.optional_element(item.id, t);
            }
            joined = Some(self.join(joined, t));
        }
        Type::list(joined.unwrap_or_else(|| self.solver.variable()))
    }

    fn map(&mut self, entries: &mut [Entry]) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            self.expr(&mut entry.key);
            let key = self.get(&entry.key);
            keys = Some(self.join(keys, key));
            self.expr(&mut entry.value);
            let mut value = self.get(&entry.value);
            if entry.optional {
                value = self.optional_element(entry.value.id, value);
            }
            values = Some(self.join(values, value));
        }
        let key = keys.unwrap_or_else(|| self.solver.variable());
        let value = values.unwrap_or_else(|| self.solver.variable());
        Type::map(key, value)
    }

    /// Checks a message literal. Only the types of mutations have fields in any environment.
    fn message(&mut self, id: Id, name: &str, kind: &mut Kind) {
        let Kind::Struct { fields, .. } = kind else { return };
        if self.env.libraries.has(Library::JsonPatch)
            && let Some(of) = Type::made(name)
        {
            self.set(id, Type::Made(name.into()));
            return fields.iter_mut().for_each(|field| self.made_field(field, of));
        }
        match self.lookup(name).map(|(_, t, _)| t) {
            None => return self.undeclared(id, name),
            Some(Type::Type(Some(inner))) => {
                let known = matches!(&*inner, Type::Timestamp | Type::Duration | Type::Named(_) | Type::Null);
                if !known {
                    self.issue(id, format!("'{}' is not a message type", inner.runtime_name()));
                } else {
                    self.set(id, (*inner).clone());
                }
            }
            Some(Type::Type(None)) => self.issue(id, "'type' is not a message type".to_owned()),
            Some(other) => {
                let message = format!("'{}' is not a type", other.runtime_name());
                self.issue(id, message);
            }
        }
        for field in fields {
            self.expr(&mut field.value);
            self.issue(field.id, format!("undefined field '{}'", field.name));
        }
    }

    /// Checks a field of a constructed message, by the type of the field if that is declared.
    fn made_field(&mut self, field: &mut Field, of: fn(&str) -> Option<Type>) {
        self.expr(&mut field.value);
        let mut given = self.get(&field.value);
        if field.optional {
            given = self.optional_element(field.value.id, given);
        }
        // upstream gives an unknown field a type without a name, to which nothing can be assigned
        let Some(wanted) = of(&field.name) else {
            let given = self.show(&given);
            let message = format!("expected type of field '{}' is '' but provided type is '{given}'", field.name);
            return self.issue(field.id, message);
        };
        if !self.solver.assignable(&wanted, &given) {
            let (wanted, given) = (self.show(&wanted), self.show(&given));
            let message =
                format!("expected type of field '{}' is '{wanted}' but provided type is '{given}'", field.name);
            self.issue(field.id, message);
        }
    }

    fn comprehension(&mut self, fold: &mut Comprehension) -> Type {
        self.expr(&mut fold.range);
        self.expr(&mut fold.init);
        let range = self.solver.substitute(&self.get(&fold.range), false);
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
        self.solver.substitute(&self.get(&fold.result), false)
    }

    fn assert(&mut self, expr: &Expr, t: &Type) {
        let found = self.get(expr);
        if !self.solver.assignable(t, &found) {
            self.mismatch(expr.id, t, &found);
        }
    }
}
