//! Delete and deletecollection (api-machinery 10).

use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use machinery::{Map, Status, Value};
use store::Refused;

use super::admit::{self, Write};
use super::body::{Document, type_text};
use super::list::Selection;
use super::{Context, Items, ListOutcome, Outcome, Request, Shown, Subresource, as_server, definitions, write};
use crate::admission::Operation;
use crate::objects::Stored;
use crate::request::{DeleteOptions, ListOptions};
use crate::resource::{Resource, unknown_kind};
use crate::{clock, limits};

/// Reads the options of a delete: from the body if there is one, else from the query.
fn options(request: &Request, document: Option<&Document>) -> Result<DeleteOptions, Status> {
    let Some(document) = document.filter(|d| !d.bytes.is_empty()) else {
        return DeleteOptions::from_query(request.query());
    };
    let decoded = document.decode();
    if let Some(why) = document.type_error(&decoded) {
        return Err(Status::bad_request(why));
    }
    let body = decoded.unwrap_or_default().value;
    check_type(&body)?;
    let given = DeleteOptions::read(&body)?;
    if let Some(trail) = &request.trail {
        trail.request(|| Some(recorded(&given)));
    }
    DeleteOptions::of(&given)
}

/// Options as they are recorded: in the version that the reference server has decoded them to.
fn recorded(given: &Value) -> Value {
    let mut options = given.clone();
    options.set_at(&["kind"], Value::from("DeleteOptions"));
    options.set_at(&["apiVersion"], Value::from("meta.k8s.io/__internal"));
    options
}

