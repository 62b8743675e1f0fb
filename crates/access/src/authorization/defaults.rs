//! The bootstrap roles and bindings.

use base::request::FeatureGates;
use machinery::{Release, Value, json};

use super::GROUP;

/// The table of roles; its format is described at its beginning.
const TABLE: &str = include_str!("defaults/roles.txt");

/// Iterates over the roles of a release and its feature gates; each is parsed when it is needed.
fn entries(gates: &FeatureGates) -> impl Iterator<Item = DefaultRole<'static>> {
    let mut lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
    let every = std::iter::from_fn(move || {
        let mut entry = DefaultRole::new(lines.next()?);
        while let Some(line) = lines.next_if(|line| line.starts_with(' ')) {
            if let Some(line) = line_of(gates, line.trim_start()) {
                entry.add(line);
            }
        }
        Some(entry)
    });
    every.filter(move |entry| entry.since.is_none_or(|since| gates.release() >= since) && entry.is_on(gates))
}

/// The line without its condition on releases or a feature gate; `None` if it does not apply.
fn line_of<'a>(gates: &FeatureGates, line: &'a str) -> Option<&'a str> {
    let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
    let release = gates.release();
    let holds = match (mark.strip_prefix('+'), mark.strip_prefix('-'), mark.strip_prefix('?')) {
        (Some(since), ..) => release >= since.parse().ok()?,
        (_, Some(until), _) => release < until.parse().ok()?,
        (.., Some(gate)) => gates.is_on(gate),
        _ => return Some(line),
    };
    holds.then_some(rest)
}

pub fn cluster_roles(gates: &FeatureGates) -> impl Iterator<Item = Value> {
    entries(gates).filter(|entry| !entry.is_namespaced()).map(|entry| entry.role())
}

pub fn roles(gates: &FeatureGates) -> impl Iterator<Item = Value> {
    entries(gates).filter(DefaultRole::is_namespaced).map(|entry| entry.role())
}

pub fn cluster_role_bindings(gates: &FeatureGates) -> impl Iterator<Item = Value> {
    entries(gates).filter(|entry| !entry.is_namespaced()).filter_map(|entry| entry.binding())
}

pub fn role_bindings(gates: &FeatureGates) -> impl Iterator<Item = Value> {
    entries(gates).filter(DefaultRole::is_namespaced).filter_map(|entry| entry.binding())
}

/// A role of the table.
struct DefaultRole<'a> {
    /// Empty for a ClusterRole.
    namespace: &'a str,
    name: &'a str,
    /// Label of the roles that it aggregates.
    aggregates: &'a str,
    /// The role that aggregates its rules.
    aggregate_to: &'a str,
    bound_as: &'a str,
    /// The first release that has the role.
    since: Option<Release>,
    /// The feature gate that the role depends on; empty if there is none.
    gate: &'a str,
    /// Subject of its binding, if there is one.
    bound_to: Option<&'a str>,
    /// The lines of its rules, which are read only for the role, not for its binding.
    rules: Vec<&'a str>,
}

impl<'a> DefaultRole<'a> {
    fn new(head: &'a str) -> DefaultRole<'a> {
        let (namespace, name) = head.split_once('/').unwrap_or(("", head));
        let (aggregates, aggregate_to, bound_as, gate) = ("", "", name, "");
        let (since, bound_to, rules) = (None, None, vec![]);
        DefaultRole { namespace, name, aggregates, aggregate_to, bound_as, since, gate, bound_to, rules }
    }

    fn add(&mut self, line: &'a str) {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("@aggregates", label) => self.aggregates = label,
            ("@aggregate-to", role) => self.aggregate_to = role,
            ("@bound-as", name) => self.bound_as = name,
            ("@since", release) => self.since = release.parse().ok(),
            ("@gate", gate) => self.gate = gate,
            ("@bound-to", subjects) => self.bound_to = Some(subjects),
            _ => self.rules.push(line),
        }
    }

    fn is_on(&self, gates: &FeatureGates) -> bool {
        self.gate.is_empty() || gates.is_on(self.gate)
    }

    fn is_namespaced(&self) -> bool {
        !self.namespace.is_empty()
    }

    fn metadata(&self, name: &str) -> Value {
        let mut metadata = json!({
            "name": name,
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"}
        });
        if self.is_namespaced() {
            metadata.set_at(&["namespace"], Value::from(self.namespace));
        }
        metadata
    }

    fn role(&self) -> Value {
        let mut metadata = self.metadata(self.name);
        if !self.aggregate_to.is_empty() {
            metadata.set_at(&["labels", &aggregation_label(self.aggregate_to)], Value::from("true"));
        }
        if self.aggregates.is_empty() {
            return json!({"metadata": metadata, "rules": (self.rules.iter().copied().map(rule).collect::<Value>())});
        }
        let labels: Value = [(aggregation_label(self.aggregates).as_str(), Value::from("true"))].into();
        let rule = json!({"clusterRoleSelectors": [{"matchLabels": labels}]});
        json!({"metadata": metadata, "aggregationRule": rule, "rules": (Value::Null)})
    }

