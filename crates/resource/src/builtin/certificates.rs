//! CertificateSigningRequest and its approval; ClusterTrustBundle.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

use base::clock;
use base64::Engine as _;
use machinery::field::{FieldError, FieldPath};
use machinery::value::quote;
use machinery::{Release, Value, names};
use schema::apply::FieldSet;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use super::checks::{items, list, named, text};
use super::defaults::restore;
use super::{Part, pem};
use crate::rules::metadata;

pub const APPROVAL: Part = Part {
    prepare: approve,
    validate: |at| at.run_part(validate_approval),
    reset: Some(|| &APPROVAL_RESETS),
    ..Part::PLAIN
};

static APPROVAL_RESETS: LazyLock<FieldSet> =
    LazyLock::new(|| FieldSet::of_fields(&[&["spec"], &["status", "certificate"]]));

/// The spec of a request is immutable, so managedFields do not track it.
pub fn resets() -> &'static FieldSet {
    static RESETS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[&["spec"], &["status"]]));
    &RESETS
}

/// Conditions in the status have no owner.
pub fn status_resets() -> &'static FieldSet {
    static RESETS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[&["spec"], &["status", "conditions"]]));
    &RESETS
}

/// The conditions that only the subresource `approval` may add or remove.
const DECIDED: [&str; 2] = ["Approved", "Denied"];
/// The conditions that must have the status True and cannot be removed.
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Keeps the spec, which is immutable.
pub fn prepare(request: &mut Value, old: Option<&Value>) {
    if let Some(spec) = old.and_then(|old| old.get("spec")) {
        request.set_at(&["spec"], spec.clone());
    }
}

/// The subresource `approval` writes only conditions.
fn approve(request: &mut Value, old: &Value) {
    set_times(request, old);
    let given = request.clone();
    restore(request, old, &["spec"]);
    restore(request, old, &["status"]);
    restore(request, &given, &["status", "conditions"]);
    metadata::restore_system_fields(request, old);
}

/// The subresource `status` does not write decisions, which belong to `approval`.
pub fn prepare_status(request: &mut Value, old: &Value) {
    for decision in ["Approved", "Denied"] {
        keep_decisions(request, old, decision);
    }
    set_times(request, old);
}

/// Restores the stored conditions of the type `decision`. If their number has changed, they stay as requested, and
/// validation rejects them.
fn keep_decisions(request: &mut Value, old: &Value, decision: &str) {
    let is_decision = |condition: &Value| text(condition, "type") == decision;
    let before = old.get("status").map(|status| list(status, "conditions")).unwrap_or_default();
    let before: Vec<&Value> = before.iter().filter(|condition| is_decision(condition)).collect();
    let conditions = request.get_mut("status").and_then(|status| status.get_mut("conditions"));
    let conditions = conditions.and_then(Value::as_array_mut).into_iter().flatten();
    let given: Vec<&mut Value> = conditions.filter(|condition| is_decision(condition)).collect();
    if given.len() == before.len() {
        given.into_iter().zip(before).for_each(|(given, before)| *given = before.clone());
    }
}

/// Sets the missing times of conditions. A condition keeps its transition time as long as its status does not change.
fn set_times(request: &mut Value, old: &Value) {
    let now = clock::now_rfc3339();
    let is_unset = |condition: &Value, name: &str| condition.get(name).is_none_or(Value::is_null);
    let mut transition_times = HashMap::new();
    for condition in old.get("status").map(|status| list(status, "conditions")).unwrap_or_default() {
        if !is_unset(condition, "lastTransitionTime") {
            let key = (text(condition, "type"), text(condition, "status"));
            transition_times.entry(key).or_insert(text(condition, "lastTransitionTime"));
        }
    }
    let conditions = request.get_mut("status").and_then(|status| status.get_mut("conditions"));
    for condition in conditions.and_then(Value::as_array_mut).into_iter().flatten() {
        if is_unset(condition, "lastUpdateTime") {
            condition.set_at(&["lastUpdateTime"], Value::from(now.as_str()));
        }
        if is_unset(condition, "lastTransitionTime") {
            let since = transition_times.get(&(text(condition, "type"), text(condition, "status")));
            let since = Value::from(since.copied().unwrap_or(&now));
            condition.set_at(&["lastTransitionTime"], since);
        }
    }
}

pub fn validate(request: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, spec) = (FieldPath::new("spec"), request.get("spec").unwrap_or(&Value::Null));
    let request_text = base64::engine::general_purpose::STANDARD.decode(text(spec, "request")).unwrap_or_default();
    if let Err(why) = super::request_pem::check(&request_text) {
        let shown = spec.get("request").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&path.child("request"), &shown, why));
    }
    let mut known = HashSet::new();
    if list(spec, "usages").is_empty() {
        errors.push(FieldError::required(&path.child("usages"), ""));
    }
    for (path, usage) in items(spec, "usages", &path) {
        if !usage.as_str().is_some_and(|usage| USAGES.contains(&usage)) {
            errors.push(FieldError::not_supported(&path, usage, &USAGES));
        }
        if !known.insert(usage.as_str()) {
            errors.push(FieldError::duplicate(&path, usage));
        }
    }
    let signer = text(spec, "signerName");
    if signer == "kubernetes.io/legacy-unknown" {
        let why = "the legacy signerName is not allowed via this API version";
        errors.push(FieldError::invalid(&path.child("signerName"), &Value::from(signer), why));
    } else {
        signer_errors(signer, &path.child("signerName"), &mut errors);
    }
    if let Some(seconds) = spec.get("expirationSeconds").and_then(Value::as_int).filter(|seconds| *seconds < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::invalid(&path.child("expirationSeconds"), &Value::Int(seconds), why));
    }
    errors
}

