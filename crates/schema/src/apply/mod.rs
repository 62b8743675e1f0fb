//! Server-side apply and the managedFields of every write.
//!
//! [`update`] computes the managedFields of a create, a replacement or a patch; [`apply`] merges an applied
//! configuration into the live object. Both take the objects in the version of the request and reach other versions
//! only through [`Versions`]. Invariants: every manager that applied the current value of a path owns it, and changing
//! a value leaves it one owner; a write that changes nothing changes no time; a field that an applier leaves out is
//! removed only if no other manager owns it. Start reading at [`update`] and [`apply`], then `ownership.rs`; `typed/`
//! holds the walks over values.

mod configuration;
mod conflicts;
mod error;
mod fieldpath;
mod fields_v1;
mod last_applied;
mod owners;
mod ownership;
mod scale;
mod shapes;
mod typed;
mod types;
mod versions;

pub use configuration::merge_configuration;
pub use error::ManagedFieldsError;
pub use fieldpath::{FieldSet, PathElement, SetNode};
pub use fields_v1::{encode as encode_fields_v1, parse as parse_fields_v1};
pub use owners::UPDATE_ENTRIES_MAX;
pub use scale::ScalePath;
pub use types::TypeSchema;
pub use versions::{ConvertError, Versions};

use machinery::{Release, Status, Text, Value};
use owners::{Identity, Operation, Owners, Ownership};
use ownership::{Applied, Failure, Write};
use typed::{Duplicates, Mismatch, errors_text, validate, validate_beside};

use crate::shape;

/// The manager that owns all fields without a recorded owner once an object is applied for the first time.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

/// The manager, version and time of a write.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub manager: &'a str,
    /// The version of the request, as in `apiVersion`. All objects are given in this version.
    pub api_version: &'a str,
    pub kind: &'a str,
    /// The subresource; `""` for the object itself.
    pub subresource: &'a str,
    /// The time of the write, in seconds since the epoch.
    pub time: i64,
    pub versions: &'a dyn Versions,
    /// The object in which no field is set, for types that always have some fields.
    pub zero: Option<&'a Value>,
    pub release: Release,
}

impl Request<'_> {
    fn identity(&self, manager: &str, operation: Operation) -> Identity {
        Identity::new(manager, operation, self.api_version, self.subresource)
    }

    fn empty_object(&self) -> Value {
        [("apiVersion", Value::from(self.api_version)), ("kind", Value::from(self.kind))].into()
    }

    fn zero_object(&self) -> Value {
        let mut zero = self.zero.cloned().unwrap_or_else(Value::object);
        zero.set_at(&["apiVersion"], Value::from(self.api_version));
        zero.set_at(&["kind"], Value::from(self.kind));
        zero
    }

    /// `namespace/name; group/version, Kind=Kind`, as messages name an object.
    fn name_of(object: &Value) -> String {
        let (namespace, name) = (object.str_at(&["metadata", "namespace"]), object.str_at(&["metadata", "name"]));
        format!("{namespace}/{name}; {}", kind_text(object.str_at(&["apiVersion"]), object.str_at(&["kind"])))
    }
}

/// `group/version, Kind=Kind`; an invalid apiVersion is treated as empty.
fn kind_text(api_version: &str, kind: &str) -> String {
    let (group, version) = match api_version.split_once('/') {
        // if the version is invalid, upstream leaves the kind empty, too
        Some((_, version)) if version.contains('/') => return "/, Kind=".to_owned(),
        Some((group, version)) => (group, version),
        None => ("", api_version),
    };
    format!("{group}/{version}, Kind={kind}")
}

fn list_of(object: &Value) -> Option<&Value> {
    object.at(&MANAGED_FIELDS)
}

fn set_list(object: &mut Value, owners: Owners) {
    object.put_at(&MANAGED_FIELDS, owners.into_value());
}

/// Checks that the managedFields of an object can be read.
pub fn check_managed_fields(object: &Value) -> Result<(), ManagedFieldsError> {
    Owners::parse(object.at(&["metadata", "managedFields"]), None).map(drop)
}