/// What the reference server can read in the place of `DeleteOptions`, by `apiVersion`, and not turn into them.
const OTHER_TYPES: [(&str, &[&str]); 2] = [
    ("v1", &["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "CreateOptions", "Status", "UpdateOptions"]),
    (
        "meta.k8s.io/v1",
        &[
            "APIGroup",
            "APIGroupList",
            "APIResourceList",
            "APIVersions",
            "CreateOptions",
            "GetOptions",
            "ListOptions",
            "PartialObjectMetadata",
            "PartialObjectMetadataList",
            "PatchOptions",
            "Status",
            "Table",
            "TableOptions",
            "UpdateOptions",
            "WatchEvent",
        ],
    ),
];

/// A body says that it is `DeleteOptions`, or nothing.
fn check_type(body: &Value) -> Result<(), Status> {
    let (kind, version) = (type_text(body, "kind"), type_text(body, "apiVersion"));
    if kind.is_empty() || kind == "DeleteOptions" {
        return Ok(());
    }
    let version = if version.is_empty() { "v1" } else { version };
    let readable = OTHER_TYPES.iter().any(|(known, kinds)| *known == version && kinds.contains(&kind));
    Err(Status::bad_request(if readable {
        format!("converting (v1.{kind}) to (v1.DeleteOptions): unknown conversion")
    } else {
        unknown_kind(kind, version)
    }))
}

/// Deletes one object, or marks it if finalizers are pending.
pub async fn delete(context: &Context, request: &Request, document: Option<&Document>) -> Result<Outcome, Status> {
    let options = options(request, document)?;
    let path = request.place()?.path;
    for _ in 0..limits::WRITE_RETRIES {
        let current = request.resource.collection.get(&path);
        let current = current.ok_or_else(|| request.resource.not_found(request.name()))?;
        if let Some(outcome) = delete_one(context, request, &options, current).await? {
            return Ok(outcome);
        }
    }
    Err(request.resource.modified(request.name()))
}

/// One attempt; `None` if the object changed meanwhile.
async fn delete_one(
    context: &Context,
    request: &Request,
    options: &DeleteOptions,
    current: Arc<Stored>,
) -> Result<Option<Outcome>, Status> {
    let resource = &request.resource;
    let old = resource.read_converted(&current, &request.version).await?;
    check_preconditions(request, options, &old)?;
    if current.meta.deleting && request.shipped().is_some_and(|shipped| !shipped.allows_removal(&old)) {
        // it waits for finalizers of its own
        return Ok(Some(Outcome::Object(200, Shown::converted(resource, &request.version, current).await?)));
    }
    let mut shown_options = admit::delete_options(options);
    if own_way(resource) && !request.name().is_empty() {
        shown_options.set_at(&["preconditions", "uid"], Value::from(&current.meta.uid));
    }
    let (name, dry_run) = (request.name(), options.dry_run);
    let write = Write { context, request, operation: Operation::Delete, name, options: &shown_options, dry_run };
    write.check_protected(&current.meta.name)?;
    write.mutate(None, Some(&old)).await?;
    write.validate(None, Some(&old)).await?;
    if definitions::is_definition(resource) && !current.meta.deleting {
        return definitions::begin_deletion(context, request, options, current).await;
    }
    let mut object = marked(request, options, &old, &current);
    super::third_party::before_deletion(context, request, options.dry_run, &current, &mut object).await?;
    let pending = object.at(&["metadata", "finalizers"]).and_then(Value::as_array).is_some_and(|f| !f.is_empty())
        || resource.shipped().is_some_and(|s| !s.allows_removal(&object));
    if pending {
        return mark(context, request, options, object, current).await;
    }
    let mut revision = current.revision;
    if !options.dry_run {
        let key = resource.key(&current.meta.namespace, &current.meta.name);
        revision = match context.objects.delete(&key, current.revision).await {
            Ok(revision) => revision,
            Err(Refused::Conflict(_)) => return Ok(None),
            Err(Refused::Failed(error)) => return Err(Status::internal(error.to_string())),
        };
        super::reservations::after_delete(context, resource, &object).await;
        definitions::after_delete(context, request).await;
    }
    if resource.shipped().is_some_and(|s| s.returns_deleted) {
        let shown = Shown::converted(resource, &request.version, current).await?;
        // as the deletion left it
        return Ok(Some(Outcome::Object(200, Shown::Tree(shown.at_revision(revision)))));
    }
    Ok(Some(Outcome::Success(success(request, &current))))
}

fn success(request: &Request, deleted: &Stored) -> Value {
    let resource = &request.resource;
    let mut details = Map::new();
    details.insert("name", Value::String(deleted.meta.name.clone()));
    if !resource.group.is_empty() {
        details.insert("group", Value::String(resource.group.clone()));
    }
    details.insert("kind", Value::String(resource.plural.clone()));
    details.insert("uid", Value::String(deleted.meta.uid.clone()));
    [
        ("kind", Value::from("Status")),
        ("apiVersion", Value::from("v1")),
        ("metadata", Value::object()),
        ("status", Value::from("Success")),
        ("details", Value::Object(details)),
    ]
    .into()
}

/// Kinds with a way of their own to be deleted.
fn own_way(resource: &Resource) -> bool {
    definitions::is_definition(resource) || resource.is_namespaces()
}

fn check_preconditions(request: &Request, options: &DeleteOptions, old: &Value) -> Result<(), Status> {
    let resource = &request.resource;
    let name = old.str_at(&["metadata", "name"]);
    // told by the kind that is stored
    let group = resource.shipped().map_or(resource.group.as_str(), |shipped| shipped.storage_group());
    let conflict = |why: String| Status::conflict(group, &resource.kind, name, &why);
    let (uid, version) = (old.str_at(&["metadata", "uid"]), old.str_at(&["metadata", "resourceVersion"]));
    let own_way = own_way(resource);
    if let Some(wanted) = options.uid.as_ref().filter(|wanted| *wanted != uid) {
        if own_way {
            let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}");
            return Err(Status::conflict(&resource.group, &resource.plural, request.name(), &why));
        }
        return Err(conflict(format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
        )));
    }
    if let Some(wanted) = options.resource_version.as_ref().filter(|wanted| *wanted != version) {
        if own_way {
            let why = format!(
                "Precondition failed: ResourceVersion in precondition: {wanted}, ResourceVersion in object meta: {version}"
            );
            return Err(Status::conflict(&resource.group, &resource.plural, request.name(), &why));
        }
        return Err(conflict(format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({version}). The object might have been modified"
        )));
    }
    Ok(())
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// The object with the finalizers that the deletion asks for, marked as being deleted.
fn marked(request: &Request, options: &DeleteOptions, old: &Value, current: &Stored) -> Value {
    let mut object = old.clone();
    let before: Vec<Value> = old.at(&["metadata", "finalizers"]).and_then(Value::as_array).unwrap_or_default().to_vec();
    let wanted = match (options.orphan_dependents, options.propagation_policy.as_deref()) {
        (Some(true), _) | (_, Some("Orphan")) => Some(Some(ORPHAN)),
        (_, Some("Foreground")) => Some(Some(FOREGROUND)),
        (Some(false), _) | (_, Some("Background")) => Some(None),
        _ => None,
    };
    let wanted = wanted.filter(|_| request.shipped().is_none_or(|shipped| shipped.owns_dependents));
    let mut finalizers = before;
    if let Some(wanted) = wanted {
        let others = |f: &Value| match f.as_str() {
            Some(name @ (ORPHAN | FOREGROUND)) => Some(name) == wanted,
            _ => true,
        };
        finalizers.retain(others);
        if let Some(name) = wanted
            && !finalizers.iter().any(|f| f.as_str() == Some(name))
        {
            finalizers.push(Value::from(name));
        }
    }
    match finalizers.is_empty() {
        true => drop(object.remove_at(&["metadata", "finalizers"])),
        false => object.set_at(&["metadata", "finalizers"], Value::Array(finalizers)),
    }
    if !current.meta.deleting {
        object.set_at(&["metadata", "deletionTimestamp"], Value::from(clock::now_rfc3339()));
        if request.resource.shipped().is_none_or(|s| s.kind != "Namespace") {
            object.set_at(&["metadata", "deletionGracePeriodSeconds"], Value::Int(0));
        }
        let generation = old.at(&["metadata", "generation"]).and_then(Value::as_int);
        if let Some(generation) = generation {
            object.set_at(&["metadata", "generation"], Value::Int(generation + 1));
        }
        if let Some(shipped) = request.resource.shipped() {
            shipped.mark_deleted(&mut object);
        }
    } else if definitions::is_definition(&request.resource)
        && object.at(&["metadata", "deletionGracePeriodSeconds"]).is_none()
    {
        object.set_at(&["metadata", "deletionGracePeriodSeconds"], Value::Int(0));
    }
    object
}

