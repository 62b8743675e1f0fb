//! The change that a write makes to the current object: create, replace, patch, apply, delete, or an edit by the server.

use std::sync::Arc;

use base::deadline;
use base::request::{DeleteOptions, WriteOptions};
use machinery::{Result, Status, Value};
use objects::Stored;
use resource::timestamps::Uncoerced;
use resource::{Outline, with_empty_schemas};
use schema::apply::ApplyOutcome;

use super::context::Context;
use super::meta;
use super::patch::{Patch, RepeatedKeys};
use super::request::Request;

/// A change. It can be repeated on a newer version of the object.
pub enum Change<'a> {
    Create(Value),
    Replace(Value),
    Patch(Patch),
    Apply {
        configuration: Value,
        force: bool,
        /// Repeated keys, reported only after the configuration has been merged.
        repeated: RepeatedKeys,
    },
    Delete(DeleteOptions),
    /// An edit by the server itself, without admission. An error of the function is the error of the write.
    Edit(&'a (dyn Fn(&mut Value) -> Result<()> + Sync)),
    /// An edit of a CRD that need not decode its schemas. The function returns `None` if there is nothing to change.
    EditOutline(&'a (dyn Fn(&Outline) -> Option<Value> + Sync)),
}

/// A write that [`Write::run`] carries out.
pub struct Write<'a> {
    pub context: &'a Context,
    pub request: &'a Request,
    pub change: Change<'a>,
    pub options: &'a WriteOptions,
    /// The object to delete, if the request names none (deletecollection).
    pub listed: Option<&'a Stored>,
}

impl<'a> Write<'a> {
    pub fn new(context: &'a Context, request: &'a Request, change: Change<'a>, options: &'a WriteOptions) -> Write<'a> {
        Write { context, request, change, options, listed: None }
    }
}

/// The stored object that a write changes.
pub struct Live {
    pub stored: Arc<Stored>,
    /// In the version of the request.
    pub object: Value,
    /// The view that the endpoint has of the object, if it has one. Changes apply to the view.
    pub view: Option<Value>,
    /// The schemas of a CRD that is edited without decoding them.
    pub outline: Option<Outline>,
}

impl Live {
    /// The object, or its view, to which changes are applied.
    pub fn editable(&self) -> &Value {
        self.view.as_ref().unwrap_or(&self.object)
    }
}

/// An object after a change, with its managedFields.
pub struct Changed {
    pub object: Value,
    /// Differences that kube-apiserver counts as changes by an apply, although the object to be stored is unchanged.
    pub uncoerced: Uncoerced,
}

impl Change<'_> {
    /// For a create, a copy for another attempt, because an attempt takes the object. `None` for other changes.
    pub fn copy(&self) -> Option<Value> {
        if let Change::Create(object) = self { Some(object.clone()) } else { None }
    }

    pub fn is_apply(&self) -> bool {
        matches!(self, Change::Apply { .. })
    }

    /// Whether the change is an edit by the server itself, after which no hooks run.
    pub fn is_edit(&self) -> bool {
        matches!(self, Change::Edit(_) | Change::EditOutline(_))
    }
}

