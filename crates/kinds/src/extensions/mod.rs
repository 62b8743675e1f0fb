//! ThirdPartyResources, the predecessors of CustomResourceDefinitions.

pub mod third_party;

use machinery::field::{FieldError, FieldPath};
use resource::builtin::{Behaviour, Further, Hooks};

const NONE: Behaviour = Behaviour::NONE;

pub static KINDS: &[Behaviour] = &[Behaviour {
    of: "extensions/ThirdPartyResource",
    validate: |at| at.extend(schema::definition::validate_third_party(at.value)),
    hooks: Hooks::ThirdPartyResource,
    further: Further {
        check_body: |registration| match registration.str_at(&["metadata", "namespace"]) {
            "" => None,
            _ => Some(FieldError::forbidden(&FieldPath::new("metadata.namespace"), "not allowed on this type")),
        },
        ..Further::NONE
    },
    ..NONE
}];
