//! The layout of a store: keys of objects, and transformations of their values.
//!
//! Transformations are a chain of steps. Writes apply them in order: first the encoding of the value, last its encryption,
//! with the key in the store as authenticated data. Reads apply them in reverse order.

use std::sync::Arc;

use bytes::Bytes;
use store::Store;

use super::key::Key;

/// The address of an object, and its key in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub key: Key,
    pub bytes: Bytes,
}

/// A value read from the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    pub value: Bytes,
    /// The value would be encoded differently now, so that a write without changes is still made.
    pub stale: bool,
}

/// One step between an object's stored form and the bytes in a store. Fails with a one-line message.
pub trait Transform: Send + Sync {
    fn seal(&self, place: &Place, value: Bytes) -> Result<Bytes, String>;

    fn open(&self, place: &Place, value: Bytes) -> Result<Opened, String>;

    /// A number that changes when the encoding of values of this key changes.
    fn mark(&self, _key: &Key) -> u64 {
        0
    }

    /// Whether services that the step depends on are healthy; `None` if it depends on none. Fails with a one-line message.
    fn health(&self) -> Option<Result<(), String>> {
        None
    }
}

/// The scheme of the keys of a store.
pub trait Keys: Send + Sync {
    fn to_bytes(&self, key: &Key) -> Bytes;

    /// `None` for foreign keys.
    fn parse(&self, bytes: &[u8]) -> Option<Key>;
}

/// The keys and the steps of one store, and of its forks, which share them.
#[derive(Clone)]
pub struct Layout {
    keys: Arc<dyn Keys>,
    steps: Vec<Arc<dyn Transform>>,
}

/// A store and its layout.
pub struct Storage {
    pub store: Arc<dyn Store>,
    pub layout: Layout,
}

impl Storage {
    /// A store that no other program writes to.
    pub fn own(store: Arc<dyn Store>) -> Storage {
        Storage { store, layout: Layout::own() }
    }
}

/// Keys of a store that no other program writes to.
struct OwnKeys;

impl Keys for OwnKeys {
    fn to_bytes(&self, key: &Key) -> Bytes {
        key.to_bytes()
    }

    fn parse(&self, bytes: &[u8]) -> Option<Key> {
        Key::parse(bytes)
    }
}

impl Layout {
    /// Pintle's own keys, and no steps.
    pub fn own() -> Layout {
        Layout::new(Arc::new(OwnKeys))
    }

    pub fn new(keys: Arc<dyn Keys>) -> Layout {
        Layout { keys, steps: vec![] }
    }

    /// Appends a step, which becomes the last one before the store.
    pub fn then(mut self, step: Arc<dyn Transform>) -> Layout {
        self.steps.push(step);
        self
    }

    pub fn place(&self, key: &Key) -> Place {
        Place { key: key.clone(), bytes: self.keys.to_bytes(key) }
    }

    /// The address of the object of a key; `None` for foreign keys.
    pub fn find(&self, bytes: &Bytes) -> Option<Place> {
        Some(Place { key: self.keys.parse(bytes)?, bytes: bytes.clone() })
    }

    pub fn seal(&self, place: &Place, value: Bytes) -> Result<Bytes, String> {
        self.steps.iter().try_fold(value, |value, step| step.seal(place, value))
    }

    /// See [`Transform::mark`].
    pub fn mark(&self, key: &Key) -> u64 {
        self.steps.iter().map(|step| step.mark(key)).fold(0, u64::wrapping_add)
    }

    /// See [`Transform::health`]: the first step that is not healthy.
    pub fn health(&self) -> Option<Result<(), String>> {
        self.steps.iter().filter_map(|step| step.health()).reduce(Result::and)
    }

    pub fn open(&self, place: &Place, value: Bytes) -> Result<Opened, String> {
        let start = Opened { value, stale: false };
        self.steps.iter().rev().try_fold(start, |before, step| {
            let after = step.open(place, before.value)?;
            Ok(Opened { stale: before.stale || after.stale, ..after })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prepends its name and the length of the key.
    struct Named(&'static str);

    impl Transform for Named {
        fn seal(&self, place: &Place, value: Bytes) -> Result<Bytes, String> {
            Ok([format!("{}{}:", self.0, place.bytes.len()).as_bytes(), &value].concat().into())
        }

        fn open(&self, place: &Place, value: Bytes) -> Result<Opened, String> {
            let value = value.strip_prefix(format!("{}{}:", self.0, place.bytes.len()).as_bytes());
            let value = value.ok_or_else(|| format!("no {}", self.0))?;
            Ok(Opened { value: Bytes::copy_from_slice(value), stale: self.0 == "old" })
        }
    }

    #[test]
    fn migration_steps_run_in_order_and_roll_back() {
        let key = Key::new(&"".into(), &"secrets".into(), "n", "a");
        let plain = Bytes::from("{}");
        for (last, stale) in [("new", false), ("old", true)] {
            let layout = Layout::own().then(Arc::new(Named("form"))).then(Arc::new(Named(last)));
            let place = layout.place(&key);
            assert_eq!(layout.find(&place.bytes), Some(place.clone()));
            let sealed = layout.seal(&place, plain.clone()).unwrap();
            assert_eq!(sealed, format!("{last}26:form26:{{}}"));
            assert_eq!(layout.open(&place, sealed), Ok(Opened { value: plain.clone(), stale }));
            assert_eq!(layout.open(&place, plain.clone()), Err(format!("no {last}")));
        }
    }
}
