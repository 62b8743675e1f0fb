//! Counts objects against the quotas of their namespace before they are created (api-machinery 24.3).
//!
//! What is counted and then not created stays counted until the usage of the quota is determined anew.

use http::Method;
use machinery::{Status, Value};

use super::admit::Write;
use super::as_server::{SERVER, path_of, server_request};
use super::{Subresource, write};
use crate::admission::Charge;
use crate::limits;

/// Refuses what exceeds a quota, and counts what doesn't.
pub async fn charge(asked: &Write<'_>, object: &Value) -> Result<(), Status> {
    if asked.charges(object)?.is_empty() || asked.dry_run {
        return Ok(());
    }
    let _turn = asked.context.quota_turn.lock().await;
    for _ in 0..limits::WRITE_RETRIES {
        if count_all(asked, asked.charges(object)?).await? {
            return Ok(());
        }
    }
    Err(Status::internal("resource quota evaluation timed out"))
}

/// Writes the usage of quotas; false if one changed meanwhile.
async fn count_all(asked: &Write<'_>, charges: Vec<Charge>) -> Result<bool, Status> {
    let Some(quotas) = asked.context.registry.get("", "resourcequotas") else { return Ok(true) };
    let namespace = asked.request.namespace();
    for charge in charges {
        let path = format!("{}/status", path_of(&quotas, namespace, &charge.quota));
        let request = server_request(&quotas, &Method::PUT, &path, Subresource::Status);
        let found = quotas.collection.get(&quotas.key(namespace, &charge.quota).path);
        let Some(current) = found.filter(|stored| stored.revision == charge.revision) else { return Ok(false) };
        let old = current.body.to_value(current.revision);
        let mut next = old.clone();
        next.set_at(&["status", "used"], charge.used);
        request.track_update(Some(&old), &mut next, SERVER).await;
        if write::store(asked.context, &request, &next, Some(&current)).await?.is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}
