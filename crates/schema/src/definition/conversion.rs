//! The rules for `spec.conversion`.

use std::collections::HashSet;

use base64::engine::general_purpose::{GeneralPurpose, PAD};
use base64::{Engine, alphabet};
use machinery::url::Url;
use machinery::{FieldError, FieldPath, Value, names as label};

use super::hoist::Hoisted;
use super::openapi::{list, one_of, text};
use super::options::Options;

const RECOGNIZED: [&str; 2] = ["v1", "v1beta1"];

pub(super) fn validate(spec: &Hoisted<'_>, options: &Options, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(conversion) = spec.spec.get("conversion") else { return };
    let strategy = text(conversion, "strategy");
    if strategy != "None" && spec.flag("preserveUnknownFields") {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(&path.child("strategy"), &Value::from(strategy), detail));
    }
    one_of(strategy, &["None", "Webhook"], &path.child("strategy"), errors);
    let config = conversion.at(&["webhook", "clientConfig"]);
    let versions = conversion.at(&["webhook", "conversionReviewVersions"]).and_then(Value::as_array);
    let versions = versions.unwrap_or_default();
    let (config_path, versions_path) = (path.child("webhookClientConfig"), path.child("conversionReviewVersions"));
    if strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            errors.push(FieldError::forbidden(&config_path, detail));
        }
        if !versions.is_empty() {
            errors.push(FieldError::forbidden(&versions_path, detail));
        }
        return;
    }
    match config {
        None => errors.push(FieldError::required(&config_path, "required when strategy is set to Webhook")),
        Some(config) => client_config(config, options, &config_path, errors),
    }
    review_versions(versions, options, &versions_path, errors);
}

fn client_config(config: &Value, options: &Options, path: &FieldPath, errors: &mut Vec<FieldError>) {
    match (config.get("url").and_then(Value::as_str), config.get("service")) {
        (Some(url), None) => webhook_url(url, &path.child("url"), errors),
        (None, Some(service)) => webhook_service(service, &path.child("service"), errors),
        _ => errors.push(FieldError::required(path, "exactly one of url or service is required")),
    }
    let bundle = text(config, "caBundle");
    if !bundle.is_empty()
        && !options.allow_invalid_ca_bundle
        && let Some(problem) = ca_bundle_problem(bundle)
    {
        errors.push(FieldError::invalid(&path.child("caBundle"), &Value::from(bundle), problem));
    }
}

/// Validates the URL of a webhook.
pub fn webhook_url(text: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => {
            errors.push(FieldError::required(path, format!("url must be a valid URL: {error}{FORM}")));
            return;
        }
    };
    let mut refuse = |value: &str, detail: String| errors.push(FieldError::invalid(path, &Value::from(value), detail));
    if url.scheme != "https" {
        refuse(&url.scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host.is_empty() {
        refuse("", format!("host must be specified{FORM}"));
    }
    if let Some(user) = &url.user {
        refuse(user, "user information is not permitted in the URL".to_owned());
    }
    if !url.fragment.is_empty() {
        refuse(&url.fragment, "fragments are not permitted in the URL".to_owned());
    }
    if !url.query.is_empty() {
        refuse(&url.query, "query parameters are not permitted in the URL".to_owned());
    }
}

/// Validates the service of a webhook. Upstream passes name and namespace in the wrong order, so the errors of each are
/// reported for the other.
pub fn webhook_service(service: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if text(service, "namespace").is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    if text(service, "name").is_empty() {
        errors.push(FieldError::required(&path.child("namespace"), ""));
    }
    let port = service.get("port").cloned().unwrap_or(Value::Int(0));
    if !(1..=65535).contains(&port.as_int().unwrap_or_default()) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&path.child("port"), &port, detail));
    }
    if let Some(value) = service.get("path").and_then(Value::as_str) {
        service_path(value, &path.child("path"), errors);
    }
}

fn service_path(value: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut refuse = |detail: String| errors.push(FieldError::invalid(path, &Value::from(value), detail));
    match value {
        "" | "/" => return,
        "//" => return refuse("segment[0] may not be empty".to_owned()),
        _ => {}
    }
    if !value.starts_with('/') {
        refuse("must start with a '/'".to_owned());
    }
    let mut chars = value.chars();
    let first = chars.next();
    // kube-apiserver removes the first byte, which may be only a part of a character
    let steps = if first.is_some_and(|first| !first.is_ascii()) { value } else { chars.as_str() };
    for (i, step) in steps.strip_suffix('/').unwrap_or(steps).split('/').enumerate() {
        if step.is_empty() {
            refuse(format!("segment[{i}] may not be empty"));
            continue;
        }
        label::dns1123_subdomain(step).into_iter().for_each(|problem| refuse(format!("segment[{i}]: {problem}")));
    }
}

