//! Selects the rules that apply to a definition.

use std::collections::HashSet;

use machinery::{FieldError, Release};

/// The rules that apply to one validation.
pub(super) struct Options {
    pub(super) require_recognized_review_version: bool,
    pub(super) require_immutable_names: bool,
    pub(super) require_schema: bool,
    pub(super) require_valid_types: bool,
    pub(super) require_structural: bool,
    pub(super) require_pruned_defaults: bool,
    pub(super) require_atomic_sets: bool,
    pub(super) require_map_list_keys: bool,
    pub(super) allow_invalid_ca_bundle: bool,
    /// The names of versions whose unchanged selectable fields were already too many; `""` stands for the common
    /// fields.
    pub(super) too_many_selectable_fields: HashSet<String>,
    /// The versions whose schema is unchanged, so that the cost limit of single rules does not apply.
    pub(super) unchanged_versions: HashSet<String>,
    /// The rules and message expressions that are already stored. They may use all CEL libraries of this server.
    pub(super) known_rules: HashSet<String>,
    pub(super) known_messages: HashSet<String>,
    /// The errors of the v1beta1 form, if the request has it. Less is then required, and defaults are only allowed if
    /// some are stored.
    pub(super) beta: Option<BetaErrors>,
    pub(super) allow_defaults: bool,
    pub(super) release: Release,
}

impl Options {
    pub(super) fn for_create(release: Release) -> Options {
        Options {
            require_recognized_review_version: true,
            require_immutable_names: false,
            require_schema: true,
            require_valid_types: true,
            require_structural: true,
            require_pruned_defaults: true,
            require_atomic_sets: true,
            require_map_list_keys: true,
            allow_invalid_ca_bundle: true,
            too_many_selectable_fields: HashSet::new(),
            unchanged_versions: HashSet::new(),
            known_rules: HashSet::new(),
            known_messages: HashSet::new(),
            beta: None,
            allow_defaults: true,
            release,
        }
    }
}

/// Rules that only v1beta1 CRDs can violate.
#[derive(Default)]
pub(super) struct BetaErrors {
    /// `spec.version`.
    pub(super) version: String,
    /// Conflicts between top-level fields and fields of versions.
    pub(super) errors: Vec<FieldError>,
}
