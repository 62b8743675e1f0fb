//! The one write loop: create, update, patch and apply (architecture 2.5).
//!
//! current object → change → what the server owns → admission → validation → commit; tried again from the start when
//! the object changed under a change that can be repeated.

use std::sync::Arc;

use machinery::{FieldError, FieldPath, Status, Text, Value};
use schema::Malformed;
use schema::Prior;
use schema::apply::Outcome as Applied;
use store::Refused;

use super::admit::{self, Write};
use super::body::Document;
use super::change::{self, Change, PatchKind};
use super::{Context, Outcome, Request, Shown, Subresource, definitions, meta, reservations, timestamps};
use crate::admission::Operation;
use crate::objects::{Body, Meta, Stored};
use crate::request::{WriteOptions, parse_uint};
use crate::resource::Resource;
use crate::resource::builtin::{DEFINITION_GROUP, StatusMetadata};
use crate::trace::{self, Kind};
use crate::{deadline, limits};

/// The object as it would be stored, and what is wrong with it.
pub fn prepared_and_checked(request: &Request, object: Value, old: &Value) -> (Value, Vec<FieldError>) {
    let object = prepare_for_update(request, object, old);
    let errors = validate_update(request, &object, old);
    (object, errors)
}

/// Creates the object of a body.
pub async fn create(context: &Context, request: &Request, document: &Document) -> Result<Outcome, Status> {
    if request.resource.is_review() {
        return super::review::answer(context, request, document).await;
    }
    let options = WriteOptions::parse(request.query(), "CreateOptions", false)?;
    let mut object = request.decode_object(document, options.field_validation)?;
    super::third_party::check_scope(request, &object)?;
    let manager = request.manager(&options.field_manager);
    meta::wipe_system_fields(request, &mut object)?;
    meta::dedup_owners(request, &mut object, false);
    request.track_update(None, &mut object, &manager).await;
    create_prepared(context, request, object, &options).await
}

/// Creates an object whose managedFields are known.
async fn create_prepared(
    context: &Context,
    request: &Request,
    mut object: Value,
    options: &WriteOptions,
) -> Result<Outcome, Status> {
    let resource = &request.resource;
    let shown_options = admit::write_options("CreateOptions", options);
    // a path may name another one than the object, which is asked about in its place
    let name = match request.name().is_empty() {
        true => Text::from(object.str_at(&["metadata", "name"])),
        false => request.name().clone(),
    };
    let asked = if name.is_empty() { object.str_at(&["metadata", "generateName"]) } else { name.as_str() };
    if resource.terminating {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(&resource.group, &resource.plural, asked, why));
    }
    let (operation, dry_run) = (Operation::Create, options.dry_run);
    let write = Write { context, request, operation, name: &name, options: &shown_options, dry_run };
    write.check_namespace(&object, if asked.is_empty() { "Unknown" } else { asked })?;
    object = write.mutate(Some(object), None).await?.unwrap_or_default();
    meta::fill_system_fields(&mut object);
    let generated = meta::generate_name(&mut object);
    let reservation = reservations::begin(context, request, &mut object, None, options.dry_run).await?;
    let created = create_reserved(&write, object, options, generated).await;
    reservations::finish(context, reservation, created.is_ok()).await;
    created
}

