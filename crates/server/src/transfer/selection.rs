//! Selection of objects by namespace, resource and labels.

use machinery::Value;
use machinery::selector::LabelSelector;
use objects::Key;

/// Which objects are transferred: those that match all three fields. The default selects every object.
#[derive(Clone, Debug, Default)]
pub struct ObjectSelection {
    /// The objects in these namespaces, and the Namespaces themselves; empty for all objects.
    pub namespaces: Vec<String>,
    /// Resources, as `plural.group`, or `plural` for the core group; empty for all.
    pub resources: Vec<String>,
    pub labels: LabelSelector,
}

impl ObjectSelection {
    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.namespaces.is_empty() && self.resources.is_empty() && self.labels.is_empty()
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

    /// Whether the labels of an object are selected.
    pub fn has_labels(&self, object: &Value) -> bool {
        let labels = object.at(&["metadata", "labels"]);
        self.labels.matches(|label| labels.and_then(|labels| labels.get(label)).and_then(Value::as_str))
    }
}
