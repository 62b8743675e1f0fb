//! DenyServiceExternalIPs.

use super::{Call, Decision, items};

/// Refuses external IPs that a Service did not have.
pub fn validate(call: &Call<'_>) -> Decision {
    const FIELD: [&str; 2] = ["spec", "externalIPs"];
    let known = items(call.old(), &FIELD);
    if items(call.object(), &FIELD).iter().all(|ip| known.contains(ip)) {
        return Ok(());
    }
    Err("Use of external IPs is denied by admission control".to_owned().into())
}
