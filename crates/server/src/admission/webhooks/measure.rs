//! What is counted of calls (api-machinery 18.3).

use std::time::Duration;

use super::{Failure, Hook};
use crate::admission::Operation;
use crate::metrics::{Label, METRICS, WebhookCall, WebhookName, WebhookRejection};

/// A call that took this long, and why the write is refused if it is.
pub fn called(hook: &Hook, operation: Operation, took: Duration, failure: Option<&Failure>) {
    let name = Label::from(hook.name.as_str());
    let (kind, operation) = (if hook.mutating { "admit" } else { "validating" }, operation.as_str());
    let refused = match failure {
        Some(Failure::Refused(status)) => Some(("no_error", status.code)),
        Some(Failure::Calling(_)) if hook.fails => Some(("calling_webhook_error", 0)),
        Some(Failure::Calling(_)) => {
            let passed = WebhookName { name: name.clone(), r#type: kind };
            METRICS.admission.webhook_fail_open_count.get_or_create(&passed).inc();
            None
        }
        None => None,
    };
    if let Some((error_type, rejection_code)) = refused {
        let rejection = WebhookRejection { name: name.clone(), r#type: kind, operation, error_type, rejection_code };
        METRICS.admission.webhook_rejection_count.get_or_create(&rejection).inc();
    }
    let rejected = if refused.is_some() { "true" } else { "false" };
    let call = WebhookCall { name, r#type: kind, operation, rejected };
    METRICS.admission.webhook_request.get_or_create(&call).inc();
    METRICS.admission.webhook_duration_seconds.get_or_create(&call).observe(took.as_secs_f64());
}
