//! Evictions and their requests.

pub mod evictions;

use resource::builtin::checks::validate_conditions;
use resource::builtin::{Behaviour, Part};

const NONE: Behaviour = Behaviour::NONE;

pub static KINDS: &[Behaviour] = &[
    Behaviour {
        of: "lifecycle.k8s.io/EvictionRequest",
        status: Part { validate: validate_conditions, ..Part::PLAIN },
        ..NONE
    },
    Behaviour {
        of: "lifecycle.k8s.io/Eviction",
        status: Part { validate: evictions::validate_status, ..Part::PLAIN },
        ..NONE
    },
];
