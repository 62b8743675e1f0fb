//! Loads captured objects into a workspace, as they are: neither admitted, validated nor defaulted.

use base::task;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use machinery::status::Reason;
use machinery::{Result, Status, Value, json, names, value};
use objects::{Encoded, Key};
use resource::Document;

use super::context::Context;
use super::request::{Capacity, Growth};
use super::stored;
use crate::limits;
use crate::transfer::to_stored;

/// The domain of the groups that the server defines itself. Their objects are not data of the captured cluster.
const OWN_DOMAIN: &str = "pintle.dev";

/// Writes the objects of a document, in place of those that exist, as far as there is capacity for them. The document is
/// `{"objects": [{"group", "resource", "path", "object"}]}`, with paths as in an export; the result has the number of those written.
pub async fn load(context: &Context, capacity: Option<&dyn Capacity>, document: &Document) -> Result<Value> {
    let captured = task::blocking(|| {
        let sent = value::decode(document.bytes()).map_err(|error| Status::bad_request(error.to_string()))?;
        sent.items_at(&["objects"]).iter().map(captured).collect::<Result<Vec<_>, _>>()
    })?;
    let count = captured.len();
    // some at a time, so that they share syncs: a write counts against the capacity once it is complete
    let writes = stream::iter(captured).map(|one| write(context, capacity, one));
    writes.buffered(limits::IMPORT_PARALLEL).try_collect::<()>().await?;
    Ok(json!({"written": count}))
}

/// Whether a group, or a definition of this name, is one that the server defines itself.
pub fn is_own(name: &str) -> bool {
    name.strip_suffix(OWN_DOMAIN).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// An object of a request in its stored form, and its key. Fails if it could not be read at its path, or belongs to the server.
fn captured(sent: &Value) -> Result<(Key, Encoded)> {
    let [group, resource, path] = ["group", "resource", "path"].map(|field| sent.str_at(&[field]));
    let object = sent.get("object").cloned().unwrap_or_default();
    let (namespace, name) = path.split_once('/').unwrap_or(("", path));
    let [own_namespace, own_name] = ["namespace", "name"].map(|field| object.str_at(&["metadata", field]));
    let is_at_its_path = !name.is_empty()
        && (own_namespace, own_name) == (namespace, name)
        && (group.is_empty() || names::dns1123_subdomain(group).is_empty())
        && names::dns1123_label(resource).is_empty()
        && (namespace.is_empty() || names::dns1123_label(namespace).is_empty())
        && names::path_segment(name).is_empty();
    if !is_at_its_path {
        return Err(Status::bad_request(format!(
            "no object {own_namespace}/{own_name} can be at {group}/{resource}/{path}"
        )));
    }
    // of a definition, the name counts as well: the server finds its own by it
    let is_definition = resource == "customresourcedefinitions";
    let defined = [object.str_at(&["spec", "group"]), name].into_iter().filter(|_| is_definition);
    if is_own(group) || defined.into_iter().any(is_own) {
        return Err(Status::new(Reason::Forbidden, format!("{resource} {path:?} belongs to the server")));
    }
    let key = Key { group: group.into(), plural: resource.into(), path: path.into() };
    let object = Encoded::of(&to_stored(object));
    if object.body.bytes.len() > limits::OBJECT_BYTES_MAX {
        return Err(Status::new(Reason::RequestEntityTooLarge, format!("{resource} {path:?} is too large")));
    }
    Ok((key, object))
}

async fn write(context: &Context, capacity: Option<&dyn Capacity>, (key, object): (Key, Encoded)) -> Result<()> {
    let known = context.objects.collection(&key.group, &key.plural).get(&key.path);
    if let Some(capacity) = capacity {
        let bytes = object.body.bytes.len();
        capacity.check(if known.is_some() { Growth::Bytes(bytes) } else { Growth::Object(bytes) })?;
        capacity.spend(bytes)?;
    }
    let written = stored::put(context, &key, object, known.map(|known| known.revision)).await?;
    let modified = || Status::conflict(&key.group, &key.plural, &key.path, "it was written meanwhile");
    written.map(drop).ok_or_else(modified)
}
