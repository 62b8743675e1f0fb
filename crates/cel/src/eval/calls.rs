//! Calls of functions, and the choice of their overloads by the types of the arguments.

use super::{Frame, sizeless};
use crate::decl::types::Type;
use crate::library::{Overload, checks_itself, has_operation, is_plain, registry};
use crate::node::{Call, RegexCall, RegexKind};
use crate::value::{Error, Result, Val};
use crate::work;

impl<'a> Frame<'a> {
    pub(super) fn call(&mut self, call: &'a Call) -> Result<Val<'a>> {
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

    pub(super) fn regex(&mut self, call: &'a RegexCall) -> Result<Val<'a>> {
        let mut args = Vec::with_capacity(3);
        for arg in &call.args {
            match self.absorbable(arg)? {
                // the value of a type is its name in cel-go
                Ok(Val::Type(named)) => args.push(Val::string(&*named.runtime_name())),
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
        if let Ok(made) = &result {
            work::make(made.owned_bytes());
        }
        self.charge_steps(call.cost.of_call(&args, result.as_ref().ok()))?;
        result
    }
}

/// Calls the overload that fits the types of the arguments at run time.
fn dispatch<'a>(call: &Call, args: &[Val<'a>]) -> Result<Val<'a>> {
    match overload(call, args) {
        Some(overload) if checks_itself(call.function) => {
            (overload.definition.call)(args).map_err(|error| named(error, call, args))
        }
        Some(overload) => (overload.definition.call)(args),
        None => Err(no_overload(call, args)),
    }
}

fn overload(call: &Call, args: &[Val<'_>]) -> Option<&'static Overload> {
    let takes = |overload: &&Overload| {
        let mut pairs = args.iter().zip(&overload.params);
        overload.params.len() == args.len() && (checks_itself(call.function) || pairs.all(|(arg, t)| fits(arg, t)))
    };
    call.overloads.iter().map(|index| registry().overload(*index)).find(takes)
}

fn no_overload(call: &Call, args: &[Val<'_>]) -> Error {
    let types: Vec<String> = args.iter().map(|arg| arg.type_of().runtime_name().to_string()).collect();
    Error::overload_of(format!("no such overload: {}({})", call.function, types.join(", ")))
}

/// Corrects the error of a function that was chosen by inferred types, in case the arguments have other types.
fn named(error: Error, call: &Call, args: &[Val<'_>]) -> Error {
    if is_plain(call.function) {
        return match args {
            [operand, ..] => named_operation(error, call.function, operand),
            [] => error,
        };
    }
    if error != Error::overload() || overload(call, args).is_some() { error } else { no_overload(call, args) }
}

/// Adds the name of the function to the error of an operand whose type does not have the operation.
pub(super) fn named_operation(error: Error, function: &str, operand: &Val<'_>) -> Error {
    if error != Error::overload() || has_operation(function, operand) {
        return error;
    }
    Error::overload_of(format!("no such overload: {function}"))
}

/// Whether a value has a type. The first item of a list stands for all of them, as in cel-go.
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
        | (Val::Map(_), Type::Map(_))
        | (Val::Type(_), Type::Type(_))
        | (Val::Null, Type::Null) => true,
        (Val::List(list), Type::List(item)) => {
            let fits_any = matches!(**item, Type::Dyn | Type::Any | Type::Param(_));
            // an item that cannot be read has no type
            fits_any || list.get(0).is_none_or(|first| first.is_ok_and(|first| fits(&first, item)))
        }
        (Val::Optional(_), Type::Opaque(name, _)) => *name == crate::decl::types::OPTIONAL,
        (Val::Authorization(part), t @ Type::Named(_)) => part.type_of() == *t,
        (Val::Opaque(opaque), t @ (Type::Named(_) | Type::Opaque(..))) => opaque.type_of() == *t,
        _ => false,
    }
}
