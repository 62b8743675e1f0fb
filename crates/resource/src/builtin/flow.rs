//! FlowSchema and PriorityLevelConfiguration (KEP-1040).

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, json, names};

use super::checks::{invalid_each, items, list, one_of, text};

/// API group of both kinds.
pub const FLOW_GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// The name of the exempt level, which is also the name of the field that only exempt levels have.
const EXEMPT_FIELD: &str = "exempt";

/// The names of the mandatory objects, whose spec is fixed.
const MANDATORY: [&str; 2] = [EXEMPT_FIELD, "catch-all"];

pub fn validate_schema(new: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (path, spec) = (FieldPath::new("spec"), new.get("spec").unwrap_or(&Value::Null));
    let mut errors = vec![];
    let name = new.str_at(&["metadata", "name"]);
    if let Some(precedence) = spec.get("matchingPrecedence").and_then(Value::as_int) {
        let why = match precedence {
            ..=0 => "must be a positive value",
            10_001.. => "must not be greater than 10000",
            1 if name != "exempt" => "only the schema named 'exempt' may have matchingPrecedence 1",
            _ => "",
        };
        if !why.is_empty() {
            errors.push(FieldError::invalid(&path.child("matchingPrecedence"), &Value::Int(precedence), why));
        }
    }
    if let Some(method) = spec.get("distinguisherMethod") {
        const METHODS: [&str; 2] = ["ByNamespace", "ByUser"];
        let kind = text(method, "type");
        if !METHODS.contains(&kind) {
            // kube-apiserver shows the whole method
            let (path, shown) = (path.child("distinguisherMethod").child("type"), json!({"Type": kind}));
            errors.push(FieldError::not_supported(&path, &shown, &METHODS));
        }
    }
    let reference = path.child("priorityLevelConfiguration").child("name");
    match spec.str_at(&["priorityLevelConfiguration", "name"]) {
        "" => errors.push(FieldError::required(&reference, "must reference a priority level")),
        level => {
            super::checks::invalid_each(&reference, level, machinery::names::dns1123_subdomain(level), &mut errors)
        }
    }
    for (path, rules) in items(spec, "rules", &path) {
        rules_errors(rules, &path, &mut errors);
    }
    fixed(new, old, &path, "flowcontrol.FlowSchemaSpec", &[], &mut errors);
    errors
}

/// Rejects changes to the spec of a mandatory object, except to the fields in `free`.
fn fixed(new: &Value, old: Option<&Value>, path: &FieldPath, go: &str, free: &[&str], errors: &mut Vec<FieldError>) {
    let (name, spec) = (new.str_at(&["metadata", "name"]), new.get("spec"));
    let compared = |object: &Value| {
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        free.iter().for_each(|field| drop(spec.remove_at(&[field])));
        spec
    };
    if old.is_some_and(|old| MANDATORY.contains(&name) && compared(old) != compared(new)) {
        let except: String = free.iter().map(|field| format!(" except the 'spec.{field}' field")).collect();
        let why = format!("spec of '{name}'{except} must equal the fixed value");
        errors.push(FieldError {
            value: machinery::types::internal_json(spec.unwrap_or(&Value::Null), go, false),
            ..FieldError::invalid(path, &Value::Null, why)
        });
    }
}

fn rules_errors(rules: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let required = |path: &FieldPath, name: &str, what: &str| {
        FieldError::required(&path.child(name), format!("{name} must contain at least one {what}"))
    };
    if list(rules, "subjects").is_empty() {
        errors.push(required(path, "subjects", "value"));
    }
    for (path, subject) in items(rules, "subjects", path) {
        subject_errors(subject, &path, errors);
    }
    if list(rules, "resourceRules").is_empty() && list(rules, "nonResourceRules").is_empty() {
        errors
            .push(FieldError::required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"));
    }
    for (path, rule) in items(rules, "resourceRules", path) {
        resource_rule_errors(rule, &path, errors);
    }
    for (path, rule) in items(rules, "nonResourceRules", path) {
        verb_errors(rule, &path, errors);
        let wording = ("nonResourceURLs must contain at least one value", "non-resource URLs");
        if wildcard_errors(rule, "nonResourceURLs", &path, wording, errors) {
            for (path, url) in items(rule, "nonResourceURLs", &path) {
                let why = url_problem(url.as_str().unwrap_or_default());
                errors.extend(why.map(|why| FieldError::invalid(&path, url, why)));
            }
        }
    }
}

/// Why a rule cannot have this URL path.
fn url_problem(url: &str) -> Option<&'static str> {
    match url {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !url.starts_with('/') => Some("must start with slash"),
        _ if url.contains(' ') => Some("must not contain white-space"),
        _ if url.contains("//") => Some("must not contain double slash"),
        _ if url.strip_suffix("/*").unwrap_or(url).contains('*') => Some("wildcard can only do suffix matching"),
        _ => None,
    }
}

