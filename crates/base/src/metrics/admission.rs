//! Metrics of admission plugins and webhooks.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{
    AdmissionController, AdmissionStep, Buckets, Histograms, WebhookCall, WebhookName, WebhookRejection,
    WebhookResponse,
};

const STEP_SECONDS: Buckets = Buckets(&[0.005, 0.025, 0.1, 0.5, 1.0, 2.5]);
const WEBHOOK_SECONDS: Buckets = Buckets(&[0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0]);

pub struct AdmissionMetrics {
    step_duration_seconds: Histograms<AdmissionStep>,
    controller_duration_seconds: Histograms<AdmissionController>,
    pub webhook_duration_seconds: Histograms<WebhookCall>,
    pub webhook_request: Family<WebhookResponse, Counter>,
    pub webhook_rejection_count: Family<WebhookRejection, Gauge<u64, AtomicU64>>,
    pub webhook_fail_open_count: Family<WebhookName, Gauge<u64, AtomicU64>>,
}

impl Default for AdmissionMetrics {
    fn default() -> AdmissionMetrics {
        AdmissionMetrics {
            step_duration_seconds: Family::new_with_constructor(STEP_SECONDS),
            controller_duration_seconds: Family::new_with_constructor(STEP_SECONDS),
            webhook_duration_seconds: Family::new_with_constructor(WEBHOOK_SECONDS),
            webhook_request: Family::default(),
            webhook_rejection_count: Family::default(),
            webhook_fail_open_count: Family::default(),
        }
    }
}

impl AdmissionMetrics {
    pub fn register(&self, registry: &mut Registry) {
        let all = registry.sub_registry_with_prefix("apiserver_admission");
        let help = "Duration of all admission plugins of a type, in seconds";
        all.register("step_admission_duration_seconds", help, self.step_duration_seconds.clone());
        let help = "Duration of an admission plugin, in seconds";
        all.register("controller_admission_duration_seconds", help, self.controller_duration_seconds.clone());
        let help = "Duration of admission webhook calls, in seconds";
        all.register("webhook_admission_duration_seconds", help, self.webhook_duration_seconds.clone());
        all.register("webhook_request", "Admission webhook calls", self.webhook_request.clone());
        let help = "Writes rejected by an admission webhook or because its call failed";
        all.register("webhook_rejection_count", help, self.webhook_rejection_count.clone());
        let help = "Failed admission webhook calls that failurePolicy Ignore ignored";
        all.register("webhook_fail_open_count", help, self.webhook_fail_open_count.clone());
    }

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
