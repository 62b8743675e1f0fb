//! PodDisruptionBudgets and Evictions.

pub mod budgets;

use crate::names::any_name;
use resource::builtin::checks::validate_conditions;
use resource::builtin::{Behaviour, Further, Part, Review};

const NONE: Behaviour = Behaviour::NONE;

pub static KINDS: &[Behaviour] = &[
    Behaviour {
        of: "policy/v1/Eviction",
        review: Some(Review::Eviction),
        further: Further { also_posted_as: &["policy/v1beta1"], ..Further::NONE },
        ..NONE
    },
    Behaviour {
        of: "policy/PodDisruptionBudget",
        validate: budgets::validate_budget,
        name: any_name,
        status: Part { validate: validate_conditions, ..Part::PLAIN },
        ..NONE
    },
];
