//! Metrics of the work queues of controllers, with the names of client-go.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{Buckets, Histograms, METRICS, QueueName};

const SECONDS: Buckets = Buckets(&[1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0]);

pub struct Queues {
    adds: Family<QueueName, Counter>,
    depth: Family<QueueName, Gauge>,
    queue_duration_seconds: Histograms<QueueName>,
    work_duration_seconds: Histograms<QueueName>,
    retries: Family<QueueName, Counter>,
}

impl Default for Queues {
    fn default() -> Queues {
        Queues {
            adds: Family::default(),
            depth: Family::default(),
            queue_duration_seconds: Family::new_with_constructor(SECONDS),
            work_duration_seconds: Family::new_with_constructor(SECONDS),
            retries: Family::default(),
        }
    }
}

impl Queues {
    pub fn register(&self, registry: &mut Registry) {
        let all = registry.sub_registry_with_prefix("workqueue");
        all.register("adds", "Items added to a work queue", self.adds.clone());
        all.register("depth", "Items in a work queue", self.depth.clone());
        all.register(
            "queue_duration_seconds",
            "Time of an item in the queue, in seconds",
            self.queue_duration_seconds.clone(),
        );
        all.register(
            "work_duration_seconds",
            "Duration of processing an item, in seconds",
            self.work_duration_seconds.clone(),
        );
        all.register("retries", "Items added to a work queue again after an error", self.retries.clone());
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
