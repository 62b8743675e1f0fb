//! Certificate requests and trust bundles.

use super::{NONE, at, text_column, text_or};
use crate::builtin::BuiltInColumn;
use crate::builtin::checks::text;
use crate::builtin::columns::AGE;
use machinery::{Map, Value, jsonpath};

const SIGNER: BuiltInColumn =
    text_column("SignerName", "Signer that is asked.", |o, _| text_or(o, &["spec", "signerName"], NONE));

pub const SIGNING_REQUEST: &[BuiltInColumn] = &[
    AGE,
    SIGNER,
    text_column("Requestor", "User who asks.", |o, _| text_or(o, &["spec", "username"], "")),
    text_column("RequestedDuration", "How long the certificate is to be valid.", |o, _| {
        let seconds = o.at(&["spec", "expirationSeconds"]).and_then(Value::as_int);
        Value::from(seconds.map_or_else(
            || NONE.to_owned(),
            |seconds| jsonpath::columns::human_duration(seconds.saturating_mul(1_000_000_000)),
        ))
    }),
    text_column("Condition", "What has become of the request.", |o, _| Value::from(signing_state(o))),
];

fn signing_state(object: &Value) -> String {
    let has = |kind: &str| at(object, &["status", "conditions"]).iter().any(|c| text(c, "type") == kind);
    let decision = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (_, true) => "Approved",
        _ => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if object.str_at(&["status", "certificate"]).is_empty() { "" } else { ",Issued" };
    format!("{decision}{failed}{issued}")
}

pub const TRUST_BUNDLE: &[BuiltInColumn] = &[SIGNER];

pub const POD_CERTIFICATE_REQUEST: &[BuiltInColumn] = &[
    text_column("PodName", "Pod that asks.", |o, _| text_or(o, &["spec", "podName"], "")),
    text_column("ServiceAccountName", "ServiceAccount of the Pod.", |o, _| {
        text_or(o, &["spec", "serviceAccountName"], "")
    }),
    text_column("NodeName", "Node of the Pod.", |o, _| text_or(o, &["spec", "nodeName"], "")),
    text_column("SignerName", "Signer that is asked.", |o, _| text_or(o, &["spec", "signerName"], "")),
    text_column("State", "What has become of the request.", |o, _| {
        let mut conditions = at(o, &["status", "conditions"]).iter().map(|condition| text(condition, "type"));
        Value::from(conditions.rfind(|kind| ["Issued", "Denied", "Failed"].contains(kind)).unwrap_or("Pending"))
    }),
    text_column("UnverifiedUserAnnotations", "Annotations of the user.", |o, _| {
        let annotations = o.at(&["spec", "unverifiedUserAnnotations"]).and_then(Value::as_object);
        let shown: Vec<String> = annotations
            .into_iter()
            .flat_map(Map::iter)
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        Value::from(if shown.is_empty() { NONE.to_owned() } else { shown.join(",") })
    }),
];
