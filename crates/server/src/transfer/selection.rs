//! Selection of objects by namespace, resource and labels.

use kinds::CATALOGUE;
use machinery::Value;
use machinery::selector::LabelSelector;
use objects::Key;
use resource::builtin;

/// The resource of CustomResourceDefinitions.
pub(super) const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// Which objects are transferred: those that match all three fields. The default selects every object.
#[derive(Clone, Debug, Default)]
pub struct ObjectSelection {
    /// The objects in these namespaces, and the Namespaces themselves; empty for all objects.
    pub namespaces: Vec<String>,
    /// Resources, as `plural.group`, or `plural` for the core group; empty for all. [`ObjectSelection::resolve`] accepts other
    /// names.
    pub resources: Vec<String>,
    pub labels: LabelSelector,
}

impl ObjectSelection {
    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.namespaces.is_empty() && self.resources.is_empty() && self.labels.is_empty()
    }

    /// Whether one of the resources is not built-in, so that its name has to be looked up in the definitions.
    pub fn names_custom_resources(&self) -> bool {
        self.resources.iter().any(|name| resolve_built_in(name).is_none())
    }

    /// Replaces singular and short names, and plurals without their group, as kubectl does. Built-in kinds take
    /// precedence over the definitions, and unknown names are kept.
    #[must_use]
    pub fn resolve(&self, definitions: &[Value]) -> ObjectSelection {
        let of_definitions = |name: &String| definitions.iter().find_map(|definition| resolve_custom(name, definition));
        let resolve =
            |name: &String| resolve_built_in(name).or_else(|| of_definitions(name)).unwrap_or_else(|| name.clone());
        ObjectSelection { resources: self.resources.iter().map(resolve).collect(), ..self.clone() }
    }

    /// Whether namespace and resource of a key are selected.
    pub fn has_key(&self, key: &Key) -> bool {
        let of_resource = |resource: &String| {
            let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
            (plural, group) == (key.plural.as_str(), key.group.as_str())
        };
        let namespace = match key.path.split_once('/') {
            Some((namespace, _)) => Some(namespace),
            None => (key.group.is_empty() && key.plural == "namespaces").then_some(key.path.as_str()),
        };
        (self.resources.is_empty() || self.resources.iter().any(of_resource))
            && (self.namespaces.is_empty() || self.namespaces.iter().any(|name| Some(name.as_str()) == namespace))
    }

    pub fn has_labels(&self, object: &Value) -> bool {
        let labels = object.at(&["metadata", "labels"]);
        self.labels.matches(|label| labels.and_then(|labels| labels.get(label)).and_then(Value::as_str))
    }
}

/// The built-in resource of a name; the core group comes first.
fn resolve_built_in(name: &str) -> Option<String> {
    let kinds = CATALOGUE.kinds().filter(|kind| kind.group.is_empty());
    let mut kinds = kinds.chain(CATALOGUE.kinds().filter(|kind| !kind.group.is_empty()));
    let names = |kind: &builtin::BuiltIn| {
        [kind.plural, kind.singular].iter().chain(&kind.short_names).copied().collect::<Vec<_>>()
    };
    let kind = kinds.find(|kind| is_named(name, kind.group, &names(kind)))?;
    Some(full(kind.plural, kind.group))
}

/// The resource of a definition, if it has this name.
fn resolve_custom(name: &str, definition: &Value) -> Option<String> {
    let text = |path: &[&str]| definition.str_at(path);
    let short = definition.items_at(&["spec", "names", "shortNames"]);
    let (group, plural) = (text(&["spec", "group"]), text(&["spec", "names", "plural"]));
    let mut names = vec![plural, text(&["spec", "names", "singular"])];
    names.extend(short.iter().filter_map(Value::as_str));
    is_named(name, group, &names).then(|| full(plural, group))
}

fn full(plural: &str, group: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

/// Whether a name, with or without the group after it, is one of `names`.
fn is_named(name: &str, group: &str, names: &[&str]) -> bool {
    match name.split_once('.') {
        None => names.contains(&name),
        Some((first, rest)) => rest == group && names.contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn names_of_resources_are_those_of_kubectl() {
        let definition = json!({"spec": {"group": "stable.example.com", "names": {
            "plural": "crontabs", "singular": "crontab", "shortNames": ["ct", "cm"]
        }}});
        for (name, wanted) in [
            ("cm", "configmaps"),
            ("configmap", "configmaps"),
            ("deploy", "deployments.apps"),
            ("deployments", "deployments.apps"),
            ("events", "events"),
            ("events.events.k8s.io", "events.events.k8s.io"),
            ("crd", "customresourcedefinitions.apiextensions.k8s.io"),
            ("ct", "crontabs.stable.example.com"),
            ("crontab.stable.example.com", "crontabs.stable.example.com"),
            ("crontabs.other.example.com", "crontabs.other.example.com"),
        ] {
            let selection = ObjectSelection { resources: vec![name.to_owned()], ..ObjectSelection::default() };
            assert_eq!(selection.resolve(std::slice::from_ref(&definition)).resources, [wanted]);
        }
    }
}
