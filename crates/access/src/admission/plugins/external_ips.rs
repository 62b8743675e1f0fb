//! DenyServiceExternalIPs.

use super::{Decision, PluginRequest};

/// Refuses external IPs that a Service did not have.
pub fn validate(call: &PluginRequest<'_>) -> Decision {
    const FIELD: [&str; 2] = ["spec", "externalIPs"];
    let known = call.old().items_at(&FIELD);
    if call.object().items_at(&FIELD).iter().all(|ip| known.contains(ip)) {
        return Ok(());
    }
    Err("Use of external IPs is denied by admission control".to_owned().into())
}
