//! Ownership after a write: other managers lose the changed paths, and the writer gains them.

use super::Force;
use super::fieldpath::{FieldSet, equal_values};
use super::owners::{Identity, Owner, Owners, Ownership};
use super::typed::{Changes, collect, compare, errors_text, merge, reconcile, remove, with_declared_fields};
use super::types::TypeSchema;
use super::versions::{ConvertError, Renditions, Versioned, Versions};
use machinery::{Text, Value};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

/// Fields that have no owner.
static UNTRACKED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// Why a write has failed.
pub(crate) enum Failure {
    Conflicts(Vec<Conflict>),
    Other(String),
}

/// The fields that one owner would lose.
#[derive(Clone)]
pub(crate) struct Conflict {
    pub owner: Identity,
    pub fields: FieldSet,
}

/// A write, in the version of the request.
#[derive(Clone, Copy)]
pub(crate) struct Write<'a> {
    pub versions: &'a dyn Versions,
    pub types: &'a TypeSchema,
    pub version: &'a Text,
    pub time: i64,
}

fn failed(prefix: &str) -> impl Fn(ConvertError) -> Failure + '_ {
    move |error| match error {
        ConvertError::MissingVersion => Failure::Other(format!("{prefix}no such version")),
        ConvertError::Failed(why) => Failure::Other(format!("{prefix}{why}")),
    }
}

/// Drops entries whose version no longer exists. Entries that own parts of a value which has become atomic now own the
/// whole value.
fn follow_schema(write: Write<'_>, owners: &mut Owners, live: &mut Renditions<'_>) -> Result<Ownership, Failure> {
    let mut ownership = Ownership::Same;
    let mut kept = Vec::with_capacity(owners.0.len());
    let mut existing = HashSet::new();
    for mut owner in std::mem::take(&mut owners.0) {
        if !existing.contains(&owner.version) {
            match live.get(&owner.version) {
                Err(ConvertError::MissingVersion) => {
                    ownership = Ownership::Changed;
                    continue;
                }
                Err(error) => return Err(failed("")(error)),
                Ok(_) => existing.insert(owner.version.clone()),
            };
        }
        if let Some(types) = write.versions.types(&owner.version)
            && !owner.set.is_reconciled
            && let Some(set) = reconcile(types, &owner.set)
        {
            owner.set = set.into();
            ownership = Ownership::Changed;
        }
        kept.push(owner);
    }
    owners.0 = kept;
    Ok(ownership)
}

/// The changes between two objects, computed for each version on demand. Only the changes in the version of the request
/// are kept.
struct AllChanges<'a, 'v> {
    write: Write<'a>,
    live: &'v mut Renditions<'a>,
    new: Renditions<'v>,
    own: Option<Changes>,
}

impl AllChanges<'_, '_> {
    /// The changes in a version; `None` if the version does not exist.
    fn in_version(&mut self, version: &Text) -> Result<Option<Cow<'_, Changes>>, Failure> {
        let is_own = version == self.write.version;
        if is_own && self.own.is_some() {
            return Ok(self.own.as_ref().map(Cow::Borrowed));
        }
        let old = match self.live.get(version) {
            Err(ConvertError::MissingVersion) => return Ok(None),
            other => other.map_err(failed("failed to convert old object: "))?,
        };
        let new = match self.new.get(version) {
            Err(ConvertError::MissingVersion) => return Ok(None),
            other => other.map_err(failed("failed to convert new object: "))?,
        };
        let Some(types) = self.write.versions.types(version) else { return Ok(None) };
        let changes = compare(types, &old, &new).without(self.write.versions.reset_fields(version));
        Ok(Some(if is_own { Cow::Borrowed(self.own.insert(changes)) } else { Cow::Owned(changes) }))
    }
}

