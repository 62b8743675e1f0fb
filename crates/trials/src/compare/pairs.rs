//! Pairs of objects that are the same one in two forks.

use std::collections::{BTreeMap, HashMap};

use machinery::{Text, Value};

use super::fields;
use super::{LEFT_OUT, ObjectKey, Objects, Pair, Placed};

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

/// The common part of objects with generated names that can be the same one.
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