/// Creates an object for which everything is reserved that it needs.
async fn create_reserved(
    write: &Write<'_>,
    mut object: Value,
    options: &WriteOptions,
    generated: bool,
) -> Result<Outcome, Status> {
    let (context, request) = (write.context, write.request);
    let mut attempts = 1;
    loop {
        let name = Text::from(object.str_at(&["metadata", "name"]));
        super::rbac::check(context, request, &object, None).await?;
        prepare_for_create(request, &mut object);
        let errors = deadline::long(|| validate_create(request, &object)).await;
        if !errors.is_empty() {
            let said = ["apiVersion", "kind"].map(|key| Text::from(object.str_at(&[key])));
            return Err(invalid(request, &said, &object, &errors));
        }
        super::third_party::check_names(context, request, &object)?;
        super::rbac::require_create(context, request, &name).await?;
        write.validate(Some(&object), None).await?;
        super::quota::charge(write, &object).await?;
        warn(request, &object, None);
        if !request.name().is_empty() {
            // what a path names may be there: the version is not looked at
            object.remove_at(&["metadata", "resourceVersion"]);
        }
        if options.dry_run {
            return dry_run_create(request, object, &name).await;
        }
        let version = object.str_at(&["metadata", "resourceVersion"]);
        if parse_uint(version).is_ok_and(|v| v != 0) {
            return Err(Status::untyped(500, "resourceVersion should not be set on objects to be created"));
        }
        match store(context, request, &object, None).await? {
            Ok(stored) => return finish(context, request, stored, 201).await,
            Err(()) if generated && attempts < limits::GENERATE_NAME_ATTEMPTS => {
                attempts += 1;
                object.remove_at(&["metadata", "name"]);
                meta::generate_name(&mut object);
            }
            Err(()) => return Err(already_exists(request, &object)),
        }
    }
}

async fn dry_run_create(request: &Request, object: Value, name: &str) -> Result<Outcome, Status> {
    let path = request.resource.key(request.namespace(), name).path;
    if request.resource.collection.get(&path).is_some() {
        return Err(already_exists(request, &object));
    }
    let version = &request.version;
    let stored = request.resource.to_storage(object, version).await?;
    let shown = request.resource.out_of_storage(stored, version).await?;
    Ok(Outcome::Object(201, Shown::Tree(shown)))
}

