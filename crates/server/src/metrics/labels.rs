//! Label sets, in the words of kube-apiserver.

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

/// What a request is about.
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DrySeries {
    /// `All` or nothing.
    pub dry_run: &'static str,
    #[prometheus(flatten)]
    pub series: Series,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Answered {
    pub code: u16,
    #[prometheus(flatten)]
    pub of: DrySeries,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Terminated {
    pub code: u16,
    #[prometheus(flatten)]
    pub series: Series,
}

/// `mutating` or `readOnly`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestKind {
    pub request_kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct GroupVersionResource {
    pub group: Label,
    pub version: Label,
    pub resource: Label,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct GroupResource {
    pub group: Label,
    pub resource: Label,
}

/// `plural.group`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct StoredResource {
    pub resource: Label,
}

/// A write to the store: `create`, `update` or `delete`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct StoreOperation {
    pub operation: &'static str,
    pub group: Label,
    pub resource: Label,
}

/// `success` or `failure`; of authorization `allowed`, `denied`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct AttemptResult {
    pub result: &'static str,
}

/// What a webhook of admission was asked, and whether it refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WebhookCall {
    pub name: Label,
    /// `admit` or `validating`.
    pub r#type: &'static str,
    pub operation: &'static str,
    /// `true` or `false`.
    pub rejected: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WebhookRejection {
    pub name: Label,
    pub r#type: &'static str,
    pub operation: &'static str,
    /// `calling_webhook_error` or `no_error`.
    pub error_type: &'static str,
    pub rejection_code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WebhookName {
    pub name: Label,
    pub r#type: &'static str,
}

/// Which Kubernetes release this behaves as.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct BuildInfo {
    pub major: &'static str,
    pub minor: &'static str,
    pub git_version: String,
    pub platform: &'static str,
}
