//! Objects of sources as text: hundreds of MiB of objects take a third of the memory that their fields would.

use bytes::Bytes;
use machinery::{Text, Value, value};

/// An object as JSON, and those of its fields that say where it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedObject {
    pub api_version: Text,
    pub kind: Text,
    /// Empty for objects of the cluster.
    pub namespace: Text,
    pub name: Text,
    /// Its resourceVersion, which the text does not have; 0 if there is none.
    pub revision: u64,
    pub has_uid: bool,
    pub has_creation_time: bool,
    json: Bytes,
}

impl PackedObject {
    pub fn of(mut object: Value) -> PackedObject {
        let revision = object.remove_at(&["metadata", "resourceVersion"]);
        let field = |path: &[&str]| Text::from(object.str_at(path));
        PackedObject {
            api_version: field(&["apiVersion"]),
            kind: field(&["kind"]),
            namespace: field(&["metadata", "namespace"]),
            name: field(&["metadata", "name"]),
            revision: revision.and_then(|revision| revision.as_str()?.parse().ok()).unwrap_or_default(),
            has_uid: !object.str_at(&["metadata", "uid"]).is_empty(),
            has_creation_time: !object.str_at(&["metadata", "creationTimestamp"]).is_empty(),
            // copied to an allocation of exactly this size, which the store keeps
            json: Bytes::copy_from_slice(object.to_json().as_bytes()),
        }
    }

    /// The JSON, without resourceVersion.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// Whether a text is anywhere in the JSON.
    pub fn mentions(&self, text: &str) -> bool {
        memchr::memmem::find(&self.json, text.as_bytes()).is_some()
    }

    /// The object, with its resourceVersion.
    pub fn value(&self) -> Value {
        let mut value = value::decode(&self.json).unwrap_or_default();
        if self.revision > 0 {
            value.set_at(&["metadata", "resourceVersion"], Value::from(self.revision.to_string()));
        }
        value
    }

    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let mut value = self.value();
        change(&mut value);
        *self = PackedObject::of(value);
    }

    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(&self.api_version, |(_, version)| version)
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn objects_are_packed_and_edited() {
        let object = json!({"apiVersion": "g.io/v1", "kind": "A", "metadata": {"name": "a", "resourceVersion": "7", "uid": "u"}});
        let mut packed = PackedObject::of(object.clone());
        assert_eq!(packed.value(), object);
        assert_eq!((packed.group(), packed.version(), packed.kind.as_str(), packed.revision), ("g.io", "v1", "A", 7));
        assert!(packed.has_uid && !packed.has_creation_time);
        assert_eq!(
            packed.json(),
            "{\"apiVersion\":\"g.io/v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}"
        );
        packed.edit(|value| drop(value.remove_at(&["metadata", "uid"])));
        packed.edit(|value| value.set_at(&["metadata", "namespace"], Value::from("n")));
        assert_eq!((packed.namespace.as_str(), packed.has_uid, packed.revision), ("n", false, 7));
    }
}
