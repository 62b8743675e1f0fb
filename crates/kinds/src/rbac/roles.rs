//! Role, ClusterRole and their bindings.

use machinery::{Release, Value, names};

use resource::builtin::checks::{go_struct, label_selector};
use schema::at::{At, CheckStage};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Where a role or a binding is valid.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RoleScope {
    Cluster,
    Namespace,
}

pub fn validate_rules(role: At, scope: RoleScope) {
    role.items_of("rules").for_each(|at| rule(at, scope));
}

fn rule(rule: At, scope: RoleScope) {
    let need = |name: &str, why: &str| {
        rule.field(name).required_if(rule.list(name).is_empty(), why);
    };
    need("verbs", "verbs must contain at least one value");
    if rule.list("nonResourceURLs").is_empty() {
        need("apiGroups", "resource rules must supply at least one api group");
        return need("resources", "resource rules must supply at least one resource");
    }
    let urls = rule.field("nonResourceURLs");
    urls.invalid_if(scope == RoleScope::Namespace, "namespaced rules cannot apply to non-resource URLs");
    if ["apiGroups", "resources", "resourceNames"].iter().any(|name| !rule.list(name).is_empty()) {
        urls.invalid("rules cannot apply to both regular resources and non-resource URLs");
    }
}

pub fn validate_cluster_role(at: At) {
    validate_rules(at, RoleScope::Cluster);
    let Some(aggregation) = at.field_if_given("aggregationRule") else { return };
    if aggregation.list("clusterRoleSelectors").is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        aggregation.field("clusterRoleSelectors").required(why);
    }
    for selector in aggregation.items_of("clusterRoleSelectors") {
        let before = selector.count();
        label_selector(selector);
        selector.shown_verbatim("null").invalid_if(selector.count() > before, "invalid label selector.");
    }
}

pub fn validate_binding(at: At, scope: RoleScope) {
    let reference = at.field("roleRef");
    reference.field_or_empty("apiGroup").one_of(&[GROUP]);
    reference.field_or_empty("kind").one_of(match scope {
        RoleScope::Namespace => &["Role", "ClusterRole"],
        RoleScope::Cluster => &["ClusterRole"],
    });
    reference.field("name").require_text("");
    reference.field("name").check_text(names::path_segment);
    at.items_of("subjects").for_each(|at| subject(at, scope));
    if reference.old.is_some_and(|old| old != reference.value) {
        // the value is shown by the names of its Go fields
        let field = |name: &str| Value::from(reference.text(name));
        let shown = [("APIGroup", field("apiGroup")), ("Kind", field("kind")), ("Name", field("name"))];
        let why = if at.release() >= Release::V1_37 { "field is immutable" } else { "cannot change roleRef" };
        reference.in_stage(CheckStage::Change).shown_verbatim(&go_struct(&shown)).invalid(why);
    }
}

fn subject(subject: At, scope: RoleScope) {
    let (name, group) = (subject.field("name"), subject.field_or_empty("apiGroup"));
    name.require_text("");
    match subject.text("kind") {
        "ServiceAccount" => {
            name.check_text_unless_empty(names::dns1123_subdomain);
            group.one_of(&[""]);
            if scope == RoleScope::Cluster {
                subject.field("namespace").require_text("");
            }
        }
        "User" | "Group" => group.one_of(&[GROUP]),
        _ => subject.field_or_empty("kind").unsupported(&["ServiceAccount", "User", "Group"]),
    }
}