fn already_exists(request: &Request, object: &Value) -> Status {
    let resource = &request.resource;
    let name = object.str_at(&["metadata", "name"]);
    let mut status = Status::already_exists(&resource.group, &resource.plural, name);
    if !object.str_at(&["metadata", "generateName"]).is_empty() {
        status.message.push_str(", the server was not able to generate a unique name for the object");
        if let Some(details) = &mut status.details {
            details.retry_after_seconds = 1;
        }
    }
    let path = resource.key(request.namespace(), name).path;
    if resource.collection.get(&path).is_some_and(|stored| stored.meta.deleting) {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}

fn prepare_for_create(request: &Request, object: &mut Value) {
    if let Some(shipped) = request.shipped() {
        if shipped.generation {
            object.set_at(&["metadata", "generation"], Value::Int(1));
        }
        (shipped.prepare)(object, None);
        return;
    }
    if request.version.status {
        object.remove_at(&["status"]);
    }
    object.set_at(&["metadata", "generation"], Value::Int(1));
}

/// An invalid object is named as its body named itself, even where that is what is wrong.
fn invalid(request: &Request, [api_version, kind]: &[Text; 2], object: &Value, errors: &[FieldError]) -> Status {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let name = object.str_at(&["metadata", "name"]);
    if request.resource.is_custom() {
        return Status::invalid(group, kind, name, errors);
    }
    let group = request.resource.shipped().map_or(request.resource.group.as_str(), |s| s.storage_group());
    Status::invalid(group, &request.resource.kind, name, errors)
}

fn validate_create(request: &Request, object: &Value) -> Vec<FieldError> {
    let metadata = meta::validate_create(request, object);
    match request.shipped() {
        Some(shipped) => {
            let own = (shipped.validate)(object, None);
            match shipped.metadata_last && !own.is_empty() {
                true => own,
                false => metadata.into_iter().chain(own).collect(),
            }
        }
        None => {
            let types = schema::type_meta_errors(object, &request.api_version(), &request.resource.kind);
            let prior = if types.is_empty() { Prior::Metadata(metadata) } else { Prior::TypeMeta(types) };
            let outcome = request.version.program().schema.validate_after(prior, object, None);
            outcome.warnings.into_iter().for_each(|warning| request.warn(warning));
            outcome.errors
        }
    }
}

fn validate_update(request: &Request, object: &Value, old: &Value) -> Vec<FieldError> {
    let metadata = meta::validate_update(request, object, old);
    if let Some(shipped) = request.shipped() {
        let mut errors = metadata;
        errors.extend(match request.subresource {
            Subresource::Status => (shipped.validate_status)(object, old),
            _ => (shipped.validate)(object, Some(old)),
        });
        return errors;
    }
    let types = schema::type_meta_errors(object, &request.api_version(), &request.resource.kind);
    let prior = if types.is_empty() { Prior::Metadata(metadata) } else { Prior::TypeMeta(types) };
    let schema = &request.version.program().schema;
    let outcome = match request.subresource {
        Subresource::Status => schema.validate_status(prior, object, old),
        _ => schema.validate_after(prior, object, Some(old)),
    };
    outcome.warnings.into_iter().for_each(|warning| request.warn(warning));
    outcome.errors
}

/// Replaces an object by that of a body.
pub async fn update(context: &Context, request: &Request, document: &Document) -> Result<Outcome, Status> {
    let options = WriteOptions::parse(request.query(), "UpdateOptions", false)?;
    if request.subresource == Subresource::Scale {
        return super::scale::update(context, request, document, &options).await;
    }
    let mut object = request.decode_object(document, options.field_validation)?;
    super::third_party::check_scope(request, &object)?;
    let namespace = if request.resource.namespaced { request.namespace().as_str() } else { "" };
    meta::place_in(&mut object, namespace)?;
    meta::check_name(&object, request.name())?;
    change_loop(context, request, &Change::Replace(object), &options).await
}

/// Changes an object by a patch, or by applying a configuration.
pub async fn patch(
    context: &Context,
    request: &Request,
    kind: PatchKind,
    document: &Document,
) -> Result<Outcome, Status> {
    let options = WriteOptions::parse(request.query(), "PatchOptions", kind == PatchKind::Apply)?;
    if let Some(trail) = &request.trail {
        // as it was sent: what does not decode is refused soon enough
        trail.request(|| document.decode().ok().map(|decoded| decoded.value));
    }
    let path = request.place()?.path;
    if kind != PatchKind::Apply && request.resource.collection.get(&path).is_none() {
        return Err(request.resource.not_found(request.name()));
    }
    let change = change::decode(kind, document, &options)?;
    if request.subresource == Subresource::Scale {
        return super::scale::patch(context, request, &change, &options).await;
    }
    change_loop(context, request, &change, &options).await
}

/// Tries a change until it meets an object that did not change under it.
pub async fn change_loop(
    context: &Context,
    request: &Request,
    change: &Change,
    options: &WriteOptions,
) -> Result<Outcome, Status> {
    let path = request.place()?.path;
    for _ in 0..limits::WRITE_RETRIES {
        let Some(current) = request.resource.collection.get(&path) else {
            return absent(context, request, change, options).await;
        };
        if let Some(outcome) = attempt(context, request, change, options, current).await? {
            return Ok(outcome);
        }
    }
    Err(request.resource.modified(request.name()))
}

/// Only an apply creates what is not there; a replacement does so for some kinds.
async fn absent(
    context: &Context,
    request: &Request,
    change: &Change,
    options: &WriteOptions,
) -> Result<Outcome, Status> {
    let not_found = || request.resource.not_found(request.name());
    if let Change::Replace(object) = change
        && request.subresource == Subresource::None
        && request.resource.shipped().is_some_and(|shipped| shipped.create_on_update)
    {
        return create_by_update(context, request, object.clone(), options).await;
    }
    let Change::Apply { configuration, force, repeated } = change else { return Err(not_found()) };
    if request.subresource != Subresource::None {
        return Err(not_found());
    }
    let manager = request.manager(&options.field_manager);
    let mut object = request.track_apply(None, configuration, *force, &manager).await?.object;
    repeated.tell(request)?;
    let uid = configuration.str_at(&["metadata", "uid"]);
    if !uid.is_empty() {
        let why = format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
        return Err(Status::conflict(&request.resource.group, &request.resource.plural, request.name(), &why));
    }
    coerce_applied(request, &mut object)?;
    default_applied(request, &mut object)?;
    meta::check_name(&object, request.name())?;
    meta::wipe_system_fields(request, &mut object)?;
    meta::dedup_owners(request, &mut object, true);
    create_prepared(context, request, object, options).await
}

/// Creates what an update names and nobody has created.
async fn create_by_update(
    context: &Context,
    request: &Request,
    mut object: Value,
    options: &WriteOptions,
) -> Result<Outcome, Status> {
    check_uid(request, options.dry_run, object.str_at(&["metadata", "uid"]), "")?;
    meta::wipe_system_fields(request, &mut object)?;
    meta::dedup_owners(request, &mut object, false);
    request.track_update(None, &mut object, &request.manager(&options.field_manager)).await;
    create_prepared(context, request, object, options).await
}

/// What has become of an object by an apply or a webhook is given its types and defaults; nulls and undeclared fields stay
/// until they are validated and stored. An error is what decoding says.
pub fn normalise_changed(request: &Request, object: &mut Value, malformed: Malformed) -> Result<(), String> {
    if !request.resource.is_custom() {
        return super::body::normalise(&request.version, object, &mut super::body::Strict::default());
    }
    coerce_custom(request, object, malformed)?;
    request.version.program().schema.default(object).map_err(|why| why.to_string())
}

/// Brings the metadata of a custom resource, and of those embedded in it, into shape.
fn coerce_custom(request: &Request, object: &mut Value, malformed: Malformed) -> Result<(), String> {
    if let Value::Object(map) = object {
        schema::metadata::coerce(map, malformed)?;
    }
    let schema = &request.version.program().schema;
    schema.coerce_embedded(object, malformed, &mut vec![]).map_err(|why| why.to_string())
}

/// Gives an applied object its types; a built-in one gets its defaults with them.
fn coerce_applied(request: &Request, object: &mut Value) -> Result<(), Status> {
    if request.resource.is_custom() {
        return coerce_custom(request, object, Malformed::Refuse).map_err(|why| Status::untyped(500, why));
    }
    let (namespace, name) = (object.str_at(&["metadata", "namespace"]), object.str_at(&["metadata", "name"]));
    let kind = format!("{}, Kind={}", request.api_version(), request.resource.kind);
    let place = format!("{namespace}/{name}; {kind}");
    normalise_changed(request, object, Malformed::Refuse).map_err(|why| {
        let unable = format!("unable to convert unstructured object to {kind}: {}", converter_words(&why));
        Status::untyped(500, format!("failed to convert new object ({place}) to proper version: {unable}"))
    })
}

/// Gives an applied custom resource its defaults.
fn default_applied(request: &Request, object: &mut Value) -> Result<(), Status> {
    if request.resource.is_custom() {
        let defaulted = request.version.program().schema.default(object);
        defaulted.map_err(|why| Status::untyped(500, why.to_string()))?;
    }
    Ok(())
}

/// What decoding says, in the words of the converter from trees to Go's types.
fn converter_words(why: &str) -> String {
    if why.starts_with("json: cannot unmarshal number") && why.ends_with("int64") {
        return "cannot convert float64 to int64".to_owned();
    }
    match why.starts_with("illegal base64") {
        true => format!("error decoding from json: {why}"),
        false => why.to_owned(),
    }
}

/// One round of the loop. `None` if the object changed meanwhile and the change can be tried again.
async fn attempt(
    context: &Context,
    request: &Request,
    change: &Change,
    options: &WriteOptions,
    current: Arc<Stored>,
) -> Result<Option<Outcome>, Status> {
    let resource = &request.resource;
    let old = resource.read_converted(&current, &request.version).await?;
    let Changed { object, differs } = changed(request, change, options, &old).await?;
    if !change.is_patch() {
        check_uid(request, options.dry_run, object.str_at(&["metadata", "uid"]), &current.meta.uid)?;
    }
    let shown_options = admit::write_options("UpdateOptions", options);
    let write = update_of(context, request, options, &shown_options);
    let mut object = write.mutate(Some(object), Some(&old)).await?.unwrap_or_default();
    meta::dedup_owners(request, &mut object, true);
    super::rbac::check(context, request, &object, Some(&old)).await?;
    check_version(request, &object, current.revision)?;
    if object.str_at(&["metadata", "resourceVersion"]).is_empty() {
        object.set_at(&["metadata", "resourceVersion"], Value::from(current.revision.to_string()));
    }
    let reservation = reservations::begin(context, request, &mut object, Some(&old), options.dry_run).await?;
    let oversized = if let Change::Apply { .. } = change { Oversized::Refused } else { Oversized::Untracked };
    let updated = update_reserved(&write, object, (&old, differs), oversized, current).await;
    reservations::finish(context, reservation, matches!(updated, Ok(Some(_)))).await;
    updated
}

/// Updates an object for which everything is reserved that it needs. `differs`: see [`Changed`].
async fn update_reserved(
    write: &Write<'_>,
    object: Value,
    (old, differs): (&Value, bool),
    oversized: Oversized,
    current: Arc<Stored>,
) -> Result<Option<Outcome>, Status> {
    let request = write.request;
    let said = ["apiVersion", "kind"].map(|key| Text::from(object.str_at(&[key])));
    let (mut object, errors) = deadline::long(|| prepared_and_checked(request, object, old)).await;
    if !errors.is_empty() {
        return Err(invalid(request, &said, &object, &errors));
    }
    if !differs {
        timestamps::restore(request, &mut object, old);
    }
    write.validate(Some(&object), Some(old)).await?;
    if request.subresource == Subresource::None {
        warn(request, &object, Some(old));
    }
    commit_update(write.context, request, write.dry_run, oversized, object, current).await
}

/// An update as admission is asked about it.
pub fn update_of<'a>(
    context: &'a Context,
    request: &'a Request,
    options: &WriteOptions,
    shown_options: &'a Value,
) -> Write<'a> {
    let (name, dry_run) = (request.name(), options.dry_run);
    Write { context, request, operation: Operation::Update, name, options: shown_options, dry_run }
}

