//! Requests to the engine: targets, options and bodies.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use machinery::{Text, Value};
use server::{Caller, InPlaceOfStored, InProcess, Mapping, StandIn, VerdictOnly};
use sources::Object;

const JSON: &str = "application/json";

/// An object that requests are for.
#[derive(Clone)]
pub struct Target {
    mapping: Mapping,
    namespace: Text,
    name: Text,
}

impl Target {
    /// The object with this name. An empty namespace means `default` if the kind is namespaced.
    pub fn new(mapping: Mapping, namespace: &str, name: &str) -> Target {
        let namespace = match (mapping.is_namespaced(), namespace) {
            (false, _) => "",
            (true, "") => "default",
            (true, namespace) => namespace,
        };
        Target { namespace: namespace.into(), name: name.into(), mapping }
    }

    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Empty if the kind is cluster-scoped.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn kind(&self) -> &str {
        self.mapping.kind()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn collection(&self) -> String {
        self.mapping.path(&self.namespace, "")
    }

    /// The path of the object, or of a subresource; empty for the object itself.
    pub fn path(&self, part: &str) -> String {
        let path = self.mapping.path(&self.namespace, &self.name);
        if part.is_empty() { path } else { format!("{path}/{part}") }
    }
}

/// Decides about unknown and duplicate fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    #[default]
    Warn,
    /// They are errors, as with kubectl.
    Strict,
    Ignore,
}

/// How a request is sent.
#[derive(Clone, Default)]
pub struct RequestOptions {
    /// Whether nothing is kept.
    pub dry_run: bool,
    pub fields: FieldValidation,
    /// The field manager of a write.
    pub field_manager: String,
    /// Whether an apply takes fields from other managers.
    pub force: bool,
    /// The media type of the response; empty for JSON.
    pub accept: String,
    /// Whether the verdict has no object.
    pub verdict_only: bool,
    /// The user; a user who may do everything if it is `None`.
    pub caller: Option<Caller>,
    /// Replaces the stored object in a dry run.
    pub in_place: Option<InPlaceOfStored>,
}

impl RequestOptions {
    /// A write that is kept, with strict validation of fields.
    pub fn strict() -> RequestOptions {
        RequestOptions { fields: FieldValidation::Strict, ..RequestOptions::default() }
    }

    /// A dry run with strict validation of fields.
    pub fn dry() -> RequestOptions {
        RequestOptions { dry_run: true, ..RequestOptions::strict() }
    }

    /// As [`RequestOptions::dry`], for a verdict without the object.
    pub fn verdict() -> RequestOptions {
        RequestOptions { verdict_only: true, ..RequestOptions::dry() }
    }

    /// These options for a dry run on an object that is not stored.
    pub(super) fn over(self, stand_in: StandIn) -> RequestOptions {
        RequestOptions { in_place: Some(InPlaceOfStored(stand_in.stored)), ..self }
    }

    fn query(&self, is_patch: bool) -> Vec<String> {
        let mut query = vec![];
        if self.dry_run {
            query.push("dryRun=All".to_owned());
        }
        match self.fields {
            FieldValidation::Warn => {}
            FieldValidation::Strict => query.push("fieldValidation=Strict".to_owned()),
            FieldValidation::Ignore => query.push("fieldValidation=Ignore".to_owned()),
        }
        if !self.field_manager.is_empty() {
            query.push(format!("fieldManager={}", machinery::url::encode(&self.field_manager, b"")));
        }
        if self.force && is_patch {
            query.push("force=true".to_owned());
        }
        query
    }
}

/// The kinds of patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patch {
    Merge,
    Apply,
}

/// The body of a request.
#[derive(Clone, Debug, Default)]
pub struct Content {
    bytes: Bytes,
    media_type: &'static str,
    /// The value, if it needs no encoding; then `bytes` may be empty.
    decoded: Option<Arc<Value>>,
}

impl Content {
    /// A JSON document, decoded by the server.
    pub fn json(bytes: impl Into<Bytes>) -> Content {
        Content::new(bytes, JSON)
    }

    /// An object of a source.
    pub fn of(object: &Object) -> Content {
        match object.json() {
            json if object.is_sendable() => Content::decoded(object.value.clone(), json.cloned()),
            Some(text) => Content::json(text.clone()),
            None => Content::from(&*object.value),
        }
    }

    /// A short object, which the server does not decode again. It must equal what a JSON decoder makes of `text`
    /// or, without it, of the object's encoding.
    pub fn decoded(value: Arc<Value>, text: Option<Bytes>) -> Content {
        Content { bytes: text.unwrap_or_default(), media_type: JSON, decoded: Some(value) }
    }

    /// A body of another media type.
    pub fn new(bytes: impl Into<Bytes>, media_type: &'static str) -> Content {
        Content { bytes: bytes.into(), media_type, decoded: None }
    }

    pub(super) fn patch(patch: Patch, content: &Value) -> Content {
        let media_type = match patch {
            Patch::Merge => "application/merge-patch+json",
            Patch::Apply => "application/apply-patch+yaml",
        };
        Content::new(content.to_json(), media_type)
    }
}

impl From<&Value> for Content {
    fn from(value: &Value) -> Content {
        Content::json(value.to_json())
    }
}

/// A request. The error says why the path is invalid.
pub(super) fn build(
    method: Method,
    path: &str,
    content: Content,
    options: &RequestOptions,
) -> http::Result<http::Request<Content>> {
    let is_write = matches!(method, Method::POST | Method::PUT | Method::PATCH);
    let query = if is_write { options.query(method == Method::PATCH).join("&") } else { String::new() };
    let uri = match (query.as_str(), path.contains('?')) {
        ("", _) => path.to_owned(),
        (query, true) => format!("{path}&{query}"),
        (query, false) => format!("{path}?{query}"),
    };
    let mut request = http::Request::builder().method(method).uri(uri).header(USER_AGENT, "pintle");
    if !content.media_type.is_empty() {
        request = request.header(CONTENT_TYPE, content.media_type);
    }
    request = request.header(ACCEPT, if options.accept.is_empty() { JSON } else { &options.accept });
    if let Some(in_place) = &options.in_place {
        request = request.extension(in_place.clone());
    }
    if options.verdict_only {
        request = request.extension(VerdictOnly);
    }
    request.body(content)
}

pub(super) async fn send(
    server: &InProcess,
    caller: &Caller,
    request: http::Request<Content>,
) -> http::Response<server::Body> {
    let (parts, Content { bytes, decoded, .. }) = request.into_parts();
    match decoded {
        Some(value) => {
            let text = Some(bytes).filter(|bytes| !bytes.is_empty());
            server.call_decoded(caller, http::Request::from_parts(parts, value), text).await
        }
        None => server.call(caller, http::Request::from_parts(parts, bytes)).await,
    }
}
