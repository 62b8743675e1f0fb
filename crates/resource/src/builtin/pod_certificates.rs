//! PodCertificateRequests: kubelets request certificates for Pods.

use base::clock;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::field::{FieldError, FieldPath};
use machinery::time::parse_rfc3339;
use machinery::{Map, Release, Value, names};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

use super::certificates::signer_errors;
use super::checks::{self, invalid_each, invalid_internal, invalid_shown, is_set, list, named, text};
use super::request_pem::{self, RequestKey};
use super::{in_version, pem, pod_keys};

type Errors = Vec<FieldError>;

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
pub fn validate(request: &Value, old: Option<&Value>, _release: Release) -> Errors {
    let (path, spec) = (FieldPath::new("spec"), request.get("spec").unwrap_or(&Value::Null));
    let mut errors = vec![];
    if let Some(old) = old {
        if old.get("spec").unwrap_or(&Value::Null) != spec {
            let go = "certificates.PodCertificateRequestSpec";
            errors.push(invalid_internal(&path, spec, go, "field is immutable"));
        }
        return errors;
    }
    signer_errors(text(spec, "signerName"), &path.child("signerName"), &mut errors);
    annotation_errors(spec.get("unverifiedUserAnnotations"), &path.child("unverifiedUserAnnotations"), &mut errors);
    for (name, uid) in [("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID")] {
        let value = text(spec, name);
        let problems = names::dns1123_subdomain(value).into_iter();
        let (shown, at) = (Value::from(value), path.child(name));
        let problems = problems.map(|why| FieldError::invalid(&at, &shown, why));
        // the names of Nodes have a named type in Go
        errors.extend(problems.map(|error| if name == "nodeName" { named(error, &shown) } else { error }));
        uid_errors(text(spec, uid), &path.child(uid), &mut errors);
    }
    let Some(seconds) = spec.get("maxExpirationSeconds").and_then(Value::as_int) else {
        errors.push(FieldError::required(&path.child("maxExpirationSeconds"), "must be set"));
        return errors;
    };
    let max = seconds_max(text(spec, "signerName"));
    if !(SECONDS_MIN..=max).contains(&seconds) {
        let why = format!("must be in the range [{SECONDS_MIN}, {max}]");
        errors.push(FieldError::invalid(&path.child("maxExpirationSeconds"), &Value::Int(seconds), why));
    }
    let is_given = |name: &str| !text(spec, name).is_empty();
    match ["stubPKCS10Request", "pkixPublicKey", "proofOfPossession"].map(is_given) {
        [true, false, false] => request_errors(text(spec, "stubPKCS10Request"), &path, &mut errors),
        [false, true, true] => errors.extend(pod_keys::error(spec, &path)),
        _ => {
            let why = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
            errors.push(unshown(&path, why));
        }
    }
    errors
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
pub(super) fn seconds_max(signer: &str) -> i64 {
    if is_of_kubernetes(signer) { KUBERNETES_SECONDS_MAX } else { SECONDS_MAX }
}

fn is_of_kubernetes(signer: &str) -> bool {
    let host = signer.split('/').next().unwrap_or_default();
    host == "kubernetes.io" || host.ends_with(".kubernetes.io")
}

fn uid_errors(uid: &str, path: &FieldPath, errors: &mut Errors) {
    if uid.is_empty() {
        errors.push(FieldError::invalid(path, &Value::from(uid), "must not be empty"));
    }
    if uid.len() > UID_BYTES_MAX {
        errors.push(FieldError::too_long(path, UID_BYTES_MAX));
    }
}

/// The keys of user annotations need a domain.
pub(super) fn annotation_errors(annotations: Option<&Value>, path: &FieldPath, errors: &mut Errors) {
    let Some(annotations) = annotations.and_then(Value::as_object) else { return };
    for (key, _) in Map::iter(annotations) {
        let key = key.to_lowercase();
        let problems = names::qualified_name(&key);
        match (key.is_empty(), problems.is_empty()) {
            (true, _) => errors.push(FieldError::required(path, "")),
            (false, true) if !key.contains('/') => {
                let why = "must be a domain-prefixed key (such as \"acme.io/foo\")";
                errors.push(FieldError::invalid(path, &Value::from(key), why));
            }
            _ => invalid_each(path, &key, problems, errors),
        }
    }
    let bytes: usize = annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if bytes > ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError::too_long(path, ANNOTATIONS_BYTES_MAX));
    }
}

/// An `Invalid value` error that does not show the value.
fn unshown(path: &FieldPath, why: &str) -> FieldError {
    invalid_shown(path, String::new(), why)
}

