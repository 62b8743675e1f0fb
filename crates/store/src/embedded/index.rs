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

    /// Inserts a value and returns the one that it replaces.
    pub fn insert(&mut self, key: &Bytes, live: LiveValue) -> Option<LiveValue> {
        match self {
            Index::Own(map) => match map.get_mut(key) {
                Some(known) => Some(std::mem::replace(known, live)),
                // the key of a change may be part of a larger buffer
                None => map.insert(Bytes::copy_from_slice(key), live),
            },
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

    /// Copies the values, so that they do not keep the buffers alive that they were read into.
    pub fn detach(&mut self) {
        // forks share their values with others
        if let Index::Own(map) = self {
            map.values_mut().for_each(|live| live.value = Bytes::copy_from_slice(&live.value));
        }
    }

    /// A copy that shares everything: the first takes time in proportion to the keys, later ones are constant.
    pub fn fork(&mut self) -> Map {
        if let Index::Own(map) = self {
            *self = Index::Forked(std::mem::take(map).into_iter().collect());
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
        assert_eq!(source.insert(&"a".into(), live(1)), None);
        let mut fork = Index::Forked(source.fork());
        assert_eq!(source.insert(&"a".into(), live(2)), Some(live(1)));
        assert_eq!(fork.insert(&"b".into(), live(3)), None);
        assert_eq!(fork.remove(&"a".into()), Some(live(1)));
        let all = |index: &Index| index.iter().map(|(key, live)| (key.clone(), live.revision)).collect::<Vec<_>>();
        assert_eq!((all(&source), all(&fork)), (vec![("a".into(), 2)], vec![("b".into(), 3)]));
        assert_eq!(all(&Index::Forked(source.fork())), all(&source));
    }
}
