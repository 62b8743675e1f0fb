//! Metrics, by the names of kube-apiserver that dashboards use.
//!
//! Metrics belong to the process, so there is one [`METRICS`]. Label values come from the served resources, never from a
//! request alone, so that clients cannot create series. Counters without the suffix `_total`, which the library does not
//! support, are registered as gauges; `text` changes their type.

mod admission;
mod aggregation;
mod flow;
mod impersonation;
mod labels;
mod manifests;
mod operation;
mod process;
mod reads;
mod text;
mod tokens;
mod workqueue;

use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use admission::AdmissionMetrics;
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
pub use workqueue::Queue;
use workqueue::Queues;

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
const SLI_SECONDS: Buckets = Buckets(&[
    0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
]);
const RESPONSE_BYTES: Buckets = Buckets(&[1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9]);
const STORE_SECONDS: Buckets = Buckets(&[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
]);
const CERTIFICATE_SECONDS: Buckets = Buckets(&[
    0.0,
    1_800.0,
    3_600.0,
    7_200.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    345_600.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
]);

type Histograms<L> = Family<L, Histogram, Buckets>;

/// All metrics. Each field has the name of its metric without the prefix `apiserver_` and the suffix `_total`.
pub struct Metrics {
    registry: Registry,
    pub request: Family<RequestLabels, Counter>,
    pub request_duration_seconds: Histograms<DrySeries>,
    pub request_sli_duration_seconds: Histograms<Series>,
    pub response_sizes: Histograms<Series>,
    pub request_terminations: Family<Terminated, Counter>,
    pub request_panics: Counter,
    pub longrunning_requests: Family<Series, Gauge>,
    pub current_inflight_requests: Family<RequestKind, Gauge>,
    pub current_inqueue_requests: Family<RequestKind, Gauge>,
    pub dropped_requests: Family<RequestKind, Counter>,
    pub requested_deprecated_apis: Family<DeprecatedApi, Gauge>,
    pub field_validation_request_duration_seconds: Histograms<FieldValidationMode>,
    pub tls_handshake_errors: Counter,
    pub connections_refused: Counter,
    pub client_certificate_expiration_seconds: Histogram,
    pub audit_event: Counter,
    pub audit_level: Family<AuditLevel, Counter>,
    audit_error: Family<AuditPlugin, Counter>,
    audit_requests_rejected: Counter,
    pub reads: Reads,
    pub storage_size_bytes: Family<StorageCluster, Gauge>,
    pub storage_objects: Family<StoredResource, Gauge>,
    /// Commits that the store could not make; conflicts do not count.
    pub failed_commits: Counter,
    pub resource_objects: Family<GroupResource, Gauge>,
    pub etcd_request_duration_seconds: Histograms<StoreOperation>,
    pub etcd_requests: Family<StoreOperation, Counter>,
    pub etcd_request_errors: Family<StoreOperation, Counter>,
    pub authentication_attempts: Family<AttemptResult, Gauge<u64, AtomicU64>>,
    pub authorization_attempts: Family<AttemptResult, Counter>,
    pub authenticated_user_requests: Family<Username, Gauge<u64, AtomicU64>>,
    pub authentication_config_controller_automatic_reloads: Family<Reload, Counter>,
    pub authorization_config_controller_automatic_reloads: Family<Reload, Counter>,
    pub encryption_config_controller_automatic_reloads: Family<Reload, Counter>,
    pub admission: AdmissionMetrics,
    pub manifests: manifests::ManifestMetrics,
    pub flow: flow::FlowMetrics,
    pub impersonation: impersonation::ImpersonationMetrics,
    pub tokens: tokens::TokenMetrics,
    pub aggregation: aggregation::AggregationMetrics,
    pub operation: operation::OperationMetrics,
    queues: Queues,
    feature_enabled: Family<Feature, Gauge>,
    build_info: Family<BuildInfo, Gauge>,
    version_info: Family<VersionInfo, Gauge>,
    process: process::Process,
}

impl Metrics {
    fn new() -> Metrics {
        let mut metrics = Metrics {
            registry: Registry::default(),
            request: Family::default(),
            request_duration_seconds: Family::new_with_constructor(REQUEST_SECONDS),
            request_sli_duration_seconds: Family::new_with_constructor(SLI_SECONDS),
            response_sizes: Family::new_with_constructor(RESPONSE_BYTES),
            request_terminations: Family::default(),
            request_panics: Counter::default(),
            longrunning_requests: Family::default(),
            current_inflight_requests: Family::default(),
            current_inqueue_requests: Family::default(),
            dropped_requests: Family::default(),
            requested_deprecated_apis: Family::default(),
            field_validation_request_duration_seconds: Family::new_with_constructor(SLI_SECONDS),
            tls_handshake_errors: Counter::default(),
            connections_refused: Counter::default(),
            client_certificate_expiration_seconds: CERTIFICATE_SECONDS.new_metric(),
            audit_event: Counter::default(),
            audit_level: Family::default(),
            audit_error: Family::default(),
            audit_requests_rejected: Counter::default(),
            reads: Reads::default(),
            storage_size_bytes: Family::default(),
            storage_objects: Family::default(),
            failed_commits: Counter::default(),
            resource_objects: Family::default(),
            etcd_request_duration_seconds: Family::new_with_constructor(STORE_SECONDS),
            etcd_requests: Family::default(),
            etcd_request_errors: Family::default(),
            authentication_attempts: Family::default(),
            authorization_attempts: Family::default(),
            authenticated_user_requests: Family::default(),
            authentication_config_controller_automatic_reloads: Family::default(),
            authorization_config_controller_automatic_reloads: Family::default(),
            encryption_config_controller_automatic_reloads: Family::default(),
            admission: AdmissionMetrics::default(),
            manifests: manifests::ManifestMetrics::default(),
            flow: flow::FlowMetrics::default(),
            impersonation: impersonation::ImpersonationMetrics::default(),
            tokens: tokens::TokenMetrics::default(),
            aggregation: aggregation::AggregationMetrics::default(),
            operation: operation::OperationMetrics::default(),
            queues: Queues::default(),
            feature_enabled: Family::default(),
            build_info: Family::default(),
            version_info: Family::default(),
            process: process::Process::default(),
        };
        metrics.register();
        metrics.register_requests();
        metrics
    }