/// Validates the PKCS #10 request, in base64, in the spec at `path`.
fn request_errors(encoded: &str, path: &FieldPath, errors: &mut Errors) {
    let der = STANDARD.decode(encoded).unwrap_or_default();
    let path = &path.child("stubPKCS10Request");
    if der.len() > REQUEST_BYTES_MAX {
        return errors.push(FieldError::too_long(path, REQUEST_BYTES_MAX));
    }
    let parsed = request_pem::parse(&der).and_then(|request| Ok((RequestKey::of(&request)?, request)));
    let Ok((key, request)) = parsed else { return errors.push(unshown(path, "must be a valid PKCS#10 CSR")) };
    match key {
        RequestKey::Ecdsa(curve) if !["P-256", "P-384", "P-521"].contains(&curve) => {
            let (shown, why) = (format!("curve {curve}"), "elliptic public keys must use curve P256, P384, or P521");
            errors.push(FieldError::invalid(path, &Value::from(shown), why));
        }
        RequestKey::Rsa(bits) if ![3072, 4096].contains(&bits) => {
            let (shown, why) = (format!("{bits}-bit modulus"), "RSA keys must have modulus size 3072 or 4096");
            errors.push(FieldError::invalid(path, &Value::from(shown), why));
        }
        RequestKey::Other => {
            let why = "unknown public key type; supported types are Ed25519, ECDSA, and RSA";
            errors.push(unshown(path, why));
        }
        _ if request_pem::verify(&request).is_err() => errors.push(unshown(path, "invalid signature")),
        _ => {}
    }
}

fn is_in(status: &Value, kinds: &[&str]) -> bool {
    let holds = |condition: &Value| kinds.contains(&text(condition, "type")) && text(condition, "status") == "True";
    list(status, "conditions").iter().any(holds)
}

/// Validates a status, which is written only once, together with the condition that ends the request.
pub fn validate_status(new: &Value, old: &Value, release: Release) -> Errors {
    let path = FieldPath::new("status");
    let (status, before) = (new.get("status").unwrap_or(&Value::Null), old.get("status").unwrap_or(&Value::Null));
    if new.str_at(&["metadata", "uid"]) != old.str_at(&["metadata", "uid"]) {
        // the changed uid is reported elsewhere and is the only error
        return vec![];
    }
    let mut errors = condition_errors(status, &path);
    errors.extend(checks::condition_errors(status, &path, release));
    if !errors.is_empty() {
        return errors;
    }
    let why = if is_in(before, &FINAL) {
        (status != before).then_some("immutable after PodCertificateRequest is issued, denied, or failed")
    } else if is_in(status, &FINAL[1..]) {
        let others = ["certificateChain", "notBefore", "beginRefreshAt", "notAfter"];
        let has_others = others.iter().any(|name| is_set(status, name) && status.get(name) != Some(&Value::from("")));
        has_others
            .then_some("non-condition status fields must be empty when denying or failing the PodCertificateRequest")
    } else if is_in(status, &FINAL[..1]) {
        return issued_errors(status, old.get("spec").unwrap_or(&Value::Null), &path).err().unwrap_or_default();
    } else {
        let of = schema::shape::named("certificates.v1beta1.PodCertificateRequestStatus");
        (!schema::shape::same_fields(status, before, of, &[]))
            .then_some("status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"")
    };
    why.map(|why| unshown(&path, why)).into_iter().collect()
}

/// The errors in the types of conditions. In their paths, a dot precedes the index.
fn condition_errors(status: &Value, path: &FieldPath) -> Errors {
    let (mut errors, mut count) = (vec![], 0);
    for (i, condition) in list(status, "conditions").iter().enumerate() {
        let path = path.child("conditions").child(&format!("[{i}]"));
        let (kind, holds) = (text(condition, "type"), text(condition, "status"));
        if !FINAL.contains(&kind) {
            errors.push(FieldError::not_supported(&path.child("type"), &Value::from(kind), &FINAL));
            continue;
        }
        count += 1;
        if count > 1 {
            let why = "There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"";
            errors.push(FieldError::invalid(&path.child("type"), &Value::from(kind), why));
        }
        if holds != "True" {
            let holds = Value::from(holds);
            errors.push(named(FieldError::not_supported(&path.child("status"), &holds, &["True"]), &holds));
        }
    }
    errors
}

/// Checks the certificate of an issued request, its key and its times.
fn issued_errors(status: &Value, spec: &Value, path: &FieldPath) -> Result<(), Errors> {
    let chain = text(status, "certificateChain");
    let chain_path = path.child("certificateChain");
    let invalid = |why: &str| vec![FieldError::invalid(&chain_path, &Value::from(chain), why)];
    if chain.len() > CHAIN_BYTES_MAX {
        return Err(vec![FieldError::too_long(&chain_path, CHAIN_BYTES_MAX)]);
    }
    let blocks = pem::blocks(chain.as_bytes());
    let Some((leaf, rest)) = blocks.split_first() else {
        return Err(invalid("issued certificate chain must contain at least one certificate"));
    };
    if leaf.label != "CERTIFICATE" {
        return Err(invalid("issued certificate chain must consist entirely of CERTIFICATE PEM blocks"));
    }
    let leaf = certificate(&leaf.bytes).ok_or_else(|| invalid("leaf certificate does not parse as valid X.509"))?;
    let errors = name_errors(&leaf, &chain_path);
    if requested_key(spec).map_err(|error| vec![error])? != leaf.public_key().raw {
        return Err([errors, invalid("leaf certificate was not issued to the requested public key")].concat());
    }
    time_errors(status, &leaf, spec, path, errors)?;
    for block in rest {
        if block.label != "CERTIFICATE" {
            return Err(invalid("issued certificate chain must consist entirely of CERTFICATE PEM blocks"));
        }
        certificate(&block.bytes).ok_or_else(|| invalid("intermediate certificate does not parse as valid X.509"))?;
    }
    Ok(())
}

/// The public key for which a certificate is requested, in DER.
fn requested_key(spec: &Value) -> Result<Vec<u8>, FieldError> {
    let bytes = |name: &str| STANDARD.decode(text(spec, name)).unwrap_or_default();
    let (request, key) = (bytes("stubPKCS10Request"), bytes("pkixPublicKey"));
    let path = |name: &str| FieldPath::new("spec").child(name);
    if request.is_empty() && !key.is_empty() {
        let why = "must be a valid PKIX-serialized public key";
        return match pod_keys::parse(&key) {
            Some(info) => Ok(info.raw.to_vec()),
            None => Err(unshown(&path("pkixPublicKey"), why)),
        };
    }
    let parsed = request_pem::parse(&request);
    let requested = parsed.map_err(|_| unshown(&path("stubPKCS10Request"), "must be a valid PKCS#10 CSR"))?;
    Ok(requested.certification_request_info.subject_pki.raw.to_vec())
}

fn certificate(der: &[u8]) -> Option<X509Certificate<'_>> {
    X509Certificate::from_der(der).ok().filter(|(rest, _)| rest.is_empty()).map(|(_, certificate)| certificate)
}

