//! The Common Expression Language with the Kubernetes libraries: parse, check, cost, evaluate.

pub mod regex;
