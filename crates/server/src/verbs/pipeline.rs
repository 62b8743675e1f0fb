//! The write pipeline: every write of an API object, by clients, controllers and the server itself, is a [`Change`] that
//! [`Write::run`] makes.
//!
//! read current → change and managedFields → mutating admission → system fields → strategy: prepare and validate →
//! validating admission → storage form → commit at the revision that was read. If the object has changed since it was
//! read, the pipeline starts over.

use std::sync::Arc;

use access::admission::Operation;
use base::request::parse_uint;
use machinery::{FieldError, FieldPath, Result, Status, Text, Value};
use objects::Stored;
use resource::{Outline, with_empty_schemas};
use store::Revision;

use super::admit::{self, Admit};
use super::change::{Change, Changed, Live, Write};
use super::list::catch_up;
use super::meta::NameOrigin;
use super::outcome::{Effect, Outcome};
use super::request::Decoding;
use super::{hooks, meta};
use crate::limits;

impl Write<'_> {
    /// Makes the change. Repeats it whenever the object has changed meanwhile, and once if it fails on a state that
    /// other servers may have changed.
    pub async fn run(mut self) -> Result<Outcome> {
        // the deletion of a namespace waits for writes that may create an object in it
        let creates = self.request.resource.namespaced && !matches!(self.change, Change::Delete(_));
        let _in_flight = creates.then(|| self.context.writes.begin());
        let seen = self.context.objects.revision();
        let is_shared = self.context.objects.store().is_shared();
        let mut may_be_stale = is_shared && !self.change.is_edit() && self.listed.is_none();
        for _ in 0..limits::WRITE_RETRIES {
            // keep a copy for the second attempt, because an attempt takes the object of a create
            let created = if may_be_stale { self.change.copy() } else { None };
            match self.attempt().await {
                Ok(Some(outcome)) => return Ok(outcome),
                Ok(None) => {}
                Err(status) if may_be_stale && (400..500).contains(&status.code) => {
                    catch_up(self.context).await?;
                    if self.context.objects.revision() == seen {
                        return Err(status);
                    }
                    may_be_stale = false;
                    if let Some(object) = created {
                        self.change = Change::Create(object);
                    }
                }
                Err(status) => return Err(status),
            }
        }
        Err(self.request.resource.modified(self.request.name()))
    }

    /// Makes one attempt. Returns `None` if the stored object has changed, so that the change has to be repeated.
    async fn attempt(&mut self) -> Result<Option<Outcome>> {
        let live = match self.current()? {
            Some(stored) => Some(self.read(stored).await?),
            None if self.listed.is_some() => return Ok(Some(Outcome::Success(Effect::Done, Value::Null))),
            None => None,
        };
        if let Change::Delete(options) = &self.change {
            let live = live.ok_or_else(|| self.request.not_found())?;
            return self.delete(options, live).await;
        }
        let Some(Changed { object, uncoerced }) = self.changed(live.as_ref()).await? else {
            return Ok(Some(Outcome::Success(Effect::Done, Value::Null)));
        };
        let this = &*self;
        let options =
            admit::write_options(if live.is_some() { "UpdateOptions" } else { "CreateOptions" }, this.options);
        let name = this.name_of(&object, live.is_some());
        let operation = if live.is_some() { Operation::Update } else { Operation::Create };
        let admit = Admit { options: &options, name: &name, ..this.admit(operation) };
        let (mut object, named) = match &live {
            None => this.admitted_new(&admit, object).await?,
            Some(live) => (this.admitted(&admit, object, live).await?, NameOrigin::Client),
        };
        let reservation = hooks::reserve(this, &mut object, live.as_ref().map(|live| &live.object)).await?;
        let written = match &live {
            None => this.create(&admit, object, named).await,
            Some(live) => this.replace(&admit, object, uncoerced, live).await,
        };
        hooks::finish_reservation(this.context, reservation, &written).await;
        written
    }

    /// The stored object of the request; `None` for a create.
    fn current(&self) -> Result<Option<Arc<Stored>>> {
        let collection = &self.request.resource.collection;
        match (&self.change, self.listed) {
            (Change::Create(_), _) => Ok(None),
            (_, Some(listed)) => {
                let path = self.request.resource.key(&listed.meta.namespace, &listed.meta.name).path;
                Ok(collection.get(&path).filter(|stored| stored.meta.uid == listed.meta.uid))
            }
            _ if self.request.stand_in.is_some() && !self.options.dry_run => {
                Err(Status::internal("only a dry run may replace an object that is not stored"))
            }
            _ => self.request.target(),
        }
    }

    async fn read(&self, stored: Arc<Stored>) -> Result<Live> {
        let request = self.request;
        if let Change::EditOutline(_) = self.change {
            let outline = Outline::editable(&stored.body.bytes);
            let mut object = with_empty_schemas(&outline.definition);
            object.set_at(&["metadata", "resourceVersion"], Value::from(stored.revision.to_string()));
            return Ok(Live { stored, object, view: None, outline: Some(outline) });
        }
        let is_got = self.options.dry_run || matches!(self.change, Change::Delete(_));
        let decoding = if is_got { Decoding::AsGet } else { Decoding::ForUpdate };
        let object = request.read_for_write(&stored, decoding).await?;
        let view = request.strategy.view().map(|view| view.editable(&object)).transpose()?;
        Ok(Live { stored, object, view, outline: None })
    }

    /// The call of admission for this write. The caller sets its name and options.
    pub fn admit(&self, operation: Operation) -> Admit<'_> {
        let (context, request, dry_run) = (self.context, self.request, self.options.dry_run);
        Admit { context, request, operation, name: request.name(), options: &Value::Null, dry_run }
    }

    /// The name for admission, from the path or the object.
    pub fn name_of(&self, object: &Value, exists: bool) -> Text {
        match self.request.name() {
            name if name.is_empty() && !exists => Text::from(object.str_at(&["metadata", "name"])),
            name => name.clone(),
        }
    }

    /// Passes a new object through mutating admission and sets its system fields.
    pub async fn admitted_new(&self, admit: &Admit<'_>, object: Value) -> Result<(Value, NameOrigin)> {
        let resource = &self.request.resource;
        let generate_name = object.str_at(&["metadata", "generateName"]);
        let shown = if admit.name.is_empty() { generate_name } else { admit.name.as_str() };
        if resource.terminating {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(&resource.group, &resource.plural, admit.name, why));
        }
        admit.check_namespace(&object, if shown.is_empty() { "Unknown" } else { shown })?;
        let mut object = admit.mutate(Some(object), None).await?.unwrap_or_default();
        let named = meta::generate_name(&mut object);
        meta::fill_system_fields(&mut object);
        hooks::prepare_for_create(self, &mut object);
        hooks::authorize(self, &object, None).await?;
        Ok((object, named))
    }

    /// Passes an object that is to replace `live` through mutating admission and sets its system fields.
    async fn admitted(&self, admit: &Admit<'_>, object: Value, live: &Live) -> Result<Value> {
        let strategy = &self.request.strategy;
        let mut object = admit.mutate(Some(object), Some(live.editable())).await?.unwrap_or_default();
        meta::dedup_owners(self.request, &mut object, meta::Stage::AfterMutation);
        hooks::authorize(self, &object, Some(&live.object)).await?;
        let merged = strategy.view().map(|view| view.merge(&object, &live.object)).transpose()?;
        self.check_version(&object, live.stored.revision)?;
        let mut object = merged.unwrap_or(object);
        if object.str_at(&["metadata", "resourceVersion"]).is_empty() {
            object.set_at(&["metadata", "resourceVersion"], Value::from(live.stored.revision.to_string()));
        }
        Ok(object)
    }

    /// Fails if the object's resourceVersion is not the stored one, or is missing although it is required.
    fn check_version(&self, object: &Value, revision: Revision) -> Result<()> {
        let (resource, name, strategy) = (&self.request.resource, self.request.name(), &self.request.strategy);
        let given = object.str_at(&["metadata", "resourceVersion"]);
        let version = if given.is_empty() { Ok(0) } else { parse_uint(given) };
        match version.map_err(|why| Status::untyped(500, why))? {
            // the Scale of a custom resource may lack its version, but not state an unknown one
            0 if strategy.allow_unconditional_update()
                && (given.is_empty() || strategy.view().is_none() || !resource.is_custom()) =>
            {
                Ok(())
            }
            0 => {
                let path = FieldPath::new("metadata.resourceVersion");
                let error = FieldError::invalid(&path, &Value::Int(0), "must be specified for an update");
                Err(Status::invalid(&resource.group, &resource.plural, name, &[error]))
            }
            version if version == revision => Ok(()),
            _ => Err(resource.modified(name)),
        }
    }
}
