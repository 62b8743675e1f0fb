//! The roles that would have sufficed for a user, and the rules that the user has not needed.

use std::collections::{BTreeMap, BTreeSet, HashSet};

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

/// The roles that would have sufficed: a ClusterRole for cluster-wide permissions, and a Role in each namespace for
/// the others.
pub fn sufficient(name: &str, rights: &HashSet<Right>) -> Vec<Value> {
    let everywhere: HashSet<Right> = rights.iter().filter(|right| right.namespace.is_empty()).cloned().collect();
    let mut roles: BTreeMap<&str, Rules> = BTreeMap::new();
    for right in rights {
        let anywhere = Right { namespace: Text::default(), ..right.clone() };
        if right.namespace.is_empty() || !everywhere.contains(&anywhere) {
            roles.entry(&right.namespace).or_default().add(&right.group, &right.resource(), right.verb);
        }
    }
    let role = |(namespace, rules): (&str, Rules)| {
        let kind = if namespace.is_empty() { "ClusterRole" } else { "Role" };
        let mut metadata = json!({"name": name});
        if !namespace.is_empty() {
            metadata.set_at(&["namespace"], Value::from(namespace));
        }
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": (metadata),
            "rules": (rules.values().into_iter().collect::<Value>())})
    };
    roles.into_iter().map(role).collect()
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
