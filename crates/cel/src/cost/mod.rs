//! Costs: the estimate of a rule when it is compiled, and the charges of its evaluation.
//!
//! The numbers are part of the Kubernetes API: a CustomResourceDefinition is accepted or rejected by the estimated
//! costs of its rules.

pub mod estimate;
pub(crate) mod runtime;