const DOMAIN_BYTES_MAX: usize = 253;
/// The size of a domain, a slash, a namespace, a dot and a name.
const SIGNER_BYTES_MAX: usize = DOMAIN_BYTES_MAX + 1 + 63 + 1 + 253;

/// The name of a signer is a domain and a path.
pub(super) fn signer_errors(signer: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const FORM: &str = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
    let invalid = |why: &str| FieldError::invalid(path, &Value::from(signer), why);
    if signer.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    let [domain, name] = signer.split('/').collect::<Vec<_>>()[..] else { return errors.push(invalid(FORM)) };
    if domain.len() > DOMAIN_BYTES_MAX {
        errors.push(FieldError::too_long(path, DOMAIN_BYTES_MAX));
    }
    part_errors(domain, names::dns1123_label, path, errors);
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(path, &Value::from(domain), why));
    }
    part_errors(name, names::dns1123_subdomain, path, errors);
    if signer.len() > SIGNER_BYTES_MAX {
        errors.push(FieldError::too_long(path, SIGNER_BYTES_MAX));
    }
}

/// Reports the problems of the first invalid label in a part of the name of a signer.
fn part_errors(part: &str, problems: fn(&str) -> Vec<String>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let found = part.split('.').map(|label| (label, problems(label))).find(|(_, problems)| !problems.is_empty());
    let (label, problems) = found.unwrap_or_default();
    for problem in problems {
        let why = format!("validating label {}: {problem}", quote(label));
        errors.push(FieldError::invalid(path, &Value::from(part), why));
    }
}

fn of_kind<'a>(request: &'a Value, kind: &str) -> Vec<&'a Value> {
    let conditions = request.get("status").map(|status| list(status, "conditions")).unwrap_or_default();
    conditions.iter().filter(|condition| text(condition, "type") == kind).collect()
}

fn condition_errors(request: &Value, errors: &mut Vec<FieldError>) {
    let (status, path) = (request.get("status").unwrap_or(&Value::Null), FieldPath::new("status"));
    let mut known = HashSet::new();
    for (path, condition) in items(status, "conditions", &path) {
        let kind = text(condition, "type");
        if kind.is_empty() {
            errors.push(FieldError::required(&path.child("type"), ""));
        }
        let allowed: &[&str] = if FINAL.contains(&kind) { &["True"] } else { &["False", "True", "Unknown"] };
        match text(condition, "status") {
            "" => errors.push(FieldError::required(&path.child("status"), "")),
            given if !allowed.contains(&given) => {
                let given = Value::from(given);
                errors.push(named(FieldError::not_supported(&path.child("status"), &given, allowed), &given));
            }
            _ => {}
        }
        let is_contradicted = match kind {
            "Approved" => known.contains("Denied"),
            "Denied" => known.contains("Approved"),
            _ => false,
        };
        if is_contradicted {
            let why = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(&FieldPath::new("status").child("conditions"), &Value::from(kind), why));
        }
        if !known.insert(kind) {
            errors.push(FieldError::duplicate(&path.child("type"), &Value::from(kind)));
        }
    }
}

fn removal_errors(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    for kind in FINAL {
        if of_kind(new, kind).len() < of_kind(old, kind).len() {
            let why = format!("updates may not remove a condition of type \"{kind}\"");
            errors.push(FieldError::forbidden(&FieldPath::new("status").child("conditions"), &why));
        }
    }
}

fn validate_approval(new: &Value, old: &Value, release: Release) -> Vec<FieldError> {
    let mut errors = validate(new, Some(old), release);
    condition_errors(new, &mut errors);
    removal_errors(new, old, &mut errors);
    errors
}

/// The subresource `status` sets the certificate, once, and all conditions except those of `approval`.
pub fn validate_status(new: &Value, old: &Value, release: Release) -> Vec<FieldError> {
    let mut errors = validate(new, Some(old), release);
    condition_errors(new, &mut errors);
    let certificate = |object: &Value| object.str_at(&["status", "certificate"]).to_owned();
    let path = FieldPath::new("status").child("certificate");
    let is_new = certificate(new) != certificate(old);
    // an invalid certificate that an older server has stored may stay or be replaced
    if is_new && certificate_problem(&certificate(old)).is_none() {
        let problem = certificate_problem(&certificate(new));
        errors.extend(problem.map(|why| FieldError::invalid(&path, &Value::from("<certificate data>"), why)));
    }
    removal_errors(new, old, &mut errors);
    for kind in DECIDED {
        if of_kind(new, kind).len() > of_kind(old, kind).len() {
            let why = format!("updates may not add a condition of type \"{kind}\"");
            errors.push(FieldError::forbidden(&FieldPath::new("status").child("conditions"), &why));
        }
    }
    if !certificate(old).is_empty() && is_new {
        errors.push(FieldError::forbidden(&path, "updates may not modify existing certificate content"));
    }
    errors
}

