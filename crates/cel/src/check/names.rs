//! Names: variables, types and fields.

use super::unify::Free;
use super::{Checker, Reference};
use crate::ast::{Expr, Id, Kind, Literal};
use crate::decl::types::{Elements, Type};
use crate::library::{Library, registry};
use machinery::Text;

/// The name of `a.b.c`, if it is one.
pub(super) fn qualified_name(expr: &Expr) -> Option<String> {
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
    fn is_local(&self, name: &str) -> bool {
        self.scope.iter().any(|(local, _)| local == name)
    }

    /// The declaration of a name, and its full name. A name with a leading dot is a full name and never a local variable;
    /// other names are looked up in the container and in its parents, innermost first.
    pub(super) fn lookup(&self, name: &str) -> Option<(Text, Type, Reference)> {
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
        let elements = if self.env.libraries.has(Library::Legacy) { Elements::Parameters } else { Elements::Dyn };
        Type::named(name, elements).map(|t| (Type::type_of(t), Reference::TypeName))
    }

    /// Makes the node a reference to the declaration of `name`. Returns false if there is none.
    pub(super) fn name(&mut self, expr: &mut Expr, name: &str) -> bool {
        let Some((full, t, reference)) = self.lookup(name) else { return false };
        self.set(expr.id, t);
        self.refer(expr.id, reference);
        expr.kind = Kind::Ident(full);
        true
    }

    pub(super) fn select(&mut self, expr: &mut Expr) {
        let id = expr.id;
        if let Some(name) = qualified_name(expr)
            && !name.split_once('.').is_some_and(|(first, _)| self.is_local(first))
            && self.name(expr, &name)
        {
            return;
        }
        let Kind::Select { operand, field, test_only } = &mut expr.kind else { return };
        let (found, of_optional) = self.field(id, operand, field);
        let result = match (*test_only, of_optional) {
            (true, _) => Type::Bool,
            (false, true) => Type::optional(found),
            (false, false) => found,
        };
        let result = self.solver.substitute(&result, Free::Kept);
        self.set(id, result);
    }

    /// The type of a field of the operand, or of the value in it if it is an optional, and whether it is one.
    fn field(&mut self, id: Id, operand: &mut Expr, field: &str) -> (Type, bool) {
        self.expr(operand);
        let operand_type = self.solver.substitute(&self.get(operand), Free::Kept);
        let (target, of_optional) = match operand_type.unwrapped() {
            Some(inner) => (inner.clone(), true),
            None => (operand_type, false),
        };
        let known = match &target {
            Type::Map(pair) => Some(pair.1.clone()),
            Type::Made(name) => Type::made(name).and_then(|of| of(field)),
            Type::Object(object) => object.selected(field).and_then(|f| f.decl.exposed.clone()),
            Type::Named(_) => None,
            Type::Param(_) => {
                self.solver.assignable(&Type::Dyn, &target);
                Some(Type::Dyn)
            }
            other => {
                if !other.is_dyn_or_error() {
                    let message = format!("type '{}' does not support field selection", self.show(other));
                    self.issue(id, message);
                }
                Some(Type::Dyn)
            }
        };
        let result = known.unwrap_or_else(|| {
            self.issue(id, format!("undefined field '{field}'"));
            Type::Error
        });
        (result, of_optional)
    }

    pub(super) fn optional_select(&mut self, id: Id, args: &mut [Expr]) {
        let [operand, field] = args else { return };
        let Kind::Literal(Literal::String(name)) = &field.kind else {
            let message = "unsupported optional field selection".to_owned();
            self.issue(field.id, message);
            return;
        };
        let name = name.clone();
        self.set(field.id, Type::String);
        let (found, _) = self.field(id, operand, &name);
        let result = self.solver.substitute(&Type::optional(found), Free::Kept);
        self.set(id, result);
        let index = registry().functions.get("_?._").and_then(|f| f.first()).copied();
        self.refer(id, Reference::Overloads(index.into_iter().collect()));
    }
}