/// Sets the managedFields of `new`, which is to be stored in place of `live` by anything but an apply.
///
/// `new` is as the client wants it (decoded, pruned, defaulted, patched), before the endpoint resets what it does not
/// write. A list in `new` that can be decoded replaces the live one, except through subresources. Never fails: objects
/// that don't fit their types keep the managedFields of `live`; before 1.37 they lost all.
pub fn update(live: Option<&Value>, new: &mut Value, request: &Request<'_>) {
    let given = new.remove_at(&MANAGED_FIELDS);
    if new.str_at(&["kind"]) != request.kind || new.str_at(&["apiVersion"]) != request.api_version {
        // an object whose type is not known keeps its owners
        return keep_owners(live, new, request);
    }
    let (mut owners, kept) = live_or_given(live, given, request);
    if owners.0.is_empty() && live.is_some() {
        return;
    }
    let kept = kept.filter(|list| owners.are_all_of(list));
    let zero = request.zero_object();
    let writer = request.identity(request.manager, Operation::Update);
    match (track(live.unwrap_or(&zero), new, &mut owners, &writer, request), kept) {
        (Ok(Ownership::Same), Some(list)) => new.set_at(&MANAGED_FIELDS, list),
        (Ok(_), _) => set_list(new, owners),
        (Err(_), _) => keep_owners(live, new, request),
    }
}

/// Since 1.37, managedFields are kept unchanged if they cannot be computed.
fn keep_owners(live: Option<&Value>, new: &mut Value, request: &Request<'_>) {
    if let Some(list) = live.and_then(list_of).filter(|_| request.release >= Release::V1_37) {
        new.set_at(&MANAGED_FIELDS, list.clone());
    }
}

/// The owners before the write, and the list from which they were decoded if that is the stored one.
fn live_or_given(live: Option<&Value>, given: Option<Value>, request: &Request<'_>) -> (Owners, Option<Value>) {
    let stored = live.and_then(list_of);
    if request.subresource.is_empty() && given.as_ref() != stored {
        if owners::is_reset(given.as_ref()) {
            return (Owners::default(), None);
        }
        match Owners::parse(given.as_ref(), Some(request.versions)) {
            Ok(owners) if !owners.0.is_empty() => return (owners, None),
            _ => {}
        }
    }
    match Owners::parse(stored, Some(request.versions)) {
        Ok(owners) => (owners, stored.cloned()),
        Err(_) => (Owners::default(), None),
    }
}

/// The fallible part of [`update`].
fn track(
    live: &Value,
    new: &Value,
    owners: &mut Owners,
    writer: &Identity,
    request: &Request<'_>,
) -> Result<Ownership, String> {
    let Some(types) = request.versions.types(request.api_version) else {
        return Err("no corresponding type".to_owned());
    };
    let mismatch = |object: &Value, what: &str, errors: Vec<Mismatch>| {
        let name = Request::name_of(object);
        format!("failed to convert {what} object ({name}) to smd typed: {}", errors_text(&errors))
    };
    validate(types, new, Duplicates::Allowed).map_err(|errors| mismatch(new, "new", errors))?;
    validate_beside(types, live, new, Duplicates::Allowed).map_err(|errors| mismatch(live, "live", errors))?;
    let version = Text::from(request.api_version);
    let write = Write { versions: request.versions, types, version: &version, time: request.time };
    let updated = ownership::update(write, live, new, owners, writer);
    let capped = owners.cap(writer);
    updated.map(|ownership| if capped { Ownership::Changed } else { ownership }).map_err(|failure| match failure {
        Failure::Conflicts(_) => "conflicts".to_owned(),
        Failure::Other(why) => {
            format!("failed to update ManagedFields ({}): {why}", Request::name_of(new))
        }
    })
}

