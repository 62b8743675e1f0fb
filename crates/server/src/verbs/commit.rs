//! The end of the pipeline: the validation of an object, its storage form, its commit, and the response.

use std::pin::pin;
use std::sync::Arc;

use base::deadline;
use base::request::parse_uint;
use base::trace::{self, Kind};
use machinery::{Result, Status, Value};
use objects::{Body, Encoded, Key, Meta, Stored};
use resource::rules::{grace_seconds, is_deleting};
use resource::strategy::Validity;
use resource::timestamps::Uncoerced;
use resource::{Strategy, Subresource, TypeMeta, timestamps};
use store::Revision;

use super::admit::Admit;
use super::change::{Change, Live, Write};
use super::meta::NameOrigin;
use super::outcome::{Effect, Outcome};
use super::request::{Growth, Request};
use super::response::ResponseObject;
use super::{hooks, meta, quota, stored};
use crate::limits;

impl Write<'_> {
    /// Validates and creates an object whose addresses and ports have been reserved. If a generated name is taken,
    /// generates another.
    pub async fn create(&self, admit: &Admit<'_>, mut object: Value, named: NameOrigin) -> Result<Option<Outcome>> {
        let request = self.request;
        let mut attempts_left = if named == NameOrigin::Generated { limits::GENERATE_NAME_ATTEMPTS } else { 1 };
        loop {
            self.validate(admit, &mut object, None, Uncoerced::Same).await?;
            attempts_left -= 1;
            let retried = (attempts_left > 0).then(|| object.clone());
            if !request.name().is_empty() {
                // the path names the object, so this is an update that creates it: its resourceVersion is ignored
                object.remove_at(&["metadata", "resourceVersion"]);
            }
            let name = object.str_at(&["metadata", "name"]).to_owned();
            let has_prefix = !object.str_at(&["metadata", "generateName"]).is_empty();
            let key = request.resource.key(request.namespace(), &name);
            if self.options.dry_run {
                if self.is_readable(&key).await {
                    return Err(already_exists(request, &key, &name, has_prefix));
                }
                return Ok(Some(Outcome::Object(Effect::Created, self.round_trip(object).await?)));
            }
            let version = object.str_at(&["metadata", "resourceVersion"]);
            if !version.is_empty() && parse_uint(version).is_ok_and(|version| version != 0) {
                return Err(Status::untyped(500, "resourceVersion should not be set on objects to be created"));
            }
            if let Some(stored) = self.put(object, None).await? {
                return self.written(stored, Effect::Created).await.map(Some);
            }
            object = retried.ok_or_else(|| already_exists(request, &key, &name, has_prefix))?;
            object.remove_at(&["metadata", "name"]);
            meta::generate_name(&mut object);
        }
    }

    /// Prepares an object. Fails unless it is valid and validating admission allows it. For `uncoerced`, see
    /// [`Changed`].
    pub async fn validate(
        &self,
        admit: &Admit<'_>,
        object: &mut Value,
        old: Option<&Value>,
        uncoerced: Uncoerced,
    ) -> Result<()> {
        let (request, strategy) = (self.request, &*self.request.strategy);
        let submitted = TypeMeta::of(object);
        let validity = deadline::long(|| prepare_and_validate(strategy, object, old)).await;
        validity.warnings.into_iter().for_each(|warning| request.warn(warning));
        let errors = [hooks::errors(self, object, old), validity.errors].concat();
        if !errors.is_empty() {
            return Err(strategy.invalid(&submitted, object.str_at(&["metadata", "name"]), &errors));
        }
        if let Some(completion) = &request.completion {
            completion.complete(object, old)?;
        }
        let warnings = match old {
            None => strategy.warnings_on_create(object),
            Some(old) => strategy.warnings_on_update(object, old),
        };
        warnings.into_iter().for_each(|warning| request.warn(warning));
        match old {
            None => hooks::check_create(self, object).await?,
            Some(old) => {
                hooks::check_update(self, object, old).await?;
                match uncoerced {
                    Uncoerced::Same => timestamps::restore(strategy.storage_codec(), object, old),
                    Uncoerced::Differs => {}
                    Uncoerced::Counts => timestamps::count_generation(object, old),
                }
            }
        }
        self.validating_admission(admit, object, old).await?;
        quota::charge(admit, object, old).await?;
        Ok(())
    }

    async fn validating_admission(&self, admit: &Admit<'_>, object: &Value, old: Option<&Value>) -> Result<()> {
        let Some(view) = self.request.strategy.view() else { return admit.validate(Some(object), old).await };
        let old = old.map(|old| view.of(old)).transpose()?;
        admit.validate(Some(&view.of(object)?), old.as_ref()).await
    }

    /// Whether an object exists and can be read. As in kube-apiserver, a dry run does not find objects that cannot be
    /// read.
    async fn is_readable(&self, key: &Key) -> bool {
        let (resource, version) = (&self.request.resource, &self.request.version);
        match resource.collection.get(&key.path) {
            Some(stored) => resource.read_converted(&stored, version).await.is_ok(),
            None => false,
        }
    }

    /// Validates an object and replaces `live` by it. If the object is being deleted, has no finalizers left and
    /// waits for no grace period, it is removed instead. Returns `None` if the stored object has changed.
    pub async fn replace(
        &self,
        admit: &Admit<'_>,
        mut object: Value,
        uncoerced: Uncoerced,
        live: &Live,
    ) -> Result<Option<Outcome>> {
        self.validate(admit, &mut object, Some(&live.object), uncoerced).await?;
        let is_removed = is_deleting(&object)
            && live.stored.meta.deleting
            && grace_seconds(&live.object) == 0
            && !self.request.resource.deletion.is_held(&object);
        if !is_removed && !self.options.dry_run {
            return match self.put(object, Some(live)).await? {
                Some(stored) => self.written(stored, Effect::Done).await.map(Some),
                None => Ok(None),
            };
        }
        if is_removed && !self.options.dry_run && self.remove(&object, &live.stored).await?.is_none() {
            return Ok(None);
        }
        // as in kube-apiserver, an object that the write removes is shown as written, since it is not stored in that form
        let shown = if is_removed { self.viewed(object) } else { self.round_trip(object).await };
        let mut shown = shown?.into_value();
        shown.set_at(&["metadata", "resourceVersion"], Value::from(live.stored.revision.to_string()));
        Ok(Some(Outcome::Object(Effect::Done, ResponseObject::Tree(shown))))
    }

    /// Removes an object and releases its addresses and ports. Returns `None` if the stored object has changed.
    pub async fn remove(&self, object: &Value, stored: &Stored) -> Result<Option<Revision>> {
        let key = self.request.resource.key(&stored.meta.namespace, &stored.meta.name);
        let removed = stored::remove(self.context, &key, stored.revision).await?;
        if removed.is_some() && !self.change.is_edit() {
            hooks::after_delete(self, object).await;
        }
        Ok(removed)
    }

    /// Stores an object in place of `live`, or a new one. Returns `None` if the stored object has changed or the name is taken.
    /// If no byte differs, nothing is written.
    pub async fn put(&self, object: Value, live: Option<&Live>) -> Result<Option<Arc<Stored>>> {
        let resource = &self.request.resource;
        let ends = live.is_some_and(|live| loses_finalizer(&object, &live.object));
        let object = self.encode(object, live).await?;
        if object.body.bytes.len() > limits::OBJECT_BYTES_MAX {
            return Err(Status::untyped(500, "etcdserver: request is too large"));
        }
        debug_assert!(live.is_none_or(|live| live.stored.meta.uid == object.meta.uid), "a write changes the uid");
        let key = resource.key(&object.meta.namespace, &object.meta.name);
        if let Some(Live { stored, .. }) = live
            && stored.body.bytes == object.body.bytes
            && !self.context.objects.is_stale(&key, stored)
        {
            return Ok(Some(stored.clone()));
        }
        if let Some(capacity) = self.request.capacity.as_ref().filter(|_| !ends && !self.is_unlimited(&object, live)) {
            growth(&object, live).map_or(Ok(()), |growth| capacity.check(growth))?;
            capacity.spend(object.body.bytes.len())?;
        }
        let name = if live.is_some() { "GuaranteedUpdate etcd3" } else { "Create etcd3" };
        let span_attributes =
            || trace::attributes([("key", &key.path), ("group", &key.group), ("resource", &key.plural)]);
        let put = pin!(stored::put(self.context, &key, object, live.map(|live| live.stored.revision)));
        let Some(revision) = trace::span(name, Kind::Internal, span_attributes, put).await? else { return Ok(None) };
        let stored = resource.collection.get(&key.path).filter(|stored| stored.revision == revision);
        // if a later write has replaced it already, the object is read from the history
        let stored = stored.or_else(|| resource.collection.at(revision).ok()?.root.get(&key.path).cloned());
        stored.map(Some).ok_or_else(|| Status::internal("the object was written but is not visible"))
    }

    /// Whether the write is permitted even if the API is full. A deletion is, because it only marks the object. So is
    /// the renewal of a Lease by its holder, which takes a few bytes more or less.
    fn is_unlimited(&self, object: &Encoded, live: Option<&Live>) -> bool {
        let is_renewal = || kinds::is_leases(&self.request.resource) && object.body.bytes.len() <= limits::LEASE_BYTES;
        matches!(self.change, Change::Delete(_)) || live.is_some() && is_renewal()
    }

    /// The storage form of an object. If that is too large, drops managedFields, unless the write is an apply.
    pub async fn encode(&self, mut object: Value, live: Option<&Live>) -> Result<Encoded> {
        let Request { resource, version, strategy, .. } = self.request;
        let untracks = !self.change.is_apply();
        // scaling may create the `spec` of a custom resource; the other fields of the `spec` get their defaults only
        // when the object is read
        let has_defaults = self.request.subresource != Subresource::Scale;
        if let Some(outline) = live.and_then(|live| live.outline.as_ref()) {
            let meta = Meta::of(&object);
            let mut body = outline.encode_edited(object.clone());
            if body.bytes.len() > limits::OBJECT_BYTES_MAX && untracks {
                object.remove_at(&["metadata", "managedFields"]);
                body = outline.encode_edited(object);
            }
            return Ok(Encoded { body, meta, shown_in: has_defaults.then_some(version.id) });
        }
        let mut stored = resource.to_storage(object, version).await?;
        let mut body = Body::encode(&stored);
        if body.bytes.len() > limits::OBJECT_BYTES_MAX && untracks {
            stored.remove_at(&["metadata", "managedFields"]);
            body = Body::encode(&stored);
        }
        let as_stored = has_defaults
            && version.id == resource.storage_version().id
            && strategy.storage_codec().is_shown_as_stored(&stored);
        Ok(Encoded { body, meta: Meta::of(&stored), shown_in: as_stored.then_some(version.id) })
    }

    /// The response object of a dry run: encoded in the storage form and decoded again.
    async fn round_trip(&self, mut object: Value) -> Result<ResponseObject> {
        object.decode_parts();
        let Request { resource, version, .. } = self.request;
        if !self.request.wants_object && resource.is_same_form(version, resource.storage_version()) {
            // only a conversion can fail
            return Ok(ResponseObject::Tree(object));
        }
        let stored = resource.to_storage(object, version).await?;
        // a round trip through JSON, as storing the object would: a float with a whole value becomes an integer
        let stored = machinery::value::decode(stored.to_json().as_bytes()).unwrap_or(stored);
        self.viewed(resource.out_of_storage(stored, version).await?)
    }

    /// What the endpoint shows of an object.
    fn viewed(&self, mut object: Value) -> Result<ResponseObject> {
        object.decode_parts();
        match self.request.strategy.view() {
            Some(view) => view.of(&object).map(ResponseObject::Tree),
            None => Ok(ResponseObject::Tree(object)),
        }
    }

    /// Runs the hooks after a write and returns its outcome.
    pub async fn written(&self, stored: Arc<Stored>, effect: Effect) -> Result<Outcome> {
        if self.change.is_edit() {
            return Ok(Outcome::Object(effect, ResponseObject::Stored(stored, None)));
        }
        hooks::after_write(self, &stored).await;
        Ok(Outcome::Object(effect, self.request.show(stored).await?))
    }
}