/// Removes changed paths from all owners except `except`. Without `force`, added or modified paths of other owners are
/// conflicts. Goes version by version, so that the changes of only one version are in memory at a time.
fn take_changes(
    owners: &mut Owners,
    changes: &mut AllChanges<'_, '_>,
    except: Option<&Identity>,
    force: Force,
) -> Result<Ownership, Failure> {
    let mut conflicts = vec![];
    let count = owners.0.len();
    let mut ownership = Ownership::Same;
    let (mut kept, mut rest) = owners.0.drain(..).partition::<Vec<_>, _>(|owner| except == Some(&owner.identity));
    while let Some(version) = rest.first().map(|owner| owner.version.clone()) {
        let of_version = rest.extract_if(.., |owner| owner.version == version).collect::<Vec<_>>();
        let Some(changes) = changes.in_version(&version)? else { continue };
        for mut owner in of_version {
            let conflicting = owner.set.intersects(&changes.added) || owner.set.intersects(&changes.modified);
            if conflicting && force == Force::No {
                let fields = owner.set.intersection(&changes.added).union(owner.set.intersection(&changes.modified));
                conflicts.push(Conflict { owner: owner.identity.clone(), fields });
            }
            if conflicting || owner.set.intersects(&changes.removed) {
                ownership = Ownership::Changed;
                let set = owner.set.to_mut();
                set.remove(&changes.added);
                set.remove(&changes.modified);
                set.remove(&changes.removed);
            }
            kept.push(owner);
        }
    }
    if !conflicts.is_empty() {
        return Err(Failure::Conflicts(conflicts));
    }
    kept.retain(|owner| !owner.set.is_empty());
    owners.0 = kept;
    Ok(if owners.0.len() == count { ownership } else { Ownership::Changed })
}

/// Whether the set of the writer is the same after the changes. Then it needs not be copied, changed and encoded again.
fn owns_all(set: &FieldSet, changes: &Changes) -> bool {
    let Changes { added, modified, removed } = changes;
    let is_any_owned = !added.is_empty() || !modified.is_empty();
    let is_none_lost = !set.intersects(removed) && !set.intersects(&UNTRACKED);
    let is_same = is_any_owned && added.is_subset(set) && modified.is_subset(set) && is_none_lost;
    debug_assert!(!is_same || *set == owned_after(Changes::clone(changes), set.clone()));
    is_same
}

fn owned_after(changes: Changes, mut set: FieldSet) -> FieldSet {
    set.remove(&changes.added);
    set.remove(&changes.modified);
    set.remove(&changes.removed);
    let mut own = changes.modified.union(changes.added);
    own.remove(&UNTRACKED);
    own.union(set)
}

/// Tracks an update of `live` to `new`. Afterwards the changed paths belong to `writer`.
pub(crate) fn update(
    write: Write<'_>,
    live: &Value,
    new: &Value,
    owners: &mut Owners,
    writer: &Identity,
) -> Result<Ownership, Failure> {
    let mut live = Renditions::new(write.versions, live, write.version);
    let ownership = follow_schema(write, owners, &mut live)?;
    let own = {
        let new = Renditions::new(write.versions, new, write.version);
        let mut changes = AllChanges { write, live: &mut live, new, own: None };
        let nothing = changes.in_version(write.version)?.is_none_or(|changes| changes.is_empty());
        if nothing && owners.0.iter().all(|o| o.version == *write.version && !o.set.is_empty()) {
            return Ok(ownership);
        }
        let is_kept = changes.own.as_ref().is_some_and(|own| owners.get(writer).is_some_and(|o| owns_all(&o.set, own)));
        take_changes(owners, &mut changes, is_kept.then_some(writer), Force::Yes)?;
        if let (true, Some(owner)) = (is_kept, owners.get_mut(writer)) {
            owner.time = Some(write.time);
            return Ok(Ownership::Changed);
        }
        let own = changes.own.unwrap_or_default();
        let mut own = own.modified.union(own.added);
        own.remove(&UNTRACKED);
        own
    };
    if own.is_empty() {
        return Ok(Ownership::Changed);
    }
    let previous = owners.take(writer).map(|o| o.set.into_set()).unwrap_or_default();
    owners.0.push(Owner {
        identity: writer.clone(),
        version: write.version.clone(),
        time: Some(write.time),
        set: own.union(previous).into(),
    });
    Ok(Ownership::Changed)
}

