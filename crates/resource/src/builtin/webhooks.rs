//! ValidatingWebhookConfiguration and MutatingWebhookConfiguration.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, names};
use schema::definition::{webhook_service, webhook_url};

use super::BuiltIn;
use super::admission::{self as shared};
use super::checks::{items, list, one_of, selector_member, text};
use super::expressions::Scope;
use crate::limits;

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

pub fn validate(new: &Value, _: Option<&Value>, _: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let mut known = HashSet::new();
    for (path, hook) in items(new, "webhooks", &FieldPath::root()) {
        hook_errors(hook, &path, &mut errors);
        review_version_errors(hook, &path, &mut errors);
        let name = text(hook, "name");
        if !name.is_empty() && !known.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), &Value::from(name)));
        }
    }
    errors
}

/// Warns about rules for resources that webhooks do not see.
pub fn warnings(new: &Value, _: Option<&Value>, release: Release) -> Vec<String> {
    let mut warnings = vec![];
    if release < Release::V1_37 {
        return warnings;
    }
    for (path, hook) in items(new, "webhooks", &FieldPath::root()) {
        for (path, rule) in items(hook, "rules", &path) {
            let named = excluded_resources(rule).into_iter();
            warnings.extend(named.map(|resource| {
                format!("{path}: {resource} is excluded from admission webhooks; this rule will have no effect")
            }));
        }
    }
    warnings
}

/// The reviews that a rule names; wildcards do not count.
fn excluded_resources(rule: &Value) -> Vec<String> {
    let texts = |name| list(rule, name).iter().filter_map(Value::as_str).collect::<Vec<_>>();
    let (groups, resources) = (texts("apiGroups"), texts("resources"));
    if groups.contains(&"*") || resources.contains(&"*") {
        return vec![];
    }
    let position = |row: &BuiltIn| {
        let group = groups.iter().position(|group| *group == row.group)?;
        Some((group, resources.iter().position(|resource| *resource == row.plural)?))
    };
    let reviews = super::kinds().filter(|row| row.behaviour.review.is_some() && !row.group.is_empty());
    let mut named: Vec<_> = reviews.filter_map(|row| Some((position(row)?, row))).collect();
    named.sort_by_key(|(position, _)| *position);
    named.dedup_by_key(|(position, _)| *position);
    named.into_iter().map(|(_, row)| format!("{}.{}", row.plural, row.group)).collect()
}

fn hook_errors(hook: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    errors.extend(name_error(text(hook, "name"), &path.child("name")));
    for (path, rule) in items(hook, "rules", path) {
        shared::rule_errors(rule, &path, errors);
    }
    one_of(hook, "failurePolicy", path, &["Fail", "Ignore"], errors);
    one_of(hook, "matchPolicy", path, &["Equivalent", "Exact"], errors);
    if hook.get("sideEffects").is_none_or(Value::is_null) {
        errors.push(FieldError::required(&path.child("sideEffects"), "must specify one of None, NoneOnDryRun"));
    } else {
        one_of(hook, "sideEffects", path, &["None", "NoneOnDryRun"], errors);
    }
    if let Some(seconds) = hook.get("timeoutSeconds")
        && !seconds.as_int().is_some_and(|s| (1..=limits::WEBHOOK_SECONDS_MAX).contains(&s))
    {
        let why = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(&path.child("timeoutSeconds"), seconds, why));
    }
    errors.extend(selector_member(hook, "namespaceSelector", path));
    errors.extend(selector_member(hook, "objectSelector", path));
    one_of(hook, "reinvocationPolicy", path, &["IfNeeded", "Never"], errors);
    client_errors(hook.get("clientConfig").unwrap_or(&Value::Null), &path.child("clientConfig"), errors);
    shared::match_condition_errors(hook, path, Scope::WEBHOOK, errors);
}

/// The name of a webhook must have at least three segments.
fn name_error(name: &str, path: &FieldPath) -> Option<FieldError> {
    let messages = names::dns1123_subdomain(name);
    let why = if name.is_empty() {
        return Some(FieldError::required(path, ""));
    } else if !messages.is_empty() {
        messages.join(",")
    } else if name.split('.').count() < 3 {
        "should be a domain with at least three segments separated by dots".to_owned()
    } else {
        return None;
    };
    Some(FieldError::invalid(path, &Value::from(name), why))
}

fn client_errors(config: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    match (config.get("url").and_then(Value::as_str), config.get("service")) {
        (Some(url), None) => webhook_url(url, &path.child("url"), errors),
        (None, Some(service)) => webhook_service(service, &path.child("service"), errors),
        _ => errors.push(FieldError::required(path, "exactly one of url or service is required")),
    }
}

fn review_version_errors(hook: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let versions = list(hook, "admissionReviewVersions");
    let whole = path.child("admissionReviewVersions");
    if versions.is_empty() {
        let why = format!("must specify one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::required(&whole, why));
        return;
    }
    let mut known = HashSet::new();
    for (i, version) in versions.iter().enumerate() {
        let name = version.as_str().unwrap_or_default();
        let is_duplicate = !known.insert(name);
        let messages = if is_duplicate { vec!["duplicate version".to_owned()] } else { names::dns1035_label(name) };
        super::checks::invalid_each(&whole.index(i), name, messages, errors);
    }
    if !versions.iter().filter_map(Value::as_str).any(|version| REVIEW_VERSIONS.contains(&version)) {
        let why = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::invalid(&whole, &Value::Array(versions.to_vec()), why));
    }
}