/// An object after a change, with its managedFields.
struct Changed {
    object: Value,
    /// Whether the update counts as a change even where it leaves the object as it was, see [`timestamps`].
    differs: bool,
}

/// Changes `old` as the request wants it.
async fn changed(request: &Request, change: &Change, options: &WriteOptions, old: &Value) -> Result<Changed, Status> {
    let manager = request.manager(&options.field_manager);
    let namespace = if request.resource.namespaced { request.namespace().as_str() } else { "" };
    if let Change::Apply { configuration, force, repeated } = change {
        let Applied { mut object, is_live } = request.track_apply(Some(old), configuration, *force, &manager).await?;
        repeated.tell(request)?;
        meta::place_in(&mut object, namespace)?;
        meta::check_name(&object, request.name())?;
        let mut differs = false;
        if !is_live {
            let sent = request.resource.is_custom().then(|| object.clone());
            coerce_applied(request, &mut object)?;
            differs = sent.is_some_and(|sent| timestamps::differs_uncoerced(&sent, &object, old));
            default_applied(request, &mut object)?;
        }
        return Ok(Changed { object, differs });
    }
    let mut object = change.apply_to(request, old, options)?;
    if change.is_patch() {
        meta::check_name(&object, request.name())?;
        meta::place_in(&mut object, namespace)?;
    }
    if !change.is_patch() {
        meta::dedup_owners(request, &mut object, false);
    }
    request.track_update(Some(old), &mut object, &manager).await;
    Ok(Changed { object, differs: false })
}

