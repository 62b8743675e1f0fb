//! What server-side apply needs to know of a resource: its versions, and what an endpoint does not write.
//!
//! The field manager computes and waits for nobody, but webhooks convert for it. It runs until it needs a conversion that
//! is not there yet; that is awaited, and it runs again from the start, which comes to the same questions.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use machinery::{Status, Value};
use schema::apply::{ConvertError, FieldSet, TypeSchema, Versions};

use super::{Request, Subresource};
use crate::resource::builtin::{Shipped, StatusMetadata};
use crate::resource::{Resource, Version};
use crate::{clock, wording};

/// The versions of one resource, seen through one endpoint.
struct Tracked<'a> {
    request: &'a Request,
    resource: &'a Resource,
    /// What webhooks have answered so far, in the order of the questions.
    answers: &'a [Result<Value, Status>],
    asked: AtomicUsize,
    /// The first question that has no answer yet: an object, and the version to bring it to.
    open: OnceLock<(Value, &'a Version)>,
}

impl Versions for Tracked<'_> {
    fn types(&self, api_version: &str) -> Option<&TypeSchema> {
        self.version(api_version).map(|version| &version.program().types)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let Some(to) = self.version(api_version) else { return Err(self.unknown(api_version)) };
        let converted = match self.resource.is_converted_outside(object, to) {
            false => self.resource.convert_only(object.clone(), to),
            true => self.answer(object, to)?,
        };
        converted.map_err(|status| ConvertError::Failed(status.message.clone()))
    }

    fn reset_fields(&self, api_version: &str) -> Option<&FieldSet> {
        self.version(api_version).and_then(|version| self.request.reset_fields(version))
    }
}

impl<'a> Tracked<'a> {
    fn version(&self, api_version: &str) -> Option<&'a Version> {
        let (group, name) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        if group != self.resource.group {
            return None;
        }
        self.resource.version(name).map(AsRef::as_ref)
    }

    /// The error for a version that managedFields name and the resource does not have any more. Upstream drops its owners
    /// for built-in kinds; its converter of custom resources fails.
    fn unknown(&self, api_version: &str) -> ConvertError {
        match self.resource.is_custom() {
            true => ConvertError::Failed(format!("request to convert CR to an invalid group/version: {api_version}")),
            false => ConvertError::MissingVersion,
        }
    }

    /// What a webhook has answered. What comes of an error here counts for nothing.
    fn answer(&self, object: &Value, to: &'a Version) -> Result<Result<Value, Status>, ConvertError> {
        let known = self.answers.get(self.asked.fetch_add(1, Ordering::Relaxed));
        known.cloned().ok_or_else(|| {
            let _ = self.open.set((object.clone(), to));
            ConvertError::Failed("not known yet".to_owned())
        })
    }
}

fn status_fields() -> &'static FieldSet {
    static SET: OnceLock<FieldSet> = OnceLock::new();
    SET.get_or_init(|| FieldSet::of_fields(&[&["status"]]))
}

fn spec_fields() -> &'static FieldSet {
    static SET: OnceLock<FieldSet> = OnceLock::new();
    SET.get_or_init(|| FieldSet::of_fields(&[&["spec"]]))
}

fn all_but_status() -> &'static FieldSet {
    static SET: OnceLock<FieldSet> = OnceLock::new();
    SET.get_or_init(|| FieldSet::of_fields(&[&["metadata"], &["spec"]]))
}

impl Request {
    /// What the status endpoint does with metadata.
    pub fn status_metadata(&self) -> StatusMetadata {
        self.shipped().map_or(StatusMetadata::Kept, |shipped| shipped.status_metadata)
    }

    /// What this endpoint resets in objects of a version, as the field manager is told: of a custom resource the main
    /// endpoint speaks for its own version alone, and the status for the versions that have one.
    fn reset_fields(&self, version: &Version) -> Option<&'static FieldSet> {
        let custom = self.resource.is_custom();
        match self.subresource {
            Subresource::None if custom && version.name != self.version.name => None,
            Subresource::None if version.status => Some(status_fields()),
            Subresource::Status if custom => version.status.then(spec_fields),
            Subresource::Status if self.status_metadata() == StatusMetadata::Written => Some(spec_fields()),
            Subresource::Status => Some(all_but_status()),
            Subresource::Finalize => Some(status_fields()),
            _ => None,
        }
    }

    /// Lets the field manager do its work, as often as it takes until all conversions are known. `bare`: nobody owns
    /// anything yet; a typed object is never without its structs, so that nobody brings them into being.
    async fn tracked<T>(&self, manager: &str, bare: bool, mut work: impl FnMut(&schema::apply::Request<'_>) -> T) -> T {
        let (api_version, time) = (self.api_version(), clock::now_seconds());
        let zero = self.shipped().filter(|_| bare).map(Shipped::zero);
        let mut answers = vec![];
        loop {
            let (resource, open) = (&*self.resource, OnceLock::new());
            let tracked = Tracked { request: self, resource, answers: &answers, asked: 0.into(), open };
            let done = work(&schema::apply::Request {
                manager,
                api_version: &api_version,
                kind: &self.resource.kind,
                subresource: self.subresource.as_str(),
                time,
                versions: &tracked,
                zero: zero.as_ref(),
            });
            let Some((object, to)) = tracked.open.into_inner() else { return done };
            answers.push(Box::pin(self.resource.convert_outside(object, to)).await);
        }
    }

    /// Computes the managedFields of an object that is to be stored in place of `live`.
    pub async fn track_update(&self, live: Option<&Value>, object: &mut Value, manager: &str) {
        let given = self.resource.is_prepared().then(|| object.clone());
        let work = |request: &schema::apply::Request<'_>| {
            if let Some(given) = &given {
                object.clone_from(given);
            }
            schema::apply::update(live, object, request);
        };
        self.tracked(manager, live.is_none(), work).await;
    }

    /// What comes of applying `configuration`.
    pub async fn track_apply(
        &self,
        live: Option<&Value>,
        configuration: &Value,
        force: bool,
        manager: &str,
    ) -> Result<schema::apply::Outcome, Status> {
        let bare = live.is_some_and(|live| live.at(&["metadata", "managedFields"]).is_none());
        let force = if force { schema::apply::Force::Yes } else { schema::apply::Force::No };
        let work = |request: &schema::apply::Request<'_>| {
            schema::apply::apply(live, configuration, force, request).map_err(wording::managed_fields::apply_error)
        };
        self.tracked(manager, bare, work).await
    }

    /// The field manager of this request.
    pub fn manager(&self, given: &str) -> String {
        if given.is_empty() { self.default_manager.to_string() } else { given.to_owned() }
    }
}
