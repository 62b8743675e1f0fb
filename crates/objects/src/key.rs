//! Keys of objects in the store: `/registry/<group>/<plural>/[<namespace>/]<name>`, as in kube-apiserver.

use bytes::Bytes;
use machinery::Text;

/// The address of an object. `path` is `namespace/name`, or `name` for objects of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub group: Text,
    pub plural: Text,
    pub path: Text,
}

const PREFIX: &str = "/registry/";

impl Key {
    pub fn new(group: &Text, plural: &Text, namespace: &str, name: &str) -> Key {
        let path = if namespace.is_empty() { Text::from(name) } else { [namespace, "/", name].into_iter().collect() };
        Key { group: group.clone(), plural: plural.clone(), path }
    }

    /// The core group is written as `core`, since upstream's own omission of it would make keys ambiguous here.
    pub fn to_bytes(&self) -> Bytes {
        let group = if self.group.is_empty() { "core" } else { &self.group };
        Bytes::from([PREFIX, group, "/", &self.plural, "/", &self.path].concat())
    }

    pub fn parse(bytes: &[u8]) -> Option<Key> {
        let text = std::str::from_utf8(bytes).ok()?.strip_prefix(PREFIX)?;
        let mut parts = text.splitn(3, '/');
        let (group, plural, path) = (parts.next()?, parts.next()?, parts.next()?);
        let group = if group == "core" { "" } else { group };
        Some(Key { group: group.into(), plural: plural.into(), path: path.into() })
    }
}