async fn mark(
    context: &Context,
    request: &Request,
    options: &DeleteOptions,
    object: Value,
    current: Arc<Stored>,
) -> Result<Option<Outcome>, Status> {
    let code = if options.orphan_dependents == Some(false) { 202 } else { 200 };
    if options.dry_run {
        return Ok(Some(Outcome::Object(code, Shown::Tree(object))));
    }
    match write::store(context, request, &object, Some(&current)).await? {
        Ok(stored) => {
            definitions::after_write(context, request, &stored).await;
            let shown = Shown::converted(&request.resource, &request.version, stored).await?;
            Ok(Some(Outcome::Object(code, shown)))
        }
        Err(()) => Ok(None),
    }
}

/// Refuses a selection that can't be made, before anything else of the request is looked at.
pub fn check_selection(request: &Request) -> Result<(), Status> {
    Selection::new(request, &ListOptions::parse(request.query(), false)?).map(drop)
}

/// Deletes every selected object and answers what was there.
pub async fn delete_collection(
    context: &Context,
    request: &Request,
    document: Option<&Document>,
) -> Result<Outcome, Status> {
    let mut list_options = ListOptions::parse(request.query(), false)?;
    let selection = Selection::new(request, &list_options)?;
    if list_options.limit == 0 {
        // collections are deleted by pages: they are read at a version, not at one that is as new
        list_options.limit = i64::MAX;
    }
    // without a body `resourceVersion` speaks of the list, and is a precondition of each deletion as well
    let options = options(request, document)?;
    super::list::reach(context, &list_options).await?;
    let page = selection.page(context, request, &list_options).await?;
    let (revision, continue_token, remaining) = (page.revision, page.continue_token.clone(), page.remaining);
    let stored = page.stored(request)?;
    if let Some(first) = stored.first() {
        super::check_key(request.resource.namespaced.then(|| request.namespace().as_str()), &first.meta.name)?;
    }
    let show = |stored: &Arc<Stored>| Shown::stored(&request.resource, &request.version, stored.clone());
    let items: Vec<Shown> = stored.iter().map(show).collect::<Result<_, Status>>()?;
    // where a deletion may be refused they come one after the other: what stands behind the refused one stays
    let admission = &context.admission;
    let certain = options.uid.is_none() && options.resource_version.is_none();
    let certain = certain && admission.none_mutate() && admission.none_validate();
    let at_once = if certain { limits::DELETE_COLLECTION_PARALLEL } else { 1 };
    // what was there at an older version may have changed, or gone
    let now = |stored: &Arc<Stored>| {
        request.resource.collection.get(&request.resource.key(&stored.meta.namespace, &stored.meta.name).path)
    };
    let selected: Vec<Arc<Stored>> = match list_options.resource_version.is_empty() {
        true => stored,
        false => stored.iter().filter_map(now).collect(),
    };
    let deletions = selected.into_iter().map(|stored| delete_until_gone(context, request, &options, stored));
    delete_all(deletions.collect(), at_once).await?;
    Ok(Outcome::List(ListOutcome { items: Items::shown(items), revision, continue_token, remaining }))
}

