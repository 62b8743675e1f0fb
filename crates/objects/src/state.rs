//! The objects of a collection at one revision, and indexes of them by label, so that a list by label visits only objects that
//! have it.
//!
//! Invariant: the indexes of a state have the objects of that state. Like the objects, they are persistent maps, and every
//! change of a state changes its indexes as well.

use std::sync::Arc;

use machinery::Text;

use super::stored::Stored;
use crate::limits;

/// The objects of a collection at one revision, sorted by path; cloning it is cheap.
pub type Root = imbl::OrdMap<Text, Arc<Stored>>;

/// The objects of an index, sorted by value and path.
pub type Indexed = imbl::OrdMap<(Text, Text), Arc<Stored>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexKey {
    /// The value of the label with this key.
    Value(Text),
    /// That there is a label with this key; the values of the index are empty.
    Existence(Text),
}

impl IndexKey {
    /// The value of an object in the index; `None` if the index does not have it.
    fn value(&self, object: &Stored) -> Option<Text> {
        let label = |key: &Text| object.meta.labels.iter().find(|(known, _)| known == key).map(|(_, value)| value);
        match self {
            IndexKey::Value(key) => label(key).cloned(),
            IndexKey::Existence(key) => label(key).map(|_| Text::default()),
        }
    }
}

#[derive(Clone)]
pub struct LabelIndex {
    key: IndexKey,
    objects: Indexed,
    /// Changes of the state since the index was last used.
    idle_changes: usize,
    /// Lists that would have used other indexes since this one was last used.
    idle_lists: usize,
}

impl LabelIndex {
    pub fn new(key: IndexKey, root: &Root) -> LabelIndex {
        let entry = |(path, object): (&Text, &Arc<Stored>)| Some(((key.value(object)?, path.clone()), object.clone()));
        let objects = root.iter().filter_map(entry).collect();
        LabelIndex { objects, key, idle_changes: 0, idle_lists: 0 }
    }

    /// Replaces, inserts or removes the object of a path.
    pub fn change(&mut self, path: &Text, old: Option<&Arc<Stored>>, new: Option<&Arc<Stored>>) {
        let entry = |object: &Arc<Stored>| Some((self.key.value(object)?, path.clone()));
        let (before, after) = (old.and_then(entry), new.and_then(entry));
        if let Some(before) = before.filter(|before| after.as_ref() != Some(before)) {
            self.objects.remove(&before);
        }
        if let (Some(after), Some(new)) = (after, new) {
            self.objects.insert(after, new.clone());
        }
        self.idle_changes += 1;
    }
}

/// The objects and the indexes of a collection at one revision; cloning it is cheap.
#[derive(Clone, Default)]
pub struct CollectionState {
    pub root: Root,
    indexes: Vec<LabelIndex>,
}

impl CollectionState {
    /// Inserts, replaces or removes the object of a path, and returns the one that was there.
    pub fn change(&mut self, path: &Text, new: Option<&Arc<Stored>>) -> Option<Arc<Stored>> {
        let old = match new {
            Some(new) => self.root.insert(path.clone(), new.clone()),
            None => self.root.remove(path),
        };
        if !self.indexes.is_empty() {
            self.indexes.iter_mut().for_each(|index| index.change(path, old.as_ref(), new));
            // by now, an unused index has cost as much as a new one would
            let objects = self.root.len();
            self.indexes.retain(|index| index.idle_changes <= objects);
        }
        old
    }

    /// The objects of an index, if there is one with this key.
    pub fn indexed(&self, key: &IndexKey) -> Option<&Indexed> {
        self.indexes.iter().find(|index| index.key == *key).map(|index| &index.objects)
    }

    /// Counts a list that would use an index. Returns whether the index is to be built: it is missing, and either there
    /// is room for it, or another index is so little used that it can be replaced.
    pub fn lacks(&mut self, key: &IndexKey) -> bool {
        let mut is_there = false;
        for index in &mut self.indexes {
            if index.key == *key {
                (index.idle_changes, index.idle_lists, is_there) = (0, 0, true);
            } else {
                index.idle_lists += 1;
            }
        }
        let is_full = self.indexes.len() >= limits::INDEXES_MAX;
        !is_there && (!is_full || self.indexes.iter().any(|index| index.idle_lists > limits::INDEX_IDLE_LISTS))
    }