/// The key of an object as the reference server's messages show it: kinds of its own have no group there. What only
/// tries a write does not know where everything is kept.
fn storage_key(request: &Request, dry_run: bool) -> String {
    let key = request.resource.key(request.namespace(), request.name());
    let path = match request.resource.shipped() {
        Some(shipped) if shipped.group != DEFINITION_GROUP => format!("/registry/{}/{}", key.plural, key.path),
        _ => String::from_utf8_lossy(&key.to_bytes()).into_owned(),
    };
    if dry_run { path.trim_start_matches("/registry").to_owned() } else { path }
}

/// Refuses a replacement that is for an object of another uid, before anybody is asked about it.
pub fn check_uid(request: &Request, dry_run: bool, uid: &str, stored_uid: &str) -> Result<(), Status> {
    if uid.is_empty() || uid == stored_uid {
        return Ok(());
    }
    let key = storage_key(request, dry_run);
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {stored_uid}"
    );
    Err(Status::conflict(&request.resource.group, &request.resource.plural, request.name(), &why))
}

/// Refuses a write for another resourceVersion, or for none where one is needed.
fn check_version(request: &Request, object: &Value, revision: u64) -> Result<(), Status> {
    let resource = &request.resource;
    let name = request.name();
    let given = object.str_at(&["metadata", "resourceVersion"]);
    let version = if given.is_empty() { Ok(0) } else { parse_uint(given) };
    let version = version.map_err(|why| Status::untyped(500, why))?;
    if version == 0 {
        if resource.unconditional_update() {
            return Ok(());
        }
        let path = FieldPath::new("metadata.resourceVersion");
        let error = FieldError::invalid(&path, &Value::Int(0), "must be specified for an update");
        return Err(Status::invalid(&resource.group, &resource.plural, name, &[error]));
    }
    if version != revision {
        return Err(resource.modified(name));
    }
    Ok(())
}

