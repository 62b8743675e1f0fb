//! Migration from client-side to server-side apply, for the manager `kubectl` only.

use super::fieldpath::FieldSet;
use super::owners::Owners;
use super::ownership::Applied;
use super::typed::{Duplicates, collect, compare, validate};
use super::{Attempt, Force, Request, attempt, conflicts};
use crate::limits::ANNOTATIONS_BYTES_MAX;
use machinery::value::decode;
use machinery::{Status, Value};

/// The annotation that `kubectl apply` without `--server-side` leaves on objects.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
const MANAGER: &str = "kubectl";
fn annotation(object: &Value) -> Option<&str> {
    let text = object.str_at(&["metadata", "annotations", ANNOTATION]);
    (!text.is_empty()).then_some(text)
}

/// Applies a configuration. Fields that `kubectl` has applied on the client side do not conflict.
pub(crate) fn apply(
    live: &Value,
    configuration: &Value,
    owners: Owners,
    force: Force,
    request: &Request<'_>,
) -> Result<Applied, Status> {
    let may_retry = request.manager == MANAGER && force == Force::No;
    let owners_for_retry = may_retry.then(|| owners.clone());
    let found = match attempt(live, configuration, owners, force, request) {
        Ok(applied) => return Ok(applied),
        Err(Attempt::Failed(status)) => return Err(status),
        Err(Attempt::Conflicts(found)) => found,
    };
    let (Some(owners), Some(allowed)) = (owners_for_retry, allowed(live, request)) else {
        return Err(conflicts::status(found));
    };
    let rest = conflicts::without(found, &allowed);
    if !rest.is_empty() {
        return Err(conflicts::status(rest));
    }
    attempt(live, configuration, owners, Force::Yes, request).map_err(|failure| match failure {
        Attempt::Failed(status) => status,
        Attempt::Conflicts(found) => conflicts::status(found),
    })
}

/// The fields that are both in the annotation and in the live object.
fn allowed(live: &Value, request: &Request<'_>) -> Option<FieldSet> {
    let last = decode(annotation(live)?.as_bytes()).ok()?;
    if last.str_at(&["apiVersion"]) != request.api_version || last.str_at(&["kind"]).is_empty() {
        return None;
    }
    let types = request.versions.types(request.api_version)?;
    validate(types, &last, Duplicates::Refused).ok()?;
    validate(types, live, Duplicates::Refused).ok()?;
    let mut set = collect(types, &last);
    let changes = compare(types, &last, live);
    set.remove(&changes.modified);
    set.remove(&changes.added);
    set.remove(&changes.removed);
    Some(set)
}

/// Rewrites the annotation, if the object has one and the manager is `kubectl`.
pub(crate) fn renew(object: &mut Value, configuration: &Value, request: &Request<'_>) {
    if request.manager != MANAGER || annotation(object).is_none() {
        return;
    }
    let mut applied = configuration.clone();
    if let Some(annotations) = applied.get_mut("metadata").and_then(|m| m.get_mut("annotations"))
        && let Value::Object(map) = annotations
    {
        map.remove(ANNOTATION);
    }
    let text = format!("{}\n", applied.to_json());
    let Some(Value::Object(annotations)) = object.get_mut("metadata").and_then(|m| m.get_mut("annotations")) else {
        return;
    };
    annotations.insert(ANNOTATION, Value::from(text));
    let size: usize = annotations.iter().map(|(k, v)| k.len() + v.as_str().unwrap_or_default().len()).sum();
    if size > ANNOTATIONS_BYTES_MAX {
        annotations.remove(ANNOTATION);
    }
}
