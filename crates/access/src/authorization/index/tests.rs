use std::time::Instant;

use machinery::json;
use objects::{Body, Meta, Stored};

use super::*;

fn observe(
    rbac: &Rbac,
    plural: &'static str,
    namespace: &str,
    kind: EventKind,
    object: &Value,
    previous: Option<&Value>,
) {
    let stored = |object: &Value| Arc::new(Stored::new(1, Body::encode(object), Meta::of(object)));
    let key = Key::new(&GROUP.into(), &plural.into(), namespace, object.str_at(&["metadata", "name"]));
    let (path, previous) = (key.path.clone(), previous.map(stored));
    rbac.observe(&key, &Event { revision: 1, kind, path, object: stored(object), previous });
}

fn role(name: &str, verb: &str, label: &str) -> Value {
    let rules = json!([{"apiGroups": ["g"], "resources": ["foos"], "verbs": [verb]}]);
    json!({"metadata": {"name": name, "labels": {"into": label}}, "rules": rules})
}

fn binding(name: &str, kind: &str, role: &str, subject: Value) -> Value {
    json!({"metadata": {"name": name}, "roleRef": {"kind": kind, "name": role}, "subjects": [subject]})
}

fn user(name: &str, group: &str) -> User {
    User { name: name.into(), groups: vec![group.into()], ..User::default() }
}

