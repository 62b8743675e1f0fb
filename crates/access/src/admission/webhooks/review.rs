//! AdmissionReview: the request to a webhook, and the responses that it may return.

use base::clock;
use machinery::patch::{Unknown, json_patch};
use machinery::{Status, Text, Value};
use resource::{ReviewType, Version};

use super::{Failure, HookKind, VersionedObjects};
use crate::admission::Attributes;
use crate::authentication::ReviewVersion;

/// A review of a write, and its uid.
pub fn request(
    version: ReviewVersion,
    attributes: &Attributes<'_>,
    matched: &Version,
    objects: &VersionedObjects<'_>,
) -> (String, Value) {
    let uid = clock::uuid();
    let mut request = attributes.request(matched);
    request.set_at(&["uid"], Value::from(uid.as_str()));
    request.set_at(&["object"], objects.object.clone().into_owned());
    request.set_at(&["oldObject"], objects.old.clone().into_owned());
    let review = [
        ("kind", Value::from("AdmissionReview")),
        ("apiVersion", Value::from(version.api_version("admission.k8s.io"))),
        ("request", request),
    ];
    (uid, review.into())
}

/// A valid response.
pub struct Response<'a> {
    response: &'a Value,
    patch: Vec<u8>,
    patch_type: String,
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

pub const ADMISSION: ReviewType =
    ReviewType { group: "admission.k8s.io", kind: "AdmissionReview", go: "admission.v1.AdmissionReview" };

/// Why the `response` of a review is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidResponse {
    #[error("expected response.uid={expected:?}, got {got:?}")]
    Uid { expected: String, got: String },
    #[error("expected webhook response of {expected}, Kind=AdmissionReview, got {got}, Kind={kind}")]
    Type { expected: String, got: String, kind: String },
    #[error("{0}")]
    Fields(&'static str),
}

/// Reads the `response` of a review.
pub fn verified<'a>(
    review: &'a Value,
    version: ReviewVersion,
    uid: &str,
    of: HookKind,
) -> Result<Response<'a>, InvalidResponse> {
    let response = review.get("response").filter(|response| !response.is_null());
    let response = response.ok_or(InvalidResponse::Fields("webhook response was absent"))?;
    let patch = decoded(response.str_at(&["patch"])).unwrap_or_default();
    let mutating = of == HookKind::Mutating;
    if version == ReviewVersion::V1beta1 {
        // v1beta1 is not verified: the patch of a validating webhook has no effect
        let patch = if mutating { patch } else { vec![] };
        return Ok(Response { response, patch, patch_type: "JSONPatch".to_owned() });
    }
    let response_uid = response.str_at(&["uid"]);
    if response_uid != uid {
        return Err(InvalidResponse::Uid { expected: uid.to_owned(), got: response_uid.to_owned() });
    }
    let (api_version, kind) = (review.str_at(&["apiVersion"]), review.str_at(&["kind"]));
    let expected = version.api_version("admission.k8s.io");
    if api_version != expected || kind != "AdmissionReview" {
        let got = if api_version.is_empty() { "/" } else { api_version };
        return Err(InvalidResponse::Type { expected, got: got.to_owned(), kind: kind.to_owned() });
    }
    // a pointer in Go, where an empty type is not an absent one
    let patch_type = response.get("patchType").and_then(Value::as_str);
    let why = match (patch.is_empty(), patch_type, mutating) {
        (true, None, _) => return Ok(Response { response, patch, patch_type: String::new() }),
        (true, Some(_), true) => "webhook returned response.patchType but not response.patch",
        (true, Some(_), false) => "validating webhook may not return response.patchType",
        (false, _, false) => "validating webhook may not return response.patch",
        (false, None, true) => "webhook returned response.patch but not response.patchType",
        (false, Some(""), true) => "webhook returned invalid response.patchType of \"\"",
        (false, Some(kind), true) => return Ok(Response { response, patch, patch_type: kind.to_owned() }),
    };
    Err(InvalidResponse::Fields(why))
}

