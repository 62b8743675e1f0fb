//! Access reviews and token reviews: create is their only verb, and they are not stored.

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, names};

use super::checks::{entries, invalid_each, invalid_shown, items, list, operator_errors, text};
use crate::limits;

/// Whether an object reference of a TokenRequest refers to a webhook configuration.
fn is_webhook(reference: &Value) -> bool {
    matches!(reference.str_at(&["kind"]), "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration")
        && reference.str_at(&["apiVersion"]) == "admissionregistration.k8s.io/v1"
}

pub fn validate_request(request: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("spec");
    let spec = request.get("spec").unwrap_or(&Value::Null);
    let path_of_attestations = path.child("attestations");
    let attestations = spec.get("attestations").filter(|value| value.as_object().is_some_and(|map| !map.is_empty()));
    if !spec.get("boundObjectRef").is_some_and(is_webhook) {
        let why = "attestations may only be specified with a webhook bound object reference";
        let refused = attestations.map(|given| FieldError::invalid(&path_of_attestations, given, why));
        // upstream reports only this error
        return refused.map_or_else(|| expiration_error(spec, &path).into_iter().collect(), |error| vec![error]);
    }
    let mut errors: Vec<FieldError> = expiration_error(spec, &path).into_iter().collect();
    if list(spec, "audiences").len() != 1 {
        let audiences = spec.get("audiences").unwrap_or(&Value::Null);
        let why = "must be length 1 when bound to a webhook config";
        errors.push(FieldError::invalid(&path.child("audiences"), audiences, why));
    }
    errors.extend(attestation_errors(attestations, &path_of_attestations));
    errors
}

fn expiration_error(spec: &Value, path: &FieldPath) -> Option<FieldError> {
    let seconds = spec.get("expirationSeconds").and_then(Value::as_int).unwrap_or_default();
    let why = match seconds {
        ..limits::TOKEN_SECONDS_MIN => "may not specify a duration less than 10 minutes",
        limits::TOKEN_SECONDS_MIN..=limits::TOKEN_SECONDS_MAX => return None,
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    Some(FieldError::invalid(&path.child("expirationSeconds"), &Value::Int(seconds), why))
}

/// The attestations of a token for a webhook must name exactly one API group that the webhook may review.
fn attestation_errors(attestations: Option<&Value>, path: &FieldPath) -> Vec<FieldError> {
    const KEY: &str = "admissionReviewAPIGroups";
    let given = attestations.and_then(Value::as_object).map(|map| map.iter().collect::<Vec<_>>()).unwrap_or_default();
    let [(key, values)] = given.as_slice() else {
        let why = "webhook bound requests require exactly one admissionReviewAPIGroups attestation";
        return vec![FieldError::invalid(path, attestations.unwrap_or(&Value::Null), why)];
    };
    let path = path.key(key);
    if key.as_str() != KEY {
        return vec![FieldError::not_supported(&path, &Value::from(*key), &[KEY])];
    }
    let [group] = values.as_array().unwrap_or_default() else {
        return vec![FieldError::invalid(&path, values, "must specify a single value")];
    };
    let path = path.index(0);
    match group.as_str().unwrap_or_default() {
        "" => vec![FieldError::invalid(&path, group, "may not be an empty string")],
        "*" => vec![],
        name => {
            let wrong = names::dns1123_subdomain(name).into_iter();
            wrong
                .map(|why| FieldError::invalid(&path, group, format!("must specify a valid API Group: {why}")))
                .collect()
        }
    }
}

/// Go prints this struct of a path and a verb by its Go field names, since it has no JSON names.
fn shown_path(attributes: &Value) -> Value {
    [("Path", Value::from(text(attributes, "path"))), ("Verb", Value::from(text(attributes, "verb")))].into()
}

/// Whose access a review is about.
#[derive(PartialEq, Eq)]
pub enum Subject {
    /// The user who sends the review.
    Requester,
    /// The user and groups in the spec.
    Named,
}

pub fn validate(review: &Value, subject: Subject, release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, spec) = (FieldPath::new("spec"), review.get("spec").unwrap_or(&Value::Null));
    let resource = spec.get("resourceAttributes").filter(|value| !value.is_null());
    let url = spec.get("nonResourceAttributes").filter(|value| !value.is_null());
    errors.extend(attributes_error(resource, url, &path, release));
    if subject == Subject::Named && text(spec, "user").is_empty() && list(spec, "groups").is_empty() {
        let why = "at least one of user or group must be specified";
        errors.push(FieldError::invalid(&path.child("user"), &Value::from(""), why));
    }
    if let Some(resource) = resource {
        selector_errors(resource, &path.child("resourceAttributes"), &mut errors);
    }
    metadata_errors(review, &mut errors);
    errors
}

