//! Metrics, by the names of kube-apiserver that dashboards use.
//!
//! Metrics belong to the process, so there is one [`METRICS`]. Label values come from the served resources, never from a
//! request alone, so that clients cannot create series. Counters without the suffix `_total`, which the library does not
//! support, are registered as gauges; `text` changes their type.

#[macro_use]
mod define;

mod admission;
mod aggregation;
mod flow;
mod impersonation;
mod kinds;
mod labels;
mod manifests;
mod operation;
mod process;
mod reads;
mod requests;
mod text;
mod tokens;
mod workqueue;

use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use admission::AdmissionMetrics;
pub use kinds::KindSeries;
pub use labels::{
    AdmissionController, AdmissionStep, AttemptResult, AuditLevel, AuditPlugin, BuildInfo, DeprecatedApi, DrySeries,
    Feature, FieldValidationMode, FlowLevel, GroupResource, GroupVersionResource, ImpersonationAttempt, Label, Listed,
    QueueName, Reload, RequestKind, RequestLabels, Series, StorageCluster, StoreOperation, StoredResource, Terminated,
    Username, VersionInfo, WatchList, WebhookCall, WebhookName, WebhookRejection, WebhookResponse,
};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use reads::Reads;
pub use requests::RequestSeries;
pub use text::COUNTERS;
pub use workqueue::Queue;
use workqueue::Queues;

/// The metrics of this process.
pub static METRICS: LazyLock<Metrics> = LazyLock::new(Metrics::new);

/// The value of `component`.
pub const COMPONENT: &str = "apiserver";

/// A metric, for the reference.
pub struct Description {
    /// As it is registered, without the suffix `_total`.
    pub name: &'static str,
    /// The Rust type.
    pub kind: &'static str,
    pub help: &'static str,
}

pub fn descriptions() -> impl Iterator<Item = &'static Description> {
    let rooms = [
        Metrics::DESCRIPTIONS,
        process::Process::DESCRIPTIONS,
        operation::OperationMetrics::DESCRIPTIONS,
        Queues::DESCRIPTIONS,
        Reads::DESCRIPTIONS,
        AdmissionMetrics::DESCRIPTIONS,
        manifests::ManifestMetrics::DESCRIPTIONS,
        flow::FlowMetrics::DESCRIPTIONS,
        impersonation::ImpersonationMetrics::DESCRIPTIONS,
        tokens::TokenMetrics::DESCRIPTIONS,
        aggregation::AggregationMetrics::DESCRIPTIONS,
    ];
    rooms.into_iter().flatten()
}

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
const SLI_SECONDS: Buckets = Buckets(&[
    0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
]);
const RESPONSE_BYTES: Buckets = Buckets(&[1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9]);
const STORE_SECONDS: Buckets = Buckets(&[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
]);
const CERTIFICATE_SECONDS: Buckets = Buckets(&[
    0.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0, 43_200.0, 86_400.0, 172_800.0, 345_600.0, 604_800.0, 2_592_000.0,
    7_776_000.0, 15_552_000.0, 31_104_000.0,
]);

type Histograms<L> = Family<L, Histogram, Buckets>;

