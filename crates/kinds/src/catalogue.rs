//! The catalogue of all kinds.

use crate::{
    admissionregistration, apiextensions, apiregistration, apps, authentication, authorization, autoscaling, batch,
    cells, certificates, coordination, core, devices, discovery, events, extensions, flowcontrol, hiding, internal,
    lifecycle, meta, networking, node, policy, rbac, rule_checks, scheduling, stages, storage, storagemigration,
};
use resource::builtin::{Catalogue, GroupSource, Sources};

/// The source of a group: its folder, its module, and the tables that the folder has.
macro_rules! source {
    ($folder:literal, $module:ident, $($table:ident)*) => {
        GroupSource {
            folder: $folder,
            behaviours: $module::KINDS,
            $($table: include_str!(concat!($folder, "/", stringify!($table), ".txt")),)*
            ..GroupSource::EMPTY
        }
    };
}

/// The groups in the order of discovery, after what several have.
const GROUPS: &[GroupSource] = &[
    GroupSource { checks: rule_checks::CHECKS, ..source!("meta", meta, kinds rules columns) },
    GroupSource { checks: core::CHECKS, ..source!("core", core, kinds rules columns) },
    GroupSource { checks: apiregistration::CHECKS, ..source!("apiregistration", apiregistration, kinds rules columns) },
    source!("extensions", extensions, kinds columns),
    GroupSource { checks: apps::CHECKS, ..source!("apps", apps, kinds rules columns) },
    source!("events", events, kinds),
    source!("authentication", authentication, kinds rules),
    source!("authorization", authorization, kinds rules),
    source!("autoscaling", autoscaling, kinds rules columns),
    GroupSource { checks: batch::CHECKS, ..source!("batch", batch, kinds rules columns) },
    source!("certificates", certificates, kinds rules columns),
    source!("networking", networking, kinds rules columns),
    source!("policy", policy, kinds rules columns),
    source!("rbac", rbac, kinds rules columns),
    source!("storage", storage, kinds rules columns),
    source!("admissionregistration", admissionregistration, kinds rules columns),
    source!("apiextensions", apiextensions, kinds columns),
    source!("scheduling", scheduling, kinds rules columns),
    source!("coordination", coordination, kinds rules columns),
    source!("node", node, kinds rules columns),
    source!("discovery", discovery, kinds rules columns),
    source!("devices", devices, kinds rules columns),
    GroupSource { checks: flowcontrol::CHECKS, ..source!("flowcontrol", flowcontrol, kinds rules columns) },
    source!("internal", internal, kinds columns),
    source!("storagemigration", storagemigration, kinds columns),
    source!("lifecycle", lifecycle, kinds rules columns),
    // last, so that formats that tags do not name are checked first
    GroupSource { folder: "declared", rules: include_str!("declared.txt"), ..GroupSource::EMPTY },
];

static SOURCES: Sources = Sources {
    groups: GROUPS,
    scheme: include_str!("scheme.txt"),
    stages: stages::ALL,
    conditions: hiding::CONDITIONS,
    cells: cells::FUNCTIONS,
};

/// All built-in kinds.
pub static CATALOGUE: Catalogue = Catalogue::new(&SOURCES);

#[cfg(test)]
mod tests;
