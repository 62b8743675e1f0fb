//! Metrics of aggregated API servers.

use std::sync::atomic::AtomicU64;

use machinery::Text;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::labels::{ApiService, Unavailable};

metrics! {
    /// Availability of APIServices, by name.
    pub struct AggregationMetrics {
        unavailable: Family<ApiService, Gauge> =>
            "aggregator_unavailable_apiservice", "1 if an APIService is not available";
        failures: Family<Unavailable, Gauge<u64, AtomicU64>> =>
            "aggregator_unavailable_apiservice_total", "Transitions of an APIService to unavailable";
    }
}

impl AggregationMetrics {
    /// Records the result of an availability check.
    pub fn checked(&self, name: &str, available: bool) {
        self.unavailable.get_or_create(&ApiService { name: name.into() }).set(i64::from(!available));
    }

    /// Counts a transition of an APIService to unavailable.
    pub fn became_unavailable(&self, name: &str, reason: &'static str) {
        self.failures.get_or_create(&Unavailable { name: name.into(), reason }).inc();
    }

    /// Removes the metrics of a deleted APIService.
    pub fn forget(&self, name: &Text) {
        self.unavailable.remove(&ApiService { name: name.into() });
    }
}
