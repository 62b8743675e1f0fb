//! The scale subresource: `autoscaling/v1` Scale as a view of an object (crd.md 14.3, corrections crd 3 to 7).

use std::sync::Arc;

use machinery::patch::gotext;
use machinery::value::Decoded;
use machinery::{Status, Text, Value};
use schema::apply::{ConvertError, Force, ManagedFieldsError, ScalePath, TypeSchema, Versions};
use schema::shape;

use super::admit;
use super::body::{Document, Format, Strict};
use super::change::{Change, Patch};
use super::{Context, Outcome, Request, Shown, meta, timestamps, write};
use crate::objects::Stored;
use crate::request::{FieldValidation, WriteOptions, parse_uint};
use crate::resource::{ScalePaths, Version, unknown_kind};
use crate::{clock, deadline, limits, wording};

fn unreadable(error: ManagedFieldsError) -> Status {
    Status::internal(wording::managed_fields::managed_fields_error(&error))
}

fn segments(path: &str) -> Vec<&str> {
    path.trim_start_matches('.').split('.').collect()
}

fn paths(request: &Request) -> Result<ScalePaths, Status> {
    request.version.scale.clone().ok_or_else(|| request.resource.not_found(request.name()))
}

/// What stands at a path, as the accessors of the reference server find it: null on the way is absence, anything else
/// that is no object an error.
fn nested<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, Status> {
    let names = segments(path);
    let mut value = object;
    for (i, name) in names.iter().enumerate() {
        match value {
            Value::Object(map) => match map.get(name) {
                Some(next) => value = next,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            other => {
                let so_far = format!(".{}", names[..=i].join("."));
                return Err(accessor_error(&so_far, other, "map[string]interface{}"));
            }
        }
    }
    Ok(Some(value))
}

fn accessor_error(path: &str, value: &Value, expected: &str) -> Status {
    let (shown, kind) = (gotext::plain(value), gotext::type_of(value));
    Status::untyped(500, format!("{path} accessor error: {shown} is of the type {kind}, expected {expected}"))
}

fn integer(object: &Value, path: &str) -> Result<Option<i64>, Status> {
    match nested(object, path)? {
        None => Ok(None),
        Some(Value::Int(i)) => Ok(Some(*i)),
        Some(other) => Err(accessor_error(path, other, "int64")),
    }
}

fn selector(object: &Value, path: Option<&Text>) -> Result<Text, Status> {
    let Some(path) = path else { return Ok(Text::default()) };
    match nested(object, path)? {
        None => Ok(Text::default()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(accessor_error(path, other, "string")),
    }
}

/// The Scale of an object.
pub fn view(request: &Request, object: &Value) -> Result<Value, Status> {
    let paths = paths(request)?;
    let replicas = integer(object, &paths.spec_replicas)?;
    let scale = scale_of(object, &paths, replicas)?;
    if replicas.is_none() {
        let why = format!("the spec replicas field \"{}\" does not exist", paths.spec_replicas);
        return Err(Status::internal(why));
    }
    Ok(scale)
}

/// Numbers of a Scale are 32 bits wide; greater ones wrap (corrections crd 6).
fn narrow(replicas: i64) -> i64 {
    i64::from(replicas as i32)
}

fn scale_of(object: &Value, paths: &ScalePaths, replicas: Option<i64>) -> Result<Value, Status> {
    let mut scale = Value::object();
    scale.set_at(&["kind"], Value::from("Scale"));
    scale.set_at(&["apiVersion"], Value::from(SCALE_VERSION));
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.at(&["metadata", key]) {
            scale.set_at(&["metadata", key], value.clone());
        }
    }
    scale.set_at(&["spec"], Value::object());
    if let Some(replicas) = replicas.filter(|r| narrow(*r) != 0) {
        scale.set_at(&["spec", "replicas"], Value::Int(narrow(replicas)));
    }
    let status = integer(object, &paths.status_replicas)?.unwrap_or_default();
    scale.set_at(&["status", "replicas"], Value::Int(narrow(status)));
    let selector = selector(object, paths.label_selector.as_ref())?;
    if !selector.is_empty() {
        scale.set_at(&["status", "selector"], Value::String(selector));
    }
    Ok(scale)
}

/// GET of a scale.
pub async fn get(context: &Context, request: &Request) -> Result<Outcome, Status> {
    match super::list::get(context, request).await? {
        Outcome::Object(code, shown) => Ok(Outcome::Object(code, Shown::Tree(view(request, &shown.to_value())?))),
        other => Ok(other),
    }
}

/// The replicas that a Scale asks for.
fn replicas_of(scale: &Value) -> i64 {
    scale.at(&["spec", "replicas"]).and_then(Value::as_int).unwrap_or_default()
}

/// Brings a body into the form of a Scale. The error is Go's text for what is wrong with it.
pub fn normalise(scale: &mut Value, strict: &mut Strict) -> Result<(), String> {
    let given = |key: &str, default: &str| match scale.str_at(&[key]) {
        "" => default.to_owned(),
        given => given.to_owned(),
    };
    let (kind, version) = (given("kind", "Scale"), given("apiVersion", SCALE_VERSION));
    if kind != "Scale" || version != SCALE_VERSION {
        return Err(unknown_kind(&kind, &version));
    }
    let read = shape::read(scale, &shape::SCALE);
    strict.unknown.extend(read.unknown);
    *scale = read.value;
    read.error.map_or(Ok(()), Err)
}

/// Keeps the duplicate members that typed decoding of JSON notices.
pub fn keep_seen(strict: &mut Strict) {
    strict.duplicates.retain(|path| shape::sees_duplicate(path, &shape::SCALE));
}

/// PUT of a scale.
pub async fn update(
    context: &Context,
    request: &Request,
    document: &Document,
    options: &WriteOptions,
) -> Result<Outcome, Status> {
    // whatever is wrong, it is told in the same words (corrections crd 7)
    let unregistered =
        || Status::bad_request("no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"");
    let decoded = document.decode();
    if document.type_error(&decoded).is_some() {
        return Err(unregistered());
    }
    let Decoded { value: mut scale, duplicates } = decoded.unwrap_or_default();
    let mut strict = Strict::default();
    strict.duplicates = duplicates;
    if document.format == Format::Json {
        keep_seen(&mut strict);
    }
    normalise(&mut scale, &mut strict).map_err(|_| unregistered())?;
    let strict = strict.in_order(document);
    match options.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => strict.warn(document.format, request),
        FieldValidation::Strict if strict.error(document.format).is_some() => return Err(unregistered()),
        FieldValidation::Strict => {}
    }
    let scale = typed(scale);
    request.record(&scale);
    check_place(request, &scale)?;
    let uid = scale.str_at(&["metadata", "uid"]).to_owned();
    scale_loop(context, request, options, &uid, |_| Ok(scale.clone())).await
}

fn check_place(request: &Request, scale: &Value) -> Result<(), Status> {
    let namespace = if request.resource.namespaced { request.namespace().as_str() } else { "" };
    meta::place_in(&mut scale.clone(), namespace)?;
    meta::check_name(scale, request.name())
}

/// PATCH of a scale.
pub async fn patch(
    context: &Context,
    request: &Request,
    change: &Change,
    options: &WriteOptions,
) -> Result<Outcome, Status> {
    match change {
        Change::Apply { configuration, force, .. } => apply(context, request, configuration, *force, options).await,
        Change::Patch(Patch::Json(..) | Patch::Merge(..)) => {
            scale_loop(context, request, options, "", |scale| {
                let after = change.apply_to(request, scale, options)?;
                check_place(request, &after)?;
                Ok(after)
            })
            .await
        }
        _ => Err(Status::generic_invalid()),
    }
}

/// The replicas of an object that says nothing of them, while its Scale is changed.
const UNSET: i64 = i32::MIN as i64;

/// One attempt's view of an object: itself, its Scale with the managedFields that belong there, the paths.
struct Attempt {
    current: Arc<Stored>,
    old: Value,
    scale: Value,
    paths: ScalePaths,
    tracked: Vec<ScalePath>,
}

impl Attempt {
    async fn new(request: &Request) -> Result<Attempt, Status> {
        let path = request.place()?.path;
        let current = request.resource.collection.get(&path);
        let current = current.ok_or_else(|| request.resource.not_found(request.name()))?;
        let old = request.resource.read_converted(&current, &request.version).await?;
        let paths = paths(request)?;
        let replicas = integer(&old, &paths.spec_replicas)?.unwrap_or(UNSET);
        let mut scale = scale_of(&old, &paths, Some(replicas))?;
        let tracked = tracked_paths(request);
        let list = ScalePath::to_scale(old.at(&MANAGED_FIELDS), &tracked).map_err(unreadable)?;
        if let Some(list) = list {
            scale.set_at(&MANAGED_FIELDS, list);
        }
        Ok(Attempt { current, old, scale, paths, tracked })
    }

    /// The object with the replicas and the ownership that a Scale leaves.
    fn object(&self, request: &Request, scale: &Value) -> Result<Value, Status> {
        let mut object = self.old.clone();
        object.set_at(&segments(&self.paths.spec_replicas), Value::Int(replicas_of(scale)));
        let (before, after) = (self.old.at(&MANAGED_FIELDS), scale.at(&MANAGED_FIELDS));
        let list = ScalePath::to_resource(before, after, &request.api_version(), &self.tracked).map_err(unreadable)?;
        match list {
            Some(list) => object.set_at(&MANAGED_FIELDS, list),
            None => drop(object.remove_at(&MANAGED_FIELDS)),
        }
        Ok(object)
    }
}

const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];
const SCALE_VERSION: &str = "autoscaling/v1";

