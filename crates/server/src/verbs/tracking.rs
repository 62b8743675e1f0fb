//! What server-side apply needs to know of a resource: its versions, and what an endpoint does not write.

use std::sync::OnceLock;

use machinery::Value;
use schema::apply::{ConvertError, FieldSet, TypeSchema, Versions};

use super::{Request, Subresource};
use crate::clock;
use crate::resource::Resource;
use crate::resource::builtin::{Shipped, StatusMetadata};

/// The versions of one resource, seen through one endpoint.
pub struct Tracked<'a> {
    resource: &'a Resource,
    reset: Option<&'static FieldSet>,
}

impl Versions for Tracked<'_> {
    fn types(&self, api_version: &str) -> Option<&TypeSchema> {
        self.version(api_version).map(|version| &version.program().types)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let to = self.version(api_version).ok_or(ConvertError::MissingVersion)?;
        self.resource.convert_only(object.clone(), to).map_err(|status| ConvertError::Failed(status.message.clone()))
    }

    fn reset_fields(&self, _api_version: &str) -> Option<&FieldSet> {
        self.reset
    }
}

impl Tracked<'_> {
    fn version(&self, api_version: &str) -> Option<&crate::resource::Version> {
        let (group, name) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        if group != self.resource.group {
            return None;
        }
        self.resource.version(name).map(AsRef::as_ref)
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

    /// The resource as the field manager sees it through this endpoint.
    pub fn tracked(&self) -> Tracked<'_> {
        let reset = match self.subresource {
            Subresource::None if self.version.status => Some(status_fields()),
            Subresource::Status if self.resource.is_custom() => Some(spec_fields()),
            Subresource::Status if self.status_metadata() == StatusMetadata::Written => Some(spec_fields()),
            Subresource::Status => Some(all_but_status()),
            Subresource::Finalize => Some(status_fields()),
            _ => None,
        };
        Tracked { resource: &self.resource, reset }
    }

    /// Computes the managedFields of an object that is to be stored in place of `live`.
    pub fn track_update(&self, live: Option<&Value>, object: &mut Value, manager: &str) {
        let zero = self.zero_if(live.is_none());
        let api_version = self.api_version();
        let tracked = self.tracked();
        let request = schema::apply::Request {
            manager,
            api_version: &api_version,
            kind: &self.resource.kind,
            subresource: self.subresource.as_str(),
            time: clock::now_seconds(),
            versions: &tracked,
            zero: zero.as_ref(),
        };
        schema::apply::update(live, object, &request);
    }

    /// A typed object is never without its structs, so that nobody brings them into being.
    fn zero_if(&self, wanted: bool) -> Option<Value> {
        self.shipped().filter(|_| wanted).map(Shipped::zero)
    }

    /// The object that results from applying `configuration`.
    pub fn track_apply(
        &self,
        live: Option<&Value>,
        configuration: &Value,
        force: bool,
        manager: &str,
    ) -> Result<Value, machinery::Status> {
        let untracked = live.is_some_and(|live| live.at(&["metadata", "managedFields"]).is_none());
        let zero = self.zero_if(untracked);
        let api_version = self.api_version();
        let tracked = self.tracked();
        let request = schema::apply::Request {
            manager,
            api_version: &api_version,
            kind: &self.resource.kind,
            subresource: self.subresource.as_str(),
            time: clock::now_seconds(),
            versions: &tracked,
            zero: zero.as_ref(),
        };
        let force = if force { schema::apply::Force::Yes } else { schema::apply::Force::No };
        schema::apply::apply(live, configuration, force, &request)
    }

    /// The field manager of this request.
    pub fn manager(&self, given: &str) -> String {
        if given.is_empty() { self.default_manager.to_string() } else { given.to_owned() }
    }
}
