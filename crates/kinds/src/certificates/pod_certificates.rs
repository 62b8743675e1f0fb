//! PodCertificateRequests: kubelets request certificates for Pods.

use base::clock;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::time::parse_rfc3339;
use machinery::{Map, Value, names};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

use crate::certificates::request_pem::{self, RequestKey};
use crate::certificates::requests::signer;
use crate::certificates::{pem, pod_keys};
use resource::builtin::checks::{self, list, text};
use resource::builtin::in_version;
use schema::at::At;

/// The conditions of a request. Each of them is final.
const FINAL: [&str; 3] = ["Issued", "Denied", "Failed"];
/// The minimum and maximum lifetime that a request may ask for, in seconds. The maximum depends on whether the signer
/// belongs to Kubernetes.
const SECONDS_MIN: i64 = 60 * 60;
const KUBERNETES_SECONDS_MAX: i64 = 24 * 60 * 60;
const SECONDS_MAX: i64 = 91 * 24 * 60 * 60;
const REQUEST_BYTES_MAX: usize = 10 * 1024;
const CHAIN_BYTES_MAX: usize = 100 * 1024;
const UID_BYTES_MAX: usize = 128;
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;
/// How far the start of a certificate may be from the server's time, and its renewal from its start and its end.
const START_SECONDS: i64 = 5 * 60;
const RENEWAL_SECONDS: i64 = 10 * 60;

/// Validates a request. Its spec is immutable.
pub fn validate(at: At) {
    let spec = at.field("spec");
    if let Some(old) = spec.old {
        spec.shown_as_go("certificates.PodCertificateRequestSpec").invalid_if(old != spec.value, "field is immutable");
        return;
    }
    signer(spec.field("signerName"));
    annotations(spec.field("unverifiedUserAnnotations"));
    // in Go, names of Nodes are of a named type here, which errors show as JSON
    for (name, uid) in [
        (spec.field("podName"), "podUID"),
        (spec.field("serviceAccountName"), "serviceAccountUID"),
        (spec.field("nodeName").shown_as_json(), "nodeUID"),
    ] {
        name.check_text(names::dns1123_subdomain);
        let uid = spec.field_or_empty(uid);
        uid.invalid_if(uid.as_text().is_empty(), "must not be empty");
        uid.max_bytes(UID_BYTES_MAX);
    }
    let (seconds, max) = (spec.field("maxExpirationSeconds"), seconds_max(spec.text("signerName")));
    match seconds.value.as_int() {
        None => return seconds.required("must be set"),
        Some(given) if (SECONDS_MIN..=max).contains(&given) => {}
        Some(_) => seconds.invalid(format!("must be in the range [{SECONDS_MIN}, {max}]")),
    }
    match ["stubPKCS10Request", "pkixPublicKey", "proofOfPossession"].map(|name| !spec.text(name).is_empty()) {
        [true, false, false] => requested(spec.field("stubPKCS10Request")),
        [false, true, true] => pod_keys::check(spec),
        _ => {
            let why = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
            spec.shown_verbatim("").invalid(why);
        }
    }
}

/// A request in the storage version, whose spec has more fields than that of `v1`.
pub fn to_stored(request: Value) -> Value {
    in_version(request, "certificates.k8s.io/v1beta1")
}

pub fn to_shown(mut stored: Value) -> Value {
    ["pkixPublicKey", "proofOfPossession"].iter().for_each(|name| drop(stored.remove_at(&["spec", name])));
    in_version(stored, "certificates.k8s.io/v1")
}

/// The maximum lifetime of the certificates of a signer, in seconds.
pub fn seconds_max(signer: &str) -> i64 {
    if is_of_kubernetes(signer) { KUBERNETES_SECONDS_MAX } else { SECONDS_MAX }
}

fn is_of_kubernetes(signer: &str) -> bool {
    let host = signer.split('/').next().unwrap_or_default();
    host == "kubernetes.io" || host.ends_with(".kubernetes.io")
}

/// The keys of user annotations need a domain.
pub fn annotations(at: At) {
    let Some(map) = at.value.as_object() else { return };
    for (key, _) in Map::iter(map) {
        let key = key.to_lowercase();
        let problems = names::qualified_name(&key);
        match (key.is_empty(), problems.is_empty()) {
            (true, _) => at.required(""),
            (false, true) if !key.contains('/') => {
                at.shown_as_text(&key).invalid("must be a domain-prefixed key (such as \"acme.io/foo\")");
            }
            _ => at.shown_as_text(&key).invalid_each(problems),
        }
    }
    let bytes: usize = map.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if bytes > ANNOTATIONS_BYTES_MAX {
        at.too_long(ANNOTATIONS_BYTES_MAX);
    }
}

