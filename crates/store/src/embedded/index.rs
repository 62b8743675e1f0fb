//! The live keys of a store. Until the store is forked they are in a hash table, which is the fastest form; from then on in a
//! persistent map, whose copies share what does not change.

use std::collections::HashMap;

use bytes::Bytes;

use crate::contract::content::{LiveValue, Map};

pub enum Index {
    Own(HashMap<Bytes, LiveValue>),
    Forked(Map),
}

impl Default for Index {
    fn default() -> Index {
        Index::Own(HashMap::default())
    }
}

impl Index {
    pub fn get(&self, key: &[u8]) -> Option<&LiveValue> {
        match self {
            Index::Own(map) => map.get(key),
            Index::Forked(map) => map.get(key),
        }
    }

    /// Inserts a value and returns the one that it replaces. `own` makes the key that is kept, if a new one is needed.
    pub fn insert(&mut self, key: &Bytes, live: LiveValue, own: fn(&Bytes) -> Bytes) -> Option<LiveValue> {
        match self {
            Index::Own(map) => {
                match map.get_key_value(key).map(|(known, _)| known.is_unique()) {
                    Some(true) => map.get_mut(key).map(|known| std::mem::replace(known, live)),
                    // a key that was read from a log shares its memory with the value that is replaced
                    Some(false) => {
                        let replaced = map.remove(key);
                        map.insert(own(key), live);
                        replaced
                    }
                    None => map.insert(own(key), live),
                }
            }
            Index::Forked(map) => match map.get_mut(key) {
                Some(known) => Some(std::mem::replace(known, live)),
                None => map.insert(Bytes::copy_from_slice(key), live),
            },
        }
    }

    pub fn remove(&mut self, key: &Bytes) -> Option<LiveValue> {
        match self {
            Index::Own(map) => map.remove(key),
            Index::Forked(map) => map.remove(key),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Index::Own(map) => map.len(),
            Index::Forked(map) => map.len(),
        }
    }

    /// All keys, in no order.
    pub fn iter(&self) -> Box<dyn Iterator<Item = (&Bytes, &LiveValue)> + '_> {
        match self {
            Index::Own(map) => Box::new(map.iter()),
            Index::Forked(map) => Box::new(map.iter()),
        }
    }

    /// A copy that shares everything: the first takes time in proportion to the keys, later ones are constant.
    pub fn fork(&mut self) -> Map {
        if let Index::Own(map) = self {
            // the nodes of the map keep their keys when values are replaced, see `insert`
            let entries = std::mem::take(map).into_iter();
            let owned = |key: Bytes| if key.is_unique() { key } else { Bytes::copy_from_slice(&key) };
            *self = Index::Forked(entries.map(|(key, live)| (owned(key), live)).collect());
        }
        match self {
            Index::Own(_) => Map::new(),
            Index::Forked(map) => map.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_do_not_see_later_changes() {
        let live = |revision| LiveValue { revision, value: "v".into() };
        let mut source = Index::default();
        assert_eq!(source.insert(&"a".into(), live(1), Bytes::clone), None);
        let mut fork = Index::Forked(source.fork());
        assert_eq!(source.insert(&"a".into(), live(2), Bytes::clone), Some(live(1)));
        assert_eq!(fork.insert(&"b".into(), live(3), Bytes::clone), None);
        assert_eq!(fork.remove(&"a".into()), Some(live(1)));
        let all = |index: &Index| index.iter().map(|(key, live)| (key.clone(), live.revision)).collect::<Vec<_>>();
        assert_eq!((all(&source), all(&fork)), (vec![("a".into(), 2)], vec![("b".into(), 3)]));
        assert_eq!(all(&Index::Forked(source.fork())), all(&source));
    }

    #[test]
    fn keys_do_not_keep_replaced_values_in_memory() {
        // as records of a log: key and value are slices of one allocation
        let record = |text: &'static str| {
            let both = Bytes::copy_from_slice(text.as_bytes());
            (both.slice(..1), both.slice(1..))
        };
        for forked in [false, true] {
            let mut index = Index::default();
            let (key, value) = record("kold");
            index.insert(&key, LiveValue { revision: 1, value }, Bytes::clone);
            drop(key);
            if forked {
                index.fork();
            }
            let (key, value) = record("knew");
            let old = index.insert(&key, LiveValue { revision: 2, value }, Bytes::clone).unwrap();
            assert_eq!((&old.value[..], old.value.is_unique()), (&b"old"[..], true), "forked: {forked}");
        }
    }
}
