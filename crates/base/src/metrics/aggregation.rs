//! Aggregated API servers.

use std::sync::atomic::AtomicU64;

use machinery::Text;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::{ApiService, Unavailable};

/// APIServices of other servers, by their names.
#[derive(Default)]
pub struct AggregationMetrics {
    unavailable: Family<ApiService, Gauge>,
    failures: Family<Unavailable, Gauge<u64, AtomicU64>>,
}

impl AggregationMetrics {
    pub fn register(&self, registry: &mut Registry) {
        let all = registry.sub_registry_with_prefix("aggregator");
        let help = "1 where an APIService is not available";
        all.register("unavailable_apiservice", help, self.unavailable.clone());
        let help = "Times that an APIService became unavailable";
        all.register("unavailable_apiservice_total", help, self.failures.clone());
    }

    /// The outcome of an availability check.
    pub fn found(&self, name: &str, available: bool) {
        self.unavailable.get_or_create(&ApiService { name: name.into() }).set(i64::from(!available));
    }

    /// One is not available any more.
    pub fn failed(&self, name: &str, reason: &'static str) {
        self.failures.get_or_create(&Unavailable { name: name.into(), reason }).inc();
    }

    /// One is gone.
    pub fn forget(&self, name: &Text) {
        self.unavailable.remove(&ApiService { name: name.into() });
    }
}
