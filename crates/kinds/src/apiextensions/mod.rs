//! CustomResourceDefinitions.

pub mod definition;

use machinery::Release;
use resource::builtin::{Behaviour, Hooks, Part, StoredAs};
use resource::rules::{Deletion, Dependents, Preconditions};

const DEFINITION: Behaviour = Behaviour::of("apiextensions.k8s.io/CustomResourceDefinition")
    .prepare(definition::prepare)
    .validate(definition::validate)
    .warnings(definition::warnings)
    .status(Part::PLAIN.prepare(schema::definition::prepare_for_status_update).validate(definition::validate_status))
    .deletion(Deletion {
        dependents: Dependents::CollectedOnceDeleting,
        preconditions: Preconditions::Storage { small_since: Some(Release::V1_37) },
        begin: definition::begin_deletion,
        ..Deletion::DEFAULT
    })
    .hooks(Hooks::Definition);

pub static KINDS: &[Behaviour] = &[
    DEFINITION,
    DEFINITION
        .like("apiextensions.k8s.io/v1beta1/CustomResourceDefinition")
        .prepare(definition::prepare_beta)
        .validate(definition::validate_beta)
        .warnings(definition::beta_warnings)
        .conversion(StoredAs::new(definition::beta_to_stored, definition::to_beta)),
];
