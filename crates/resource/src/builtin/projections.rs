//! Files that the volumes of a Pod generate: those of the downward API and of projected volumes.

use std::collections::HashSet;

use machinery::Value;
use machinery::field::{FieldError, FieldPath};

use super::certificates::{bundle_name_problems, signer_errors};
use super::checks::{invalid_internal, is_set, items, list, selector_operators, text};
use super::downward::{container_amount, field_path};
use super::pod_certificates::{annotation_errors, seconds_max};
use super::rule_checks::{mode, own_path};

type Errors = Vec<FieldError>;

/// The fields of a Pod that a file may show, besides single labels and annotations.
const FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
const TOKEN_SECONDS: std::ops::RangeInclusive<i64> = 600..=1 << 32;
const CERTIFICATE_SECONDS_MIN: i64 = 3600;

/// Validates the files of a `downwardAPI` volume or source. The paths of errors are those of the source, not of the
/// file.
pub fn downward_files(source: &Value, path: &FieldPath, errors: &mut Errors) {
    for file in list(source, "items") {
        if text(file, "path").is_empty() {
            errors.push(FieldError::required(&path.child("path"), ""));
        }
        path_errors(file, "path", path, errors);
        match (file.get("fieldRef").filter(|it| !it.is_null()), file.get("resourceFieldRef").filter(|it| !it.is_null()))
        {
            (Some(reference), amount) => {
                let path_of_field = path.child("fieldRef");
                if text(reference, "fieldPath").is_empty() {
                    errors.push(FieldError::required(&path_of_field.child("fieldPath"), ""));
                }
                field_path(reference, &FIELDS, &path_of_field, errors);
                if amount.is_some() {
                    let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                    errors.push(FieldError::invalid(path, &Value::from("resource"), why));
                }
            }
            (None, Some(reference)) if text(reference, "containerName").is_empty() => {
                errors.push(FieldError::required(&path.child("resourceFieldRef").child("containerName"), ""));
            }
            (None, Some(reference)) => {
                let path = path.child("resourceFieldRef");
                if text(reference, "resource").is_empty() {
                    errors.push(FieldError::required(&path.child("resource"), ""));
                }
                container_amount(reference, &path, errors);
            }
            (None, None) => {
                errors.push(FieldError::required(path, "one of fieldRef and resourceFieldRef is required"));
            }
        }
        crate::builtin::at::at_path(file.get("mode").unwrap_or(&Value::Null), &path.child("mode"), errors, mode);
    }
}

/// Validates the sources of a projected volume, in which no path may be used twice.
pub fn projected(volume: &Value, path: &FieldPath, errors: &mut Errors) {
    let mut known = HashSet::new();
    for (source_path, source) in items(volume, "sources", path) {
        let mut paths = Paths { known: &mut known, volume: path };
        for name in ["secret", "configMap"] {
            let Some(given) = source.get(name) else { continue };
            if text(given, "name").is_empty() {
                errors.push(FieldError::required(&source_path.child(name).child("name"), ""));
            }
            for item in list(given, "items") {
                paths.add(text(item, "path"), text(given, "name"), errors);
            }
        }
        if let Some(given) = source.get("downwardAPI") {
            downward_files(given, &source_path.child("downwardAPI"), errors);
            list(given, "items").iter().for_each(|item| paths.add(text(item, "path"), text(item, "path"), errors));
        }
        if let Some(given) = source.get("serviceAccountToken") {
            token(given, path, &source_path.child("serviceAccountToken"), errors);
        }
        if let Some(given) = source.get("clusterTrustBundle") {
            bundle(given, &source_path.child("clusterTrustBundle"), errors);
            paths.add_any(text(given, "path"), errors);
        }
        if let Some(given) = source.get("podCertificate") {
            certificate(given, &source_path.child("podCertificate"), &mut paths, errors);
        }
        const SOURCES: [&str; 6] =
            ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"];
        if SOURCES.iter().filter(|name| is_set(source, name)).count() > 1 {
            errors.push(FieldError::forbidden(&source_path, "may not specify more than 1 volume type per source"));
        }
    }
}

/// The paths that are used in a volume.
struct Paths<'a, 'v> {
    known: &'a mut HashSet<&'v str>,
    volume: &'a FieldPath,
}

impl<'v> Paths<'_, 'v> {
    /// Adds a path, and reports one that is used twice. Empty paths are ignored. The error shows `shown`.
    fn add(&mut self, path: &'v str, shown: &str, errors: &mut Errors) {
        if !path.is_empty() && !self.known.insert(path) {
            errors.push(FieldError::invalid(self.volume, &Value::from(shown), "conflicting duplicate paths"));
        }
    }

    /// As [`Paths::add`], but an empty path may not be repeated either.
    fn add_any(&mut self, path: &'v str, errors: &mut Errors) {
        if !self.known.insert(path) {
            errors.push(FieldError::invalid(self.volume, &Value::from(path), "conflicting duplicate paths"));
        }
    }
}

