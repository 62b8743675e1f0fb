//! Quantities: decimal numbers with a suffix, such as `500m` or `1Gi`.
//!
//! Precision, arithmetic and formatting are the same as in `k8s.io/apimachinery/pkg/api/resource`. In particular,
//! numbers of more than 18 digits are rounded up to a billionth.

mod amount;
mod text;

use crate::Value;
use amount::Amount;
use std::cmp::Ordering;

/// An amount and the family of its suffix. The source text is kept only if it is the canonical form.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    form: Form,
    text: Option<String>,
}

/// The family of suffixes that a quantity was written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

impl Quantity {
    /// Reads a quantity from a number or a string. The error has upstream's text.
    pub fn of(value: &Value) -> Result<Quantity, &'static str> {
        match value {
            Value::String(text) => Quantity::parse(text.trim()),
            // a number just beyond 64 bits is written with all of its digits
            Value::Float(number) if (i64::MAX as f64..1e20).contains(&number.abs()) => {
                Quantity::parse(&format!("{number:.0}"))
            }
            other => Quantity::parse(&other.to_json()),
        }
    }

    /// A whole number.
    pub fn from_int(number: i64) -> Quantity {
        Quantity { amount: Amount::Small { value: number, power: 0 }, form: Form::Decimal, text: None }
    }

    /// The sum, in the form of the first summand that is not zero.
    pub fn plus(&self, other: &Quantity) -> Quantity {
        let form = if self.signum() == 0 { other.form } else { self.form };
        Quantity { amount: self.amount.plus(&other.amount), form, text: None }
    }

    /// The difference, in the form of the first operand that is not zero.
    pub fn minus(&self, other: &Quantity) -> Quantity {
        let form = if self.signum() == 0 { other.form } else { self.form };
        Quantity { amount: self.amount.minus(&other.amount), form, text: None }
    }

    /// Whether the quantity is a multiple of `step`, which is not zero. If the exponents are too far apart, it is not.
    pub fn is_multiple_of(&self, step: &Quantity) -> bool {
        self.amount.is_multiple_of(&step.amount)
    }

    /// Compares two amounts, whatever their suffixes.
    pub fn compare(&self, other: &Quantity) -> Ordering {
        self.amount.compare(&other.amount)
    }

    /// -1, 0 or 1.
    pub fn signum(&self) -> i64 {
        self.amount.signum()
    }

    /// The number, if it is whole and fits 64 bits. `None` for numbers of more than 18 digits.
    pub fn as_integer(&self) -> Option<i64> {
        match self.amount {
            Amount::Small { value, power } => amount::raised(value, u32::try_from(power).ok()?),
            Amount::Big { .. } => None,
        }
    }

    /// The amount as a float, rounded twice as upstream does: the integer, and its product with the power of ten.
    pub fn approximate(&self) -> f64 {
        self.amount.approximate()
    }

    /// The quantity rounded away from zero to thousandths, which is the precision of resource lists.
    pub fn rounded_to_thousandths(self) -> Quantity {
        match self.amount.rounded_to_thousandths() {
            Some(amount) => Quantity { amount, form: self.form, text: None },
            None => self,
        }
    }

    /// The number rounded away from zero, as Go's `Value` returns it. If it does not fit 64 bits, the result is zero
    /// or the lowest bits, as in Go.
    pub fn units(&self) -> i64 {
        self.amount.units(0)
    }

    /// The number of thousandths, as Go's `MilliValue` returns it.
    pub fn thousandths(&self) -> i64 {
        self.amount.units(-3)
    }

    /// Whether it is a whole number of units, once rounded up to thousandths.
    pub fn is_whole(&self) -> bool {
        self.thousandths() % 1000 == 0
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.compare(other) == Ordering::Equal
    }
}
