//! Strategies: how an endpoint prepares, validates and warns about the objects that are written through it.
//!
//! [`Strategy`] is implemented once for custom resources and once for the table of built-in kinds, each with its
//! subresources. The verbs know kinds only through this trait. The rules of a single kind are in its row.

mod builtin;
mod custom;
mod scale;

use std::sync::Arc;

use machinery::{FieldError, Status, Value};
use schema::apply::FieldSet;

pub use scale::ScaleView;

use super::builtin::StatusMetadata;
use super::codec::{BuiltInCodec, Codec, CustomCodec, Endpoint, TypeMeta};
use super::model::Resource;
use super::rules::{Subresource, metadata};
use super::version::Version;

/// The result of validation.
#[derive(Debug, Default)]
pub struct Validity {
    pub errors: Vec<FieldError>,
    pub warnings: Vec<String>,
}

impl From<Vec<FieldError>> for Validity {
    fn from(errors: Vec<FieldError>) -> Validity {
        Validity { errors, warnings: vec![] }
    }
}

/// The rules of one endpoint, as `rest.RESTCreateStrategy` and its siblings in kube-apiserver.
pub trait Strategy: Send + Sync {
    /// The codec of request bodies.
    fn codec(&self) -> &dyn Codec;

    /// The codec that compares stored objects and names them in errors.
    fn storage_codec(&self) -> &dyn Codec {
        self.codec()
    }

    /// The Status of an object that is invalid. `submitted` is its type as sent by the client.
    fn invalid(&self, submitted: &TypeMeta, name: &str, errors: &[FieldError]) -> Status {
        self.storage_codec().invalid(submitted, name, errors)
    }

    /// Warnings about a new object before it is prepared. They are sent even if the object is refused.
    fn early_warnings(&self, _object: &Value) -> Vec<String> {
        vec![]
    }

    /// Sets the fields of a new object that the server owns, and resets those that clients may not set.
    fn prepare_for_create(&self, _object: &mut Value) {}

    /// Validates a prepared object that is to be created.
    fn validate(&self, _object: &Value) -> Validity {
        Validity::default()
    }

    fn warnings_on_create(&self, _object: &Value) -> Vec<String> {
        vec![]
    }

    /// Restores the fields that this endpoint does not write from the stored object, and updates the generation.
    fn prepare_for_update(&self, object: &mut Value, old: &Value);

    /// Validates a prepared object that is to replace `old`.
    fn validate_update(&self, object: &Value, old: &Value) -> Validity;

    fn warnings_on_update(&self, _object: &Value, _old: &Value) -> Vec<String> {
        vec![]
    }

    /// Canonicalizes a changed object before field ownership is computed.
    fn canonicalize(&self, _object: &mut Value) {}

    /// The fields that this endpoint resets in objects of a version, so that managedFields do not record them.
    fn reset_fields(&self, version: &Version) -> Option<&'static FieldSet>;

    /// Whether PUT creates an object that does not exist.
    fn allow_create_on_update(&self) -> bool {
        false
    }

    /// Whether an apply creates an object that does not exist.
    fn allow_create_on_apply(&self) -> bool {
        false
    }

    /// Whether PUT without resourceVersion replaces the object unconditionally.
    fn allow_unconditional_update(&self) -> bool;

    /// The Scale that clients of the endpoint exchange instead of the objects, if they do.
    fn view(&self) -> Option<&ScaleView> {
        None
    }
}

/// The strategy of an endpoint.
pub fn strategy(resource: &Arc<Resource>, version: &Arc<Version>, subresource: Subresource) -> Arc<dyn Strategy> {
    let at = Endpoint { resource: resource.clone(), version: version.clone() };
    match (version.built_in, subresource) {
        (_, Subresource::Scale) => {
            let main = strategy(resource, version, Subresource::None);
            Arc::new(ScaleView::new(at, main))
        }
        (None, Subresource::Status) => Arc::new(custom::CustomStatus(CustomCodec { at, keeps_metadata: true })),
        (None, _) => Arc::new(custom::CustomStrategy(CustomCodec { at, keeps_metadata: false })),
        (Some(row), Subresource::Status) => Arc::new(builtin::BuiltInStatus(BuiltInCodec { at, row })),
        (Some(row), Subresource::Own(name)) => match row.part(name) {
            Some(part) => Arc::new(builtin::PartStrategy(BuiltInCodec { at, row }, part)),
            None => Arc::new(builtin::BuiltInStrategy(BuiltInCodec { at, row })),
        },
        (Some(row), _) => Arc::new(builtin::BuiltInStrategy(BuiltInCodec { at, row })),
    }
}

/// Makes `object` the result of a status update: the stored object with the status and the managedFields of
/// `object`. `metadata_rule` says which other metadata is taken from `object`.
fn with_status_of(object: &mut Value, old: &Value, metadata_rule: StatusMetadata) {
    let writes_metadata = metadata_rule != StatusMetadata::Kept;
    let managed_fields = object.remove_at(&["metadata", "managedFields"]);
    match (object.get_mut("metadata"), old.get("metadata")) {
        (Some(_), _) if writes_metadata => {}
        (Some(metadata), Some(old)) => restore_fields(metadata, old, &["managedFields"]),
        (_, old) => object.put_at(&["metadata"], old.cloned()),
    }
    restore_fields(object, old, &["metadata", "status"]);
    if writes_metadata {
        metadata::restore_system_fields(object, old);
    }
    object.put_at(&["metadata", "managedFields"], managed_fields);
}

/// Gives `object` the fields of `old`, except for the names in `except`. Fields are compared first: most are equal,
/// and a comparison is cheaper than a copy.
fn restore_fields(object: &mut Value, old: &Value, except: &[&str]) {
    let (Value::Object(fields), Value::Object(old)) = (&mut *object, old) else {
        *object = old.clone();
        return;
    };
    fields.retain(|name, _| except.contains(&name.as_str()) || old.contains_key(name));
    for (name, value) in old.iter().filter(|(name, _)| !except.contains(&name.as_str())) {
        if fields.get(name) != Some(value) {
            fields.insert(name.clone(), value.clone());
        }
    }
}

/// The field sets that endpoints reset.
mod reset {
    use std::sync::LazyLock;

    use schema::apply::FieldSet;

    pub static STATUS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[&["status"]]));
    pub static SPEC: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[&["spec"]]));
    pub static ALL_BUT_STATUS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[&["metadata"], &["spec"]]));
}
