//! Literals of lists, maps and messages.

use super::{Checker, unify};
use crate::ast::{Entry, Expr, Field, Id, Kind};
use crate::decl::types::Type;
use crate::library::Library;

impl Checker<'_> {
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.solver.assignable(&previous, &current) { unify::most_general(previous, current) } else { Type::Dyn }
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

    pub(super) fn list(&mut self, items: &mut [Expr], optional: &[u32]) -> Type {
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

    pub(super) fn map(&mut self, entries: &mut [Entry]) -> Type {
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
    pub(super) fn message(&mut self, id: Id, name: &str, kind: &mut Kind) {
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
}