fn access(verb: &'static str) -> AccessAttributes<'static> {
    AccessAttributes {
        verb,
        is_resource: true,
        group: "g",
        resource: "foos",
        namespace: "n",
        ..AccessAttributes::default()
    }
}

#[test]
fn authorizer_follows_binding_changes() {
    let rbac = Rbac::default();
    let (ann, bob) = (json!({"kind": "User", "name": "ann"}), json!({"kind": "Group", "name": "bobs"}));
    observe(&rbac, "roles", "n", EventKind::Added, &role("r", "get", ""), None);
    let first = binding("b", "Role", "r", ann);
    observe(&rbac, "rolebindings", "n", EventKind::Added, &first, None);
    let reason = rbac.decide(&user("ann", ""), &access("get")).reason();
    assert_eq!(reason, "RBAC: allowed by RoleBinding \"b/n\" of Role \"r\" to User \"ann\"");
    assert!(!rbac.decide(&user("ann", ""), &access("put")).allowed());
    assert!(!rbac.decide(&user("ann", ""), &AccessAttributes { namespace: "m", ..access("get") }).allowed());
    let second = binding("b", "Role", "r", bob);
    observe(&rbac, "rolebindings", "n", EventKind::Modified, &second, Some(&first));
    assert!(!rbac.decide(&user("ann", ""), &access("get")).allowed());
    assert!(rbac.decide(&user("x", "bobs"), &access("get")).allowed());
    observe(&rbac, "roles", "n", EventKind::Deleted, &role("r", "get", ""), None);
    let reason = rbac.decide(&user("x", "bobs"), &access("get")).reason();
    assert_eq!(reason, "RBAC: role.rbac.authorization.k8s.io \"r\" not found");
    observe(&rbac, "rolebindings", "n", EventKind::Deleted, &second, Some(&second));
    assert_eq!(rbac.decide(&user("x", "bobs"), &access("get")).reason(), "");
}

#[test]
fn first_matching_subject_is_the_reason() {
    let rbac = Rbac::default();
    observe(&rbac, "clusterroles", "", EventKind::Added, &role("r", "get", ""), None);
    let mut bound = binding("b", "ClusterRole", "r", json!({"kind": "Group", "name": "others"}));
    let subjects = json!([
        {"kind": "Group", "name": "others"},
        {"kind": "Group", "name": "bobs"},
        {"kind": "User", "name": "bob"}
    ]);
    bound.set_at(&["subjects"], subjects);
    observe(&rbac, "clusterrolebindings", "", EventKind::Added, &bound, None);
    let to = |name, group| rbac.decide(&user(name, group), &access("get")).reason();
    assert_eq!(to("bob", "bobs"), "RBAC: allowed by ClusterRoleBinding \"b\" of ClusterRole \"r\" to Group \"bobs\"");
    assert_eq!(to("bob", "x"), "RBAC: allowed by ClusterRoleBinding \"b\" of ClusterRole \"r\" to User \"bob\"");
}

#[test]
fn service_accounts_are_users() {
    let rbac = Rbac::default();
    observe(&rbac, "clusterroles", "", EventKind::Added, &role("r", "get", ""), None);
    let account = json!({"kind": "ServiceAccount", "name": "bot"});
    observe(&rbac, "rolebindings", "n", EventKind::Added, &binding("b", "ClusterRole", "r", account), None);
    let reason = rbac.decide(&user("system:serviceaccount:n:bot", ""), &access("get")).reason();
    assert_eq!(reason, "RBAC: allowed by RoleBinding \"b/n\" of ClusterRole \"r\" to ServiceAccount \"bot/n\"");
}

#[test]
fn aggregated_roles_handle_cycles() {
    let rbac = Rbac::default();
    let aggregating = |name: &str, label: &str, of: &str| {
        let mut role = role(name, "never", label);
        role.set_at(&["aggregationRule"], json!({"clusterRoleSelectors": [{"matchLabels": {"into": of}}]}));
        role
    };
    let add = |role: &Value| observe(&rbac, "clusterroles", "", EventKind::Added, role, None);
    add(&aggregating("a", "b", "a"));
    add(&aggregating("b", "a", "b"));
    let subject = json!({"kind": "User", "name": "ann"});
    observe(&rbac, "clusterrolebindings", "", EventKind::Added, &binding("x", "ClusterRole", "a", subject), None);
    let may = |verb| rbac.decide(&user("ann", ""), &access(verb)).allowed();
    assert!(!may("get") && !may("never"));
    add(&role("direct", "get", "a"));
    add(&role("indirect", "put", "b"));
    assert!(may("get") && may("put") && !may("never"));
}

#[test]
fn roles_are_as_stored_without_aggregation() {
    let rbac = Rbac::new(false);
    let mut aggregating = role("a", "put", "");
    aggregating.set_at(&["aggregationRule"], json!({"clusterRoleSelectors": [{"matchLabels": {"into": "a"}}]}));
    for role in [aggregating, role("other", "get", "a")] {
        observe(&rbac, "clusterroles", "", EventKind::Added, &role, None);
    }
    let subject = json!({"kind": "User", "name": "ann"});
    observe(&rbac, "clusterrolebindings", "", EventKind::Added, &binding("x", "ClusterRole", "a", subject), None);
    let may = |verb| rbac.decide(&user("ann", ""), &access(verb)).allowed();
    assert!(may("put") && !may("get"));
}

#[test]
fn a_role_counts_once_for_all_its_bindings() {
    let rbac = Rbac::default();
    observe(&rbac, "clusterroles", "", EventKind::Added, &role("r", "get", ""), None);
    for (namespace, name, of) in
        [("", "a", "r"), ("", "b", "r"), ("n", "c", "r"), ("n", "d", "gone"), ("n", "e", "gone")]
    {
        let plural = if namespace.is_empty() { "clusterrolebindings" } else { "rolebindings" };
        let subject = json!({"kind": "User", "name": "ann"});
        observe(&rbac, plural, namespace, EventKind::Added, &binding(name, "ClusterRole", of, subject), None);
    }
    let (roles, missing) = rbac.rules_of(&user("ann", ""), "n");
    assert_eq!((roles.len(), missing.len()), (1, 1));
    assert_eq!(rbac.decide(&user("ann", ""), &access("put")).reason().matches("gone").count(), 1);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test measures")]
fn authorization_time_is_independent_of_bindings() {
    let rbac = Rbac::default();
    observe(&rbac, "clusterroles", "", EventKind::Added, &role("r", "get", ""), None);
    for i in 0..10_000 {
        let subject = json!({"kind": "User", "name": (format!("user-{i}"))});
        let binding = binding(&format!("b-{i}"), "ClusterRole", "r", subject);
        observe(&rbac, "rolebindings", if i % 2 == 0 { "n" } else { "m" }, EventKind::Added, &binding, None);
    }
    let (some, read) = (user("user-5000", "system:authenticated"), access("get"));
    let start = Instant::now();
    let allowed = (0..10_000).filter(|_| rbac.decide(&some, &read).allowed()).count();
    assert_eq!(allowed, 10_000);
    // a wide bound for a slow machine and a debug build; a scan of all bindings takes far longer
    let each = start.elapsed() / 10_000;
    eprintln!("{each:?} for a decision");
    assert!(each.as_micros() < 200);
}