fn path_errors(file: &Value, name: &str, path: &FieldPath, errors: &mut Errors) {
    if let Some(given) = file.get(name).filter(|given| given.as_str().is_some_and(|text| !text.is_empty())) {
        crate::builtin::at::at_path(given, &path.child(name), errors, own_path);
    }
}

/// Validates a ServiceAccount token. Errors about its path have the path of the volume.
fn token(token: &Value, volume: &FieldPath, path: &FieldPath, errors: &mut Errors) {
    let place = path.child("expirationSeconds");
    match token.get("expirationSeconds").and_then(Value::as_int) {
        None => errors.push(FieldError::required(&place, "")),
        Some(seconds) if TOKEN_SECONDS.contains(&seconds) => {}
        Some(seconds) => {
            let is_short = seconds < *TOKEN_SECONDS.start();
            let bound = if is_short { "less than 10 minutes" } else { "larger than 2^32 seconds" };
            let why = format!("may not specify a duration {bound}");
            errors.push(FieldError::invalid(&place, &Value::Int(seconds), why));
        }
    }
    if text(token, "path").is_empty() {
        errors.push(FieldError::required(&volume.child("path"), ""));
    }
    path_errors(token, "path", volume, errors);
}

/// Validates a source of trust bundles, which selects them by name or by signer.
fn bundle(bundle: &Value, path: &FieldPath, errors: &mut Errors) {
    match (bundle.get("name").and_then(Value::as_str), bundle.get("signerName").and_then(Value::as_str)) {
        (Some(_), Some(_)) => {
            let why = "only one of name and signerName may be used";
            errors.push(invalid_internal(path, bundle, "core.ClusterTrustBundleProjection", why));
        }
        (Some(name), None) => {
            let place = path.child("name");
            if name.is_empty() {
                errors.push(FieldError::required(&place, "must be a valid object name"));
            }
            let signer = name.rsplit_once(':').map(|(signer, _)| signer.replace(':', "/")).unwrap_or_default();
            for problem in bundle_name_problems(name, &signer, false) {
                let why = format!("not a valid clustertrustbundlename: {problem}");
                errors.push(FieldError::invalid(&place, &Value::from(name), why));
            }
            if let Some(selector) = bundle.get("labelSelector") {
                let why = "labelSelector must be unset if name is specified";
                errors.push(invalid_internal(&path.child("labelSelector"), selector, "meta.v1.LabelSelector", why));
            }
        }
        (None, Some(signer)) => {
            let place = path.child("signerName");
            if signer.is_empty() {
                errors.push(FieldError::required(&place, "must be a valid signer name"));
            }
            signer_errors(signer, &place, errors);
            selector_operators(bundle.get("labelSelector"), &path.child("labelSelector"), errors);
        }
        (None, None) => errors.push(FieldError::required(path, "either name or signerName must be specified")),
    }
    if text(bundle, "path").is_empty() {
        errors.push(FieldError::required(&path.child("path"), ""));
    }
    path_errors(bundle, "path", path, errors);
}

/// Validates a certificate request that is made for the Pod.
fn certificate<'v>(request: &'v Value, path: &FieldPath, paths: &mut Paths<'_, 'v>, errors: &mut Errors) {
    let signer = text(request, "signerName");
    signer_errors(signer, &path.child("signerName"), errors);
    annotation_errors(request.get("userAnnotations"), &path.child("userAnnotations"), errors);
    let kind = text(request, "keyType");
    if !KEY_TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("keyType"), &Value::from(kind), &KEY_TYPES));
    }
    if let Some(seconds) = request.get("maxExpirationSeconds").and_then(Value::as_int) {
        let max = seconds_max(signer);
        let bound = match seconds {
            seconds if seconds < CERTIFICATE_SECONDS_MIN => Some(format!(">= {CERTIFICATE_SECONDS_MIN}")),
            seconds if seconds > max => Some(format!("<= {max}")),
            _ => None,
        };
        if let Some(bound) = bound {
            let why = format!("if provided, maxExpirationSeconds must be {bound}");
            errors.push(FieldError::invalid(&path.child("maxExpirationSeconds"), &Value::Int(seconds), why));
        }
    }
    let names = ["credentialBundlePath", "keyPath", "certificateChainPath"];
    for name in names {
        path_errors(request, name, path, errors);
        paths.add(text(request, name), text(request, name), errors);
    }
    if names.iter().all(|name| text(request, name).is_empty()) {
        let why = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.push(FieldError::required(path, why));
    }
}