/// Where each version keeps its replicas.
fn tracked_paths(request: &Request) -> Vec<ScalePath> {
    let path = |version: &Version| ScalePath {
        api_version: request.resource.api_version(version),
        replicas: version
            .scale
            .as_ref()
            .map(|scale| segments(&scale.spec_replicas).into_iter().map(Text::from).collect()),
    };
    request.resource.versions.iter().map(|version| path(version)).collect()
}

/// A Scale as the field manager sees it.
struct ScaleTypes {
    types: TypeSchema,
}

impl ScaleTypes {
    fn new() -> ScaleTypes {
        let integer = || machinery::json!({"type": "integer"});
        let schema = machinery::json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"replicas": (integer())}},
            "status": {"type": "object", "properties": {"replicas": (integer()), "selector": {"type": "string"}}}
        }});
        ScaleTypes { types: TypeSchema::compile(&schema) }
    }
}

impl Versions for ScaleTypes {
    fn types(&self, api_version: &str) -> Option<&TypeSchema> {
        (api_version == SCALE_VERSION).then_some(&self.types)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        if api_version == SCALE_VERSION { Ok(object.clone()) } else { Err(ConvertError::MissingVersion) }
    }
}

fn field_manager<'a>(manager: &'a str, types: &'a ScaleTypes) -> schema::apply::Request<'a> {
    schema::apply::Request {
        manager,
        api_version: SCALE_VERSION,
        kind: "Scale",
        subresource: "scale",
        time: clock::now_seconds(),
        versions: types,
        zero: None,
    }
}

