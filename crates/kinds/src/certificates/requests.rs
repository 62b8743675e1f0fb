//! CertificateSigningRequest and its approval; ClusterTrustBundle.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

use base::clock;
use base64::Engine as _;
use machinery::value::quote;
use machinery::{Release, Value, names};
use schema::apply::FieldSet;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use crate::certificates::pem;
use resource::builtin::Part;
use resource::builtin::checks::{list, text};
use resource::builtin::defaults::restore;
use resource::rules::metadata;
use schema::at::At;

pub const APPROVAL: Part = Part::PLAIN.prepare(approve).validate(validate_approval).reset(|| &APPROVAL_RESETS);

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
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
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

pub fn validate(at: At) {
    let spec = at.field("spec");
    let request = base64::engine::general_purpose::STANDARD.decode(spec.text("request")).unwrap_or_default();
    if let Err(why) = crate::certificates::request_pem::check(&request) {
        spec.field("request").invalid(why);
    }
    let mut known = HashSet::new();
    spec.field("usages").required_if(spec.list("usages").is_empty(), "");
    for usage in spec.items_of("usages") {
        usage.one_of(&USAGES);
        usage.unique(&mut known);
    }
    let name = spec.field("signerName");
    match name.as_text() {
        "kubernetes.io/legacy-unknown" => name.invalid("the legacy signerName is not allowed via this API version"),
        _ => signer(name),
    }
    spec.field("expirationSeconds").at_least(600, "may not specify a duration less than 600 seconds (10 minutes)");
}

const DOMAIN_BYTES_MAX: usize = 253;
/// The size of a domain, a slash, a namespace, a dot and a name.
const SIGNER_BYTES_MAX: usize = DOMAIN_BYTES_MAX + 1 + 63 + 1 + 253;

/// The name of a signer is a domain and a path.
pub fn signer(at: At) {
    if at.as_text().is_empty() {
        return at.required("");
    }
    let [domain, name] = at.as_text().split('/').collect::<Vec<_>>()[..] else {
        return at.invalid("must be a fully qualified domain and path of the form 'example.com/signer-name'");
    };
    if domain.len() > DOMAIN_BYTES_MAX {
        at.too_long(DOMAIN_BYTES_MAX);
    }
    signer_part(at, domain, names::dns1123_label);
    if !domain.contains('.') {
        at.shown_as_text(domain).invalid("should be a domain with at least two segments separated by dots");
    }
    signer_part(at, name, names::dns1123_subdomain);
    at.max_bytes(SIGNER_BYTES_MAX);
}

/// Reports the problems of the first invalid label in a part of the name of a signer.
fn signer_part(at: At, part: &str, problems: fn(&str) -> Vec<String>) {
    let found = part.split('.').map(|label| (label, problems(label))).find(|(_, problems)| !problems.is_empty());
    let (label, problems) = found.unwrap_or_default();
    for problem in problems {
        at.shown_as_text(part).invalid(format!("validating label {}: {problem}", quote(label)));
    }
}

/// The number of conditions of a type in a status.
fn count(status: &Value, kind: &str) -> usize {
    list(status, "conditions").iter().filter(|condition| text(condition, "type") == kind).count()
}

pub fn conditions(status: At) {
    let both = |status: &Value| DECIDED.iter().all(|kind| count(status, kind) > 0);
    let may_contradict = status.old.is_some_and(both);
    let mut known = HashSet::new();
    for condition in status.items_of("conditions") {
        let (kind, state) = (condition.field_or_empty("type"), condition.field("status"));
        kind.require_text("");
        let is_final = FINAL.contains(&kind.as_text());
        match state.as_text() {
            "" => state.required(""),
            _ if is_final => state.shown_as_json().one_of(&["True"]),
            _ => state.shown_as_json().one_of(&["False", "True", "Unknown"]),
        }
        let is_contradicted = match kind.as_text() {
            "Approved" => known.contains("Denied"),
            "Denied" => known.contains("Approved"),
            _ => false,
        };
        // both may stay where an earlier release has stored both
        if is_contradicted && !may_contradict && status.release() < Release::V1_37 {
            let why = "Approved and Denied conditions are mutually exclusive";
            status.field("conditions").shown_as_text(kind.as_text()).invalid(why);
        }
        kind.unique(&mut known);
    }
    if status.release() >= Release::V1_37 && both(status.value) && !may_contradict {
        let shown = DECIDED.map(|kind| format!("conditions[{{\"type\": {}}}]", quote(kind)));
        let quoted = shown.clone().map(|shown| format!("`{shown}`")).join(", ");
        let conditions = status.field("conditions");
        conditions
            .shown_as_text(&format!("{{{}}}", shown.join(", ")))
            .invalid(format!("must specify at most one of: {quoted}"));
    }
}