impl Write<'_> {
    /// Makes the change to the stored object, `live`, and computes the managedFields. Returns `None` if there is
    /// nothing to change.
    pub async fn changed(&mut self, live: Option<&Live>) -> Result<Option<Changed>> {
        let not_found = || self.request.resource.not_found(self.request.name());
        let changed = match (&mut self.change, live) {
            // the object is moved: another attempt needs a copy, which `Change::copy` makes beforehand
            (Change::Create(object), _) => {
                let object = std::mem::take(object);
                self.created(object).await?
            }
            (Change::Replace(object), None) => {
                let mut object = object.clone();
                meta::dedup_owners(self.request, &mut object, meta::Stage::BeforeMutation);
                if !self.request.strategy.allow_create_on_update() {
                    return Err(not_found());
                }
                self.check_uid(object.str_at(&["metadata", "uid"]), "")?;
                self.request.strategy.canonicalize(&mut object);
                // managedFields come first: unlike a POST, a PUT also owns the system fields that it sends, although a
                // new object does not keep them
                let mut created = self.tracked(None, object).await;
                meta::wipe_system_fields(self.request, &mut created.object)?;
                created
            }
            (Change::Apply { .. }, Some(live)) => self.applied(live.editable()).await?,
            (Change::Apply { .. }, None) if self.request.strategy.allow_create_on_apply() => {
                self.created_by_apply().await?
            }
            (Change::EditOutline(edit), Some(live @ Live { outline: Some(outline), .. })) => match edit(outline) {
                Some(next) => {
                    let mut object = with_empty_schemas(&next);
                    object.set_at(&["metadata", "resourceVersion"], Value::from(live.stored.revision.to_string()));
                    self.tracked(Some(live), object).await
                }
                None => return Ok(None),
            },
            (_, Some(live)) => self.updated(live).await?,
            (_, None) => return Err(not_found()),
        };
        Ok(Some(changed))
    }

    /// The field manager of the request.
    fn manager(&self) -> String {
        self.request.manager(&self.options.field_manager)
    }

    async fn created(&self, mut object: Value) -> Result<Changed> {
        meta::wipe_system_fields(self.request, &mut object)?;
        meta::dedup_owners(self.request, &mut object, meta::Stage::BeforeMutation);
        self.request.strategy.canonicalize(&mut object);
        Ok(self.tracked(None, object).await)
    }

    /// The object after a replacement, patch or edit.
    async fn updated(&self, live: &Live) -> Result<Changed> {
        let (request, old) = (self.request, live.editable());
        let mut object = match &self.change {
            Change::Replace(object) => {
                let mut object = object.clone();
                meta::dedup_owners(request, &mut object, meta::Stage::BeforeMutation);
                self.check_uid(object.str_at(&["metadata", "uid"]), &live.stored.meta.uid)?;
                object
            }
            Change::Patch(patch) => {
                let patched = || patch.apply_to(request, old, self.options.field_validation);
                let mut object = deadline::long(patched).await?;
                self.check_identity(&mut object)?;
                object
            }
            Change::Edit(edit) => {
                let mut object = old.clone();
                edit(&mut object)?;
                object
            }
            _ => old.clone(),
        };
        request.strategy.canonicalize(&mut object);
        Ok(self.tracked(Some(live), object).await)
    }

    async fn tracked(&self, live: Option<&Live>, mut object: Value) -> Changed {
        self.request.track_update(live.map(Live::editable), &mut object, &self.manager()).await;
        Changed { object, uncoerced: Uncoerced::Same }
    }

    async fn applied(&self, live: &Value) -> Result<Changed> {
        let request = self.request;
        let Change::Apply { configuration, force, repeated } = &self.change else { return Err(request.not_found()) };
        if let Some(view) = request.strategy.view() {
            view.check_apply(configuration, live)?;
        }
        let ApplyOutcome { mut object, is_live } =
            request.track_apply(Some(live), configuration, *force, &self.manager()).await?;
        if let Some(view) = request.strategy.view() {
            view.check_applied(configuration, live, &object)?;
        }
        let is_custom = request.resource.is_custom();
        if is_custom {
            repeated.report(request)?;
            self.check_identity(&mut object)?;
        }
        let uncoerced = match is_live {
            true => Uncoerced::Same,
            false => request.strategy.codec().normalize_applied(&mut object, configuration, Some(live))?,
        };
        if !is_custom {
            // kube-apiserver reports repeated keys only after it has converted the object
            repeated.report(request)?;
        }
        self.check_identity(&mut object)?;
        Ok(Changed { object, uncoerced })
    }

    /// Fails unless the object has the namespace and the name that the request names. For its own kinds,
    /// kube-apiserver decodes the object before this check.
    fn check_identity(&self, object: &mut Value) -> Result<()> {
        meta::place_in(object, self.request.scope())?;
        meta::check_name(object, self.request.name())
    }

    async fn created_by_apply(&self) -> Result<Changed> {
        let request = self.request;
        let Change::Apply { configuration, force, repeated } = &self.change else { return Err(request.not_found()) };
        let mut object = request.track_apply(None, configuration, *force, &self.manager()).await?.object;
        let is_custom = request.resource.is_custom();
        if is_custom {
            repeated.report(request)?;
        }
        request.strategy.codec().normalize_applied(&mut object, configuration, None)?;
        if !is_custom {
            repeated.report(request)?;
        }
        let uid = configuration.str_at(&["metadata", "uid"]);
        if !uid.is_empty() {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            let resource = &request.resource;
            return Err(Status::conflict(&resource.group, &resource.plural, request.name(), &why));
        }
        meta::wipe_system_fields(request, &mut object)?;
        meta::check_name(&object, request.name())?;
        meta::dedup_owners(request, &mut object, meta::Stage::AfterMutation);
        Ok(Changed { object, uncoerced: Uncoerced::Same })
    }

    /// Fails if a replacement has another uid than the stored object.
    fn check_uid(&self, uid: &str, stored_uid: &str) -> Result<()> {
        if uid.is_empty() || uid == stored_uid {
            return Ok(());
        }
        let why = format!("UID in precondition: {uid}, UID in object meta: {stored_uid}");
        Err(self.request.broken_precondition(self.options.dry_run, &why))
    }
}
