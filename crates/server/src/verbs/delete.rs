//! Delete and deletecollection.

use std::sync::Arc;

use base::deadline;
use base::request::{DeleteOptions, ListOptions, WriteOptions};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use machinery::{Result, Status, Value};
use objects::{Collection, Stored};
use resource::{Document, Resource, type_text, unknown_kind};

use super::change::{Change, Write};
use super::context::Context;
use super::items::Items;
use super::list::reach;
use super::outcome::Outcome;
use super::request::{Request, check_namespace};
use super::response::ResponseObject;
use super::selection::Selection;
use super::unreadable;
use crate::limits;

/// Decodes the options of a delete from the body, or from the query if there is no body.
fn options(request: &Request, document: Option<&Document>) -> Result<DeleteOptions> {
    let Some(document) = document.filter(|d| !d.bytes().is_empty()) else {
        return DeleteOptions::from_query(request.query(), &request.resource.gates);
    };
    let decoded = document.decode();
    if let Some(why) = document.type_error(&decoded) {
        return Err(Status::bad_request(why));
    }
    let body = decoded.unwrap_or_default().value;
    check_type(&body, document)?;
    let given = DeleteOptions::read(&body, &document.json_text())?;
    request.audit(|audit| audit.request(|| Some(recorded(&given))));
    DeleteOptions::of(&given, &request.resource.gates)
}

/// The options as the audit log records them: in the version to which kube-apiserver decodes them.
fn recorded(given: &Value) -> Value {
    let mut options = given.clone();
    options.set_at(&["kind"], Value::from("DeleteOptions"));
    options.set_at(&["apiVersion"], Value::from("meta.k8s.io/__internal"));
    options
}

/// Kinds, in every group version, that kube-apiserver decodes in place of `DeleteOptions` but cannot convert to them.
const UNVERSIONED: [&str; 7] =
    ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "CreateOptions", "Status", "UpdateOptions"];
/// Kinds of `meta.k8s.io/v1` that are also decoded but cannot be converted.
const META: [&str; 4] = ["GetOptions", "ListOptions", "PatchOptions", "WatchEvent"];
/// Kinds of both versions of `meta.k8s.io` that are also decoded but cannot be converted.
const TABLES: [&str; 4] = ["PartialObjectMetadata", "PartialObjectMetadataList", "Table", "TableOptions"];

/// Fails unless the kind of a body is `DeleteOptions` or absent.
fn check_type(body: &Value, document: &Document) -> Result<()> {
    let (kind, version) = (type_text(body, "kind"), type_text(body, "apiVersion"));
    if kind.is_empty() || kind == "DeleteOptions" {
        return Ok(());
    }
    let version = if version.is_empty() { "meta.k8s.io/v1" } else { version };
    let in_meta = match version {
        "meta.k8s.io/v1" => META.contains(&kind) || TABLES.contains(&kind),
        "meta.k8s.io/v1beta1" => TABLES.contains(&kind),
        _ => false,
    };
    let readable = in_meta || UNVERSIONED.contains(&kind);
    if !readable {
        return Err(Status::bad_request(unknown_kind(kind, version)));
    }
    let error = resource::builtin::meta_shape(kind, body).and_then(|shaped| shaped.error_in(&document.json_text()));
    let unknown = || format!("converting (v1.{kind}) to (v1.DeleteOptions): unknown conversion");
    Err(Status::bad_request(error.unwrap_or_else(unknown)))
}

/// Deletes one object, or marks it as being deleted if it has finalizers.
pub async fn delete(context: &Context, request: &Request, document: Option<&Document>) -> Result<Outcome> {
    let options = options(request, document)?;
    check_permanent(request)?;
    if options.ignore_read_errors {
        return unreadable::delete(context, request, &options).await;
    }
    advise(request, &options);
    let write_options = WriteOptions { dry_run: options.dry_run, ..WriteOptions::default() };
    Write::new(context, request, Change::Delete(options), &write_options).run().await
}

