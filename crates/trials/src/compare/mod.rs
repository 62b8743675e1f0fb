//! Compares the objects of two forks, without what differs between any two runs.
//!
//! [`pairs`] finds the objects that are the same one although their generated names differ, [`fields`] the fields
//! that differ, as far as [`renamed`] texts do not explain it.

mod fields;
mod pairs;
mod renamed;

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use machinery::{Text, Value};

pub use fields::FieldChange;
use renamed::Renamed;

/// An object's place: its resource with the group, as in `deployments.apps`, its namespace and its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    pub resource: Text,
    pub namespace: Text,
    pub name: Text,
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        write!(out, "{} {}{slash}{}", self.resource, self.namespace, self.name)
    }
}

/// All objects of a fork.
pub type Objects = BTreeMap<ObjectKey, Value>;

/// An object with its place, in one fork and in two.
type Placed<'a> = (&'a ObjectKey, &'a Value);
type Pair<'a> = (Option<Placed<'a>>, Option<Placed<'a>>);

/// Resources that heartbeats and notices fill, which no two runs have alike.
pub const LEFT_OUT: [&str; 3] = ["leases.coordination.k8s.io", "events", "events.events.k8s.io"];

/// Further fields that a comparison leaves out.
#[derive(Clone, Debug, Default)]
pub struct Ignored {
    /// The fields that differed between two runs of the same thing, by resource.
    pub fields: HashSet<(Text, String)>,
    /// The objects that only one of two runs of the same thing had, by resource and the generated name's beginning.
    pub objects: HashSet<(Text, Text)>,
}

impl Ignored {
    /// Ignores also what two runs of the same thing differ in.
    pub fn learn(&mut self, differences: &[Difference]) {
        for Difference { key, stem, change } in differences {
            match change {
                Change::Changed(fields) => {
                    self.fields.extend(fields.iter().map(|field| (key.resource.clone(), field.path.clone())));
                }
                _ => drop(self.objects.insert((key.resource.clone(), stem.clone()))),
            }
        }
    }
}

/// How an object differs.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Added,
    Removed,
    /// It was deleted and created again: it is not the object that existed before the fork.
    Recreated(Vec<FieldChange>),
    Changed(Vec<FieldChange>),
}

/// An object that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// In the newer fork, unless the object was removed.
    pub key: ObjectKey,
    /// The name, or the part of it that was not generated.
    pub stem: Text,
    pub change: Change,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let list = |fields: &[FieldChange]| fields.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        match &self.change {
            Change::Added => write!(out, "{key} exists"),
            Change::Removed => write!(out, "{key} is missing"),
            Change::Recreated(fields) if fields.is_empty() => write!(out, "{key} was created again"),
            Change::Recreated(fields) => write!(out, "{key} was created again: {}", list(fields)),
            Change::Changed(fields) => write!(out, "{key}: {}", list(fields)),
        }
    }
}

/// The differences of `new` from `old`, by object. `kept` are the uids of the objects that existed when the forks were
/// made: only these can have been created again, since others have two uids anyway.
pub fn compare(old: &Objects, new: &Objects, kept: &HashSet<Text>, ignored: &Ignored) -> Vec<Difference> {
    let pairs = pairs::pair(old, new);
    let renamed = Renamed::of(&pairs, kept);
    let mut found = vec![];
    for (before, after) in &pairs {
        let Some((key, object)) = after.or(*before) else { continue };
        let stem = pairs::stem(key, object);
        let change = match (before, after) {
            (Some((_, old)), Some((_, new))) => {
                let is_kept = |object: &Value| kept.contains(object.str_at(&["metadata", "uid"]));
                let uids = [old, new].map(|object| object.str_at(&["metadata", "uid"]));
                let mut fields = fields::changes(old, new, &renamed);
                fields.retain(|field| !ignored.fields.contains(&(key.resource.clone(), field.path.clone())));
                match uids[0] != uids[1] && (is_kept(old) || is_kept(new)) {
                    true => Change::Recreated(fields),
                    false if fields.is_empty() => continue,
                    false => Change::Changed(fields),
                }
            }
            (None, _) => Change::Added,
            (_, None) => Change::Removed,
        };
        let is_whole = !matches!(change, Change::Changed(_));
        if !is_whole || !ignored.objects.contains(&(key.resource.clone(), stem.clone())) {
            found.push(Difference { key: key.clone(), stem, change });
        }
    }
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found
}
