//! Calls: the overloads that accept the arguments.

use super::names::qualified_name;
use super::unify::{self, Free};
use super::{Checker, FoundProblems, Reference};
use crate::ast::{Expr, Id, Kind};
use crate::decl::types::Type;
use crate::library::{Overload, OverloadIndex, registry};
use machinery::Text;

impl Checker<'_> {
    pub(super) fn call(&mut self, expr: &mut Expr) {
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
            None if self.problems == FoundProblems::LeftToEvaluation => {
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
                    arguments.iter().map(|t| self.show(&self.solver.substitute(t, Free::Dyn))).collect();
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
        // as upstream, type variables are allocated before parameters are counted, since messages show the numbers of
        // variables
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
        fits.then(|| self.solver.substitute(&instance(&overload.result), Free::Kept))
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
}
