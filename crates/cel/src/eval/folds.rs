//! Comprehensions, and the accumulators that they change in place.

use super::{Frame, Slot};
use crate::node::{Fold, Node, Quantifier};
use crate::value::{Error, Key, List, Map, Result, Val};
use std::rc::Rc;

impl<'a> Frame<'a> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Result<Val<'a>> {
        let range = self.eval(&fold.range)?;
        let init = self.eval(&fold.init);
        self.set(fold.accu, init);
        self.rounds(range, (fold.var, fold.var2), |frame| frame.iterate(fold))?;
        self.eval(&fold.result)
    }

    /// `all` and `exists`: a fold of `&&` or `||`, charged like one.
    pub(super) fn quantifier(&mut self, quantifier: &'a Quantifier) -> Result<Val<'a>> {
        let range = self.eval(&quantifier.range)?;
        let decisive = quantifier.decisive;
        // the cost of the loop's condition; the accumulator on the left of the operator is charged after it
        let round = if decisive { 3 } else { 2 };
        let mut accu: Result<bool> = Ok(!decisive);
        let step = |frame: &mut Self| -> Result<bool> {
            frame.charge(round)?;
            if accu == Ok(decisive) {
                return Ok(false);
            }
            frame.charge(1)?;
            let found = frame.eval(&quantifier.predicate);
            match found {
                Ok(Val::Bool(b)) if b == decisive => accu = Ok(decisive),
                Ok(Val::Bool(_)) => {}
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) if accu.is_ok() => accu = Err(error),
                Ok(_) if accu.is_ok() => accu = Err(Error::overload()),
                _ => {}
            }
            Ok(true)
        };
        self.rounds(range, (quantifier.var, quantifier.var2), step)?;
        self.charge(1)?;
        accu.map(Val::Bool)
    }

    /// Calls `round` for each item of a list or entry of a map, with the variables set, until it returns false.
    fn rounds(
        &mut self,
        range: Val<'a>,
        (var, second): (u32, Option<u32>),
        mut round: impl FnMut(&mut Self) -> Result<bool>,
    ) -> Result<()> {
        match range {
            Val::List(list) => {
                for i in 0..list.len() {
                    let Some(item) = list.get(i) else { break };
                    match second {
                        None => self.set(var, item),
                        Some(second) => {
                            self.set(var, Ok(Val::Int(i as i64)));
                            self.set(second, item);
                        }
                    }
                    if !round(self)? {
                        break;
                    }
                }
            }
            Val::Map(map) => {
                for key in map.keys() {
                    if let Some(second) = second {
                        let value = map.get(&key).unwrap_or_else(|| Err(Error::overload()));
                        self.set(second, value);
                    }
                    self.set(var, Ok(key));
                    if !round(self)? {
                        break;
                    }
                }
            }
            other => return Err(not_iterable(&other, second)),
        }
        Ok(())
    }

    /// One iteration. Returns whether to continue.
    fn iterate(&mut self, fold: &'a Fold) -> Result<bool> {
        if let Ok(Val::Bool(false)) = self.absorbable(&fold.condition)? {
            return Ok(false);
        }
        let step = self.absorbable(&fold.step)?;
        self.set(fold.accu, step);
        Ok(true)
    }

    fn take(&mut self, slot: u32) -> Result<Val<'a>> {
        match self.slots.get_mut(slot as usize).map(|place| std::mem::replace(place, Slot::Empty)) {
            Some(Slot::Value(value)) => Ok(value),
            Some(Slot::Failed(error)) => Err(error),
            _ => Err(Error::overload()),
        }
    }

    /// Appends an item at a cost of `charge` beside those of the list and the item.
    pub(super) fn append(&mut self, accu: u32, item: &'a Node, charge: u64) -> Result<Val<'a>> {
        self.charge(1)?;
        let item = self.absorbable(item)?;
        self.charge(charge)?;
        let list = self.take(accu)?;
        let item = item?;
        match list {
            Val::List(List::Owned(mut items)) => {
                Rc::make_mut(&mut items).push(item);
                Ok(Val::List(List::Owned(items)))
            }
            _ => Err(Error::overload()),
        }
    }

    pub(super) fn insert(&mut self, accu: u32, parts: &'a [Node]) -> Result<Val<'a>> {
        self.charge(1)?;
        let mut values = Vec::with_capacity(2);
        for part in parts {
            values.push(self.eval(part)?);
        }
        self.charge(1)?;
        let Val::Map(Map::Owned(mut map)) = self.take(accu)? else { return Err(Error::overload()) };
        let pairs: Vec<(Val<'a>, Val<'a>)> = match values.as_slice() {
            [key, value] => vec![(key.clone(), value.clone())],
            [Val::Map(other)] => {
                let keys = other.keys();
                let values: Result<Vec<_>> =
                    keys.into_iter().filter_map(|k| other.get(&k).map(|v| v.map(|v| (k, v)))).collect();
                values?
            }
            _ => return Err(Error::overload()),
        };
        let target = Rc::make_mut(&mut map);
        for (key, value) in pairs {
            let Some(key) = Key::of(&key) else { return Err(Error::overload()) };
            if target.contains_key(&key) {
                let shown = crate::library::standard::plain(&key.value());
                return Err(Error::new(format!("insert failed: key {shown} already exists")));
            }
            target.insert(key, value);
        }
        Ok(Val::Map(Map::Owned(map)))
    }
}

fn not_iterable(value: &Val<'_>, second: Option<u32>) -> Error {
    let name = value.go_type();
    if second.is_some() {
        Error::new(format!("unsupported comprehension range type: {name}"))
    } else {
        Error::new(format!("got '{name}', expected iterable type"))
    }
}