/// Warns a client that leaves the fate of dependents to the default, if the kind has advice about that.
fn advise(request: &Request, options: &DeleteOptions) {
    let advice = request.resource.deletion.advice;
    if !advice.is_empty() && options.propagation_policy.is_none() && options.orphan_dependents.is_none() {
        request.warn(advice.to_owned());
    }
}

/// Fails for an object that cannot be deleted, such as a PriorityClass of the system.
fn check_permanent(request: &Request) -> Result<()> {
    let resource = &request.resource;
    match resource.deletion.permanent.iter().find(|(name, _)| *name == request.name().as_str()) {
        Some((name, why)) => Err(Status::forbidden(&resource.group, &resource.plural, name, why)),
        None => Ok(()),
    }
}

/// The options that select the objects of a deletecollection. `watch` has no effect, but its options are checked.
fn list_options(request: &Request) -> Result<ListOptions> {
    if request.query().flag("watch") {
        ListOptions::of_watch(request.query(), &request.resource.gates)
    } else {
        ListOptions::of_list(request.query())
    }
}

/// Fails if the options that select objects are invalid. They are checked before the rest of the request.
pub fn check_selection(request: &Request) -> Result<()> {
    Selection::without_shards(request, &list_options(request)?).map(drop)
}

/// Deletes every selected object and returns the objects.
pub async fn delete_collection(context: &Context, request: &Request, document: Option<&Document>) -> Result<Outcome> {
    let mut list_options = list_options(request)?;
    if list_options.limit == 0 {
        // kube-apiserver lists the objects to delete in pages, so `resourceVersion` has to match exactly
        list_options.limit = i64::MAX;
    }
    // without a body, `resourceVersion` of the query applies to the list and is also a precondition of each deletion
    let options = options(request, document)?;
    options.check_collection()?;
    advise(request, &options);
    let selection = Selection::new(request, &list_options)?;
    let start = reach(context, request, &selection).await?;
    let list = selection.page(context, request, start).await?.list;
    if list.items.len() > 0 {
        check_namespace(request.resource.namespaced.then(|| request.namespace().as_str()))?;
    }
    // deletions that may be rejected run one after the other, so that the objects after a rejected one are kept
    let admission = &context.admission;
    let certain = options.uid.is_none() && options.resource_version.is_none();
    let certain = certain && admission.none_mutate() && admission.none_validate();
    let at_once = if certain { at_once(context, list.items.len(), &request.resource.collection) } else { 1 };
    let options = &options;
    let delete = move |shown: ResponseObject| async move {
        match shown.as_stored() {
            Some(stored) => delete_listed(context, request, options, stored).await,
            None => Ok(()),
        }
    };
    each_item(request, list.items.clone()).try_for_each_concurrent(at_once, delete).await?;
    Ok(Outcome::List(list))
}

/// Streams the objects of a list, which are read in batches.
fn each_item(request: &Request, items: Items) -> impl Stream<Item = Result<ResponseObject>> {
    let few = move |mut items: Items| async move {
        let few = items.next(request).await?;
        Ok::<_, Status>((!few.is_empty()).then(|| (stream::iter(few.into_iter().map(Ok)), items)))
    };
    stream::try_unfold(items, few).try_flatten()
}

/// Deletes an object of a list, unless it has been deleted already.
async fn delete_listed(context: &Context, request: &Request, options: &DeleteOptions, stored: &Stored) -> Result<()> {
    let write_options = WriteOptions { dry_run: options.dry_run, ..WriteOptions::default() };
    let change = Change::Delete(options.clone());
    let write = Write { listed: Some(stored), ..Write::new(context, request, change, &write_options) };
    // boxed to keep the future small, because many of them exist at once
    let write = Box::pin(write.run());
    let outcome = if stored.body.bytes.len() > limits::INLINE_BYTES_MAX {
        deadline::beside_others(&request.authorized.user.name, write).await
    } else {
        write.await
    };
    outcome.map(drop)
}

