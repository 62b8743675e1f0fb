//! What is counted and measured (layer 0), by the names that Kubernetes dashboards use (api-machinery 18.3).
//!
//! Everything here belongs to the process, so there is one [`METRICS`]. Label values come from what is served, never
//! from a request alone: strangers can't make series. Counters whose names the exposition format does not allow (they
//! lack `_total`) are gauges here. Scrapers are answered by `text`.

mod labels;
mod process;
mod text;

use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

pub use labels::{
    Answered, AttemptResult, BuildInfo, DrySeries, GroupResource, GroupVersionResource, Label, RequestKind, Series,
    StoreOperation, StoredResource, Terminated, WebhookCall, WebhookName, WebhookRejection,
};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The metrics of this process.
pub static METRICS: LazyLock<Metrics> = LazyLock::new(Metrics::new);

/// The value of `component`.
pub const COMPONENT: &str = "apiserver";

/// Upper bounds of a histogram's buckets.
#[derive(Clone, Copy)]
pub struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

const REQUEST_SECONDS: Buckets = Buckets(&[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
]);
const RESPONSE_BYTES: Buckets = Buckets(&[1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9]);
const STORE_SECONDS: Buckets = Buckets(&[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
]);
const WEBHOOK_SECONDS: Buckets = Buckets(&[0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0]);

type Histograms<L> = Family<L, Histogram, Buckets>;

/// All of them. Each field is named as its metric, but for the prefix `apiserver_` and the suffix `_total`.
pub struct Metrics {
    registry: Registry,
    pub request: Family<Answered, Counter>,
    pub request_duration_seconds: Histograms<DrySeries>,
    pub request_sli_duration_seconds: Histograms<Series>,
    pub response_sizes: Histograms<Series>,
    pub request_terminations: Family<Terminated, Counter>,
    pub request_panics: Counter,
    pub longrunning_requests: Family<Series, Gauge>,
    pub current_inflight_requests: Family<RequestKind, Gauge>,
    pub watch_events: Family<GroupVersionResource, Counter>,
    pub storage_objects: Family<StoredResource, Gauge>,
    pub resource_objects: Family<GroupResource, Gauge>,
    pub etcd_request_duration_seconds: Histograms<StoreOperation>,
    pub etcd_requests: Family<StoreOperation, Counter>,
    pub etcd_request_errors: Family<StoreOperation, Counter>,
    pub authentication_attempts: Family<AttemptResult, Gauge<u64, AtomicU64>>,
    pub authorization_attempts: Family<AttemptResult, Counter>,
    pub webhook_admission_duration_seconds: Histograms<WebhookCall>,
    pub webhook_request: Family<WebhookCall, Counter>,
    pub webhook_rejection_count: Family<WebhookRejection, Gauge<u64, AtomicU64>>,
    pub webhook_fail_open_count: Family<WebhookName, Gauge<u64, AtomicU64>>,
    build_info: Family<BuildInfo, Gauge>,
    process: process::Process,
}

impl Metrics {
    fn new() -> Metrics {
        let mut metrics = Metrics {
            registry: Registry::default(),
            request: Family::default(),
            request_duration_seconds: Family::new_with_constructor(REQUEST_SECONDS),
            request_sli_duration_seconds: Family::new_with_constructor(REQUEST_SECONDS),
            response_sizes: Family::new_with_constructor(RESPONSE_BYTES),
            request_terminations: Family::default(),
            request_panics: Counter::default(),
            longrunning_requests: Family::default(),
            current_inflight_requests: Family::default(),
            watch_events: Family::default(),
            storage_objects: Family::default(),
            resource_objects: Family::default(),
            etcd_request_duration_seconds: Family::new_with_constructor(STORE_SECONDS),
            etcd_requests: Family::default(),
            etcd_request_errors: Family::default(),
            authentication_attempts: Family::default(),
            authorization_attempts: Family::default(),
            webhook_admission_duration_seconds: Family::new_with_constructor(WEBHOOK_SECONDS),
            webhook_request: Family::default(),
            webhook_rejection_count: Family::default(),
            webhook_fail_open_count: Family::default(),
            build_info: Family::default(),
            process: process::Process::default(),
        };
        metrics.register();
        metrics.register_requests();
        metrics
    }

    /// What requests are, and what becomes of them.
    fn register_requests(&mut self) {
        let all = self.registry.sub_registry_with_prefix("apiserver");
        all.register("request", "Requests by what they are about and how they were answered", self.request.clone());
        let help = "Seconds from the arrival of a request to its answer";
        all.register("request_duration_seconds", help, self.request_duration_seconds.clone());
        all.register("request_sli_duration_seconds", help, self.request_sli_duration_seconds.clone());
        all.register("response_sizes", "Bytes of answers", self.response_sizes.clone());
        let help = "Requests that the server ended to protect itself";
        all.register("request_terminations", help, self.request_terminations.clone());
        all.register("request_panics", "Requests that panicked", self.request_panics.clone());
        all.register("longrunning_requests", "Watches that run", self.longrunning_requests.clone());
        let help = "Requests that run, watches aside";
        all.register("current_inflight_requests", help, self.current_inflight_requests.clone());
        all.register("watch_events", "Events sent to watchers", self.watch_events.clone());
        all.register("storage_objects", "Stored objects", self.storage_objects.clone());
        all.register("resource_objects", "Stored objects by group", self.resource_objects.clone());
        let help = "Seconds that webhooks took";
        all.register(
            "admission_webhook_admission_duration_seconds",
            help,
            self.webhook_admission_duration_seconds.clone(),
        );
        all.register("admission_webhook_request", "Calls of webhooks", self.webhook_request.clone());
        let help = "Writes that webhooks refused, or that were refused because a call failed";
        all.register("admission_webhook_rejection_count", help, self.webhook_rejection_count.clone());
        let help = "Calls that failed and were passed over";
        all.register("admission_webhook_fail_open_count", help, self.webhook_fail_open_count.clone());
    }

    fn register(&mut self) {
        let all = &mut self.registry;
        let help = "Seconds from a write to its place in the store";
        all.register("etcd_request_duration_seconds", help, self.etcd_request_duration_seconds.clone());
        all.register("etcd_requests", "Writes to the store", self.etcd_requests.clone());
        all.register("etcd_request_errors", "Writes that the store refused", self.etcd_request_errors.clone());
        let help = "Requests whose sender was looked for";
        all.register("authentication_attempts", help, self.authentication_attempts.clone());
        all.register("authorization_attempts", "Requests that were judged", self.authorization_attempts.clone());
        all.register("kubernetes_build_info", "The release that this behaves as", self.build_info.clone());
        self.process.register(all);
    }

    /// Says which release this behaves as.
    pub fn set_build(&self, info: &BuildInfo) {
        self.build_info.get_or_create(info).set(1);
    }

    /// A write to the store that took this long.
    pub fn wrote(&self, operation: &StoreOperation, took: Duration, refused: bool) {
        self.etcd_requests.get_or_create(operation).inc();
        self.etcd_request_duration_seconds.get_or_create(operation).observe(took.as_secs_f64());
        if refused {
            self.etcd_request_errors.get_or_create(operation).inc();
        }
    }

    /// All of it at `now`, in seconds since 1970, in the format that `accept` asks for, and the name of the format.
    pub fn expose(&self, accept: &str, now: i64) -> (&'static str, String) {
        self.process.look(now);
        text::expose(&self.registry, accept)
    }
}