impl Response<'_> {
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.response.texts_at(&["warnings"]).map(str::to_owned)
    }

    /// Audit annotations.
    pub fn annotations(&self) -> impl Iterator<Item = (Text, String)> {
        let annotations = self.response.get("auditAnnotations").and_then(Value::as_object).into_iter();
        annotations
            .flat_map(machinery::Map::iter)
            .filter_map(|(key, text)| Some((key.clone(), text.as_str()?.to_owned())))
    }

    /// The Status with which the webhook rejects the write.
    pub fn refusal(&self, webhook: &str) -> Option<Status> {
        if self.response.is_true_at(&["allowed"]) {
            return None;
        }
        let denied = format!("admission webhook \"{webhook}\" denied the request");
        let mut status = Status::from_value(self.response.get("status").unwrap_or(&Value::Null));
        status.code = status.code.max(400);
        status.message = match (status.message.as_str(), status.own_reason.as_str()) {
            ("", "") => format!("{denied} without explanation"),
            ("", reason) => format!("{denied}: {reason}"),
            (message, _) => format!("{denied}: {message}"),
        };
        Some(status)
    }

    /// The patch, as it was sent.
    pub fn patch(&self) -> Value {
        machinery::value::decode(&self.patch).unwrap_or_default()
    }

    /// The object with the patch applied; `None` without a patch.
    pub fn patched(&self, webhook: &str, object: &Value) -> Result<Option<Value>, Failure> {
        if self.patch.is_empty() {
            return Ok(None);
        }
        let patch = json_patch::decode_patch(&self.patch, Unknown::Ignored)?;
        if patch.operations.is_empty() {
            return Ok(None);
        }
        if object.is_null() {
            let why = "attempted to modify the object, which is not supported for this operation";
            return Err(Failure::Unconditional(Status::internal(format!("admission webhook \"{webhook}\" {why}"))));
        }
        if self.patch_type != "JSONPatch" {
            let why = format!("failed calling webhook \"{webhook}\": unsupported patch type \"{}\"", self.patch_type);
            return Err(Failure::Unconditional(Status::internal(why)));
        }
        let applied = json_patch::apply_or_report(object.clone(), &patch);
        applied.map(Some).map_err(|why| Failure::Unconditional(Status::internal(why)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    fn review(response: Value) -> Value {
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": (response)})
    }

    #[test]
    fn responses_are_verified() {
        let patch = "W10="; // an empty list
        let cases = [
            (review(json!({"uid": "u", "allowed": true})), HookKind::Mutating, ""),
            (json!({"kind": "AdmissionReview"}), HookKind::Mutating, "webhook response was absent"),
            (review(json!({"uid": "v"})), HookKind::Mutating, "expected response.uid=\"u\", got \"v\""),
            (
                json!({"response": {"uid": "u"}}),
                HookKind::Mutating,
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
            ),
            (
                review(json!({"uid": "u", "patch": (patch)})),
                HookKind::Mutating,
                "webhook returned response.patch but not response.patchType",
            ),
            (
                review(json!({"uid": "u", "patch": (patch), "patchType": ""})),
                HookKind::Mutating,
                "webhook returned invalid response.patchType of \"\"",
            ),
            (
                review(json!({"uid": "u", "patchType": ""})),
                HookKind::Mutating,
                "webhook returned response.patchType but not response.patch",
            ),
            (
                review(json!({"uid": "u", "patch": (patch)})),
                HookKind::Validating,
                "validating webhook may not return response.patch",
            ),
            (
                review(json!({"uid": "u", "patchType": "JSONPatch"})),
                HookKind::Validating,
                "validating webhook may not return response.patchType",
            ),
        ];
        for (review, kind, want) in cases {
            let found = verified(&review, ReviewVersion::V1, "u", kind).err();
            let found = found.map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(found, want, "{}", review.to_json());
        }
    }

    #[test]
    fn patches_of_validating_webhooks_have_no_effect_in_v1beta1() {
        let review = json!({"response": {"allowed": true, "patch": "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2EifV0="}});
        for (kind, changes) in [(HookKind::Validating, false), (HookKind::Mutating, true)] {
            let response = verified(&review, ReviewVersion::V1beta1, "u", kind).unwrap();
            let patched = response.patched("w", &json!({"a": 1})).ok().flatten();
            assert_eq!(patched.is_some(), changes);
        }
    }

    #[test]
    fn webhook_refusals_name_the_webhook() {
        let cases = [
            (json!({"allowed": false}), 400, "", "admission webhook \"w\" denied the request without explanation"),
            (
                json!({"allowed": false, "status": {"message": "no", "code": 409, "reason": "Odd"}}),
                409,
                "Odd",
                "admission webhook \"w\" denied the request: no",
            ),
            (
                json!({"allowed": false, "status": {"reason": "Odd", "code": 200}}),
                400,
                "Odd",
                "admission webhook \"w\" denied the request: Odd",
            ),
        ];
        for (response, code, reason, message) in cases {
            let found =
                Response { response: &response, patch: vec![], patch_type: String::new() }.refusal("w").unwrap();
            assert_eq!((found.code, found.reason_text(), found.message.as_str()), (code, reason, message));
        }
        let allowed = json!({"allowed": true});
        assert!(Response { response: &allowed, patch: vec![], patch_type: String::new() }.refusal("w").is_none());
    }
}
