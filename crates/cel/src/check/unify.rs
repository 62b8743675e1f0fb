//! Unification of types.

use crate::decl::types::{Param, Type};
use std::sync::Arc;

/// The type variables and the types that they are bound to.
#[derive(Default)]
pub(super) struct Solver {
    bound: Vec<Option<Type>>,
    /// The variables that [`Solver::all_assignable`] has bound so far, with what they were bound to before. A copy of all variables
    /// instead would make checking quadratic: an expression has variables for each of its calls.
    changed: Vec<(usize, Option<Type>)>,
}

/// The type of a variable that is not bound: itself, or `dyn`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Free {
    Kept,
    Dyn,
}

/// A declared type with its letters replaced by variables, `first` for the first letter.
pub(super) fn instance(t: &Type, letters: &[u8], first: u32) -> Type {
    let go = |t: &Type| instance(t, letters, first);
    match t {
        Type::Param(Param::Named(letter)) => {
            let at = letters.iter().position(|l| l == letter).unwrap_or(0);
            Type::Param(Param::Fresh(first + at as u32))
        }
        Type::List(item) => Type::list(go(item)),
        Type::Map(pair) => Type::map(go(&pair.0), go(&pair.1)),
        Type::Type(Some(inner)) => Type::type_of(go(inner)),
        Type::Opaque(name, params) if !params.is_empty() => Type::Opaque(name, params.iter().map(go).collect()),
        other => other.clone(),
    }
}

fn less_specific(a: &Type, b: &Type) -> bool {
    if a.is_dyn() || matches!(a, Type::Param(_)) {
        return true;
    }
    if b.is_dyn() || matches!(b, Type::Param(_)) {
        return false;
    }
    match (a, b) {
        (Type::Opaque(m, p), Type::Opaque(n, q)) => {
            m == n && p.len() == q.len() && p.iter().zip(q.iter()).all(|(a, b)| less_specific(a, b))
        }
        (Type::List(a), Type::List(b)) => less_specific(a, b),
        (Type::Map(a), Type::Map(b)) => less_specific(&a.0, &b.0) && less_specific(&a.1, &b.1),
        (Type::Type(_), Type::Type(_)) => true,
        (a, b) => a == b,
    }
}

/// The more general of two types, one of which is assignable to the other.
pub(super) fn most_general(a: Type, b: Type) -> Type {
    if less_specific(&a, &b) { a } else { b }
}

fn nullable(t: &Type) -> bool {
    matches!(
        t,
        Type::Opaque(..)
            | Type::Named(_)
            | Type::Object(_)
            | Type::Made(_)
            | Type::Any
            | Type::Duration
            | Type::Timestamp
            | Type::Null
            | Type::Wrapper(_)
    )
}

impl Solver {
    /// Creates `count` variables and returns the number of the first.
    pub fn fresh(&mut self, count: usize) -> u32 {
        let first = self.bound.len() as u32;
        self.bound.resize(self.bound.len() + count, None);
        first
    }

    pub fn variable(&mut self) -> Type {
        Type::Param(Param::Fresh(self.fresh(1)))
    }

    fn find(&self, t: &Type) -> Option<&Type> {
        match t {
            Type::Param(Param::Fresh(n)) => self.bound.get(*n as usize).and_then(Option::as_ref),
            _ => None,
        }
    }

    /// Replaces bound variables in a type.
    pub fn substitute(&self, t: &Type, free: Free) -> Type {
        if let Some(bound) = self.find(t) {
            return self.substitute(bound, free);
        }
        let go = |t: &Type| self.substitute(t, free);
        match t {
            Type::Param(_) if free == Free::Dyn => Type::Dyn,
            Type::List(item) => Type::List(self.substitute_shared(item, free)),
            Type::Map(pair) => Type::map(go(&pair.0), go(&pair.1)),
            Type::Type(Some(inner)) => Type::type_of(go(inner)),
            Type::Opaque(name, params) if !params.is_empty() => Type::Opaque(name, params.iter().map(go).collect()),
            other => other.clone(),
        }
    }

    fn substitute_shared(&self, item: &Arc<Type>, free: Free) -> Arc<Type> {
        match &**item {
            Type::Param(_) | Type::List(_) | Type::Map(_) | Type::Type(_) | Type::Opaque(..) => {
                Arc::new(self.substitute(item, free))
            }
            _ => item.clone(),
        }
    }

    /// Whether a value of type `a` may be used as a `b`. If so, binds the variables that make it assignable.
    pub fn assignable(&mut self, a: &Type, b: &Type) -> bool {
        self.all_assignable(std::iter::once((a, b)))
    }

    /// As [`Solver::assignable`], for all pairs or none: if one does not fit, no variable is bound.
    pub fn all_assignable<'t>(&mut self, mut pairs: impl Iterator<Item = (&'t Type, &'t Type)>) -> bool {
        self.changed.clear();
        let fits = pairs.all(|(a, b)| a == b && !matches!(a, Type::Param(_)) || self.fits(a, b));
        if !fits {
            while let Some((variable, before)) = self.changed.pop() {
                self.bound[variable] = before;
            }
        }
        fits
    }

    fn fits(&mut self, a: &Type, b: &Type) -> bool {
        if matches!(b, Type::Param(_)) {
            match self.substitution(a, b) {
                (true, _) => return true,
                (false, true) => return false,
                _ => {}
            }
        }
        if matches!(a, Type::Param(_)) {
            return self.substitution(b, a).0;
        }
        if a.is_dyn_or_error() || b.is_dyn_or_error() {
            return true;
        }
        match (a, b) {
            (Type::Null, t) | (t, Type::Null) => nullable(t),
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(a), Type::List(b)) => self.fits(a, b),
            (Type::Map(a), Type::Map(b)) => self.fits(&a.0, &b.0) && self.fits(&a.1, &b.1),
            (Type::Opaque(m, p), Type::Opaque(n, q)) => {
                m == n && p.len() == q.len() && p.iter().zip(q.iter()).all(|(a, b)| self.fits(a, b))
            }
            (a, Type::Wrapper(inner)) => *a == **inner || a == b,
            (a, b) => a == b,
        }
    }

    /// Whether variable `b` can be bound to `a`, and whether it was bound before.
    fn substitution(&mut self, a: &Type, b: &Type) -> (bool, bool) {
        if a == b {
            return (true, true);
        }
        if let Some(bound) = self.find(b).cloned() {
            if *a == bound {
                return (true, true);
            }
            if self.fits(a, &bound) {
                let general = most_general(a.clone(), bound);
                if self.free_of(b, &general) {
                    self.bind(b, general);
                }
                return (true, true);
            }
            return (false, true);
        }
        if self.free_of(b, a) {
            self.bind(b, a.clone());
            return (true, false);
        }
        (false, false)
    }

    fn bind(&mut self, variable: &Type, t: Type) {
        if let Type::Param(Param::Fresh(n)) = variable
            && let Some(slot) = self.bound.get_mut(*n as usize)
        {
            self.changed.push((*n as usize, slot.replace(t)));
        }
    }

    /// Whether `variable` does not occur in `t`.
    fn free_of(&self, variable: &Type, t: &Type) -> bool {
        if variable == t {
            return false;
        }
        match t {
            Type::Param(_) => self.find(t).is_none_or(|bound| self.free_of(variable, bound)),
            Type::List(inner) | Type::Type(Some(inner)) => self.free_of(variable, inner),
            Type::Map(pair) => self.free_of(variable, &pair.0) && self.free_of(variable, &pair.1),
            Type::Opaque(_, params) => params.iter().all(|p| self.free_of(variable, p)),
            _ => true,
        }
    }
}
