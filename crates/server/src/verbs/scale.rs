//! The scale subresource: `autoscaling/v1` Scale as a view of an object (crd.md 14.3, corrections crd 3 to 7).

use std::sync::Arc;

use machinery::{FieldError, FieldPath, Status, Text, Value};

use super::body::Document;
use super::change::{Change, Patch};
use super::{Context, Outcome, Request, Shown, meta, write};
use crate::limits;
use crate::objects::Stored;
use crate::request::WriteOptions;
use crate::resource::ScalePaths;

fn segments(path: &str) -> Vec<&str> {
    path.trim_start_matches('.').split('.').collect()
}

fn paths(request: &Request) -> Result<ScalePaths, Status> {
    request.version.scale.clone().ok_or_else(|| request.resource.not_found(request.name()))
}

fn integer(object: &Value, path: &str) -> Result<Option<i64>, Status> {
    match object.at(&segments(path)) {
        None => Ok(None),
        Some(Value::Int(i)) => Ok(Some(*i)),
        Some(other) => {
            let (shown, kind) = match other {
                Value::String(s) => (s.to_string(), "string"),
                Value::Bool(b) => (b.to_string(), "bool"),
                Value::Float(f) => (machinery::value::float_text(*f), "float64"),
                Value::Null => ("<nil>".to_owned(), "<nil>"),
                Value::Array(_) => (other.to_json(), "[]interface {}"),
                _ => (other.to_json(), "map[string]interface {}"),
            };
            Err(Status::untyped(500, format!("{path} accessor error: {shown} is of the type {kind}, expected int64")))
        }
    }
}

/// The Scale of an object.
pub fn view(request: &Request, object: &Value) -> Result<Value, Status> {
    let paths = paths(request)?;
    let missing = || Status::internal(format!("the spec replicas field \"{}\" does not exist", paths.spec_replicas));
    let replicas = integer(object, &paths.spec_replicas)?.ok_or_else(missing)?;
    Ok(scale_of(object, &paths, Some(replicas)))
}

/// Numbers of a Scale are 32 bits wide; greater ones wrap (corrections crd 6).
fn narrow(replicas: i64) -> i64 {
    i64::from(replicas as i32)
}

fn scale_of(object: &Value, paths: &ScalePaths, replicas: Option<i64>) -> Value {
    let mut scale = Value::object();
    scale.set_at(&["kind"], Value::from("Scale"));
    scale.set_at(&["apiVersion"], Value::from("autoscaling/v1"));
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.at(&["metadata", key]) {
            scale.set_at(&["metadata", key], value.clone());
        }
    }
    scale.set_at(&["spec"], Value::object());
    if let Some(replicas) = replicas.filter(|r| narrow(*r) != 0) {
        scale.set_at(&["spec", "replicas"], Value::Int(narrow(replicas)));
    }
    let status = integer(object, &paths.status_replicas).ok().flatten().unwrap_or_default();
    scale.set_at(&["status", "replicas"], Value::Int(narrow(status)));
    let selector = paths.label_selector.as_ref().and_then(|path| object.at(&segments(path))).and_then(Value::as_str);
    if let Some(selector) = selector.filter(|s| !s.is_empty()) {
        scale.set_at(&["status", "selector"], Value::from(selector));
    }
    scale
}

/// GET of a scale.
pub async fn get(context: &Context, request: &Request) -> Result<Outcome, Status> {
    match super::list::get(context, request).await? {
        Outcome::Object(code, shown) => Ok(Outcome::Object(code, Shown::Tree(view(request, &shown.to_value())?))),
        other => Ok(other),
    }
}

const UNREGISTERED: &str = "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"";

/// The replicas that a Scale asks for; absent and null are 0.
fn replicas_of(scale: &Value) -> Result<i64, Status> {
    let replicas = match scale.at(&["spec", "replicas"]) {
        None | Some(Value::Null) => 0,
        Some(Value::Int(i)) if i32::try_from(*i).is_ok() => *i,
        Some(_) => return Err(Status::bad_request(UNREGISTERED)),
    };
    if replicas < 0 {
        let path = FieldPath::new(".spec.replicas");
        let error = FieldError::invalid(&path, &Value::Int(replicas), "should be a non-negative integer");
        return Err(Status::invalid("autoscaling", "Scale", scale.str_at(&["metadata", "name"]), &[error]));
    }
    Ok(replicas)
}

fn check_type(scale: &Value) -> Result<(), Status> {
    let (kind, version) = (scale.str_at(&["kind"]), scale.str_at(&["apiVersion"]));
    let known = matches!(kind, "" | "Scale") && matches!(version, "" | "autoscaling/v1");
    let shaped = scale.get("spec").is_none_or(|s| matches!(s, Value::Object(_) | Value::Null));
    if known && shaped { Ok(()) } else { Err(Status::bad_request(UNREGISTERED)) }
}

