//! DenyServiceExternalIPs.

use super::{Call, Decision, items};

/// Refuses external IPs that a Service did not have.
pub fn validate(call: &Call<'_>) -> Decision {
    const FIELD: [&str; 2] = ["spec", "externalIPs"];
    let known = items(call.old(), &FIELD);
    match items(call.object(), &FIELD).iter().all(|ip| known.contains(ip)) {
        true => Ok(()),
        false => Err("Use of external IPs is denied by admission control".to_owned().into()),
    }
}