/// Validates a PKCS #10 request in base64.
fn requested(at: At) {
    let der = STANDARD.decode(at.as_text()).unwrap_or_default();
    if der.len() > REQUEST_BYTES_MAX {
        return at.too_long(REQUEST_BYTES_MAX);
    }
    let parsed = request_pem::parse(&der).and_then(|request| Ok((RequestKey::of(&request)?, request)));
    let Ok((key, request)) = parsed else { return at.shown_verbatim("").invalid("must be a valid PKCS#10 CSR") };
    match key {
        RequestKey::Ecdsa(curve) if !["P-256", "P-384", "P-521"].contains(&curve) => {
            at.shown_as_text(&format!("curve {curve}"))
                .invalid("elliptic public keys must use curve P256, P384, or P521");
        }
        RequestKey::Rsa(bits) if ![3072, 4096].contains(&bits) => {
            at.shown_as_text(&format!("{bits}-bit modulus")).invalid("RSA keys must have modulus size 3072 or 4096");
        }
        RequestKey::Other => {
            at.shown_verbatim("").invalid("unknown public key type; supported types are Ed25519, ECDSA, and RSA");
        }
        _ if request_pem::verify(&request).is_err() => at.shown_verbatim("").invalid("invalid signature"),
        _ => {}
    }
}

fn is_in(status: &Value, kinds: &[&str]) -> bool {
    let holds = |condition: &Value| kinds.contains(&text(condition, "type")) && text(condition, "status") == "True";
    list(status, "conditions").iter().any(holds)
}

/// Validates a status, which is written only once, together with the condition that ends the request.
pub fn validate_status(at: At) {
    let (status, uid) = (at.field("status"), at.field_or_empty("metadata.uid"));
    if uid.is_update() && uid.old_text() != uid.as_text() {
        // the changed uid is reported elsewhere and is the only error
        return;
    }
    conditions(status);
    checks::conditions(status);
    if at.count() > 0 {
        return;
    }
    let before = status.old.unwrap_or(&Value::Null);
    if is_in(before, &FINAL) {
        if status.value != before {
            status.shown_verbatim("").invalid("immutable after PodCertificateRequest is issued, denied, or failed");
        }
    } else if is_in(status.value, &FINAL[1..]) {
        let others = ["certificateChain", "notBefore", "beginRefreshAt", "notAfter"];
        if others.iter().any(|name| status.has(name) && *status.field(name).value != Value::from("")) {
            status
                .shown_verbatim("")
                .invalid("non-condition status fields must be empty when denying or failing the PodCertificateRequest");
        }
    } else if is_in(status.value, &FINAL[..1]) {
        let spec = at.field("spec");
        issued(status, spec.with_value(spec.old.unwrap_or(&Value::Null)));
    } else {
        let of = schema::shape::named("certificates.v1beta1.PodCertificateRequestStatus");
        if !schema::shape::same_fields(status.value, before, of, &[]) {
            status
                .shown_verbatim("")
                .invalid("status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"");
        }
    }
}

/// Validates the types of conditions. In the paths of errors, a dot precedes the index.
fn conditions(status: At) {
    let (list, mut count) = (status.field("conditions"), 0);
    for (i, condition) in list.items().enumerate() {
        let index = format!("[{i}]");
        let condition = list.field_with_dots(&index).with_value(condition.value);
        let (kind, holds) = (condition.field_or_empty("type"), condition.field_or_empty("status"));
        if !FINAL.contains(&kind.as_text()) {
            kind.unsupported(&FINAL);
            continue;
        }
        count += 1;
        if count > 1 {
            kind.invalid("There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"");
        }
        holds.shown_as_json().one_of(&["True"]);
    }
}

/// Checks the certificate of an issued request, its key and its times. The first error ends the checks.
fn issued(status: At, spec: At) {
    let chain = status.field_or_empty("certificateChain");
    if chain.as_text().len() > CHAIN_BYTES_MAX {
        return chain.too_long(CHAIN_BYTES_MAX);
    }
    let blocks = pem::blocks(chain.as_text().as_bytes());
    let Some((leaf, rest)) = blocks.split_first() else {
        return chain.invalid("issued certificate chain must contain at least one certificate");
    };
    if leaf.label != "CERTIFICATE" {
        return chain.invalid("issued certificate chain must consist entirely of CERTIFICATE PEM blocks");
    }
    let Some(leaf) = certificate(&leaf.bytes) else {
        return chain.invalid("leaf certificate does not parse as valid X.509");
    };
    let names = chain.apart(|at| alternative_names(&leaf, at));
    let Some(key) = requested_key(spec) else { return };
    chain.extend(names);
    if key != leaf.public_key().raw {
        return chain.invalid("leaf certificate was not issued to the requested public key");
    }
    if !times(status, &leaf, spec) {
        return;
    }
    for block in rest {
        if block.label != "CERTIFICATE" {
            return chain.invalid("issued certificate chain must consist entirely of CERTFICATE PEM blocks");
        }
        if certificate(&block.bytes).is_none() {
            return chain.invalid("intermediate certificate does not parse as valid X.509");
        }
    }
}

/// The public key for which a certificate is requested, in DER. Reports a request that has none.
fn requested_key(spec: At) -> Option<Vec<u8>> {
    let bytes = |name: &str| STANDARD.decode(spec.text(name)).unwrap_or_default();
    let (request, key) = (bytes("stubPKCS10Request"), bytes("pkixPublicKey"));
    if request.is_empty() && !key.is_empty() {
        let parsed = pod_keys::parse(&key);
        if parsed.is_none() {
            spec.field("pkixPublicKey").shown_verbatim("").invalid("must be a valid PKIX-serialized public key");
        }
        return parsed.map(|info| info.raw.to_vec());
    }
    let parsed = request_pem::parse(&request);
    spec.field("stubPKCS10Request").shown_verbatim("").invalid_if(parsed.is_err(), "must be a valid PKCS#10 CSR");
    parsed.ok().map(|request| request.certification_request_info.subject_pki.raw.to_vec())
}

fn certificate(der: &[u8]) -> Option<X509Certificate<'_>> {
    X509Certificate::from_der(der).ok().filter(|(rest, _)| rest.is_empty()).map(|(_, certificate)| certificate)
}

fn alternative_names(leaf: &X509Certificate<'_>, at: At) {
    let alternatives = leaf.subject_alternative_name().ok().flatten();
    let alternatives = alternatives.map(|extension| &*extension.value.general_names).unwrap_or_default();
    for name in alternatives {
        match name {
            GeneralName::DNSName(name) => {
                at.shown_as_text(name).invalid_if(name.is_empty(), "leaf certificate should not contain empty DNSName");
                if name.contains("..") {
                    at.shown_as_text(name).invalid("leaf certificate's DNSName should not contain '..'");
                }
                if name.starts_with('.') || name.ends_with('.') {
                    at.shown_as_text(name).invalid("leaf certificate's DNSName should not start or end with '.'");
                }
            }
            GeneralName::RFC822Name(name) => {
                let is_address = name.rsplit_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty());
                if !is_address {
                    at.shown_as_text(name).invalid("leaf certificate should not contain invalid EmailAddress");
                }
            }
            _ => {}
        }
    }
}