/// The outcome of an apply. The object is absent if it equals the live one.
pub(crate) struct Applied {
    pub object: Option<Value>,
    pub owners: Owners,
    pub ownership: Ownership,
}

/// Merges `configuration` into `live` on behalf of `writer`.
pub(crate) fn apply(
    write: Write<'_>,
    live: &Value,
    configuration: &Value,
    mut owners: Owners,
    writer: &Identity,
    force: Force,
) -> Result<Applied, Failure> {
    let mut live_renditions = Renditions::new(write.versions, live, write.version);
    // the time of an entry is kept even if its version no longer exists
    let time = owners.get(writer).and_then(|o| o.time);
    let mut ownership = follow_schema(write, &mut owners, &mut live_renditions)?;
    let mut object = merge(write.types, live, configuration)
        .map_err(|errors| Failure::Other(format!("failed to merge config: {}", errors_text(&errors))))?;
    object.remove_at(&["metadata", "managedFields"]);
    // a null list differs from the live object, from which kube-apiserver has removed managedFields
    let has_null_list = configuration.at(&["metadata", "managedFields"]).is_some_and(Value::is_null);
    let mut set = collect(write.types, configuration);
    if let Some(reset) = write.versions.reset_fields(write.version) {
        set.remove_recursively(reset);
    }
    let last = owners.take(writer);
    let fresh = last.as_ref().is_none_or(|last| last.version != *write.version);
    owners.0.push(Owner { identity: writer.clone(), version: write.version.clone(), time, set: set.into() });
    if let Some(last) = &last {
        object = prune(write, object, &owners, writer, last)
            .map_err(|why| Failure::Other(format!("failed to prune fields: {why}")))?;
    }
    let taken = {
        let new = Renditions::new(write.versions, &object, write.version);
        let mut changes = AllChanges { write, live: &mut live_renditions, new, own: None };
        take_changes(&mut owners, &mut changes, Some(writer), force)?
    };
    let changed = has_null_list || !same_object(live, &object);
    let mut is_same_set = false;
    if let Some(own) = owners.get_mut(writer) {
        own.set.to_mut().remove(&UNTRACKED);
        if let Some(last) = last.filter(|last| *last.set == *own.set) {
            // has its text already
            own.set = last.set;
            is_same_set = true;
        }
        if changed {
            own.time = Some(write.time);
        }
    }
    let count = owners.0.len();
    owners.0.retain(|owner| !owner.set.is_empty());
    if changed || fresh || taken == Ownership::Changed || count != owners.0.len() || !is_same_set {
        ownership = Ownership::Changed;
    }
    Ok(Applied { object: changed.then_some(object), owners, ownership })
}

/// Whether two objects are equal apart from managedFields.
fn same_object(live: &Value, new: &Value) -> bool {
    let (Some(live), Some(new)) = (live.as_object(), new.as_object()) else {
        return equal_values(live, new);
    };
    live.len() == new.len()
        && live.iter().zip(new.iter()).all(|((a, x), (b, y))| {
            a == b
                && match (a.as_str(), x, y) {
                    ("metadata", Value::Object(x), Value::Object(y)) => {
                        let rest = x.iter().filter(|(name, _)| *name != "managedFields");
                        rest.clone().count() == y.len()
                            && rest.zip(y.iter()).all(|((a, x), (b, y))| a == b && equal_values(x, y))
                    }
                    _ => equal_values(x, y),
                }
        })
}

type Pruned<'v> = Result<Versioned<'v>, String>;

