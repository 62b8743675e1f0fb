//! Jobs and CronJobs.

pub mod failures;
pub mod job_rules;
pub mod jobs;
pub mod schedules;

use crate::apps::workloads;
use crate::core::pods::pod_warnings;
use resource::builtin::{Behaviour, Check, Named, Part};
use resource::rules::Deletion;

/// A kind whose spec has a Pod template.
const WORKLOAD: Behaviour = Behaviour::of("").warnings(pod_warnings::of_workload);

/// The warning about a deletion of Jobs without propagation policy.
const CHILDREN: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

pub static KINDS: &[Behaviour] = &[
    WORKLOAD.like("batch/CronJob").default(workloads::default_cron_job).validate(jobs::validate_cron_job),
    WORKLOAD
        .like("batch/Job")
        .default(workloads::default_job)
        .prepare(workloads::prepare_job)
        .validate(jobs::validate_job)
        .status(Part::PLAIN.validate(job_rules::validate_status))
        .deletion(Deletion { advice: CHILDREN, ..Deletion::DEFAULT })
        .complete_stored(workloads::default_labels),
];

pub const CHECKS: Named<Check> = &[("cron", schedules::check), ("time-zone", schedules::check_zone)];
