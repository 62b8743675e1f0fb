//! Lazily computed variables.

use crate::value::Val;

/// Computes the value of a variable when an expression first needs it, at most once per activation.
pub trait LazyValue: std::fmt::Debug {
    /// The value.
    fn value(&self) -> Val<'_>;
}