fn review_versions(versions: &[Value], options: &Options, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if versions.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut known = HashSet::new();
    for (i, version) in versions.iter().enumerate() {
        if !known.insert(version.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid(&path.index(i), version, "duplicate version"));
            continue;
        }
        let problems = label::dns1035_label(version.as_str().unwrap_or_default());
        crate::metadata::invalid_each(&path.index(i), version, problems, errors);
    }
    if options.require_recognized_review_version && !is_any_recognized(versions) {
        let detail = format!("must include at least one of {}", RECOGNIZED.join(", "));
        errors.push(FieldError::invalid(path, &Value::Array(versions.to_vec()), detail));
    }
}

fn is_any_recognized(versions: &[Value]) -> bool {
    versions.iter().filter_map(Value::as_str).any(|v| RECOGNIZED.contains(&v))
}

pub(super) fn has_recognized_version_or_none(spec: &Hoisted<'_>) -> bool {
    let webhook = spec.spec.at(&["conversion", "webhook"]).unwrap_or(&Value::Null);
    let versions = list(webhook, "conversionReviewVersions");
    versions.is_empty() || is_any_recognized(versions)
}

pub(super) fn has_invalid_ca_bundle(spec: &Hoisted<'_>) -> bool {
    let bundle = spec.spec.str_at(&["conversion", "webhook", "clientConfig", "caBundle"]);
    !bundle.is_empty() && ca_bundle_problem(bundle).is_some()
}

/// The problem of a base64-encoded CA bundle, in which at least one PEM block must be a certificate.
pub(super) fn ca_bundle_problem(bundle: &str) -> Option<String> {
    let bytes = decode_base64(bundle);
    let text = String::from_utf8_lossy(&bytes);
    let (mut rest, mut problem) = (&*text, None);
    while !rest.is_empty() {
        let Some(block) = PemBlock::first(rest) else {
            problem.get_or_insert("unable to parse bytes as PEM block");
            break;
        };
        rest = block.rest;
        if block.kind != "CERTIFICATE" {
            continue;
        }
        if looks_like_certificate(&block.bytes) {
            return None;
        }
        problem.get_or_insert("failed to parse certificate: x509: malformed certificate");
    }
    let problem = problem.unwrap_or("no valid certificate authority data seen");
    Some(format!("unable to load root certificates: {problem}"))
}

struct PemBlock<'a> {
    /// The type of the block, such as `CERTIFICATE`.
    kind: &'a str,
    bytes: Vec<u8>,
    /// The text after the block.
    rest: &'a str,
}

impl PemBlock<'_> {
    /// The first block of a text whose body is base64. Other blocks are skipped.
    fn first(text: &str) -> Option<PemBlock<'_>> {
        let mut text = text;
        loop {
            let (_, from) = text.split_once("-----BEGIN ")?;
            let (kind, body) = from.split_once("-----")?;
            let (body, rest) = body.split_once(&format!("-----END {kind}-----"))?;
            let body: String = body.chars().filter(|c| !c.is_whitespace()).collect();
            if crate::format::is_base64(&body) {
                let rest = rest.trim_start_matches([' ', '\t', '\r']).trim_start_matches('\n');
                return Some(PemBlock { kind, bytes: decode_base64(&body), rest });
            }
            text = rest;
        }
    }
}

/// Whether the bytes are exactly one DER sequence that starts with another sequence.
fn looks_like_certificate(der: &[u8]) -> bool {
    let Some((header, length)) = sequence(der) else { return false };
    header + length == der.len() && sequence(&der[header..]).is_some()
}

/// The lengths of the header and the content of a DER sequence.
fn sequence(der: &[u8]) -> Option<(usize, usize)> {
    if der.first() != Some(&0x30) {
        return None;
    }
    let first = usize::from(*der.get(1)?);
    if first < 0x80 {
        return Some((2, first));
    }
    let count = first & 0x7f;
    let bytes = der.get(2..2 + count).filter(|_| (1..=4).contains(&count))?;
    Some((2 + count, bytes.iter().fold(0, |n, b| n << 8 | usize::from(*b))))
}

/// The bytes of a text in standard base64; empty if it is invalid.
fn decode_base64(text: &str) -> Vec<u8> {
    /// Like Go's decoder, this ignores surplus bits after the last byte.
    const STANDARD: GeneralPurpose =
        GeneralPurpose::new(&alphabet::STANDARD, PAD.with_decode_allow_trailing_bits(true));
    STANDARD.decode(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks that are not base64 were skipped by recursion.
    #[test]
    fn blocks_that_are_not_base64_are_skipped() {
        let bundle = |blocks: &str| base64::engine::general_purpose::STANDARD.encode(blocks);
        let broken = "-----BEGIN A-----\n!\n-----END A-----\n";
        let good = "-----BEGIN CERTIFICATE-----\nMAIwAA==\n-----END CERTIFICATE-----\n";
        assert_eq!(ca_bundle_problem(&bundle(&format!("{}{good}", broken.repeat(100_000)))), None);
        let problem = ca_bundle_problem(&bundle(broken)).unwrap();
        assert_eq!(problem, "unable to load root certificates: unable to parse bytes as PEM block");
    }
}