/// Every condition of a status needs a type, and no two have the same.
pub fn validate_states(new: &Value, _old: &Value, _release: Release) -> Vec<FieldError> {
    let (mut errors, mut known) = (vec![], HashSet::new());
    let status = new.get("status").unwrap_or(&Value::Null);
    for (path, condition) in items(status, "conditions", &FieldPath::new("status")) {
        let (kind, path) = (text(condition, "type"), path.child("type"));
        if !known.insert(kind) {
            errors.push(FieldError::duplicate(&path, &Value::from(kind)));
        }
        if kind.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
    }
    errors
}

fn subject_errors(subject: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let kind = text(subject, "kind");
    let own = match kind {
        "User" => "user",
        "Group" => "group",
        "ServiceAccount" => "serviceAccount",
        _ => return one_of(subject, "kind", path, &["Group", "ServiceAccount", "User"], errors),
    };
    for other in ["user", "group", "serviceAccount"].iter().filter(|name| **name != own) {
        if subject.get(other).is_some() {
            let why = format!("{other} is forbidden when subject kind is not '{}'", kind_of(other));
            errors.push(FieldError::forbidden(&path.child(other), why));
        }
    }
    let path = path.child(own);
    let Some(value) = subject.get(own) else {
        let why = format!("{own} is required when subject kind is '{kind}'");
        return errors.push(FieldError::required(&path, why));
    };
    let (name, namespace) = (text(value, "name"), text(value, "namespace"));
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else if own == "serviceAccount" && name != "*" {
        invalid_each(&path.child("name"), name, names::dns1123_subdomain(name), errors);
    }
    if own == "serviceAccount" && namespace.is_empty() {
        errors.push(FieldError::required(&path.child("namespace"), "must specify namespace for service account"));
    } else if own == "serviceAccount" {
        invalid_each(&path.child("namespace"), namespace, names::dns1123_label(namespace), errors);
    }
}

const VERBS: [&str; 9] = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// Validates a list in which `*` must be the only item; `missing` is the error of an empty list, `others` what the items
/// are called. Returns whether the items still have to be validated one by one.
fn wildcard_errors(
    rule: &Value,
    name: &str,
    path: &FieldPath,
    (missing, others): (&str, &str),
    errors: &mut Vec<FieldError>,
) -> bool {
    let (all, path) = (list(rule, name), path.child(name));
    let any = all.iter().any(|item| item.as_str() == Some("*"));
    if all.is_empty() {
        errors.push(FieldError::required(&path, missing));
    } else if any && all.len() > 1 {
        let why = format!("if '*' is present, must not specify other {others}");
        errors.push(FieldError::invalid(&path, &Value::Array(all.to_vec()), why));
    }
    !all.is_empty() && !any
}

fn verb_errors(rule: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let wording = ("verbs must contain at least one value", "verbs");
    let has_no_wildcard = wildcard_errors(rule, "verbs", path, wording, errors);
    let verbs = list(rule, "verbs");
    if has_no_wildcard && !verbs.iter().all(|verb| verb.as_str().is_some_and(|verb| VERBS.contains(&verb))) {
        errors.push(FieldError::not_supported(&path.child("verbs"), &Value::Array(verbs.to_vec()), &VERBS));
    }
}

fn resource_rule_errors(rule: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    verb_errors(rule, path, errors);
    let groups = ("resource rules must supply at least one api group", "api groups");
    wildcard_errors(rule, "apiGroups", path, groups, errors);
    let resources = ("resource rules must supply at least one resource", "resources");
    wildcard_errors(rule, "resources", path, resources, errors);
    if list(rule, "namespaces").is_empty() && rule.get("clusterScope") == Some(&Value::Bool(true)) {
        return;
    }
    let missing = "resource rules that are not cluster scoped must supply at least one namespace";
    if !wildcard_errors(rule, "namespaces", path, (missing, "namespaces"), errors) {
        return;
    }
    for (path, namespace) in items(rule, "namespaces", path) {
        for message in names::dns1123_label(namespace.as_str().unwrap_or_default()) {
            let why = format!("each member of this list must be '*' or a DNS-1123 label; {message}");
            errors.push(FieldError::invalid(&path, namespace, why));
        }
    }
}

fn kind_of(member: &str) -> &'static str {
    match member {
        "user" => "User",
        "group" => "Group",
        _ => "ServiceAccount",
    }
}

