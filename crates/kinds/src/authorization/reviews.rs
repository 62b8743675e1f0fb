//! Access reviews and token reviews: create is their only verb, and they are not stored.

use machinery::{Map, Release, Text, Value, names};

use crate::limits;
use resource::builtin::checks::{go_struct, operator};
use schema::at::At;

/// Whether an object reference of a TokenRequest refers to a webhook configuration.
fn is_webhook(reference: At) -> bool {
    matches!(reference.text("kind"), "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration")
        && reference.text("apiVersion") == "admissionregistration.k8s.io/v1"
}

pub fn validate_request(at: At) {
    let spec = at.field("spec");
    let (attestations, audiences) = (spec.field("attestations"), spec.field("audiences"));
    let has_attestations = spec.entries_of("attestations").next().is_some();
    if !is_webhook(spec.field("boundObjectRef")) {
        return match has_attestations {
            // upstream reports only this error
            true => attestations.invalid("attestations may only be specified with a webhook bound object reference"),
            false => expiration(spec.field_or_zero("expirationSeconds")),
        };
    }
    expiration(spec.field_or_zero("expirationSeconds"));
    audiences.invalid_if(audiences.items().len() != 1, "must be length 1 when bound to a webhook config");
    webhook_attestation(attestations);
}

fn expiration(seconds: At) {
    match seconds.value.as_int().unwrap_or_default() {
        ..limits::TOKEN_SECONDS_MIN => seconds.invalid("may not specify a duration less than 10 minutes"),
        limits::TOKEN_SECONDS_MIN..=limits::TOKEN_SECONDS_MAX => {}
        _ => seconds.invalid("may not specify a duration larger than 2^32 seconds"),
    }
}

/// The attestations of a token for a webhook must name exactly one API group that the webhook may review.
fn webhook_attestation(at: At) {
    const KEY: &str = "admissionReviewAPIGroups";
    let given: Vec<&str> = at.value.as_object().into_iter().flat_map(Map::keys).map(Text::as_str).collect();
    let [key] = given[..] else {
        let shown = if given.is_empty() { at.with_value(&Value::Null) } else { at };
        return shown.invalid("webhook bound requests require exactly one admissionReviewAPIGroups attestation");
    };
    let values = at.entry(key);
    if key != KEY {
        return values.shown_as_text(key).unsupported(&[KEY]);
    }
    if values.items().len() != 1 {
        return values.invalid("must specify a single value");
    }
    let group = values.item(0);
    match group.as_text() {
        "" => group.invalid("may not be an empty string"),
        "*" => {}
        name => {
            for why in names::dns1123_subdomain(name) {
                group.invalid(format!("must specify a valid API Group: {why}"));
            }
        }
    }
}

/// Go prints this struct of a path and a verb by its Go field names, since it has no JSON names.
fn shown_path(attributes: At) -> String {
    match attributes.is_given() {
        true => go_struct(
            &["Path", "Verb"].map(|name| (name, attributes.field_or_empty(&name.to_lowercase()).value.clone())),
        ),
        false => "null".to_owned(),
    }
}

/// Whose access a review is about.
#[derive(PartialEq, Eq)]
pub enum Subject {
    /// The user who sends the review.
    Requester,
    /// The user and groups in the spec.
    Named,
}

pub fn validate(review: At, subject: Subject) {
    let spec = review.field("spec");
    attributes(spec);
    if subject == Subject::Named && spec.text("user").is_empty() && spec.list("groups").is_empty() {
        spec.field_or_empty("user").invalid("at least one of user or group must be specified");
    }
    for (name, of) in [("fieldSelector", SelectorOf::Fields), ("labelSelector", SelectorOf::Labels)] {
        spec.field("resourceAttributes").field_if_given(name).into_iter().for_each(|at| selector(at, of));
    }
    metadata(review);
}

/// Reports a review that does not ask for exactly one of a resource and a URL path.
fn attributes(spec: At) {
    const ONE: &str = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    let (resource, url) = (spec.field("resourceAttributes"), spec.field("nonResourceAttributes"));
    match (resource.is_given(), url.is_given()) {
        (one, other) if one != other => {}
        _ if spec.release() >= Release::V1_37 => spec.shown_verbatim(&shown_path(url)).invalid(ONE),
        (true, _) => {
            let why = "cannot be specified in combination with resourceAttributes";
            url.shown_verbatim(&shown_path(url)).invalid(why);
        }
        (false, _) => resource.shown_verbatim(&shown_path(url)).invalid(ONE),
    }
}

/// The only kind of access review that has a namespace.
const LOCAL: &str = "LocalSubjectAccessReview";

/// The metadata of a review may only hold fields that the server sets.
fn metadata(review: At) {
    let (metadata, is_local) = (review.field("metadata"), review.text("kind") == LOCAL);
    let own = |key: &str| key == "managedFields" || (key == "namespace" && is_local);
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    if review.entries_of("metadata").any(|(key, at)| !own(key) && is_set(at.value)) {
        let why = if is_local { "must be empty except for namespace" } else { "must be empty" };
        metadata.shown_verbatim(&machinery::types::published_json(metadata.value, "meta.v1.ObjectMeta")).invalid(why);
    }
}

pub fn validate_local(review: At) {
    validate(review, Subject::Named);
    let (resource, url) = (review.field("spec.resourceAttributes"), review.field("spec.nonResourceAttributes"));
    if resource.is_given() && resource.text("namespace") != review.text("metadata.namespace") {
        resource.field_or_empty("namespace").invalid("must match metadata.namespace");
    }
    url.shown_verbatim(&shown_path(url)).invalid_if(url.is_given(), "disallowed on this kind of request");
}

/// The terms of a selector in the attributes of a review.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SelectorOf {
    Fields,
    Labels,
}

fn selector(selector: At, of: SelectorOf) {
    let (raw, requirements) = (selector.field("rawSelector"), selector.field("requirements"));
    match (raw.as_text().is_empty(), requirements.items().len() == 0) {
        (false, false) => raw.invalid("may not specified at the same time as requirements"),
        (true, true) => {
            let path = selector.path();
            requirements.required(format!("when {path} is specified, requirements or rawSelector is required"));
        }
        _ => {}
    }
    for requirement in requirements.items() {
        let key = requirement.field("key");
        key.required_if(of == SelectorOf::Fields && key.as_text().is_empty(), "must be specified");
        // newer clients may support more operators
        if ["In", "NotIn", "Exists", "DoesNotExist"].contains(&requirement.text("operator")) {
            operator(requirement);
        }
        if of == SelectorOf::Labels {
            key.check_text(names::qualified_name);
            requirement.items_of("values").for_each(|value| value.check_text(names::label_value));
        }
    }
}
