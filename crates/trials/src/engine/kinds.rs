//! The kinds that a fork serves.

use std::collections::BTreeMap;

use embed::{Value, Workspace};

use super::error::Error;

/// A kind whose objects can be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The resource with its group, as in `deployments.apps`.
    pub resource: String,
    pub kind: String,
    /// The singular and the short names.
    names: Vec<String>,
    /// The path of the version, such as `/apis/apps/v1`.
    base: String,
}

impl Kind {
    fn plural(&self) -> &str {
        self.resource.split('.').next().unwrap_or_default()
    }

    /// Reads a resource of a discovery document.
    fn read(group: &str, base: &str, resource: &Value) -> Kind {
        let (plural, dot) = (resource.str_at(&["resource"]), if group.is_empty() { "" } else { "." });
        let names = resource.texts_at(&["shortNames"]).chain([resource.str_at(&["singularResource"])]);
        Kind {
            resource: format!("{plural}{dot}{group}"),
            kind: resource.str_at(&["responseKind", "kind"]).to_owned(),
            names: names.map(str::to_owned).collect(),
            base: base.to_owned(),
        }
    }

    /// The path of a collection or, with a name, of an object.
    pub fn path(&self, namespace: &str, name: &str) -> String {
        let place = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
        let slash = if name.is_empty() { "" } else { "/" };
        format!("{}{place}/{}{slash}{name}", self.base, self.plural())
    }

    /// Whether the kind can be named so: by kind, resource, singular or short name, with or without its group, in any case.
    fn is_called(&self, name: &str) -> bool {
        let group = self.resource.split_once('.').map_or("", |(_, group)| group);
        let own = [&*self.kind, self.plural()].into_iter().chain(self.names.iter().map(String::as_str));
        own.filter(|own| !own.is_empty()).any(|own| {
            let rest =
                name.get(..own.len()).filter(|begin| begin.eq_ignore_ascii_case(own)).map(|_| &name[own.len()..]);
            rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('.') == Some(group))
        })
    }
}

/// The kinds of a fork, each in the version that is preferred.
#[derive(Clone, Debug, Default)]
pub struct Kinds(Vec<Kind>);

/// Objects that only the server has.
const LEFT_OUT: [&str; 2] = ["testing.pintle.dev", "workspaces.pintle.dev"];

impl Kinds {
    pub async fn read(workspace: &Workspace) -> Result<Kinds, Error> {
        let mut kinds: BTreeMap<String, Kind> = BTreeMap::new();
        for root in ["/api", "/apis"] {
            for group in workspace.discovery(root).await?.items_at(&["items"]) {
                let name = group.str_at(&["metadata", "name"]);
                let slash = if name.is_empty() { "" } else { "/" };
                for version in group.items_at(&["versions"]).iter().filter(|_| !LEFT_OUT.contains(&name)) {
                    let base = format!("{root}{slash}{name}/{}", version.str_at(&["version"]));
                    for resource in version.items_at(&["resources"]) {
                        if resource.texts_at(&["verbs"]).any(|verb| verb == "list") {
                            let kind = Kind::read(name, &base, resource);
                            // the preferred version comes first
                            kinds.entry(kind.resource.clone()).or_insert(kind);
                        }
                    }
                }
            }
        }
        Ok(Kinds(kinds.into_values().collect()))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.0.iter()
    }

    /// The kind that a user names, as kubectl accepts it. Of several, that of the core group or the first group is meant.
    pub fn named(&self, name: &str) -> Result<&Kind, Error> {
        let called = || self.0.iter().filter(|kind| kind.is_called(name));
        let missing = || Error::Setup(format!("the source has no kind {name:?}: add its CRD as another source"));
        called().min_by_key(|kind| kind.resource.contains('.')).ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_many_names() {
        let kind = |resource: &str, kind: &str, short: &str| Kind {
            resource: resource.to_owned(),
            kind: kind.to_owned(),
            names: vec![kind.to_lowercase(), short.to_owned()],
            base: String::new(),
        };
        let kinds = Kinds(vec![
            kind("events.events.k8s.io", "Event", "ev"),
            kind("events", "Event", "ev"),
            kind("deployments.apps", "Deployment", "deploy"),
        ]);
        for (name, want) in [
            ("Deployment", "deployments.apps"),
            ("deploy", "deployments.apps"),
            ("deployments", "deployments.apps"),
            ("deployment.apps", "deployments.apps"),
            ("EVENT", "events"),
            ("events.events.k8s.io", "events.events.k8s.io"),
        ] {
            assert_eq!(kinds.named(name).map(|kind| kind.resource.as_str()), Ok(want), "{name}");
        }
        for name in ["deployment.batch", "de", "deploymentss", ""] {
            assert!(kinds.named(name).is_err(), "{name}");
        }
    }
}