/// Changes the Scale until it meets an object that did not change under it. An object with another `uid`, if one is
/// asked for, is a conflict.
async fn scale_loop(
    context: &Context,
    request: &Request,
    options: &WriteOptions,
    uid: &str,
    change: impl Fn(&Value) -> Result<Value, Status>,
) -> Result<Outcome, Status> {
    let manager = request.manager(&options.field_manager);
    let types = ScaleTypes::new();
    for _ in 0..limits::WRITE_RETRIES {
        let attempt = Attempt::new(request).await?;
        let given = change(&attempt.scale)?;
        write::check_uid(request, options.dry_run, uid, &attempt.current.meta.uid)?;
        let mut given = typed(given);
        let replicas = replicas_of(&given);
        set_replicas(&mut given, replicas);
        schema::apply::update(Some(&attempt.scale), &mut given, &field_manager(&manager, &types));
        let shown_options = admit::write_options("UpdateOptions", options);
        let write = write::update_of(context, request, options, &shown_options);
        let given = write.mutate(Some(given), Some(&attempt.scale)).await?.unwrap_or_default();
        if replicas_of(&given) == UNSET {
            let path = &attempt.paths.spec_replicas;
            return Err(Status::bad_request(format!("the spec replicas field \"{path}\" cannot be empty")));
        }
        check_version(request, &given, &attempt.current)?;
        let mut scale = attempt.scale.clone();
        set_replicas(&mut scale, replicas_of(&given));
        match given.at(&MANAGED_FIELDS) {
            Some(managers) => scale.set_at(&MANAGED_FIELDS, managers.clone()),
            None => drop(scale.remove_at(&MANAGED_FIELDS)),
        }
        let object = attempt.object(request, &scale)?;
        if let Some(outcome) = commit(context, request, options, attempt, object).await? {
            return Ok(outcome);
        }
    }
    Err(request.resource.modified(request.name()))
}

/// A Scale that says what it is.
fn typed(mut scale: Value) -> Value {
    scale.set_at(&["kind"], Value::from("Scale"));
    scale.set_at(&["apiVersion"], Value::from(SCALE_VERSION));
    scale
}