/// Why a base64 text does not hold PEM blocks of issued certificates. The empty text is accepted.
fn certificate_problem(encoded: &str) -> Option<String> {
    if encoded.is_empty() {
        return None;
    }
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap_or_default();
    let blocks = pem::blocks(&bytes);
    if blocks.is_empty() {
        return Some("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    blocks.iter().find_map(|block| match block.label.as_str() {
        "CERTIFICATE" if block.has_headers => Some("no PEM block headers are permitted".to_owned()),
        "CERTIFICATE" if block.bytes.is_empty() => {
            Some("found CERTIFICATE PEM block containing 0 certificates".to_owned())
        }
        "CERTIFICATE" => (!are_certificates(&block.bytes)).then(|| "x509: malformed certificate".to_owned()),
        label => Some(format!("only CERTIFICATE PEM blocks are allowed, found {}", quote(label))),
    })
}

/// Whether the bytes are a sequence of DER certificates.
fn are_certificates(mut der: &[u8]) -> bool {
    while !der.is_empty() {
        match X509Certificate::from_der(der) {
            Ok((rest, _)) => der = rest,
            Err(_) => return false,
        }
    }
    true
}

/// The name of a ClusterTrustBundle is a subdomain. If the bundle has a signer, the name begins with that of the
/// signer.
pub(super) fn bundle_name_problems(name: &str, signer: &str, is_prefix: bool) -> Vec<String> {
    let checked = |name: &str| match is_prefix {
        true => names::dns1123_subdomain(&names::masked_prefix(name)),
        false => names::dns1123_subdomain(name),
    };
    if signer.is_empty() && name.contains(':') {
        return vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()];
    }
    if signer.is_empty() {
        return checked(name);
    }
    let prefix = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&prefix) {
        Some(rest) => checked(rest),
        None => vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}")],
    }
}

pub fn validate_bundle(bundle: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let path = FieldPath::new("spec");
    let signer = bundle.str_at(&["spec", "signerName"]);
    for field in ["generateName", "name"] {
        let (name, path) = (bundle.str_at(&["metadata", field]), FieldPath::new("metadata").child(field));
        let problems = bundle_name_problems(name, signer, field == "generateName").into_iter();
        let problems = problems.filter(|_| !name.is_empty());
        errors.extend(problems.map(|problem| FieldError::invalid(&path, &Value::from(name), problem)));
    }
    if !signer.is_empty() {
        signer_errors(signer, &path.child("signerName"), &mut errors);
    }
    let trusted = bundle.str_at(&["spec", "trustBundle"]);
    if old.is_none_or(|old| old.str_at(&["spec", "trustBundle"]) != trusted) {
        anchor_errors(trusted, &path.child("trustBundle"), &mut errors);
    }
    errors
}

/// Trust anchors must be PEM blocks with CA certificates, without repetitions.
fn anchor_errors(trusted: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const BYTES_MAX: usize = 1024 * 1024;
    if trusted.len() > BYTES_MAX {
        return errors.push(FieldError::too_long(path, BYTES_MAX));
    }
    let invalid = |why: String| FieldError::invalid(path, &Value::from("<value omitted>"), why);
    let blocks = pem::blocks(trusted.as_bytes());
    let problems: Vec<String> = blocks.iter().enumerate().filter_map(|(i, block)| anchor_problem(i, block)).collect();
    if !problems.is_empty() {
        return errors.extend(problems.into_iter().map(invalid));
    }
    if blocks.is_empty() {
        errors.push(invalid("at least one trust anchor must be provided".to_owned()));
    }
    let mut places: BTreeMap<&[u8], Vec<String>> = BTreeMap::new();
    for (i, block) in blocks.iter().enumerate() {
        places.entry(&block.bytes).or_default().push(i.to_string());
    }
    for indices in places.into_values().filter(|indices| indices.len() > 1) {
        errors.push(invalid(format!("duplicate trust anchor (indices [{}])", indices.join(" "))));
    }
}

/// Why a PEM block is not a trust anchor; `i` is its index.
fn anchor_problem(i: usize, block: &pem::Block) -> Option<String> {
    if block.label != "CERTIFICATE" {
        return Some(format!("entry {i} has bad block type: {}", block.label));
    }
    if block.has_headers {
        return Some(format!("entry {i} has PEM block headers"));
    }
    let parsed = X509Certificate::from_der(&block.bytes).ok().filter(|(rest, _)| rest.is_empty());
    let Some((_, certificate)) = parsed else { return Some(format!("entry {i} does not parse as X.509")) };
    (!certificate.is_ca()).then(|| format!("entry {i} does not have the CA bit set"))
}
