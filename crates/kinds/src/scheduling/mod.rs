//! PriorityClasses, PodGroups and Workloads.

pub mod priority_classes;
pub mod workload_groups;

use resource::builtin::checks::validate_conditions;
use resource::builtin::{Behaviour, Part};
use resource::rules::Deletion;

const SYSTEM_PRIORITY: &str = "this is a system priority class and cannot be deleted";

pub static KINDS: &[Behaviour] = &[
    Behaviour::of("scheduling.k8s.io/PriorityClass")
        .prepare(priority_classes::prepare_priority_class)
        .validate(priority_classes::validate_priority_class)
        .deletion(Deletion {
            permanent: &[("system-cluster-critical", SYSTEM_PRIORITY), ("system-node-critical", SYSTEM_PRIORITY)],
            ..Deletion::DEFAULT
        }),
    Behaviour::of("scheduling.k8s.io/PodGroup").status(Part::PLAIN.validate(workload_groups::validate_group_status)),
    Behaviour::of("scheduling.k8s.io/Workload").validate(workload_groups::validate_workload),
    Behaviour::of("scheduling.k8s.io/CompositePodGroup").status(Part::PLAIN.validate(validate_conditions)),
];
