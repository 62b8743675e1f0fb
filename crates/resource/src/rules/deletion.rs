//! Deletion rules of kinds.

use machinery::{Release, Value};

/// Deletion rules that differ between kinds.
#[derive(Clone, Copy)]
pub struct Deletion {
    /// DELETE responds with the object instead of a Status.
    pub returns_object: bool,
    pub dependents: Dependents,
    /// How dependents are treated if the request does not specify it.
    pub propagation: Option<Propagation>,
    /// The meaning of the deprecated `orphanDependents: false`.
    pub unorphaned: Propagation,
    /// The warning about a deletion that does not specify how dependents are treated; empty if there is none.
    pub advice: &'static str,
    /// Objects that cannot be deleted one by one, with the reason. As in kube-apiserver, deletecollection removes them.
    pub permanent: &'static [(&'static str, &'static str)],
    pub preconditions: Preconditions,
    /// Whether an object that cannot be read can be deleted.
    pub unreadable: bool,
    /// The path of a list of finalizers in addition to those in metadata; empty if there is none.
    pub finalizers: &'static [&'static str],
    /// Marks an object as being deleted at a time (RFC 3339). Every DELETE calls this until the object is removed.
    pub begin: fn(&mut Value, &str),
    /// For kinds that are deleted gracefully: for how many seconds an object stays after it was marked, given the
    /// seconds that the request asks for.
    pub grace: Option<fn(&Value, Option<i64>) -> i64>,
}

/// How a deletion proceeds with an object that has been marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grace {
    /// The kind has no graceful deletion.
    None,
    /// The object is waiting already, for no longer than the request asks for.
    Pending,
    /// The object is to be removed after this many seconds.
    Seconds(i64),
}

/// Whether a deletion takes dependents into account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependents {
    Collected,
    /// Objects of the kind have no dependents.
    Ignored,
    /// Dependents count only once the object is being deleted, since the first DELETE is specific to the kind.
    CollectedOnceDeleting,
}

/// Which layer of kube-apiserver checks the preconditions of a deletion. The message of the conflict depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preconditions {
    Registry,
    /// The storage of the kind, whose message includes the uid of the object.
    Storage {
        /// The release from which the message begins with a lowercase letter.
        small_since: Option<Release>,
    },
}

/// `propagationPolicy`: `Foreground` and `Orphan` add a finalizer, `Background` adds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Orphan,
    Foreground,
    Background,
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
const GRACE: [&str; 2] = ["metadata", "deletionGracePeriodSeconds"];

/// Whether an object is being deleted.
pub fn is_deleting(object: &Value) -> bool {
    object.at(&["metadata", "deletionTimestamp"]).is_some_and(|t| !t.is_null())
}

/// The seconds for which an object that is being deleted gracefully stays.
pub fn grace_seconds(object: &Value) -> i64 {
    object.int_at(&GRACE)
}

impl Deletion {
    pub const DEFAULT: Deletion = Deletion {
        returns_object: false,
        dependents: Dependents::Collected,
        propagation: None,
        unorphaned: Propagation::Background,
        advice: "",
        permanent: &[],
        preconditions: Preconditions::Registry,
        unreadable: true,
        finalizers: &[],
        begin: begin_deletion,
        grace: None,
    };

    /// How gracefully a stored object is deleted, with `gracePeriodSeconds` of the request.
    pub fn grace_of(&self, object: &Value, given: Option<i64>) -> Grace {
        let Some(grace) = self.grace else { return Grace::None };
        let pending = object.at(&GRACE).and_then(Value::as_int);
        match (is_deleting(object), pending, given) {
            (true, None, _) => Grace::None,
            (true, Some(pending), Some(given)) if given < pending => Grace::Seconds(given),
            (true, Some(_), _) => Grace::Pending,
            (false, ..) => Grace::Seconds(grace(object, given)),
        }
    }

    /// Marks an object that is deleted gracefully; `now` is in seconds since 1970.
    pub fn mark_gracefully(&self, object: &mut Value, grace: Grace, now: i64) {
        let Grace::Seconds(seconds) = grace else { return };
        let until = if set_deletion_time(object, "") {
            now.saturating_add(seconds)
        } else {
            let until = machinery::time::parse_rfc3339(object.str_at(&["metadata", "deletionTimestamp"]));
            until.map_or(now, |(until, _)| until) - grace_seconds(object) + seconds
        };
        object.set_at(&["metadata", "deletionTimestamp"], Value::from(machinery::time::rfc3339(until)));
        object.set_at(&GRACE, Value::Int(seconds));
    }

    /// Whether finalizers, in metadata or elsewhere, block the removal of an object.
    pub fn is_held(&self, object: &Value) -> bool {
        let lists = [&["metadata", "finalizers"], self.finalizers].into_iter().filter(|path| !path.is_empty());
        lists.into_iter().any(|path| object.at(path).and_then(Value::as_array).is_some_and(|list| !list.is_empty()))
    }

    /// Whether the finalizers outside of metadata block the removal of an object.
    pub fn is_held_by_own_finalizers(&self, object: &Value) -> bool {
        let own = object.at(self.finalizers).filter(|_| !self.finalizers.is_empty());
        own.and_then(Value::as_array).is_some_and(|list| !list.is_empty())
    }

    /// Marks an object as being deleted, with the finalizer of `propagation`; `None` keeps the finalizers.
    pub fn mark(&self, object: &mut Value, propagation: Option<Propagation>, now: &str) {
        let heeded = match self.dependents {
            Dependents::Collected => true,
            Dependents::Ignored => false,
            Dependents::CollectedOnceDeleting => is_deleting(object),
        };
        let list = object.at(&["metadata", "finalizers"]).and_then(Value::as_array);
        let mut finalizers = list.unwrap_or_default().to_vec();
        if let Some(propagation) = propagation.filter(|_| heeded) {
            let wanted = match propagation {
                Propagation::Orphan => Some(ORPHAN),
                Propagation::Foreground => Some(FOREGROUND),
                Propagation::Background => None,
            };
            let other = |f: &Value| f.as_str().is_none_or(|f| !matches!(f, ORPHAN | FOREGROUND) || Some(f) == wanted);
            finalizers.retain(other);
            if let Some(name) = wanted.filter(|name| !finalizers.iter().any(|f| f.as_str() == Some(*name))) {
                finalizers.push(Value::from(name));
            }
        }
        match finalizers.is_empty() {
            true => drop(object.remove_at(&["metadata", "finalizers"])),
            false => object.set_at(&["metadata", "finalizers"], Value::Array(finalizers)),
        }
        (self.begin)(object, now);
    }
}

/// Sets `deletionTimestamp`, a grace period of 0, and increments the generation, once.
pub fn begin_deletion(object: &mut Value, now: &str) {
    if set_deletion_time(object, now) {
        object.set_at(&GRACE, Value::Int(0));
    }
}

/// As `begin_deletion`, without a grace period. Returns whether the object was not being deleted before.
pub fn set_deletion_time(object: &mut Value, now: &str) -> bool {
    if is_deleting(object) {
        return false;
    }
    object.set_at(&["metadata", "deletionTimestamp"], Value::from(now));
    if let Some(generation) = object.at(&["metadata", "generation"]).and_then(Value::as_int) {
        object.set_at(&["metadata", "generation"], Value::Int(generation + 1));
    }
    true
}
