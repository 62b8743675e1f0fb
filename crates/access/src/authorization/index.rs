//! The RBAC index: an immutable snapshot of the RBAC objects, in which grants are looked up by subject.
//!
//! A decision looks up the user's name and groups in two scopes, the cluster and one namespace. So its cost depends
//! on the user's grants and not on the number of bindings.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use base::request::User;
use machinery::selector::LabelSelector;
use machinery::status::aggregate;
use machinery::{Text, Value};
use objects::{Event, EventKind, Key, Stored};

use super::decision::{DecisionDetails, Grant};
use super::{AccessAttributes, Decision, PolicyRule};

/// The group of Role, ClusterRole and their bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// Grants by the name of their binding.
type Grants = imbl::OrdMap<Text, Arc<Grant>>;
type Subjects = imbl::HashMap<Text, Grants>;

/// The grants of the cluster or of one namespace.
#[derive(Clone, Default)]
struct Scope {
    users: Subjects,
    groups: Subjects,
}

struct Role {
    object: Arc<Stored>,
    /// The rules of the object. They are decoded at first use, because most default roles are never used.
    rules: OnceLock<Arc<[PolicyRule]>>,
    /// Selectors of the ClusterRoles that this one aggregates.
    selectors: Vec<LabelSelector>,
    aggregated: OnceLock<Arc<[PolicyRule]>>,
}

impl Role {
    fn of(object: &Arc<Stored>) -> Role {
        let (rules, aggregated) = Default::default();
        Role { object: object.clone(), rules, selectors: vec![], aggregated }
    }

    /// A ClusterRole, with the selectors of its `aggregationRule` if it has one.
    fn aggregating(object: &Arc<Stored>) -> Role {
        let aggregates = object.body.has("aggregationRule", "clusterRoleSelectors");
        let value = if aggregates { object.body.to_managed_value(0) } else { Value::Null };
        let selectors = value.items_at(&["aggregationRule", "clusterRoleSelectors"]);
        Role { selectors: selectors.iter().filter_map(LabelSelector::from_value).collect(), ..Role::of(object) }
    }

    fn rules(&self) -> &Arc<[PolicyRule]> {
        self.rules.get_or_init(|| PolicyRule::of_role(&self.object.body.to_managed_value(0)).into())
    }

    /// A copy of the role that computes its aggregated rules again when they are next needed.
    fn without_aggregated(&self) -> Role {
        let (object, rules, selectors) = (self.object.clone(), self.rules.clone(), self.selectors.clone());
        Role { object, rules, selectors, aggregated: OnceLock::new() }
    }

    fn selects(&self, other: &Role) -> bool {
        self.selectors.iter().any(|selector| selector.selects(&other.object.meta.labels))
    }
}

/// A binding refers to a role that does not exist.
#[derive(Clone, Debug, PartialEq)]
pub struct Missing {
    kind: Text,
    pub name: Text,
}

impl fmt::Display for Missing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{GROUP} \"{}\" not found", self.kind.to_lowercase(), self.name)
    }
}

#[derive(Clone, Default)]
struct RbacSnapshot {
    scopes: imbl::HashMap<Text, Scope>,
    roles: imbl::HashMap<Text, Arc<Role>>,
    cluster_roles: imbl::OrdMap<Text, Arc<Role>>,
    /// The aggregating ClusterRoles.
    aggregating: imbl::OrdSet<Text>,
}

impl RbacSnapshot {
    fn set_cluster_role(&mut self, name: &Text, role: Option<Role>) {
        match role {
            Some(role) => {
                if role.selectors.is_empty() {
                    self.aggregating.remove(name);
                } else {
                    self.aggregating.insert(name.clone());
                }
                self.cluster_roles.insert(name.clone(), Arc::new(role));
            }
            None => {
                self.aggregating.remove(name);
                self.cluster_roles.remove(name);
            }
        }
        for name in self.aggregating.clone() {
            let has_aggregated = |role: &&mut Arc<Role>| role.aggregated.get().is_some();
            if let Some(role) = self.cluster_roles.get_mut(&name).filter(has_aggregated) {
                *role = Arc::new(role.without_aggregated());
            }
        }
    }

