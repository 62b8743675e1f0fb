//! Strategies of custom resources and their status.

use machinery::{FieldError, Release, Text, Value};
use schema::Prior;
use schema::apply::FieldSet;

use super::{Strategy, Validity, reset, with_status_of};
use crate::builtin::StatusMetadata;
use crate::codec::{Codec, CustomCodec, Endpoint, timestamps};
use crate::rules::metadata::{self, MetadataRules};
use crate::version::Version;

/// Strategy of the main endpoint of custom resources.
pub struct CustomStrategy(pub CustomCodec);

pub struct CustomStatus(pub CustomCodec);

impl Strategy for CustomStrategy {
    fn codec(&self) -> &dyn Codec {
        &self.0
    }

    fn prepare_for_create(&self, object: &mut Value) {
        if self.0.at.version.status {
            object.remove_at(&["status"]);
        }
        object.set_at(&["metadata", "generation"], Value::Int(1));
    }

    fn validate(&self, object: &Value) -> Validity {
        let Endpoint { resource, version } = &self.0.at;
        let metadata = MetadataRules::CUSTOM.create_errors(object, resource.metadata_context());
        validity(version.program().schema.validate_after(prior(&self.0.at, metadata, object), object, None))
    }

    fn warnings_on_create(&self, object: &Value) -> Vec<String> {
        metadata::finalizer_warnings(object, None)
    }

    fn prepare_for_update(&self, object: &mut Value, old: &Value) {
        prepare_for_update(&self.0.at, object, old);
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Validity {
        validate_update(&self.0.at, object, old)
    }

    fn warnings_on_update(&self, object: &Value, old: &Value) -> Vec<String> {
        metadata::finalizer_warnings(object, Some(old))
    }

    /// Fields are only reset in objects that have the version of the endpoint.
    fn reset_fields(&self, version: &Version) -> Option<&'static FieldSet> {
        (version.name == self.0.at.version.name && version.status).then_some(&reset::STATUS)
    }

    fn allow_create_on_apply(&self) -> bool {
        true
    }

    fn allow_unconditional_update(&self) -> bool {
        self.0.at.resource.third_party
    }
}

impl Strategy for CustomStatus {
    fn codec(&self) -> &dyn Codec {
        &self.0
    }

    fn prepare_for_update(&self, object: &mut Value, old: &Value) {
        with_status_of(object, old, StatusMetadata::Kept);
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Validity {
        let Endpoint { resource, version } = &self.0.at;
        let metadata = MetadataRules::CUSTOM.update_errors(object, old, resource.metadata_context());
        validity(version.program().schema.validate_status(
            prior_to_update(&self.0.at, metadata, object, old),
            object,
            old,
        ))
    }

    fn reset_fields(&self, version: &Version) -> Option<&'static FieldSet> {
        let reset = match self.0.at.resource.release {
            Release::V1_35 => &reset::SPEC,
            _ => &reset::ALL_BUT_STATUS,
        };
        version.status.then_some(reset)
    }

    fn allow_unconditional_update(&self) -> bool {
        self.0.at.resource.third_party
    }
}

/// Keeps the old status if the version has a status subresource, and increments the generation if anything outside of
/// metadata changes.
pub fn prepare_for_update(at: &Endpoint, object: &mut Value, old: &Value) {
    if at.version.status {
        object.put_at(&["status"], old.get("status").cloned());
    }
    metadata::restore_system_fields(object, old);
    if !is_same_outside_metadata(object, old) {
        timestamps::count_generation(object, old);
    }
}

pub fn validate_update(at: &Endpoint, object: &Value, old: &Value) -> Validity {
    let metadata = MetadataRules::CUSTOM.update_errors(object, old, at.resource.metadata_context());
    validity(at.version.program().schema.validate_after(prior_to_update(at, metadata, object, old), object, Some(old)))
}

/// The errors found before validation by the schema.
fn prior(at: &Endpoint, metadata: Vec<FieldError>, object: &Value) -> Prior {
    let types = schema::type_meta_errors(object, &at.api_version(), &at.resource.kind);
    if types.is_empty() { Prior::Metadata(metadata) } else { Prior::TypeMeta(types) }
}

/// As [`prior`], for an update: errors of the type follow the errors that every update can have.
fn prior_to_update(at: &Endpoint, metadata: Vec<FieldError>, object: &Value, old: &Value) -> Prior {
    match prior(at, metadata, object) {
        Prior::TypeMeta(types) => {
            let generic = MetadataRules::generic_update_errors(object, old, at.resource.metadata_context());
            Prior::TypeMeta(generic.into_iter().chain(types).collect())
        }
        prior => prior,
    }
}

fn validity(outcome: schema::Outcome) -> Validity {
    Validity { errors: outcome.errors, warnings: outcome.warnings }
}

fn is_same_outside_metadata(a: &Value, b: &Value) -> bool {
    fn rest(object: &Value) -> impl Iterator<Item = (&Text, &Value)> {
        let fields = object.fields();
        fields.filter(|(key, _)| key.as_str() != "metadata")
    }
    rest(a).eq(rest(b))
}