pub fn validate_level(new: &Value, old: Option<&Value>, release: Release) -> Vec<FieldError> {
    let (path, spec) = (FieldPath::new("spec"), new.get("spec").unwrap_or(&Value::Null));
    let mut errors = vec![];
    let is_exempt = new.str_at(&["metadata", "name"]) == EXEMPT_FIELD;
    if is_exempt != (text(spec, "type") == "Exempt") {
        let why = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(FieldError::invalid(&path.child("type"), &Value::from(text(spec, "type")), why));
    }
    let (exempt, limited) = (spec.get("exempt"), spec.get("limited"));
    match text(spec, "type") {
        "Exempt" => {
            if limited.is_some() {
                errors.push(FieldError::forbidden(&path.child("limited"), "must be nil if the type is not Limited"));
            }
            let exempt = exempt.unwrap_or(&Value::Null);
            not_negative(exempt, &path.child("exempt"), &mut errors);
            percent(exempt, "lendablePercent", &path.child("exempt"), &mut errors);
        }
        "Limited" => {
            if exempt.is_some() {
                errors.push(FieldError::forbidden(&path.child("exempt"), "must be nil if the type is Limited"));
            }
            match limited {
                None => {
                    errors.push(FieldError::required(&path.child("limited"), "must not be empty when type is Limited"))
                }
                Some(limited) => limited_errors(limited, &path.child("limited"), release, &mut errors),
            }
        }
        // declarative validation reports the missing type
        "" if release >= Release::V1_37 => {}
        _ => one_of(spec, "type", &path, &["Exempt", "Limited"], &mut errors),
    }
    let free: &[&str] = if is_exempt { &[EXEMPT_FIELD] } else { &[] };
    fixed(new, old, &path, "flowcontrol.PriorityLevelConfigurationSpec", free, &mut errors);
    errors
}

fn percent(object: &Value, name: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if let Some(value) = object.get(name).and_then(Value::as_int).filter(|value| !(0..=100).contains(value)) {
        let why = "must be between 0 and 100, inclusive";
        errors.push(FieldError::invalid(&path.child(name), &Value::Int(value), why));
    }
}

fn number(object: &Value, name: &str) -> i64 {
    object.get(name).and_then(Value::as_int).unwrap_or_default()
}

fn invalid_number(object: &Value, name: &str, path: &FieldPath, why: &str) -> FieldError {
    FieldError::invalid(&path.child(name), &Value::Int(number(object, name)), why)
}

fn not_negative(level: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if number(level, "nominalConcurrencyShares") < 0 {
        errors.push(invalid_number(level, "nominalConcurrencyShares", path, "must be a non-negative integer"));
    }
}

/// Validates the queues of a level. A hash picks the hand of each flow, and its bits limit the size of hands and the
/// number of queues.
fn queue_errors(queuing: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const QUEUES_MAX: i64 = 10_000_000;
    const HASH_BITS: f64 = 60.0;
    for name in ["queueLengthLimit", "queues", "handSize"] {
        if number(queuing, name) < 1 {
            errors.push(invalid_number(queuing, name, path, "must be positive"));
        }
    }
    let (hand, queues) = (number(queuing, "handSize"), number(queuing, "queues"));
    if queues > QUEUES_MAX {
        let why = format!("must not be greater than {QUEUES_MAX}");
        errors.push(invalid_number(queuing, "queues", path, &why));
    }
    let why = if hand < 1 {
        return;
    } else if hand > queues {
        format!("should not be greater than queues ({queues})")
    } else {
        let bits = ((queues as f64).log2() * hand as f64).ceil();
        if bits <= HASH_BITS {
            return;
        }
        format!("required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS}")
    };
    errors.push(invalid_number(queuing, "handSize", path, &why));
}

fn limited_errors(limited: &Value, path: &FieldPath, release: Release, errors: &mut Vec<FieldError>) {
    not_negative(limited, path, errors);
    percent(limited, "lendablePercent", path, errors);
    if number(limited, "borrowingLimitPercent") < 0 {
        let why = "if specified, must be a non-negative integer";
        errors.push(invalid_number(limited, "borrowingLimitPercent", path, why));
    }
    let (path, response) = (path.child("limitResponse"), limited.get("limitResponse"));
    let response = response.cloned().unwrap_or_default();
    let queuing = response.get("queuing");
    match (text(&response, "type"), queuing) {
        ("Reject", Some(_)) => {
            errors.push(FieldError::forbidden(
                &path.child("queuing"),
                "must be nil if limited.limitResponse.type is not Limited",
            ));
        }
        ("Reject", None) => {}
        ("Queue", None) => {
            let why = "must not be empty if limited.limitResponse.type is Limited";
            errors.push(FieldError::required(&path.child("queuing"), why));
        }
        ("Queue", Some(queuing)) => {
            queue_errors(queuing, &path.child("queuing"), errors);
        }
        ("", _) if release >= Release::V1_37 => {}
        _ => one_of(&response, "type", &path, &["Queue", "Reject"], errors),
    }
}
