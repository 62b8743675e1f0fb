//! Metrics of API priority and fairness, by the names of kube-apiserver.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::{Buckets, FlowLevel, Histograms};

const WAIT_SECONDS: Buckets = Buckets(&[0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0]);

metrics! {
    /// The metrics of requests in their priority levels.
    pub struct FlowMetrics {
        executing: Family<FlowLevel, Gauge> => "apiserver_flowcontrol_current_executing_requests", "Executing requests";
        inqueue: Family<FlowLevel, Gauge> => "apiserver_flowcontrol_current_inqueue_requests", "Queued requests";
        dispatched: Family<FlowLevel, Counter> =>
            "apiserver_flowcontrol_dispatched_requests", "Requests that got a seat";
        rejected: Family<FlowLevel, Counter> =>
            "apiserver_flowcontrol_rejected_requests", "Requests that were rejected without a seat";
        wait: Histograms<FlowLevel> = Family::new_with_constructor(WAIT_SECONDS) =>
            "apiserver_flowcontrol_request_wait_duration_seconds", "Time in the queue, in seconds";
    }
}

impl FlowMetrics {
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