fn prepare_and_validate(strategy: &dyn Strategy, object: &mut Value, old: Option<&Value>) -> Validity {
    match old {
        None => {
            let mut warnings = strategy.early_warnings(object);
            strategy.prepare_for_create(object);
            let validity = strategy.validate(object);
            warnings.extend(validity.warnings);
            Validity { warnings, ..validity }
        }
        Some(old) => {
            strategy.prepare_for_update(object, old);
            strategy.validate_update(object, old)
        }
    }
}

fn already_exists(request: &Request, key: &Key, name: &str, generated: bool) -> Status {
    let resource = &request.resource;
    let mut status = Status::already_exists(&resource.group, &resource.plural, name);
    if generated {
        status.message.push_str(", the server was not able to generate a unique name for the object");
        if let Some(details) = &mut status.details {
            details.retry_after_seconds = 1;
        }
    }
    if resource.collection.get(&key.path).is_some_and(|stored| stored.meta.deleting) {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}

/// How much the API grows by a write, if it does.
fn growth(object: &Encoded, live: Option<&Live>) -> Option<Growth> {
    let bytes = object.body.bytes.len();
    let Some(live) = live else { return Some(Growth::Object(bytes)) };
    bytes.checked_sub(live.stored.body.bytes.len()).filter(|more| *more > 0).map(Growth::Bytes)
}

/// Whether an object that is being deleted loses a finalizer. Such a write brings the removal closer, although its
/// managedFields may make the object larger.
fn loses_finalizer(object: &Value, old: &Value) -> bool {
    let finalizers = |object: &Value| object.items_at(&["metadata", "finalizers"]).len();
    is_deleting(old) && finalizers(object) < finalizers(old)
}
