//! Files that the volumes of a Pod generate: those of the downward API and of projected volumes.

use std::collections::HashSet;

use machinery::names;

use crate::certificates::pod_certificates::{annotations, seconds_max};
use crate::certificates::requests::{bundle_name_problems, signer};
use crate::core::downward::{container_amount, field_path};
use crate::rule_checks::{mode, own_path};
use resource::builtin::checks::selector_operators;
use schema::at::At;

/// The fields of a Pod that a file may show, besides single labels and annotations.
const FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
const TOKEN_SECONDS: std::ops::RangeInclusive<i64> = 600..=1 << 32;
const CERTIFICATE_SECONDS_MIN: i64 = 3600;

/// Validates the files of a `downwardAPI` volume or source. The paths of errors are those of the source, not of the
/// file.
pub fn downward_files(source: At) {
    for file in source.items_of("items") {
        downward_file(source.with_value(file.value));
    }
}

fn downward_file(file: At) {
    file.field("path").require_text("");
    path(file.field("path"));
    let (field, amount) = (file.field("fieldRef"), file.field("resourceFieldRef"));
    match (field.is_given(), amount.is_given()) {
        (true, has_amount) => {
            field.field("fieldPath").require_text("");
            field_path(field, &FIELDS);
            if has_amount {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                file.shown_as_text("resource").invalid(why);
            }
        }
        (false, true) if amount.text("containerName").is_empty() => amount.field("containerName").required(""),
        (false, true) => {
            amount.field("resource").require_text("");
            container_amount(amount);
        }
        (false, false) => file.required("one of fieldRef and resourceFieldRef is required"),
    }
    mode(file.field("mode"));
}

/// Validates the sources of a projected volume, in which no path may be used twice.
pub fn projected(volume: At) {
    let mut known = HashSet::new();
    for source in volume.items_of("sources") {
        let mut paths = Paths { known: &mut known, volume };
        for name in ["secret", "configMap"] {
            let Some(given) = source.field_if_given(name) else { continue };
            given.field("name").require_text("");
            given.items_of("items").for_each(|item| paths.add(item.text("path"), given.text("name")));
        }
        if let Some(given) = source.field_if_given("downwardAPI") {
            downward_files(given);
            given.items_of("items").for_each(|item| paths.add(item.text("path"), item.text("path")));
        }
        source.field_if_given("serviceAccountToken").into_iter().for_each(|given| token(given, volume));
        if let Some(given) = source.field_if_given("clusterTrustBundle") {
            bundle(given);
            paths.add_any(given.text("path"));
        }
        source.field_if_given("podCertificate").into_iter().for_each(|given| certificate(given, &mut paths));
        const SOURCES: [&str; 6] =
            ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"];
        if SOURCES.iter().filter(|name| source.has(name)).count() > 1 {
            source.forbidden("may not specify more than 1 volume type per source");
        }
    }
}

/// The paths that are used in a volume.
struct Paths<'a, 'v> {
    known: &'a mut HashSet<&'v str>,
    volume: At<'a, 'v>,
}

impl<'v> Paths<'_, 'v> {
    /// Adds a path, and reports one that is used twice. Empty paths are ignored. The error shows `shown`.
    fn add(&mut self, path: &'v str, shown: &str) {
        if !path.is_empty() && !self.known.insert(path) {
            self.volume.shown_as_text(shown).invalid("conflicting duplicate paths");
        }
    }

    /// As [`Paths::add`], but an empty path may not be repeated either.
    fn add_any(&mut self, path: &'v str) {
        self.volume.shown_as_text(path).invalid_if(!self.known.insert(path), "conflicting duplicate paths");
    }
}

fn path(at: At) {
    if !at.as_text().is_empty() {
        own_path(at);
    }
}

/// Validates a ServiceAccount token. Errors about its path have the path of the volume.
fn token(token: At, volume: At) {
    let seconds = token.field("expirationSeconds");
    match seconds.value.as_int() {
        None => seconds.required(""),
        Some(given) if TOKEN_SECONDS.contains(&given) => {}
        Some(given) if given < *TOKEN_SECONDS.start() => {
            seconds.invalid("may not specify a duration less than 10 minutes");
        }
        Some(_) => seconds.invalid("may not specify a duration larger than 2^32 seconds"),
    }
    let token = volume.with_value(token.value);
    token.field("path").require_text("");
    path(token.field("path"));
}

/// Validates a source of trust bundles, which selects them by name or by signer.
fn bundle(bundle: At) {
    let (name, selector) = (bundle.field("name"), bundle.field("labelSelector"));
    match (name.is_given(), bundle.field_if_given("signerName")) {
        (true, Some(_)) => bundle
            .shown_as_go("core.ClusterTrustBundleProjection")
            .invalid("only one of name and signerName may be used"),
        (true, None) => {
            name.require_text("must be a valid object name");
            let signer = name.as_text().rsplit_once(':').map_or(String::new(), |(signer, _)| signer.replace(':', "/"));
            for problem in bundle_name_problems(name.as_text(), &signer, names::dns1123_subdomain) {
                name.invalid(format!("not a valid clustertrustbundlename: {problem}"));
            }
            if selector.is_given() {
                selector
                    .shown_as_go("meta.v1.LabelSelector")
                    .invalid("labelSelector must be unset if name is specified");
            }
        }
        (false, Some(given)) => {
            given.require_text("must be a valid signer name");
            signer(given);
            selector_operators(selector);
        }
        (false, None) => bundle.required("either name or signerName must be specified"),
    }
    bundle.field("path").require_text("");
    path(bundle.field("path"));
}

/// Validates a certificate request that is made for the Pod.
fn certificate<'v>(request: At<'_, 'v>, paths: &mut Paths<'_, 'v>) {
    signer(request.field("signerName"));
    annotations(request.field("userAnnotations"));
    request.field_or_empty("keyType").one_of(&KEY_TYPES);
    let seconds = request.field("maxExpirationSeconds");
    let max = seconds_max(request.text("signerName"));
    match seconds.value.as_int() {
        Some(..CERTIFICATE_SECONDS_MIN) => {
            seconds.invalid(format!("if provided, maxExpirationSeconds must be >= {CERTIFICATE_SECONDS_MIN}"));
        }
        Some(given) if given > max => {
            seconds.invalid(format!("if provided, maxExpirationSeconds must be <= {max}"));
        }
        _ => {}
    }
    let names = ["credentialBundlePath", "keyPath", "certificateChainPath"];
    for name in names {
        path(request.field(name));
        paths.add(request.text(name), request.text(name));
    }
    if names.iter().all(|name| request.text(name).is_empty()) {
        request.required("specify at least one of credentialBundlePath, keyPath, and certificateChainPath");
    }
}
