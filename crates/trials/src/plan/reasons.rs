//! Who changed an object, and why objects were deleted that no client deleted.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{Action, Line, Refusal};
use crate::compare::{Change, Difference, LEFT_OUT, ObjectKey, Objects};
use crate::engine::Write;

/// Who applied the change itself.
const CHANGE: &str = "the change";
/// Who wrote what no client wrote.
const SERVER: &str = "the server";

const NAMESPACES: &str = "namespaces";
const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// The client of a write, without its version.
pub fn author(write: &Write) -> String {
    let agent = write.agent.as_deref().unwrap_or(CHANGE);
    agent.split('/').next().unwrap_or(agent).to_owned()
}

/// Whether a write was for an object, or for the collection that it is in.
fn concerns(write: &Write, key: &ObjectKey) -> bool {
    let place = &write.object;
    let is_in = place.namespace.is_empty() || place.namespace == key.namespace;
    let is_named = place.name == key.name && place.namespace == key.namespace;
    place.resource == key.resource && (is_named || write.verb == "deletecollection" && is_in)
}

/// Why the server deleted an object.
struct Cause<'a> {
    reason: String,
    /// The object that was deleted before it.
    because_of: &'a ObjectKey,
}

/// The objects that are gone, or are others of the same name.
struct Gone<'a> {
    keys: HashSet<&'a ObjectKey>,
    uids: HashMap<&'a str, &'a ObjectKey>,
}

impl<'a> Gone<'a> {
    fn of(differences: &'a [Difference], old: &'a Objects) -> Gone<'a> {
        let gone = differences.iter().filter(|one| matches!(one.change, Change::Removed | Change::Recreated(_)));
        let keys: HashSet<_> = gone.map(|difference| &difference.key).collect();
        let uid = |key: &&'a ObjectKey| Some((old.get(*key)?.str_at(&["metadata", "uid"]), *key));
        let uids = keys.iter().filter_map(uid).collect();
        Gone { keys, uids }
    }

    /// Why the server deleted an object that no client deleted.
    fn cause(&self, key: &ObjectKey, old: &Objects) -> Option<Cause<'a>> {
        let find = |resource: &str, name: &str| {
            let key = ObjectKey { resource: resource.into(), namespace: "".into(), name: name.into() };
            self.keys.get(&key).copied()
        };
        if let Some(namespace) = find(NAMESPACES, &key.namespace) {
            return Some(Cause { reason: format!("deleted with namespace {}", key.namespace), because_of: namespace });
        }
        if let Some(definition) = find(DEFINITIONS, &key.resource) {
            return Some(Cause {
                reason: "deleted with its CustomResourceDefinition".to_owned(),
                because_of: definition,
            });
        }
        let owners = old.get(key)?.items_at(&["metadata", "ownerReferences"]).iter();
        let owner = owners.filter_map(|owner| self.uids.get(owner.str_at(&["uid"]))).next()?;
        Some(Cause { reason: format!("deleted by garbage collection: owner {owner} deleted"), because_of: owner })
    }
}

/// The lines of a plan, in the order of the first write to each object. What the server deleted follows what it deleted it for, and what
/// else it changed comes last.
pub fn lines(differences: &[Difference], old: &Objects, new: &Objects, writes: &[Write]) -> Vec<Line> {
    let gone = Gone::of(differences, old);
    let mut by_resource: HashMap<&str, Vec<(usize, &Write)>> = HashMap::new();
    for (index, write) in writes.iter().enumerate() {
        by_resource.entry(&write.object.resource).or_default().push((index, write));
    }
    let of = |key: &'_ ObjectKey| -> Vec<(usize, &Write)> {
        let all = by_resource.get(key.resource.as_str()).into_iter().flatten();
        all.filter(|(_, write)| concerns(write, key)).copied().collect()
    };
    let deletes = |write: &Write| write.is_success() && write.verb.starts_with("delete");
    let cause_of = |key: &ObjectKey| match of(key).iter().any(|(_, write)| deletes(write)) {
        true => None,
        false => gone.cause(key, old),
    };
    let order = |key: &ObjectKey| {
        let (mut key, mut depth) = (key, 0);
        // owners may own each other
        while depth < differences.len() {
            match cause_of(key).filter(|_| gone.keys.contains(key)) {
                Some(cause) => (key, depth) = (cause.because_of, depth + 1),
                None => break,
            }
        }
        let first = of(key).iter().find(|(_, write)| write.is_success()).map(|(index, _)| *index);
        (first.unwrap_or(usize::MAX), depth)
    };
    let mut lines: Vec<((usize, usize), Line)> = differences
        .iter()
        .map(|difference| (order(&difference.key), line(difference, &of(&difference.key), new, &cause_of)))
        .collect();
    lines.sort_by(|(a, one), (b, other)| a.cmp(b).then_with(|| one.key.cmp(&other.key)));
    lines.into_iter().map(|(_, line)| line).collect()
}

