//! Logical operators and comparisons.

use super::{Frame, sizeless};
use crate::ast::Literal;
use crate::library::costs::Charge;
use crate::node::{Const, Node, Order};
use crate::value::{Error, Result, Val, compare, equal};

impl<'a> Frame<'a> {
    /// `&&` and `||`: if either side is `decisive`, that is the result, even if the other side is an error.
    pub(super) fn logical(&mut self, sides: &'a [Node; 2], decisive: bool) -> Result<Val<'a>> {
        let left = self.eval(&sides[0]);
        match &left {
            Ok(Val::Bool(b)) if *b == decisive => return left,
            Err(error) if error.is_fatal() => return left,
            _ => {}
        }
        let right = self.eval(&sides[1]);
        match (&left, &right) {
            (_, Ok(Val::Bool(b))) if *b == decisive => right,
            (_, Err(error)) if error.is_fatal() => right,
            (Err(_), _) => left,
            (_, Err(_)) => right,
            (Ok(Val::Bool(_)), Ok(Val::Bool(_))) => right,
            _ => Err(Error::overload()),
        }
    }

    pub(super) fn equal(&mut self, sides: &'a [Node; 2], negated: bool) -> Result<Val<'a>> {
        let left = self.absorbable(&sides[0])?;
        let right = self.absorbable(&sides[1])?;
        let (a, b) = match (left, right) {
            (Ok(a), Ok(b)) => (a, b),
            (a, b) => {
                self.charge(Charge::Equality.of_call(&[sizeless(&a), sizeless(&b)], None))?;
                return a.and(b);
            }
        };
        let same = equal(&a, &b);
        self.charge_steps(Charge::Equality.of_call(&[a, b], None))?;
        match same {
            // values that cannot be compared are not equal
            Err(error) if negated && !error.is_fatal() => Ok(Val::Bool(true)),
            same => same.map(|same| Val::Bool(same != negated)),
        }
    }

    pub(super) fn order(&mut self, sides: &'a [Node; 2], order: Order, cost: Charge) -> Result<Val<'a>> {
        let left = self.eval(&sides[0]);
        if let Ok(Val::Int(left)) = left
            && let Node::Const(Const::Literal(Literal::Int(right))) = &sides[1]
        {
            self.charge(cost.of_error())?;
            return Ok(Val::Bool(order.holds(left.cmp(right))));
        }
        let left = match left {
            Err(error) if error.is_fatal() => return Err(error),
            other => other,
        };
        let right = self.absorbable(&sides[1])?;
        match (left, right) {
            (Ok(left), Ok(right)) => {
                let found =
                    compare(&left, &right).map_err(|error| super::calls::named_operation(error, order.as_str(), &left));
                self.charge(cost.of_call(&[left, right], None))?;
                found.map(|found| Val::Bool(order.holds(found)))
            }
            (left, right) => {
                self.charge(cost.of_call(&[sizeless(&left), sizeless(&right)], None))?;
                left.and(right)
            }
        }
    }

    pub(super) fn optional_or(&mut self, sides: &'a [Node; 2], value: bool) -> Result<Val<'a>> {
        match self.eval(&sides[0])? {
            Val::Optional(None) => self.eval(&sides[1]),
            Val::Optional(Some(inner)) if value => Ok((*inner).clone()),
            some @ Val::Optional(_) => Ok(some),
            other if self.legacy_optionals => Ok(other),
            _ => Err(Error::overload()),
        }
    }
}
