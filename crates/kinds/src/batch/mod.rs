//! Jobs and CronJobs.

pub mod failures;
pub mod job_rules;
pub mod jobs;
pub mod schedules;

use crate::apps::workloads;
use crate::core::pods::pod_warnings;
use resource::builtin::{Behaviour, Check, Further, Named, Part};
use resource::rules::Deletion;

const NONE: Behaviour = Behaviour::NONE;

/// A kind whose spec has a Pod template.
const WORKLOAD: Behaviour = Behaviour { warnings: pod_warnings::of_workload, ..NONE };

/// The warning about a deletion of Jobs without propagation policy.
const CHILDREN: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

pub static KINDS: &[Behaviour] = &[
    Behaviour {
        of: "batch/CronJob",
        default: workloads::default_cron_job,
        validate: jobs::validate_cron_job,
        ..WORKLOAD
    },
    Behaviour {
        of: "batch/Job",
        default: workloads::default_job,
        prepare: workloads::prepare_job,
        validate: jobs::validate_job,
        status: Part { validate: job_rules::validate_status, ..Part::PLAIN },
        deletion: Deletion { advice: CHILDREN, ..Deletion::DEFAULT },
        further: Further { complete_stored: workloads::default_labels, ..Further::NONE },
        ..WORKLOAD
    },
];

/// The checks that rules name.
pub const CHECKS: Named<Check> = &[("cron", schedules::check), ("time-zone", schedules::check_zone)];