/// The errors of the alternative names of a certificate.
fn name_errors(leaf: &X509Certificate<'_>, path: &FieldPath) -> Errors {
    let mut errors = vec![];
    let alternatives = leaf.subject_alternative_name().ok().flatten();
    let alternatives = alternatives.map(|extension| &*extension.value.general_names).unwrap_or_default();
    for name in alternatives {
        let mut refuse = |name: &str, why: &str| errors.push(FieldError::invalid(path, &Value::from(name), why));
        match name {
            GeneralName::DNSName(name) => {
                if name.is_empty() {
                    refuse(name, "leaf certificate should not contain empty DNSName");
                }
                if name.contains("..") {
                    refuse(name, "leaf certificate's DNSName should not contain '..'");
                }
                if name.starts_with('.') || name.ends_with('.') {
                    refuse(name, "leaf certificate's DNSName should not start or end with '.'");
                }
            }
            GeneralName::RFC822Name(name) => {
                let is_address = name.rsplit_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty());
                if !is_address {
                    refuse(name, "leaf certificate should not contain invalid EmailAddress");
                }
            }
            _ => {}
        }
    }
    errors
}

/// Checks the times in a status against those of its certificate. `errors` holds the errors found so far.
fn time_errors(
    status: &Value,
    leaf: &X509Certificate<'_>,
    spec: &Value,
    path: &FieldPath,
    mut errors: Errors,
) -> Result<(), Errors> {
    const SAME: &str = "must be present and consistent with the issued certificate";
    const WITHIN: &str = "must be present and in the range [notbefore+10min, notafter-10min]";
    for (name, why) in [("notBefore", SAME), ("notAfter", SAME), ("beginRefreshAt", WITHIN)] {
        if text(status, name).is_empty() {
            errors.push(FieldError::required(&path.child(name), why));
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let at = |name: &str| parse_rfc3339(text(status, name)).map_or(0, |(seconds, _)| seconds);
    let wrong = |name: &str, why: &str| {
        Err(vec![FieldError::invalid(&path.child(name), &Value::from(text(status, name)), why)])
    };
    let (start, end) = (leaf.validity().not_before.timestamp(), leaf.validity().not_after.timestamp());
    if at("notBefore") != start {
        return wrong("notBefore", "must be set to the NotBefore time encoded in the leaf certificate");
    }
    if (start - clock::now_seconds()).abs() >= START_SECONDS {
        return wrong("notBefore", "must be set to within 5 minutes of kube-apiserver's current time");
    }
    if at("notAfter") != end {
        return wrong("notAfter", "must be set to the NotAfter time encoded in the leaf certificate");
    }
    let lifetime = end - start;
    let wrong_lifetime = |why: String| {
        let shown = Value::Int(lifetime.saturating_mul(1_000_000_000));
        Err(vec![FieldError::invalid(&path.child("certificateChain"), &shown, why)])
    };
    if lifetime < SECONDS_MIN {
        return wrong_lifetime("leaf certificate lifetime must be >= 1 hour".to_owned());
    }
    let max = spec.get("maxExpirationSeconds").and_then(Value::as_int).unwrap_or_default();
    if lifetime > max {
        return wrong_lifetime(format!("leaf certificate lifetime must be <= spec.maxExpirationSeconds ({max})"));
    }
    match at("beginRefreshAt") {
        refresh if refresh < start + RENEWAL_SECONDS => {
            wrong("beginRefreshAt", "must be at least 10 minutes after status.notBefore")
        }
        refresh if refresh > end - RENEWAL_SECONDS => {
            wrong("beginRefreshAt", "must be at least 10 minutes before status.notAfter")
        }
        _ => Ok(()),
    }
}