/// PUT of a scale.
pub async fn update(
    context: &Context,
    request: &Request,
    document: &Document,
    options: &WriteOptions,
) -> Result<Outcome, Status> {
    let decoded = document.decode();
    if let Some(why) = document.type_error(&decoded) {
        return Err(Status::bad_request(why));
    }
    let scale = decoded.unwrap_or_default().value;
    check_type(&scale)?;
    replicas_of(&scale)?;
    meta::check_name(&scale, request.name())?;
    scale_loop(context, request, options, |_| Ok(scale.clone())).await
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
            scale_loop(context, request, options, |scale| change.apply_to(request, scale, options)).await
        }
        _ => Err(Status::generic_invalid()),
    }
}

async fn scale_loop(
    context: &Context,
    request: &Request,
    options: &WriteOptions,
    change: impl Fn(&Value) -> Result<Value, Status>,
) -> Result<Outcome, Status> {
    let path = request.resource.key(request.namespace(), request.name()).path;
    for _ in 0..limits::WRITE_RETRIES {
        let current = request.resource.collection.get(&path);
        let current = current.ok_or_else(|| request.resource.not_found(request.name()))?;
        let old = request.resource.read(&current, &request.version)?;
        let paths = paths(request)?;
        let before = scale_of(&old, &paths, integer(&old, &paths.spec_replicas)?);
        let after = change(&before)?;
        check_type(&after)?;
        let mut object = old.clone();
        set_replicas(&mut object, &paths, replicas_of(&after)?);
        check_version(request, &after, &current)?;
        request.track_update(Some(&old), &mut object, &request.manager(&options.field_manager));
        if let Some(outcome) = commit(context, request, options, &paths, object, &old, current).await? {
            return Ok(outcome);
        }
    }
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    Err(Status::conflict(&request.resource.group, &request.resource.plural, request.name(), why))
}

fn set_replicas(object: &mut Value, paths: &ScalePaths, replicas: i64) {
    object.set_at(&segments(&paths.spec_replicas), Value::Int(replicas));
}

fn check_version(request: &Request, scale: &Value, current: &Stored) -> Result<(), Status> {
    let resource = &request.resource;
    let uid = scale.str_at(&["metadata", "uid"]);
    let given = scale.str_at(&["metadata", "resourceVersion"]);
    let moved = !matches!(given, "" | "0") && given != current.revision.to_string();
    let other = !uid.is_empty() && uid != current.meta.uid;
    if !moved && !other {
        return Ok(());
    }
    let why = match other {
        true => format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            current.meta.uid
        ),
        false => {
            "the object has been modified; please apply your changes to the latest version and try again".to_owned()
        }
    };
    Err(Status::conflict(&resource.group, &resource.plural, request.name(), &why))
}

async fn commit(
    context: &Context,
    request: &Request,
    options: &WriteOptions,
    paths: &ScalePaths,
    object: Value,
    old: &Value,
    current: Arc<Stored>,
) -> Result<Option<Outcome>, Status> {
    let (object, errors) = write::prepared_and_checked(request, object, old);
    if !errors.is_empty() {
        return Err(Status::invalid(&request.resource.group, &request.resource.kind, request.name(), &errors));
    }
    let show = |object: &Value| -> Result<Outcome, Status> {
        let replicas = integer(object, &paths.spec_replicas)?;
        Ok(Outcome::Object(200, Shown::Tree(scale_of(object, paths, replicas))))
    };
    if options.dry_run {
        return show(&object).map(Some);
    }
    match write::store(context, request, &object, Some(&current)).await? {
        Ok(stored) => show(&request.resource.read(&stored, &request.version)?).map(Some),
        Err(()) => Ok(None),
    }
}

/// Applying to a scale is applying the replicas to the object.
async fn apply(
    context: &Context,
    request: &Request,
    configuration: &Value,
    force: bool,
    options: &WriteOptions,
) -> Result<Outcome, Status> {
    let (kind, version) = (configuration.str_at(&["kind"]), configuration.str_at(&["apiVersion"]));
    if kind != "Scale" || version != "autoscaling/v1" {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        return Err(Status::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")));
    }
    let path = request.resource.key(request.namespace(), request.name()).path;
    for _ in 0..limits::WRITE_RETRIES {
        let current = request.resource.collection.get(&path);
        let current = current.ok_or_else(|| request.resource.not_found(request.name()))?;
        let old = request.resource.read(&current, &request.version)?;
        let paths = paths(request)?;
        let mut applied: Value = [
            ("apiVersion", Value::String(request.api_version())),
            ("kind", Value::String(request.resource.kind.clone())),
        ]
        .into();
        applied.set_at(&["metadata", "name"], Value::String(Text::clone(request.name())));
        if configuration.at(&["spec", "replicas"]).is_some() {
            set_replicas(&mut applied, &paths, replicas_of(configuration)?);
        }
        let manager = request.manager(&options.field_manager);
        let object = request.track_apply(Some(&old), &applied, force, &manager).map_err(as_scale_conflict)?;
        if let Some(outcome) = commit(context, request, options, &paths, object, &old, current).await? {
            return Ok(outcome);
        }
    }
    Err(Status::generic_invalid())
}

/// Conflicts are told by the path of the Scale.
fn as_scale_conflict(status: Status) -> Status {
    status
}