/// How many of `deletions` run concurrently. If there are only a few, they run one after the other, as all do in
/// kube-apiserver: on etcd, concurrent deletions may be reordered.
fn at_once(context: &Context, deletions: usize, collection: &Collection) -> usize {
    if deletions <= limits::DELETE_IN_ORDER_MAX {
        1
    } else if context.objects.store().is_shared() {
        // etcd commits each deletion on its own, and other clients' writes wait behind the deletions in flight
        *limits::DELETE_COLLECTION_PARALLEL.start()
    } else {
        sharing_a_commit(collection)
    }
}

/// How many deletions of objects of a collection share a commit.
fn sharing_a_commit(collection: &Collection) -> usize {
    let (least, most) = limits::DELETE_COLLECTION_PARALLEL.into_inner();
    (limits::DELETE_COLLECTION_BYTES / collection.largest_bytes().max(1)).clamp(least, most)
}

/// Deletes every instance of a custom resource whose CRD is being deleted. Instances with finalizers are only marked.
pub async fn delete_instances(context: &Context, group: &str, plural: &str) -> Result<()> {
    let Some(resource) = context.registry.get(group, plural) else { return Ok(()) };
    let (root, _) = resource.collection.latest();
    let held = |stored: &Stored| stored.meta.deleting && stored.meta.finalizers;
    let all: Vec<_> = root.values().filter(|stored| !held(stored)).cloned().collect();
    delete_as_server(context, &resource, all).await
}

/// Deletes objects of a resource as the server itself.
pub async fn delete_as_server(context: &Context, resource: &Arc<Resource>, objects: Vec<Arc<Stored>>) -> Result<()> {
    let options = &DeleteOptions::default();
    let delete = async |stored: Arc<Stored>| {
        let request =
            context.as_server(resource, &stored.meta.namespace, &stored.meta.name).request(&http::Method::DELETE);
        delete_listed(context, &request, options, &stored).await
    };
    let at_once = at_once(context, objects.len(), &resource.collection);
    stream::iter(objects.into_iter().map(delete)).map(Ok).try_for_each_concurrent(at_once, |deletion| deletion).await
}

/// Deletes the objects of a resource in a namespace. Returns the objects that finalizers keep.
pub async fn empty_namespace(context: &Context, resource: &Arc<Resource>, namespace: &str) -> Result<Vec<Arc<Stored>>> {
    let awaits_finalizers = |stored: &Stored| stored.meta.deleting && stored.meta.finalizers;
    let mut deletable = resource.collection.in_namespace(namespace);
    deletable.retain(|stored| !awaits_finalizers(stored));
    delete_as_server(context, resource, deletable).await?;
    Ok(resource.collection.in_namespace(namespace))
}

/// The outcome of one pass over objects that are being deleted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pass {
    /// Whether an object that was being deleted may still exist.
    pub pending: bool,
    /// Whether a deletion failed.
    pub failed: bool,
}

#[cfg(test)]
mod tests {
    use machinery::json;
    use objects::{Body, Meta};

    use super::*;

    #[test]
    fn number_of_concurrent_deletions_is_bounded_by_their_bytes() {
        for (bytes, want) in [(10, 512), (100, 512), (20_000, 209), (1_000_000, 64)] {
            let collection = Collection::new(0);
            let value = json!({"metadata": {"name": "x"}, "text": ("x".repeat(bytes))});
            let stored = Stored::new(1, Body::encode(&value), Meta::of(&value));
            collection.apply(1, vec![("x".into(), Some(Arc::new(stored)))]);
            assert_eq!(sharing_a_commit(&collection), want, "{bytes} bytes");
        }
        assert_eq!(sharing_a_commit(&Collection::new(0)), 512);
    }
}