    /// The rules of the role that a grant refers to.
    fn rules(&self, grant: &Grant) -> Result<Arc<[PolicyRule]>, Missing> {
        let missing = || Missing { kind: grant.role_kind.clone(), name: grant.role.clone() };
        if grant.role_kind == "Role" {
            return self.roles.get(&grant.role_path).map(|role| role.rules().clone()).ok_or_else(missing);
        }
        self.cluster_role_rules(&grant.role).ok_or_else(missing)
    }

    fn cluster_role_rules(&self, name: &Text) -> Option<Arc<[PolicyRule]>> {
        let role = self.cluster_roles.get(name)?;
        if role.selectors.is_empty() {
            return Some(role.rules().clone());
        }
        Some(role.aggregated.get_or_init(|| self.aggregate(name, role)).clone())
    }

    /// The rules of all ClusterRoles that a role aggregates, directly or transitively.
    fn aggregate(&self, name: &Text, role: &Arc<Role>) -> Arc<[PolicyRule]> {
        let mut seen: HashSet<&Text> = HashSet::from([name]);
        let mut pending = vec![role];
        let mut out: Vec<PolicyRule> = vec![];
        while let Some(aggregating) = pending.pop() {
            for (name, other) in &self.cluster_roles {
                if !aggregating.selects(other) || !seen.insert(name) {
                    continue;
                }
                if other.selectors.is_empty() {
                    out.extend(other.rules().iter().cloned());
                } else {
                    pending.push(other);
                }
            }
        }
        let mut known = HashSet::new();
        out.retain(|rule| known.insert(rule.clone()));
        out.into()
    }

    /// The grants of a user in a scope: first those to the user's name, then those to groups.
    fn grants<'a>(&'a self, user: &'a User, namespace: &str) -> impl Iterator<Item = &'a Arc<Grant>> {
        let scope = self.scopes.get(namespace);
        let named = scope.and_then(|scope| scope.users.get(&user.name));
        let grouped = scope.into_iter().flat_map(|scope| user.groups.iter().filter_map(|g| scope.groups.get(g)));
        named.into_iter().chain(grouped).flat_map(|grants| grants.values())
    }

    /// The grant that explains a decision. If several subjects of a binding match the user, that is the grant to the
    /// first of them.
    fn first<'a>(&'a self, user: &'a User, grant: &'a Arc<Grant>) -> &'a Arc<Grant> {
        if grant.subject_index == 0 {
            return grant;
        }
        let same_binding = self.grants(user, &grant.namespace).filter(|other| other.binding == grant.binding);
        same_binding.min_by_key(|other| other.subject_index).unwrap_or(grant)
    }

    fn add_binding(&mut self, namespace: &Text, binding: &Value) {
        self.change_binding(namespace, binding, |grants, grant| {
            grants.entry(grant.binding.clone()).or_insert_with(|| Arc::new(grant));
        });
    }

    fn remove_binding(&mut self, namespace: &Text, binding: &Value) {
        self.change_binding(namespace, binding, |grants, grant| drop(grants.remove(&grant.binding)));
    }

    /// Applies `change` to the grants of every subject of a binding, and drops subjects and scopes that have none
    /// left.
    fn change_binding(&mut self, namespace: &Text, binding: &Value, change: fn(&mut Grants, Grant)) {
        let mut scope = self.scopes.get(namespace).cloned().unwrap_or_default();
        for SubjectGrant { is_group, subject, grant } in grants_of(namespace, binding) {
            let subjects = if is_group { &mut scope.groups } else { &mut scope.users };
            let mut grants = subjects.get(&subject).cloned().unwrap_or_default();
            change(&mut grants, grant);
            if grants.is_empty() {
                subjects.remove(&subject);
            } else {
                subjects.insert(subject, grants);
            }
        }
        if scope.users.is_empty() && scope.groups.is_empty() {
            self.scopes.remove(namespace);
        } else {
            self.scopes.insert(namespace.clone(), scope);
        }
    }
}