/// What the endpoint doesn't write is taken from the stored object; the generation counts changes outside metadata.
fn prepare_for_update(request: &Request, mut object: Value, old: &Value) -> Value {
    let old_status = old.get("status").cloned();
    match request.subresource {
        Subresource::Status => {
            let status = object.remove_at(&["status"]);
            let tracked = object.remove_at(&["metadata", "managedFields"]);
            let metadata =
                object.remove_at(&["metadata"]).filter(|_| request.status_metadata() != StatusMetadata::Kept);
            let mut next = old.clone();
            if let Some(metadata) = metadata {
                next.set_at(&["metadata"], metadata);
                meta::restore_system_fields(&mut next, old);
            }
            set_or_remove(&mut next, &["status"], status);
            set_or_remove(&mut next, &["metadata", "managedFields"], tracked);
            return next;
        }
        Subresource::Finalize => {
            set_or_remove(&mut object, &["status"], old_status);
            meta::restore_system_fields(&mut object, old);
            return object;
        }
        _ if request.version.status => set_or_remove(&mut object, &["status"], old_status),
        _ => {}
    }
    meta::restore_system_fields(&mut object, old);
    if let Some(shipped) = request.shipped() {
        (shipped.prepare)(&mut object, Some(old));
        return object;
    }
    if !same_outside_metadata(&object, old) {
        let generation = old.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or_default();
        object.set_at(&["metadata", "generation"], Value::Int(generation + 1));
    }
    object
}

fn same_outside_metadata(a: &Value, b: &Value) -> bool {
    fn rest(object: &Value) -> impl Iterator<Item = (&Text, &Value)> {
        let members = object.as_object().into_iter().flat_map(machinery::Map::iter);
        members.filter(|(key, _)| key.as_str() != "metadata")
    }
    rest(a).eq(rest(b))
}

fn set_or_remove(object: &mut Value, path: &[&str], value: Option<Value>) {
    match value {
        Some(value) => object.set_at(path, value),
        None => drop(object.remove_at(path)),
    }
}

async fn commit_update(
    context: &Context,
    request: &Request,
    dry_run: bool,
    oversized: Oversized,
    object: Value,
    current: Arc<Stored>,
) -> Result<Option<Outcome>, Status> {
    let resource = &request.resource;
    let gone = object.at(&["metadata", "deletionTimestamp"]).is_some_and(|t| !t.is_null())
        && object.at(&["metadata", "finalizers"]).and_then(Value::as_array).is_none_or(<[Value]>::is_empty)
        && current.meta.deleting
        && resource.shipped().is_none_or(|s| s.allows_removal(&object));
    if dry_run || gone {
        if gone && !dry_run {
            let key = resource.key(request.namespace(), request.name());
            match context.objects.delete(&key, current.revision).await {
                Ok(_) => {
                    reservations::after_delete(context, resource, &object).await;
                    definitions::after_delete(context, request).await;
                }
                Err(Refused::Conflict(_)) => return Ok(None),
                Err(Refused::Failed(error)) => return Err(Status::internal(error.to_string())),
            }
        }
        let mut shown = resource.to_storage(object, &request.version).await?;
        shown = resource.out_of_storage(shown, &request.version).await?;
        shown.set_at(&["metadata", "resourceVersion"], Value::from(current.revision.to_string()));
        return Ok(Some(Outcome::Object(200, Shown::Tree(shown))));
    }
    match store_or(oversized, context, request, &object, Some(&current)).await? {
        Ok(stored) => finish(context, request, stored, 200).await.map(Some),
        // whoever replaces a certain version is told in the next round what has become of it
        Err(()) => Ok(None),
    }
}