    /// Adds an index, in place of the one that was not used for longest if there are too many.
    pub fn add(&mut self, index: LabelIndex) {
        self.indexes.retain(|known| known.key != index.key);
        if self.indexes.len() >= limits::INDEXES_MAX {
            let longest = self.indexes.iter().map(|index| index.idle_lists).max();
            self.indexes.retain(|index| Some(index.idle_lists) != longest);
        }
        self.indexes.push(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, Meta};
    use machinery::{Value, json};

    fn object(labels: Value) -> Arc<Stored> {
        let value = json!({"metadata": {"name": "x", "labels": labels}});
        Arc::new(Stored::new(1, Body::encode(&value), Meta::of(&value)))
    }

    fn entries(state: &CollectionState, key: &IndexKey) -> Vec<String> {
        state.indexed(key).unwrap().keys().map(|(value, path)| format!("{value}:{path}")).collect()
    }

    #[test]
    fn indexes_follow_changes() {
        let keys = [IndexKey::Value("a".into()), IndexKey::Existence("a".into())];
        let mut state = CollectionState::default();
        state.change(&"n/0".into(), Some(&object(json!({"a": "2"}))));
        keys.iter().for_each(|key| state.add(LabelIndex::new(key.clone(), &state.root)));
        let changes = [
            ("n/1", Some(json!({"a": "1"})), "1:n/1 2:n/0", ":n/0 :n/1"),
            ("n/2", Some(json!({"b": "1"})), "1:n/1 2:n/0", ":n/0 :n/1"),
            ("n/2", Some(json!({"a": "1", "b": "1"})), "1:n/1 1:n/2 2:n/0", ":n/0 :n/1 :n/2"),
            ("n/1", Some(json!({"a": "3"})), "1:n/2 2:n/0 3:n/1", ":n/0 :n/1 :n/2"),
            ("n/1", Some(json!({})), "1:n/2 2:n/0", ":n/0 :n/2"),
            ("n/0", None, "1:n/2", ":n/2"),
            ("n/0", None, "1:n/2", ":n/2"),
        ];
        for (path, labels, by_value, by_existence) in changes {
            let before = state.clone();
            let new = labels.map(object);
            let old = state.change(&path.into(), new.as_ref());
            keys.iter().for_each(|key| assert!(!state.lacks(key)));
            assert_eq!(entries(&state, &keys[0]).join(" "), by_value);
            assert_eq!(entries(&state, &keys[1]).join(" "), by_existence);
            // as a list of an earlier revision undoes changes
            let mut undone = state.clone();
            undone.change(&path.into(), old.as_ref());
            assert_eq!(entries(&undone, &keys[0]), entries(&before, &keys[0]));
        }
    }

    #[test]
    fn unused_indexes_are_dropped() {
        let key = |i: usize| IndexKey::Value(format!("{i}").into());
        let mut state = CollectionState::default();
        for i in 0..limits::INDEXES_MAX {
            assert!(state.lacks(&key(i)));
            state.add(LabelIndex::new(key(i), &state.root));
        }
        let other = key(limits::INDEXES_MAX);
        let refused = (0..1_000).take_while(|_| !state.lacks(&other)).count();
        assert!(refused + limits::INDEXES_MAX > limits::INDEX_IDLE_LISTS, "{refused}");
        state.add(LabelIndex::new(other.clone(), &state.root));
        assert_eq!(state.indexes.len(), limits::INDEXES_MAX);
        assert!(state.indexed(&other).is_some() && state.indexed(&key(0)).is_none());
        for i in 0..10 {
            state.change(&format!("n/{i}").into(), Some(&object(json!({}))));
            assert!(!state.lacks(&other));
        }
        (0..20).for_each(|_| drop(state.change(&"n/0".into(), Some(&object(json!({}))))));
        assert!(state.indexes.is_empty());
    }
}
