//! Variables, and selections of fields and items.

use super::{Frame, Slot};
use crate::decl::{Decl, DeclKind};
use crate::node::{Attribute, Base, Program, Qualifier, QualifierKind};
use crate::value::{Error, Map, Result, Val, untyped};
use crate::work;

impl<'a> Frame<'a> {
    fn slot(&mut self, slot: u32) -> Result<Val<'a>> {
        match self.slots.get(slot as usize) {
            Some(Slot::Value(value)) => Ok(value.clone()),
            Some(Slot::Failed(error)) => Err(error.clone()),
            Some(Slot::Lazy(node)) => {
                let result = self.eval(node);
                self.set(slot, result.clone());
                result
            }
            Some(Slot::ByProgram(program, name)) => {
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

    fn base(&mut self, base: &'a Base) -> Result<Val<'a>> {
        match base {
            Base::Slot(slot) => self.slot(*slot),
            Base::Node(node) => self.eval(node),
        }
    }

    pub(super) fn attribute(&mut self, attribute: &'a Attribute) -> Result<Val<'a>> {
        let cost = u64::from(!attribute.free);
        let result = self.base(&attribute.base);
        if let Ok(Val::Map(map)) = &result
            && let Some(found) = fields(map, &attribute.qualifiers)
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
                if !matches!(key, Val::String(_) | Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Double(_)) {
                    return Err(Error::new(format!("invalid qualifier type: {}", key.go_type())));
                }
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

    pub(super) fn has(&mut self, attribute: &'a Attribute) -> Result<Val<'a>> {
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
}

/// The value at the end of a chain of field selections; `None` if a field is missing or a qualifier is of another kind.
fn fields<'a>(map: &Map<'a>, qualifiers: &'a [Qualifier]) -> Option<Result<Val<'a>>> {
    let (first, rest) = qualifiers.split_first()?;
    let name = first.field()?;
    if let Map::Json(map, Decl { kind: DeclKind::Json, .. }) = map {
        return json_field(map, qualifiers).map(|value| Ok(untyped(value)));
    }
    let found = map.get_str(name)?;
    match (&found, rest) {
        (_, []) => Some(found),
        (Ok(Val::Map(inner)), rest) => fields(inner, rest),
        _ => None,
    }
}

/// As [`fields`], in JSON without declarations.
fn json_field<'a>(mut map: &'a machinery::Map, qualifiers: &'a [Qualifier]) -> Option<&'a machinery::Value> {
    let (last, before) = qualifiers.split_last()?;
    for qualifier in before {
        map = map.get(qualifier.field()?)?.as_object()?;
    }
    map.get(last.field()?)
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
