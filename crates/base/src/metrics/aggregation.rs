//! Metrics of aggregated API servers.

use std::sync::atomic::AtomicU64;

use machinery::Text;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::{ApiService, Unavailable};

/// Availability of APIServices, by name.
#[derive(Default)]
pub struct AggregationMetrics {
    unavailable: Family<ApiService, Gauge>,
    failures: Family<Unavailable, Gauge<u64, AtomicU64>>,
}

impl AggregationMetrics {
    pub fn register(&self, registry: &mut Registry) {
        let all = registry.sub_registry_with_prefix("aggregator");
        let help = "1 if an APIService is not available";
        all.register("unavailable_apiservice", help, self.unavailable.clone());
        let help = "Transitions of an APIService to unavailable";
        all.register("unavailable_apiservice_total", help, self.failures.clone());
    }

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
