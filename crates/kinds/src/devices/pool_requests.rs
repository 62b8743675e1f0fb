//! ResourcePoolStatusRequests: one-time requests for the state of pools of devices.

use resource::builtin::checks::conditions;
use schema::at::At;

/// The status is written once.
pub fn validate_status(at: At) {
    let status = at.field("status");
    if status.old.is_some_and(|old| !old.is_null()) { status.immutable() } else { conditions(status) }
}
