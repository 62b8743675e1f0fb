//! The kinds that run Pods, and that scale, group, disrupt and evict them.

use machinery::{Release, names};

use super::super::behaviour::{Behaviour, Further, Part, StoredAs};
use super::super::{
    autoscaling, autoscaling_versions, claim_templates, evictions, job_rules, pod_warnings, routing, workload_groups,
    workloads,
};
use crate::rules::Deletion;

/// A kind whose spec has a Pod template.
const WORKLOAD: Behaviour = Behaviour { warnings: pod_warnings::of_workload, ..NONE };
const NONE: Behaviour = Behaviour::NONE;

/// The warning about a deletion of Jobs without propagation policy.
const CHILDREN: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

pub static KINDS: &[Behaviour] = &[
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
    Behaviour {
        of: "autoscaling/v2/HorizontalPodAutoscaler",
        default: autoscaling::default,
        validate: autoscaling::validate,
        ..NONE
    },
    Behaviour {
        of: "autoscaling/v1/HorizontalPodAutoscaler",
        default: autoscaling::default_v1,
        prepare: autoscaling_versions::keep_status,
        validate: autoscaling::validate,
        // annotations hold what only v2 has; managedFields record them as v1 shows them
        conversion: Some(StoredAs {
            is_canonical: true,
            ..StoredAs::new(autoscaling_versions::to_stored, autoscaling_versions::to_shown)
        }),
        ..NONE
    },
    Behaviour {
        of: "batch/CronJob",
        default: workloads::default_cron_job,
        validate: workloads::validate_cron_job,
        ..WORKLOAD
    },
    Behaviour {
        of: "batch/Job",
        default: workloads::default_job,
        prepare: workloads::prepare_job,
        validate: workloads::validate_job,
        status: Part { validate: job_rules::validate_status, ..Part::PLAIN },
        deletion: Deletion { advice: CHILDREN, ..Deletion::DEFAULT },
        further: Further { complete_stored: workloads::default_labels, ..Further::NONE },
        ..WORKLOAD
    },
    Behaviour {
        of: "policy/PodDisruptionBudget",
        validate: routing::validate_budget,
        name: super::any_name,
        status: Part { validate: routing::validate_conditions, ..Part::PLAIN },
        ..NONE
    },
    Behaviour {
        of: "scheduling.k8s.io/PriorityClass",
        prepare: routing::prepare_priority_class,
        validate: routing::validate_priority_class,
        deletion: Deletion {
            permanent: &[("system-cluster-critical", SYSTEM_PRIORITY), ("system-node-critical", SYSTEM_PRIORITY)],
            ..Deletion::DEFAULT
        },
        ..NONE
    },
    Behaviour {
        of: "scheduling.k8s.io/PodGroup",
        validate: workload_groups::validate_group,
        status: Part { validate: workload_groups::validate_group_status, ..Part::PLAIN },
        ..NONE
    },
    Behaviour { of: "scheduling.k8s.io/Workload", validate: workload_groups::validate_workload, ..NONE },
    Behaviour {
        of: "scheduling.k8s.io/CompositePodGroup",
        status: Part { validate: routing::validate_conditions, ..Part::PLAIN },
        ..NONE
    },
    Behaviour {
        of: "lifecycle.k8s.io/EvictionRequest",
        status: Part { validate: routing::validate_conditions, ..Part::PLAIN },
        ..NONE
    },
    Behaviour {
        of: "lifecycle.k8s.io/Eviction",
        status: Part { validate: evictions::validate_status, ..Part::PLAIN },
        ..NONE
    },
];

const SYSTEM_PRIORITY: &str = "this is a system priority class and cannot be deleted";

/// The name of a StatefulSet, which is part of the host names of its Pods.
fn stateful_set_name(name: &str, release: Release) -> Vec<String> {
    if release >= Release::V1_37 { names::dns1123_label(name) } else { names::dns1123_subdomain(name) }
}
