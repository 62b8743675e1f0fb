//! Signs approved CertificateSigningRequests of the signer `kubernetes.io/kube-apiserver-client`
//! (`certificatesigningrequest-signing-controller` of kube-controller-manager). Their certificates authenticate clients
//! of this server.

use std::sync::Arc;
use std::time::Duration;

use base::clock;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::status::Reason;
use machinery::{Result, Status, Text, Value, json};
use objects::{Event, EventKind, Key};
use tokio::sync::watch;

use super::pending::Pending;
use super::reconciler::Reconciler;
use crate::verbs::{self, Context, PatchKind, Subresource};

const USER: &str = "system:serviceaccount:kube-system:certificate-controller";
const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";
const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const CLIENT_AUTH: &str = "client auth";
const OTHER_USAGES: [&str; 2] = ["digital signature", "key encipherment"];

type Sign = dyn Fn(&str, Option<Duration>) -> Result<String, String> + Send + Sync;

/// Signs certificate requests with the key of a certificate authority.
#[derive(Clone)]
pub struct CertificateSigner(Arc<Sign>);

impl CertificateSigner {
    /// `sign` takes a request (PEM) and the lifetime that is wanted, and returns the certificate of a client (PEM).
    pub fn new(sign: impl Fn(&str, Option<Duration>) -> Result<String, String> + Send + Sync + 'static) -> Self {
        CertificateSigner(Arc::new(sign))
    }
}

impl std::fmt::Debug for CertificateSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CertificateSigner")
    }
}

/// Signs approved requests.
pub struct Signing {
    signer: CertificateSigner,
    /// The paths of requests.
    pending: Pending,
}

impl Reconciler for Signing {
    const NAME: &'static str = "certificate signing";
    type Memory = ();

    fn observe(&self, key: &Key, event: &Event) -> bool {
        let concerned = key.group == GROUP && key.plural == REQUESTS && event.kind != EventKind::Deleted;
        if concerned {
            self.pending.add(key.path.clone());
        }
        concerned
    }

    async fn reconcile(&self, context: &Arc<Context>, _: &watch::Receiver<bool>, _: &mut ()) -> Option<Duration> {
        let sign = async |path: Text| {
            let Err(status) = self.sign(context, &path).await else { return true };
            tracing::warn!(request = %path, error = %status, "a certificate cannot be issued; will retry");
            false
        };
        self.pending.each(sign).await
    }
}

impl Signing {
    pub fn new(signer: CertificateSigner) -> Signing {
        Signing { signer, pending: Pending::default() }
    }

    async fn sign(&self, context: &Context, path: &Text) -> Result<()> {
        let Some(resource) = context.registry.get(GROUP, REQUESTS) else { return Ok(()) };
        let Some(stored) = resource.collection.get(path) else { return Ok(()) };
        let request = stored.body.to_value(stored.revision);
        if !is_due(&request) {
            return Ok(());
        }
        let status = match usage_error(&request) {
            Some(why) => failed(&request, &why),
            None => {
                let certificate = self.certificate(&request).map_err(Status::internal)?;
                json!({"certificate": (STANDARD.encode(certificate))})
            }
        };
        let version = stored.revision.to_string();
        let change = json!({"metadata": {"resourceVersion": version}, "status": status});
        let own = context.as_user(USER, &resource, "", &stored.meta.name).through(Subresource::Status);
        // the request may have changed, which starts another pass, or have been deleted
        verbs::tolerating(&[Reason::Conflict, Reason::NotFound], own.patch(PatchKind::Merge, &change).await)
    }

    fn certificate(&self, request: &Value) -> Result<String, String> {
        let encoded = request.str_at(&["spec", "request"]);
        let pem = STANDARD.decode(encoded).map_err(|error| error.to_string())?;
        let pem = String::from_utf8(pem).map_err(|error| error.to_string())?;
        let seconds = request.at(&["spec", "expirationSeconds"]).and_then(Value::as_int);
        let lifetime = seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
        (self.signer.0)(&pem, lifetime)
    }
}

/// Whether a request is approved, and neither denied nor failed nor signed.
fn is_due(request: &Value) -> bool {
    let conditions = request.items_at(&["status", "conditions"]);
    let has = |kind: &str| conditions.iter().any(|condition| condition.str_at(&["type"]) == kind);
    request.str_at(&["spec", "signerName"]) == SIGNER
        && request.str_at(&["status", "certificate"]).is_empty()
        && has("Approved")
        && !has("Denied")
        && !has("Failed")
}

/// Why the usages in a request cannot be granted.
fn usage_error(request: &Value) -> Option<String> {
    let usages = request.items_at(&["spec", "usages"]);
    let usages: Vec<&str> = usages.iter().filter_map(Value::as_str).collect();
    let is_other = |usage: &&&str| **usage != CLIENT_AUTH && !OTHER_USAGES.contains(usage);
    match usages.iter().find(is_other) {
        Some(wrong) => Some(format!("invalid usage for client certificate: {wrong}")),
        None if !usages.contains(&CLIENT_AUTH) => {
            Some(format!("missing required usage for client certificate: {CLIENT_AUTH}"))
        }
        None => None,
    }
}

/// The status of a request that can never be signed.
fn failed(request: &Value, why: &str) -> Value {
    let now = clock::now_rfc3339();
    let mut conditions = request.items_at(&["status", "conditions"]).to_vec();
    conditions.push(json!({
        "type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": why,
        "lastUpdateTime": (now.as_str()), "lastTransitionTime": (now.as_str())
    }));
    json!({"conditions": (Value::Array(conditions))})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approved_requests_are_due() {
        let request = |signer: &str, kinds: &[&str]| {
            let conditions: Value = kinds.iter().map(|kind| json!({"type": (*kind)})).collect();
            json!({"spec": {"signerName": signer}, "status": {"conditions": conditions}})
        };
        assert!(is_due(&request(SIGNER, &["Approved"])));
        for (signer, kinds) in [
            (SIGNER, &[][..]),
            (SIGNER, &["Denied"]),
            (SIGNER, &["Approved", "Failed"]),
            ("kubernetes.io/kubelet-serving", &["Approved"]),
        ] {
            assert!(!is_due(&request(signer, kinds)), "{signer} {kinds:?}");
        }
        let mut signed = request(SIGNER, &["Approved"]);
        signed.set_at(&["status", "certificate"], Value::from("eA=="));
        assert!(!is_due(&signed));
    }

    #[test]
    fn usages_are_those_of_clients() {
        let error = |usages: &[&str]| {
            let usages: Value = usages.iter().map(|usage| Value::from(*usage)).collect();
            usage_error(&json!({"spec": {"usages": usages}}))
        };
        assert_eq!(error(&["client auth"]), None);
        assert_eq!(error(&["digital signature", "key encipherment", "client auth"]), None);
        let missing = "missing required usage for client certificate: client auth";
        assert_eq!(error(&["digital signature"]).as_deref(), Some(missing));
        let invalid = "invalid usage for client certificate: server auth";
        assert_eq!(error(&["client auth", "server auth"]).as_deref(), Some(invalid));
    }
}
