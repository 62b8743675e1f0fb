//! An object in a response: either a stored object or a computed one.

use std::sync::Arc;

use machinery::{Result, Value};
use objects::{Body, ProtobufForm, Rendition, Sink, Stored};
use resource::{Resource, Version};
use store::Revision;

#[derive(Clone, Debug)]
pub enum ResponseObject {
    /// A stored object in the version of the request, see [`Stored::rendition`].
    Stored(Arc<Stored>, Rendition),
    /// An object computed for this response.
    Tree(Value),
}

/// The bytes of a stored object in the version of its rendition.
fn body<'a>(stored: &'a Stored, rendition: &'a Rendition) -> &'a Body {
    rendition.as_deref().unwrap_or(&stored.body)
}

impl ResponseObject {
    pub fn stored(resource: &Resource, version: &Version, stored: Arc<Stored>) -> Result<ResponseObject> {
        let rendition = resource.rendition(&stored, version)?;
        Ok(ResponseObject::Stored(stored, rendition))
    }

    /// Like [`ResponseObject::stored`], but converts the object first if necessary.
    pub async fn converted(resource: &Resource, version: &Version, stored: Arc<Stored>) -> Result<ResponseObject> {
        resource.prepare(&[&stored], version).await?;
        ResponseObject::stored(resource, version, stored)
    }

    pub fn to_value(&self) -> Value {
        match self {
            ResponseObject::Stored(stored, rendition) => body(stored, rendition).to_value(stored.revision),
            ResponseObject::Tree(value) => value.clone(),
        }
    }

    pub fn into_value(self) -> Value {
        match self {
            ResponseObject::Stored(stored, rendition) => body(&stored, &rendition).to_value(stored.revision),
            ResponseObject::Tree(value) => value,
        }
    }

    /// The stored object; `None` if the object was computed for this response.
    pub fn as_stored(&self) -> Option<&Stored> {
        match self {
            ResponseObject::Stored(stored, _) => Some(stored),
            ResponseObject::Tree(_) => None,
        }
    }

    /// The size of the object as JSON in bytes; 0 if it was computed for this response.
    pub fn stored_bytes(&self) -> usize {
        match self {
            ResponseObject::Stored(stored, rendition) => body(stored, rendition).bytes.len(),
            ResponseObject::Tree(_) => 0,
        }
    }

    /// The length of the object in protobuf, see [`Stored::protobuf_bytes`].
    pub fn protobuf_bytes(&self, form: ProtobufForm, measure: impl FnOnce() -> usize) -> usize {
        match self {
            ResponseObject::Stored(stored, None) => stored.protobuf_bytes(form, measure),
            _ => measure(),
        }
    }

    /// The object with another resourceVersion.
    pub fn at_revision(&self, revision: Revision) -> Value {
        match self {
            ResponseObject::Stored(stored, rendition) => body(stored, rendition).to_value(revision),
            ResponseObject::Tree(value) => value.clone(),
        }
    }

    /// Appends compact JSON.
    pub fn write(&self, out: &mut impl Sink) {
        match self {
            ResponseObject::Stored(stored, rendition) => body(stored, rendition).write(stored.revision, out),
            ResponseObject::Tree(value) => out.copy(value.to_json().as_bytes()),
        }
    }

    /// Appends compact JSON without `apiVersion` and `kind`, as in typed lists.
    pub fn write_untyped(&self, out: &mut impl Sink) {
        if let ResponseObject::Stored(stored, rendition) = self
            && body(stored, rendition).write_untyped(stored.revision, out)
        {
            return;
        }
        let mut value = self.to_value();
        value.remove_at(&["kind"]);
        value.remove_at(&["apiVersion"]);
        out.copy(value.to_json().as_bytes());
    }
}