/// Removes the fields that the manager applied last time but not now, unless another manager owns them.
fn prune(write: Write<'_>, merged: Value, owners: &Owners, writer: &Identity, last: &Owner) -> Result<Value, String> {
    if last.set.is_empty() {
        return Ok(merged);
    }
    let own = owners.get(writer).map(|o| &o.set);
    let one_version = last.version == *write.version && owners.0.iter().all(|o| o.version == *write.version);
    if one_version && own.is_some_and(|own| last.set.is_subset(own)) {
        return Ok(merged);
    }
    let source = Versioned { value: Cow::Owned(merged), version: write.version.clone() };
    let converted = match source.to(write.versions, &last.version) {
        Ok(converted) => converted.into_owned(),
        Err(ConvertError::MissingVersion) => return Ok(source.value.into_owned()),
        Err(ConvertError::Failed(why)) => {
            return Err(format!("failed to convert merged object to last applied version: {why}"));
        }
    };
    let Some(types) = write.versions.types(&last.version) else { return Ok(source.value.into_owned()) };
    let last_declared = with_declared_fields(types, &last.set);
    let pruned = remove(types, converted.value.clone().into_owned(), &last_declared);
    let pruned = Versioned { value: Cow::Owned(pruned), version: last.version.clone() };
    let pruned = keep_owned(write, converted.clone(), pruned, owners, &last.version)
        .map_err(|why| format!("failed add back owned items: {why}"))?;
    let pruned = keep_dangling(write, types, converted, &pruned, &last_declared)
        .map_err(|why| format!("failed add back dangling items: {why}"))?;
    match pruned.to(write.versions, write.version) {
        Ok(pruned) => Ok(pruned.value.into_owned()),
        Err(ConvertError::MissingVersion) => Err("no such version".to_owned()),
        Err(ConvertError::Failed(why)) => Err(why),
    }
}

/// Restores the fields that any manager owns, version by version, beginning with the version in which fields were
/// removed.
fn keep_owned(
    write: Write<'_>,
    mut merged: Versioned<'static>,
    mut pruned: Versioned<'static>,
    owners: &Owners,
    first: &Text,
) -> Pruned<'static> {
    let mut owned: Vec<(&Text, Vec<FieldSet>)> = vec![];
    for owner in &owners.0 {
        match owned.iter_mut().find(|(version, _)| **version == owner.version) {
            Some((_, sets)) => sets.push(FieldSet::clone(&owner.set)),
            None => owned.push((&owner.version, vec![FieldSet::clone(&owner.set)])),
        }
    }
    owned.sort_by(|a, b| (a.0 != first).cmp(&(b.0 != first)).then_with(|| a.0.as_str().cmp(b.0.as_str())));
    for (version, sets) in owned {
        let text = |error: ConvertError, what: &str| match error {
            ConvertError::MissingVersion => None,
            ConvertError::Failed(why) => Some(format!("failed to convert {what} object at version {version}: {why}")),
        };
        merged = match merged.to(write.versions, version) {
            Ok(converted) => converted.into_owned(),
            Err(error) => match text(error, "merged") {
                Some(why) => return Err(why),
                None => continue,
            },
        };
        let converted = match pruned.to(write.versions, version) {
            Ok(converted) => converted,
            Err(error) => match text(error, "pruned") {
                Some(why) => return Err(why),
                None => continue,
            },
        };
        let Some(types) = write.versions.types(version) else { continue };
        let all = with_declared_fields(types, &collect(types, &merged.value));
        let mut gone = all.difference(&with_declared_fields(types, &collect(types, &converted.value)));
        gone.remove(&with_declared_fields(types, &FieldSet::union_of(sets)));
        let value = remove(types, merged.value.clone().into_owned(), &gone);
        pruned = Versioned { value: Cow::Owned(value), version: version.clone() };
    }
    Ok(pruned)
}

/// Restores the fields that the writer did not own.
fn keep_dangling(
    write: Write<'_>,
    types: &TypeSchema,
    merged: Versioned<'static>,
    pruned: &Versioned<'_>,
    last: &FieldSet,
) -> Pruned<'static> {
    let converted = match pruned.to(write.versions, &merged.version) {
        Ok(converted) => converted,
        Err(ConvertError::MissingVersion) => return Ok(merged),
        Err(ConvertError::Failed(why)) => {
            return Err(format!("failed to convert pruned object to last applied version: {why}"));
        }
    };
    let all = with_declared_fields(types, &collect(types, &merged.value));
    let gone = all.difference(&with_declared_fields(types, &collect(types, &converted.value)));
    let gone = gone.intersection(last);
    let version = merged.version;
    Ok(Versioned { value: Cow::Owned(remove(types, merged.value.into_owned(), &gone)), version })
}