/// Checks the times in a status against those of its certificate. Returns false if the status has any error.
fn times(status: At, leaf: &X509Certificate<'_>, spec: At) -> bool {
    const SAME: &str = "must be present and consistent with the issued certificate";
    const WITHIN: &str = "must be present and in the range [notbefore+10min, notafter-10min]";
    for (name, why) in [("notBefore", SAME), ("notAfter", SAME), ("beginRefreshAt", WITHIN)] {
        status.field(name).required_if(status.text(name).is_empty(), why);
    }
    if status.count() > 0 {
        return false;
    }
    time(status, leaf, spec);
    status.count() == 0
}

/// Reports the first wrong time.
fn time(status: At, leaf: &X509Certificate<'_>, spec: At) {
    let seconds = |at: At| parse_rfc3339(at.as_text()).map_or(0, |(seconds, _)| seconds);
    let [from, until, refresh] = ["notBefore", "notAfter", "beginRefreshAt"].map(|name| status.field(name));
    let (start, end) = (leaf.validity().not_before.timestamp(), leaf.validity().not_after.timestamp());
    if seconds(from) != start {
        return from.invalid("must be set to the NotBefore time encoded in the leaf certificate");
    }
    if (start - clock::now_seconds()).abs() >= START_SECONDS {
        return from.invalid("must be set to within 5 minutes of kube-apiserver's current time");
    }
    if seconds(until) != end {
        return until.invalid("must be set to the NotAfter time encoded in the leaf certificate");
    }
    let lifetime = end - start;
    let wrong_lifetime = |why: String| {
        status
            .field("certificateChain")
            .shown_verbatim(&lifetime.saturating_mul(1_000_000_000).to_string())
            .invalid(why);
    };
    if lifetime < SECONDS_MIN {
        return wrong_lifetime("leaf certificate lifetime must be >= 1 hour".to_owned());
    }
    let max = spec.int("maxExpirationSeconds").unwrap_or_default();
    if lifetime > max {
        return wrong_lifetime(format!("leaf certificate lifetime must be <= spec.maxExpirationSeconds ({max})"));
    }
    if seconds(refresh) < start + RENEWAL_SECONDS {
        refresh.invalid("must be at least 10 minutes after status.notBefore");
    } else if seconds(refresh) > end - RENEWAL_SECONDS {
        refresh.invalid("must be at least 10 minutes before status.notAfter");
    }
}