/// What becomes of an object that is too large to be stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Oversized {
    Refused,
    /// It is stored without its managedFields, if it fits then.
    Untracked,
}

/// Commits an object in its storage form; `Ok(Err(()))` if it is not any more as it was read. A write that changes no
/// byte is not made.
pub async fn store(
    context: &Context,
    request: &Request,
    object: &Value,
    current: Option<&Arc<Stored>>,
) -> Result<Result<Arc<Stored>, ()>, Status> {
    store_or(Oversized::Untracked, context, request, object, current).await
}

async fn store_or(
    oversized: Oversized,
    context: &Context,
    request: &Request,
    object: &Value,
    current: Option<&Arc<Stored>>,
) -> Result<Result<Arc<Stored>, ()>, Status> {
    let resource = &request.resource;
    let mut stored = resource.to_storage(object.clone(), &request.version).await?;
    let mut body = Body::encode(&stored);
    if body.bytes.len() > limits::OBJECT_BYTES_MAX && oversized == Oversized::Untracked {
        stored.remove_at(&["metadata", "managedFields"]);
        body = Body::encode(&stored);
    }
    let as_stored = match resource.shipped() {
        Some(shipped) => shipped.stored_as.is_none(),
        // a status that was taken away may come back by its default
        None => stored.get("status").is_some() || !request.version.program().schema.has_default(&["status"]),
    };
    let clean = if as_stored && request.version.id == resource.storage_version().id { request.version.id } else { 0 };
    commit(context, resource, (body, Meta::of(&stored)), clean, current).await
}

/// Commits what [`store`] has encoded; `clean` names the version program whose rendition these bytes are, 0 for none.
pub async fn commit(
    context: &Context,
    resource: &Resource,
    (body, meta): (Body, Meta),
    clean: u64,
    current: Option<&Arc<Stored>>,
) -> Result<Result<Arc<Stored>, ()>, Status> {
    if body.bytes.len() > limits::OBJECT_BYTES_MAX {
        return Err(Status::untyped(500, "etcdserver: request is too large"));
    }
    if let Some(current) = current
        && current.body.bytes == body.bytes
        && !current.stale
    {
        return Ok(Ok(current.clone()));
    }
    let key = resource.key(&meta.namespace, &meta.name);
    let path = key.path.clone();
    let name = if current.is_some() { "GuaranteedUpdate etcd3" } else { "Create etcd3" };
    let of_span = || trace::attributes([("key", &key.path), ("group", &key.group), ("resource", &key.plural)]);
    let put = context.objects.put(&key, body, meta, current.map(|c| c.revision), clean);
    match trace::span(name, Kind::Internal, of_span, put).await {
        Ok(revision) => {
            let found = resource.collection.get(&path).filter(|stored| stored.revision == revision);
            // somebody may have written again already: then this write is in the history
            let found = found.or_else(|| resource.collection.at(revision).ok()?.get(&path).cloned());
            found.map(Ok).ok_or_else(|| Status::internal("the object was written but is not visible"))
        }
        Err(Refused::Conflict(_)) => Ok(Err(())),
        Err(Refused::Failed(error)) => Err(Status::internal(error.to_string())),
    }
}

/// Warnings about what is accepted and not advised.
fn warn(request: &Request, object: &Value, old: Option<&Value>) {
    match request.shipped() {
        None => meta::warn_finalizers(request, object, old),
        Some(shipped) => (shipped.warnings)(object, old).into_iter().for_each(|warning| request.warn(warning)),
    }
}

/// What follows a write before it is answered, and the answer.
async fn finish(context: &Context, request: &Request, stored: Arc<Stored>, code: u16) -> Result<Outcome, Status> {
    definitions::after_write(context, request, &stored).await;
    let shown = Shown::converted(&request.resource, &request.version, stored).await?;
    Ok(Outcome::Object(code, shown))
}