/// The scopes that apply to a request: the cluster (`""`), then its namespace, unless that is empty.
fn scopes(namespace: &str) -> impl Iterator<Item = &str> {
    std::iter::once("").chain(Some(namespace).filter(|namespace| !namespace.is_empty()))
}

/// Keeps the first grant of each role, so that many bindings to one large role do not multiply the work.
fn of_distinct_roles<'a>(grants: impl Iterator<Item = &'a Arc<Grant>>) -> impl Iterator<Item = &'a Arc<Grant>> {
    let mut seen = HashSet::new();
    grants.filter(move |grant| seen.insert((&grant.role_kind, &grant.role_path)))
}

struct SubjectGrant {
    is_group: bool,
    /// The name of the group or of the user.
    subject: Text,
    grant: Grant,
}

/// The grants of a binding, in the order of its subjects.
fn grants_of(namespace: &Text, binding: &Value) -> Vec<SubjectGrant> {
    let role = binding.str_at(&["roleRef", "name"]);
    let role_kind = binding.str_at(&["roleRef", "kind"]);
    let role_path = if role_kind == "Role" { format!("{namespace}/{role}") } else { role.to_owned() };
    let subjects = binding.items_at(&["subjects"]);
    let grant = |(subject_index, subject): (usize, &Value)| {
        let (kind, name) = (subject.str_at(&["kind"]), subject.str_at(&["name"]));
        let account_namespace = match subject.str_at(&["namespace"]) {
            "" => namespace.as_str(),
            given => given,
        };
        let (user_or_group, displayed) = match kind {
            "ServiceAccount" if account_namespace.is_empty() => return None,
            "ServiceAccount" => {
                (format!("system:serviceaccount:{account_namespace}:{name}"), format!("{name}/{account_namespace}"))
            }
            _ => (name.to_owned(), name.to_owned()),
        };
        let grant = Grant {
            binding: binding.str_at(&["metadata", "name"]).into(),
            namespace: namespace.clone(),
            role_kind: role_kind.into(),
            role: role.into(),
            role_path: Text::from(role_path.as_str()),
            subject: Text::from(format!("{kind} {}", machinery::value::quote(&displayed))),
            subject_index,
        };
        Some(SubjectGrant { is_group: kind == "Group", subject: Text::from(user_or_group), grant })
    };
    subjects.iter().enumerate().filter_map(grant).collect()
}

/// A role that a binding grants to a user.
#[derive(Debug)]
pub struct GrantedRole {
    pub kind: Text,
    pub name: Text,
    /// The namespace of the binding; empty if it grants the role everywhere.
    pub namespace: Text,
    pub rules: Arc<[PolicyRule]>,
}

/// The RBAC authorizer, updated by events.
#[derive(Default)]
pub struct Rbac {
    snapshot: ArcSwap<RbacSnapshot>,
    /// Whether aggregating ClusterRoles grant only their stored rules, which a controller writes.
    as_stored: bool,
}

impl Rbac {
    /// With `aggregates`, aggregated rules take effect at once, even before the controller has written them into the
    /// role.
    pub fn new(aggregates: bool) -> Rbac {
        Rbac { as_stored: !aggregates, ..Rbac::default() }
    }

    /// A copy for another context, whose events it observes from then on.
    pub fn fork(&self) -> Rbac {
        Rbac { snapshot: ArcSwap::new(self.snapshot.load_full()), as_stored: self.as_stored }
    }

    fn cluster_role(&self, object: &Arc<Stored>) -> Role {
        if self.as_stored { Role::of(object) } else { Role::aggregating(object) }
    }