async fn delete_until_gone(
    context: &Context,
    request: &Request,
    options: &DeleteOptions,
    mut stored: Arc<Stored>,
) -> Result<(), Status> {
    let path = request.resource.key(&stored.meta.namespace, &stored.meta.name).path;
    for _ in 0..limits::WRITE_RETRIES {
        if delete_one(context, request, options, stored.clone()).await?.is_some() {
            return Ok(());
        }
        match request.resource.collection.get(&path).filter(|now| now.meta.uid == stored.meta.uid) {
            Some(now) => stored = now,
            None => return Ok(()),
        }
    }
    Ok(())
}

/// Runs deletions, some at once where there are many; the first error ends them. Few go in order, as all do upstream: on
/// etcd those that are under way at the same time may overtake each other.
async fn delete_all<F>(deletions: Vec<F>, at_once: usize) -> Result<(), Status>
where
    F: Future<Output = Result<(), Status>>,
{
    let at_once = if deletions.len() > limits::DELETE_IN_ORDER_MAX { at_once } else { 1 };
    stream::iter(deletions).map(Ok).try_for_each_concurrent(at_once, |deletion| deletion).await
}

/// Deletes every instance of a custom resource, for the deletion of its definition. Those with finalizers stay marked.
pub async fn delete_instances(context: &Context, group: &str, plural: &str) -> Result<(), Status> {
    let Some(resource) = context.registry.get(group, plural) else { return Ok(()) };
    let (root, _) = resource.collection.latest();
    let held = |stored: &Stored| stored.meta.deleting && stored.meta.finalizers;
    let all: Vec<_> = root.values().filter(|stored| !held(stored)).cloned().collect();
    delete_as_server(context, &resource, all).await
}

/// Deletes objects of a resource in the server's name.
pub async fn delete_as_server(
    context: &Context,
    resource: &Arc<Resource>,
    objects: Vec<Arc<Stored>>,
) -> Result<(), Status> {
    let options = &DeleteOptions::default();
    let delete = async |stored: Arc<Stored>| {
        let path = as_server::path_of(resource, &stored.meta.namespace, &stored.meta.name);
        let request = as_server::server_request(resource, &http::Method::DELETE, &path, Subresource::None);
        delete_until_gone(context, &request, options, stored).await
    };
    delete_all(objects.into_iter().map(delete).collect(), limits::DELETE_COLLECTION_PARALLEL).await
}
