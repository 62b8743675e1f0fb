//! DenyServiceExternalIPs.

use super::{Decision, PluginRequest, items};

/// Refuses external IPs that a Service did not have.
pub fn validate(call: &PluginRequest<'_>) -> Decision {
    const FIELD: [&str; 2] = ["spec", "externalIPs"];
    let known = items(call.old(), &FIELD);
    if items(call.object(), &FIELD).iter().all(|ip| known.contains(ip)) {
        return Ok(());
    }
    Err("Use of external IPs is denied by admission control".to_owned().into())
}