    /// Registers the metrics of requests.
    fn register_requests(&mut self) {
        let all = self.registry.sub_registry_with_prefix("apiserver");
        all.register("request", "Requests by verb, resource and status code", self.request.clone());
        let help = "Duration of requests until the response is complete, in seconds";
        all.register("request_duration_seconds", help, self.request_duration_seconds.clone());
        all.register("request_sli_duration_seconds", help, self.request_sli_duration_seconds.clone());
        all.register("response_sizes", "Size of responses in bytes", self.response_sizes.clone());
        let help = "Requests that the server terminated to protect itself";
        all.register("request_terminations", help, self.request_terminations.clone());
        all.register("request_panics", "Requests that panicked", self.request_panics.clone());
        all.register("longrunning_requests", "Active watches", self.longrunning_requests.clone());
        let help = "Requests in flight, without watches";
        all.register("current_inflight_requests", help, self.current_inflight_requests.clone());
        all.register("storage_objects", "Stored objects", self.storage_objects.clone());
        all.register("resource_objects", "Stored objects by group and resource", self.resource_objects.clone());
        all.register("storage_size_bytes", "Size of the files of the store in bytes", self.storage_size_bytes.clone());
        let help = "Queued requests outside of priority and fairness; always 0, since such requests are rejected";
        all.register("current_inqueue_requests", help, self.current_inqueue_requests.clone());
        for request_kind in ["mutating", "readOnly"] {
            self.current_inqueue_requests.get_or_create(&RequestKind { request_kind }).set(0);
        }
        let help = "Requests that were rejected because too many were in flight";
        all.register("dropped_requests", help, self.dropped_requests.clone());
        let help = "1 for each deprecated API that was requested";
        all.register("requested_deprecated_apis", help, self.requested_deprecated_apis.clone());
        all.register("tls_handshake_errors", "TLS handshakes that failed", self.tls_handshake_errors.clone());
        let refused = self.connections_refused.clone();
        all.register("connections_refused", "Connections that were closed because there were too many", refused);
        let help = "Remaining validity of client certificates, in seconds";
        all.register("client_certificate_expiration_seconds", help, self.client_certificate_expiration_seconds.clone());
        let help = "Reloads of the configuration file";
        let reloads = self.authentication_config_controller_automatic_reloads.clone();
        all.register("authentication_config_controller_automatic_reloads", help, reloads);
        let reloads = self.authorization_config_controller_automatic_reloads.clone();
        all.register("authorization_config_controller_automatic_reloads", help, reloads);
        let reloads = self.encryption_config_controller_automatic_reloads.clone();
        all.register("encryption_config_controller_automatic_reloads", help, reloads);
        all.register("audit_event", "Audit events", self.audit_event.clone());
        all.register("audit_level", "Requests by audit level", self.audit_level.clone());
        all.register("audit_error", "Audit events that could not be written", self.audit_error.clone());
        let help = "Requests that were rejected because they could not be audited";
        all.register("audit_requests_rejected", help, self.audit_requests_rejected.clone());
    }

    fn register(&mut self) {
        let all = &mut self.registry;
        let help = "Duration of writes to the store, in seconds";
        all.register("etcd_request_duration_seconds", help, self.etcd_request_duration_seconds.clone());
        all.register("etcd_requests", "Writes to the store", self.etcd_requests.clone());
        all.register("etcd_request_errors", "Failed writes to the store", self.etcd_request_errors.clone());
        all.register("pintle_failed_commits", "Commits that the store could not make", self.failed_commits.clone());
        let help = "Authentications by result";
        all.register("authentication_attempts", help, self.authentication_attempts.clone());
        let help = "Authenticated requests by kind of user";
        all.register("authenticated_user_requests", help, self.authenticated_user_requests.clone());
        let help = "Duration of writes by fieldValidation, in seconds";
        all.register(
            "field_validation_request_duration_seconds",
            help,
            self.field_validation_request_duration_seconds.clone(),
        );
        all.register("kubernetes_feature_enabled", "1 if a feature gate is on", self.feature_enabled.clone());
        all.register("authorization_attempts", "Authorizations by result", self.authorization_attempts.clone());
        all.register(
            "kubernetes_build_info",
            "1, labeled by what /version says of the binary",
            self.build_info.clone(),
        );
        all.register(
            "version_info",
            "1, labeled by the releases of Kubernetes that are served",
            self.version_info.clone(),
        );
        self.process.register(all);
        self.operation.register(all);
        self.queues.register(all);
        self.reads.register(all);
        self.admission.register(all);
        self.manifests.register(all);
        self.flow.register(all);
        self.impersonation.register(all);
        self.tokens.register(all);
        self.aggregation.register(all);
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