/// Reports conditions that an update wrongly removes or adds. `is_wrong` compares the new number of a type with the
/// old.
fn changed(status: At, kinds: &[&str], what: &str, is_wrong: fn(&usize, &usize) -> bool) {
    let before = status.old.unwrap_or(&Value::Null);
    for kind in kinds.iter().filter(|kind| is_wrong(&count(status.value, kind), &count(before, kind))) {
        let why = format!("updates may not {what} a condition of type \"{kind}\"");
        status.field("conditions").forbidden(why);
    }
}

fn validate_approval(at: At) {
    let status = at.field("status");
    validate(at);
    conditions(status);
    changed(status, &FINAL, "remove", usize::lt);
}

/// The subresource `status` sets the certificate, once, and all conditions except those of `approval`.
pub fn validate_status(at: At) {
    let status = at.field("status");
    validate(at);
    conditions(status);
    let certificate = status.field("certificate");
    let before = certificate.old_text();
    let is_new = certificate.as_text() != before;
    // an invalid certificate that an older server has stored may stay or be replaced
    if is_new && certificate_problem(before).is_none() {
        let problem = certificate_problem(certificate.as_text());
        problem.into_iter().for_each(|why| certificate.shown_as_text("<certificate data>").invalid(why));
    }
    changed(status, &FINAL, "remove", usize::lt);
    changed(status, &DECIDED, "add", usize::gt);
    certificate.forbidden_if(!before.is_empty() && is_new, "updates may not modify existing certificate content");
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
/// signer. `checked` returns the problems of the rest.
pub fn bundle_name_problems(name: &str, signer: &str, checked: fn(&str) -> Vec<String>) -> Vec<String> {
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

pub fn validate_bundle(at: At) {
    let (name_of_signer, trusted) = (at.field("spec.signerName"), at.field("spec.trustBundle"));
    let prefix: fn(&str) -> _ = |prefix| names::dns1123_subdomain(&names::masked_prefix(prefix));
    for (field, checked) in [("metadata.generateName", prefix), ("metadata.name", names::dns1123_subdomain)] {
        if !at.text(field).is_empty() {
            at.field(field).check_text(|name| bundle_name_problems(name, name_of_signer.as_text(), checked));
        }
    }
    if !name_of_signer.as_text().is_empty() {
        signer(name_of_signer);
    }
    if !trusted.is_update() || trusted.old_text() != trusted.as_text() {
        anchors(trusted);
    }
}

/// Trust anchors must be PEM blocks with CA certificates, without repetitions.
fn anchors(at: At) {
    const BYTES_MAX: usize = 1024 * 1024;
    if at.as_text().len() > BYTES_MAX {
        return at.too_long(BYTES_MAX);
    }
    let invalid = |why: String| at.shown_as_text("<value omitted>").invalid(why);
    let blocks = pem::blocks(at.as_text().as_bytes());
    let problems: Vec<String> = blocks.iter().enumerate().filter_map(|(i, block)| anchor_problem(i, block)).collect();
    if !problems.is_empty() {
        return problems.into_iter().for_each(invalid);
    }
    if blocks.is_empty() {
        invalid("at least one trust anchor must be provided".to_owned());
    }
    let mut places: BTreeMap<&[u8], Vec<String>> = BTreeMap::new();
    for (i, block) in blocks.iter().enumerate() {
        places.entry(&block.bytes).or_default().push(i.to_string());
    }
    for indices in places.into_values().filter(|indices| indices.len() > 1) {
        invalid(format!("duplicate trust anchor (indices [{}])", indices.join(" ")));
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
