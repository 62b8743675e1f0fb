//! Metrics of webhook calls.

use std::time::Duration;

use super::{Failure, FailurePolicy, Hook};
use base::metrics::{METRICS, WebhookCall, WebhookName, WebhookRejection, WebhookResponse};

use crate::admission::Attributes;

/// Greatest status code in the metrics of webhooks, as in kube-apiserver. Greater ones are counted as this one, since a webhook
/// may send any code, and each is a series of its own.
const CODE_MAX: u16 = 600;

/// Records the duration of a call, and the error type if it rejects the write.
pub fn called(hook: &Hook, attributes: &Attributes<'_>, elapsed: Duration, failure: Option<&Failure>) {
    let name = attributes.cluster.objects.series.name(&hook.name);
    let (kind, operation) = (hook.kind.in_metrics(), attributes.operation.as_str());
    let (code, rejection) = match failure {
        Some(Failure::Refused(status)) => (status.code, Some(("no_error", status.code))),
        Some(Failure::Unconditional(_)) => (0, Some(("apiserver_internal_error", 0))),
        Some(Failure::Calling(error)) if hook.on_failure == FailurePolicy::Fail => {
            (error.code(), Some(("calling_webhook_error", error.code())))
        }
        Some(Failure::Calling(error)) => {
            let webhook = WebhookName { name: name.clone(), r#type: kind };
            METRICS.admission.webhook_fail_open_count.get_or_create(&webhook).inc();
            (error.code(), None)
        }
        None => (200, None),
    };
    if let Some((error_type, code)) = rejection {
        let rejection_code = code.min(CODE_MAX);
        let rejection = WebhookRejection { name: name.clone(), r#type: kind, operation, error_type, rejection_code };
        METRICS.admission.webhook_rejection_count.get_or_create(&rejection).inc();
    }
    let rejected = if rejection.is_some() { "true" } else { "false" };
    let call = WebhookCall { name, r#type: kind, operation, rejected };
    METRICS.admission.webhook_duration_seconds.get_or_create(&call).observe(elapsed.as_secs_f64());
    METRICS.admission.webhook_request.get_or_create(&WebhookResponse { code: code.min(CODE_MAX), call }).inc();
}