/// The error of a review that does not ask for exactly one of a resource and a URL path.
fn attributes_error(
    resource: Option<&Value>,
    url: Option<&Value>,
    path: &FieldPath,
    release: Release,
) -> Option<FieldError> {
    const ONE: &str = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    let shown = url.map_or(Value::Null, shown_path);
    match (resource.is_some(), url.is_some()) {
        (true, true) | (false, false) if release >= Release::V1_37 => Some(FieldError::invalid(path, &shown, ONE)),
        (true, true) => {
            let why = "cannot be specified in combination with resourceAttributes";
            Some(FieldError::invalid(&path.child("nonResourceAttributes"), &shown, why))
        }
        (false, false) => Some(FieldError::invalid(&path.child("resourceAttributes"), &shown, ONE)),
        _ => None,
    }
}

/// The only kind of access review that has a namespace.
const LOCAL: &str = "LocalSubjectAccessReview";

/// The metadata of a review may only hold fields that the server sets.
fn metadata_errors(review: &Value, errors: &mut Vec<FieldError>) {
    let Some(metadata) = review.get("metadata") else { return };
    let own = |key: &str| key == "managedFields" || (key == "namespace" && review.str_at(&["kind"]) == LOCAL);
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    if entries(metadata, &[]).any(|(key, value)| !own(key) && is_set(value)) {
        let is_local = review.str_at(&["kind"]) == LOCAL;
        let why = if is_local { "must be empty except for namespace" } else { "must be empty" };
        let shown = machinery::types::published_json(metadata, "meta.v1.ObjectMeta");
        errors.push(invalid_shown(&FieldPath::new("metadata"), shown, why));
    }
}

pub fn validate_local(review: &Value, release: Release) -> Vec<FieldError> {
    let mut errors = validate(review, Subject::Named, release);
    let path = FieldPath::new("spec");
    let at = |name: &str| review.at(&["spec", name]).filter(|value| !value.is_null());
    if let Some(attributes) = at("resourceAttributes") {
        let namespace = text(attributes, "namespace");
        if namespace != review.str_at(&["metadata", "namespace"]) {
            let path = path.child("resourceAttributes").child("namespace");
            errors.push(FieldError::invalid(&path, &Value::from(namespace), "must match metadata.namespace"));
        }
    }
    if let Some(url) = at("nonResourceAttributes") {
        let why = "disallowed on this kind of request";
        errors.push(FieldError::invalid(&path.child("nonResourceAttributes"), &shown_path(url), why));
    }
    errors
}

fn selector_errors(attributes: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for name in ["fieldSelector", "labelSelector"] {
        let Some(selector) = attributes.get(name).filter(|value| !value.is_null()) else { continue };
        let path = path.child(name);
        let raw = text(selector, "rawSelector");
        match (raw.is_empty(), list(selector, "requirements").is_empty()) {
            (false, false) => {
                let why = "may not specified at the same time as requirements";
                errors.push(FieldError::invalid(&path.child("rawSelector"), &Value::from(raw), why));
            }
            (true, true) => {
                let why = format!("when {} is specified, requirements or rawSelector is required", path.as_str());
                errors.push(FieldError::required(&path.child("requirements"), why));
            }
            _ => {}
        }
        for (path, requirement) in items(selector, "requirements", &path) {
            let key = text(requirement, "key");
            if name == "fieldSelector" && key.is_empty() {
                errors.push(FieldError::required(&path.child("key"), "must be specified"));
            }
            // newer clients may support more operators
            if ["In", "NotIn", "Exists", "DoesNotExist"].contains(&text(requirement, "operator")) {
                operator_errors(requirement, &path, errors);
            }
            if name == "labelSelector" {
                invalid_each(&path.child("key"), key, names::qualified_name(key), errors);
                for (path, value) in items(requirement, "values", &path) {
                    let value = value.as_str().unwrap_or_default();
                    invalid_each(&path, value, names::label_value(value), errors);
                }
            }
        }
    }
}
