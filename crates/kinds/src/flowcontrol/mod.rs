//! FlowSchemas and priority levels.

pub mod flow;

use resource::builtin::{Behaviour, Check, Named, Part};

pub static KINDS: &[Behaviour] = &[
    Behaviour::of("flowcontrol.apiserver.k8s.io/FlowSchema")
        .validate(flow::validate_schema)
        .status(Part::PLAIN.validate(flow::validate_states)),
    Behaviour::of("flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration")
        .status(Part::PLAIN.validate(flow::validate_states)),
];

pub const CHECKS: Named<Check> = &[("fixed-level", flow::fixed_level), ("queuing", flow::queuing)];
