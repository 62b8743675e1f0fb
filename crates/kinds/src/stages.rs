//! The stages of checks that only some kinds have, as the rule `order` names them.

use schema::at::CheckStage;

/// Whether the selector of a Job matches the labels of its template.
pub const SELECTION: CheckStage = CheckStage::Of("selection");
/// Checks of a spec that belong to the Pod or template around it, made after all checks of the spec itself.
pub const WHOLE: CheckStage = CheckStage::Of("whole");
/// The checks of which fields an update of a Pod may change.
pub const UPDATE: CheckStage = CheckStage::Of("update");
/// The host ports of a Pod with `hostNetwork`.
pub const HOST_PORTS: CheckStage = CheckStage::Of("host-ports");
/// Host-process containers on Windows.
pub const HOST_PROCESS: CheckStage = CheckStage::Of("host-process");
/// Fields that a Pod with a user namespace of its own cannot have.
pub const HOST_USERS: CheckStage = CheckStage::Of("host-users");
/// Fields that the operating system of a Pod does not support.
pub const SYSTEM: CheckStage = CheckStage::Of("system");

pub const ALL: &[CheckStage] = &[SELECTION, WHOLE, UPDATE, HOST_PORTS, HOST_PROCESS, HOST_USERS, SYSTEM];
