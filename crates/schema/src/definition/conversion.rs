//! The rules for `spec.conversion`.

use std::collections::HashSet;

use base64::engine::general_purpose::{GeneralPurpose, PAD};
use base64::{Engine, alphabet};
use machinery::url::Url;
use machinery::{Value, names as label};

use super::hoist::Hoisted;
use super::openapi::list;
use super::options::Options;
use crate::at::At;

const RECOGNIZED: [&str; 2] = ["v1", "v1beta1"];

pub(super) fn validate(conversion: At, spec: &Hoisted<'_>, options: &Options) {
    if !conversion.is_given() {
        return;
    }
    let strategy = conversion.field_or_empty("strategy");
    let is_unpruned = strategy.as_text() != "None" && spec.flag("preserveUnknownFields");
    strategy.invalid_if(is_unpruned, "must be None if spec.preserveUnknownFields is true");
    strategy.require_one_of(&["None", "Webhook"]);
    // upstream's internal version has the fields of `webhook` here
    let (config, versions) =
        (conversion.field("webhook.clientConfig"), conversion.field("webhook.conversionReviewVersions"));
    let (config, versions) = (config.with_name("webhookClientConfig"), versions.with_name("conversionReviewVersions"));
    if strategy.as_text() != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        config.forbid(detail);
        versions.forbidden_if(versions.items().len() > 0, detail);
        return;
    }
    match config.is_given() {
        true => client_config(config, options),
        false => config.required("required when strategy is set to Webhook"),
    }
    review_versions(versions, options);
}

fn client_config(config: At, options: &Options) {
    webhook_client(config);
    if !options.allow_invalid_ca_bundle {
        let bundle = config.field("caBundle");
        bundle.check_text_unless_empty(|bundle| ca_bundle_problem(bundle).into_iter().collect());
    }
}

/// Validates the URL or the service of a webhook.
pub fn webhook_client(config: At) {
    match (config.field_if_given("url"), config.field_if_given("service")) {
        (Some(url), None) => webhook_url(url),
        (None, Some(service)) => webhook_service(service),
        _ => config.required("exactly one of url or service is required"),
    }
}

fn webhook_url(at: At) {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match Url::parse(at.as_text()) {
        Ok(url) => url,
        Err(error) => return at.required(format!("url must be a valid URL: {error}{FORM}")),
    };
    let refuse = |value: &str, detail: &str| at.shown_as_text(value).invalid(detail);
    if url.scheme != "https" {
        refuse(&url.scheme, &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host.is_empty() {
        refuse("", &format!("host must be specified{FORM}"));
    }
    if let Some(user) = &url.user {
        refuse(user, "user information is not permitted in the URL");
    }
    if !url.fragment.is_empty() {
        refuse(&url.fragment, "fragments are not permitted in the URL");
    }
    if !url.query.is_empty() {
        refuse(&url.query, "query parameters are not permitted in the URL");
    }
}

/// Validates the service of a webhook. Upstream passes name and namespace in the wrong order, so the errors of each are
/// reported for the other.
fn webhook_service(service: At) {
    service.field("name").required_if(service.text("namespace").is_empty(), "");
    service.field("namespace").required_if(service.text("name").is_empty(), "");
    let port = service.field_or_zero("port");
    let is_port = (1..=65535).contains(&port.value.as_int().unwrap_or_default());
    port.invalid_if(!is_port, "port is not valid: must be between 1 and 65535, inclusive");
    service.field("path").check_text_unless_empty(service_path);
}

fn service_path(path: &str) -> Vec<String> {
    match path {
        "/" => return vec![],
        "//" => return vec!["segment[0] may not be empty".to_owned()],
        _ => {}
    }
    let mut problems = vec![];
    if !path.starts_with('/') {
        problems.push("must start with a '/'".to_owned());
    }
    let mut chars = path.chars();
    let first = chars.next();
    // kube-apiserver removes the first byte, which may be only a part of a character
    let steps = if first.is_some_and(|first| !first.is_ascii()) { path } else { chars.as_str() };
    for (i, step) in steps.strip_suffix('/').unwrap_or(steps).split('/').enumerate() {
        match step {
            "" => problems.push(format!("segment[{i}] may not be empty")),
            _ => problems.extend(label::dns1123_subdomain(step).iter().map(|why| format!("segment[{i}]: {why}"))),
        }
    }
    problems
}

fn review_versions(versions: At, options: &Options) {
    if versions.items().len() == 0 {
        return versions.required("");
    }
    let mut known = HashSet::new();
    for version in versions.items() {
        match known.insert(version.as_text()) {
            true => version.check_text(label::dns1035_label),
            false => version.invalid("duplicate version"),
        }
    }
    let listed = versions.value.as_array().unwrap_or_default();
    if options.require_recognized_review_version && !is_any_recognized(listed) {
        versions.invalid(format!("must include at least one of {}", RECOGNIZED.join(", ")));
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
            // as in Go, a block without a body is one, of no bytes
            if body.is_empty() || crate::format::is_base64(&body) {
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