/// Whether an apply may change fields that other managers own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    No,
    Yes,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ApplyOutcome {
    /// The new object, with its managedFields.
    pub object: Value,
    /// Whether the apply changed nothing but managedFields. The object is then the live one and gets no defaults.
    pub is_live: bool,
}

/// Applies `configuration` to `live`, or creates the object from it.
///
/// The caller still has to compare name, namespace, uid and resourceVersion, and to reset, default, prune and validate
/// the object as an update.
pub fn apply(
    live: Option<&Value>,
    configuration: &Value,
    force: Force,
    request: &Request<'_>,
) -> Result<ApplyOutcome, Status> {
    let (api_version, kind) = (configuration.str_at(&["apiVersion"]), configuration.str_at(&["kind"]));
    if api_version != request.api_version || kind != request.kind {
        let status = Status::bad_request(format!("invalid object type: {}", kind_text(api_version, kind)));
        return Err(status);
    }
    let internal = |why: String| Status::untyped(500, why);
    let empty = request.empty_object();
    let live = live.unwrap_or(&empty);
    let mut owners = Owners::parse(list_of(live), Some(request.versions))
        .map_err(|why| internal(format!("failed to decode managed fields: {why}")))?;
    let untracked = owners.0.is_empty();
    let changed = untracked || !list_of(live).is_some_and(|list| owners.are_all_of(list));
    if untracked {
        let before = request.identity(BEFORE_FIRST_APPLY, Operation::Update);
        track(&request.zero_object(), live, &mut owners, &before, request)
            .map_err(|why| internal(format!("failed to create manager for existing fields: {why}")))?;
    }
    let applied = last_applied::apply(live, configuration, owners, force, request)?;
    let same = applied.ownership == Ownership::Same && !changed;
    let is_live = applied.object.is_none();
    let mut object = applied.object.unwrap_or_else(|| live.clone());
    if !same {
        set_list(&mut object, applied.owners);
    }
    last_applied::renew(&mut object, configuration, request);
    Ok(ApplyOutcome { object, is_live })
}

/// Tries to apply once.
fn attempt(
    live: &Value,
    configuration: &Value,
    owners: Owners,
    force: Force,
    request: &Request<'_>,
) -> Result<Applied, Attempt> {
    if has_managed_fields(configuration) {
        return Err(Attempt::Failed(Status::bad_request("metadata.managedFields must be nil")));
    }
    let internal = |why: String| Attempt::Failed(Status::untyped(500, why));
    let Some(types) = request.versions.types(request.api_version) else {
        let kind = kind_text(request.api_version, request.kind);
        return Err(internal(format!("no corresponding type for {kind}")));
    };
    let typed = |object: &Value, duplicates, what: &str| {
        validate(types, object, duplicates).map_err(|errors| {
            let name = Request::name_of(object);
            internal(format!("failed to create typed {what} object ({name}): {}", errors_text(&errors)))
        })
    };
    typed(configuration, Duplicates::Refused, "patch")?;
    typed(live, Duplicates::Allowed, "live")?;
    let version = Text::from(request.api_version);
    let write = Write { versions: request.versions, types, version: &version, time: request.time };
    let writer = request.identity(request.manager, Operation::Apply);
    ownership::apply(write, live, configuration, owners, &writer, force).map_err(|failure| match failure {
        Failure::Conflicts(conflicts) => Attempt::Conflicts(conflicts),
        Failure::Other(why) => internal(why),
    })
}

/// Why an attempt has failed.
enum Attempt {
    Conflicts(Vec<ownership::Conflict>),
    Failed(Status),
}

/// Whether a configuration has managedFields. A list with anything but valid entries counts as absent, an empty list
/// does not.
fn has_managed_fields(configuration: &Value) -> bool {
    let entries = list_of(configuration).and_then(Value::as_array);
    let is_entry = |entry: &Value| {
        matches!(entry, Value::Object(_))
            && shape::read(entry, shape::named("meta.v1.ManagedFieldsEntry")).error.is_none()
    };
    entries.is_some_and(|entries| entries.iter().all(is_entry))
}
