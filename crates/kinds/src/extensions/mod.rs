//! ThirdPartyResources, the predecessors of CustomResourceDefinitions.

pub mod third_party;

use resource::builtin::{Behaviour, Hooks};

pub static KINDS: &[Behaviour] = &[Behaviour::of("extensions/ThirdPartyResource")
    .validate(|at| at.extend(schema::definition::validate_third_party(at.value)))
    .hooks(Hooks::ThirdPartyResource)];