    /// Updates the snapshot for an event. Events are passed in order and one at a time: the new snapshot replaces the
    /// one that it was made from.
    pub fn observe(&self, key: &Key, event: &Event) {
        if key.group != GROUP {
            return;
        }
        let namespace = key.path.rsplit_once('/').map_or(Text::default(), |(namespace, _)| Text::from(namespace));
        let exists = event.kind != EventKind::Deleted;
        let object = &event.object;
        let mut next = RbacSnapshot::clone(&self.snapshot.load());
        match key.plural.as_str() {
            "roles" if exists => drop(next.roles.insert(key.path.clone(), Arc::new(Role::of(object)))),
            "roles" => drop(next.roles.remove(&key.path)),
            "clusterroles" => next.set_cluster_role(&key.path, exists.then(|| self.cluster_role(object))),
            "rolebindings" | "clusterrolebindings" => {
                let object = object.body.to_managed_value(0);
                if let Some(previous) = &event.previous {
                    next.remove_binding(&namespace, &previous.body.to_managed_value(0));
                }
                if exists { next.add_binding(&namespace, &object) } else { next.remove_binding(&namespace, &object) }
            }
            _ => return,
        }
        self.snapshot.store(Arc::new(next));
    }

    /// Decides about a request of a user.
    pub fn decide(&self, user: &User, attributes: &AccessAttributes<'_>) -> Decision {
        let snapshot = self.snapshot.load();
        let mut errors = vec![];
        let grants = scopes(attributes.namespace).flat_map(|scope| snapshot.grants(user, scope));
        for grant in of_distinct_roles(grants) {
            match snapshot.rules(grant) {
                Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                    return Decision::Allowed(snapshot.first(user, grant).clone());
                }
                Ok(_) => {}
                Err(missing) => errors.push(missing.to_string()),
            }
        }
        Decision::NoOpinion(match errors.as_slice() {
            [] => DecisionDetails::default(),
            errors => DecisionDetails::reason(format!("RBAC: {}", aggregate(errors))),
        })
    }

    /// The rules of a user in a namespace, cluster-wide ones first, and the missing roles that bindings refer to. A
    /// role counts once, however many bindings grant it.
    pub fn rules_of(&self, user: &User, namespace: &str) -> (Vec<Arc<[PolicyRule]>>, Vec<Missing>) {
        let snapshot = self.snapshot.load();
        let by_binding = |scope| -> BTreeMap<&Text, &Arc<Grant>> {
            snapshot.grants(user, scope).map(|grant| (&grant.binding, grant)).collect()
        };
        let grants = scopes(namespace).flat_map(|scope| by_binding(scope).into_values());
        let (mut rules, mut errors) = (vec![], vec![]);
        for grant in of_distinct_roles(grants) {
            match snapshot.rules(grant) {
                Ok(found) => rules.push(found),
                Err(missing) => errors.push(missing),
            }
        }
        (rules, errors)
    }

    /// The roles that are granted to a user, in every namespace. Bindings in the same namespace that grant the same
    /// role count once.
    pub fn granted(&self, user: &User) -> Vec<GrantedRole> {
        let snapshot = self.snapshot.load();
        let mut namespaces: Vec<&Text> = snapshot.scopes.keys().collect();
        namespaces.sort_unstable();
        let grants = |namespace: &&Text| of_distinct_roles(snapshot.grants(user, namespace)).collect::<Vec<_>>();
        let role = |grant: &Arc<Grant>| {
            let (kind, name, namespace) = (grant.role_kind.clone(), grant.role.clone(), grant.namespace.clone());
            Some(GrantedRole { kind, name, namespace, rules: snapshot.rules(grant).ok()? })
        };
        namespaces.iter().flat_map(grants).filter_map(role).collect()
    }

    /// The rules of the role that a binding in `namespace` would grant.
    pub fn rules_of_role(&self, kind: &str, namespace: &str, name: &str) -> Option<Arc<[PolicyRule]>> {
        let snapshot = self.snapshot.load();
        match kind {
            "Role" => snapshot.roles.get(format!("{namespace}/{name}").as_str()).map(|role| role.rules().clone()),
            _ => snapshot.cluster_role_rules(&Text::from(name)),
        }
    }
}

#[cfg(test)]
mod tests;
