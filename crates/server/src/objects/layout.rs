//! How objects lie in a store: their keys, and what is done to their bytes on the way there and back.
//!
//! The steps are a chain. On the way to the store each gets what the one before it made: first the form of the value, last
//! its encryption, which takes the key in the store as authenticated data. On the way back they go in the other order.

use std::sync::Arc;

use bytes::Bytes;
use store::Store;

use super::key::Key;

/// Where an object lies: its address, and its key in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub key: Key,
    pub bytes: Bytes,
}

/// A value that came back from the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    pub value: Bytes,
    /// It would be written otherwise today: a write that changes nothing else is made.
    pub stale: bool,
}

/// One step between an object's stored form and the bytes in a store. Errors are one line.
pub trait Transform: Send + Sync {
    fn seal(&self, place: &Place, value: Bytes) -> Result<Bytes, String>;

    fn open(&self, place: &Place, value: Bytes) -> Result<Opened, String>;
}

/// What the keys of a store look like.
pub trait Keys: Send + Sync {
    fn to_bytes(&self, key: &Key) -> Bytes;

    /// `None` if the key is of no object that could be known here.
    fn parse(&self, bytes: &[u8]) -> Option<Key>;
}

/// The keys and the steps of one store.
pub struct Layout {
    keys: Box<dyn Keys>,
    steps: Vec<Box<dyn Transform>>,
}

/// A store and how objects lie in it.
pub struct Storage {
    pub store: Arc<dyn Store>,
    pub layout: Layout,
}

impl Storage {
    /// A store that is all our own.
    pub fn own(store: Arc<dyn Store>) -> Storage {
        Storage { store, layout: Layout::own() }
    }
}

/// The keys of a store that is all our own.
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
    /// Objects as they are, under keys of our own.
    pub fn own() -> Layout {
        Layout { keys: Box::new(OwnKeys), steps: vec![] }
    }

    pub fn new(keys: Box<dyn Keys>) -> Layout {
        Layout { keys, steps: vec![] }
    }

    /// The same with one more step next to the store.
    pub fn then(mut self, step: Box<dyn Transform>) -> Layout {
        self.steps.push(step);
        self
    }

    pub fn place(&self, key: &Key) -> Place {
        Place { key: key.clone(), bytes: self.keys.to_bytes(key) }
    }

    /// The place of a key in the store, if it is one of an object.
    pub fn find(&self, bytes: &Bytes) -> Option<Place> {
        Some(Place { key: self.keys.parse(bytes)?, bytes: bytes.clone() })
    }

    pub fn seal(&self, place: &Place, value: Bytes) -> Result<Bytes, String> {
        self.steps.iter().try_fold(value, |value, step| step.seal(place, value))
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

    /// Puts its name and the length of the key before what it gets.
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
    fn steps_are_taken_in_order_and_back() {
        let key = Key::new(&"".into(), &"secrets".into(), "n", "a");
        let plain = Bytes::from("{}");
        for (last, stale) in [("new", false), ("old", true)] {
            let layout = Layout::own().then(Box::new(Named("form"))).then(Box::new(Named(last)));
            let place = layout.place(&key);
            assert_eq!(layout.find(&place.bytes), Some(place.clone()));
            let sealed = layout.seal(&place, plain.clone()).unwrap();
            assert_eq!(sealed, format!("{last}26:form26:{{}}"));
            assert_eq!(layout.open(&place, sealed), Ok(Opened { value: plain.clone(), stale }));
            assert_eq!(layout.open(&place, plain.clone()), Err(format!("no {last}")));
        }
    }
}
