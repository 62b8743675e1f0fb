//! Breaking changes between two versions of a CustomResourceDefinition, for stored objects, writers and readers.
//!
//! Invariants: pure functions over two definitions in the v1 form that [`crate::definition::decode`]
//! makes; equal definitions have no changes; changes are in the order of the definition. A bound that is tightened counts as
//! breaking although ratcheting lets unchanged values of stored objects pass: new objects and changed values are refused.

mod bounds;
pub mod checks;
mod conversion;
mod names;
mod node;
mod rules;
#[cfg(test)]
mod tests;
mod versions;

use std::collections::{BTreeMap, BTreeSet};

use machinery::{Release, Value};

use crate::definition;
use checks::Check;

machinery::text_enum! {
    /// How much a change breaks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Severity {
        /// Nothing that clients are entitled to.
        Info = "info",
        /// It breaks clients that rely on more than the schema.
        Warning = "warning",
        /// Objects or requests that were valid no longer are, or mean something else.
        Breaking = "breaking",
    }
}

machinery::text_enum! {
    /// Who notices a change.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Affected {
        /// Objects in the store.
        Stored = "stored objects",
        /// Clients that create or update objects.
        Writers = "writers",
        /// Clients that read objects.
        Readers = "readers",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The kind of change.
    pub check: &'static Check,
    /// How much it breaks, which may be less than the severity of the check.
    pub severity: Severity,
    /// The version whose schema has changed, or two with an arrow if they differ from each other; empty for the definition.
    pub version: String,
    /// The path of the field, in objects if there is a version (`spec.list[*].name`; empty for the whole object), in the
    /// definition otherwise.
    pub path: String,
    /// The change in one sentence without a full stop.
    pub reason: String,
}

/// The changes that are found, with the version that is compared.
#[derive(Default)]
struct FoundChanges {
    found: Vec<Change>,
    version: String,
}

impl FoundChanges {
    fn add(&mut self, check: &'static Check, path: &str, reason: String) {
        self.add_as(check.severity, check, path, reason);
    }

    /// Adds a change that breaks less than others of its kind.
    fn add_as(&mut self, severity: Severity, check: &'static Check, path: &str, reason: String) {
        let (version, path) = (self.version.clone(), path.to_owned());
        self.found.push(Change { check, severity, version, path, reason });
    }

    /// Replaces the changed descriptions of each version by their number, if there are several.
    fn count_descriptions(&mut self) {
        let is_one = |change: &Change| change.check == &checks::DESCRIPTION_CHANGED;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for change in self.found.iter().filter(|change| is_one(change)) {
            *counts.entry(change.version.clone()).or_default() += 1;
        }
        let mut counted = BTreeSet::new();
        self.found.retain_mut(|change| {
            let count = counts.get(&change.version).copied().unwrap_or_default();
            if !is_one(change) || count < 2 {
                return true;
            }
            let path = std::mem::take(&mut change.path);
            let place = if path.is_empty() { "the object itself" } else { &path };
            change.reason = format!("{count} descriptions change, the first of them that of {place}");
            counted.insert(change.version.clone())
        });
    }
}

/// Compares two definitions.
pub fn compare(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = FoundChanges::default();
    names::compare(old, new, &mut changes);
    versions::compare(old, new, &mut changes);
    conversion::compare(old, new, &mut changes);
    changes.count_descriptions();
    changes.version.clear();
    refusals(old, new, &mut changes);
    changes.found
}

/// The change if a definition is new.
pub fn added() -> Change {
    whole(&checks::DEFINITION_ADDED, "the definition is new")
}

/// The change if a definition is removed.
pub fn removed() -> Change {
    whole(&checks::DEFINITION_REMOVED, "the definition is removed")
}

/// The change if the server refuses a definition.
pub fn refused(why: &str) -> Change {
    whole(&checks::REFUSED, why)
}

fn whole(check: &'static Check, reason: &str) -> Change {
    let severity = check.severity;
    Change { check, severity, version: String::new(), path: String::new(), reason: reason.to_owned() }
}

/// Adds the errors of the API server for an update, unless the field has a breaking change anyway.
fn refusals(old: &Value, new: &Value, changes: &mut FoundChanges) {
    if old.get("spec") == new.get("spec") {
        return;
    }
    let mut update = new.clone();
    // what the client cannot set
    for field in [&["status"][..], &["metadata", "resourceVersion"], &["metadata", "uid"]] {
        update.put_at(field, old.at(field).cloned());
    }
    for error in definition::validate_update(&update, old, Release::NEWEST) {
        let known = changes.found.iter().any(|known| known.severity == Severity::Breaking && known.path == error.field);
        // manifests have no status, and stored versions are compared separately
        let is_of_spec = error.field.starts_with("spec");
        if !known && is_of_spec {
            changes.add(&checks::REFUSED, &error.field, format!("the API server refuses the update: {error}"));
        }
    }
}
