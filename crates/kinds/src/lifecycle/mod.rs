//! Evictions and their requests.

pub mod evictions;

use resource::builtin::checks::validate_conditions;
use resource::builtin::{Behaviour, Part};

pub static KINDS: &[Behaviour] = &[
    Behaviour::of("lifecycle.k8s.io/EvictionRequest").status(Part::PLAIN.validate(validate_conditions)),
    Behaviour::of("lifecycle.k8s.io/Eviction").status(Part::PLAIN.validate(evictions::validate_status)),
];
