//! Role, ClusterRole and their bindings.

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, names};

use super::checks::{invalid_each, invalid_struct, items, label_selector, list, text};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Where a role or a binding is valid.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RoleScope {
    Cluster,
    Namespace,
}

pub fn validate_rules(role: &Value, scope: RoleScope) -> Vec<FieldError> {
    let mut errors = vec![];
    for (path, rule) in items(role, "rules", &FieldPath::root()) {
        rule_errors(rule, scope, &path, &mut errors);
    }
    errors
}

fn rule_errors(rule: &Value, scope: RoleScope, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let is_empty = |name: &str| list(rule, name).is_empty();
    let mut need = |name: &str, why: &str| {
        if is_empty(name) {
            errors.push(FieldError::required(&path.child(name), why));
        }
    };
    need("verbs", "verbs must contain at least one value");
    if is_empty("nonResourceURLs") {
        need("apiGroups", "resource rules must supply at least one api group");
        need("resources", "resource rules must supply at least one resource");
        return;
    }
    let urls = rule.get("nonResourceURLs").unwrap_or(&Value::Null);
    let mut refuse = |why: &str| errors.push(FieldError::invalid(&path.child("nonResourceURLs"), urls, why));
    if scope == RoleScope::Namespace {
        refuse("namespaced rules cannot apply to non-resource URLs");
    }
    if !(is_empty("apiGroups") && is_empty("resources") && is_empty("resourceNames")) {
        refuse("rules cannot apply to both regular resources and non-resource URLs");
    }
}

pub fn validate_cluster_role(new: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = validate_rules(new, RoleScope::Cluster);
    let Some(aggregation) = new.get("aggregationRule") else { return errors };
    let path = FieldPath::new("aggregationRule");
    if list(aggregation, "clusterRoleSelectors").is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(&path.child("clusterRoleSelectors"), why));
    }
    for (path, selector) in items(aggregation, "clusterRoleSelectors", &path) {
        let wrong = label_selector(selector, &path);
        if !wrong.is_empty() {
            errors.extend(wrong);
            errors.push(FieldError::invalid(&path, &Value::Null, "invalid label selector."));
        }
    }
    errors
}

pub fn validate_binding(new: &Value, old: Option<&Value>, scope: RoleScope, release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, reference) = (FieldPath::new("roleRef"), new.get("roleRef").unwrap_or(&Value::Null));
    let mut supported = |name: &str, known: &[&str]| {
        let value = text(reference, name);
        if !known.contains(&value) {
            errors.push(FieldError::not_supported(&path.child(name), &Value::from(value), known));
        }
    };
    supported("apiGroup", &[GROUP]);
    supported(
        "kind",
        match scope {
            RoleScope::Namespace => &["Role", "ClusterRole"],
            RoleScope::Cluster => &["ClusterRole"],
        },
    );
    let name = text(reference, "name");
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    invalid_each(&path.child("name"), name, names::path_segment(name), &mut errors);
    for (path, subject) in items(new, "subjects", &FieldPath::root()) {
        subject_errors(subject, scope, &path, &mut errors);
    }
    if old.is_some_and(|old| old.get("roleRef") != new.get("roleRef")) {
        // the value is shown by the names of its Go fields
        let field = |name: &str| Value::from(text(reference, name));
        let shown = [("APIGroup", field("apiGroup")), ("Kind", field("kind")), ("Name", field("name"))];
        let why = if release >= Release::V1_37 { "field is immutable" } else { "cannot change roleRef" };
        errors.push(invalid_struct(&path, &shown, why));
    }
    errors
}

fn subject_errors(subject: &Value, scope: RoleScope, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let (name, group) = (text(subject, "name"), text(subject, "apiGroup"));
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let unsupported = |field: &str, value: &str, known: &[&str]| {
        FieldError::not_supported(&path.child(field), &Value::from(value), known)
    };
    match text(subject, "kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                let messages = names::dns1123_subdomain(name);
                invalid_each(&path.child("name"), name, messages, errors);
            }
            if !group.is_empty() {
                errors.push(unsupported("apiGroup", group, &[""]));
            }
            if scope == RoleScope::Cluster && text(subject, "namespace").is_empty() {
                errors.push(FieldError::required(&path.child("namespace"), ""));
            }
        }
        "User" | "Group" if group != GROUP => errors.push(unsupported("apiGroup", group, &[GROUP])),
        "User" | "Group" => {}
        other => errors.push(unsupported("kind", other, &["ServiceAccount", "User", "Group"])),
    }
}
