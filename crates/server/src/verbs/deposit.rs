//! Stores objects as they are, as if an earlier server had written them.

use std::sync::Arc;

use base::clock;
use base::request::{FieldValidation, WriteOptions};
use machinery::{Result, Value};
use resource::{Document, Resource, Version};
use store::Revision;

use super::change::{Change, Write};
use super::context::Context;
use super::request::Request;
use super::{hooks, stored};

/// Stores an object in the collection at a path. It is neither validated nor admitted, because the object may be
/// older than the rules that it violates. An object with the same name is replaced. The object is decoded in
/// `version`, and keeps its status and its system fields. Returns its revision.
pub async fn deposit(
    context: &Context,
    resource: &Arc<Resource>,
    version: &Arc<Version>,
    path: &str,
    object: &Value,
) -> Result<Revision> {
    let request = &own_request(context, resource, version, path);
    let codec = request.strategy.codec();
    let object = codec.decode(&Document::json(object), FieldValidation::Ignore, &|_| {})?;
    let object = completed(request, object);
    let options = WriteOptions::default();
    let write = Write::new(context, request, Change::Create(Value::Null), &options);
    remove(context, request, object.str_at(&["metadata", "name"])).await?;
    let name = object.str_at(&["metadata", "name"]).to_owned();
    if let Some(stored) = write.put(object, None).await? {
        // establishes a CRD
        hooks::after_write(&write, &stored).await;
    }
    let key = request.resource.key(request.namespace(), &name);
    let stored = request.resource.collection.get(&key.path);
    stored.map(|stored| stored.revision).ok_or_else(|| request.resource.modified(&name))
}

/// Adds the system fields that an object lacks, and the namespace of the request.
pub(super) fn completed(request: &Request, mut object: Value) -> Value {
    for (field, value) in [("uid", clock::uuid()), ("creationTimestamp", clock::now_rfc3339())] {
        if object.str_at(&["metadata", field]).is_empty() {
            object.set_at(&["metadata", field], Value::from(value));
        }
    }
    if object.at(&["metadata", "generation"]).is_none() && request.resource.is_custom() {
        object.set_at(&["metadata", "generation"], Value::Int(1));
    }
    match request.scope().to_owned() {
        namespace if namespace.is_empty() => drop(object.remove_at(&["metadata", "namespace"])),
        namespace => object.set_at(&["metadata", "namespace"], Value::from(namespace)),
    }
    object.remove_at(&["metadata", "resourceVersion"]);
    object
}

/// A request of the server itself for a collection.
pub(super) fn own_request(context: &Context, resource: &Arc<Resource>, version: &Arc<Version>, path: &str) -> Request {
    context.server_request(resource, &http::Method::POST, path).in_version(version.clone())
}

async fn remove(context: &Context, request: &Request, name: &str) -> Result<()> {
    let key = request.resource.key(request.namespace(), name);
    let Some(found) = request.resource.collection.get(&key.path) else { return Ok(()) };
    stored::remove(context, &key, found.revision).await?;
    let options = WriteOptions::default();
    let write = Write::new(context, request, Change::Create(Value::Null), &options);
    hooks::after_delete(&write, &found.body.to_value(found.revision)).await;
    Ok(())
}
