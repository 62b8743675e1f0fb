//! CustomResourceDefinitions as rules on data: decoding, defaulting, preparing, validating, converting, conditions.
//!
//! A definition is a [`Value`](machinery::Value) in the v1 shape, as [`decode`] makes it; that is also the stored form.
//! One of v1beta1 has a shape of its own, and goes to v1 and back by [`from_beta`] and [`to_beta`].
//! Invariants: all functions are pure; times are given by the caller; errors come in upstream's order under upstream's
//! paths, which are those of its internal version (see `hoist.rs`). A request goes decode → prepare_for_create or
//! prepare_for_update → validate_create or validate_update → `to_stored`.

mod beta;
mod body;
mod conditions;
mod conversion;
mod decode;
mod defaults;
mod hoist;
mod names;
mod options;
mod prepare;
mod ratchet;
mod rules;
mod schema;
mod subresources;
mod third_party;
mod validate;
mod versions;
mod warnings;

use crate::{openapi, structural};

pub use crate::limits::SELECTABLE_FIELDS_MAX;
pub use crate::structural::is_structural;
pub use beta::{beta_to_stored, from_beta, prepare_beta_for_create, prepare_beta_for_update, to_beta};
pub use body::{default, to_stored};
pub use conditions::{
    Condition, Naming, Taken, api_approval, establish, find_condition, has_bad_bundle, has_condition,
    is_condition_true, naming, non_structural, preserves_unknown_fields, remove_condition, replace_condition,
    set_condition,
};
pub use conversion::webhook_client;
pub use decode::{ApiVersion, Decoded, decode, decode_as};
pub use prepare::{prepare_for_create, prepare_for_status_update, prepare_for_update};
pub use third_party::{
    ThirdPartyNames, add_stored_versions, from_third_party, keeps_third_party, successor_of_third_party,
    third_party_versions, validate_third_party,
};
pub use validate::{
    validate_beta_create, validate_beta_update, validate_create, validate_status_update, validate_update,
};
pub use warnings::{warnings_on_create, warnings_on_update};

/// The finalizer that holds a definition until its instances are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Removes the finalizer from a definition, so that its deletion can complete.
pub fn remove_cleanup_finalizer(definition: &mut machinery::Value) {
    let finalizers =
        definition.at(&["metadata", "finalizers"]).and_then(machinery::Value::as_array).unwrap_or_default();
    let kept: Vec<_> = finalizers.iter().filter(|f| f.as_str() != Some(CLEANUP_FINALIZER)).cloned().collect();
    match kept.is_empty() {
        true => drop(definition.remove_at(&["metadata", "finalizers"])),
        false => definition.set_at(&["metadata", "finalizers"], machinery::Value::Array(kept)),
    }
}

/// The annotation by which the API of a protected group is approved.
pub const APPROVAL_ANNOTATION: &str = "api-approved.kubernetes.io";
