//! PodDisruptionBudgets and Evictions.

pub mod budgets;

use crate::names::any_name;
use resource::builtin::checks::validate_conditions;
use resource::builtin::{Behaviour, Part, Review};

pub static KINDS: &[Behaviour] = &[
    Behaviour::of("policy/v1/Eviction").review(Review::Eviction),
    Behaviour::of("policy/PodDisruptionBudget")
        .validate(budgets::validate_budget)
        .name(any_name)
        .status(Part::PLAIN.validate(validate_conditions)),
];
