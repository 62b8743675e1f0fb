//! The dependents of an owner.

use std::collections::HashMap;

use machinery::Text;
use objects::Key;

/// An object that names an owner.
#[derive(Clone, Debug)]
pub struct Dependent {
    pub key: Key,
    pub uid: Text,
    /// Whether foreground deletion of the owner waits for the dependent.
    pub blocks: bool,
}

/// The dependents of one owner. Those that block its deletion are counted, so that the check after the deletion of a
/// dependent does not have to visit the remaining ones.
#[derive(Debug)]
pub struct Dependents {
    owner: Text,
    by_key: HashMap<Key, Dependent>,
    blocking: usize,
}

impl Dependents {
    pub fn of(owner: &Text) -> Dependents {
        Dependents { owner: owner.clone(), by_key: HashMap::new(), blocking: 0 }
    }

    pub fn insert(&mut self, dependent: Dependent) {
        self.remove(&dependent.key);
        self.blocking += usize::from(self.is_blocking(&dependent));
        self.by_key.insert(dependent.key.clone(), dependent);
    }

    pub fn remove(&mut self, key: &Key) {
        if let Some(removed) = self.by_key.remove(key) {
            self.blocking -= usize::from(self.is_blocking(&removed));
        }
    }

    /// An object that owns itself does not block its own deletion.
    fn is_blocking(&self, dependent: &Dependent) -> bool {
        dependent.blocks && dependent.uid != self.owner
    }

    /// Whether any dependent blocks foreground deletion of the owner.
    pub fn are_blocking(&self) -> bool {
        self.blocking > 0
    }

    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Dependent> {
        self.by_key.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocking_dependents_are_counted() {
        let dependent = |name: &str, uid: &str, blocks: bool| {
            let key = Key::new(&"".into(), &"configmaps".into(), "n", name);
            Dependent { key, uid: uid.into(), blocks }
        };
        let mut dependents = Dependents::of(&"owner".into());
        dependents.insert(dependent("a", "1", false));
        dependents.insert(dependent("itself", "owner", true));
        assert!(!dependents.are_blocking());
        dependents.insert(dependent("a", "1", true));
        dependents.insert(dependent("a", "1", true));
        assert!(dependents.are_blocking());
        dependents.remove(&dependent("a", "1", true).key);
        dependents.remove(&dependent("a", "1", true).key);
        assert!(!dependents.are_blocking() && !dependents.is_empty());
        dependents.remove(&dependent("itself", "owner", true).key);
        assert!(dependents.is_empty());
    }
}
