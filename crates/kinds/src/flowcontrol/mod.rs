//! FlowSchemas and priority levels.

pub mod flow;

use resource::builtin::{Behaviour, Part};

const NONE: Behaviour = Behaviour::NONE;

pub static KINDS: &[Behaviour] = &[
    Behaviour {
        of: "flowcontrol.apiserver.k8s.io/FlowSchema",
        validate: flow::validate_schema,
        status: Part { validate: flow::validate_states, ..Part::PLAIN },
        ..NONE
    },
    Behaviour {
        of: "flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration",
        validate: flow::validate_level,
        status: Part { validate: flow::validate_states, ..Part::PLAIN },
        ..NONE
    },
];
