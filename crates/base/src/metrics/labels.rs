//! Label sets, with the names of kube-apiserver.

use std::fmt::Write as _;

use machinery::Text;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};

/// A text that is cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Label(pub Text);

impl EncodeLabelValue for Label {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        encoder.write_str(&self.0)
    }
}

impl From<&str> for Label {
    fn from(text: &str) -> Label {
        Label(text.into())
    }
}

impl From<&Text> for Label {
    fn from(text: &Text) -> Label {
        Label(text.clone())
    }
}

/// The result of reloading a file: `success` or `failure`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Reload {
    status: &'static str,
}

impl Reload {
    pub fn of<T, E>(result: &Result<T, E>) -> Reload {
        Reload { status: if result.is_ok() { "success" } else { "failure" } }
    }
}

/// The labels of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Series {
    /// `GET`, `LIST`, `WATCH`, `POST`, `PUT`, `PATCH`, `APPLY`, `DELETE`, `DELETECOLLECTION`.
    pub verb: &'static str,
    pub group: Label,
    pub version: Label,
    pub resource: Label,
    pub subresource: Label,
    /// `resource`, `namespace`, `cluster` or nothing.
    pub scope: &'static str,
    pub component: &'static str,
}

labels! {
    pub struct DrySeries {
        /// `All` or nothing.
        pub dry_run: &'static str,
        #[prometheus(flatten)]
        pub series: Series,
    }

    pub struct RequestLabels { pub code: u16, #[prometheus(flatten)] pub of: DrySeries }

    pub struct Terminated { pub code: u16, #[prometheus(flatten)] pub series: Series }

    pub struct AuditLevel { pub level: &'static str }

    /// The audit backend: `log` or `webhook`.
    pub struct AuditPlugin { pub plugin: &'static str }

    pub struct FlowLevel { pub priority_level: Label, pub flow_schema: Label }

    /// `mutating` or `readOnly`.
    pub struct RequestKind { pub request_kind: &'static str }

    pub struct GroupVersionResource { pub group: Label, pub version: Label, pub resource: Label }

    pub struct GroupResource { pub group: Label, pub resource: Label }

    /// Labels of lists: the resource, and the index used, which is always empty.
    pub struct Listed { pub index: &'static str, #[prometheus(flatten)] pub of: GroupResource }

    /// `plural.group`.
    pub struct StoredResource { pub resource: Label }

    /// A write to the store: `create`, `update` or `delete`.
    pub struct StoreOperation { pub operation: &'static str, pub group: Label, pub resource: Label }

    /// `success` or `failure`; of authorization `allowed`, `denied`.
    pub struct AttemptResult { pub result: &'static str }

    /// Labels of an impersonation attempt, or of one of its authorization checks: the mode, which is `legacy` for the verb
    /// `impersonate` and empty if all modes denied.
    pub struct ImpersonationAttempt {
        pub mode: &'static str,
        /// `allowed` or `denied`.
        pub decision: &'static str,
    }

    pub struct WebhookCall {
        pub name: Label,
        /// `admit` or `validating`.
        pub r#type: &'static str,
        pub operation: &'static str,
        /// `true` or `false`.
        pub rejected: &'static str,
    }

    /// Labels of a webhook call: the code of its rejection or of the failed call, 200 if it admitted the write.
    pub struct WebhookResponse { pub code: u16, #[prometheus(flatten)] pub call: WebhookCall }

    pub struct WebhookRejection {
        pub name: Label,
        pub r#type: &'static str,
        pub operation: &'static str,
        /// `no_error`, `calling_webhook_error`, or `apiserver_internal_error` if the patch cannot be applied.
        pub error_type: &'static str,
        pub rejection_code: u16,
    }

    pub struct WebhookName { pub name: Label, pub r#type: &'static str }

    /// Labels of all admission plugins of one type.
    pub struct AdmissionStep {
        /// `admit` or `validate`.
        pub r#type: &'static str,
        pub operation: &'static str,
        /// `true` or `false`.
        pub rejected: &'static str,
    }

    pub struct AdmissionController { pub name: &'static str, #[prometheus(flatten)] pub step: AdmissionStep }

    /// A deprecated version that was requested.
    pub struct DeprecatedApi {
        pub group: Label,
        pub version: Label,
        pub resource: Label,
        pub subresource: Label,
        /// The release without the version; empty if none is announced.
        pub removed_release: &'static str,
    }

    /// The resource of a watch with initial events.
    pub struct WatchList { pub group: Label, pub version: Label, pub resource: Label, pub scope: &'static str }

    /// `Ignore`, `Warn` or `Strict`.
    pub struct FieldValidationMode { pub field_validation: &'static str }

    /// The kind of a user; names would make too many series.
    pub struct Username { pub username: &'static str }

    /// A certificate of the server.
    pub struct CertificateName { pub name: &'static str }

    pub struct ApiService { pub name: Label }

    /// An APIService, and why it is not available.
    pub struct Unavailable { pub name: Label, pub reason: &'static str }

    /// The queue of a controller.
    pub struct QueueName { pub name: &'static str }

    /// The store; there is only one.
    pub struct StorageCluster { pub storage_cluster_id: &'static str }

    pub struct Feature { pub name: &'static str, pub stage: &'static str }

    /// The build of the binary, as `/version` has it.
    pub struct BuildInfo {
        pub build_date: String,
        pub compiler: String,
        pub git_commit: String,
        pub git_tree_state: String,
        pub git_version: String,
        pub go_version: String,
        pub major: String,
        pub minor: String,
        pub platform: String,
    }

    /// The releases of Kubernetes that are served (KEP-4330).
    pub struct VersionInfo {
        pub component: &'static str,
        /// The newest release that can be served, with its patch level.
        pub binary: String,
        /// The release that is served.
        pub emulation: String,
        /// The oldest release to be compatible with.
        pub min_compat: String,
    }
}
