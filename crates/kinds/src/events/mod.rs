//! Events, which the core group and `events.k8s.io` have.

pub mod event;

use crate::names::any_name;
use resource::builtin::{Behaviour, StoredAs};

pub static KINDS: &[Behaviour] = &[
    Behaviour::of("v1/Event").validate(|at| event::validate_common(at, "reportingComponent")).name(any_name),
    Behaviour::of("events.k8s.io/Event")
        .validate(event::validate)
        .conversion(StoredAs::new(event::to_core, event::from_core)),
];