fn line<'a>(
    difference: &Difference,
    writes: &[(usize, &Write)],
    new: &Objects,
    cause_of: &impl Fn(&ObjectKey) -> Option<Cause<'a>>,
) -> Line {
    let key = &difference.key;
    let (action, fields) = match &difference.change {
        Change::Added => (Action::Create, vec![]),
        Change::Removed => (Action::Delete, vec![]),
        Change::Recreated(fields) => (Action::Recreate, fields.clone()),
        Change::Changed(fields) => (Action::Change, fields.clone()),
    };
    let counts = |write: &Write| write.is_success() && (action != Action::Delete || write.verb.starts_with("delete"));
    let mut by: Vec<String> = vec![];
    for (_, write) in writes.iter().filter(|(_, write)| counts(write)) {
        let author = author(write);
        if !by.contains(&author) {
            by.push(author);
        }
    }
    let reason = match action {
        Action::Delete => cause_of(key).map(|cause| cause.reason).unwrap_or_default(),
        Action::Recreate => {
            let refused = writes.iter().find(|(_, write)| write.code == 422).map(|(_, write)| essence(&write.message));
            format!("recreated: {}", refused.unwrap_or_else(|| "it has another uid".to_owned()))
        }
        Action::Change => waiting(difference, new),
        Action::Create => String::new(),
    };
    if by.is_empty() && (action != Action::Delete || reason.is_empty()) {
        by.push(SERVER.to_owned());
    }
    Line { key: key.clone(), action, by, reason, fields }
}

/// For an object whose deletion has begun, what it waits for.
fn waiting(difference: &Difference, new: &Objects) -> String {
    let Change::Changed(fields) = &difference.change else { return String::new() };
    let begins = fields.iter().any(|field| field.path == "metadata.deletionTimestamp" && field.old.is_none());
    let finalizers = new.get(&difference.key).map(|object| object.text_list_at(&["metadata", "finalizers"]));
    match finalizers.filter(|_| begins) {
        Some(finalizers) => format!("its deletion waits for finalizers: {}", finalizers.join(", ")),
        None => String::new(),
    }
}

/// The cause in the message of an invalid object: `spec.a: field is immutable` of `… is invalid: spec.a: Invalid value: …: field is immutable`.
fn essence(message: &str) -> String {
    let Some((_, cause)) = message.split_once(" is invalid: ") else { return message.to_owned() };
    match (cause.split_once(": "), cause.rsplit_once(": ")) {
        (Some((path, _)), Some((_, why))) if !cause.starts_with('[') => format!("{path}: {why}"),
        _ => cause.to_owned(),
    }
}

/// The refused writes, without those that are refused without the change as well.
pub fn refusals(writes: &[Write], unchanged: &[Write]) -> Vec<Refusal> {
    let refusal = |write: &Write| Refusal {
        by: author(write),
        verb: write.verb.clone(),
        key: write.object.clone(),
        message: write.message.clone(),
        count: 0,
    };
    let mut counts: BTreeMap<Refusal, usize> = BTreeMap::new();
    for write in writes.iter().filter(|write| write.is_refused()) {
        *counts.entry(refusal(write)).or_default() += 1;
    }
    for write in unchanged.iter().filter(|write| write.is_refused()) {
        counts.remove(&refusal(write));
    }
    counts.into_iter().map(|(refusal, count)| Refusal { count, ..refusal }).collect()
}

/// The letters of generated names.
const GENERATED: &str = "bcdfghjklmnpqrstvwxz2456789";

/// A name, without the end that was generated, if it looks like that.
fn stem(name: &str) -> String {
    match name.rsplit_once('-') {
        Some((stem, end)) if end.len() == 5 && end.chars().all(|letter| GENERATED.contains(letter)) => {
            format!("{stem}-*")
        }
        _ => name.to_owned(),
    }
}

/// What only one of two runs has done, as lines: writes of objects other than Events and Leases, and how the objects differ at the end.
pub fn varying(first: &[Write], second: &[Write], between: &[Difference]) -> Vec<String> {
    let described = |writes: &[Write]| -> BTreeSet<String> {
        let made =
            writes.iter().filter(|write| write.is_success() && !LEFT_OUT.contains(&write.object.resource.as_str()));
        let place = |write: &Write| ObjectKey { name: stem(&write.object.name).into(), ..write.object.clone() };
        made.map(|write| format!("{}: {} {}", author(write), write.verb, place(write))).collect()
    };
    let (first, second) = (described(first), described(second));
    let only = |these: &BTreeSet<String>, others: &BTreeSet<String>, run: &str| {
        these.difference(others).map(|line| format!("{line} (only in the {run} run)")).collect::<Vec<_>>()
    };
    let mut lines = [only(&first, &second, "first"), only(&second, &first, "second")].concat();
    for Difference { key, change, .. } in between {
        match change {
            Change::Added => lines.push(format!("{key} (only in the second run)")),
            Change::Removed => lines.push(format!("{key} (only in the first run)")),
            Change::Changed(fields) | Change::Recreated(fields) => {
                lines.extend(fields.iter().map(|field| format!("{key}: {} (another value in each run)", field.path)));
            }
        }
    }
    lines
}
