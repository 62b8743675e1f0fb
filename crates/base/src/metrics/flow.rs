//! Metrics of API priority and fairness, by the names of kube-apiserver.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{Buckets, FlowLevel, Histograms};

const WAIT_SECONDS: Buckets = Buckets(&[0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0]);

/// The metrics of requests in their priority levels.
pub struct FlowMetrics {
    executing: Family<FlowLevel, Gauge>,
    inqueue: Family<FlowLevel, Gauge>,
    dispatched: Family<FlowLevel, Counter>,
    rejected: Family<FlowLevel, Counter>,
    wait: Histograms<FlowLevel>,
}

impl Default for FlowMetrics {
    fn default() -> FlowMetrics {
        FlowMetrics {
            executing: Family::default(),
            inqueue: Family::default(),
            dispatched: Family::default(),
            rejected: Family::default(),
            wait: Family::new_with_constructor(WAIT_SECONDS),
        }
    }
}

impl FlowMetrics {
    pub fn register(&self, registry: &mut Registry) {
        let all = registry.sub_registry_with_prefix("apiserver_flowcontrol");
        all.register("current_executing_requests", "Executing requests", self.executing.clone());
        all.register("current_inqueue_requests", "Queued requests", self.inqueue.clone());
        all.register("dispatched_requests", "Requests that got a seat", self.dispatched.clone());
        all.register("rejected_requests", "Requests that were rejected without a seat", self.rejected.clone());
        all.register("request_wait_duration_seconds", "Time in the queue, in seconds", self.wait.clone());
    }

    /// Adds `more` to the executing requests; it is negative when requests end.
    pub fn executing(&self, of: &FlowLevel, more: i64) {
        self.executing.get_or_create(of).inc_by(more);
    }

    /// Adds `more` to the queued requests; it is negative when requests leave the queue.
    pub fn waiting(&self, of: &FlowLevel, more: i64) {
        self.inqueue.get_or_create(of).inc_by(more);
    }

    /// Counts a request for a seat, with its waiting time.
    pub fn seat_requested(&self, of: &FlowLevel, given: bool, waited: Duration) {
        let counted = if given { &self.dispatched } else { &self.rejected };
        counted.get_or_create(of).inc();
        self.wait.get_or_create(of).observe(waited.as_secs_f64());
    }
}
