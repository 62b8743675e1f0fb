//! Workloads: DaemonSets, Deployments, ReplicaSets, StatefulSets, and those of the core group that are alike.

pub mod claim_templates;
pub mod rollouts;
pub mod workloads;

use crate::core::pods::pod_warnings;
use crate::names::declared_name;
use machinery::{Release, names};
use resource::builtin::{Behaviour, Check, Named, Part};

/// A kind whose spec has a Pod template.
const WORKLOAD: Behaviour = Behaviour::of("").warnings(pod_warnings::of_workload);

/// The name of a StatefulSet, which is part of the host names of its Pods.
fn stateful_set_name(name: &str, release: Release) -> Vec<String> {
    if release >= Release::V1_37 { names::dns1123_label(name) } else { names::dns1123_subdomain(name) }
}

pub static KINDS: &[Behaviour] = &[
    Behaviour::of("v1/PodTemplate")
        .default(workloads::default_template)
        .validate(workloads::validate_pod_template)
        .warnings(pod_warnings::of_workload),
    Behaviour::of("v1/ReplicationController")
        .default(workloads::default_controller)
        .validate(workloads::validate_controller)
        .warnings(pod_warnings::of_workload)
        .name(declared_name),
    Behaviour::of("apps/ControllerRevision").validate(workloads::validate_revision),
    WORKLOAD
        .like("apps/DaemonSet")
        .default(workloads::default_daemon_set)
        .prepare(workloads::prepare_daemon_set)
        .validate(workloads::validate),
    WORKLOAD
        .like("apps/Deployment")
        .default(workloads::default_template)
        .prepare(workloads::prepare_deployment)
        .validate(workloads::validate)
        .status(Part::PLAIN.prepare(workloads::keep_labels).reset(workloads::status_resets)),
    WORKLOAD.like("apps/ReplicaSet").default(workloads::default_template).validate(workloads::validate),
    WORKLOAD
        .like("apps/StatefulSet")
        .default(workloads::default_stateful_set)
        .validate(workloads::validate)
        .name(stateful_set_name)
        .validated(claim_templates::validated),
];

pub const CHECKS: Named<Check> = &[("not-decremented", workloads::not_decremented)];
