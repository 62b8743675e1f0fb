//! ValidatingWebhookConfiguration and MutatingWebhookConfiguration.

use std::collections::HashSet;

use machinery::{Release, Value, names};
use schema::definition::webhook_client;

use crate::admissionregistration::admission as shared;
use crate::admissionregistration::expressions::Scope;
use crate::limits;
use resource::builtin::checks::{label_selector, list};
use schema::at::At;

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

pub fn validate(at: At) {
    let mut known = HashSet::new();
    for webhook in at.items_of("webhooks") {
        hook(webhook);
        review_versions(webhook.field("admissionReviewVersions"));
        if !webhook.text("name").is_empty() {
            webhook.field("name").unique(&mut known);
        }
    }
}

/// Warns about rules for resources that webhooks do not see.
pub fn warnings(at: At) {
    if at.release() < Release::V1_37 {
        return;
    }
    for webhook in at.items_of("webhooks") {
        for rule in webhook.items_of("rules") {
            for resource in excluded_resources(rule.value) {
                rule.warn(format!("{resource} is excluded from admission webhooks; this rule will have no effect"));
            }
        }
    }
}

/// The reviews that a rule names; wildcards do not count.
fn excluded_resources(rule: &Value) -> Vec<String> {
    let texts = |name| list(rule, name).iter().filter_map(Value::as_str).collect::<Vec<_>>();
    let (groups, resources) = (texts("apiGroups"), texts("resources"));
    if groups.contains(&"*") || resources.contains(&"*") {
        return vec![];
    }
    let mut named = vec![];
    for group in groups {
        for resource in &resources {
            let name = format!("{resource}.{group}");
            if REVIEWS.contains(&name.as_str()) && !named.contains(&name) {
                named.push(name);
            }
        }
    }
    named
}

/// The resources of the reviews, which are not stored. A test compares them with the table of kinds.
pub const REVIEWS: [&str; 6] = [
    "selfsubjectreviews.authentication.k8s.io",
    "tokenreviews.authentication.k8s.io",
    "localsubjectaccessreviews.authorization.k8s.io",
    "selfsubjectaccessreviews.authorization.k8s.io",
    "selfsubjectrulesreviews.authorization.k8s.io",
    "subjectaccessreviews.authorization.k8s.io",
];

fn hook(hook: At) {
    name(hook.field("name"));
    hook.items_of("rules").for_each(shared::rule);
    hook.field("failurePolicy").shown_as_json().one_of(&["Fail", "Ignore"]);
    hook.field("matchPolicy").shown_as_json().one_of(&["Equivalent", "Exact"]);
    let effects = hook.field("sideEffects");
    match effects.is_given() {
        false => effects.required("must specify one of None, NoneOnDryRun"),
        true => effects.shown_as_json().one_of(&["None", "NoneOnDryRun"]),
    }
    let seconds = hook.field("timeoutSeconds");
    if seconds.value.as_int().is_some_and(|seconds| !(1..=limits::WEBHOOK_SECONDS_MAX).contains(&seconds)) {
        seconds.invalid("the timeout value must be between 1 and 30 seconds");
    }
    label_selector(hook.field("namespaceSelector"));
    label_selector(hook.field("objectSelector"));
    hook.field("reinvocationPolicy").shown_as_json().one_of(&["IfNeeded", "Never"]);
    webhook_client(hook.field("clientConfig"));
    shared::match_conditions(hook, Scope::WEBHOOK);
}

/// The name of a webhook must have at least three segments.
fn name(at: At) {
    let problems = names::dns1123_subdomain(at.as_text());
    if at.as_text().is_empty() {
        at.required("");
    } else if !problems.is_empty() {
        at.invalid(problems.join(","));
    } else if at.as_text().split('.').count() < 3 {
        at.invalid("should be a domain with at least three segments separated by dots");
    }
}

fn review_versions(at: At) {
    if at.items().len() == 0 {
        return at.required(format!("must specify one of {}", REVIEW_VERSIONS.join(", ")));
    }
    let mut known = HashSet::new();
    for version in at.items() {
        match known.insert(version.as_text()) {
            true => version.check_text(names::dns1035_label),
            false => version.invalid("duplicate version"),
        }
    }
    if !at.items().any(|version| REVIEW_VERSIONS.contains(&version.as_text())) {
        at.invalid(format!("must include at least one of {}", REVIEW_VERSIONS.join(", ")));
    }
}
