//! managedFields: gives the field manager the versions of a resource, and the fields that an endpoint resets.
//!
//! The field manager is synchronous, but conversion webhooks are not. So it runs until it needs a conversion that has
//! not been made. The conversion is made, and the field manager starts over. It always asks for the same sequence of
//! conversions, so it gets one further each time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::clock;
use machinery::{Result, Value};
use resource::{Resource, Version};
use schema::apply::{ConvertError, FieldSet, Request as FieldManager, TypeSchema, Versions};

use super::meta::MANAGED;
use super::request::Request;

/// The versions of one resource, seen through one endpoint.
struct TrackedVersions<'a> {
    request: &'a Request,
    resource: &'a Resource,
    /// The results of conversions by webhooks so far, in the order in which the field manager asks for them.
    responses: &'a [Result<Value>],
    /// How many conversions by webhooks the field manager has asked for in this run.
    requested: AtomicUsize,
    /// The first conversion that has no result yet: an object and its target version.
    open: OnceLock<(Value, &'a Version)>,
}

impl Versions for TrackedVersions<'_> {
    fn types(&self, api_version: &str) -> Option<&TypeSchema> {
        self.version(api_version).map(|version| &version.program().types)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let Some(to) = self.version(api_version) else { return Err(self.unknown(api_version)) };
        let converted = if self.resource.is_converted_outside(object, to) {
            self.response(object, to)?
        } else {
            self.resource.convert_only(object.clone(), to)
        };
        converted.map_err(|status| ConvertError::Failed(status.message.clone()))
    }

    fn reset_fields(&self, api_version: &str) -> Option<&FieldSet> {
        self.version(api_version).and_then(|version| self.request.strategy.reset_fields(version))
    }
}

impl<'a> TrackedVersions<'a> {
    fn version(&self, api_version: &str) -> Option<&'a Version> {
        let (group, name) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        if group == self.resource.group { self.resource.version(name).map(AsRef::as_ref) } else { None }
    }

    /// The error for a version in managedFields that the resource no longer has. As in kube-apiserver, built-in kinds
    /// drop the managers with this version, and custom resources fail to convert.
    fn unknown(&self, api_version: &str) -> ConvertError {
        self.request.strategy.codec().unknown_version(api_version)
    }

    /// The result of a conversion by a webhook. If there is none yet, the error makes the field manager return early,
    /// and what it returns is discarded.
    fn response(&self, object: &Value, to: &'a Version) -> Result<Result<Value>, ConvertError> {
        let known = self.responses.get(self.requested.fetch_add(1, Ordering::Relaxed));
        known.cloned().ok_or_else(|| {
            let _ = self.open.set((object.clone(), to));
            ConvertError::Failed("not known yet".to_owned())
        })
    }
}

impl Request {
    /// Runs the field manager until all conversions are known. `bare` says that the live object has no managedFields.
    /// Objects of built-in kinds always have all their structs.
    async fn tracked<T>(&self, manager: &str, bare: bool, mut work: impl FnMut(&FieldManager<'_>) -> T) -> T {
        let (strategy, time) = (&*self.strategy, clock::now_seconds());
        let (codec, api_version) = (strategy.codec(), strategy.codec().api_version());
        let zero = if bare { codec.zero() } else { None };
        let (subresource, release) = (self.subresource.as_str(), self.resource.release);
        let (kind, api_version, zero) = (codec.kind(), api_version.as_str(), zero.as_ref());
        if let Some(view) = strategy.view() {
            let versions = view.types();
            return work(&FieldManager { manager, api_version, kind, subresource, time, versions, zero, release });
        }
        let mut responses = vec![];
        loop {
            let (resource, open) = (&*self.resource, OnceLock::new());
            let tracked = TrackedVersions { request: self, resource, responses: &responses, requested: 0.into(), open };
            let versions = &tracked;
            let done = work(&FieldManager { manager, api_version, kind, subresource, time, versions, zero, release });
            let Some((object, to)) = tracked.open.into_inner() else { return done };
            responses.push(Box::pin(self.resource.convert_outside(object, to)).await);
        }
    }

    /// Computes the managedFields of an object that is to replace `live`.
    pub async fn track_update(&self, live: Option<&Value>, object: &mut Value, manager: &str) {
        let mut printed = self.strategy.codec().printed(object);
        let tracked = printed.as_mut().unwrap_or(object);
        let given = self.resource.is_prepared().then(|| tracked.clone());
        let work = |request: &FieldManager<'_>| {
            if let Some(given) = &given {
                tracked.clone_from(given);
            }
            schema::apply::update(live, tracked, request);
        };
        self.tracked(manager, live.is_none(), work).await;
        if let Some(printed) = printed {
            object.put_at(&MANAGED, printed.at(&MANAGED).cloned());
        }
    }

    /// The outcome of applying `configuration`.
    pub async fn track_apply(
        &self,
        live: Option<&Value>,
        configuration: &Value,
        force: bool,
        manager: &str,
    ) -> Result<schema::apply::ApplyOutcome> {
        let bare = live.is_some_and(|live| live.at(&["metadata", "managedFields"]).is_none());
        let force = if force { schema::apply::Force::Yes } else { schema::apply::Force::No };
        let work = |request: &FieldManager<'_>| schema::apply::apply(live, configuration, force, request);
        self.tracked(manager, bare, work).await
    }

    /// The field manager of this request.
    pub fn manager(&self, given: &str) -> String {
        if given.is_empty() { self.default_manager.to_string() } else { given.to_owned() }
    }
}
