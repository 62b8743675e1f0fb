//! The roles that would have sufficed for a user, and the rules that the user has not needed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use access::authorization::{AccessAttributes, GrantedRole, PolicyRule};
use base::request::RequestInfo;
use machinery::{Text, Value, json};

use crate::limits;

/// Verbs in the order in which rules list them; others follow.
const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// The permission that a request needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Right {
    pub verb: &'static str,
    pub group: Text,
    pub resource: Text,
    pub subresource: Text,
    /// Empty for a cluster-wide permission.
    pub namespace: Text,
}

impl Right {
    pub fn of(info: &RequestInfo) -> Right {
        // the path of a namespace has its name where other paths have the namespace
        let is_namespace = info.group.is_empty() && info.resource == "namespaces";
        Right {
            verb: info.verb.as_str(),
            group: info.group.clone(),
            resource: info.resource.clone(),
            subresource: info.subresource.clone(),
            namespace: if is_namespace { Text::default() } else { info.namespace.clone() },
        }
    }

    /// What the server demands for a write besides the right to write: of roles, not to grant more than the writer has, and of
    /// certificates, the right to approve or sign for their signer.
    pub fn demanded(&self) -> Vec<Right> {
        let right = |verb, resource| Right {
            verb,
            resource: Text::new_static(resource),
            subresource: Text::default(),
            ..self.clone()
        };
        if !matches!(self.verb, "create" | "update" | "patch") {
            return vec![];
        }
        match (self.group.as_str(), self.resource.as_str(), self.subresource.as_str()) {
            ("rbac.authorization.k8s.io", "roles", "") => vec![right("escalate", "roles")],
            ("rbac.authorization.k8s.io", "clusterroles", "") => vec![right("escalate", "clusterroles")],
            ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings", "") => {
                vec![right("bind", "roles"), right("bind", "clusterroles")]
            }
            ("certificates.k8s.io", "certificatesigningrequests", "approval") => vec![right("approve", "signers")],
            ("certificates.k8s.io", "certificatesigningrequests", "status") => vec![right("sign", "signers")],
            _ => vec![],
        }
    }

    /// The resource as in rules of roles.
    fn resource(&self) -> String {
        if self.subresource.is_empty() {
            return self.resource.to_string();
        }
        format!("{}/{}", self.resource, self.subresource)
    }

    pub fn attributes(&self) -> AccessAttributes<'_> {
        AccessAttributes {
            verb: self.verb,
            is_resource: true,
            group: &self.group,
            resource: &self.resource,
            subresource: &self.subresource,
            namespace: &self.namespace,
            ..AccessAttributes::default()
        }
    }
}

/// Verbs, each with its position in the order of rules.
type OrderedVerbs = BTreeSet<(usize, String)>;

/// The verbs by group and resource.
#[derive(Default)]
struct Rules(BTreeMap<(String, String), OrderedVerbs>);

/// Resources of a group that have the same verbs.
struct MergedRule<'a> {
    group: &'a str,
    resources: Vec<&'a str>,
    verbs: &'a OrderedVerbs,
}

impl Rules {
    fn add(&mut self, group: &str, resource: &str, verb: &str) {
        let place = VERBS.iter().position(|known| *known == verb).unwrap_or(VERBS.len());
        self.0.entry((group.to_owned(), resource.to_owned())).or_default().insert((place, verb.to_owned()));
    }

    /// The rules of a role: one for all resources of a group with the same verbs.
    fn values(&self) -> Vec<Value> {
        let mut merged: Vec<MergedRule<'_>> = vec![];
        for ((group, resource), verbs) in &self.0 {
            match merged.iter_mut().find(|rule| rule.group == group && rule.verbs == verbs) {
                Some(rule) => rule.resources.push(resource),
                None => merged.push(MergedRule { group, resources: vec![resource], verbs }),
            }
        }
        let texts = |texts: &[&str]| -> Value { texts.iter().map(|text| Value::from(*text)).collect() };
        let rule = |rule: &MergedRule<'_>| {
            let verbs: Vec<&str> = rule.verbs.iter().map(|(_, verb)| verb.as_str()).collect();
            json!({"apiGroups": (texts(&[rule.group])), "resources": (texts(&rule.resources)), "verbs": (texts(&verbs))})
        };
        merged.iter().map(rule).collect()
    }
}

/// The roles that would have sufficed for a user, each with its binding: a ClusterRole for what was requested without a
/// namespace or in several, and a Role in each namespace for the rest.
pub fn sufficient(user: &str, rights: &HashSet<Right>) -> Vec<Value> {
    let mut roles: BTreeMap<Text, Rules> = BTreeMap::new();
    for right in &widened(rights) {
        roles.entry(right.namespace.clone()).or_default().add(&right.group, &right.resource(), right.verb);
    }
    let subject = Subject::of(user);
    roles.iter().flat_map(|(namespace, rules)| [subject.role(namespace, rules), subject.binding(namespace)]).collect()
}

