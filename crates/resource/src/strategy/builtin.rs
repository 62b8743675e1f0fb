//! Strategies of built-in kinds, their status, and the parts that their own subresources write, all driven by the row
//! of the kind.

use machinery::{Release, Value};
use schema::apply::FieldSet;

use super::{Strategy, Validity, reset, with_status_of};
use crate::builtin::{BuiltIn, Generation, Part, StatusMetadata, UNCOUNTED, track_generation};
use crate::codec::{BuiltInCodec, Codec};
use crate::rules::metadata;
use crate::version::Version;

/// Strategy of the main endpoint of built-in kinds.
pub struct BuiltInStrategy(pub BuiltInCodec);

/// Strategy of the status subresource of built-in kinds.
pub struct BuiltInStatus(pub BuiltInCodec);

/// Strategy of a subresource that writes a part of the object.
pub struct PartStrategy(pub BuiltInCodec, pub &'static Part);

/// Whether an update changes no field that the generation counts. Empty lists equal absent ones.
fn is_same(row: &BuiltIn, object: &Value, old: &Value) -> bool {
    schema::shape::same_fields(object, old, row.structure(), &UNCOUNTED)
}

/// The metadata that `ResetObjectMetaForStatus` of apimachinery takes from the stored object.
const RESET_FOR_STATUS: [&str; 7] =
    ["annotations", "deletionTimestamp", "finalizers", "generation", "labels", "ownerReferences", "selfLink"];

impl Strategy for BuiltInStrategy {
    fn codec(&self) -> &dyn Codec {
        &self.0
    }

    fn early_warnings(&self, object: &Value) -> Vec<String> {
        self.0.row.early_warnings(object, self.0.release())
    }

    fn prepare_for_create(&self, object: &mut Value) {
        let gates = &self.0.at.resource.gates;
        self.0.row.in_checked_form(object, |row, object| {
            if row.status.is_some_and(|status| status.is_reset) {
                object.put_at(&["status"], row.zero().remove_at(&["status"]));
            }
            row.drop_gated(object, None, gates);
            (row.behaviour.prepare)(object, None);
            if row.counts_generation(gates) && row.generation != Generation::Updates {
                track_generation(object, None);
            }
        });
    }

    fn validate(&self, object: &Value) -> Validity {
        let (row, stored) = (self.0.row.checked(), &*self.0.row.checked_form(object));
        let release = self.0.release();
        let mut errors = row.errors_of_new(stored, release);
        errors.extend(row.reserved_name_error(stored, &self.0.at.resource.gates));
        self.0.row.declared_errors(object, None, errors, release).into()
    }

    fn warnings_on_create(&self, object: &Value) -> Vec<String> {
        let (row, gates) = (self.0.row, &self.0.at.resource.gates);
        let warnings = row.warnings(&row.checked_form(object), None, self.0.release());
        // where the gate is on, a new object is refused instead
        let reserved =
            row.reserved_name_warning(object, gates).filter(|_| !gates.has(base::request::Feature::AdmissionManifests));
        reserved.into_iter().chain(warnings).collect()
    }

    fn prepare_for_update(&self, object: &mut Value, old: &Value) {
        let (gates, old) = (&self.0.at.resource.gates, &*self.0.row.checked_form(old));
        self.0.row.in_checked_form(object, |row, object| {
            if row.status.is_some() {
                object.put_at(&["status"], old.get("status").cloned());
            }
            metadata::restore_system_fields(object, old);
            if row.generation == Generation::Gated && !is_same(row, object, old) {
                track_generation(object, Some(old));
            }
            row.drop_gated(object, Some(old), gates);
            (row.behaviour.prepare)(object, Some(old));
            let is_counted = row.generation == Generation::Literal || !is_same(row, object, old);
            if row.counts_generation(gates) && is_counted {
                track_generation(object, Some(old));
            }
        });
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Validity {
        let row = self.0.row.checked();
        let (stored, before) = (&*self.0.row.checked_form(object), &*self.0.row.checked_form(old));
        let release = self.0.release();
        let mut errors = row.metadata.update_errors(stored, before, row.metadata_context(release));
        errors.extend(row.errors(stored, Some(before), release));
        self.0.row.declared_errors(object, Some(old), errors, release).into()
    }

    fn warnings_on_update(&self, object: &Value, old: &Value) -> Vec<String> {
        let (row, gates) = (self.0.row, &self.0.at.resource.gates);
        let (shown, before) = (row.checked_form(object), row.checked_form(old));
        let warnings = row.warnings(&shown, Some(&before), self.0.release());
        row.reserved_name_warning(object, gates).into_iter().chain(warnings).collect()
    }

    fn canonicalize(&self, object: &mut Value) {
        self.0.row.canonicalize(object);
    }

    fn reset_fields(&self, version: &Version) -> Option<&'static FieldSet> {
        let own = self.0.row.behaviour.resets.map(|resets| resets());
        own.or(version.status.then_some(&reset::STATUS))
    }

    fn allow_create_on_update(&self) -> bool {
        self.0.row.create_on_update
    }

    fn allow_create_on_apply(&self) -> bool {
        true
    }

    fn allow_unconditional_update(&self) -> bool {
        self.0.row.unconditional_update
    }
}

impl Strategy for BuiltInStatus {
    fn codec(&self) -> &dyn Codec {
        &self.0
    }

    fn prepare_for_update(&self, object: &mut Value, old: &Value) {
        let (gates, old) = (&self.0.at.resource.gates, &*self.0.row.checked_form(old));
        self.0.row.in_checked_form(object, |row, object| {
            with_status_of(object, old, row.status_metadata());
            if row.status_metadata() == StatusMetadata::Reset {
                for field in RESET_FOR_STATUS {
                    let path = ["metadata", field];
                    object.put_at(&path, old.at(&path).cloned());
                }
            }
            row.drop_gated(object, Some(old), gates);
            (row.behaviour.status.prepare)(object, old);
        });
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Validity {
        let row = self.0.row.checked();
        let (stored, before) = (&*self.0.row.checked_form(object), &*self.0.row.checked_form(old));
        let release = self.0.release();
        let mut errors = row.metadata.status_errors(stored, before, row.metadata_context(release));
        errors.extend(row.status_errors(stored, before, release));
        self.0.row.declared_errors(object, Some(old), errors, release).into()
    }

    fn warnings_on_update(&self, object: &Value, _old: &Value) -> Vec<String> {
        self.0.row.status_warnings(object, self.0.release())
    }

    fn canonicalize(&self, object: &mut Value) {
        self.0.row.canonicalize(object);
    }

    fn reset_fields(&self, _version: &Version) -> Option<&'static FieldSet> {
        if let Some(reset) = self.0.row.behaviour.status.reset {
            return Some(reset());
        }
        match self.0.row.status_metadata() {
            StatusMetadata::Written => Some(&reset::SPEC),
            StatusMetadata::Unowned if self.0.release() >= Release::V1_36 => Some(&reset::SPEC),
            StatusMetadata::Unowned | StatusMetadata::Reset | StatusMetadata::Kept => Some(&reset::ALL_BUT_STATUS),
        }
    }

    fn allow_unconditional_update(&self) -> bool {
        self.0.row.unconditional_update
    }
}

impl Strategy for PartStrategy {
    fn codec(&self) -> &dyn Codec {
        &self.0
    }

    fn prepare_for_update(&self, object: &mut Value, old: &Value) {
        (self.1.prepare)(object, old);
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Validity {
        let row = self.0.row;
        let release = self.0.release();
        let mut errors = row.metadata.status_errors(object, old, row.metadata_context(release));
        errors.extend(row.part_errors(self.1, object, old, release));
        row.declared_errors(object, Some(old), errors, release).into()
    }

    fn reset_fields(&self, _version: &Version) -> Option<&'static FieldSet> {
        self.1.reset.map(|reset| reset())
    }

    fn allow_unconditional_update(&self) -> bool {
        self.0.row.unconditional_update
    }
}
