//! Workloads: DaemonSets, Deployments, ReplicaSets, StatefulSets, and those of the core group that are alike.

pub mod claim_templates;
pub mod rollouts;
pub mod workloads;

use crate::core::pods::pod_warnings;
use crate::names::declared_name;
use machinery::{Release, names};
use resource::builtin::{Behaviour, Further, Part};

const NONE: Behaviour = Behaviour::NONE;

/// A kind whose spec has a Pod template.
const WORKLOAD: Behaviour = Behaviour { warnings: pod_warnings::of_workload, ..NONE };

/// The name of a StatefulSet, which is part of the host names of its Pods.
fn stateful_set_name(name: &str, release: Release) -> Vec<String> {
    if release >= Release::V1_37 { names::dns1123_label(name) } else { names::dns1123_subdomain(name) }
}

pub static KINDS: &[Behaviour] = &[
    Behaviour {
        of: "v1/PodTemplate",
        default: workloads::default_template,
        validate: workloads::validate_pod_template,
        warnings: pod_warnings::of_workload,
        ..NONE
    },
    Behaviour {
        of: "v1/ReplicationController",
        default: workloads::default_controller,
        validate: workloads::validate_controller,
        warnings: pod_warnings::of_workload,
        name: declared_name,
        status: Part { validate: workloads::validate_replicas, ..Part::PLAIN },
        ..NONE
    },
    Behaviour { of: "apps/ControllerRevision", validate: workloads::validate_revision, ..NONE },
    Behaviour {
        of: "apps/DaemonSet",
        default: workloads::default_daemon_set,
        prepare: workloads::prepare_daemon_set,
        validate: workloads::validate,
        status: Part { validate: workloads::validate_collisions, ..Part::PLAIN },
        ..WORKLOAD
    },
    Behaviour {
        of: "apps/Deployment",
        default: workloads::default_template,
        prepare: workloads::prepare_deployment,
        validate: workloads::validate,
        status: Part {
            prepare: workloads::keep_labels,
            validate: workloads::validate_replicas,
            reset: Some(workloads::status_resets),
            ..Part::PLAIN
        },
        ..WORKLOAD
    },
    Behaviour {
        of: "apps/ReplicaSet",
        default: workloads::default_template,
        validate: workloads::validate,
        status: Part { validate: workloads::validate_replicas, ..Part::PLAIN },
        ..WORKLOAD
    },
    Behaviour {
        of: "apps/StatefulSet",
        default: workloads::default_stateful_set,
        validate: workloads::validate,
        name: stateful_set_name,
        status: Part { validate: workloads::validate_replicas, ..Part::PLAIN },
        further: Further { validated: claim_templates::validated, ..Further::NONE },
        ..WORKLOAD
    },
];
