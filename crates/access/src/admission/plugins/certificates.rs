//! CertificateApproval, CertificateSigning, ClusterTrustBundleAttest, CertificateSubjectRestriction.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

use super::{Decision, Needed, PluginRequest};
use crate::authentication::Subject;

/// The signer of client certificates. It must not sign certificates of the group system:masters.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

fn signer(object: &Value) -> String {
    object.str_at(&["spec", "signerName"]).to_owned()
}

/// Approving a request requires a permission for its signer.
pub fn approval(call: &PluginRequest<'_>) -> Option<Needed> {
    let signer = signer(call.old());
    let refusal = format!("user not permitted to approve requests with signerName {signer:?}");
    Some(Needed { verb: "approve", signer, refusal })
}

/// A field of the status of a request; an empty list counts as a missing one.
fn given_status<'a>(request: &'a Value, field: &str) -> Option<&'a Value> {
    request.at(&["status", field]).filter(|value| value.as_array().is_none_or(|items| !items.is_empty()))
}

/// Setting the certificate of a request, or its conditions, requires a permission for its signer.
pub fn signing(call: &PluginRequest<'_>) -> Option<Needed> {
    let (old, new) = (call.old(), call.object());
    let same = |field: &str| given_status(old, field) == given_status(new, field);
    if same("certificate") && same("conditions") {
        return None;
    }
    let signer = signer(old);
    let refusal = format!("user not permitted to sign requests with signerName {signer:?}");
    Some(Needed { verb: "sign", signer, refusal })
}

/// Writing a trust bundle of a signer requires a permission for the signer.
pub fn attesting(call: &PluginRequest<'_>) -> Option<Needed> {
    let signer = signer(call.object());
    let unchanged = !call.is_create() && call.old().get("spec") == call.object().get("spec");
    if signer.is_empty() || unchanged {
        return None;
    }
    let refusal = format!("user not permitted to attest for signerName {signer:?}");
    Some(Needed { verb: "attest", signer, refusal })
}

/// Refuses client certificates of administrators.
pub fn subject(call: &PluginRequest<'_>) -> Decision {
    if signer(call.object()) != CLIENT_SIGNER {
        return Ok(());
    }
    let organizations = organizations(call.object().str_at(&["spec", "request"]));
    let organizations = organizations.map_err(|why| format!("failed to parse CSR: {why}"))?;
    if organizations.iter().any(|name| name == "system:masters") {
        return Err(format!("use of {CLIENT_SIGNER} signer with system:masters group is not allowed").into());
    }
    Ok(())
}

/// The organizations of the subject of a certificate request, PEM in Base64.
fn organizations(request: &str) -> Result<Vec<String>, &'static str> {
    let pem = STANDARD.decode(request).map_err(|_| "no Base64")?;
    let (_, block) =
        x509_parser::pem::parse_x509_pem(&pem).map_err(|_| "PEM block type must be CERTIFICATE REQUEST")?;
    let (_, parsed) = X509CertificationRequest::from_der(&block.contents).map_err(|_| "asn1: structure error")?;
    Ok(Subject::read(&parsed.certification_request_info.subject)?.organizations)
}