/// Sets the replicas of a Scale; zero is left out.
fn set_replicas(scale: &mut Value, replicas: i64) {
    match replicas {
        0 => scale.set_at(&["spec"], Value::object()),
        replicas => scale.set_at(&["spec", "replicas"], Value::Int(replicas)),
    }
}

fn check_version(request: &Request, scale: &Value, current: &Stored) -> Result<(), Status> {
    let given = scale.str_at(&["metadata", "resourceVersion"]);
    let version = if given.is_empty() { Ok(0) } else { parse_uint(given) };
    let version = version.map_err(|why| Status::untyped(500, why))?;
    if version == 0 || version == current.revision {
        return Ok(());
    }
    Err(request.resource.modified(request.name()))
}

async fn commit(
    context: &Context,
    request: &Request,
    options: &WriteOptions,
    attempt: Attempt,
    object: Value,
) -> Result<Option<Outcome>, Status> {
    let (mut object, errors) = deadline::long(|| write::prepared_and_checked(request, object, &attempt.old)).await;
    if !errors.is_empty() {
        return Err(Status::invalid(&request.resource.group, &request.resource.kind, request.name(), &errors));
    }
    timestamps::restore(request, &mut object, &attempt.old);
    let show = |object: &Value| -> Result<Outcome, Status> {
        let replicas = integer(object, &attempt.paths.spec_replicas)?;
        Ok(Outcome::Object(200, Shown::Tree(scale_of(object, &attempt.paths, replicas)?)))
    };
    let replicas = integer(&object, &attempt.paths.spec_replicas)?;
    let shown = scale_of(&object, &attempt.paths, replicas)?;
    let shown_options = admit::write_options("UpdateOptions", options);
    let old_replicas = integer(&attempt.old, &attempt.paths.spec_replicas)?;
    let old = scale_of(&attempt.old, &attempt.paths, old_replicas)?;
    write::update_of(context, request, options, &shown_options).validate(Some(&shown), Some(&old)).await?;
    if options.dry_run {
        return show(&object).map(Some);
    }
    match write::store(context, request, &object, Some(&attempt.current)).await? {
        Ok(stored) => show(&request.resource.read_converted(&stored, &request.version).await?).map(Some),
        Err(()) => Ok(None),
    }
}

/// Apply to a scale. As with the reference server (corrections patch 17) one that would change anything fails, since the
/// Scale has no form in any version of the resource; conflicts are told, and equal values are shared.
async fn apply(
    context: &Context,
    request: &Request,
    configuration: &Value,
    force: bool,
    options: &WriteOptions,
) -> Result<Outcome, Status> {
    let manager = request.manager(&options.field_manager);
    let types = ScaleTypes::new();
    let force = if force { Force::Yes } else { Force::No };
    for _ in 0..limits::WRITE_RETRIES {
        let attempt = Attempt::new(request).await?;
        let is_scale =
            configuration.str_at(&["apiVersion"]) == SCALE_VERSION && configuration.str_at(&["kind"]) == "Scale";
        if is_scale && attempt.scale.at(&MANAGED_FIELDS).is_none() {
            let live = format!("failed to convert live object (/; autoscaling/v1, Kind=Scale) {UNCONVERTIBLE}");
            return Err(Status::untyped(500, format!("failed to create manager for existing fields: {live}")));
        }
        let tracking = field_manager(&manager, &types);
        let scale = schema::apply::apply(Some(&attempt.scale), configuration, force, &tracking);
        let scale = scale.map_err(wording::managed_fields::apply_error)?.object;
        if scale.at(&["spec", "replicas"]) != attempt.scale.at(&["spec", "replicas"]) {
            return Err(unconvertible(configuration));
        }
        let object = attempt.object(request, &scale)?;
        if let Some(outcome) = commit(context, request, options, attempt, object).await? {
            return Ok(outcome);
        }
    }
    Err(request.resource.modified(request.name()))
}

const UNCONVERTIBLE: &str = "to proper version: request to convert CR to an invalid group/version: autoscaling/v1";

fn unconvertible(configuration: &Value) -> Status {
    let (namespace, name) =
        (configuration.str_at(&["metadata", "namespace"]), configuration.str_at(&["metadata", "name"]));
    Status::untyped(
        500,
        format!("failed to convert new object ({namespace}/{name}; autoscaling/v1, Kind=Scale) {UNCONVERTIBLE}"),
    )
}