/// Rights without those that others contain. What was requested in several namespaces is needed in all, since a client
/// works in the namespaces that there are; and a client that watches lists again when its watch has expired.
fn widened(rights: &HashSet<Right>) -> HashSet<Right> {
    let lists =
        rights.iter().filter(|right| right.verb == "watch").map(|right| Right { verb: "list", ..right.clone() });
    let all: HashSet<Right> = rights.iter().cloned().chain(lists).collect();
    let anywhere = |right: &Right| Right { namespace: Text::default(), ..right.clone() };
    let mut places: HashMap<Right, HashSet<&Text>> = HashMap::new();
    for right in &all {
        places.entry(anywhere(right)).or_default().insert(&right.namespace);
    }
    let widen = |(right, places): (Right, HashSet<&Text>)| match places.iter().next() {
        Some(namespace) if places.len() == 1 => Right { namespace: (*namespace).clone(), ..right },
        _ => right,
    };
    places.into_iter().map(widen).collect()
}

/// The user that a role is for.
struct Subject {
    /// The name of the roles.
    name: String,
    value: Value,
}

impl Subject {
    fn of(user: &str) -> Subject {
        let account = user.strip_prefix("system:serviceaccount:").and_then(|name| name.split_once(':'));
        let value = match account {
            Some((namespace, name)) => json!({"kind": "ServiceAccount", "name": name, "namespace": namespace}),
            None => json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}),
        };
        Subject { name: role_name(account.map_or(user, |(_, name)| name)), value }
    }

    fn role(&self, namespace: &str, rules: &Rules) -> Value {
        let mut role = self.object(if namespace.is_empty() { "ClusterRole" } else { "Role" }, namespace);
        role.set_at(&["rules"], Value::Array(rules.values()));
        role
    }

    fn binding(&self, namespace: &str) -> Value {
        let (kind, role) = match namespace {
            "" => ("ClusterRoleBinding", "ClusterRole"),
            _ => ("RoleBinding", "Role"),
        };
        let mut binding = self.object(kind, namespace);
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": (self.name.as_str())});
        binding.set_at(&["roleRef"], role);
        binding.set_at(&["subjects"], Value::Array(vec![self.value.clone()]));
        binding
    }

    fn object(&self, kind: &str, namespace: &str) -> Value {
        let mut metadata = json!({"name": (self.name.as_str())});
        metadata.put_text(&["namespace"], namespace);
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata})
    }
}

/// ClusterRoles of every server, which a role of a user must not replace.
const TAKEN: [&str; 4] = ["admin", "edit", "view", "cluster-admin"];

/// The name of the roles of a user: the user's, reduced to characters that a name may have.
fn role_name(user: &str) -> String {
    let name = user.to_ascii_lowercase();
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    let name = name.trim_matches(|c| c == '-' || c == '.');
    match &name[..name.floor_char_boundary(limits::REPORT_ROLE_NAME_BYTES)] {
        "" => "client".to_owned(),
        name if TAKEN.contains(&name) => format!("user-{name}"),
        name => name.to_owned(),
    }
}

/// The rules of a role that no request has needed, in part or as a whole. Names of objects in rules are ignored.
pub fn unused(role: &GrantedRole, rights: &HashSet<Right>) -> Vec<Value> {
    let rights: Vec<&Right> =
        rights.iter().filter(|right| role.namespace.is_empty() || right.namespace == role.namespace).collect();
    let mut found = Rules::default();
    let mut parts = 0;
    for rule in role.rules.iter() {
        for (group, resource, verb) in parts_of(rule) {
            parts += 1;
            if parts > limits::REPORT_ITEMS_MAX {
                return found.values();
            }
            let one = PolicyRule {
                verbs: vec![verb.clone()],
                groups: vec![group.clone()],
                resources: vec![resource.clone()],
                ..PolicyRule::default()
            };
            if !rights.iter().any(|right| one.allows(&right.attributes())) {
                found.add(group, resource, verb);
            }
        }
    }
    found.values()
}

fn parts_of(rule: &PolicyRule) -> impl Iterator<Item = (&Text, &Text, &Text)> {
    let resources = |group| rule.resources.iter().map(move |resource| (group, resource));
    let verbs = |(group, resource)| rule.verbs.iter().map(move |verb| (group, resource, verb));
    rule.groups.iter().flat_map(resources).flat_map(verbs)
}
