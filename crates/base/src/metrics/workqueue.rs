//! Metrics of the work queues of controllers, with the names of client-go.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::{Buckets, Histograms, METRICS, QueueName};

const SECONDS: Buckets = Buckets(&[1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0]);

metrics! {
    pub struct Queues {
        adds: Family<QueueName, Counter> => "workqueue_adds", "Items added to a work queue";
        depth: Family<QueueName, Gauge> => "workqueue_depth", "Items in a work queue";
        queue_duration_seconds: Histograms<QueueName> = Family::new_with_constructor(SECONDS) =>
            "workqueue_queue_duration_seconds", "Time of an item in the queue, in seconds";
        work_duration_seconds: Histograms<QueueName> = Family::new_with_constructor(SECONDS) =>
            "workqueue_work_duration_seconds", "Duration of processing an item, in seconds";
        retries: Family<QueueName, Counter> => "workqueue_retries", "Items added to a work queue again after an error";
    }
}

/// The queue of a controller, by the name that kube-controller-manager gives it.
#[derive(Clone, Copy, Debug)]
pub struct Queue(pub &'static str);

impl Queue {
    fn name(self) -> QueueName {
        QueueName { name: self.0 }
    }

    /// Counts items that were added.
    pub fn added(self, many: usize) {
        METRICS.queues.adds.get_or_create(&self.name()).inc_by(many as u64);
        METRICS.queues.depth.get_or_create(&self.name()).inc_by(many as i64);
    }

    /// Counts an item that was taken from the queue after waiting there.
    pub fn taken(self, waited: Duration) {
        METRICS.queues.depth.get_or_create(&self.name()).dec();
        METRICS.queues.queue_duration_seconds.get_or_create(&self.name()).observe(waited.as_secs_f64());
    }

    /// Records the duration of processing an item.
    pub fn worked(self, took: Duration) {
        METRICS.queues.work_duration_seconds.get_or_create(&self.name()).observe(took.as_secs_f64());
    }

    /// Counts an item that was added again after an error.
    pub fn retried(self) {
        METRICS.queues.retries.get_or_create(&self.name()).inc();
    }
}
