//! Metrics of admission plugins and webhooks.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::{
    AdmissionController, AdmissionStep, Buckets, Histograms, WebhookCall, WebhookName, WebhookRejection,
    WebhookResponse,
};

const STEP_SECONDS: Buckets = Buckets(&[0.005, 0.025, 0.1, 0.5, 1.0, 2.5]);
const WEBHOOK_SECONDS: Buckets = Buckets(&[0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0]);

metrics! {
    pub struct AdmissionMetrics {
        step_duration_seconds: Histograms<AdmissionStep> = Family::new_with_constructor(STEP_SECONDS) =>
            "apiserver_admission_step_admission_duration_seconds",
            "Duration of all admission plugins of a type, in seconds";
        controller_duration_seconds: Histograms<AdmissionController> = Family::new_with_constructor(STEP_SECONDS) =>
            "apiserver_admission_controller_admission_duration_seconds", "Duration of an admission plugin, in seconds";
        pub webhook_duration_seconds: Histograms<WebhookCall> = Family::new_with_constructor(WEBHOOK_SECONDS) =>
            "apiserver_admission_webhook_admission_duration_seconds", "Duration of admission webhook calls, in seconds";
        pub webhook_request: Family<WebhookResponse, Counter> =>
            "apiserver_admission_webhook_request", "Admission webhook calls";
        pub webhook_rejection_count: Family<WebhookRejection, Gauge<u64, AtomicU64>> =>
            "apiserver_admission_webhook_rejection_count",
            "Writes rejected by an admission webhook or because its call failed";
        pub webhook_fail_open_count: Family<WebhookName, Gauge<u64, AtomicU64>> =>
            "apiserver_admission_webhook_fail_open_count",
            "Failed admission webhook calls that failurePolicy Ignore ignored";
    }
}

impl AdmissionMetrics {
    /// Records the duration of a plugin, or of all plugins of a type if `plugin` is `None`.
    pub fn observe(&self, plugin: Option<&'static str>, step: AdmissionStep, took: Duration) {
        let seconds = took.as_secs_f64();
        match plugin {
            None => self.step_duration_seconds.get_or_create(&step).observe(seconds),
            Some(name) => {
                self.controller_duration_seconds.get_or_create(&AdmissionController { name, step }).observe(seconds);
            }
        }
    }
}