metrics! {
    /// All metrics. Each field has the name of its metric without the prefix `apiserver_` and the suffix `_total`.
    pub struct Metrics {
        pub etcd_request_duration_seconds: Histograms<StoreOperation> = Family::new_with_constructor(STORE_SECONDS) =>
            "etcd_request_duration_seconds", "Duration of writes to the store, in seconds";
        pub etcd_requests: Family<StoreOperation, Counter> => "etcd_requests", "Writes to the store";
        pub etcd_request_errors: Family<StoreOperation, Counter> => "etcd_request_errors", "Failed writes to the store";
        /// Commits that the store could not make; conflicts do not count.
        pub failed_commits: Counter => "pintle_failed_commits", "Commits that the store could not make";
        pub authentication_attempts: Family<AttemptResult, Gauge<u64, AtomicU64>> =>
            "authentication_attempts", "Authentications by result";
        pub authenticated_user_requests: Family<Username, Gauge<u64, AtomicU64>> =>
            "authenticated_user_requests", "Authenticated requests by kind of user";
        pub field_validation_request_duration_seconds: Histograms<FieldValidationMode> =
            Family::new_with_constructor(SLI_SECONDS) =>
            "field_validation_request_duration_seconds", "Duration of writes by fieldValidation, in seconds";
        feature_enabled: Family<Feature, Gauge> => "kubernetes_feature_enabled", "1 if a feature gate is on";
        pub authorization_attempts: Family<AttemptResult, Counter> =>
            "authorization_attempts", "Authorizations by result";
        build_info: Family<BuildInfo, Gauge> =>
            "kubernetes_build_info", "1, labeled by what /version says of the binary";
        version_info: Family<VersionInfo, Gauge> =>
            "version_info", "1, labeled by the releases of Kubernetes that are served";
        request: Family<RequestLabels, Counter> =>
            "apiserver_request", "Requests by verb, resource and status code";
        request_duration_seconds: Histograms<DrySeries> = Family::new_with_constructor(REQUEST_SECONDS) =>
            "apiserver_request_duration_seconds", "Duration of requests until the response is complete, in seconds";
        request_sli_duration_seconds: Histograms<Series> = Family::new_with_constructor(SLI_SECONDS) =>
            "apiserver_request_sli_duration_seconds", "Duration of requests until the response is complete, in seconds";
        response_sizes: Histograms<Series> = Family::new_with_constructor(RESPONSE_BYTES) =>
            "apiserver_response_sizes", "Size of responses in bytes";
        pub request_terminations: Family<Terminated, Counter> =>
            "apiserver_request_terminations", "Requests that the server terminated to protect itself";
        pub request_panics: Counter => "apiserver_request_panics", "Requests that panicked";
        pub longrunning_requests: Family<Series, Gauge> => "apiserver_longrunning_requests", "Active watches";
        pub current_inflight_requests: Family<RequestKind, Gauge> =>
            "apiserver_current_inflight_requests", "Requests in flight, without watches";
        pub storage_objects: Family<StoredResource, Gauge> => "apiserver_storage_objects", "Stored objects";
        pub resource_objects: Family<GroupResource, Gauge> =>
            "apiserver_resource_objects", "Stored objects by group and resource";
        pub storage_size_bytes: Family<StorageCluster, Gauge> =>
            "apiserver_storage_size_bytes", "Size of the files of the store in bytes";
        pub current_inqueue_requests: Family<RequestKind, Gauge> =>
            "apiserver_current_inqueue_requests",
            "Queued requests outside of priority and fairness; always 0, since such requests are rejected";
        pub dropped_requests: Family<RequestKind, Counter> =>
            "apiserver_dropped_requests", "Requests that were rejected because too many were in flight";
        pub requested_deprecated_apis: Family<DeprecatedApi, Gauge> =>
            "apiserver_requested_deprecated_apis", "1 for each deprecated API that was requested";
        pub tls_handshake_errors: Counter => "apiserver_tls_handshake_errors", "TLS handshakes that failed";
        pub connections_refused: Counter =>
            "apiserver_connections_refused", "Connections that were closed because there were too many";
        pub client_certificate_expiration_seconds: Histogram = CERTIFICATE_SECONDS.new_metric() =>
            "apiserver_client_certificate_expiration_seconds", "Remaining validity of client certificates, in seconds";
        pub authentication_config_controller_automatic_reloads: Family<Reload, Counter> =>
            "apiserver_authentication_config_controller_automatic_reloads", "Reloads of the configuration file";
        pub authorization_config_controller_automatic_reloads: Family<Reload, Counter> =>
            "apiserver_authorization_config_controller_automatic_reloads", "Reloads of the configuration file";
        pub encryption_config_controller_automatic_reloads: Family<Reload, Counter> =>
            "apiserver_encryption_config_controller_automatic_reloads", "Reloads of the configuration file";
        pub audit_event: Counter => "apiserver_audit_event", "Audit events";
        pub audit_level: Family<AuditLevel, Counter> => "apiserver_audit_level", "Requests by audit level";
        audit_error: Family<AuditPlugin, Counter> => "apiserver_audit_error", "Audit events that could not be written";
        audit_requests_rejected: Counter =>
            "apiserver_audit_requests_rejected", "Requests that were rejected because they could not be audited";
    } with {
        registry: Registry,
        pub reads: Reads,
        pub requests: requests::KnownRequests,
        pub admission: AdmissionMetrics,
        pub manifests: manifests::ManifestMetrics,
        pub flow: flow::FlowMetrics,
        pub impersonation: impersonation::ImpersonationMetrics,
        pub tokens: tokens::TokenMetrics,
        pub aggregation: aggregation::AggregationMetrics,
        pub operation: operation::OperationMetrics,
        queues: Queues,
        process: process::Process,
    }
}

impl Metrics {
    fn new() -> Metrics {
        let (mut metrics, mut registry) = (Metrics::default(), Registry::default());
        metrics.register(&mut registry);
        for request_kind in ["mutating", "readOnly"] {
            metrics.current_inqueue_requests.get_or_create(&RequestKind { request_kind }).set(0);
        }
        metrics.process.register(&mut registry);
        metrics.operation.register(&mut registry);
        metrics.queues.register(&mut registry);
        metrics.reads.register(&mut registry);
        metrics.admission.register(&mut registry);
        metrics.manifests.register(&mut registry);
        metrics.flow.register(&mut registry);
        metrics.impersonation.register(&mut registry);
        metrics.tokens.register(&mut registry);
        metrics.aggregation.register(&mut registry);
        metrics.registry = registry;
        metrics
    }

    /// Sets what the binary is and which releases it serves.
    pub fn set_version(&self, build: &BuildInfo, version: &VersionInfo) {
        self.build_info.get_or_create(build).set(1);
        self.version_info.clear();
        self.version_info.get_or_create(version).set(1);
    }

    /// Sets whether a feature gate is on.
    pub fn set_feature(&self, name: &'static str, stage: &'static str, on: bool) {
        self.feature_enabled.get_or_create(&Feature { name, stage }).set(i64::from(on));
    }

    /// Counts a write to the store and its duration.
    pub fn wrote(&self, operation: &StoreOperation, took: Duration, failed: bool) {
        self.etcd_requests.get_or_create(operation).inc();
        self.etcd_request_duration_seconds.get_or_create(operation).observe(took.as_secs_f64());
        if failed {
            self.etcd_request_errors.get_or_create(operation).inc();
        }
    }

    /// Counts an audit event that the backend `plugin` could not write.
    pub fn audit_error(&self, plugin: &'static str) {
        self.audit_error.get_or_create(&AuditPlugin { plugin }).inc();
    }

    /// The media type and the text of all metrics in the format that `accept` requests. `now` is in seconds since 1970.
    pub fn expose(&self, accept: &str, now: i64) -> (&'static str, String) {
        self.process.update(now);
        self.operation.update();
        text::expose(&self.registry, accept)
    }
}
