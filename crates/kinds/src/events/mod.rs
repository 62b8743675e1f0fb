//! Events, which the core group and `events.k8s.io` have.

pub mod event;

use crate::names::any_name;
use resource::builtin::{Behaviour, StoredAs};

const NONE: Behaviour = Behaviour::NONE;

pub static KINDS: &[Behaviour] = &[
    Behaviour {
        of: "v1/Event",
        validate: |at| event::validate_common(at, "reportingComponent"),
        name: any_name,
        ..NONE
    },
    Behaviour {
        of: "events.k8s.io/Event",
        validate: event::validate,
        conversion: Some(StoredAs::new(event::to_core, event::from_core)),
        ..NONE
    },
];
