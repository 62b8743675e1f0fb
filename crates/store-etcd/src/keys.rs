//! Where the keys of a store are in etcd. Those of a copy lie elsewhere than its callers see them.

use bytes::Bytes;
use store::Entry;

use crate::failure::Failure;
use crate::messages::{self as m, number, revision};

/// The key that makes a copy a store: written when it is whole, deleted when it ends.
#[derive(Clone)]
pub struct Begun {
    pub key: Bytes,
    /// The copy serves from this revision on.
    pub revision: u64,
}

/// The keys of a store. Prefixes end without a slash.
#[derive(Clone)]
pub struct KeySpace {
    /// The prefix of the keys as callers see them.
    shown: String,
    stored: String,
    /// `None` for a store that is no copy.
    pub begun: Option<Begun>,
}

impl KeySpace {
    /// Keys that are in etcd as callers see them.
    pub fn own(prefix: String) -> KeySpace {
        KeySpace { shown: prefix.clone(), stored: prefix, begun: None }
    }

    /// The keys of a copy of the store with these keys.
    pub fn of_copy(&self, id: &str) -> KeySpace {
        KeySpace { shown: self.shown.clone(), stored: format!("{}/{id}", self.copies()), begun: None }
    }

    /// These keys, of a copy that is whole since a revision.
    pub fn begun_at(self, revision: u64) -> KeySpace {
        KeySpace { begun: Some(Begun { key: self.begun_key(), revision }), ..self }
    }

    /// The prefix of all copies, which is not within the range of the store's own keys.
    fn copies(&self) -> String {
        format!("{}.workspaces", self.stored)
    }

    /// The range of the keys that list the copies whose ids begin with a prefix, and the length of what precedes the id.
    pub fn listed(&self, prefix: &str) -> (Bytes, Bytes, usize) {
        let folder = format!("{}/copies/", self.copies());
        // after every id, whose characters are ASCII
        (format!("{folder}{prefix}").into(), format!("{folder}{prefix}\x7f").into(), folder.len())
    }

    pub fn listing(&self, id: &str) -> Bytes {
        format!("{}/copies/{id}", self.copies()).into()
    }

    /// The start and the end of the range of all keys; the end is exclusive.
    pub fn range(&self) -> (Bytes, Bytes) {
        // "0" is the character after "/"
        (format!("{}/", self.stored).into(), format!("{}0", self.stored).into())
    }

    /// A key without meaning, which is not delivered to followers.
    pub fn mark(&self) -> Bytes {
        format!("{}/pintle/mark", self.stored).into()
    }

    /// The key that is there from the beginning of an import to its end.
    pub fn importing(&self) -> Bytes {
        format!("{}/pintle/importing", self.stored).into()
    }

    pub fn begun_key(&self) -> Bytes {
        format!("{}/pintle/begun", self.stored).into()
    }

    pub fn to_etcd(&self, key: &Bytes) -> Bytes {
        if self.shown == self.stored {
            return key.clone();
        }
        let rest = key.strip_prefix(self.shown.as_bytes()).unwrap_or(key);
        [self.stored.as_bytes(), rest].concat().into()
    }

    pub fn to_caller(&self, key: Bytes) -> Bytes {
        if self.shown == self.stored {
            return key;
        }
        let rest = key.strip_prefix(self.stored.as_bytes()).unwrap_or(&key);
        [self.shown.as_bytes(), rest].concat().into()
    }

    /// The value in etcd, as callers see it.
    pub fn entry(&self, kv: m::KeyValue) -> Entry {
        Entry { key: self.to_caller(kv.key), value: kv.value, revision: revision(kv.mod_revision) }
    }

    /// Whether a key in etcd is no caller's.
    pub fn is_internal(&self, key: &[u8]) -> bool {
        let name = key.strip_prefix(self.stored.as_bytes()).and_then(|rest| rest.strip_prefix(b"/pintle/"));
        matches!(name, Some(b"mark" | b"importing")) || self.shown != self.stored && name == Some(b"begun")
    }

    /// The comparison that holds while a copy has not ended.
    pub fn compare(&self) -> Option<m::Compare> {
        self.begun.as_ref().map(|begun| m::Compare::revision(begun.key.clone(), begun.revision))
    }

    /// Fails if a copy has ended, by what is found at [`Begun::key`].
    pub fn check(&self, found: Option<&m::KeyValue>) -> Result<(), Failure> {
        let found = found.map(|kv| revision(kv.mod_revision));
        match &self.begun {
            Some(begun) if found != Some(begun.revision) => Err(Failure::Ended),
            _ => Ok(()),
        }
    }
}

impl m::Compare {
    /// The key was last written at this revision; 0 if it is absent.
    pub fn revision(key: Bytes, at: u64) -> m::Compare {
        m::Compare { target: m::Target::ModRevision.into(), key, mod_revision: Some(number(at)), version: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_copy_are_beside_those_of_its_source() {
        for prefix in ["/registry", ""] {
            let own = KeySpace::own(prefix.to_owned());
            let copy = own.of_copy("u/1");
            let (shown, stored) = (format!("{prefix}/a/b"), format!("{prefix}.workspaces/u/1/a/b"));
            assert_eq!(own.to_etcd(&shown.clone().into()), shown);
            assert_eq!(copy.to_etcd(&shown.clone().into()), stored);
            assert_eq!(copy.to_caller(stored.clone().into()), shown);
            let within = |keys: &KeySpace, key: &str| {
                let (start, end) = keys.range();
                start <= key.as_bytes() && *key.as_bytes() < end[..]
            };
            assert!(within(&own, &shown) && !within(&own, &stored) && within(&copy, &stored), "{prefix}");
            let other = own.of_copy("u/1-origin").to_etcd(&shown.into());
            assert!(!copy.range().0.is_empty() && !within(&copy, std::str::from_utf8(&other).unwrap()));
            assert!(!within(&own, std::str::from_utf8(&own.listing("u/1")).unwrap()));
            let (start, end, length) = own.listed("u/");
            let listing = own.listing("u/1");
            assert!(start <= listing && listing < end && &listing[length..] == b"u/1");
        }
    }

    #[test]
    fn internal_keys_are_not_delivered() {
        let own = KeySpace::own("/r".to_owned());
        let copy = own.of_copy("c").begun_at(7);
        for (keys, key, internal) in [
            (&own, "/r/pintle/mark", true),
            (&own, "/r/pintle/importing", true),
            (&own, "/r/pintle/begun", false),
            (&own, "/r/pintle/x", false),
            (&copy, "/r.workspaces/c/pintle/mark", true),
            (&copy, "/r.workspaces/c/pintle/begun", true),
            (&copy, "/r.workspaces/c/a", false),
        ] {
            assert_eq!(keys.is_internal(key.as_bytes()), internal, "{key}");
        }
    }
}
