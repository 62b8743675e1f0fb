//! Captured objects in their stored form, and their loading into a new store before a server opens it.

use base::request::FeatureGates;
use bytes::Bytes;
use kinds::CATALOGUE;
use machinery::priority::kube_aware;
use machinery::{Release, Text, Value, value};
use objects::{Encoded, Key, Storage};
use resource::builtin::{BuiltIn, DEFINITION_GROUP};
use store::{Expected, Refused, Write as Put};

use super::unreadable;

/// Facts of a kind that has no definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuiltInKind {
    /// Where its objects are stored.
    Stored {
        group: &'static str,
        plural: &'static str,
        namespaced: bool,
        /// The version in which they are served: that of the object, or the newest one if that is no longer served.
        api_version: &'static str,
    },
    /// The kind is built-in, but no version of it is served.
    NotServed,
    None,
}

fn row(api_version: &str, kind: &str) -> Option<&'static BuiltIn> {
    CATALOGUE.rows().iter().find(|row| row.api_version == api_version && row.kind == kind)
}

pub fn built_in_kind(api_version: &str, kind: &str) -> BuiltInKind {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let is_served = |row: &BuiltIn| {
        let place = (row.storage_group(), row.plural);
        CATALOGUE.kinds().any(|other| (other.storage_group(), other.plural) == place)
    };
    let versions = || CATALOGUE.rows().iter().filter(|row| row.group == group && row.kind == kind);
    let newest = || versions().filter(|row| is_served(row)).min_by(|a, b| kube_aware(a.version, b.version));
    match row(api_version, kind).filter(|row| is_served(row)).or_else(newest) {
        Some(row) => BuiltInKind::Stored {
            group: row.storage_group(),
            plural: row.plural,
            namespaced: row.namespaced,
            api_version: row.api_version,
        },
        None if versions().next().is_some() => BuiltInKind::NotServed,
        None => BuiltInKind::None,
    }
}

/// Sets the defaults of a built-in kind on a manifest, as kube-apiserver does for what it reads from etcd: a client that applies the
/// same manifest again would otherwise change fields that may not change.
pub fn set_defaults(object: &mut Value) {
    if let Some(row) = row(object.str_at(&["apiVersion"]), object.str_at(&["kind"])) {
        let shaped = row.shape(object);
        if shaped.error.is_none() {
            *object = shaped.value;
        }
        row.set_defaults(object, &FeatureGates::of(Release::default()));
        (row.behaviour.default)(object);
    }
}

/// The stored form of an object. Where that is the form that clients see, nothing is changed.
pub fn to_stored(object: Value) -> Value {
    match row(object.str_at(&["apiVersion"]), object.str_at(&["kind"])).filter(|row| has_stored_form(row)) {
        Some(row) => row.to_stored(object),
        None => object,
    }
}

/// Whether the objects of a kind are stored in another form than clients see.
fn has_stored_form(row: &BuiltIn) -> bool {
    row.stored_as.is_some() || row.group == DEFINITION_GROUP
}

/// A value of a store.
pub struct StoredObject {
    key: Key,
    bytes: Bytes,
}

impl StoredObject {
    /// The stored form of an object of a kind from its JSON as this server encodes it, without resourceVersion. The strings of `place`
    /// are the group and the plural of the resource, and the path.
    pub fn new(place: [Text; 3], (api_version, kind): (&str, &str), json: &Bytes) -> StoredObject {
        let bytes = match row(api_version, kind).filter(|row| has_stored_form(row)) {
            Some(row) => Encoded::of(&row.to_stored(value::decode(json).unwrap_or_default())).body.bytes,
            None => json.clone(),
        };
        let [group, plural, path] = place;
        StoredObject { key: Key { group, plural, path }, bytes }
    }
}

/// Writes objects to a store without any, in their order: neither admitted, validated nor defaulted. Fails with a one-line message.
pub async fn load(storage: &Storage, objects: impl IntoIterator<Item = StoredObject>) -> Result<(), String> {
    for StoredObject { key, bytes } in objects {
        let place = storage.layout.place(&key);
        let sealed = storage.layout.seal(&place, bytes).map_err(|why| unreadable(&place, &why))?;
        let put = Put { key: place.bytes, expected: Expected::Absent, value: Some(sealed) };
        storage.store.commit(put).await.map_err(|refused| match refused {
            Refused::Conflict(_) => format!("{} is there twice", place.key.path),
            Refused::Failed(error) => error.to_string(),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_kinds_are_known_by_their_versions() {
        let stored =
            |group, plural, namespaced, api_version| BuiltInKind::Stored { group, plural, namespaced, api_version };
        for (version, kind, want) in [
            ("v1", "Pod", stored("", "pods", true, "v1")),
            ("v1", "Node", stored("", "nodes", false, "v1")),
            ("events.k8s.io/v1", "Event", stored("", "events", true, "events.k8s.io/v1")),
            (
                "autoscaling/v1",
                "HorizontalPodAutoscaler",
                stored("autoscaling", "horizontalpodautoscalers", true, "autoscaling/v1"),
            ),
            (
                "autoscaling/v2beta1",
                "HorizontalPodAutoscaler",
                stored("autoscaling", "horizontalpodautoscalers", true, "autoscaling/v2"),
            ),
            ("policy/v1beta1", "PodDisruptionBudget", stored("policy", "poddisruptionbudgets", true, "policy/v1")),
            ("example.com/v1", "Widget", BuiltInKind::None),
        ] {
            assert_eq!(built_in_kind(version, kind), want, "{version} {kind}");
        }
    }
}
