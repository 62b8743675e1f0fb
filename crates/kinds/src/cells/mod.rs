//! Functions for cells that a path and stages cannot express, by their names in `columns.txt`.

mod autoscalers;
mod events;
mod evictions;
mod objects;
mod pod_cells;
mod pools;

use machinery::Value;

use crate::apps::workloads::TEMPLATE_GENERATION;
use crate::autoscaling::autoscaling_versions::{FIELDS_OF_V2, newest};
use pod_cells::PodCells;
use resource::builtin::checks::text;
use resource::builtin::columns::parts::{condition, since};
use resource::builtin::{CellFunction, Named};

pub const FUNCTIONS: Named<CellFunction> = &[
    ("active-responder", |o, _| evictions::active_responder(o).into()),
    ("api-service-available", |o, _| objects::availability(o).into()),
    ("autoscaler-targets", |o, _| autoscalers::metric_texts(&newest(o)).into()),
    ("claim-state", |o, _| objects::claim_state(o).into()),
    ("definition-established", |o, _| Value::Bool(condition(o, "Established").is_some())),
    ("definition-versions", |o, _| objects::served_versions(o).into()),
    ("endpoints", |o, _| objects::endpoints(o).into()),
    ("event-count", |o, _| Value::Int(events::count(o))),
    ("event-first-seen", |o, now| since(events::first_seen(o), now).into()),
    ("event-last-seen", |o, now| since(events::last_seen(o), now).into()),
    ("event-object", |o, _| events::object(o).into()),
    ("event-source", |o, _| events::source(o).into()),
    ("eviction-requesters", |o, _| evictions::requesters(o).into()),
    ("eviction-status", |o, _| evictions::status(o).into()),
    ("job-duration", |o, now| objects::job_duration(o, now).into()),
    ("job-status", |o, _| objects::job_status(o).into()),
    ("migration-status", |o, _| objects::migration_status(o).into()),
    ("node-kernel", |o, _| objects::node_kernel(o).into()),
    ("node-roles", |o, _| objects::node_roles(o).into()),
    ("node-status", |o, _| objects::node_status(o).into()),
    ("param-ref", |o, _| objects::param_ref(o).into()),
    ("pod-certificate-status", |o, _| objects::pod_certificate_status(o).into()),
    ("pod-gates", |o, _| objects::pod_gates(o).into()),
    ("pod-group-status", |o, _| objects::group_status(o).into()),
    ("pod-ready", |o, _| PodCells::of(o).ready().into()),
    ("pod-restarts", |o, now| PodCells::of(o).restarts(now).into()),
    ("pod-status", |o, _| PodCells::of(o).status().into()),
    ("pool-allocated", |o, _| pools::total(o, "allocatedDevices").into()),
    ("pool-available", |o, _| pools::total(o, "availableDevices").into()),
    ("pool-completed", |o, now| {
        since(condition(o, "Complete").map_or("", |c| text(c, "lastTransitionTime")), now).into()
    }),
    ("pool-errors", |o, _| pools::errors(o).into()),
    ("pool-request-status", |o, _| pools::request_status(o).into()),
    ("pool-total", |o, _| pools::total(o, "totalDevices").into()),
    ("pool-unavailable", |o, _| pools::total(o, "unavailableDevices").into()),
    ("quota-limits", |o, _| objects::usage(o, |name| name.starts_with("limits.")).into()),
    ("quota-requests", |o, _| objects::usage(o, |name| !name.starts_with("limits.")).into()),
    ("responder-finish", |o, now| evictions::expected_finish(o, now).into()),
    ("responder-heartbeat", |o, now| evictions::heartbeat(o, now).into()),
    ("responder-message", |o, _| evictions::message(o).into()),
    ("responder-status", |o, now| evictions::responder_status(o, now).into()),
    ("revision-owner", |o, _| objects::revision_owner(o).into()),
    ("service-external-ip", |o, _| objects::external_address(o).into()),
    ("signing-status", |o, _| objects::signing_status(o).into()),
    ("third-party-versions", |o, _| schema::definition::third_party_versions(o).join(",").into()),
];

/// The annotations that stand for fields which a version of a kind does not have. kube-apiserver makes tables and
/// `PartialObjectMetadata` from its internal form, in which they are fields.
pub fn annotated_fields(api_version: &str, kind: &str) -> &'static [&'static str] {
    match (api_version, kind) {
        ("apps/v1", "DaemonSet") => &[TEMPLATE_GENERATION],
        ("autoscaling/v1", "HorizontalPodAutoscaler") => &FIELDS_OF_V2,
        _ => &[],
    }
}
