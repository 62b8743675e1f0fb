//! Metrics of impersonation, recorded while the feature gate ConstrainedImpersonation is on.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::{Buckets, Histograms, ImpersonationAttempt};

const SECONDS: Buckets = Buckets(&[
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
]);

metrics! {
    pub struct ImpersonationMetrics {
        attempts: Family<ImpersonationAttempt, Counter> =>
            "apiserver_impersonation_attempts", "Requests with impersonation headers";
        attempts_duration_seconds: Histograms<ImpersonationAttempt> = Family::new_with_constructor(SECONDS) =>
            "apiserver_impersonation_attempts_duration_seconds",
            "Duration of all authorization checks of an impersonation request, in seconds";
        authorization_attempts: Family<ImpersonationAttempt, Counter> =>
            "apiserver_impersonation_authorization_attempts", "Authorization checks of impersonation requests";
        authorization_attempts_duration_seconds: Histograms<ImpersonationAttempt> =
            Family::new_with_constructor(SECONDS) =>
            "apiserver_impersonation_authorization_attempts_duration_seconds",
            "Duration of an authorization check of an impersonation request, in seconds";
    }
}

impl ImpersonationMetrics {
    /// Counts an impersonation request.
    pub fn attempted(&self, attempt: &ImpersonationAttempt, took: Duration) {
        self.attempts.get_or_create(attempt).inc();
        self.attempts_duration_seconds.get_or_create(attempt).observe(took.as_secs_f64());
    }

    /// Counts an authorization check of an impersonation request.
    pub fn authorized(&self, attempt: &ImpersonationAttempt, took: Duration) {
        self.authorization_attempts.get_or_create(attempt).inc();
        self.authorization_attempts_duration_seconds.get_or_create(attempt).observe(took.as_secs_f64());
    }
}
