//! Costs: the estimate that is made when a rule is compiled, and what evaluations are charged.
//!
//! The numbers are part of the Kubernetes API: a CustomResourceDefinition is accepted or rejected by the estimated
//! costs of its rules.

pub mod estimate;
pub(crate) mod runtime;
