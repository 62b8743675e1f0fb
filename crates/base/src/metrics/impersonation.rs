//! Metrics of impersonation, recorded while the feature gate ConstrainedImpersonation is on.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::{Buckets, Histograms, ImpersonationAttempt};

const SECONDS: Buckets = Buckets(&[
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
]);

/// The number and the duration of impersonation attempts.
struct AttemptMetrics {
    total: Family<ImpersonationAttempt, Counter>,
    seconds: Histograms<ImpersonationAttempt>,
}

impl Default for AttemptMetrics {
    fn default() -> AttemptMetrics {
        AttemptMetrics { total: Family::default(), seconds: Family::new_with_constructor(SECONDS) }
    }
}

impl AttemptMetrics {
    fn count(&self, attempt: &ImpersonationAttempt, took: Duration) {
        self.total.get_or_create(attempt).inc();
        self.seconds.get_or_create(attempt).observe(took.as_secs_f64());
    }
}

#[derive(Default)]
pub struct ImpersonationMetrics {
    attempts: AttemptMetrics,
    authorization_attempts: AttemptMetrics,
}

impl ImpersonationMetrics {
    pub fn register(&self, registry: &mut Registry) {
        let all = registry.sub_registry_with_prefix("apiserver_impersonation");
        all.register("attempts", "Requests with impersonation headers", self.attempts.total.clone());
        let help = "Duration of all authorization checks of an impersonation request, in seconds";
        all.register("attempts_duration_seconds", help, self.attempts.seconds.clone());
        let help = "Authorization checks of impersonation requests";
        all.register("authorization_attempts", help, self.authorization_attempts.total.clone());
        let help = "Duration of an authorization check of an impersonation request, in seconds";
        all.register("authorization_attempts_duration_seconds", help, self.authorization_attempts.seconds.clone());
    }

    /// Counts an impersonation request.
    pub fn attempted(&self, attempt: &ImpersonationAttempt, took: Duration) {
        self.attempts.count(attempt, took);
    }

    /// Counts an authorization check of an impersonation request.
    pub fn authorized(&self, attempt: &ImpersonationAttempt, took: Duration) {
        self.authorization_attempts.count(attempt, took);
    }
}
