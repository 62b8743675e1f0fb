//! Charges writes to the quotas of their namespace before they are committed.
//!
//! If the write of a charged object fails, the usage is too high until the quota controller recounts it.

use access::admission::Charge;
use machinery::status::Reason;
use machinery::{Result, Status, Value};

use super::admit::Admit;
use crate::limits;
use resource::Subresource;

/// Adds the usage of a write to the quotas; fails if it exceeds one.
pub async fn charge(admit: &Admit<'_>, object: &Value, old: Option<&Value>) -> Result<()> {
    if admit.charges(object, old)?.is_empty() || admit.dry_run {
        return Ok(());
    }
    let _turn = admit.context.quota_turn.lock().await;
    for _ in 0..limits::WRITE_RETRIES {
        if count_all(admit, admit.charges(object, old)?).await? {
            return Ok(());
        }
    }
    Err(Status::internal("resource quota evaluation timed out"))
}

/// Writes the usage of quotas. Returns false if a quota has changed since it was read.
async fn count_all(admit: &Admit<'_>, charges: Vec<Charge>) -> Result<bool> {
    let Some(quotas) = admit.context.registry.get("", "resourcequotas") else { return Ok(true) };
    let namespace = admit.request.namespace();
    for charge in charges {
        let count = |quota: &mut Value| {
            quota.set_at(&["metadata", "resourceVersion"], Value::from(charge.revision.to_string()));
            quota.set_at(&["status", "used"], charge.used.clone());
        };
        let own = admit.context.as_server(&quotas, namespace, &charge.quota).through(Subresource::Status);
        match own.change(count).await {
            Err(status) if status.reason == Reason::Conflict => return Ok(false),
            result => result?,
        }
    }
    Ok(true)
}
