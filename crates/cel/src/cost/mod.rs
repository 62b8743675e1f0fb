//! Costs: the estimate made when a rule is defined, and what evaluations are charged.
//!
//! Numbers are part of the interface: a definition that kube-apiserver accepts must be accepted here.

pub mod estimate;
pub(crate) mod runtime;

/// Cost of one step through a string, in tenths: 0.1.
pub(crate) const STRING_FACTOR: f64 = 0.1;
/// Cost of a character of a pattern.
pub(crate) const REGEX_FACTOR: f64 = 0.25;
