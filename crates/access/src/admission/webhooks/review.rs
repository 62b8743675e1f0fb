//! AdmissionReview: the request to a webhook, and the responses that it may return.

use base::webhook::CallError;
use base::{clock, wording};
use machinery::patch::{Unknown, json_patch};
use machinery::{Status, Text, Value};
use resource::Version;

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

/// Checks that a response is an AdmissionReview of a known version; the errors are those of kube-apiserver's client.
pub fn check_type(review: &Value, version: ReviewVersion) -> Result<(), String> {
    let (api_version, kind) = (review.str_at(&["apiVersion"]), review.str_at(&["kind"]));
    let known = api_version.is_empty() || matches!(api_version, "admission.k8s.io/v1" | "admission.k8s.io/v1beta1");
    if !known || !matches!(kind, "" | "AdmissionReview") {
        let place = "in scheme \"pkg/runtime/scheme.go:111\"";
        return Err(format!("no kind {kind:?} is registered for version {api_version:?} {place}"));
    }
    schema::shape::read(review, schema::shape::named("admission.v1.AdmissionReview")).error.map_or(Ok(()), Err)?;
    let (given, sent) = (api_version.rsplit('/').next().unwrap_or_default(), version.name());
    if api_version.is_empty() || kind.is_empty() || given == sent {
        return Ok(());
    }
    Err(format!("converting ({given}.AdmissionReview) to ({sent}.AdmissionReview): unknown conversion"))
}

/// Reads the `response` of a review. The error says why it is invalid.
pub fn verified<'a>(
    review: &'a Value,
    version: ReviewVersion,
    uid: &str,
    of: HookKind,
) -> Result<Response<'a>, String> {
    let response = review.get("response").filter(|response| !response.is_null());
    let response = response.ok_or("webhook response was absent")?;
    let patch = decoded(response.str_at(&["patch"])).unwrap_or_default();
    let patch_type = response.str_at(&["patchType"]);
    if version == ReviewVersion::V1beta1 {
        let patch_type = if patch.is_empty() { "" } else { "JSONPatch" }.to_owned();
        return Ok(Response { response, patch, patch_type });
    }
    let response_uid = response.str_at(&["uid"]);
    if response_uid != uid {
        return Err(format!("expected response.uid={uid:?}, got {response_uid:?}"));
    }
    let (api_version, kind) = (review.str_at(&["apiVersion"]), review.str_at(&["kind"]));
    if api_version != version.api_version("admission.k8s.io") || kind != "AdmissionReview" {
        let (wanted, found) =
            (version.api_version("admission.k8s.io"), if api_version.is_empty() { "/" } else { api_version });
        return Err(format!("expected webhook response of {wanted}, Kind=AdmissionReview, got {found}, Kind={kind}"));
    }
    let why = match (of, !patch.is_empty(), !patch_type.is_empty()) {
        (HookKind::Mutating, true, false) => "webhook returned response.patch but not response.patchType",
        (HookKind::Mutating, false, true) => "webhook returned response.patchType but not response.patch",
        (HookKind::Validating, true, _) => "validating webhook may not return response.patch",
        (HookKind::Validating, false, true) => "validating webhook may not return response.patchType",
        _ => return Ok(Response { response, patch, patch_type: patch_type.to_owned() }),
    };
    Err(why.to_owned())
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
        let patch = json_patch::decode_patch(&self.patch, Unknown::Ignored).map_err(|error| {
            let why = wording::patch::lenient_json_patch_error(&error);
            let error = CallError { why, code: 503 };
            Failure::Calling(error.with("received undecodable patch in webhook response"))
        })?;
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
                review(json!({"uid": "u", "patchType": "JSONPatch"})),
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
            let found = verified(&review, ReviewVersion::V1, "u", kind).err().unwrap_or_default();
            assert_eq!(found, want, "{}", review.to_json());
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