    fn binding(&self) -> Option<Value> {
        let subjects: Vec<Value> = self.bound_to?.split_whitespace().map(subject).collect();
        let kind = if self.is_namespaced() { "Role" } else { "ClusterRole" };
        let mut binding = json!({
            "metadata": (self.metadata(self.bound_as)),
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": (self.name)}
        });
        if !subjects.is_empty() {
            binding.set_at(&["subjects"], Value::Array(subjects));
        }
        Some(binding)
    }
}

fn aggregation_label(role: &str) -> String {
    format!("rbac.authorization.k8s.io/aggregate-to-{role}")
}

fn words(text: &str) -> Value {
    text.split_whitespace().map(|word| Value::from(if word == "core" { "" } else { word })).collect()
}

fn rule(line: &str) -> Value {
    let columns: Vec<Value> = line.split('|').map(words).collect();
    let keys: &[&str] = match columns.len() {
        2 => &["verbs", "nonResourceURLs"],
        _ => &["verbs", "apiGroups", "resources", "resourceNames"],
    };
    let mut rule = Value::object();
    for (key, column) in keys.iter().zip(columns) {
        rule.set_at(&[key], column);
    }
    rule
}

/// Parses a subject: `user=NAME`, `group=NAME` or `account=NAMESPACE/NAME`.
fn subject(text: &str) -> Value {
    match text.split_once('=').unwrap_or_default() {
        ("account", account) => {
            let (namespace, name) = account.split_once('/').unwrap_or_default();
            json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
        }
        ("group", name) => json!({"apiGroup": GROUP, "kind": "Group", "name": name}),
        (_, name) => json!({"apiGroup": GROUP, "kind": "User", "name": name}),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static NEWEST: LazyLock<FeatureGates> = LazyLock::new(FeatureGates::default);

    #[test]
    fn bootstrap_policy_table_is_well_formed() {
        let counts = [
            (cluster_roles(&NEWEST).count(), cluster_role_bindings(&NEWEST).count()),
            (roles(&NEWEST).count(), role_bindings(&NEWEST).count()),
        ];
        assert_eq!(counts, [(73, 54), (7, 7)]);
        assert_eq!(
            (
                cluster_roles(&FeatureGates::of(Release::V1_35)).count(),
                cluster_role_bindings(&FeatureGates::of(Release::V1_35)).count()
            ),
            (68, 49)
        );
        let on = FeatureGates::parse(&["GenericWorkload=true".to_owned()], Release::NEWEST).unwrap();
        assert_eq!((cluster_roles(&on).count(), cluster_role_bindings(&on).count()), (74, 55));
        let rules = |role: Value| role.items_at(&["rules"]).to_vec();
        for rule in cluster_roles(&NEWEST).chain(roles(&NEWEST)).flat_map(rules) {
            let full = |key: &str| rule.get(key).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
            let resources = full("apiGroups") && full("resources");
            assert!(full("verbs") && (resources != full("nonResourceURLs")), "{rule:?}");
        }
        for binding in cluster_role_bindings(&NEWEST).chain(role_bindings(&NEWEST)) {
            let subjects = binding.items_at(&["subjects"]);
            assert!(subjects.iter().all(|subject| !subject.str_at(&["name"]).is_empty()), "{binding:?}");
        }
    }

    #[test]
    fn bootstrap_roles_match_their_lines() {
        let named = |mut list: Box<dyn Iterator<Item = Value>>, name: &str| {
            list.find(|object| object.str_at(&["metadata", "name"]) == name).unwrap_or_default()
        };
        let reader = named(Box::new(role_bindings(&NEWEST)), "system::extension-apiserver-authentication-reader");
        assert_eq!(reader.str_at(&["metadata", "namespace"]), "kube-system");
        assert_eq!(
            reader.get("roleRef"),
            Some(&json!({"apiGroup": GROUP, "kind": "Role", "name": "extension-apiserver-authentication-reader"}))
        );
        assert!(named(Box::new(cluster_role_bindings(&NEWEST)), "system:node").get("subjects").is_none());
        let edit = named(Box::new(cluster_roles(&NEWEST)), "edit");
        assert_eq!(edit.at(&["metadata", "labels", &aggregation_label("admin")]), Some(&Value::from("true")));
        let selector = json!({"matchLabels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}});
        assert_eq!(edit.at(&["aggregationRule", "clusterRoleSelectors"]), Some(&json!([selector])));
        assert_eq!(
            named(Box::new(cluster_roles(&NEWEST)), "system:controller:root-ca-cert-publisher").get("rules"),
            Some(&json!([
                {"verbs": ["create", "update"], "apiGroups": [""], "resources": ["configmaps"]},
                {"verbs": ["create", "patch", "update"], "apiGroups": ["", "events.k8s.io"], "resources": ["events"]}
            ]))
        );
    }
}
