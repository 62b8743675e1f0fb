//! Pairs of objects that are the same one in two forks.

use std::collections::{BTreeMap, HashMap, HashSet};

use machinery::{Text, Value};

use super::fields;
use super::{LEFT_OUT, ObjectKey, Objects};

/// An object with its place.
pub type Placed<'a> = (&'a ObjectKey, &'a Value);
pub type Pair<'a> = (Option<Placed<'a>>, Option<Placed<'a>>);

/// The name of an object, without the suffix that was generated.
pub fn stem(key: &ObjectKey, object: &Value) -> Text {
    let beginning = object.str_at(&["metadata", "generateName"]);
    let is_generated = !beginning.is_empty() && key.name.starts_with(beginning);
    if is_generated { beginning.into() } else { key.name.clone() }
}

/// Pairs objects of one place; of those that remain, objects with the same beginning of a generated name and owners
/// of the same names, those first that look alike.
pub fn pair<'a>(old: &'a Objects, new: &'a Objects) -> Vec<Pair<'a>> {
    let counts = |key: &ObjectKey| !LEFT_OUT.contains(&key.resource.as_str());
    let (mut pairs, mut left) = (vec![], BTreeMap::<Group, (Vec<Placed<'_>>, Vec<Placed<'_>>)>::new());
    for placed @ (key, object) in old.iter().filter(|(key, _)| counts(key)) {
        match new.get_key_value(key) {
            Some(same) => pairs.push((Some(placed), Some(same))),
            None => left.entry(group(key, object)).or_default().0.push(placed),
        }
    }
    for placed @ (key, object) in new.iter().filter(|(key, _)| counts(key) && !old.contains_key(*key)) {
        left.entry(group(key, object)).or_default().1.push(placed);
    }
    for (group, (mut before, mut after)) in left {
        if group.is_generated {
            // equal shapes first, so that one object more does not shift all others
            let mut shapes: HashMap<String, Vec<Placed<'_>>> = HashMap::new();
            for placed in std::mem::take(&mut after).into_iter().rev() {
                shapes.entry(fields::shape(placed.1)).or_default().push(placed);
            }
            before.retain(|placed| {
                let same = shapes.get_mut(&fields::shape(placed.1)).and_then(Vec::pop);
                same.inspect(|same| pairs.push((Some(*placed), Some(*same)))).is_none()
            });
            after = shapes.into_values().flatten().collect();
            after.sort_by_key(|(key, _)| *key);
            let paired = before.len().min(after.len());
            pairs.extend(before.drain(..paired).map(Some).zip(after.drain(..paired).map(Some)));
        }
        pairs.extend(before.into_iter().map(|placed| (Some(placed), None)));
        pairs.extend(after.into_iter().map(|placed| (None, Some(placed))));
    }
    pairs
}

/// What objects with generated names have in common if they can be the same one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    resource: Text,
    namespace: Text,
    stem: Text,
    is_generated: bool,
    owners: Vec<(String, String)>,
}

fn group(key: &ObjectKey, object: &Value) -> Group {
    let stem = stem(key, object);
    let owners = object.items_at(&["metadata", "ownerReferences"]).iter();
    let owner = |owner: &Value| (owner.str_at(&["kind"]).to_owned(), owner.str_at(&["name"]).to_owned());
    Group {
        resource: key.resource.clone(),
        namespace: key.namespace.clone(),
        is_generated: stem != key.name,
        stem,
        owners: owners.map(owner).collect(),
    }
}

/// The uids and generated names of paired objects, of which each pair has two.
pub struct Renamed(HashMap<Text, Text>, Vec<(Text, Text)>);

impl Renamed {
    /// Objects that existed before the forks keep their uids, so a reference to another one is a difference.
    pub fn of(pairs: &[Pair<'_>], kept: &HashSet<Text>) -> Renamed {
        let (mut whole, mut parts) = (HashMap::new(), vec![]);
        for (before, after) in pairs {
            let (Some((old_key, old)), Some((new_key, new))) = (before, after) else { continue };
            let [from, to] = [old, new].map(|object| Text::from(object.str_at(&["metadata", "uid"])));
            if from != to && !from.is_empty() && !kept.contains(&from) {
                parts.push((from.clone(), to.clone()));
                whole.insert(from, to);
            }
            if old_key.name != new_key.name {
                parts.push((old_key.name.clone(), new_key.name.clone()));
                whole.insert(old_key.name.clone(), new_key.name.clone());
            }
        }
        Renamed(whole, parts)
    }

    /// Whether a text means the same in both forks.
    pub fn are_equal(&self, old: &str, new: &str) -> bool {
        if old == new || self.0.get(old).is_some_and(|to| to == new) {
            return true;
        }
        // names of other objects may contain generated ones
        let mut text = old.to_owned();
        for (from, to) in self.1.iter().filter(|(_, to)| new.contains(to.as_str())) {
            text = text.replace(from.as_str(), to);
        }
        text == new
    }
}
